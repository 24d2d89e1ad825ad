"""An in-memory web, for tests of crawls in virtual time: ours and yours.

async def test_every_page_is_found(autojump_clock):
    web = Web({"/": html("/a", "/b"), "/a": html(), "/b": redirect("/a")}, delay=1)
    totals = await Crawler([web.url], fetch=web).crawl()
    assert (totals.pages, totals.redirects) == (2, 1)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from html import escape
from typing import TypeAlias

import httpx
import trio

from trio_crawler.model import Fault, Job, Purpose, Reason, Response

Answer: TypeAlias = Response | Fault
"""What a fetch gives for a job."""

Site: TypeAlias = Mapping[str, Answer | Callable[[Job], Answer]]
"""What each path or URL answers, or a function of the job that says so."""


class Web:
    """Answer from a dict of paths (on `url`) or whole URLs; anything else gives 404.

    A value may be a function of the job. `delay` is in seconds, or a function of the job.
    `hits` counts the requests by URL, `flying` is how many are under way, `peak` the most that
    ever were. A robots.txt that is not in the dict gives its 404 at once, and is not counted.
    """

    def __init__(
        self,
        site: Site,
        *,
        url: str = "http://site.test/",
        delay: float | Callable[[Job], float] = 0.0,
    ) -> None:
        self.url = url
        self.hits: Counter[str] = Counter()
        self.flying = 0
        self.peak = 0
        self._delay = delay
        self._answers = {self._absolute(path): answer for path, answer in site.items()}

    async def __call__(self, job: Job) -> Answer:
        """Answer one job after the delay."""
        if job.purpose is Purpose.ROBOTS and job.url not in self._answers:
            await trio.lowlevel.checkpoint()
            return Response(404)
        self.hits[job.url] += 1
        self.flying += 1
        self.peak = max(self.peak, self.flying)
        try:
            await trio.sleep(self._delay(job) if callable(self._delay) else self._delay)
        finally:
            self.flying -= 1
        answer = self._answers.get(job.url, Response(404))
        return answer(job) if callable(answer) else answer

    def _absolute(self, path: str) -> str:
        return self.url.rstrip("/") + path if path.startswith("/") else path


def html(*links: str, title: str = "", status: int = 200) -> Response:
    """Make a page that links to `links`."""
    anchors = "".join(f'<a href="{escape(link)}">{escape(link)}</a>' for link in links)
    text = f"<!doctype html><title>{escape(title)}</title>{anchors}"
    return Response(status, _type("text/html; charset=utf-8"), text.encode())


def robots(*lines: str) -> Response:
    """Make a robots.txt of these lines."""
    return Response(200, _type("text/plain"), "\n".join(lines).encode())


def redirect(target: str, status: int = 302) -> Response:
    """Make a response that leads to `target`."""
    return Response(status, httpx.Headers([(b"location", target.encode())]))


def fault(reason: Reason = Reason.RESET, detail: str = "made by the test") -> Fault:
    """Make a network fault."""
    return Fault(reason, detail)


def _type(media: str) -> httpx.Headers:
    return httpx.Headers({"content-type": media})
