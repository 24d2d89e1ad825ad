"""Errors: the fault that ends a fetch, and what errors of sockets and of TLS mean."""

from __future__ import annotations

import errno
import os
import socket
import ssl
from collections.abc import Iterable, Iterator
from dataclasses import replace
from types import ModuleType

from trio_crawler.model import Fault, Phase, Reason
from trio_crawler.net.progress import Progress

OUT_OF_SOCKETS = "out of file descriptors: use fewer workers, or raise `ulimit -n`"


def _numbers(module: ModuleType, *names: str) -> tuple[int, ...]:
    """Return those of these constants that this platform has."""
    return tuple(getattr(module, name) for name in names if hasattr(module, name))


_NO_SOCKETS = _numbers(errno, "EMFILE", "ENFILE")
_UNREACHABLE = _numbers(
    errno,
    *("EHOSTUNREACH", "ENETUNREACH", "EHOSTDOWN", "ENETDOWN"),
    *("EADDRNOTAVAIL", "EAFNOSUPPORT", "ENONET"),
)
# Firewalls and routers cause these, also distant ones: an ICMPv6 "administratively prohibited"
# arrives as EACCES (RFC 4443, 3.1), a failed source route as EOPNOTSUPP. Files cause them too.
_PROHIBITED = _numbers(
    errno,
    *("EACCES", "EPERM", "EINVAL", "EMSGSIZE", "ENOPROTOOPT", "EOPNOTSUPP", "EPROTO"),
)
# Ordered by how much they explain: of several addresses that failed, the first reason here counts.
_CONNECTING = {
    **dict.fromkeys(_NO_SOCKETS, Reason.NO_SOCKETS),
    **dict.fromkeys(_numbers(errno, "ECONNREFUSED"), Reason.CONNECTION_REFUSED),
    **dict.fromkeys(_numbers(errno, "ECONNRESET", "ECONNABORTED", "EPIPE"), Reason.RESET),
    **dict.fromkeys(_numbers(errno, "ETIMEDOUT"), Reason.CONNECT_TIMEOUT),
    **dict.fromkeys((*_UNREACHABLE, *_PROHIBITED), Reason.UNREACHABLE),
}
_NO_SUCH_NAME = _numbers(socket, "EAI_NONAME", "EAI_NODATA", "EAI_FAIL")
_EXPIRED = 10  # X509_V_ERR_CERT_HAS_EXPIRED
# The reason that OpenSSL gives when the first bytes are no record of TLS.
_NO_RECORD = "WRONG_VERSION_NUMBER"


class FetchError(Exception):
    """The fault that ends a fetch; it never leaves `net`."""

    def __init__(self, reason: Reason, detail: str, phase: Phase | None = None) -> None:
        super().__init__(detail)
        self.fault = Fault(reason, detail, phase)


def socket_fault(error: OSError, progress: Progress) -> Fault:
    """Return the fault of any error at a socket of the wire."""
    server, phase = progress.server, progress.phase
    if fault := tls_fault(error, server, progress.received):
        return replace(fault, phase=phase)
    if error.errno in _NO_SOCKETS:
        return Fault(Reason.NO_SOCKETS, OUT_OF_SOCKETS, phase)
    if phase in (Phase.RESOLVE, Phase.CONNECT):
        why = os.strerror(error.errno) if error.errno else str(error)
        return Fault(Reason.UNREACHABLE, f"{server} cannot be reached: {one_line(why)}", phase)
    return Fault(Reason.RESET, connection_lost(server, progress.received), phase)


def name_fault(error: OSError, server: str) -> Fault:
    """Return the fault of a failed lookup of the name of `server`."""
    if not isinstance(error, socket.gaierror):
        if error.errno in _NO_SOCKETS:
            return Fault(Reason.NO_SOCKETS, OUT_OF_SOCKETS)
    elif error.errno in _NO_SUCH_NAME:
        return Fault(Reason.DNS, f"the name of {server} is not known")
    why = error.strerror or (os.strerror(error.errno) if error.errno else "unknown error")
    return Fault(Reason.DNS, f"the name of {server} cannot be looked up: {one_line(why)}")


def connect_fault(
    errors: Iterable[BaseException], server: str, received: int | None = None
) -> Fault | None:
    """Return the fault of the error that explains most; None if none is one of the network."""
    numbers = [error.errno for error in errors if isinstance(error, OSError) and error.errno]
    for number, reason in _CONNECTING.items():
        if number in numbers:
            return Fault(reason, _sentence(reason, number, server, received))
    return None


def may_be_a_file(error: Exception) -> bool:
    """Whether an error has a number that files cause as well as the network."""
    return isinstance(error, OSError) and error.errno in _PROHIBITED


def tls_fault(error: Exception, server: str, received: int | None) -> Fault | None:
    """Return the fault of an error of TLS, or of one that an error of TLS has caused."""
    for link in chain(error):
        if isinstance(link, ssl.SSLEOFError | ssl.SSLZeroReturnError):
            return Fault(Reason.RESET, f"{server} closed the connection in the middle of TLS")
        if isinstance(link, ssl.SSLCertVerificationError):
            return Fault(Reason.TLS, _certificate(link, server))
        if isinstance(link, ssl.SSLError):
            # Only OpenSSL's own errors have a reason; those made in Python have not.
            why = getattr(link, "reason", None) or link.strerror or "unknown error"
            if why == _NO_RECORD and received is None:
                return Fault(Reason.TLS, f"{server} does not speak TLS on this port")
            why = why.replace("_", " ").lower()
            return Fault(Reason.TLS, f"no secure connection to {server}: {one_line(why)}")
    return None


def _certificate(error: ssl.SSLCertVerificationError, server: str) -> str:
    if getattr(error, "verify_code", None) == _EXPIRED:
        return f"the certificate of {server} has expired"
    why = getattr(error, "verify_message", None) or str(error)
    return f"the certificate of {server} cannot be trusted: {one_line(why)}"


def _sentence(reason: Reason, number: int, server: str, received: int | None) -> str:
    if reason is Reason.NO_SOCKETS:
        return OUT_OF_SOCKETS
    if reason is Reason.CONNECTION_REFUSED:
        return f"{server} refused the connection"
    if reason is Reason.RESET:
        return connection_lost(server, received)
    if reason is Reason.CONNECT_TIMEOUT:
        return f"{server} did not accept a connection in time"
    return f"{server} cannot be reached: {os.strerror(number)}"


def connection_lost(server: str, received: int | None) -> str:
    """Describe a lost connection: before the response if `received` is None, else in the body."""
    if received is None:
        return f"{server} closed the connection before it had answered"
    return f"{server} broke the connection after {received} bytes of the body"


def chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an exception and all that caused it, the nearest first; groups are opened.

    httpcore raises `from None`, which hides the cause but leaves it as the context.
    """
    links: list[BaseException] = [error]
    for link in links:
        yield link
        inside = link.exceptions if isinstance(link, BaseExceptionGroup) else ()
        for origin in (link.__cause__, link.__context__, *inside):
            if origin is not None and not any(origin is known for known in links):
                links.append(origin)


def one_line(text: str) -> str:
    """Return text of at most 160 characters, control characters of a server escaped."""
    printable = text if text.isprintable() else ascii(text)[1:-1]
    return printable if len(printable) <= 160 else printable[:157] + "..."
