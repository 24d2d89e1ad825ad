"""What a crawler is made of; imported by `crawler` and `bridge` only."""
