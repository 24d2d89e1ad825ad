"""A frontier that was given, with limits of its own: the crawl ends, and keeps its manners."""

from __future__ import annotations

import math
from collections import Counter

import httpx
import pytest
import trio

from trio_crawler import (
    Crawler,
    Fault,
    Limits,
    MemoryFrontier,
    Outcome,
    Page,
    Politeness,
    Reason,
    Response,
    Skipped,
)
from trio_crawler.testing import Web, html, redirect, robots

HOME = "http://site.test/"
MAP = HOME + "s.xml"


async def collect(crawler: Crawler) -> list[Outcome]:
    # In virtual time a crawl that does not end takes no longer.
    with trio.fail_after(10**6):
        async with crawler.outcomes() as outcomes:
            found = [outcome async for outcome in outcomes]
    totals = crawler.statistics()
    ended = totals.pages + totals.redirects + totals.failures + totals.skipped
    assert totals.admitted == ended == len(found) == len({outcome.url for outcome in found})
    return found


def site_of(pages: int) -> dict[str, Response | Fault]:
    leaves = [f"{HOME}{number}" for number in range(pages)]
    return {HOME: html(*leaves), **dict.fromkeys(leaves, html())}


def ends(outcomes: list[Outcome]) -> Counter[object]:
    return Counter(o.reason if isinstance(o, Skipped) else type(o) for o in outcomes)


@pytest.mark.parametrize("workers", [1, 10, 50])
async def test_the_page_budget_of_a_crawler_ends_it_though_the_frontier_has_none(
    autojump_clock, workers
):
    limits = Limits(max_pages=3)
    web = Web(site_of(40), delay=1)
    crawler = Crawler([HOME], fetch=web, limits=limits, frontier=MemoryFrontier(), workers=workers)
    found = ends(await collect(crawler))
    assert found.keys() == {Page, Reason.PAGE_BUDGET}
    # The frontier does not know of the budget: what is under way when it is spent comes, too.
    assert 3 <= found[Page] <= 3 + 2 * 4
    assert sum(found.values()) == 41
    assert web.peak <= 4
    assert trio.current_time() <= 5


@pytest.mark.parametrize("limits", [Limits(max_pages=3), Limits(max_seconds=9)])
async def test_what_rests_is_not_waited_for_when_the_limits_of_the_crawler_end_it(
    autojump_clock, limits
):
    web = Web(site_of(40), delay=1)
    slowly = MemoryFrontier(politeness=Politeness(delay=2))
    crawler = Crawler([HOME], fetch=web, limits=limits, frontier=slowly)
    found = await collect(crawler)
    assert len(found) == 41
    assert trio.current_time() <= 10


@pytest.mark.parametrize("workers", [1, 20])
@pytest.mark.parametrize("per_host", [1, 4])
async def test_a_spent_budget_of_a_frontier_keeps_its_manners(autojump_clock, workers, per_host):
    frontier = MemoryFrontier(Limits(max_pages=3), Politeness(per_host=per_host))
    web = Web(site_of(50), delay=1)
    found = await collect(Crawler([HOME], fetch=web, frontier=frontier, workers=workers))
    assert ends(found) == {Page: 3, Reason.PAGE_BUDGET: 48}
    assert web.peak <= per_host
    assert sum(web.hits.values()) == 3


async def test_a_spent_budget_of_a_frontier_refuses_its_sitemaps_too(autojump_clock):
    maps = [f"{HOME}{n}.xml" for n in range(30)]
    rules = robots("User-agent: *", "Crawl-delay: 5", *(f"Sitemap: {url}" for url in maps))
    text = Response(200, httpx.Headers({"content-type": "text/plain"}), f"{HOME}a".encode())
    web = Web(site_of(9) | {HOME + "robots.txt": rules} | dict.fromkeys(maps, text))
    crawler = Crawler([HOME], fetch=web, frontier=MemoryFrontier(Limits(max_pages=2)))
    found = await collect(crawler)
    assert ends(found)[Page] == 2
    assert trio.current_time() <= 40
    left = {record.flaws for record in crawler.sitemaps() if not web.hits[record.url]}
    assert left == {(Reason.PAGE_BUDGET,)}


@pytest.mark.parametrize("seconds", [1, 10])
async def test_a_spent_budget_of_a_frontier_does_not_wait_for_retry_after(autojump_clock, seconds):
    busy = Response(503, httpx.Headers({"retry-after": "300"}))
    theirs = "http://other.test/s.xml"
    web = Web(site_of(9) | {theirs: busy}, delay=lambda job: seconds if job.url == theirs else 1)
    frontier = MemoryFrontier(Limits(max_pages=3))
    crawler = Crawler([HOME], fetch=web, sitemaps=[theirs, MAP], frontier=frontier)
    found = await collect(crawler)
    assert ends(found) == {Page: 3, Reason.PAGE_BUDGET: 7}
    assert web.hits[theirs] == 1
    assert trio.current_time() <= 3 + seconds


@pytest.mark.parametrize(
    ("limits", "theirs"),
    [
        (Limits(), Limits(max_depth=1)),
        (Limits(max_depth=2), Limits()),
        (Limits(max_redirects=1), Limits(max_redirects=10)),
        (Limits(max_redirects=10), Limits(max_redirects=1)),
        (Limits(max_tries=1), Limits(max_tries=9)),
        (Limits(max_tries=9), Limits(max_tries=1)),
    ],
    ids=str,
)
async def test_whatever_its_other_limits_each_url_ends_once(autojump_clock, limits, theirs):
    chain = {f"/r{n}": redirect(f"/r{n + 1}") for n in range(5)} | {"/r5": html("/r0", "/r3")}
    tree = {"/": html("/a", "/r2", "/r0"), "/a": html("/b"), "/b": html("/c", "/down")}
    web = Web(chain | tree | {"/c": html(), "/down": Response(503)}, delay=0.1)
    found = await collect(
        Crawler([HOME], fetch=web, limits=limits, frontier=MemoryFrontier(theirs))
    )
    assert {HOME, HOME + "a", HOME + "b"} <= {outcome.url for outcome in found}


async def test_the_politeness_of_the_frontier_counts(autojump_clock):
    web = Web(site_of(20), delay=1)
    frontier = MemoryFrontier(politeness=Politeness(per_host=2))
    await collect(Crawler([HOME], fetch=web, frontier=frontier, politeness=Politeness(per_host=9)))
    assert web.peak == 2


def test_any_number_of_requests_at_once_cannot_be_meant():
    with pytest.raises(ValueError, match="per_host must be 1 or more, not inf"):
        Politeness(per_host=math.inf)
