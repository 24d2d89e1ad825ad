"""A client or transport of httpx as a Network."""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

import httpx
import trio

from trio_crawler.model import Phase, Reason
from trio_crawler.net.errors import FetchError
from trio_crawler.net.head import (
    MAX_HEAD_BYTES,
    MAX_HEAD_LINES,
    WITHOUT_BODY,
    Fields,
    Head,
    bad_reply,
    content_encoding,
    content_length,
)
from trio_crawler.net.httpx.context import REQUEST_CONTEXT, RequestContext
from trio_crawler.net.httpx.errors import fault_of
from trio_crawler.net.progress import Progress
from trio_crawler.net.request import Requests, Target, bad_url, merged
from trio_crawler.net.transport import head_of

CLOSE_TIMEOUT = 1.0
"""The most seconds that closing may take."""

_MAX_PARTS = 100_000
_HEADERS = "trio_crawler.headers"
_PHASES = {
    "connect_tcp.started": Phase.CONNECT,
    "start_tls.started": Phase.TLS,
    "send_request_headers.started": Phase.SEND,
    "receive_response_headers.started": Phase.WAIT,
}


class _NotItsTurn(Exception):
    """httpcore sends a request again that a server has refused; nothing of it was sent yet."""


class ResponseBody:
    """The body of an httpx response, as it was sent."""

    def __init__(self, response: httpx.Response, progress: Progress) -> None:
        self.response = response
        self.length: int | None = None
        self._progress = progress
        # Not aiter_bytes: httpx would decode without a bound.
        if not isinstance(response.stream, httpx.AsyncByteStream):
            raise TypeError("the transport answered with a body that is not asynchronous")
        self.parts: AsyncIterator[bytes] = aiter(response.stream)

    async def read(self) -> bytes:
        """Return the next bytes of the body, none at its end. Raises FetchError."""
        progress = self._progress
        try:
            async for part in self.parts:
                if part:
                    progress.received = (progress.received or 0) + len(part)
                    return part
        except (httpx.TransportError, OSError) as error:
            raise _fetch_error(error, progress) from error
        received = progress.received or 0
        if self.length is not None and received < self.length:
            detail = f"{received} of {self.length} bytes of the body came"
            raise FetchError(Reason.INCOMPLETE, detail, Phase.READ)
        return b""


class HttpxAdapter:
    """A client or transport of httpx as a Network; it is responsible for all connections.

    `reports` is whether the transport is known to report each request that it sends, by the
    events of httpcore. If not, the call counts as the start of the request.
    """

    def __init__(
        self,
        requests: Requests,
        transport: httpx.AsyncBaseTransport | httpx.AsyncClient,
        *,
        reports: bool = False,
    ) -> None:
        self._requests = requests
        self._reports = reports
        self._client = transport if isinstance(transport, httpx.AsyncClient) else None
        if isinstance(transport, httpx.AsyncClient):
            transport = ClientTransport(transport)
        self._transport = transport

    async def ask(
        self, url: str, progress: Progress, max_bytes: int, added: Fields | None = None
    ) -> tuple[ResponseBody, Head, bytes]:
        """Send a GET request; see `Network.ask`. Raises FetchError.

        The head of the request is the one that httpx had. Only transports of this package bound
        the body by `max_bytes`.
        """
        target = Target.of(url)
        progress.server = target.authority
        progress.phase = Phase.WAIT
        request, response = await self._sent(url, target, progress, max_bytes, added or [])
        progress.phase, progress.received = Phase.READ, 0
        body = ResponseBody(response, progress)
        try:
            head = _head(response)
        except FetchError:
            await self.release(body)  # noqa: ASYNC120 - it shields itself where it waits
            raise
        body.length = head.length
        # A client makes new requests if its authentication needs more than one.
        sent = request if self._client is None else response.request
        return body, head, head_of(sent)

    async def _sent(
        self, url: str, target: Target, progress: Progress, max_bytes: int, added: Fields
    ) -> tuple[httpx.Request, httpx.Response]:
        """Send a request when it is its turn; again when httpcore wants to, at a later turn."""
        while True:
            try:
                request = self._request(url, target, progress, added)
            except (httpx.InvalidURL, UnicodeError) as error:
                raise bad_url(ascii(str(error))) from error
            await self._take_turn(progress)
            token = REQUEST_CONTEXT.set(RequestContext(progress, max_bytes))
            try:
                return request, await self._transport.handle_async_request(request)
            except _NotItsTurn:
                continue
            except (httpx.TransportError, OSError) as error:
                raise _fetch_error(error, progress) from error
            finally:
                REQUEST_CONTEXT.reset(token)

    async def _take_turn(self, progress: Progress) -> None:
        turn = progress.turn
        if turn is None:
            return
        # Without a bound: httpcore cannot wait once it has chosen the number of a stream.
        first = turn.adopt(math.inf) if self._reports else turn.is_call()
        if not first:
            await progress.wait_for_turn()
            if not self._reports:
                turn.start()

    async def release(self, body: ResponseBody) -> None:
        """Close a response, whether its body was read or not."""
        with trio.move_on_after(CLOSE_TIMEOUT, shield=True):
            if isinstance(body.parts, AsyncGenerator):
                await _abandon(body.parts)
            await body.response.aclose()

    def statistics(self) -> None:
        """Return None, since the caller owns the connections."""

    async def aclose(self) -> None:
        """Do nothing, since the caller owns the client or transport."""

    def _request(
        self, url: str, target: Target, progress: Progress, added: Fields
    ) -> httpx.Request:
        # With a Host field httpx does not decode the name, which would fail for half of the emoji.
        fields = merged(self._requests.with_cookies(url, self._requests.fields(target)), added)
        extensions: dict[str, Any] = {"trace": _tracing(progress, self._reports)}
        if httpx.URL(url).raw_path != target.target.encode():
            # Only if httpx would change the target: a client's proxy needs the whole URL.
            extensions["target"] = target.target.encode()
        if self._client is not None:
            return self._client.build_request("GET", url, headers=fields, extensions=extensions)
        return httpx.Request("GET", url, headers=fields, extensions=extensions)


