"""TLS: whom a server's certificate must convince, and for which hosts it need not."""

from __future__ import annotations

import ssl
from collections.abc import Iterable

import certifi

from trio_crawler.model import Phase, Reason
from trio_crawler.net.errors import Faulty
from trio_crawler.net.stream import PlainStream, TlsStream


class Security:
    """Make secure streams: certificates are verified, except those of `insecure_hosts`.

    They are verified by `context` or, without one, against the list of the certifi package,
    which is the same on every machine. Reading it takes 30 ms: it is read when first needed.
    """

    def __init__(
        self, context: ssl.SSLContext | None = None, insecure_hosts: Iterable[str] = ()
    ) -> None:
        self._verifying = context
        self._trusting: ssl.SSLContext | None = None
        self._insecure = frozenset(host.strip("[]").lower() for host in insecure_hosts)

    async def secure(self, plain: PlainStream, host: str) -> TlsStream:
        """Shake hands with `host`; the stream is closed if that fails.

        Raises OSError (ssl.SSLError is one) and Faulty for a name that no certificate can have.
        """
        try:
            stream = self._wrapped(plain, host)
            await stream.handshake()
        except BaseException:
            plain.close()
            raise
        return stream

    def _wrapped(self, plain: PlainStream, host: str) -> TlsStream:
        # RFC 6066, 3: the name is sent, and certified, without the dot at its end.
        name = host.removesuffix(".")
        try:
            return TlsStream(plain, self.context(host), name)
        except ValueError:
            detail = f"no certificate can be made out for {host}"
            raise Faulty(Reason.TLS, detail, Phase.TLS) from None

    def context(self, host: str) -> ssl.SSLContext:
        """Return what judges the certificate of `host`."""
        if host in self._insecure:
            self._trusting = self._trusting or _trusting()
            return self._trusting
        self._verifying = self._verifying or _verifying()
        return self._verifying


def _verifying() -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=certifi.where())
    context.set_alpn_protocols(["http/1.1"])
    return context


def _trusting() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols(["http/1.1"])
    return context
