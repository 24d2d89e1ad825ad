"""The body of a response of httpx, which other code may have read before."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import suppress
from functools import cache
from importlib import import_module
from types import ModuleType

import httpx
import trio

from trio_crawler.model import Phase, Reason
from trio_crawler.net.errors import FetchError
from trio_crawler.net.http1.head import WITHOUT_BODY
from trio_crawler.net.http1.wire import FRAMING_BYTES
from trio_crawler.net.httpx.errors import fetch_error
from trio_crawler.net.progress import Progress

CLOSE_TIMEOUT = 1.0
"""The most seconds that closing may take."""

_MAX_PARTS = 100_000
_CLOSED = (
    "a response hook of the HTTP client closed this response before its body was read: "
    "let it read the body with aread(), or leave the response open"
)
_LOST = (
    "the HTTP client read the body of this response and did not keep it: "
    "read it with aread(), or leave it unread"
)


class TooLong(httpx.ReadError):
    """A hook wants more of a body than the fetch may read."""


class KeptStream(httpx.AsyncByteStream):
    """The stream of a response; what hooks and authentication read of it is kept for the fetch.

    So they may read all of the body, a part, or nothing. They get at most `max_bytes` and the
    bytes that the framing may take, then TooLong is raised. The stream under this one is asked for
    bytes only once: after its end the connection may belong to another request.
    """

    def __init__(self, stream: httpx.AsyncByteStream, progress: Progress, max_bytes: int) -> None:
        self._stream = stream
        self._parts: AsyncIterator[bytes] = aiter(stream)
        self._progress = progress
        self._room = max_bytes + FRAMING_BYTES
        self._kept: deque[bytes] = deque()
        self._error: BaseException | None = None
        self._ended = self._closed = self._taken = self._replaced = False
        self.begun = False
        """Whether a hook or an authentication has read."""
        self.cut = False
        """Whether bytes may be missing at the end."""
        self.optional = False
        """Whether a hook may close the response before the end of the body."""

    def __aiter__(self) -> KeptStream:
        return self

    async def __anext__(self) -> bytes:
        """Return the next bytes to a hook or an authentication, and keep them."""
        if self._taken:
            raise httpx.StreamConsumed
        if self._replaced:
            return await anext(self._parts)
        if self._room < 0:
            self.cut = True
            raise TooLong("the body is longer than the fetch may read")
        self.begun = True
        self._progress.phase = Phase.READ
        part = await self._next()
        if not part:
            raise StopAsyncIteration
        self._kept.append(part)
        self._room -= len(part)
        return part

    async def take(self) -> bytes:
        """Return the next bytes to the fetch, none at the end; first those that were kept."""
        self._taken = True
        if self._kept:
            return self._kept.popleft()
        if self.cut or self._ended:
            return b""
        if isinstance(self._error, Exception):
            # A hook went on after the network had failed.
            raise self._error
        if self._error is not None:
            received = self._progress.received
            detail = f"the HTTP client stopped reading after {received} bytes of the body"
            raise FetchError(Reason.INCOMPLETE, detail, Phase.READ)
        if not self._closed:
            return await self._next()
        if not self.optional:
            raise RuntimeError(_CLOSED)
        self.cut = True
        return b""

    def replace(self) -> None:
        """Keep and count nothing more, since a hook has put another stream above this one."""
        self._replaced = True

    async def aclose(self) -> None:
        """Close the stream under this one, once."""
        if self._closed:
            return
        self._closed = True
        if isinstance(self._parts, AsyncGenerator):
            await _abandon(self._parts)
        # Without httpcore there are no connections, and its import takes 60 ms.
        private = _private() if "httpcore" in sys.modules else None
        if private is not None:
            if self._ended:
                private.refuse_rest(self._stream)
            else:
                with trio.move_on_after(CLOSE_TIMEOUT, shield=True):
                    await private.reset_http2_stream(self._stream)
        await self._stream.aclose()

    async def _next(self) -> bytes:
        progress = self._progress
        try:
            async for part in self._parts:
                if part:
                    progress.received = (progress.received or 0) + len(part)
                    return part
        except BaseException as error:
            self._error = error
            raise
        self._ended = True
        return b""


class ResponseBody:
    """The body of an httpx response: as it was sent, or `decoded` if only that is left.

    `kept` is the stream that the response had before the hooks of a client, if it has hooks.
    Raises TypeError for a body that is not asynchronous.
    """

    def __init__(
        self,
        response: httpx.Response,
        kept: KeptStream | None,
        progress: Progress,
        max_bytes: int,
    ) -> None:
        self.response = response
        self.length: int | None = None
        self.decoded = False
        self.replaced = kept is not None and response.stream is not kept
        """Whether a hook gave the response another stream, which may have another length."""
        self._progress = progress
        self._content: bytes | None = None
        self._inner = kept
        self._stream = kept
        if kept is None or self.replaced:
            # The bytes of a stream that is consumed would be those of another response.
            self.decoded = response.is_stream_consumed or response.is_closed
            if self.decoded:
                self._stream, self._content = None, _content(response)
                progress.received = 0
            else:
                self._stream = KeptStream(_stream(response), progress, max_bytes)
            if kept is not None:
                kept.replace()
        status = response.status_code
        if self._stream is not None and (status >= 400 or status in WITHOUT_BODY):
            # Nothing needs the body of an error response, so a hook may close that.
            self._stream.optional = True

    async def read(self) -> bytes:
        """Return the next bytes of the body, none at its end.

        Raises FetchError, and RuntimeError if the body was read elsewhere and is lost.
        """
        progress = self._progress
        if self._stream is None:
            if self._content is None:
                raise RuntimeError(_LOST)
            part, self._content = self._content, b""
            progress.received = (progress.received or 0) + len(part)
        else:
            try:
                part = await self._stream.take()
            except TooLong as error:
                raise FetchError(Reason.TOO_LARGE, str(error), Phase.READ) from error
            except (httpx.TransportError, OSError) as error:
                # httpx names the request only where it reads itself.
                with suppress(RuntimeError):
                    if isinstance(error, httpx.RequestError):
                        error.request = self.response.request
                raise fetch_error(error, progress) from error
            if self._stream.cut:
                return part
        received = progress.received or 0
        if not part and self.length is not None and received < self.length:
            detail = f"{received} of {self.length} bytes of the body came"
            raise FetchError(Reason.INCOMPLETE, detail, Phase.READ)
        return part

    def take_whole(self) -> None:
        """Return None: the length of a body may be unknown before its end."""

    async def aclose(self) -> None:
        """Close the response, whether its body was read or not."""
        with trio.move_on_after(CLOSE_TIMEOUT, shield=True):
            if self._stream is not None:
                await self._stream.aclose()
            await self.response.aclose()
            if self._inner is not None:
                await self._inner.aclose()


def _stream(response: httpx.Response) -> httpx.AsyncByteStream:
    # Not aiter_bytes: httpx would decode without a bound.
    if not isinstance(response.stream, httpx.AsyncByteStream):
        raise TypeError("the transport answered with a body that is not asynchronous")
    return response.stream


def _content(response: httpx.Response) -> bytes | None:
    try:
        return response.content
    except httpx.ResponseNotRead:
        return None


@cache
def _private() -> ModuleType | None:
    """Return the module of private names; None if the installed versions were not tested.

    Then the connections are as httpcore has them.
    """
    try:
        return import_module("trio_crawler.net.httpx.private")
    except ImportError:
        return None


async def _abandon(parts: AsyncGenerator[bytes, None]) -> None:
    """Close an iterator over a body before its end.

    httpx and httpcore use nested generators: closing the outer one leaves the inner ones to the
    garbage collector. A cancellation inside the innermost one ends them all.
    """
    with trio.CancelScope(shield=True) as scope:
        scope.cancel()
        try:
            for _ in range(_MAX_PARTS):
                await anext(parts)
        except (StopAsyncIteration, httpx.TransportError):
            return
    await parts.aclose()
