"""TLS: the verification of certificates, and the hosts without it."""

import errno
import os
import re
import ssl
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import certifi

from trio_crawler.arguments import ArgumentError, check_kind, check_path, several_strings
from trio_crawler.model import Phase, Reason
from trio_crawler.net.errors import FetchError
from trio_crawler.net.stream import PlainStream, TlsStream
from trio_crawler.page.urls import host, normalise, without_userinfo

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

    Raises TypeError or ValueError, naming the argument or the variable, if it is invalid or would
    have no effect.
    """

    __module__ = "trio_crawler.net"

    def __init__(
        self,
        tls: ssl.SSLContext | None = None,
        insecure_hosts: Iterable[str] = (),
        cacert: str | Path | None = None,
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
        self._verifying = tls or _named_authorities(cacert)
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
    context.set_alpn_protocols(["http/1.1"])
    return context


def _no_certificates(name: str, file: str | None, why: str) -> ArgumentError:
    return ArgumentError(name, f" must be a file of certificates in PEM, not {file!r}: {why}")


def _trusting() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols(["http/1.1"])
    return context
