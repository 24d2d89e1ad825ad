"""Fetch one URL, under one deadline and the bounds of its purpose."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from inspect import isawaitable
from math import inf
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeAlias

import trio

from trio_crawler.arguments import check_flag, check_kind, check_number, check_whole
from trio_crawler.in_trio import check_in_trio
from trio_crawler.model import REDIRECTS, Fault, Job, Phase, Purpose, Reason, Record, Response
from trio_crawler.net.decode import SLOTS, Body, decoded
from trio_crawler.net.errors import AskAgain, FetchError
from trio_crawler.net.http1.connection import Connection
from trio_crawler.net.http1.message import Fields, Head, content_codings
from trio_crawler.net.http1.wire import MAX_BYTES
from trio_crawler.net.request import Headers, fields_of
from trio_crawler.net.statistics import FetchStatistics, WireStatistics
from trio_crawler.net.turn import DEADLINES, TURN, Progress
from trio_crawler.page.media import HTML, XHTML, declared_type, is_attachment, is_read
from trio_crawler.page.urls import origin
from trio_crawler.policy.answers import ReceivedHeaders, conditions_of
from trio_crawler.policy.robots import MAX_BYTES as ROBOTS_BYTES

if TYPE_CHECKING:
    from trio_crawler.net.cookies import CookieStore

TIMEOUT = 30.0
"""The default deadline of one fetch, in seconds."""

SITEMAP_BYTES = 50 * 1024 * 1024
"""The default bound on the bytes of a sitemap (sitemaps.org)."""

SMALL_BYTES = 64 * 1024
"""A body of at most this many bytes is read even if nothing needs it, to keep the connection."""

# The reason of a deadline that passes before the server was reached.
_UNREACHED = {
    Phase.RESOLVE: Reason.DNS,
    Phase.CONNECT: Reason.CONNECT_TIMEOUT,
    Phase.TLS: Reason.CONNECT_TIMEOUT,
}

Request: TypeAlias = Callable[[Job], Headers | Awaitable[Headers]]
"""Returns headers for the request of a job."""


class Bounds(Record, frozen=True):
    """Bounds on the body of a response.

    A body of more than `max_bytes` is a fault, or is cut there with `truncate`; after `enough`
    bytes as sent no more is read. Without `errors` the body of an error response (400 and up) is
    not read. With `pages` bodies that a crawl does not need are not.
    """

    max_bytes: int
    truncate: bool = False
    enough: float = inf
    errors: bool = True
    pages: bool = False


def bounds_within(max_bytes: int) -> dict[Purpose, Bounds]:
    """Return the bounds for each purpose, of a fetch that reads at most `max_bytes` of a page."""
    # A limit below the default, or above 50 MiB, applies to sitemaps too.
    sitemap = max_bytes if max_bytes < MAX_BYTES else max(max_bytes, SITEMAP_BYTES)
    return {
        **dict.fromkeys(Purpose, Bounds(max_bytes, truncate=True, pages=True)),
        Purpose.ROBOTS: Bounds(ROBOTS_BYTES, truncate=True, enough=ROBOTS_BYTES, errors=False),
        Purpose.SITEMAP: Bounds(sitemap, errors=False),
    }


class Source(Protocol):
    """The body of one response."""

    async def read(self) -> bytes:
        """Return the next bytes, or none at the end of the body. Raises FetchError."""


class Network(Protocol):
    """A way to send requests: the wire of this package, or httpx."""

    closes_late: bool
    """Whether `progress.deadlines` close the connection of a request."""

    async def ask(
        self,
        url: str,
        progress: Progress,
        max_bytes: int,
        added: Fields | None,
        *,
        head_only: bool = False,
    ) -> tuple[Any, Head, bytes]:
        """Send a GET request with the `added` fields; return when its head was received.

        With `head_only` it is a HEAD request.

        Returns a Source of the body, the head of the response, and the head of the request as it
        was sent. The caller passes the Source to `release`, also if it did not read the body to
        its end. The network may refuse a body of more than `max_bytes`. Raises FetchError.
        """

    async def release(self, source: Any) -> None:
        """Reuse or close the connection of a response."""

    def statistics(self) -> WireStatistics | None:
        """Return the counts of connections and bytes; None if the caller owns the connections."""

    async def aclose(self) -> None:
        """Close the connections, unless the caller owns them."""


class Fetcher:
    """Fetch one URL in each call, over a network: the base of `HttpFetch` and `HttpxFetch`.

    `user_agent` is the User-Agent that is sent to every server. `cookies_for` returns the value of
    the Cookie header that a request for a URL would have now; it is None without a CookieStore.
    `sends_credentials` is whether requests have cookies, a login or a certificate of the client.
    `request` returns more fields for a job, at the origins in `own`.
    """

    def __init__(
        self,
        network: Network,
        *,
        user_agent: str,
        cookies: CookieStore | None,
        timeout: float,
        max_bytes: int,
        bodies: bool = True,
        cookies_for: Callable[[str], str | None] | None = None,
        sends_credentials: bool = False,
        request: Request | None = None,
        own: frozenset[str] = frozenset(),
    ) -> None:
        check_number("timeout", timeout, above=True)
        check_whole("max_bytes", max_bytes, least=1)
        check_flag("bodies", bodies)
        self.user_agent = user_agent
        self._network = network
        self.cookies_for = None if cookies is None else cookies_for
        self.sends_credentials = sends_credentials
        self._cookies = cookies
        self._small = min(SMALL_BYTES, max_bytes)
        self._request, self._own = request, own
        self._timeout = timeout
        self._bounds = bounds_within(max_bytes)
        self._bodies = bodies
        self._max_bytes = max_bytes
        self._slots = trio.Semaphore(SLOTS)
        self._requests = 0
        self._bytes = 0
        self._closed = False

    async def __aenter__(self) -> Self:
        check_in_trio(type(self).__name__)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections, but never a client or transport that the caller owns."""
        self._closed = True
        await self._network.aclose()

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self._requests} requests, {self._bytes} bytes>"

    def statistics(self) -> FetchStatistics:
        """Return the counts of requests, bytes and connections at this moment."""
        return FetchStatistics(self._requests, self._bytes, self._network.statistics())

    async def __call__(self, job: Job) -> Response | Fault:
        """Fetch `job.url`; return its response, or a Fault for an error of the network.

        Raises RuntimeError after `aclose`, and under asyncio. Any other exception is a bug, in
        this package or in the caller's client or transport.
        """
        self._check_open()
        check_kind("job", job, Job, "a Job")
        progress, turn, deadlines = Progress(""), TURN.get(), DEADLINES.get()
        try:
            deadline = trio.current_time() + self._timeout
            kept = deadlines is not None and deadlines.are_kept and self._network.closes_late
            if kept and turn is None and self._request is None:
                progress.deadline, progress.deadlines = deadline, deadlines
                return await self._fetch(job, progress)
            with trio.CancelScope(deadline=deadline) as scope:
                if turn is not None:
                    turn.adopt(scope)
                    progress.turn = turn
                return await self._fetch(job, progress)
        except FetchError as error:
            self._requests -= error.fault.reason is Reason.BAD_URL
            if trio.current_time() < progress.deadline:
                return error.fault
        except RuntimeError:
            # Here, since a check of each call would cost more.
            check_in_trio(type(self).__name__)
            raise
        limit = f"the limit of {self._timeout:g} seconds"
        reason = _UNREACHED.get(progress.phase, Reason.TIMEOUT)
        return Fault(reason, f"{limit} was over while {progress}", progress.phase)

    def _check_open(self) -> None:
        if self._closed:
            raise RuntimeError(f"this {type(self).__name__} is closed: make another one")

    async def _fetch(self, job: Job, progress: Progress) -> Response | Fault:
        self._requests += 1
        network, bounds = self._network, self._bounds[job.purpose]
        added = conditions_of(job.validator) if job.validator else None
        if self._request is not None and origin(job.url) in self._own:
            made = self._request(job)
            fields = fields_of(await made if isawaitable(made) else made, "the result of request")
            added = [*(added or []), *fields]
        # A server that answers HEAD wrongly is asked by GET at the next try.
        head_only = job.purpose is Purpose.CHECK and job.tries <= 1
        while True:
            try:
                source, head, sent = await network.ask(
                    job.url, progress, bounds.max_bytes, added, head_only=head_only
                )
                if progress.turn is not None:
                    progress.turn.answer()
                try:
                    return await self._response(job, source, head, sent, progress, bounds)
                finally:
                    await network.release(source)  # noqa: ASYNC102 - it shields itself
            except AskAgain as error:
                if not progress.repeat(http1=error.http1):
                    raise

    async def _response(
        self,
        job: Job,
        source: Source,
        head: Head,
        sent: bytes,
        progress: Progress,
        bounds: Bounds,
    ) -> Response:
        headers, status = ReceivedHeaders(head.fields, head.values), head.status
        if self._cookies is not None and job.purpose is not Purpose.ROBOTS:
            # No robot needs a session to read the rules.
            self._cookies.store(job.url, headers)
        length, limit = head.length, bounds.max_bytes
        small = length is not None and length <= self._small and not head.encoding
        if small and status == 200 and isinstance(source, Connection):
            # ▶ Most bodies come with their heads; the steps below take 8 us more.
            whole = source.take_whole()
            if whole is not None:
                self._bytes += len(whole)
                return Response(status, headers, whole, sent)
        redirects = status in REDIRECTS and b"location" in head.values
        if redirects or (status >= 400 and not bounds.errors):
            return Response(status, headers, request=sent)
        if bounds.pages and (flaw := self._needless(job, head)) is not None:
            return Response(status, headers, request=sent, flaw=flaw)
        if length is not None and length > limit and not bounds.truncate:
            detail = f"the body has {length} bytes; {limit} are the limit"
            raise FetchError(Reason.TOO_LARGE, detail, Phase.READ)
        body, cut = await self._body(source, head, progress, bounds)
        return Response(status, headers, body, sent, Reason.TOO_LARGE if cut else None)

    def _needless(self, job: Job, head: Head) -> Reason | None:
        """Return why the body of a page is left after its head; None if it is to be read."""
        length, named = head.length, head.values
        kind = declared_type(named.get(b"content-type", b"").decode("latin-1"))
        if job.purpose is Purpose.CHECK:
            return Reason.NOT_READ if length is None or length > SMALL_BYTES else None
        needed = is_read(kind)
        if needed and kind not in (HTML, XHTML):
            needed = not is_attachment(named.get(b"content-disposition", b"").decode("latin-1"))
        if not (self._bodies or needed) and (length is None or length > SMALL_BYTES):
            return Reason.NOT_READ
        too_long = length is not None and length > self._max_bytes
        return Reason.TOO_LARGE if too_long and not (needed and head.status < 400) else None

    async def _body(
        self, source: Source, head: Head, progress: Progress, bounds: Bounds
    ) -> tuple[bytes, bool]:
        """Return a body, and whether it was cut."""
        coded = content_codings(head.encoding) if head.encoding and head.length != 0 else []
        body = Body(bounds.max_bytes, coded if head.status < 400 else (), bounds.truncate)
        try:
            while not (body.cut or body.size >= bounds.enough) and (piece := await source.read()):
                self._bytes += len(piece)
                body.feed(piece)
        except FetchError as error:
            # The bound on all bytes, with the framing, was reached before the bound on the body.
            if not bounds.truncate or error.fault.reason is not Reason.TOO_LARGE:
                raise
            body.cut = True
        body.cut = body.cut or body.size >= bounds.enough
        progress.decoding = True
        content = await decoded(body, self._slots, progress.deadline)
        unread = head.status == 304 or (coded and head.status >= 400)
        return b"" if unread else content, body.cut
