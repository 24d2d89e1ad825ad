"""Certificates: those of the authorities that are believed, and that of the client."""

from __future__ import annotations

import binascii
import errno
import os
import re
import ssl
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TypeAlias

import certifi

from trio_crawler.arguments import ArgumentError, check_path

_FILE, _DIRECTORY = "SSL_CERT_FILE", "SSL_CERT_DIR"
_LONG, _SEQUENCE = 0x80, 0x30
# OpenSSL finds a certificate in a directory only by such a name.
_is_hashed = re.compile(r"[0-9a-f]{8}\.[0-9]+").fullmatch
_certificates = re.compile(
    rb"-----BEGIN (?:X509 |TRUSTED )?CERTIFICATE-----(.*?)(?=-----|\Z)", re.DOTALL
).findall


def verifying_context(cacert: str | Path | None) -> Callable[[], ssl.SSLContext]:
    """Return a function that returns a context for the authorities of a file.

    Without a file they are those that the environment names, else those of certifi. A file that
    the caller names is read by OpenSSL at once. That of the environment is only looked through,
    since OpenSSL takes 50 ms for it: most crawls of a machine where the variable is set for all
    programs need no certificate. Raises ArgumentError, and TypeError.
    """
    if cacert is not None:
        check_path("cacert", cacert)
        believing = partial(_believing, "cacert", os.fspath(cacert), None)
        believing()
        return believing
    # A variable that is empty counts as unset.
    file, directories = os.environ.get(_FILE) or None, os.environ.get(_DIRECTORY) or None
    if directories is not None:
        _check_directories(directories, alone=file is None)
    elif file is None:
        return partial(ssl.create_default_context, cafile=certifi.where())
    if file is not None:
        _check_file(file)
    return partial(_believing, _FILE, file, directories)


def _check_file(path: str) -> None:
    """Raise ArgumentError unless a file has certificates, all of them whole."""
    try:
        found = _certificates(Path(path).read_bytes())
    except OSError as error:
        raise _no_certificates(_FILE, path, error.strerror or str(error)) from None
    if not (found and all(map(_is_whole, found))):
        raise _damaged(_FILE, path)


def _is_whole(text: bytes) -> bool:
    """Whether base64 stands for a sequence of DER with all its bytes (X.690, 8.1.3)."""
    try:
        der = binascii.a2b_base64(text)
    except binascii.Error:
        return False
    if len(der) < 2 or der[0] != _SEQUENCE:
        return False
    if der[1] < _LONG:
        return len(der) >= 2 + der[1]
    start = 2 + der[1] - _LONG
    return len(der) >= start + int.from_bytes(der[2:start])


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
        raise _damaged(name, file) from None
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


def _damaged(name: str, file: str | None) -> ArgumentError:
    return _no_certificates(name, file, "it has none, or one that is damaged")


Place: TypeAlias = str | Path
ClientCert: TypeAlias = Place | tuple[Place, Place] | tuple[Place, Place, str]
"""A file, or two: of the certificate and of its key; with the password of the key, if it has one.

The files are in PEM. The certificates of the authorities between this one and the root follow it.
"""

_NAME = "client_cert"
_WANTED = "the path of a file, or (file, file of the key), or these with the password of the key"
# OpenSSL's reasons for a key that is that of another certificate.
_OTHER_KEY = ("KEY_VALUES_MISMATCH", "KEY_TYPE_MISMATCH", "NO_CERTIFICATE_ASSIGNED")


class _EncryptedError(Exception):
    """The key has a password, and none is given."""


def check_client_cert(given: object) -> None:
    """Raise TypeError unless `given` names files; there is no password in its message."""
    _parts(given)


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
        raise _error(_why(error, certificate, key, password)) from None
    except OSError as error:
        # OpenSSL reads the certificate first, and does not say which file it is.
        place = key if os.path.isfile(certificate) and _is_readable(certificate) else certificate
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


def _why(error: ssl.SSLError, certificate: str, key: str, password: str | None) -> str:
    reason = getattr(error, "reason", None)
    if reason in _OTHER_KEY:
        return f"the key in {key!r} is not that of the certificate in {certificate!r}"
    if reason is not None:
        return f"OpenSSL refuses {certificate!r}: {reason.replace('_', ' ').lower()}"
    if not _has_certificate(certificate):
        return f"{certificate!r} has no certificate in PEM, or a damaged one"
    if password is not None:
        return f"the password of the key in {key!r} is wrong, or the key is damaged"
    return f"{key!r} has no private key in PEM, or a damaged one"


def _has_certificate(path: str) -> bool:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        context.load_verify_locations(path)
    except (OSError, ValueError):
        return False
    return True


def _is_readable(path: str) -> bool:
    return os.access(path, os.R_OK)


def _error(why: str) -> ArgumentError:
    return ArgumentError(_NAME, f": {why}")
