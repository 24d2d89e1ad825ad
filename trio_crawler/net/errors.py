"""Convert the errors of sockets, of TLS and of name lookups to faults."""

from __future__ import annotations

import errno
import os
import socket
import ssl
from collections.abc import Iterable, Iterator
from types import ModuleType

from trio_crawler.model import Fault, Phase, Reason
from trio_crawler.net.turn import Progress

OUT_OF_SOCKETS = "out of file descriptors: use fewer workers, or raise `ulimit -n`"

_EXPIRED = 10  # X509_V_ERR_CERT_HAS_EXPIRED

_SELF_SIGNED = 18  # X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT

# The sentences for X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN,
# X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY and X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE.
_UNKNOWN_AUTHORITY = {
    19: "the server names an authority that is not known",
    20: "its authority is not known, or the server leaves out a certificate in between",
    21: "its authority is not known, and the server names none",
}

# OpenSSL's reason if the first bytes are not a TLS record.
_NO_RECORD = "WRONG_VERSION_NUMBER"

_NO_VERSION = (
    "{server} and the crawler have no version of TLS in common; it may be too old for TLS 1.2"
)

_WANTED = "{server} wants a certificate of the client; name one with --client-cert"

_NOT_ACCEPTED = (
    "{server} does not accept the certificate of the client, or wants one; "
    "name another with --client-cert"
)

# OpenSSL's reasons: the alerts of a server (RFC 8446, 6.2), and what it finds out itself.
_ALERTS = {
    "TLSV1_UNRECOGNIZED_NAME": "{server} has no site of this name",
    "TLSV1_ALERT_PROTOCOL_VERSION": _NO_VERSION,
    "UNSUPPORTED_PROTOCOL": _NO_VERSION,
    "SSLV3_ALERT_HANDSHAKE_FAILURE": (
        "{server} refuses the handshake of TLS; it may want other ciphers, "
        "or a certificate of the client (--client-cert)"
    ),
    "TLSV13_ALERT_CERTIFICATE_REQUIRED": _WANTED,
    "SSLV3_ALERT_BAD_CERTIFICATE": _NOT_ACCEPTED,
    "SSLV3_ALERT_UNSUPPORTED_CERTIFICATE": _NOT_ACCEPTED,
    "SSLV3_ALERT_CERTIFICATE_REVOKED": _NOT_ACCEPTED,
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": _NOT_ACCEPTED,
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": _NOT_ACCEPTED,
    "TLSV1_ALERT_UNKNOWN_CA": (
        "{server} does not know the authority of the client's certificate; "
        "name another with --client-cert"
    ),
    "TLSV1_ALERT_INTERNAL_ERROR": "{server} ends the handshake of TLS with an error of its own",
}


def _numbers(module: ModuleType, *names: str) -> tuple[int, ...]:
    """Return the values of these constants, without those that this platform lacks."""
    return tuple(getattr(module, name) for name in names if hasattr(module, name))


_NO_SOCKETS = _numbers(errno, "EMFILE", "ENFILE")
_UNREACHABLE = _numbers(
    errno,
    *("EHOSTUNREACH", "ENETUNREACH", "EHOSTDOWN", "ENETDOWN"),
    *("EADDRNOTAVAIL", "EAFNOSUPPORT", "ENONET"),
)
# Firewalls and routers cause these errors, also remote ones: an ICMPv6 "administratively
# prohibited" is reported as EACCES (RFC 4443, 3.1), a failed source route as EOPNOTSUPP.
_PROHIBITED = _numbers(
    errno,
    *("EACCES", "EPERM", "EINVAL", "EMSGSIZE", "ENOPROTOOPT", "EOPNOTSUPP", "EPROTO"),
)
# The most useful reason first: if several addresses fail, the first reason in this order counts.
_CONNECTING = {
    **dict.fromkeys(_NO_SOCKETS, Reason.NO_SOCKETS),
    **dict.fromkeys(_numbers(errno, "ECONNREFUSED"), Reason.CONNECTION_REFUSED),
    **dict.fromkeys(_numbers(errno, "ECONNRESET", "ECONNABORTED", "EPIPE"), Reason.RESET),
    **dict.fromkeys(_numbers(errno, "ETIMEDOUT"), Reason.CONNECT_TIMEOUT),
    **dict.fromkeys((*_UNREACHABLE, *_PROHIBITED), Reason.UNREACHABLE),
}
_SENTENCES = {
    Reason.NO_SOCKETS: OUT_OF_SOCKETS,
    Reason.CONNECTION_REFUSED: "{server} refused the connection",
    Reason.CONNECT_TIMEOUT: "{server} did not accept a connection in time",
    Reason.UNREACHABLE: "{server} cannot be reached: {why}",
}
_NO_SUCH_NAME = _numbers(socket, "EAI_NONAME", "EAI_NODATA")


class FetchError(Exception):
    """The exception for a fault that ends a fetch; it never leaves `net`."""

    def __init__(self, reason: Reason, detail: str, phase: Phase | None = None) -> None:
        super().__init__(detail)
        self.fault = Fault(reason, detail, phase)


class AskAgain(FetchError):
    """A fault that is not due to its own request, which may be sent again (RFC 9113, 8.7).

    The server did not process it, or lost it with others on the same connection. With `http1` the
    server wants it by HTTP/1.1.
    """

    def __init__(self, fault: Fault, *, http1: bool = False) -> None:
        super().__init__(fault.reason, fault.detail, fault.phase)
        self.http1 = http1


def bad_reply(detail: str, phase: Phase = Phase.WAIT) -> FetchError:
    """Return the error of a response that is not valid HTTP, by default of its head."""
    return FetchError(Reason.BAD_REPLY, detail, phase)


