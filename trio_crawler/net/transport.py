"""Bridge: httpx's requests, responses and exceptions on one side, the wire's on the other."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from math import inf

import httpx
import trio

from trio_crawler.model import Fault, Phase, Reason
from trio_crawler.net.connection import PORTS, Connection, Origin
from trio_crawler.net.errors import Faulty
from trio_crawler.net.head import Head
from trio_crawler.net.progress import Progress
from trio_crawler.net.request import has_control, is_token

_ERRORS: dict[Reason, type[httpx.TransportError]] = {
    Reason.CONNECT_TIMEOUT: httpx.ConnectTimeout,
    Reason.RESET: httpx.ReadError,
    Reason.TOO_LARGE: httpx.ReadError,
    Reason.BAD_REPLY: httpx.RemoteProtocolError,
    Reason.INCOMPLETE: httpx.RemoteProtocolError,
}
# RFC 9112, 3.2, as far as it matters where a target ends.
_is_target = re.compile(rb"[\x21-\x7e]+").fullmatch
_CONNECTING = (Phase.RESOLVE, Phase.CONNECT, Phase.TLS)


class BodyStream(httpx.AsyncByteStream):
    """Give a body's bytes as they come; the connection is released at the end, or by `aclose`."""

    def __init__(
        self,
        connection: Connection,
        release: Callable[[Connection], None],
        progress: Progress,
        patience: float,
    ) -> None:
        self._connection: Connection | None = connection
        self._release = release
        self._progress = progress
        self._patience = patience

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        if self._connection is None:
            raise StopAsyncIteration
        piece = b""
        try:
            with translated(self._progress, self._patience):
                piece = await self._connection.read()
        finally:
            if not piece:
                self._end()
        if not piece:
            raise StopAsyncIteration
        return piece

    async def aclose(self) -> None:
        """Release the connection; a body that was not read to its end ends it."""
        self._end()

    def _end(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            self._release(connection)


@contextmanager
def translated(progress: Progress, seconds: float = inf) -> Iterator[None]:
    """Turn a fault into the exception that httpx has for it, and so the end of `seconds`."""
    try:
        with trio.fail_after(seconds):
            yield
    except Faulty as error:
        raise _error_for(error.fault)(str(error)) from error
    except trio.TooSlowError as error:
        kind = httpx.ConnectTimeout if progress.phase in _CONNECTING else httpx.ReadTimeout
        raise kind(f"{seconds:g} seconds were over while {progress}") from error


def _error_for(fault: Fault) -> type[httpx.TransportError]:
    if fault.phase in _CONNECTING and fault.reason is Reason.RESET:
        return httpx.ConnectError
    return _ERRORS.get(fault.reason, httpx.ConnectError)


def origin_of(request: httpx.Request) -> Origin:
    """Say whom to ask. Raises httpx.UnsupportedProtocol for anything but http and https."""
    url = request.url
    if url.scheme not in PORTS:
        raise httpx.UnsupportedProtocol(f"the wire speaks http and https, not {url.scheme!r}")
    return url.scheme, url.raw_host.decode("ascii"), url.port or PORTS[url.scheme]


async def written(request: httpx.Request) -> bytes:
    """Write a request out, body and all.

    Raises httpx.LocalProtocolError for what would be read as something else than it is.
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
    """Write the head of a request, from its first line to the empty one, as HTTP/1.1 has it."""
    lines = [b"%s %s HTTP/1.1\r\n" % (request.method.encode(), _target(request))]
    lines += [b"%s: %s\r\n" % field for field in request.headers.raw]
    return b"".join([*lines, b"\r\n"])


def _target(request: httpx.Request) -> bytes:
    target: bytes = request.extensions.get("target", request.url.raw_path)
    return target


def _check(request: httpx.Request, target: bytes) -> None:
    # httpx takes anything. A value may be a credential: the messages show names only.
    if not is_token(request.method):
        raise httpx.LocalProtocolError(f"not a method: {request.method!r}")
    if not _is_target(target):
        raise httpx.LocalProtocolError(f"not the target of a request: {target!r}")
    for raw_name, value in request.headers.raw:
        name = raw_name.decode("latin-1")
        if not is_token(name):
            raise httpx.LocalProtocolError(f"not a header name: {name!r}")
        if has_control(value.decode("latin-1")):
            what = f"the value of the header {name}"
            raise httpx.LocalProtocolError(f"{what} has control characters in it")


def patience(request: httpx.Request) -> tuple[float, float]:
    """Return how long a head may take, and each wait for a piece of the body, in seconds."""
    timeouts = request.extensions.get("timeout", {})
    connect, read = (timeouts.get(name) for name in ("connect", "read"))
    wait = inf if read is None else float(read)
    return (inf if connect is None else connect + wait), wait


def response(head: Head, body: BodyStream) -> httpx.Response:
    """Give an answer the form of httpx; its body is still to be read."""
    extensions = {
        "http_version": b"HTTP/1.%d" % head.minor,
        "reason_phrase": head.phrase,
    }
    return httpx.Response(head.status, headers=head.fields, stream=body, extensions=extensions)
