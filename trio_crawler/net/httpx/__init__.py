"""Requests by httpx: for a caller's client or transport, for HTTP/2, and for proxies."""