def incomplete(received: int, length: int | None) -> FetchError:
    """Return the error of a body that ends before its length, or another sign, says so."""
    came = f"the body was cut off after {received} bytes"
    if length is not None:
        came = f"{received} of {length} bytes of the body came"
    return FetchError(Reason.INCOMPLETE, came, Phase.READ)


def no_answer(server: str, phase: Phase = Phase.WAIT) -> FetchError:
    """Return the error of a connection that is lost before the head of the response."""
    return FetchError(Reason.RESET, connection_lost(server, None), phase)


def socket_error(error: OSError, progress: Progress) -> FetchError:
    """Return the FetchError for any error of a socket of the wire."""
    server, phase = progress.server, progress.phase
    if fault := tls_fault(error, server, progress.received):
        # With TLS 1.3 the client has done its part of the handshake before the server refuses it.
        late = fault.reason is Reason.TLS and phase in (Phase.SEND, Phase.WAIT)
        return FetchError(fault.reason, fault.detail, Phase.TLS if late else phase)
    if error.errno in _NO_SOCKETS:
        return FetchError(Reason.NO_SOCKETS, OUT_OF_SOCKETS, phase)
    if phase in (Phase.RESOLVE, Phase.CONNECT):
        why = os.strerror(error.errno) if error.errno else str(error)
        told = f"{server} cannot be reached: {one_line(why)}"
        return FetchError(Reason.UNREACHABLE, told, phase)
    return FetchError(Reason.RESET, connection_lost(server, progress.received), phase)


def name_fault(error: OSError, server: str) -> Fault:
    """Return the fault for a failed lookup of the name of `server`."""
    if not isinstance(error, socket.gaierror):
        if error.errno in _NO_SOCKETS:
            return Fault(Reason.NO_SOCKETS, OUT_OF_SOCKETS)
    elif error.errno in _NO_SUCH_NAME:
        return Fault(Reason.NO_SUCH_HOST, f"the name of {server} is not known")
    why = error.strerror or (os.strerror(error.errno) if error.errno else "unknown error")
    return Fault(Reason.DNS, f"the name of {server} cannot be looked up: {one_line(why)}")


def connect_fault(
    errors: Iterable[BaseException], server: str, received: int | None = None
) -> Fault | None:
    """Return the fault for the most useful of some errors; None if none is a network error."""
    numbers = [error.errno for error in errors if isinstance(error, OSError) and error.errno]
    for number, reason in _CONNECTING.items():
        if number in numbers:
            if reason is Reason.RESET:
                return Fault(reason, connection_lost(server, received))
            why = os.strerror(number)
            return Fault(reason, _SENTENCES[reason].format(server=server, why=why))
    return None


def tls_fault(error: Exception, server: str, received: int | None) -> Fault | None:
    """Return the fault for an error that is, or was caused by, an error of TLS; else None."""
    for link in chain(error):
        if isinstance(link, ssl.SSLEOFError | ssl.SSLZeroReturnError):
            return Fault(Reason.RESET, f"{server} closed the connection in the middle of TLS")
        if isinstance(link, ssl.SSLCertVerificationError):
            return Fault(Reason.TLS, _certificate(link, server))
        if isinstance(link, ssl.SSLError):
            # Only the errors of OpenSSL itself have a reason.
            why = getattr(link, "reason", None) or link.strerror or "unknown error"
            if speaks_no_tls(link) and received is None:
                return Fault(Reason.TLS, f"{server} does not speak TLS on this port")
            if (sentence := _ALERTS.get(why)) is not None:
                return Fault(Reason.TLS, sentence.format(server=server))
            why = why.replace("_", " ").lower()
            return Fault(Reason.TLS, f"no secure connection to {server}: {one_line(why)}")
    return None


def speaks_no_tls(error: OSError) -> bool:
    """Whether the first bytes from a server were not those of TLS."""
    return isinstance(error, ssl.SSLError) and getattr(error, "reason", None) == _NO_RECORD


def _certificate(error: ssl.SSLCertVerificationError, server: str) -> str:
    code = getattr(error, "verify_code", None)
    if code == _EXPIRED:
        return f"the certificate of {server} has expired"
    refused = f"the certificate of {server} cannot be trusted"
    if code == _SELF_SIGNED:
        return f"{refused}: it is self-signed; name it with --cacert"
    if code in _UNKNOWN_AUTHORITY:
        return f"{refused}: {_UNKNOWN_AUTHORITY[code]}; name its authority with --cacert"
    why = getattr(error, "verify_message", None) or str(error)
    return f"{refused}: {one_line(why)}"


def connection_lost(server: str, received: int | None) -> str:
    """Return a sentence about a lost connection.

    It was lost before the response if `received` is None, else after `received` bytes of the body.
    """
    if received is None:
        return f"{server} closed the connection before it had answered"
    return f"{server} broke the connection after {received} bytes of the body"


def chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an exception and its causes, the nearest first, with the members of groups.

    Contexts count as causes: httpcore raises `from None`, which hides the cause but keeps it as
    the context.
    """
    links: list[BaseException] = [error]
    for link in links:
        yield link
        inside = link.exceptions if isinstance(link, BaseExceptionGroup) else ()
        for origin in (link.__cause__, link.__context__, *inside):
            if origin is not None and not any(origin is known for known in links):
                links.append(origin)


def one_line(text: str) -> str:
    """Return at most 160 characters of a text from a server, with control characters escaped.

    A text without any is replaced, so that no sentence ends before its reason.
    """
    text = text.strip() or "no reason is given"
    printable = text if text.isprintable() else ascii(text)[1:-1]
    return printable if len(printable) <= 160 else printable[:157] + "..."
