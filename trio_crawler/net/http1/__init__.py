"""HTTP/1.1 (RFC 9112): connections, the pool that keeps them, and the wire over both."""
