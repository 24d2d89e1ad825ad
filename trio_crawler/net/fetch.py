"""HttpFetch: ask for one URL, once, and say what came of it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Collection
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import httpx
import trio

from trio_crawler.model import Fault, Job, Reason, Response
from trio_crawler.net.client import ClientTransport
from trio_crawler.net.connection import CLOSING, abandon
from trio_crawler.net.decode import BadBody, Body, codings
from trio_crawler.net.faults import fault_of
from trio_crawler.net.pool import Pool, PoolStatistics
from trio_crawler.net.request import DEFAULT_USER_AGENT, Headers, Requests, authority
from trio_crawler.policy.limits import Limits

__all__ = ["DEFAULT_USER_AGENT", "FetchStatistics", "HttpFetch"]

MOST_HEADER_LINES = 256
MOST_HEADER_BYTES = 64 * 1024

_REDIRECTS = frozenset({300, 301, 302, 303, 307, 308})
_WITHOUT_BODY = frozenset({204, 304})


@dataclass(frozen=True, slots=True)
class FetchStatistics:
    """Count what was asked and what came: `bytes` are those of bodies, as they were sent.

    `pool` is None when the transport or the client is the caller's.
    """

    requests: int = 0
    bytes: int = 0
    pool: PoolStatistics | None = None


class HttpFetch:
    """Ask for a URL with GET, within `limits.timeout` and `limits.max_bytes`.

    The body of a redirect is not read; that of an error (400 and up) is not decoded, and given
    as empty if it was encoded. `headers` are sent only to `origins` (such as
    `https://example.org`, as normalised URLs have them; None: to all) and replace the defaults
    there. The pool of its own is closed by `aclose` or at the end of `async with`; a transport
    or client that is passed in stays the caller's to close. A client adds its headers, cookies,
    authentication and timeouts, and gets one response hook, which acts on these requests only.

    Raises ValueError, naming the header or origin, for one that cannot be meant.
    """

    def __init__(
        self,
        transport: httpx.AsyncBaseTransport | httpx.AsyncClient | None = None,
        *,
        limits: Limits = Limits(),  # noqa: B008 - it is frozen
        headers: Headers = (),
        user_agent: str = DEFAULT_USER_AGENT,
        origins: Collection[str] | None = None,
    ) -> None:
        client = transport if isinstance(transport, httpx.AsyncClient) else None
        self._requests = Requests(client, headers=headers, user_agent=user_agent, origins=origins)
        self._pool: Pool | None = None
        if transport is None:
            transport = self._pool = Pool()
        elif isinstance(transport, httpx.AsyncClient):
            transport = ClientTransport(transport)
        self._transport = transport
        self._limits = limits
        self._asked = 0
        self._bytes = 0

    async def __aenter__(self) -> HttpFetch:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the pool, if it is this object's own."""
        if self._pool is not None:
            await self._pool.aclose()

    def __repr__(self) -> str:
        return f"<HttpFetch: {self._asked} requests, {self._bytes} bytes>"

    def statistics(self) -> FetchStatistics:
        """Count the requests and bytes up to this moment."""
        pool = None if self._pool is None else self._pool.statistics()
        return FetchStatistics(self._asked, self._bytes, pool)

    async def __call__(self, job: Job) -> Response | Fault:
        """Ask for `job.url`; what the network does wrong comes back as a Fault.

        Anything else is a bug, of this package or of the caller's transport, and is raised.
        """
        progress = _Progress(authority(job.url))
        try:
            request = self._requests.make(job.url, progress.trace)
        except (httpx.InvalidURL, UnicodeError) as error:
            await trio.lowlevel.checkpoint()
            return Fault(Reason.BAD_URL, f"this URL cannot be asked for: {str(error)!a}")
        self._asked += 1
        with trio.move_on_after(self._limits.timeout):
            return await self._ask(request, progress)
        limit = f"the limit of {self._limits.timeout:g} seconds"
        return Fault(Reason.TIMEOUT, f"{limit} was over while {progress.phase()}")

    async def _ask(self, request: httpx.Request, progress: _Progress) -> Response | Fault:
        try:
            response = await self._transport.handle_async_request(request)
            progress.received = 0
            return await self._answer(response, progress)
        except BadBody as error:
            return error.fault
        except (httpx.TransportError, OSError) as error:
            return fault_of(error, progress.peer, progress.received)

    async def _answer(self, response: httpx.Response, progress: _Progress) -> Response | Fault:
        parts: AsyncIterator[bytes] | None = None
        try:
            answer = self._judge_head(response)
            if answer is None:
                parts = _parts(response)
                answer = await self._read(response, parts, progress)
            return answer
        finally:
            with trio.move_on_after(CLOSING, shield=True):
                if isinstance(parts, AsyncGenerator):
                    await abandon(parts)
                await response.aclose()

    def _judge_head(self, response: httpx.Response) -> Response | Fault | None:
        """Answer from the head alone, where that is possible."""
        status, headers = response.status_code, response.headers
        if status < 200:
            return Fault(Reason.BAD_REPLY, f"status {status} was not asked for")
        if fault := _head_fault(headers):
            return fault
        if _is_redirect(response) and headers.get("content-length") != "0":
            return Response(status, headers)
        length = _announced(response)
        if length is not None and length > self._limits.max_bytes:
            detail = f"the body has {length} bytes; {self._limits.max_bytes} are the limit"
            return Fault(Reason.TOO_LARGE, detail)
        return None

    async def _read(
        self, response: httpx.Response, parts: AsyncIterator[bytes], progress: _Progress
    ) -> Response | Fault:
        status, headers = response.status_code, response.headers
        coded = [] if status in _WITHOUT_BODY else codings(headers)
        body = Body(self._limits.max_bytes, coded if status < 400 else ())
        async for chunk in parts:
            progress.received = (progress.received or 0) + len(chunk)
            self._bytes += len(chunk)
            body.feed(chunk)
        length = _announced(response)
        received = progress.received or 0
        if length is not None and received < length:
            return Fault(Reason.INCOMPLETE, f"{received} of {length} bytes of the body came")
        whole = body.finish()
        return Response(status, headers, b"" if coded and status >= 400 else whole)


