"""Faults: what the exceptions of httpx, ssl and the sockets say, in one sentence each."""

from __future__ import annotations

import errno
import os
import socket
import ssl
from collections.abc import Iterable, Iterator
from dataclasses import replace

import httpx

from trio_crawler.model import Fault, Phase, Reason
from trio_crawler.net.progress import Progress

OUT_OF_SOCKETS = "out of file descriptors: use fewer workers, or raise `ulimit -n`"

_NO_SOCKETS = (errno.EMFILE, errno.ENFILE)
_UNREACHABLE = (
    errno.EHOSTUNREACH,
    errno.ENETUNREACH,
    errno.EHOSTDOWN,
    errno.ENETDOWN,
    errno.EADDRNOTAVAIL,
    errno.EAFNOSUPPORT,
    getattr(errno, "ENONET", errno.EHOSTUNREACH),
)
# Firewalls and routes make these, also those of others: an ICMPv6 "administratively prohibited"
# arrives as EACCES (RFC 4443, 3.1), a source route that failed as EOPNOTSUPP. Files make them too.
_PROHIBITED = (
    errno.EACCES,
    errno.EPERM,
    errno.EINVAL,
    errno.EMSGSIZE,
    errno.ENOPROTOOPT,
    errno.EOPNOTSUPP,
    errno.EPROTO,
)
# In the order of what they tell: of several addresses that failed, the most telling one counts.
_CONNECTING = {
    **dict.fromkeys(_NO_SOCKETS, Reason.NO_SOCKETS),
    errno.ECONNREFUSED: Reason.REFUSED,
    errno.ECONNRESET: Reason.RESET,
    errno.ECONNABORTED: Reason.RESET,
    errno.EPIPE: Reason.RESET,
    errno.ETIMEDOUT: Reason.CONNECT_TIMEOUT,
    **dict.fromkeys((*_UNREACHABLE, *_PROHIBITED), Reason.UNREACHABLE),
}
_NO_SUCH_NAME = (socket.EAI_NONAME, socket.EAI_NODATA, socket.EAI_FAIL)
_ENDED = ("disconnected", "ConnectionTerminated", "ConnectionState.CLOSED")
_EXPIRED = 10  # X509_V_ERR_CERT_HAS_EXPIRED
# What OpenSSL says when the first bytes are no record of TLS.
_NO_RECORD = "WRONG_VERSION_NUMBER"


class Faulty(Exception):
    """Carry the fault that ends a fetch; it never leaves `net`."""

    def __init__(self, reason: Reason, detail: str, phase: Phase | None = None) -> None:
        super().__init__(detail)
        self.fault = Fault(reason, detail, phase)


def fault_of(error: httpx.TransportError | OSError, peer: str, received: int | None) -> Fault:
    """Say what an exception means for a URL on `peer` (`host` or `host:port`).

    `received` counts the bytes of the body that had come, None when no answer had come.

    Raises the exception itself when it is none of the network: a missing file, for example.
    """
    if isinstance(error, httpx.ConnectTimeout):
        return Fault(Reason.CONNECT_TIMEOUT, f"{peer} did not accept a connection in time")
    if isinstance(error, httpx.TimeoutException):
        return Fault(Reason.TIMEOUT, f"{peer} kept the HTTP client waiting past its own timeout")
    if isinstance(error, httpx.ProtocolError):
        return _protocol(error, peer, received)
    if isinstance(error, httpx.UnsupportedProtocol):
        return Fault(Reason.BAD_URL, clip(str(error)))
    fault = _tls(error, peer, received) or _dns(error, peer)
    if fault:
        return fault
    if isinstance(error, httpx.NetworkError) and not isinstance(error, httpx.ConnectError):
        return Fault(Reason.RESET, broken(peer, received))
    return _connecting(error, peer, received)


def socket_fault(error: OSError, progress: Progress) -> Fault:
    """Say what went wrong at a socket of our own, whatever it was."""
    peer, phase = progress.peer, progress.phase
    if fault := _tls(error, peer, progress.received):
        return replace(fault, phase=phase)
    if error.errno in _NO_SOCKETS:
        return Fault(Reason.NO_SOCKETS, OUT_OF_SOCKETS, phase)
    if phase in (Phase.RESOLVE, Phase.CONNECT):
        why = os.strerror(error.errno) if error.errno else str(error)
        return Fault(Reason.UNREACHABLE, f"{peer} cannot be reached: {clip(why)}", phase)
    return Fault(Reason.RESET, broken(peer, progress.received), phase)


def name_fault(error: OSError, peer: str) -> Fault:
    """Say why the name of `peer` could not be looked up."""
    if not isinstance(error, socket.gaierror):
        if error.errno in _NO_SOCKETS:
            return Fault(Reason.NO_SOCKETS, OUT_OF_SOCKETS)
    elif error.errno in _NO_SUCH_NAME:
        return Fault(Reason.DNS, f"the name of {peer} is not known")
    why = error.strerror or (os.strerror(error.errno) if error.errno else "unknown error")
    return Fault(Reason.DNS, f"the name of {peer} cannot be looked up: {clip(why)}")


