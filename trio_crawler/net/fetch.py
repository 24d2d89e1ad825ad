"""HttpFetch: ask for one URL, once, and say what came of it."""

from __future__ import annotations

import ssl
from collections.abc import Iterable
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import httpx
import trio

from trio_crawler.model import Fault, Job, Phase, Purpose, Reason, Response
from trio_crawler.net.decode import Body, Turns, whole
from trio_crawler.net.direct import Direct
from trio_crawler.net.errors import Faulty
from trio_crawler.net.head import Fields, Head, content_codings
from trio_crawler.net.httpx.adapter import Outside
from trio_crawler.net.httpx.http2 import Relay, Relayed
from trio_crawler.net.progress import Progress
from trio_crawler.net.request import (
    DEFAULT_USER_AGENT,
    Headers,
    Requests,
    defaults_for,
    seeds_of,
    several,
    user_agent_of,
)
from trio_crawler.net.tls import Security
from trio_crawler.net.wire import Wire, WireStatistics
from trio_crawler.policy.conditional import conditions_of
from trio_crawler.policy.limits import MAX_BYTES, Limits
from trio_crawler.policy.robots.parse import MOST_BYTES as ROBOTS_BYTES

if TYPE_CHECKING:
    from trio_crawler.net.cookies import CookieStore

__all__ = [
    "DEFAULT_USER_AGENT",
    "ROBOTS_BYTES",
    "SITEMAP_BYTES",
    "FetchStatistics",
    "HttpFetch",
]

SITEMAP_BYTES = 50 * 1024 * 1024
"""What a sitemap may have (sitemaps.org), unless the limits say otherwise."""

_REDIRECTS = frozenset({300, 301, 302, 303, 307, 308})
# Where the deadline met a fetch that had not reached its server: a packet may have been lost.
_UNREACHED = {
    Phase.RESOLVE: Reason.DNS,
    Phase.CONNECT: Reason.CONNECT_TIMEOUT,
    Phase.TLS: Reason.CONNECT_TIMEOUT,
}


@dataclass(frozen=True, slots=True)
class FetchStatistics:
    """Count what was asked and what came: `bytes` are those of bodies, as they were sent.

    `wire` is None when the transport or the client is the caller's.
    """

    requests: int = 0
    bytes: int = 0
    wire: WireStatistics | None = None


class _Terms(NamedTuple):
    """Say what is read of an answer: `most` bytes of its body, the rest is `cut` off or a fault.

    Without `errors` the body of an error is not read at all.
    """

    most: int
    cut: bool = False
    errors: bool = True


class Source(Protocol):
    """Give the body of one answer, piece by piece, and no bytes at its end."""

    async def read(self) -> bytes:
        """Return the next bytes."""


class Network(Protocol):
    """Ask for one URL; what `ask` gives is read to its end or not, and then released."""

    async def ask(
        self, url: str, progress: Progress, most: int, added: Fields | None
    ) -> tuple[Any, Head, bytes]:
        """Return a Source of the answer's body, the answer's head, and that of the request.

        Bodies of `most` bytes have to come whole; `added` fields are for this request only.
        """

    async def release(self, answer: Any) -> None:
        """Take an answer back."""


