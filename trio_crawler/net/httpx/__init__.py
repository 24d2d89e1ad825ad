"""Requests by httpx, for a caller's client or transport."""