class ClientTransport(httpx.AsyncBaseTransport):
    """A caller's client as a transport, so that its headers, cookies and hooks apply.

    Redirects are returned, not followed. The caller closes the client.
    """

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request, and return its response before the body is read."""
        hooks = self._client.event_hooks
        if self._hide_location not in hooks["response"]:
            response_hooks = [*hooks["response"], self._hide_location]
            self._client.event_hooks = {**hooks, "response": response_hooks}
        request.extensions[_HEADERS] = True
        response = await self._client.send(request, stream=True, follow_redirects=False)
        response.headers = response.extensions.pop(_HEADERS, response.headers)
        return response

    @staticmethod
    async def _hide_location(response: httpx.Response) -> None:
        """Hide Location from the client, and keep the headers in the extensions.

        The client builds the next request even if it must not follow the redirect. For
        `javascript:` and other odd targets that raises, and the response would be lost.
        """
        if _HEADERS in response.request.extensions and "location" in response.headers:
            response.extensions[_HEADERS] = response.headers
            others = [pair for pair in response.headers.raw if pair[0].lower() != b"location"]
            response.headers = httpx.Headers(others)


def _tracing(progress: Progress, reports: bool) -> Any:
    """Return a function that sets the phase by httpcore's events; other transports have none."""
    to_proxy = False

    async def trace(event: str, details: Any) -> None:  # noqa: ASYNC124 - httpcore awaits it
        nonlocal to_proxy
        name = event.partition(".")[2]
        phase = _PHASES.get(name)
        if phase is not None and progress.received is None:
            progress.phase = phase
        if reports and progress.turn is not None:
            if name == "send_request_headers.started":
                # The request for a tunnel goes to the proxy, not to the host.
                to_proxy = details["request"].method == b"CONNECT"
                if not to_proxy and not progress.turn.is_held:
                    raise _NotItsTurn
            elif name == "send_request_headers.complete" and not to_proxy:
                progress.turn.start()

    return trace


def _fetch_error(error: httpx.TransportError | OSError, progress: Progress) -> FetchError:
    if isinstance(error.__cause__, FetchError):
        # The transport is a Wire, or a client over one.
        return error.__cause__
    fault = fault_of(error, progress.server, progress.received)
    return FetchError(fault.reason, fault.detail, progress.phase)


def _head(response: httpx.Response) -> Head:
    """Return the head of a response; the transport is responsible for the framing."""
    status, headers = response.status_code, response.headers
    length = 0 if status in WITHOUT_BODY else None
    if length is None and "transfer-encoding" not in headers:
        length = content_length(headers.raw)
    _check(status, headers.raw)
    encoding = content_encoding(headers.raw)
    return Head(status, b"", 1, headers.raw, length, False, False, encoding)


def _check(status: int, fields: Fields) -> None:
    """Raise FetchError for a head that the wire would refuse."""
    if status < 200:
        raise bad_reply(f"the answer has status {status}, which is not a final one")
    size = sum(len(name) + len(value) for name, value in fields)
    if len(fields) > MAX_HEAD_LINES or size > MAX_HEAD_BYTES:
        found = f"{len(fields)} header lines with {size} bytes"
        limit = f"{MAX_HEAD_LINES} lines with {MAX_HEAD_BYTES} are the limit"
        raise bad_reply(f"the answer has {found}; {limit}")


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
