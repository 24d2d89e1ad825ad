"""A web in memory, for tests of crawls in virtual time.

async def test_every_page_is_found(autojump_clock):
    web = Web({"/": html("/a", "/b"), "/a": html(), "/b": redirect("/a")}, delay=1)
    totals = await Crawler([web.url], fetch=web).crawl()
    assert (totals.pages, totals.redirects) == (2, 1)
"""

import heapq
import random
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from html import escape
from typing import TypeAlias

import httpx
import trio

from trio_crawler.arguments import (
    check_function,
    check_kind,
    check_number,
    check_whole,
    several_strings,
)
from trio_crawler.in_trio import check_in_trio
from trio_crawler.model import REDIRECTS, Answer, Fault, Job, Purpose, Reason, Response
from trio_crawler.page.urls import web_url

__all__ = ["Site", "Web", "fault", "html", "redirect", "robots"]

Site: TypeAlias = Mapping[str, Answer | Callable[[Job], Answer]]
"""The answer for each path or URL, or a function that returns the answer to a job."""


# Passes of Trio between two answers; a crawler needs four.
_PASSES = 8


@dataclass(order=True, slots=True)
class _Due:
    """An answer that is due; `chosen` is set when it may be the next."""

    is_page: bool
    url: str
    tries: int
    number: int
    chosen: trio.Event = field(default_factory=trio.Event, compare=False)


class Web:
    """A fetch that answers from the mapping `site`, and with 404 for a URL that is not in it.

    A key is a path (on the host of `url`) or a whole URL; a value is an answer, or a function from
    the job to an answer. `delay` is in seconds, or a function from the job to seconds. A
    robots.txt that is not in the mapping is answered with 404 at once, and is not counted.

    `hits` counts the requests by URL, `in_flight` is the number of requests without an answer yet,
    and `peak` is the highest value that it had. `random` is seeded: the same crawl of a new `Web`
    takes exactly the same virtual time.

    >>> web = Web({"/": html("/a"), "/a": fault(Reason.TIMEOUT)}, delay=0.01)
    >>> trio.run(Crawler([web.url], fetch=web).crawl).failures
    1
    >>> web.hits["http://site.test/"], web.peak
    (1, 1)
    """

    sends_credentials = False

    def __init__(
        self,
        site: Site,
        *,
        url: str | httpx.URL = "http://site.test/",
        delay: float | Callable[[Job], float] = 0.0,
    ) -> None:
        check_kind("site", site, Mapping, "a mapping from paths to answers")
        for path, answer in site.items():
            check_kind("each path in site", path, str, "a path or URL as a str")
            if not isinstance(answer, Response | Fault):
                check_function("each answer in site", answer, "a Response, a Fault or a function")
        if not callable(delay):
            check_number("delay", delay, finite=True)
        self.url = web_url("url", url)
        self.hits: Counter[str] = Counter()
        self.in_flight = 0
        self.peak = 0
        self.random = random.Random(self.url)  # noqa: S311 - nothing is secret
        self._delay = delay
        self._due: list[_Due] = []
        self._next: _Due | None = None
        self._number = 0
        self._answers = {self._absolute(path): answer for path, answer in site.items()}

    def __repr__(self) -> str:
        return f"<Web {self.url}: {len(self._answers)} answers>"

    async def __call__(self, job: Job) -> Answer:
        """Return the answer to a job, after the delay."""
        check_in_trio("Web")
        if job.purpose is Purpose.ROBOTS and job.url not in self._answers:
            await trio.lowlevel.checkpoint()
            return Response(404)
        self.hits[job.url] += 1
        self.in_flight += 1
        self.peak = max(self.peak, self.in_flight)
        try:
            await trio.sleep(self._delay(job) if callable(self._delay) else self._delay)
        finally:
            self.in_flight -= 1
        await self._turn(job)
        answer = self._answers.get(job.url)
        if answer is None:
            return Response(404)
        return answer(job) if callable(answer) else answer

    async def _turn(self, job: Job) -> None:
        """Wait until this answer is the first of those that are due now.

        Trio runs the tasks that are due at one moment in a random order. So the answers come one
        by one, sitemaps first, ordered by URL, some passes of Trio apart, in which a crawler does
        all that follows from an answer: the same crawl takes the same course each time.
        """
        self._number += 1
        mine = _Due(job.purpose is not Purpose.SITEMAP, job.url, job.tries, self._number)
        heapq.heappush(self._due, mine)
        if self._next is None:
            self._next = mine
        try:
            while True:
                while self._next is not mine:
                    await mine.chosen.wait()
                    mine.chosen = trio.Event()
                for _ in range(_PASSES):
                    await trio.lowlevel.checkpoint()
                if self._due[0] is mine:
                    break
                self._choose()
        finally:
            if self._due[0] is mine:
                heapq.heappop(self._due)
            else:
                # It was cancelled.
                self._due.remove(mine)
                heapq.heapify(self._due)
            if self._next is mine:
                self._choose()

    def _choose(self) -> None:
        """Let the first of the answers that are due come next."""
        self._next = self._due[0] if self._due else None
        if self._next is not None:
            self._next.chosen.set()

    def _absolute(self, path: str) -> str:
        return self.url.rstrip("/") + path if path.startswith("/") else path


def html(*links: str, title: str = "", status: int = 200) -> Response:
    """Return a page with this `status` that links to `links`.

    >>> html("/a", title="Home").body
    b'<!doctype html><title>Home</title><a href="/a">/a</a>'
    """
    several_strings("links", links)
    check_kind("title", title, str, "a str")
    anchors = "".join(f'<a href="{escape(link)}">{escape(link)}</a>' for link in links)
    text = f"<!doctype html><title>{escape(title)}</title>{anchors}"
    return Response(status, _content_type("text/html; charset=utf-8"), text.encode())


def robots(*lines: str) -> Response:
    r"""Return a robots.txt of these lines.

    >>> robots("User-agent: *", "Disallow: /private/").body
    b'User-agent: *\nDisallow: /private/'
    """
    several_strings("lines", lines)
    return Response(200, _content_type("text/plain"), "\n".join(lines).encode())


def redirect(target: str, status: int = 302) -> Response:
    """Return a redirect to `target` with this `status`.

    >>> redirect("/new", 301).headers["location"]
    '/new'
    """
    check_kind("target", target, str, "a URL or a path as a str")
    check_whole("status", status)
    if status not in REDIRECTS:
        raise ValueError(f"status must be one of {sorted(REDIRECTS)}, not {status}")
    return Response(status, httpx.Headers([(b"location", target.encode())]))


def fault(reason: Reason = Reason.RESET, detail: str = "made by the test") -> Fault:
    """Return a network fault.

    >>> fault(Reason.TLS, "expired")
    Fault(reason=<Reason.TLS: 'tls'>, detail='expired', phase=None, about=None)
    """
    return Fault(reason, detail)


def _content_type(value: str) -> httpx.Headers:
    return httpx.Headers({"content-type": value})
