"""The certificate of the client: its files, and the errors of those that cannot be used."""

from __future__ import annotations

import os
import ssl
from pathlib import Path
from typing import TypeAlias

from trio_crawler.arguments import ArgumentError

Place: TypeAlias = str | Path
ClientCert: TypeAlias = Place | tuple[Place, Place] | tuple[Place, Place, str]
"""A file, or two: of the certificate and of its key; with the password of the key, if it has one.

The files are in PEM. The certificates of the authorities between this one and the root follow it.
"""

_NAME = "client_cert"
_WANTED = "the path of a file, or (file, file of the key), or these with the password of the key"
# OpenSSL's reasons for a key that is that of another certificate.
_OTHER_KEY = ("KEY_VALUES_MISMATCH", "KEY_TYPE_MISMATCH", "NO_CERTIFICATE_ASSIGNED")

_HANDSHAKE, _CERTIFICATE_REQUEST = b"\x16", 13


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


def is_requested(heard: bytes) -> bool:
    """Whether the first bytes from a server have a CertificateRequest (RFC 5246, 7.4.4).

    TLS 1.3 encrypts it, and has an alert of its own for a certificate that is missing.
    """
    messages = b""
    at = 0
    while heard[at : at + 1] == _HANDSHAKE:
        length = int.from_bytes(heard[at + 3 : at + 5])
        messages += heard[at + 5 : at + 5 + length]
        at += 5 + length
    at = 0
    while at < len(messages):
        if messages[at] == _CERTIFICATE_REQUEST:
            return True
        at += 4 + int.from_bytes(messages[at + 1 : at + 4])
    return False


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
