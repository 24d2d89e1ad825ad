"""Convert the requests, responses and exceptions of httpx for the wire."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from math import inf

import httpx
import trio

from trio_crawler.model import Fault, Phase, Reason
from trio_crawler.net.errors import FetchError
from trio_crawler.net.http1.connection import DEFAULT_PORTS, Connection, Origin
from trio_crawler.net.http1.message import Head
from trio_crawler.net.progress import Progress
from trio_crawler.net.request import has_control, is_token

_ERRORS: dict[Reason, type[httpx.TransportError]] = {
    Reason.CONNECT_TIMEOUT: httpx.ConnectTimeout,
    Reason.PROXY: httpx.ProxyError,
    Reason.RESET: httpx.ReadError,
    Reason.TOO_LARGE: httpx.ReadError,
    Reason.BAD_REPLY: httpx.RemoteProtocolError,
    Reason.INCOMPLETE: httpx.RemoteProtocolError,
}
# The characters that may be in a request target (RFC 9112, 3.2).
_is_target = re.compile(rb"[\x21-\x7e]+").fullmatch
_CONNECTING = (Phase.RESOLVE, Phase.CONNECT, Phase.TLS)


class BodyStream(httpx.AsyncByteStream):
    """The body of a response; its connection is released at the end, or by `aclose`."""

    def __init__(
        self,
        connection: Connection,
        release: Callable[[Connection], None],
        progress: Progress,
        timeout: float,
    ) -> None:
        self._connection: Connection | None = connection
        self._release = release
        self._progress = progress
        self._timeout = timeout

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        if self._connection is None:
            raise StopAsyncIteration
        piece = b""
        try:
            with translated(self._progress, self._timeout):
                piece = await self._connection.read()
        finally:
            if not piece:
                self._end()
        if not piece:
            raise StopAsyncIteration
        return piece

    async def aclose(self) -> None:
        """Release the connection; it is closed if the body was not read to its end."""
        self._end()

    def _end(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            self._release(connection)


@contextmanager
def translated(progress: Progress, seconds: float = inf) -> Iterator[None]:
    """Raise httpx's exceptions for a FetchError, and for a timeout after `seconds`."""
    try:
        with trio.fail_after(seconds):
            yield
    except FetchError as error:
        raise _error_for(error.fault)(str(error)) from error
    except trio.TooSlowError as error:
        kind = httpx.ConnectTimeout if progress.phase in _CONNECTING else httpx.ReadTimeout
        raise kind(f"the limit of {seconds:g} seconds was over while {progress}") from error


def _error_for(fault: Fault) -> type[httpx.TransportError]:
    if fault.phase in _CONNECTING and fault.reason is Reason.RESET:
        return httpx.ConnectError
    return _ERRORS.get(fault.reason, httpx.ConnectError)


def origin_of(request: httpx.Request) -> Origin:
    """Return the origin of a request. Raises httpx.UnsupportedProtocol if it is not http(s)."""
    url = request.url
    if url.scheme not in DEFAULT_PORTS:
        raise httpx.UnsupportedProtocol(f"the wire supports http and https, not {url.scheme!r}")
    port = DEFAULT_PORTS[url.scheme] if url.port is None else url.port
    return url.scheme, url.raw_host.decode("ascii"), port


async def serialise(request: httpx.Request) -> bytes:
    """Return the bytes of a request, its body included.

    Raises httpx.LocalProtocolError for a method, target or header that would break the message.
    """
    _check(request, _target(request))
    if not isinstance(request.stream, httpx.AsyncByteStream):
        raise TypeError("the request has a body that is not asynchronous")
    pieces = [piece async for piece in request.stream]
    if "transfer-encoding" in request.headers:
        pieces = [b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces if piece]
        pieces.append(b"0\r\n\r\n")
    return b"".join([head_of(request), *pieces])


def head_of(request: httpx.Request) -> bytes:
    """Return the head of a request in HTTP/1.1, from its first line to the empty one."""
    lines = [b"%s %s HTTP/1.1\r\n" % (request.method.encode(), _target(request))]
    lines += [b"%s: %s\r\n" % field for field in request.headers.raw]
    return b"".join([*lines, b"\r\n"])


def _target(request: httpx.Request) -> bytes:
    target: bytes = request.extensions.get("target", request.url.raw_path)
    return target


def _check(request: httpx.Request, target: bytes) -> None:
    # httpx does not check these. A value may be a credential, so the messages show names only.
    if not is_token(request.method):
        raise httpx.LocalProtocolError(f"not a method: {request.method!r}")
    if not _is_target(target):
        raise httpx.LocalProtocolError(f"not the target of a request: {target!r}")
    for raw_name, value in request.headers.raw:
        name = raw_name.decode("latin-1")
        if not is_token(name):
            raise httpx.LocalProtocolError(f"not a header name: {name!r}")
        if has_control(value.decode("latin-1")):
            subject = f"the value of the header {name}"
            raise httpx.LocalProtocolError(f"{subject} has control characters in it")


def timeouts(request: httpx.Request) -> tuple[float, float]:
    """Return the timeouts in seconds: for the head, and for each wait for more of the body."""
    given = request.extensions.get("timeout", {})
    connect, read = (given.get(name) for name in ("connect", "read"))
    wait = inf if read is None else float(read)
    return (inf if connect is None else connect + wait), wait


def response(head: Head, body: BodyStream) -> httpx.Response:
    """Return an httpx response with an unread body."""
    extensions = {
        "http_version": b"HTTP/1.%d" % head.minor,
        "reason_phrase": head.phrase,
    }
    return httpx.Response(head.status, headers=head.fields, stream=body, extensions=extensions)
