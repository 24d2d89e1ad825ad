"""Convert the exceptions of httpx, which hide those of sockets and of TLS, to faults."""

from __future__ import annotations

import os
import socket

import httpx

from trio_crawler.model import Fault, Reason
from trio_crawler.net.errors import (
    chain,
    connect_fault,
    connection_lost,
    may_be_a_file,
    name_fault,
    one_line,
    tls_fault,
)

# httpx has one exception for all violations of the protocol, so the text decides. The words come
# from h11, h2 and httpcore; there is a test of each.
_BODY_CUT_OFF = "peer closed connection"
_ENDED = ("disconnected", "ConnectionTerminated", "ConnectionState.CLOSED")


def fault_of(error: httpx.TransportError | OSError, server: str, received: int | None) -> Fault:
    """Return the fault for an error of a request to `server` (`host` or `host:port`).

    `received` is the number of bytes of the body that were received before the error, None if
    there was no response.

    Raises `error` itself if it is not due to the network (for example, to a missing file).
    """
    if isinstance(error, httpx.ConnectTimeout):
        return Fault(Reason.CONNECT_TIMEOUT, f"{server} did not accept a connection in time")
    if isinstance(error, httpx.TimeoutException):
        detail = f"{server} did not answer within the timeout of the HTTP client"
        return Fault(Reason.TIMEOUT, detail)
    if isinstance(error, httpx.ProtocolError):
        return _protocol_fault(error, server, received)
    if isinstance(error, httpx.UnsupportedProtocol):
        return Fault(Reason.BAD_URL, one_line(str(error)))
    fault = tls_fault(error, server, received) or _dns_fault(error, server)
    if fault:
        return fault
    if isinstance(error, httpx.NetworkError) and not isinstance(error, httpx.ConnectError):
        return Fault(Reason.RESET, connection_lost(server, received))
    return _connect_fault(error, server, received)


def _protocol_fault(error: httpx.ProtocolError, server: str, received: int | None) -> Fault:
    text = str(error)
    if received is not None and _BODY_CUT_OFF in text:
        return Fault(Reason.INCOMPLETE, f"the body was cut off after {received} bytes")
    # A server may end an HTTP/2 connection at any time (RFC 9113, 6.8), with requests in flight:
    # nginx does so after 1,000.
    if any(words in text for words in _ENDED):
        return Fault(Reason.RESET, connection_lost(server, received))
    return Fault(Reason.BAD_REPLY, f"{server} does not answer in valid HTTP: {one_line(text)}")


def _dns_fault(error: Exception, server: str) -> Fault | None:
    for link in chain(error):
        if isinstance(link, socket.gaierror):
            return name_fault(link, server)
    return None


def _connect_fault(
    error: httpx.TransportError | OSError, server: str, received: int | None
) -> Fault:
    fault = None if may_be_a_file(error) else connect_fault(chain(error), server, received)
    if fault:
        return fault
    if isinstance(error, OSError):
        if isinstance(error, ConnectionError):
            return Fault(Reason.RESET, connection_lost(server, received))
        if isinstance(error, TimeoutError):
            detail = f"{server} did not accept a connection in time"
            return Fault(Reason.CONNECT_TIMEOUT, detail)
        raise error
    numbers = (link.errno for link in chain(error) if isinstance(link, OSError) and link.errno)
    number = next(numbers, None)
    why = os.strerror(number) if number else str(error) or type(error).__name__
    return Fault(Reason.UNREACHABLE, f"{server} cannot be reached: {one_line(why)}")
