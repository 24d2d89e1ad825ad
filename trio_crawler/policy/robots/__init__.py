"""What robots.txt files and pages ask of robots (RFC 9309, X-Robots-Tag, meta elements)."""
