"""TLS: the verification of certificates, and the hosts without it."""

import re
import ssl
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import httpx

from trio_crawler.arguments import ArgumentError, check_kind, several_strings
from trio_crawler.model import Phase, Reason
from trio_crawler.net.dial.stream import Stream, TlsStream
from trio_crawler.net.errors import FetchError
from trio_crawler.net.tls.certificates import (
    ClientCert,
    check_client_cert,
    load_client_cert,
    verifying_context,
)
from trio_crawler.net.tls.sessions import ResumableStream, Sessions
from trio_crawler.page.urls import host, normalise, web_urls, without_userinfo

HTTP1 = ("http/1.1",)
"""The protocols that are offered to a server (ALPN) unless HTTP/2 may be used."""

HTTPS = 443
_NO_HOST = re.compile(r"[@?#/\\*\s]")


class Security:
    """The verification of certificates: any certificate of `insecure_hosts` is accepted.

    All others are verified by one of these, the first that is given:

    - `tls`, a context for clients;
    - `cacert`, a file of the certificates of authorities, in PEM;
    - the file that the environment variable SSL_CERT_FILE names, together with the directories of
      SSL_CERT_DIR, in which OpenSSL finds a certificate by its hash (`openssl rehash`);
    - the list of the certifi package, which is the same on every machine.

    A file that is named is looked through at once. OpenSSL reads the file of a variable, or the
    list, only when a connection needs it, which takes 30 to 60 ms.

    `insecure_hosts` are names or addresses, without a port.

    The protocols that `tls` offers to servers (ALPN) are set anew before each handshake; nothing
    else of it is changed.

    `client_cert` is shown to the servers that want a certificate of the client, but only at the
    origins of `seeds`, where an origin by http also stands for that by https: a file in PEM with a
    certificate and its key, or (file, file of the key), or these with the
    password of the key. It is read at once. With `tls`, load it there.

    A session of TLS is resumed where a server closes many connections, within an hour after the
    certificate of the server was verified. So one that expires is noticed at most an hour later.

    Raises TypeError or ValueError, naming the argument or the variable, if it is invalid or would
    have no effect.
    """

    __module__ = "trio_crawler.net"

    def __init__(
        self,
        tls: ssl.SSLContext | None = None,
        insecure_hosts: Iterable[str] = (),
        cacert: str | Path | None = None,
        client_cert: ClientCert | None = None,
        seeds: Iterable[str | httpx.URL] = (),
    ) -> None:
        if tls is not None:
            _check_context(tls)
        if cacert is not None and tls is not None:
            raise ValueError("cacert and tls exclude each other: give one of them")
        hosts = several_strings("insecure_hosts", insecure_hosts)
        if hosts and tls is not None and tls.verify_mode is ssl.CERT_NONE:
            raise ValueError(
                "insecure_hosts would have no effect: tls verifies the certificate of no host"
            )
        self._insecure = frozenset(map(_host, hosts))
        self._certified = frozenset[tuple[str, int]]()
        if client_cert is not None or seeds != ():
            self._certified = _certified(client_cert, seeds, tls)
        # By whether a certificate is shown to a host, and whether any of the host is accepted.
        self._contexts: dict[tuple[bool, bool], ssl.SSLContext] = {}
        self._sessions = Sessions()
        given = tls
        self._verifying = verifying_context(cacert) if given is None else lambda: given
        if client_cert is not None:
            for insecure in {host in self._insecure for host, _ in self._certified}:
                context = _trusting() if insecure else self._verifying()
                self._contexts[True, insecure] = context
                load_client_cert(context, client_cert)

    async def secure(
        self, plain: Stream, host: str, protocols: Sequence[str] = HTTP1, port: int = HTTPS
    ) -> TlsStream:
        """Return a TLS stream to `host` after the handshake; `plain` is closed if that fails.

        `protocols` are offered to the server (ALPN). Raises OSError (such as ssl.SSLError), and
        FetchError if no certificate can have the name. A NotResumedError says that the next
        handshake is another one.
        """
        try:
            stream = self._wrapped(plain, host, protocols, port)
            await stream.handshake()
        except BaseException:
            plain.close()
            raise
        return stream

    def _wrapped(self, plain: Stream, host: str, protocols: Sequence[str], port: int) -> TlsStream:
        # RFC 6066, 3: the name is sent, and certified, without the dot at its end.
        name = host.removesuffix(".")
        try:
            context = self.context(host, port)
        except ArgumentError as error:
            # The file of the environment looked well, but OpenSSL cannot read it.
            raise FetchError(Reason.TLS, str(error), Phase.TLS) from error
        # Each time: a caller's context may be shared with other programs, and offer HTTP/2 there.
        context.set_alpn_protocols(list(protocols))
        try:
            return ResumableStream(plain, context, name, port, self._sessions)
        except ValueError:
            raise uncertifiable(host) from None

    def context(self, host: str, port: int = HTTPS) -> ssl.SSLContext:
        """Return the context that verifies the certificate of `host`, or accepts any."""
        which = (host, port) in self._certified, host in self._insecure
        context = self._contexts.get(which)
        if context is None:
            # One that shows a certificate is there already.
            context = self._contexts[which] = _trusting() if which[1] else self._verifying()
        return context


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


def _certified(
    client_cert: ClientCert | None, seeds: Iterable[str | httpx.URL], tls: ssl.SSLContext | None
) -> frozenset[tuple[str, int]]:
    """Return the hosts and ports that the certificate of the client is shown to."""
    parts = map(urlsplit, web_urls("seeds", seeds))
    origins = frozenset((part.hostname or "", part.port or HTTPS) for part in parts)
    if client_cert is None:
        if origins:
            raise ValueError("seeds would have no effect without client_cert")
        return origins
    check_client_cert(client_cert)
    if tls is not None:
        raise ValueError("client_cert and tls exclude each other: load the certificate into tls")
    if not origins:
        raise ValueError("client_cert is shown only at the origins of the seeds: name the seeds")
    return origins


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


def _trusting() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
