"""Traps: endless URLs, and the rules that recognise them."""
