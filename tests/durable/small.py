"""A small crawl into a directory, in virtual time and without sockets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import httpx
import trio
from durable import compare

from trio_crawler import Crawler, Limits, Outcome, SqliteFrontier, Statistics
from trio_crawler.model import Answer, Job, Reason, Response
from trio_crawler.report.lines import to_jsonl
from trio_crawler.testing import Site, Web, fault, html, redirect, robots

WORKERS = 3
_SLOW = {"/slow": 0.1, "/slower": 0.5}
_XML = httpx.Headers({"content-type": "application/xml"})
_MAP = b"""<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">
<url><loc>http://site.test/orphan</loc></url></urlset>"""


def small_site() -> Site:
    """Make a site with one of each: what redirects, fails, comes late, is a copy, is listed."""
    asked: Counter[str] = Counter()

    def at_second(job: Job) -> Answer:
        asked[job.url] += 1
        return html("/after", title="late") if asked[job.url] > 1 else Response(503)

    return {
        "/robots.txt": robots(
            "User-agent: *", "Disallow: /no", "Sitemap: http://site.test/map.xml"
        ),
        "/map.xml": Response(200, _XML, _MAP),
        "/": html("/a", "/b", "/moved", "/gone", "/late", "/down", "/one/x", "/one/y", "/no"),
        "/a": html("/b", "/a/1", "/a/2", "http://other.test/", title="A"),
        "/b": html("/", "/a", title="B"),
        "/a/1": html("/a/2"),
        "/a/2": html(),
        "/moved": redirect("/hop"),
        "/hop": redirect("/there"),
        "/there": html("/"),
        "/gone": Response(404),
        "/late": at_second,
        "/after": html(),
        "/down": fault(Reason.TLS),
        "/one/x": html("/only"),
        "/one/y": html("/only"),
        "/only": html("/a"),
        "/orphan": html("/"),
    }


class Small:
    """A crawl of a small site into a directory; each call of `run` goes on with it."""

    def __init__(
        self,
        home: Path,
        site: Callable[[], Site] = small_site,
        limits: Limits | None = None,
        *,
        fold: bool = False,
        either: Collection[str] = (),
    ) -> None:
        self.directory = home / "crawl"
        self.lines = home / "pages.jsonl"
        # A site of its own: what answers otherwise at the second time begins anew.
        self.web = Web(site(), delay=lambda job: _SLOW.get(job.url[16:], 0.01))
        self._limits = limits or Limits()
        self._fold = fold
        self._either = either

    async def run(self, last: int | None = None, *, refresh: bool = False) -> Statistics:
        """Crawl until the end, until whatever ends it, or stop after so many outcomes."""
        seen = 0
        async with AsyncExitStack() as stack:
            frontier = SqliteFrontier(self.directory, refresh=refresh)
            await stack.enter_async_context(frontier)
            stream = frontier.stream(self.lines, to_jsonl)
            crawler = self._crawler(frontier)
            outcomes = await stack.enter_async_context(crawler.outcomes())
            async for outcome in outcomes:
                stream.add(outcome)
                seen += 1
                if seen == last:
                    crawler.stop()
        return crawler.statistics()

    def _crawler(self, frontier: SqliteFrontier) -> Crawler:
        return Crawler(
            [self.web.url],
            limits=self._limits,
            frontier=frontier,
            fetch=self.web,
            fold_canonical=self._fold,
            workers=WORKERS,
        )

    def outcomes(self) -> list[Outcome]:
        """Return what is stored."""
        return compare.stored(self.directory)

    def complaints(self, whole: Small, stops: int) -> list[str]:
        """Compare with a crawl that was not stopped; this one was, so many times."""
        found = self.outcomes()
        due = whole.web.hits
        extra = sum(max(many - due[url], 0) for url, many in self.web.hits.items())
        # Its robots.txt is no job of the workers.
        most = stops * (2 * WORKERS + 1)
        again = [f"{extra} asked for again in {stops} stops"] if extra > most else []
        missing = due.keys() - self.web.hits.keys()
        return [
            *compare.outcomes(found, whole.outcomes(), self._either),
            *compare.database(self.directory),
            *compare.lines(self.lines, found),
            *again,
            *(f"{url} was not asked for" for url in missing),
        ]


async def whole_crawl(crawl: Small) -> Small:
    """Run a crawl to its end, and see that all is as it must be."""
    assert law(await crawl.run())
    assert crawl.complaints(crawl, stops=0) == []
    return crawl


async def at_once(work: Callable[..., Any], *args: Any, **_: Any) -> Any:
    """Do the work of a thread here, while other tasks have their turn before and after.

    In place of `trio.to_thread.run_sync` it makes a crawl the same each time, and three times as
    quick: a clock that jumps spins while a thread is at work.
    """
    await trio.lowlevel.checkpoint_if_cancelled()
    await trio.lowlevel.cancel_shielded_checkpoint()
    done = work(*args)
    await trio.lowlevel.cancel_shielded_checkpoint()
    return done


def law(figures: Statistics) -> bool:
    """Tell whether the account of a crawl that was whole is right."""
    ended = figures.pages + figures.redirects + figures.failures + figures.skipped
    return figures.admitted == ended and not figures.waiting and not figures.in_flight
