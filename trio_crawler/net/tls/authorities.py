"""Authorities: the certificates that a server is verified against."""

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
