"""Crawls of small webs in virtual time: what their tests have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import trio

from trio_crawler import Crawler, Fault, Fetch, Job, Outcome, Response
from trio_crawler.model import Purpose
from trio_crawler.testing import html

HOME = "http://site.test/"
OTHER = "http://other.test/"
ROBOTS = HOME + "robots.txt"

Answer: TypeAlias = Response | Fault
Site: TypeAlias = dict[str, Answer | Callable[[Job], Answer]]


def everything(job: Job) -> bool:
    """Admit every URL: the whole web, as far as the links lead."""
    return True


class Log:
    """Ask a web, and keep the jobs with the time at which each was asked for."""

    def __init__(self, web: Fetch) -> None:
        self.asked: list[tuple[float, Job]] = []
        self._web = web

    async def __call__(self, job: Job) -> Answer:
        self.asked.append((trio.current_time(), job))
        return await self._web(job)

    @property
    def urls(self) -> list[str]:
        """List the URLs, each as often as it was asked for."""
        return [job.url for _, job in self.asked]

    def times(self, url: str) -> list[float]:
        """Tell when a URL was asked for."""
        return [time for time, job in self.asked if job.url == url]

    def of(self, purpose: Purpose) -> list[tuple[float, str]]:
        """Tell when what was asked for with such a purpose."""
        return [(time, job.url) for time, job in self.asked if job.purpose is purpose]


async def collect(crawler: Crawler, within: float = 10**7) -> list[Outcome]:
    """Crawl to the end and return the outcomes, one for each URL that was admitted.

    In virtual time a crawl that does not end takes no longer than one that does. It must be
    `within` math.inf seconds if anything is read in a thread: the clock does not wait for that.
    """
    with trio.fail_after(within):
        async with crawler.outcomes() as outcomes:
            found = [outcome async for outcome in outcomes]
    totals = crawler.statistics()
    ended = totals.pages + totals.redirects + totals.failures + totals.skipped + totals.checked
    assert totals.admitted == ended == len(found) == len({outcome.url for outcome in found})
    return found


def site_of(pages: int, home: str = HOME) -> Site:
    """Make a home page that links to so many leaves."""
    leaves = [f"{home}{number}" for number in range(pages)]
    return {home: html(*leaves), **dict.fromkeys(leaves, html())}
