"""The rules for robots in robots.txt files (RFC 9309), X-Robots-Tag fields and meta elements."""
