"""Requests that go by httpx: a caller's client or transport, HTTP/2, and proxies."""