class HttpFetch:
    """Ask for a URL with GET, within `limits.timeout` and `limits.max_bytes`.

    The body of a redirect is not read; that of an error (400 and up) is not decoded, and given
    as empty if it was encoded.

    `job.purpose` makes a difference: of a robots.txt `ROBOTS_BYTES` are given and the rest is cut
    off, whatever the limits say; a sitemap may have `SITEMAP_BYTES`, or `limits.max_bytes` if
    that is more, or less than its default. The body of an error is not read for either. With
    `job.validator` the request is conditional; a 304 comes with an empty body.

    Everybody is told the `user_agent`, which can be read here, and, in From, an e-mail address to
    write to: `contact`.
    `headers` and `auth` (user, password) go only to the origins of `seeds`, and only the seeds'
    own private addresses may be connected to, besides those that `allow_private` lists
    (`10.0.0.0/8`, `192.168.1.7`). Cookies are kept if there is a `CookieStore` for them.
    Certificates are verified, against the list of the certifi package or by `tls`, except those
    of `insecure_hosts`. `http2`, a `proxy` (URL) and, with `trust_env`, those of the usual
    environment variables go by httpx's own transport; a proxy connects to what it likes.

    A `transport` or a client that is passed in replaces all of that but the headers and the
    cookies, and stays the caller's to close; a client adds its headers, cookies, authentication
    and timeouts, and gets one response hook, which acts on these requests only. What is made
    here is closed by `aclose` or at the end of `async with`.

    Raises ValueError, naming it, for what cannot be meant, and TypeError for a single str where
    several are.
    """

    def __init__(
        self,
        transport: httpx.AsyncBaseTransport | httpx.AsyncClient | None = None,
        *,
        limits: Limits = Limits(),  # noqa: B008 - it is frozen
        user_agent: str = DEFAULT_USER_AGENT,
        contact: str | None = None,
        seeds: Iterable[str] = (),
        headers: Headers = (),
        auth: tuple[str, str] | None = None,
        cookies: CookieStore | None = None,
        allow_private: Iterable[str] = (),
        insecure_hosts: Iterable[str] = (),
        tls: ssl.SSLContext | None = None,
        http2: bool = False,
        proxy: str | None = None,
        trust_env: bool = False,
    ) -> None:
        seeds = seeds_of(seeds)
        client = transport if isinstance(transport, httpx.AsyncClient) else None
        defaults = defaults_for(user_agent, client, contact)
        self.user_agent = user_agent_of(defaults, client)
        requests = Requests(defaults, seeds=seeds, headers=headers, auth=auth, cookies=cookies)
        self._own: Wire | Relay | None = None
        if transport is None:
            security = Security(tls, several(insecure_hosts, "insecure_hosts"))
            wire = Wire(seeds=seeds, allow_private=allow_private, security=security)
            self._own = transport = wire
            if http2 or proxy or trust_env:
                transport = Relay(wire, security, http2=http2, proxy=proxy, trust_env=trust_env)
                self._own = transport
        self._network = _network(requests, transport)
        self._cookies = cookies
        self._limits = limits
        self._terms = _terms_within(limits.max_bytes)
        self._turns = Turns()
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
        """Close the connections, if they are this object's own."""
        if self._own is not None:
            await self._own.aclose()

    def __repr__(self) -> str:
        return f"<HttpFetch: {self._asked} requests, {self._bytes} bytes>"

    def statistics(self) -> FetchStatistics:
        """Count the requests and bytes up to this moment."""
        wire = None if self._own is None else self._own.statistics()
        return FetchStatistics(self._asked, self._bytes, wire)

    async def __call__(self, job: Job) -> Response | Fault:
        """Ask for `job.url`; what the network does wrong comes back as a Fault.

        Anything else is a bug, of this package or of the caller's transport, and is raised.
        """
        progress = Progress("")
        try:
            # Not move_on_after, which takes 4 us more.
            with trio.CancelScope(deadline=trio.current_time() + self._limits.timeout):
                return await self._ask(job, progress)
        except Faulty as error:
            self._asked -= error.fault.reason is Reason.BAD_URL
            return error.fault
        limit = f"the limit of {self._limits.timeout:g} seconds"
        reason = _UNREACHED.get(progress.phase, Reason.TIMEOUT)
        return Fault(reason, f"{limit} was over while {progress}", progress.phase)

    async def _ask(self, job: Job, progress: Progress) -> Response | Fault:
        self._asked += 1
        network, terms = self._network, self._terms[job.purpose]
        conditions = conditions_of(job.validator) if job.validator else None
        answer, head, sent = await network.ask(job.url, progress, terms.most, conditions)
        try:
            return await self._answer(job.url, answer, head, sent, progress, terms)
        finally:
            await network.release(answer)  # noqa: ASYNC102 - it shields itself where it waits

    async def _answer(
        self,
        url: str,
        answer: Source,
        head: Head,
        sent: bytes,
        progress: Progress,
        terms: _Terms,
    ) -> Response:
        headers, status = httpx.Headers(head.fields), head.status
        if self._cookies is not None:
            self._cookies.store(url, headers)
        if status >= 400 and not terms.errors:
            return Response(status, headers, request=sent)
        if status in _REDIRECTS and "location" in headers:
            return Response(status, headers, request=sent)
        if head.length is not None and head.length > terms.most and not terms.cut:
            detail = f"the body has {head.length} bytes; {terms.most} are the limit"
            raise Faulty(Reason.TOO_LARGE, detail, Phase.READ)
        body = await self._body(answer, head, progress, terms)
        return Response(status, headers, body, sent)

    async def _body(self, answer: Source, head: Head, progress: Progress, terms: _Terms) -> bytes:
        coded = content_codings(head.encoding) if head.encoding and head.length != 0 else []
        body = Body(terms.most, coded if head.status < 400 else (), terms.cut)
        try:
            while not body.full and (piece := await answer.read()):
                self._bytes += len(piece)
                body.feed(piece)
        except Faulty as error:
            # What an answer may have in all was used up by what is around the body.
            if not terms.cut or error.fault.reason is not Reason.TOO_LARGE:
                raise
            body.full = True
        progress.decoding = True
        decoded = await whole(body, self._turns)
        unread = head.status == 304 or (coded and head.status >= 400)
        return b"" if unread else decoded


def _terms_within(max_bytes: int) -> dict[Purpose, _Terms]:
    # A limit that was lowered counts for sitemaps too, and one that is above the protocol's.
    sitemap = max_bytes if max_bytes < MAX_BYTES else max(max_bytes, SITEMAP_BYTES)
    return {
        **dict.fromkeys(Purpose, _Terms(max_bytes)),
        Purpose.ROBOTS: _Terms(ROBOTS_BYTES, cut=True, errors=False),
        Purpose.SITEMAP: _Terms(sitemap, errors=False),
    }


def _network(
    requests: Requests, transport: httpx.AsyncBaseTransport | httpx.AsyncClient
) -> Network:
    if isinstance(transport, Wire):
        return Direct(requests, transport)
    if isinstance(transport, Relay):
        return Relayed(requests, transport)
    return Outside(requests, transport)
