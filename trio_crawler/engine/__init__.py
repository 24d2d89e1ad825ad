"""The parts of a crawler; imported by `crawler` and `bridge` only."""
