"""Exchanges: what was asked and what came, kept until it is archived."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

import httpx
import trio

from trio_crawler.model import Fault, Fetch, Job, Purpose, Response

LARGE = 64 * 1024
"""Bytes of a body from which on an errand's exchange is encoded in a thread."""

_OF_REDIRECTS = range(300, 400)


class Exchange(NamedTuple):
    """Hold a request and its answer; `began` is a Unix time.

    `request` is the head of the request, `body` what came, with `size` bytes. Of a page the body
    is not kept, as its outcome has it.
    """

    url: str
    purpose: Purpose
    began: float
    request: bytes
    status: int
    headers: httpx.Headers
    size: int
    body: bytes


class Exchanges:
    """Keep the last exchange of each URL until it is taken, and those of errands, encoded.

    `encode` makes bytes of an errand's exchange (a robots.txt, a sitemap) when it comes, in a
    thread if it is large: many of them may come before the next outcome does. It gets all of
    them, also those of which another try follows; of pages only the last try counts. Probes, which
    ask only whether a host is still there, are not kept.

    `take`, `drop` and `errands` may be called in other threads than the crawl's.
    """

    def __init__(self, encode: Callable[[Exchange], bytes]) -> None:
        self._encode = encode
        self._pages: dict[str, Exchange] = {}
        self._errands: deque[bytes] = deque()

    def __len__(self) -> int:
        return len(self._pages) + len(self._errands)

    def __repr__(self) -> str:
        return f"<Exchanges: {len(self._pages)} of pages, {len(self._errands)} of errands>"

    def take(self, url: str) -> Exchange | None:
        """Give the last exchange of a page's URL away, if one is kept."""
        return self._pages.pop(url, None)

    def errands(self) -> bytes:
        """Give away what was encoded since the last time."""
        pieces = []
        # One at a time, as the crawl may add more meanwhile.
        while self._errands:
            pieces.append(self._errands.popleft())
        return b"".join(pieces)

    async def keep(self, job: Job, answer: Response | Fault, began: float) -> None:
        """Keep what came for a job; a Fault only ends what is kept of its URL's earlier tries."""
        if job.purpose is Purpose.PAGE:
            if isinstance(answer, Fault):
                self._pages.pop(job.url, None)
            else:
                self._pages[job.url] = _of_page(job, answer, began)
        elif job.purpose is not Purpose.PROBE and isinstance(answer, Response):
            exchange = _exchange(job, answer, began, answer.body)
            self._errands.append(await self._encoded(exchange))

    async def _encoded(self, exchange: Exchange) -> bytes:
        if exchange.size < LARGE:
            return self._encode(exchange)
        return await trio.to_thread.run_sync(self._encode, exchange)


class Recording:
    """Ask by `fetch`, and keep what was asked and answered."""

    def __init__(self, fetch: Fetch, exchanges: Exchanges) -> None:
        self._fetch = fetch
        self._exchanges = exchanges

    def __repr__(self) -> str:
        return f"<Recording of {self._fetch!r}>"

    @property
    def user_agent(self) -> str:
        """Return what everybody is told. Raises AttributeError if the fetch does not say."""
        agent: str = self._fetch.user_agent  # type: ignore[attr-defined]
        return agent

    async def __call__(self, job: Job) -> Response | Fault:
        """Ask for one URL, once."""
        began = time.time()
        answer = await self._fetch(job)
        await self._exchanges.keep(job, answer, began)
        return answer


def _of_page(job: Job, answer: Response, began: float) -> Exchange:
    # A redirect that says nowhere to go ends as a failure, which has no body.
    body = answer.body if answer.status in _OF_REDIRECTS else b""
    return _exchange(job, answer, began, body)


def _exchange(job: Job, answer: Response, began: float, body: bytes) -> Exchange:
    return Exchange(
        job.url,
        job.purpose,
        began,
        answer.request,
        answer.status,
        answer.headers,
        len(answer.body),
        body,
    )
