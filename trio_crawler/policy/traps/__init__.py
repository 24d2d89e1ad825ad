"""Traps: rules that recognise sites with endless URLs."""
