"""Fetch URLs by a client or transport of the caller, over the public interface of httpx."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from typing import TYPE_CHECKING, Any

import httpx
import trio
from msgspec.structs import replace

from trio_crawler.arguments import check_kind, public
from trio_crawler.model import Fault, Phase, Reason
from trio_crawler.net.errors import (
    FetchError,
    bad_reply,
    chain,
    connect_fault,
    connection_lost,
    incomplete,
    name_fault,
    one_line,
    tls_fault,
)
from trio_crawler.net.fetcher import TIMEOUT, Fetcher
from trio_crawler.net.http1.message import (
    WITHOUT_BODY,
    Fields,
    Head,
    parsed,
)
from trio_crawler.net.http1.wire import MAX_BYTES
from trio_crawler.net.request import (
    DEFAULT_USER_AGENT,
    Auth,
    Headers,
    Requests,
    Target,
    bad_url,
    default_fields,
    merged,
)
from trio_crawler.net.turn import Progress
from trio_crawler.page.urls import web_urls

if TYPE_CHECKING:
    from trio_crawler.net.cookies import CookieStore

CLOSE_TIMEOUT = 1.0
"""The most seconds that closing may take."""

_MAX_PARTS = 100_000
_PHASES = {
    "connect_tcp.started": Phase.CONNECT,
    "start_tls.started": Phase.TLS,
    "send_request_headers.started": Phase.SEND,
    "receive_response_headers.started": Phase.WAIT,
    "receive_response_body.started": Phase.READ,
}
_HEADERS = "trio_crawler.headers"
"""The extension of a request of this package, and of a response whose Location is hidden."""
_LOST = (
    "the HTTP client has read or closed the body of this response and did not keep it: "
    "a hook reads it with aread(), or leaves it unread"
)
# httpx has one exception for all violations of the protocol, so the text decides. The words come
# from h11 and httpcore; there is a test of each.
_BODY_CUT_OFF = "peer closed connection"
_ENDED = "disconnected"
_NO_SOCKET = "all its connections are in use: use fewer workers, or give it more (httpx.Limits)"


@public("trio_crawler")
class HttpxFetch(Fetcher):
    """Fetch a URL with one GET request, by an `httpx.AsyncClient` or `httpx.AsyncBaseTransport`.

    `client_or_transport` is responsible for addresses, certificates, proxies, connections and
    the framing of answers, and the caller closes it: `aclose` only ends this fetch. A client adds
    its own headers, cookies, authentication and timeouts; it gets a response hook, which acts
    only on the requests of this fetch.

    The client's own hooks and authentication may read the body of a response with `aread`, which
    nothing bounds: the page is the same as without them, and is cut at `max_bytes` afterwards. A
    status that a hook refuses with `raise_for_status` is a response all the same, without a body.
    Any other exception of a hook is a bug, and so is a hook that loses the body of a response
    below 400 (RuntimeError): one that reads only a part of it, or closes it.

    `timeout` (seconds), `max_bytes`, `bodies`, redirects, the body of an error response and
    `job.purpose` are as in `HttpFetch`. `max_bytes` bounds only bodies, as the transport returns
    them. A timeout of the client is a Fault that names it.

    `user_agent` is sent to every server, and `contact`, an e-mail address, in From. The default
    of `user_agent` is the User-Agent of the client unless that is httpx's own, else that of
    `HttpFetch`; the attribute `user_agent` has the value that is sent. `headers` and `auth` are
    sent only to the origins of `seeds`, as by `HttpFetch`. `cookies` stores and sends cookies; if
    it has cookies for a URL, the client's cookies are not sent. Without it a login that leads back
    to its first URL is not followed, whatever cookies the client itself stores.

    Raises TypeError or ValueError, naming the argument, if it is invalid or would have no effect:
    `seeds` without `headers` or `auth`, and `auth` for a client with its own authentication.

    >>> async def answer(request: httpx.Request) -> httpx.Response:
    ...     return httpx.Response(200, html="<a href=/a>a</a>")
    >>> async def crawl() -> Statistics:
    ...     async with httpx.AsyncClient(transport=httpx.MockTransport(answer)) as client:
    ...         return await Crawler(["http://e.org/"], fetch=HttpxFetch(client)).crawl()
    >>> trio.run(crawl).pages
    2
    """

    def __init__(
        self,
        client_or_transport: httpx.AsyncClient | httpx.AsyncBaseTransport,
        *,
        seeds: Iterable[str | httpx.URL] = (),
        user_agent: str | None = None,
        contact: str | None = None,
        headers: Headers = (),
        auth: Auth | None = None,
        cookies: CookieStore | None = None,
        timeout: float = TIMEOUT,
        max_bytes: int = MAX_BYTES,
        bodies: bool = True,
    ) -> None:
        given = client_or_transport
        wanted = "an httpx.AsyncClient or an httpx.AsyncBaseTransport"
        check_kind(
            "client_or_transport", given, httpx.AsyncClient | httpx.AsyncBaseTransport, wanted
        )
        client = given if isinstance(given, httpx.AsyncClient) else None
        seeds = web_urls("seeds", seeds)
        own = {} if client is None else _own_fields(client)
        defaults = default_fields(user_agent, contact, replaced=own)
        requests = Requests(defaults, seeds=seeds, headers=headers, auth=auth, cookies=cookies)
        if seeds and not requests.has_own:
            raise ValueError("seeds would have no effect without headers or auth: give them too")
        if client is not None and client.auth is not None and requests.authorizes:
            raise ValueError("auth would have no effect: the client has authentication of its own")
        adapter = HttpxAdapter(requests, given)
        super().__init__(
            adapter,
            user_agent=user_agent or own.get("User-Agent", DEFAULT_USER_AGENT),
            cookies=cookies,
            cookies_for=adapter.cookies_for,
            sends_credentials=(
                requests.has_credentials or (client is not None and _has_credentials(client))
            ),
            timeout=timeout,
            max_bytes=max_bytes,
            bodies=bodies,
        )


class HttpxAdapter:
    """A client or transport of httpx as a Network; it is responsible for all connections.

    The call of the client or transport counts as the start of a request.
    """

    closes_late = False

    def __init__(
        self, requests: Requests, asked: httpx.AsyncBaseTransport | httpx.AsyncClient
    ) -> None:
        self._requests = requests
        self._asked = asked

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

        The head of the request is the one that httpx had. Only transports of this package refuse
        a body by `max_bytes`.
        """
        target = Target.of(url)
        progress.server, progress.phase = target.authority, Phase.WAIT
        method = "HEAD" if head_only else "GET"
        request = self._request(method, url, target, progress, added or [])
        if progress.turn is not None:
            await progress.turn.wait()
            progress.turn.start()
        response = await self._sent(request, progress)
        progress.phase, progress.received = Phase.READ, 0
        body = ResponseBody(response, progress)
        try:
            head = _head(response, bodiless=head_only)
        except FetchError:
            await body.aclose()  # noqa: ASYNC120 - it shields itself where it waits
            raise
        if body.content is not None and (head.encoding or head.status >= 400):
            # It is decoded, or closed: Content-Length counts other bytes.
            head = replace(head, length=None, encoding=b"")
        body.length = head.length
        # A client makes new requests if its authentication needs more than one.
        sent = response.request if isinstance(self._asked, httpx.AsyncClient) else request
        return body, head, _head_of(sent)

    async def _sent(self, request: httpx.Request, progress: Progress) -> httpx.Response:
        try:
            if isinstance(self._asked, httpx.AsyncClient):
                return await _by_client(self._asked, request)
            return await self._asked.handle_async_request(request)
        except httpx.DecodingError as error:
            detail = f"the body of {progress.server} cannot be decoded"
            raise FetchError(Reason.BAD_REPLY, detail, Phase.READ) from error
        except httpx.TransportError as error:
            raise fetch_error(error, progress) from error

    def cookies_for(self, url: str) -> str | None:
        """Return the value of the Cookie header that a request would have now, or None."""
        try:
            request = self._request("GET", url, Target.of(url), Progress(""), [])
        except FetchError:
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
        extensions: dict[str, Any] = {"trace": _tracing(progress), _HEADERS: True}
        try:
            if httpx.URL(url).raw_path != target.target.encode():
                # Only if httpx would change the target: a client's proxy needs the whole URL.
                extensions["target"] = target.target.encode()
            if isinstance(self._asked, httpx.AsyncClient):
                build = self._asked.build_request
                return build(method, url, headers=fields, extensions=extensions)
            return httpx.Request(method, url, headers=fields, extensions=extensions)
        except (httpx.InvalidURL, UnicodeError) as error:
            raise bad_url(ascii(str(error))) from error


