"""Outside: URLs asked through a transport or a client that is the caller's."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

import httpx
import trio

from trio_crawler.model import Phase, Reason
from trio_crawler.net import transport as bridge
from trio_crawler.net.client import ClientTransport
from trio_crawler.net.errors import Faulty, fault_of
from trio_crawler.net.head import (
    MOST_BYTES,
    MOST_LINES,
    WITHOUT_BODY,
    Fields,
    Head,
    bad,
    content_encoding,
    content_length,
)
from trio_crawler.net.httpx.context import ASKING, Asking
from trio_crawler.net.progress import Progress
from trio_crawler.net.request import Requests, Target, bad_url, merged

CLOSING = 1.0
"""Seconds that closing may take."""

_MOST_LEFT = 100_000
_PHASES = {
    "connect_tcp.started": Phase.CONNECT,
    "start_tls.started": Phase.TLS,
    "send_request_headers.started": Phase.SEND,
    "receive_response_headers.started": Phase.WAIT,
}


class Answer:
    """Hold a response of httpx whose body is still to be read, as it was sent."""

    def __init__(self, response: httpx.Response, progress: Progress) -> None:
        self.response = response
        self.length: int | None = None
        self._progress = progress
        # Never aiter_bytes: httpx decodes without a bound.
        if not isinstance(response.stream, httpx.AsyncByteStream):
            raise TypeError("the transport answered with a body that is not asynchronous")
        self.parts: AsyncIterator[bytes] = aiter(response.stream)

    async def read(self) -> bytes:
        """Return the next bytes of the body, none when all of it has come. Raises Faulty."""
        progress = self._progress
        try:
            async for part in self.parts:
                if part:
                    progress.received = (progress.received or 0) + len(part)
                    return part
        except (httpx.TransportError, OSError) as error:
            raise _faulty(error, progress) from error
        received = progress.received or 0
        if self.length is not None and received < self.length:
            detail = f"{received} of {self.length} bytes of the body came"
            raise Faulty(Reason.INCOMPLETE, detail, Phase.READ)
        return b""


class Outside:
    """Ask for URLs through httpx. The head is given at once, the body by `read`, then `release`.

    Addresses, certificates and connections are the affair of the transport.
    """

    def __init__(
        self, requests: Requests, transport: httpx.AsyncBaseTransport | httpx.AsyncClient
    ) -> None:
        self._requests = requests
        self._client = transport if isinstance(transport, httpx.AsyncClient) else None
        if isinstance(transport, httpx.AsyncClient):
            transport = ClientTransport(transport)
        self._transport = transport

    async def ask(
        self, url: str, progress: Progress, most: int, added: Fields | None = None
    ) -> tuple[Answer, Head, bytes]:
        """Ask for a URL with GET, with the `added` fields; a relay takes `most` bytes of body.

        The last is the head of the request, as httpx had it. Raises Faulty.
        """
        target = Target.of(url)
        progress.peer = target.authority
        progress.phase = Phase.WAIT
        try:
            request = self._request(url, target, progress, added or [])
        except (httpx.InvalidURL, UnicodeError) as error:
            raise bad_url(ascii(str(error))) from error
        asking = ASKING.set(Asking(progress, most))
        try:
            response = await self._transport.handle_async_request(request)
        except (httpx.TransportError, OSError) as error:
            raise _faulty(error, progress) from error
        finally:
            ASKING.reset(asking)
        progress.phase, progress.received = Phase.READ, 0
        answer = Answer(response, progress)
        try:
            head = _head(response)
        except Faulty:
            await self.release(answer)  # noqa: ASYNC120 - it shields itself where it waits
            raise
        answer.length = head.length
        # A client makes new requests where its authentication asks for more than one.
        sent = request if self._client is None else response.request
        return answer, head, bridge.head_of(sent)

    async def release(self, answer: Answer) -> None:
        """Close a response, read or not."""
        with trio.move_on_after(CLOSING, shield=True):
            if isinstance(answer.parts, AsyncGenerator):
                await _abandon(answer.parts)
            await answer.response.aclose()

    def _request(
        self, url: str, target: Target, progress: Progress, added: Fields
    ) -> httpx.Request:
        # With a Host of ours httpx does not decode the name, which fails for half of the emoji.
        fields = merged(self._requests.with_cookies(url, self._requests.fields(target)), added)
        extensions: dict[str, Any] = {"trace": _tracing(progress)}
        if httpx.URL(url).raw_path != target.target.encode():
            # Only where httpx would spell it otherwise: a client's proxy needs the whole URL.
            extensions["target"] = target.target.encode()
        if self._client is not None:
            return self._client.build_request("GET", url, headers=fields, extensions=extensions)
        return httpx.Request("GET", url, headers=fields, extensions=extensions)


def _tracing(progress: Progress) -> Any:
    """Follow httpcore's events; other transports send none."""

    async def trace(event: str, details: Any) -> None:  # noqa: ASYNC124 - httpcore awaits it
        phase = _PHASES.get(event.partition(".")[2])
        if phase is not None and progress.received is None:
            progress.phase = phase

    return trace


def _faulty(error: httpx.TransportError | OSError, progress: Progress) -> Faulty:
    if isinstance(error.__cause__, Faulty):
        # It comes of a wire that the caller has passed in.
        return error.__cause__
    fault = fault_of(error, progress.peer, progress.received)
    return Faulty(fault.reason, fault.detail, progress.phase)


def _head(response: httpx.Response) -> Head:
    """Say what the wire would say of the same answer; its framing is the transport's affair."""
    status, headers = response.status_code, response.headers
    length = 0 if status in WITHOUT_BODY else None
    if length is None and "transfer-encoding" not in headers:
        length = content_length(headers.raw)
    _check(status, headers.raw)
    encoding = content_encoding(headers.raw)
    return Head(status, b"", 1, headers.raw, length, False, False, encoding)


def _check(status: int, fields: Fields) -> None:
    """Refuse what the wire would have refused."""
    if status < 200:
        raise bad(f"status {status} was not asked for")
    size = sum(len(name) + len(value) for name, value in fields)
    if len(fields) > MOST_LINES or size > MOST_BYTES:
        what = f"{len(fields)} header lines with {size} bytes"
        raise bad(f"the answer has {what}; {MOST_LINES} lines with {MOST_BYTES} are the limit")


async def _abandon(parts: AsyncGenerator[bytes, None]) -> None:
    """End an iterator over a body before its end.

    httpx and httpcore iterate by generators inside generators: closing the outer one leaves the
    inner ones to the garbage collector. A cancellation from within ends them all.
    """
    with trio.CancelScope(shield=True) as scope:
        scope.cancel()
        try:
            for _ in range(_MOST_LEFT):
                await anext(parts)
        except (StopAsyncIteration, httpx.TransportError):
            return
    await parts.aclose()
