"""HTTP/2 (RFC 9113) over the streams of this package, by the state machine of the h2 package.

httpcore loses requests that share a connection with one that fails, and takes twice the CPU.
"""