def connect_fault(
    errors: Iterable[BaseException], peer: str, received: int | None = None
) -> Fault | None:
    """Say what the most telling of several errors means; None if none is of the network."""
    numbers = [error.errno for error in errors if isinstance(error, OSError) and error.errno]
    for number, reason in _CONNECTING.items():
        if number in numbers:
            return Fault(reason, _sentence(reason, number, peer, received))
    return None


def _protocol(error: httpx.ProtocolError, peer: str, received: int | None) -> Fault:
    text = str(error)
    # The words are h11's, h2's and httpcore's; a test of each keeps them true.
    if received is not None and "peer closed connection" in text:
        return Fault(Reason.INCOMPLETE, f"the body was cut off after {received} bytes")
    # A server may end an HTTP/2 connection at any time (RFC 9113, 6.8), with requests under way:
    # nginx does so after 1,000.
    if any(words in text for words in _ENDED):
        return Fault(Reason.RESET, broken(peer, received))
    return Fault(Reason.BAD_REPLY, f"{peer} does not answer in valid HTTP: {clip(text)}")


def _tls(error: Exception, peer: str, received: int | None) -> Fault | None:
    for link in _chain(error):
        if isinstance(link, ssl.SSLEOFError | ssl.SSLZeroReturnError):
            return Fault(Reason.RESET, f"{peer} closed the connection in the middle of TLS")
        if isinstance(link, ssl.SSLCertVerificationError):
            return Fault(Reason.TLS, _certificate(link, peer))
        if isinstance(link, ssl.SSLError):
            # Only OpenSSL's own errors have a reason; those made in Python have not.
            what = getattr(link, "reason", None) or link.strerror or "unknown error"
            if what == _NO_RECORD and received is None:
                return Fault(Reason.TLS, f"{peer} does not speak TLS on this port")
            what = what.replace("_", " ").lower()
            return Fault(Reason.TLS, f"no secure connection to {peer}: {clip(what)}")
    return None


def _certificate(error: ssl.SSLCertVerificationError, peer: str) -> str:
    if getattr(error, "verify_code", None) == _EXPIRED:
        return f"the certificate of {peer} has expired"
    why = getattr(error, "verify_message", None) or str(error)
    return f"the certificate of {peer} cannot be trusted: {clip(why)}"


def _dns(error: Exception, peer: str) -> Fault | None:
    for link in _chain(error):
        if isinstance(link, socket.gaierror):
            return name_fault(link, peer)
    return None


def _connecting(error: httpx.TransportError | OSError, peer: str, received: int | None) -> Fault:
    may_be_a_file = isinstance(error, OSError) and error.errno in _PROHIBITED
    fault = None if may_be_a_file else connect_fault(_chain(error), peer, received)
    if fault:
        return fault
    if isinstance(error, OSError):
        if isinstance(error, ConnectionError):
            return Fault(Reason.RESET, broken(peer, received))
        if isinstance(error, TimeoutError):
            return Fault(Reason.CONNECT_TIMEOUT, f"{peer} did not accept a connection in time")
        raise error
    numbers = (link.errno for link in _chain(error) if isinstance(link, OSError) and link.errno)
    number = next(numbers, None)
    why = os.strerror(number) if number else str(error) or type(error).__name__
    return Fault(Reason.UNREACHABLE, f"{peer} cannot be reached: {clip(why)}")


def _sentence(reason: Reason, number: int, peer: str, received: int | None) -> str:
    if reason is Reason.NO_SOCKETS:
        return OUT_OF_SOCKETS
    if reason is Reason.REFUSED:
        return f"{peer} refused the connection"
    if reason is Reason.RESET:
        return broken(peer, received)
    if reason is Reason.CONNECT_TIMEOUT:
        return f"{peer} did not accept a connection in time"
    return f"{peer} cannot be reached: {os.strerror(number)}"


def broken(peer: str, received: int | None) -> str:
    """Say that a connection was lost, before the answer (None) or in the body."""
    if received is None:
        return f"{peer} closed the connection before it had answered"
    return f"{peer} broke the connection after {received} bytes of the body"


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Give an exception and all it came from, the nearest first, groups opened.

    httpcore raises `from None`, which hides the cause but leaves it as the context.
    """
    links: list[BaseException] = [error]
    for link in links:
        yield link
        inside = link.exceptions if isinstance(link, BaseExceptionGroup) else ()
        for origin in (link.__cause__, link.__context__, *inside):
            if origin is not None and not any(origin is known for known in links):
                links.append(origin)


def clip(text: str) -> str:
    """Keep what fits a line, without the control characters a server may have put in."""
    shown = text if text.isprintable() else ascii(text)[1:-1]
    return shown if len(shown) <= 160 else shown[:157] + "..."
