"""The parts of a crawler; imported by `crawler` only."""
