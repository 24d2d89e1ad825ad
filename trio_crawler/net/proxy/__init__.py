"""Proxies: which one is used for an origin, and how a connection is made through it."""
