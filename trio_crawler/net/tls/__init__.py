"""TLS: the certificates that are trusted and shown, and the sessions that are resumed."""
