"""A small crawl that checks links, into a directory; as a program it can be killed.

    python checking.py DIRECTORY LOG

writes each URL that it asks for to the log.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

import trio

from trio_crawler import Checked, Checks, Crawler, History, Outcome, Page, SqliteFrontier
from trio_crawler.check.link_check import LinkCheck
from trio_crawler.model import Answer, Job, Response
from trio_crawler.testing import Site, Web, html, redirect

HOME, OUT = "http://site.test/", "http://out.test/"
WORKERS = 3


def place(*names: str) -> Response:
    """Return a page with these places."""
    return Response(200, html().headers, "".join(f"<p id={name}>" for name in names).encode())


def checked_site() -> Site:
    """Make a site with links of all ends; some are checked first, and read for a place later."""
    return {
        "/": html("/a", "/gone", f"{OUT}fine", f"{OUT}gone", f"{OUT}read", f"{OUT}moved"),
        "/a": html("/b", "/places#here", "/places#nowhere", f"{OUT}lost"),
        "/b": html(
            f"{OUT}read#here",
            f"{OUT}read#nowhere",
            f"{OUT}fine#no",
            f"{OUT}moved#there",
            # The fragment of the redirect counts.
            f"{OUT}own#nowhere",
            "/own#nowhere",
            "/leaves#there",
            "/leaves#nowhere",
        ),
        "/own": redirect("/places#here"),
        "/leaves": redirect(f"{OUT}far"),
        f"{OUT}far": place("there"),
        f"{OUT}own": redirect(f"{OUT}there#there"),
        "/places": place("here"),
        f"{OUT}fine": html(),
        f"{OUT}read": place("here"),
        f"{OUT}moved": redirect(f"{OUT}there"),
        f"{OUT}there": place("there"),
        f"{OUT}lost": redirect(f"{OUT}nowhere"),
    }


class Checking:
    """A crawl with checks; each call of `run` goes on with it."""

    def __init__(self, home: Path) -> None:
        self.directory = home / "crawl"
        self.web = Web(checked_site(), delay=0.01)

    async def ask(self, job: Job) -> Answer:
        """Ask the web."""
        return await self.web(job)

    async def run(self) -> None:
        """Crawl to the end, and see that the sum is right."""
        async with SqliteFrontier(self.directory) as frontier:
            made = {"checks": Checks(delay=0), "frontier": frontier, "workers": WORKERS}
            totals = await Crawler([HOME], fetch=self.ask, **made).crawl()
        ended = totals.pages + totals.redirects + totals.failures + totals.skipped + totals.checked
        assert totals.admitted == ended
        assert totals.waiting == totals.in_flight == 0

    def outcomes(self) -> list[Outcome]:
        """Return what is stored."""
        with History(self.directory) as history:
            found = list(history.outcomes())
            totals = history.statistics()
        assert totals.admitted == len(found)
        assert totals.checked == sum(isinstance(each, Checked) for each in found)
        return found

    def complaints(self, whole: Checking, asked: Counter[str], stops: int) -> list[str]:
        """Compare with a crawl that was not stopped; this one was, so many times."""
        ours, theirs = self.outcomes(), whole.outcomes()
        counts = Counter((each.url, each.again) for each in ours)
        # A web does not count requests for a robots.txt that it lacks; each crawl makes one.
        once = {url: max(1, whole.web.hits[url]) for url in asked}
        extra = sum(max(many - once[url], 0) for url, many in asked.items())
        wrong = [f"{url} has {many} outcomes" for (url, _), many in counts.items() if many > 1]
        if places(ours) != places(theirs):
            wrong.append(f"other URLs or places: {places(ours).items() ^ places(theirs).items()}")
        if findings(ours) != findings(theirs):
            wrong.append(f"other findings: {findings(ours) ^ findings(theirs)}")
        # The robots.txt of the site is no job of the workers.
        if extra > stops * (2 * WORKERS + 1):
            wrong.append(f"{extra} asked for again in {stops} stops")
        return wrong


def places(outcomes: Iterable[Outcome]) -> dict[str, frozenset[int] | None]:
    """Return the places of each URL, by its last outcome; each of a page has its links, too."""
    found: dict[str, frozenset[int] | None] = {}
    for each in outcomes:
        found[each.url] = each.targets if isinstance(each, Page | Checked) else None
        assert not isinstance(each, Page) or bool(each.found) == bool(each.links or each.rejected)
    return found


def findings(outcomes: Iterable[Outcome]) -> set[tuple[str | None, str, str, str, int, int]]:
    """Return the findings of a crawl."""
    with closing(LinkCheck()) as check:
        for outcome in outcomes:
            check.add(outcome)
        return {
            (each.page, each.url, each.fragment, each.code, each.line, each.column)
            for each in check.findings()
        }


class Logged(Checking):
    """A crawl that writes each URL that it asks for to a file."""

    def __init__(self, home: Path, log: Path) -> None:
        super().__init__(home)
        self._log = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    async def ask(self, job: Job) -> Answer:
        """Log the URL, and ask the web."""
        os.write(self._log, f"{job.url}\n".encode())
        return await super().ask(job)


if __name__ == "__main__":
    trio.run(Logged(Path(sys.argv[1]), Path(sys.argv[2])).run)
