"""Convert the exceptions of httpx, which hide those of sockets and of TLS, to faults."""

from __future__ import annotations

import os
import re
import socket

import httpx

from trio_crawler.model import Fault, Reason
from trio_crawler.net.errors import (
    FetchError,
    chain,
    connect_fault,
    connection_lost,
    may_be_a_file,
    name_fault,
    one_line,
    tls_fault,
)
from trio_crawler.net.progress import Progress

# httpx has one exception for all violations of the protocol, so the text decides. The words come
# from h11 and httpcore; there is a test of each.
_BODY_CUT_OFF = "peer closed connection"
_OF_LENGTH = re.compile(r"received (\d+) bytes, expected (\d+)")
_ENDED = "disconnected"
# How h11 shows bytes that it cannot read.
_BYTES = re.compile(r"""bytearray\(b(['"].*['"])\)""", re.DOTALL)
_NO_SOCKET = "all its connections are in use: use fewer workers, or give it more (httpx.Limits)"


def fetch_error(error: httpx.TransportError | OSError, progress: Progress) -> FetchError:
    """Return the FetchError for an error of a request.

    Raises `error` itself if it is not due to the network (for example, to a missing file).
    """
    if isinstance(error.__cause__, FetchError):
        # The transport is a Wire, or a client over one.
        return error.__cause__
    fault = _fault(error, progress)
    return FetchError(fault.reason, fault.detail, progress.phase)


def _fault(error: httpx.TransportError | OSError, progress: Progress) -> Fault:
    server, received = progress.server, progress.received
    match error:
        case httpx.PoolTimeout():
            # The server was not asked, so it is not to blame.
            why = f"the HTTP client's own timeout was over: {server} was not asked, since"
            return Fault(Reason.NO_SOCKETS, f"{why} {_NO_SOCKET}")
        case httpx.TimeoutException():
            connecting = isinstance(error, httpx.ConnectTimeout)
            reason = Reason.CONNECT_TIMEOUT if connecting else Reason.TIMEOUT
            return Fault(reason, f"the HTTP client's own timeout was over while {progress}")
        case httpx.ProtocolError():
            return _protocol_fault(error, server, received)
        case httpx.UnsupportedProtocol():
            return Fault(Reason.BAD_URL, one_line(str(error)))
        case httpx.ProxyError():
            why = f"the proxy of the HTTP client did not connect to {server}: "
            # httpcore's text begins with the status of the proxy.
            refused = re.match("4(?!04|29)[0-9][0-9] ", str(error))
            return Fault(
                Reason.PROXY if refused else Reason.UNREACHABLE, why + one_line(str(error))
            )
    if fault := tls_fault(error, server, received):
        return fault
    for link in chain(error):
        if isinstance(link, socket.gaierror):
            return name_fault(link, server)
    if isinstance(error, httpx.NetworkError) and not isinstance(error, httpx.ConnectError):
        return Fault(Reason.RESET, connection_lost(server, received))
    return _connect_fault(error, server, received)


def _protocol_fault(error: httpx.ProtocolError, server: str, received: int | None) -> Fault:
    text = str(error)
    if received is not None and _BODY_CUT_OFF in text:
        if found := _OF_LENGTH.search(text):
            came, length = found.groups()
            return Fault(Reason.INCOMPLETE, f"{came} of {length} bytes of the body came")
        # What a hook or an authentication reads is not counted.
        after = f" after {received} bytes" if received else ""
        return Fault(Reason.INCOMPLETE, f"the body was cut off{after}")
    # httpcore raises its exceptions with an event or an exception of h2, which is installed only
    # for HTTP/2, as the argument.
    inside = (part for link in chain(error) for part in link.args)
    if any(type(part).__module__.startswith("h2.") for part in inside):
        return Fault(Reason.RESET, connection_lost(server, received))
    if _ENDED in text or _BODY_CUT_OFF in text:
        return Fault(Reason.RESET, connection_lost(server, received))
    why = one_line(_BYTES.sub(r"\1", text))
    return Fault(Reason.BAD_REPLY, f"{server} does not answer in valid HTTP: {why}")


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
    why = os.strerror(number) if number else str(error)
    return Fault(Reason.UNREACHABLE, f"{server} cannot be reached: {one_line(why)}")
