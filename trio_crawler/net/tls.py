"""TLS: the verification of certificates, and the hosts without it."""

import re
import ssl
from collections.abc import Iterable
from contextlib import suppress

import certifi

from trio_crawler.arguments import ArgumentError, check_kind, several_strings
from trio_crawler.model import Phase, Reason
from trio_crawler.net.errors import FetchError
from trio_crawler.net.stream import PlainStream, TlsStream
from trio_crawler.page.urls import host, normalise, without_userinfo

_NO_HOST = re.compile(r"[@?#/\\*\s]")


class Security:
    """The verification of certificates: any certificate of `insecure_hosts` is accepted.

    All others are verified by `tls`, a context for clients. The default is the list of the certifi
    package, which is the same on every machine; it is read when it is first needed, which takes
    30 ms. `insecure_hosts` are names or addresses, without a port.

    Raises TypeError or ValueError, naming the argument, if it is invalid or would have no effect.
    """

    __module__ = "trio_crawler.net"

    def __init__(
        self, tls: ssl.SSLContext | None = None, insecure_hosts: Iterable[str] = ()
    ) -> None:
        if tls is not None:
            _check_context(tls)
        hosts = several_strings("insecure_hosts", insecure_hosts)
        if hosts and tls is not None and tls.verify_mode is ssl.CERT_NONE:
            raise ValueError(
                "insecure_hosts would have no effect: tls verifies the certificate of no host"
            )
        self._verifying = tls
        self._trusting: ssl.SSLContext | None = None
        self._insecure = frozenset(map(_host, hosts))

    async def secure(self, plain: PlainStream, host: str) -> TlsStream:
        """Return a TLS stream to `host` after the handshake; `plain` is closed if that fails.

        Raises OSError (such as ssl.SSLError), and FetchError if no certificate can have the name.
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
            raise uncertifiable(host) from None

    def context(self, host: str) -> ssl.SSLContext:
        """Return the context that verifies the certificate of `host`, or accepts any."""
        if host in self._insecure:
            self._trusting = self._trusting or _trusting()
            return self._trusting
        self._verifying = self._verifying or _verifying()
        return self._verifying


def uncertifiable(host: str) -> FetchError:
    """Return the error for a host with a name that OpenSSL cannot verify."""
    return FetchError(Reason.TLS, f"no certificate can be valid for the name {host}", Phase.TLS)


def _check_context(tls: ssl.SSLContext) -> None:
    check_kind("tls", tls, ssl.SSLContext, "an ssl.SSLContext")
    if tls.protocol is ssl.PROTOCOL_TLS_SERVER:
        raise ValueError(
            "tls must be a context for clients, such as ssl.create_default_context() returns, "
            "not one of PROTOCOL_TLS_SERVER"
        )


def _host(name: str) -> str:
    """Return a host in the form that origins have. Raises ValueError for anything else."""
    bare = name.removeprefix("[").removesuffix("]")
    found = ""
    if bare and not _NO_HOST.search(bare):
        with suppress(ValueError):
            found = host(normalise(f"https://[{bare}]/" if ":" in bare else f"https://{bare}/"))
    if not found:
        wanted = "a host such as test.example.org or ::1, without scheme, port and path"
        wrong = f" must be {wanted}, not {without_userinfo(name)!r}"
        raise ArgumentError("insecure_hosts", wrong, each=True)
    return found.strip("[]")


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
