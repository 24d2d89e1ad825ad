"""Answers in which a server speaks of TLS: that it wants it, or a certificate of the client."""

from __future__ import annotations

from trio_crawler.net.errors import certificate_wanted

_WANT_TLS = (
    # nginx, ngx_http_special_response.c (error 497); Cloudflare and OpenResty are nginx.
    b"The plain HTTP request was sent to HTTPS port",
    # Apache, modules/ssl/ssl_engine_kernel.c.
    b"speaking plain HTTP to an SSL-enabled server port",
    # Go, net/http/server.go; Caddy and Traefik use it.
    b"Client sent an HTTP request to an HTTPS server",
    # Tomcat, org.apache.tomcat.util.net.TLSClientHelloExtractor.
    b"This combination of host and port requires TLS",
)
_WANT_CERTIFICATE = (
    # nginx, ngx_http_special_response.c (error 496).
    b"No required SSL certificate was sent",
    # Apache, as above: with TLS 1.3 the client did not offer to show one later. The status is 403.
    b"Cannot perform Post-Handshake Authentication",
)
# nginx, as above (error 495).
_REFUSE_CERTIFICATE = b"The SSL certificate error"
_MAX_BYTES = 4096


def tls_wanted(url: str, server: str, body: bytes) -> str | None:
    """Return the sentence for a page of status 400 or 403 that is about TLS; None for others.

    `url` is that of the request, and `server` the name for messages. The phrases come from the
    sources of nginx, Apache, Go and Tomcat, which write these pages themselves.
    """
    begin = body[:_MAX_BYTES]
    if url.startswith("http://"):
        return use_https(server) if any(phrase in begin for phrase in _WANT_TLS) else None
    if any(phrase in begin for phrase in _WANT_CERTIFICATE):
        return certificate_wanted(server)
    if _REFUSE_CERTIFICATE in begin:
        return f"{server} does not accept the certificate of the client (--client-cert)"
    return None


def use_https(server: str) -> str:
    """Return a sentence about a server that wants TLS."""
    return f"{server} speaks TLS on this port: use https://"
