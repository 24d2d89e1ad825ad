"""TLS: whose certificates are believed, and the certificate of the client."""

import errno
import os
import ssl
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TypeAlias
from urllib.parse import urlsplit

from trio_crawler.arguments import ArgumentError, check_kind, check_path, several_strings
from trio_crawler.expressions import lazy
from trio_crawler.model import Phase, Reason
from trio_crawler.net.dial.addresses import as_in_url
from trio_crawler.net.dial.stream import Stream, TlsStream
from trio_crawler.net.errors import FetchError
from trio_crawler.page.urls import without_userinfo

HTTP1 = ("http/1.1",)
"""The protocols that are offered to a server (ALPN) unless HTTP/2 may be used."""

HTTPS = 443
_NO_HOST = lazy(r"[@?#/\\*\s]")

Place: TypeAlias = str | Path
ClientCert: TypeAlias = Place | tuple[Place, Place] | tuple[Place, Place, str]
"""A file, or two: of the certificate and of its key; with the password of the key, if it has one.

The files are in PEM. The certificates of the authorities between this one and the root follow it.
"""

_NAME = "client_cert"
_WANTED = "the path of a file, or (file, file of the key), or these with the password of the key"
_FILE, _DIRECTORY = "SSL_CERT_FILE", "SSL_CERT_DIR"