class ResponseBody:
    """The body of an httpx response as it was sent, or its decoded `content` if that was read."""

    def __init__(self, response: httpx.Response, progress: Progress) -> None:
        self.content: bytes | None = None
        self.length: int | None = None
        self._response = response
        self._parts: AsyncIterator[bytes] | None = None
        self._progress = progress
        if response.is_stream_consumed or response.is_closed:
            status = response.status_code
            try:
                self.content = response.content
            except httpx.ResponseNotRead:
                # Nothing needs the body of an error response, so a hook may close that.
                self.content = b"" if status >= 400 or status in WITHOUT_BODY else None

    async def read(self) -> bytes:
        """Return the next bytes of the body, none at its end.

        Raises FetchError, and RuntimeError if the body was read elsewhere and is lost.
        """
        progress, response = self._progress, self._response
        if self.content is not None:
            part, self.content = self.content, b""
            progress.received = (progress.received or 0) + len(part)
            return part or self._end()
        if self._parts is None:
            if response.is_stream_consumed or response.is_closed:
                raise RuntimeError(_LOST)
            if not isinstance(response.stream, httpx.AsyncByteStream):
                raise TypeError("the transport answered with a body that is not asynchronous")
            # Not aiter_bytes: httpx would decode without a bound.
            self._parts = aiter(response.stream)
        try:
            async for part in self._parts:
                if part:
                    progress.received = (progress.received or 0) + len(part)
                    return part
        except httpx.TransportError as error:
            raise fetch_error(error, progress) from error
        return self._end()

    def _end(self) -> bytes:
        received = self._progress.received or 0
        if self.length is not None and received < self.length:
            raise incomplete(received, self.length)
        return b""

    async def aclose(self) -> None:
        """Close the response, whether its body was read or not."""
        with trio.move_on_after(CLOSE_TIMEOUT, shield=True):
            if isinstance(self._parts, AsyncGenerator):
                await _abandon(self._parts)
            await self._response.aclose()


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