class _Progress:
    """Note how far one fetch has come, for the sentence that says where it ended."""

    __slots__ = ("_connecting", "peer", "received")

    def __init__(self, peer: str) -> None:
        self.peer = peer
        self.received: int | None = None
        self._connecting = False

    async def trace(self, event: str, details: Any) -> None:
        """Follow httpcore's events; other transports send none."""
        if event.endswith("connect_tcp.started"):
            self._connecting = True
        elif event.endswith("send_request_headers.started"):
            self._connecting = False

    def phase(self) -> str:
        """Say what was going on."""
        if self.received is not None:
            return f"reading the body of {self.peer}, after {self.received} bytes"
        if self._connecting:
            return f"connecting to {self.peer}"
        return f"waiting for the answer of {self.peer}"


def _parts(response: httpx.Response) -> AsyncIterator[bytes]:
    # Never aiter_bytes: httpx decodes without a bound.
    if not isinstance(response.stream, httpx.AsyncByteStream):
        raise TypeError("the transport answered with a body that is not asynchronous")
    return aiter(response.stream)


def _is_redirect(response: httpx.Response) -> bool:
    return response.status_code in _REDIRECTS and "location" in response.headers


def _head_fault(headers: httpx.Headers) -> Fault | None:
    lines = headers.raw
    size = sum(len(name) + len(value) for name, value in lines)
    if len(lines) > MOST_HEADER_LINES or size > MOST_HEADER_BYTES:
        what = f"{len(lines)} header lines with {size} bytes"
        most = f"{MOST_HEADER_LINES} lines with {MOST_HEADER_BYTES}"
        return Fault(Reason.BAD_REPLY, f"the answer has {what}; {most} are the limit")
    return None


def _announced(response: httpx.Response) -> int | None:
    """Return the Content-Length where it counts (RFC 9112, 6.3), else None."""
    headers = response.headers
    if response.status_code in _WITHOUT_BODY or "transfer-encoding" in headers:
        return None
    figures = set(headers.get_list("content-length", split_commas=True))
    if not figures:
        return None
    figure = figures.pop().strip()
    if figures or not figure.isascii() or not figure.isdigit() or len(figure) > 20:
        raise BadBody(Reason.BAD_REPLY, "the Content-Length is not one number")
    return int(figure)
