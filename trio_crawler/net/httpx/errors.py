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
from trio_crawler.net.httpx.http2_errors import http2_fault
from trio_crawler.net.progress import Progress

# httpx has one exception for all violations of the protocol, so the text decides. The words come
# from h11 and httpcore; there is a test of each.
_BODY_CUT_OFF = "peer closed connection"
_OF_LENGTH = re.compile(r"received (\d+) bytes, expected (\d+)")
_ENDED = "disconnected"
# How h11 shows bytes that it cannot read.
_BYTES = re.compile(r"""bytearray\(b(['"].*['"])\)""", re.DOTALL)
_TIMEOUTS = (
    (httpx.ConnectTimeout, "connect", Reason.CONNECT_TIMEOUT),
    (httpx.ReadTimeout, "read", Reason.TIMEOUT),
    (httpx.WriteTimeout, "write", Reason.TIMEOUT),
    # The server was not asked, so it is not to blame.
    (httpx.PoolTimeout, "pool", Reason.NO_SOCKETS),
)
_NO_SOCKET = "all its connections are in use: use fewer workers, or give it more (httpx.Limits)"


def fetch_error(error: httpx.TransportError | OSError, progress: Progress) -> FetchError:
    """Return the FetchError for an error of a request; see `fault_of`."""
    if isinstance(error.__cause__, FetchError):
        # The transport is a Wire, or a client over one.
        return error.__cause__
    fault = fault_of(error, _server(error, progress.server), progress.received)
    return FetchError(fault.reason, fault.detail, progress.phase)


def fault_of(error: httpx.TransportError | OSError, server: str, received: int | None) -> Fault:
    """Return the fault for an error of a request to `server` (`host` or `host:port`).

    `received` is the number of bytes of the body that were received before the error, None if
    there was no response.

    Raises `error` itself if it is not due to the network (for example, to a missing file).
    """
    if isinstance(error, httpx.TimeoutException):
        return _timeout(error, server, received)
    if isinstance(error, httpx.ProtocolError):
        return _protocol_fault(error, server, received)
    if isinstance(error, httpx.UnsupportedProtocol):
        return Fault(Reason.BAD_URL, one_line(str(error)))
    if isinstance(error, httpx.ProxyError):
        why = f"the proxy of the HTTP client did not connect to {server}: {one_line(str(error))}"
        # httpcore's text begins with the status of the proxy.
        refused = re.match("4(?!04|29)[0-9][0-9] ", str(error))
        return Fault(Reason.PROXY if refused else Reason.UNREACHABLE, why)
    fault = tls_fault(error, server, received) or _dns_fault(error, server)
    if fault:
        return fault
    if isinstance(error, httpx.NetworkError) and not isinstance(error, httpx.ConnectError):
        return Fault(Reason.RESET, connection_lost(server, received))
    return _connect_fault(error, server, received)


def _server(error: httpx.TransportError | OSError, server: str) -> str:
    """Return the server of the request that failed.

    A hook or an authentication of the client may ask another server, for a token for example.
    """
    request = _request(error)
    if request is None:
        return server
    asked = request.headers.get("host") or request.url.netloc.decode("ascii")
    return asked if asked.isprintable() else server


def _request(error: Exception) -> httpx.Request | None:
    try:
        return error.request if isinstance(error, httpx.RequestError) else None
    except RuntimeError:  # a transport has raised it, without a client
        return None


def _timeout(error: httpx.TimeoutException, server: str, received: int | None) -> Fault:
    """Return the fault for a timeout of the client, which is shorter than that of the fetch."""
    kinds = ((name, reason) for kind, name, reason in _TIMEOUTS if isinstance(error, kind))
    name, reason = next(kinds, ("", Reason.TIMEOUT))
    request = _request(error)
    limits = None if request is None else request.extensions.get("timeout")
    seconds = limits.get(name) if isinstance(limits, dict) else None
    limit = f"{name} timeout".strip()
    limit += f" of {seconds:g} seconds" if isinstance(seconds, int | float) else ""
    if name == "connect":
        state = f"{server} had not accepted a connection"
    elif name == "write":
        state = f"the request had not been sent to {server}"
    elif name == "pool":
        state = f"{server} was not asked, since {_NO_SOCKET}"
    elif received is None:
        state = f"{server} had not answered"
    else:
        state = f"no more than {received} bytes of the body had come from {server}"
    return Fault(reason, f"the HTTP client's own {limit} was over: {state}")


def _protocol_fault(error: httpx.ProtocolError, server: str, received: int | None) -> Fault:
    if fault := http2_fault(chain(error), server, received):
        return fault
    text = str(error)
    if received is not None and _BODY_CUT_OFF in text:
        if found := _OF_LENGTH.search(text):
            return Fault(
                Reason.INCOMPLETE, "{} of {} bytes of the body came".format(*found.groups())
            )
        return Fault(Reason.INCOMPLETE, f"the body was cut off after {received} bytes")
    if _ENDED in text or _BODY_CUT_OFF in text:
        return Fault(Reason.RESET, connection_lost(server, received))
    why = one_line(_BYTES.sub(r"\1", text))
    return Fault(Reason.BAD_REPLY, f"{server} does not answer in valid HTTP: {why}")


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
    why = os.strerror(number) if number else str(error)
    return Fault(Reason.UNREACHABLE, f"{server} cannot be reached: {one_line(why)}")
