"""TLS: the verification of certificates, and the hosts without it."""

import errno
import os
import re
import ssl
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

import certifi
import httpx

from trio_crawler.arguments import ArgumentError, check_kind, check_path, several_strings
from trio_crawler.model import Phase, Reason
from trio_crawler.net.client_cert import ClientCert, check_client_cert, load_client_cert
from trio_crawler.net.errors import FetchError
from trio_crawler.net.sessions import ResumableStream, Sessions
from trio_crawler.net.stream import Stream, TlsStream
from trio_crawler.page.urls import host, normalise, web_urls, without_userinfo

HTTP1 = ("http/1.1",)
"""The protocols that are offered to a server (ALPN) unless HTTP/2 may be used."""

_FILE, _DIRECTORY = "SSL_CERT_FILE", "SSL_CERT_DIR"
_NO_HOST = re.compile(r"[@?#/\\*\s]")
# OpenSSL finds a certificate in a directory only by such a name.
_is_hashed = re.compile(r"[0-9a-f]{8}\.[0-9]+").fullmatch


class Security:
    """The verification of certificates: any certificate of `insecure_hosts` is accepted.

    All others are verified by one of these, the first that is given:

    - `tls`, a context for clients;
    - `cacert`, a file of the certificates of authorities, in PEM;
    - the file that the environment variable SSL_CERT_FILE names, together with the directories of
      SSL_CERT_DIR, in which OpenSSL finds a certificate by its hash (`openssl rehash`);
    - the list of the certifi package, which is the same on every machine. It is read when it is
      first needed, which takes 30 ms; a file that is named is read at once.

    `insecure_hosts` are names or addresses, without a port.

    The protocols that `tls` offers to servers (ALPN) are set anew before each handshake; nothing
    else of it is changed.

    `client_cert` is shown to the servers that want a certificate of the client, but only on the
    hosts of `seeds`: a file in PEM with a certificate and its key, or (file, file of the key), or
    these with the password of the key. It is read at once. With `tls`, load it there.

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
        if cacert is not None:
            check_path("cacert", cacert)
            if tls is not None:
                raise ValueError("cacert and tls exclude each other: give one of them")
        hosts = several_strings("insecure_hosts", insecure_hosts)
        if hosts and tls is not None and tls.verify_mode is ssl.CERT_NONE:
            raise ValueError(
                "insecure_hosts would have no effect: tls verifies the certificate of no host"
            )
        self._insecure = frozenset(map(_host, hosts))
        self._certified = frozenset[str]()
        if client_cert is not None or seeds != ():
            self._certified = _certified(client_cert, seeds, tls)
        # By whether a certificate is shown to a host, and whether any of the host is accepted.
        self._contexts: dict[tuple[bool, bool], ssl.SSLContext] = {}
        self._sessions = Sessions()
        if (verifying := tls or _named_authorities(cacert)) is not None:
            self._contexts[False, False] = verifying
        if client_cert is not None:
            for insecure in {each in self._insecure for each in self._certified}:
                named = _trusting() if insecure else _named_authorities(cacert)
                context = self._contexts[True, insecure] = named or _verifying()
                load_client_cert(context, client_cert)

    async def secure(
        self, plain: Stream, host: str, protocols: Sequence[str] = HTTP1, port: int = 443
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
        context = self.context(host)
        # Each time: a caller's context may be shared with other programs, and offer HTTP/2 there.
        context.set_alpn_protocols(list(protocols))
        try:
            return ResumableStream(plain, context, name, port, self._sessions)
        except ValueError:
            raise uncertifiable(host) from None

    def context(self, host: str) -> ssl.SSLContext:
        """Return the context that verifies the certificate of `host`, or accepts any."""
        which = host in self._certified, host in self._insecure
        context = self._contexts.get(which)
        if context is None:
            # One that shows a certificate, or verifies others than certifi's, is there already.
            context = self._contexts[which] = _trusting() if which[1] else _verifying()
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
) -> frozenset[str]:
    """Return the hosts that the certificate of the client is shown to."""
    hosts = frozenset(host(url).strip("[]") for url in web_urls("seeds", seeds))
    if client_cert is None:
        if hosts:
            raise ValueError("seeds would have no effect without client_cert")
        return hosts
    check_client_cert(client_cert)
    if tls is not None:
        raise ValueError("client_cert and tls exclude each other: load the certificate into tls")
    if not hosts:
        raise ValueError("client_cert is shown only to the hosts of the seeds: name the seeds")
    return hosts


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
    return ssl.create_default_context(cafile=certifi.where())


def _named_authorities(cacert: str | Path | None) -> ssl.SSLContext | None:
    """Return a context for the authorities that the caller or the environment names, or None."""
    if cacert is not None:
        return _believing("cacert", os.fspath(cacert), None)
    # A variable that is empty counts as unset.
    file, directories = os.environ.get(_FILE) or None, os.environ.get(_DIRECTORY) or None
    if directories is not None:
        _check_directories(directories, alone=file is None)
    elif file is None:
        return None
    return _believing(_FILE, file, directories)


def _check_directories(directories: str, *, alone: bool) -> None:
    """Raise ArgumentError unless there is a directory, and a certificate in it if it is alone."""
    names: list[str] = []
    there = False
    for directory in directories.split(os.pathsep):
        with suppress(OSError):
            names += os.listdir(directory)
            there = True
    if not there:
        wanted = "a directory of certificates that can be read"
        raise ArgumentError(_DIRECTORY, f" must be {wanted}, not {directories!r}")
    if alone and not any(map(_is_hashed, names)):
        why = "has no certificate with a name such as 1a2b3c4d.0"
        raise ArgumentError(_DIRECTORY, f": {directories!r} {why}: run openssl rehash on it")


def _believing(name: str, file: str | None, directories: str | None) -> ssl.SSLContext:
    """Return a context for the authorities of a file, of directories, or of both.

    `name` is that of the argument or variable with the file. Raises ArgumentError.
    """
    try:
        # An empty name would not count: the authorities of the system would be believed.
        if file == "":
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        context = ssl.create_default_context(cafile=file, capath=directories)
    except ssl.SSLError:
        raise _no_certificates(name, file, "it has none, or one that is damaged") from None
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else None
        raise _no_certificates(name, file, why or str(error)) from None
    if file is not None and not context.cert_store_stats()["x509"]:
        raise _no_certificates(name, file, "it has none")
    # Since Python 3.13 the default is RFC 5280 to the letter, which the authorities that companies
    # make themselves often are not. An authority may be one below a root. Both is so in curl.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    return context


def _no_certificates(name: str, file: str | None, why: str) -> ArgumentError:
    return ArgumentError(name, f" must be a file of certificates in PEM, not {file!r}: {why}")


def _trusting() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