async def _by_client(client: httpx.AsyncClient, request: httpx.Request) -> httpx.Response:
    """Send a request by a caller's client, and return its response before the body is read.

    Its headers, cookies, authentication and hooks apply. Redirects are returned, not followed. A
    response whose status a hook refuses (`raise_for_status`) is returned all the same.
    """
    hooks = client.event_hooks
    if hooks["response"][-1:] != [_hide_location]:
        # The caller may add hooks, or set others, at any time.
        others = [hook for hook in hooks["response"] if hook is not _hide_location]
        client.event_hooks = {**hooks, "response": [*others, _hide_location]}
    try:
        response = await client.send(request, stream=True, follow_redirects=False)
    except httpx.HTTPStatusError as error:
        if _HEADERS not in error.request.extensions:
            raise
        return error.response
    response.headers = response.extensions.pop(_HEADERS, response.headers)
    return response


async def _hide_location(response: httpx.Response) -> None:  # noqa: ASYNC124 - httpx awaits it
    """Hide Location from the client.

    The client builds the next request even if it must not follow the redirect. For `javascript:`
    and other odd targets that raises, and the response would be lost.
    """
    if _HEADERS in response.request.extensions and "location" in response.headers:
        response.extensions[_HEADERS] = response.headers
        others = [pair for pair in response.headers.raw if pair[0].lower() != b"location"]
        response.headers = httpx.Headers(others)