class Security:
    """The verification of certificates: any certificate of `insecure_hosts` is accepted.

    All others are verified by one of these, the first that is given:

    - `tls`, a context for clients;
    - `cacert`, a file of the certificates of authorities, in PEM;
    - the file that the environment variable SSL_CERT_FILE names, together with the directories of
      SSL_CERT_DIR, in which OpenSSL finds a certificate by its hash (`openssl rehash`);
    - the list of the certifi package, which is the same on every machine.

    A file that is named is read at once, the list only when a connection needs it, which takes
    30 to 60 ms.

    `insecure_hosts` are names or addresses, without a port.

    The protocols that `tls` offers to servers (ALPN) are set anew before each handshake; nothing
    else of it is changed.

    `client_cert` is shown to the servers that want a certificate of the client, but only at the
    origins of `seeds`, where an origin by http also stands for that by https: a file in PEM with a
    certificate and its key, or (file, file of the key), or these with the
    password of the key. It is read at once. With `tls`, load it there.

    Raises TypeError or ValueError, naming the argument or the variable, if it is invalid or would
    have no effect.
    """

    def __init__(
        self,
        tls: ssl.SSLContext | None = None,
        insecure_hosts: Iterable[str] = (),
        cacert: str | Path | None = None,
        client_cert: ClientCert | None = None,
        seeds: Iterable[str] = (),
    ) -> None:
        if tls is not None:
            check_kind("tls", tls, ssl.SSLContext, "an ssl.SSLContext")
            if tls.protocol is ssl.PROTOCOL_TLS_SERVER:
                raise ValueError(
                    "tls must be a context for clients, such as ssl.create_default_context() "
                    "returns, not one of PROTOCOL_TLS_SERVER"
                )
        if cacert is not None and tls is not None:
            raise ValueError("cacert and tls exclude each other: give one of them")
        hosts = several_strings("insecure_hosts", insecure_hosts)
        if hosts and tls is not None and tls.verify_mode is ssl.CERT_NONE:
            raise ValueError(
                "insecure_hosts would have no effect: tls verifies the certificate of no host"
            )
        self._insecure = frozenset(map(_host, hosts))
        self._certified = frozenset[tuple[str, int]]()
        if client_cert is not None:
            # There is no password in its message.
            _parts(client_cert)
            if tls is not None:
                raise ValueError(
                    "client_cert and tls exclude each other: load the certificate into tls"
                )
            parts = map(urlsplit, seeds)
            self._certified = frozenset(
                (each.hostname or "", each.port or HTTPS) for each in parts
            )
            if not self._certified:
                raise ValueError(
                    "client_cert is shown only at the origins of the seeds: name the seeds"
                )
        # By whether a certificate is shown to a host, and whether any of the host is accepted.
        self._contexts: dict[tuple[bool, bool], ssl.SSLContext] = {}
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
        FetchError if the file of the authorities cannot be read any more.
        """
        try:
            try:
                context = self.context(host, port)
            except ArgumentError as error:
                # The file is not there any more, or is another one now.
                raise FetchError(Reason.TLS, str(error), Phase.TLS) from error
            # Each time: a caller's context may be shared with other programs, and offer HTTP/2.
            context.set_alpn_protocols(list(protocols))
            # RFC 6066, 3: the name is sent, and certified, without the dot at its end.
            stream = TlsStream(plain, context, host.removesuffix("."))
            await stream.handshake()
        except BaseException:
            plain.close()
            raise
        return stream

    def context(self, host: str, port: int = HTTPS) -> ssl.SSLContext:
        """Return the context that verifies the certificate of `host`, or accepts any."""
        which = (host, port) in self._certified, host in self._insecure
        context = self._contexts.get(which)
        if context is None:
            # One that shows a certificate is there already.
            context = self._contexts[which] = _trusting() if which[1] else self._verifying()
        return context


def _host(name: str) -> str:
    """Return a host in the form that origins have. Raises ValueError for anything else."""
    if name and not _NO_HOST.search(name):
        with suppress(ValueError):
            return as_in_url(name)
    wanted = "a host such as test.example.org or ::1, without scheme, port and path"
    wrong = f" must be {wanted}, not {without_userinfo(name)!r}"
    raise ArgumentError("insecure_hosts", wrong, each=True)


def _trusting() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


# The authorities.


def verifying_context(cacert: str | Path | None) -> Callable[[], ssl.SSLContext]:
    """Return a function that returns a context for the authorities of a file.

    Without a file they are those that the environment names, else those of certifi. A file that
    is named is read at once. Raises ArgumentError, and TypeError.
    """
    if cacert is not None:
        check_path("cacert", cacert)
        believing = partial(_believing, "cacert", os.fspath(cacert), None)
    else:
        # A variable that is empty counts as unset.
        file, directories = os.environ.get(_FILE) or None, os.environ.get(_DIRECTORY) or None
        if file is None and directories is None:
            return _listed
        if directories is not None and not any(map(os.path.isdir, directories.split(os.pathsep))):
            wrong = f" must be a directory of certificates, not {directories!r}"
            raise ArgumentError(_DIRECTORY, wrong)
        believing = partial(_believing, _FILE, file, directories)
    # ▶ To read the list of a system takes 40 ms: the first connection gets what was read here.
    read = [believing()]
    return lambda: read.pop() if read else believing()


def _listed() -> ssl.SSLContext:
    """Return a context for the authorities that certifi lists."""
    # Imported late: ▶ it takes 3 ms, and a crawl by http needs none.
    import certifi

    return ssl.create_default_context(cafile=certifi.where())


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


# The certificate of the client.


class _EncryptedError(Exception):
    """The key has a password, and none is given."""


def load_client_cert(context: ssl.SSLContext, given: ClientCert) -> None:
    """Let a context show a certificate to the servers that want one.

    OpenSSL would ask the terminal for the password of a key; here that is an error. Raises
    TypeError or ArgumentError, in whose messages there is no password.
    """
    certificate, key, password = _parts(given)

    def typed() -> str:
        if password is None:
            raise _EncryptedError
        return password

    try:
        context.load_cert_chain(certificate, key, typed)
    except _EncryptedError:
        raise _error(f"the key in {key!r} is encrypted, and its password is missing") from None
    except ssl.SSLError as error:
        why = "one of them is not in PEM, or damaged, or the password is wrong"
        if reason := getattr(error, "reason", None):
            why = reason.replace("_", " ").lower()
        raise _error(f"cannot use {certificate!r} with the key in {key!r}: {why}") from None
    except OSError as error:
        # OpenSSL reads the certificate first, and does not say which file it is.
        place = (
            key if os.path.isfile(certificate) and os.access(certificate, os.R_OK) else certificate
        )
        raise _error(f"cannot read {place!r}: {error.strerror}") from None
    except ValueError as error:
        raise _error(str(error)) from None
    # TLS 1.3: Apache asks for it when it knows the path of the request.
    context.post_handshake_auth = True


def _parts(given: object) -> tuple[str, str, str | None]:
    """Return the paths of the certificate and of the key, and the password."""
    parts = given if isinstance(given, tuple) else (given, given)
    if len(parts) not in (2, 3) or not all(isinstance(each, str | Path) for each in parts[:2]):
        raise TypeError(f"{_NAME} must be {_WANTED}, not {_shown(given)}")
    password = parts[2] if len(parts) == 3 else None
    if not isinstance(password, str | None):
        raise TypeError(f"the password of {_NAME} must be a string, not {_shown(password)}")
    return os.fspath(parts[0]), os.fspath(parts[1]), password


def _shown(value: object) -> str:
    """Return the kind of a value that may have a password in it."""
    return f"{type(value).__name__} of {len(value)}" if isinstance(value, tuple) else repr(value)


def _error(why: str) -> ArgumentError:
    return ArgumentError(_NAME, f": {why}")
