"""What may be asked for, how far, how often: pure decisions, no waiting."""
