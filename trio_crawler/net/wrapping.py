"""Fetches that call another fetch and have its optional attributes, such as one that records."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import NamedTuple, TypeVar

import httpx
import trio

from trio_crawler.arguments import check_function, public
from trio_crawler.model import REDIRECTS, Fault, Fetch, Job, Purpose, Response, Validator

_Function = TypeVar("_Function", bound=Fetch)

OPTIONAL = (
    *("user_agent", "random", "cookies_for", "sends_credentials"),
    *("lookup", "addresses"),
)
"""The attributes of a fetch that a crawl reads, if it has them: see `Fetch`."""

LARGE = 64 * 1024
"""A robots.txt or sitemap with a body of at least this many bytes is encoded in a thread."""

# Checks and probes are not recorded.
_RECORDED = (Purpose.ROBOTS, Purpose.SITEMAP)


@public("trio_crawler.net")
def wrapping(fetch: Fetch) -> Callable[[_Function], _Function]:
    """Decorate a function that calls `fetch` with the optional attributes of that.

    ::

        inner = HttpFetch(seeds=seeds, auth=("me", password))

        @wrapping(inner)
        async def fetch(job: Job) -> Answer:
            async with limit:
                return await inner(job)

    Without it a crawl does not know whether `fetch` sends credentials, and follows no links with
    side effects; and it looks no name up before a worker needs it, so that it does not know which
    names share a server. See `Fetch`. The caller still
    closes `inner`. Raises TypeError if `fetch` is no function.

    >>> web = Web({"/": html("/a"), "/a": html()})
    >>> @wrapping(web)
    ... async def told(job: Job) -> Response | Fault:
    ...     print("asks for", job.url)
    ...     return await web(job)
    >>> trio.run(Crawler([web.url], fetch=told).crawl).pages
    asks for http://site.test/robots.txt
    asks for http://site.test/
    asks for http://site.test/a
    2
    """
    check_function("fetch", fetch, "a fetch, such as HttpFetch()")

    def decorated(function: _Function) -> _Function:
        for name in OPTIONAL:
            if hasattr(fetch, name):
                setattr(function, name, getattr(fetch, name))
        return function

    return decorated


class Exchange(NamedTuple):
    """A request and its response; `began` is a Unix time.

    `request` is the head of the request. `body` is the body of the response, `size` its bytes. The
    body of a page is left out, since the outcome has it. `validator` is that of the job.
    """

    url: str
    purpose: Purpose
    began: float
    request: bytes
    status: int
    headers: httpx.Headers
    size: int
    body: bytes
    validator: Validator | None = None


class Recorder:
    """The last exchange of each page, and the encoded exchanges of robots.txt files and sitemaps.

    `encode` returns the bytes for the exchange of a robots.txt or sitemap. It is called at once,
    since many of these may come before the next outcome, and in a thread if the body is large.
    Every attempt at these is recorded; of a page only the last attempt. Probes are not recorded,
    nor are repeats, since the answer before is the outcome.

    `pop`, `pop_encoded` and `len` may be called in any thread.
    """

    def __init__(self, encode: Callable[[Exchange], bytes]) -> None:
        self._encode = encode
        # By URL, and whether it was admitted again: the next request may come before `pop`.
        self._pages: dict[tuple[str, bool], Exchange] = {}
        self._encoded: deque[bytes] = deque()

    def __len__(self) -> int:
        return len(self._pages) + len(self._encoded)

    def pop(self, url: str, again: bool = False) -> Exchange | None:
        """Remove and return the last exchange of a page, None if there is none."""
        return self._pages.pop((url, again), None)

    def pop_encoded(self) -> bytes:
        """Remove and return the encoded exchanges since the last call."""
        pieces = []
        # One at a time, since the crawl may add more meanwhile.
        while self._encoded:
            pieces.append(self._encoded.popleft())
        return b"".join(pieces)

    async def record(self, job: Job, answer: Response | Fault, began: float) -> None:
        """Record the answer to a job; a Fault drops the exchange of the page's last attempt."""
        page, key = job.purpose is Purpose.PAGE, (job.url, job.again)
        if job.repeat or not (page or job.purpose in _RECORDED):
            return
        if isinstance(answer, Fault):
            if page:
                self._pages.pop(key, None)
            return
        # The body of a redirect is kept: its outcome has no body.
        body = b"" if page and answer.status not in REDIRECTS else answer.body
        exchange = Exchange(
            job.url,
            job.purpose,
            began,
            answer.request,
            answer.status,
            answer.headers,
            len(answer.body),
            body,
            job.validator,
        )
        if page:
            self._pages[key] = exchange
        elif exchange.size < LARGE:
            self._encoded.append(self._encode(exchange))
        else:
            self._encoded.append(await trio.to_thread.run_sync(self._encode, exchange))


def recording(fetch: Fetch, recorder: Recorder) -> Fetch:
    """Return a fetch that calls another fetch, and records each request and response."""

    @wrapping(fetch)
    async def recorded(job: Job) -> Response | Fault:
        began = time.time()
        answer = await fetch(job)
        await recorder.record(job, answer, began)
        return answer

    return recorded
