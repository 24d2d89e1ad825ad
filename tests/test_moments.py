"""What a crawler can be asked and told before, during and after its run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from trio_crawler import (
    Crawler,
    Frontier,
    History,
    MemoryFrontier,
    Reason,
    Response,
    Sitemaps,
    Skipped,
    SqliteFrontier,
    Statistics,
)
from trio_crawler.model import Listing, Sitemap
from trio_crawler.testing import Web, html

HOME = "http://site.test/"
MAP = HOME + "map.xml"
LISTED = Response(200, body=f"<urlset><url><loc>{HOME}a</loc></url></urlset>".encode())
SITE = {"/": html("/a", "/b"), "/a": html(), "/b": html(), "/map.xml": LISTED}


def asked(crawler: Crawler) -> tuple[Any, ...]:
    """Ask for everything that a crawler knows of itself."""
    hosts = {name: host.in_flight for name, host in crawler.hosts.items()}
    return crawler.statistics(), hosts, crawler.sitemaps(), crawler.listing(HOME + "a")


async def everything_asked(frontier: Frontier) -> None:
    web = Web(SITE, delay=lambda job: {HOME + "a": 2, HOME + "b": 3}.get(job.url, 1))
    crawler = Crawler([HOME], fetch=web, sitemaps=Sitemaps(also=[MAP]), frontier=frontier)
    assert asked(crawler) == (Statistics(), {}, (), None)
    assert "0 URLs admitted" in repr(crawler)
    pages, in_flight = [], []
    async with crawler.outcomes() as outcomes:
        async for _ in outcomes:
            totals, hosts, *from_sitemaps = asked(crawler)
            pages.append(totals.pages)
            in_flight.append(hosts["site.test"])
    # The home page and the sitemap come together; then only the pages that they name are fetched.
    assert (pages, in_flight[1:]) == ([1, 2, 3], [1, 0])
    last = asked(crawler)
    assert last[0].pages == last[0].admitted == 3
    assert last[1:] == (hosts, *from_sitemaps)
    assert from_sitemaps == [(Sitemap(MAP, "urlset", 1, last[2][0].admitted),), Listing(MAP)]
    assert "3 URLs admitted" in repr(crawler)


async def test_a_crawler_in_memory_answers_at_any_moment(autojump_clock):
    await everything_asked(MemoryFrontier())


async def test_a_crawler_that_lasts_answers_at_any_moment(autojump_clock, tmp_path):
    async with SqliteFrontier(tmp_path) as frontier:
        await everything_asked(frontier)


async def test_a_crawl_that_is_stopped_before_it_begins_skips_its_seeds(autojump_clock):
    web = Web(SITE)
    crawler = Crawler([HOME], fetch=web)
    crawler.stop(Reason.TIME_BUDGET)
    crawler.stop()
    async with crawler.outcomes() as outcomes:
        found = [outcome async for outcome in outcomes]
    assert (found, dict(web.hits)) == ([Skipped(HOME, Reason.TIME_BUDGET)], {})


async def test_a_crawl_that_lasts_and_is_stopped_before_it_begins_keeps_its_seeds(
    autojump_clock, tmp_path: Path
):
    web = Web(SITE)
    async with SqliteFrontier(tmp_path) as frontier:
        crawler = Crawler([HOME], fetch=web, frontier=frontier)
        crawler.stop(Reason.TIME_BUDGET)
        totals = await crawler.crawl()
    assert (totals.waiting, dict(web.hits)) == (1, {})
    with History(tmp_path) as history:
        assert [run.reason for run in history.runs] == [Reason.TIME_BUDGET]


@pytest.mark.parametrize("late", [Reason.STOPPED, Reason.TIME_BUDGET])
async def test_a_crawl_that_is_over_stays_as_it_ended(autojump_clock, late):
    crawler = Crawler([HOME], fetch=Web(SITE))
    totals = await crawler.crawl()
    crawler.stop(late)
    assert crawler.statistics() == totals
    assert totals.skipped == 0