def _tracing(progress: Progress) -> Any:
    """Return a function that sets the phase by httpcore's events; other transports have none."""

    async def trace(event: str, details: Any) -> None:  # noqa: ASYNC124 - httpcore awaits it
        phase = _PHASES.get(event.partition(".")[2])
        if phase is not None:
            progress.phase = phase
            progress.received = 0 if phase is Phase.READ else None

    return trace


def _head(response: httpx.Response, *, bodiless: bool) -> Head:
    """Return the head of a response. Raises FetchError for one that the wire would refuse."""
    status = response.status_code
    if status == 407:
        detail = "the proxy of the HTTP client wants a user and a password, or other ones"
        raise FetchError(Reason.PROXY, detail, Phase.CONNECT)
    if status < 200:
        raise bad_reply(f"the answer has status {status}, which is not a final one")
    return parsed(status, 1, response.headers.raw, bodiless=bodiless)


def _head_of(request: httpx.Request) -> bytes:
    """Return the head of a request in HTTP/1.1, from its first line to the empty one."""
    target: bytes = request.extensions.get("target", request.url.raw_path)
    lines = [b"%s %s HTTP/1.1\r\n" % (request.method.encode(), target)]
    lines += [b"%s: %s\r\n" % field for field in request.headers.raw]
    return b"".join([*lines, b"\r\n"])


def _has_credentials(client: httpx.AsyncClient) -> bool:
    """Whether a client sends cookies or a login of its own."""
    named = "cookie" in client.headers or "authorization" in client.headers
    return named or client.auth is not None or bool(client.cookies)


def _own_fields(client: httpx.AsyncClient) -> dict[str, str]:
    """Return the User-Agent and Accept of a client, unless they are httpx's defaults."""
    plain = {"User-Agent": f"python-httpx/{httpx.__version__}", "Accept": "*/*"}
    own = {name: client.headers.get(name, value) for name, value in plain.items()}
    return {name: value for name, value in own.items() if value != plain[name]}


def fetch_error(error: httpx.TransportError, progress: Progress) -> FetchError:
    """Return the FetchError for an error of a request."""
    fault = _fault(error, progress)
    return FetchError(fault.reason, fault.detail, progress.phase)


def _fault(error: httpx.TransportError, progress: Progress) -> Fault:
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
    if fault := connect_fault(chain(error), server, received):
        return fault
    numbers = (link.errno for link in chain(error) if isinstance(link, OSError) and link.errno)
    number = next(numbers, None)
    why = os.strerror(number) if number else str(error)
    return Fault(Reason.UNREACHABLE, f"{server} cannot be reached: {one_line(why)}")


def _protocol_fault(error: httpx.ProtocolError, server: str, received: int | None) -> Fault:
    text = str(error)
    if received is not None and _BODY_CUT_OFF in text:
        # What a hook or an authentication reads is not counted.
        after = f" after {received} bytes" if received else ""
        return Fault(Reason.INCOMPLETE, f"the body was cut off{after}")
    # httpcore raises its exceptions with an event or an exception of h2, which is installed only
    # for HTTP/2, as the argument.
    inside = (part for link in chain(error) for part in link.args)
    by_http2 = any(type(part).__module__.startswith("h2.") for part in inside)
    if by_http2 or _ENDED in text or _BODY_CUT_OFF in text:
        return Fault(Reason.RESET, connection_lost(server, received))
    return Fault(Reason.BAD_REPLY, f"{server} does not answer in valid HTTP: {one_line(text)}")
