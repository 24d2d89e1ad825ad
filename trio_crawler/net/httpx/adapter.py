"""A client or transport of httpx as a Network."""

from __future__ import annotations

from typing import Any

import httpx

from trio_crawler.model import Phase, Reason
from trio_crawler.net.errors import FetchError
from trio_crawler.net.http1.head import (
    WITHOUT_BODY,
    Fields,
    Head,
    bad_reply,
    check_size,
    content_encoding,
    content_length,
)
from trio_crawler.net.http1.transport import head_of
from trio_crawler.net.httpx.body import ResponseBody
from trio_crawler.net.httpx.client import Asked, ask
from trio_crawler.net.httpx.errors import fetch_error
from trio_crawler.net.progress import Progress
from trio_crawler.net.request import Requests, Target, bad_url, merged

_PHASES = {
    "connect_tcp.started": Phase.CONNECT,
    "start_tls.started": Phase.TLS,
    "send_request_headers.started": Phase.SEND,
    "receive_response_headers.started": Phase.WAIT,
}


class HttpxAdapter:
    """A client or transport of httpx as a Network; it is responsible for all connections.

    The call of the client or transport counts as the start of a request.
    """

    def __init__(
        self, requests: Requests, transport: httpx.AsyncBaseTransport | httpx.AsyncClient
    ) -> None:
        self._requests = requests
        self._asked = transport

    async def ask(
        self,
        url: str,
        progress: Progress,
        max_bytes: int,
        added: Fields | None = None,
        *,
        head_only: bool = False,
    ) -> tuple[ResponseBody, Head, bytes]:
        """Send a request; see `Network.ask`. Raises FetchError.

        The head of the request is the one that httpx had. Only transports of this package bound
        the body by `max_bytes`, and clients what their hooks read of it.
        """
        target = Target.of(url)
        progress.server = target.authority
        progress.phase = Phase.WAIT
        asked = Asked(progress, max_bytes)
        method = "HEAD" if head_only else "GET"
        request, response = await self._sent(method, url, target, asked, added or [])
        progress.phase, progress.received = Phase.READ, progress.received or 0
        body = asked.body_of(response)
        try:
            head = _head(response, bodiless=head_only)
        except FetchError:
            await self.release(body)  # noqa: ASYNC120 - it shields itself where it waits
            raise
        if body.replaced or (body.decoded and head.encoding):
            # Content-Length counts other bytes.
            head = head._replace(length=None)
        if body.decoded:
            head = head._replace(encoding=b"")
        elif asked.kept is not None and not body.replaced and response is asked.response:
            head = head._replace(encoding=asked.encoding)
        body.length = head.length
        # A client makes new requests if its authentication needs more than one.
        sent = response.request if isinstance(self._asked, httpx.AsyncClient) else request
        return body, head, head_of(sent)

    async def _sent(
        self, method: str, url: str, target: Target, asked: Asked, added: Fields
    ) -> tuple[httpx.Request, httpx.Response]:
        """Send a request when it is its turn."""
        progress = asked.progress
        try:
            request = self._request(method, url, target, progress, added)
        except (httpx.InvalidURL, UnicodeError) as error:
            raise bad_url(ascii(str(error))) from error
        if progress.turn is not None and not progress.turn.is_call():
            await progress.wait_for_turn()
            progress.turn.start()
        try:
            if isinstance(self._asked, httpx.AsyncClient):
                return request, await ask(self._asked, request, asked)
            return request, await self._asked.handle_async_request(request)
        except (httpx.TransportError, OSError) as error:
            raise fetch_error(error, progress) from error

    def cookies_for(self, url: str) -> str | None:
        """Return the value of the Cookie header that a request would have now, or None."""
        try:
            request = self._request("GET", url, Target.of(url), Progress(""), [])
        except (FetchError, httpx.InvalidURL, UnicodeError):
            return None
        values = (value for name, value in request.headers.raw if name.lower() == b"cookie")
        return b"; ".join(values).decode("latin-1") or None

    async def release(self, body: ResponseBody) -> None:
        """Close a response, whether its body was read or not."""
        await body.aclose()

    def statistics(self) -> None:
        """Return None, since the caller owns the connections."""

    async def aclose(self) -> None:
        """Do nothing, since the caller owns the client or transport."""

    def _request(
        self, method: str, url: str, target: Target, progress: Progress, added: Fields
    ) -> httpx.Request:
        # With a Host field httpx does not decode the name, which would fail for half of the emoji.
        fields = merged(self._requests.with_cookies(url, self._requests.fields(target)), added)
        extensions: dict[str, Any] = {"trace": _tracing(progress)}
        if httpx.URL(url).raw_path != target.target.encode():
            # Only if httpx would change the target: a client's proxy needs the whole URL.
            extensions["target"] = target.target.encode()
        if isinstance(self._asked, httpx.AsyncClient):
            return self._asked.build_request(method, url, headers=fields, extensions=extensions)
        return httpx.Request(method, url, headers=fields, extensions=extensions)


def _tracing(progress: Progress) -> Any:
    """Return a function that sets the phase by httpcore's events; other transports have none."""

    async def trace(event: str, details: Any) -> None:  # noqa: ASYNC124 - httpcore awaits it
        phase = _PHASES.get(event.partition(".")[2])
        if phase is not None and progress.received is None:
            progress.phase = phase

    return trace


def _head(response: httpx.Response, *, bodiless: bool) -> Head:
    """Return the head of a response; the transport is responsible for the framing."""
    status, headers = response.status_code, response.headers
    length = 0 if bodiless or status in WITHOUT_BODY else None
    if length is None and "transfer-encoding" not in headers:
        length = content_length(headers.raw)
    _check(status, headers.raw)
    encoding = content_encoding(headers.raw)
    return Head(status, b"", 1, headers.raw, length, False, False, encoding)


def _check(status: int, fields: Fields) -> None:
    """Raise FetchError for a head that the wire would refuse."""
    if status == 407:
        detail = "the proxy of the HTTP client wants a user and a password, or other ones"
        raise FetchError(Reason.PROXY, detail, Phase.CONNECT)
    if status < 200:
        raise bad_reply(f"the answer has status {status}, which is not a final one")
    check_size(fields)
