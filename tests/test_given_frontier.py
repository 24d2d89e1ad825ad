"""A frontier that is given says only where URLs are kept: the crawl is as polite and as short."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import httpx
import pytest
import trio
from sites.frontiers import EVERY, Opened
from sites.webs import HOME, site_of

from trio_crawler import (
    Crawler,
    Limits,
    MemoryFrontier,
    Outcome,
    Page,
    Politeness,
    Reason,
    Response,
    Sitemaps,
    Skipped,
    depth_first,
)
from trio_crawler.testing import Web, html, redirect, robots


@pytest.fixture(params=EVERY, ids=lambda make: make.__name__)
def frontiers(request, tmp_path_factory) -> Opened:
    """Open a new frontier at each call."""
    return lambda: request.param(tmp_path_factory.mktemp("frontier"))


async def crawled(web: Web, **arguments: Any) -> tuple[Crawler, list[Outcome], float]:
    """Crawl; return the crawler, the outcomes and the seconds."""
    began = trio.current_time()
    crawler = Crawler([HOME], fetch=web, **arguments)
    # In virtual time a crawl that does not end takes no longer than one that does.
    with trio.fail_after(10**6):
        async with crawler.outcomes() as outcomes:
            found = [outcome async for outcome in outcomes]
    return crawler, found, trio.current_time() - began


def ends(outcomes: list[Outcome]) -> Counter[object]:
    return Counter(o.reason if isinstance(o, Skipped) else type(o) for o in outcomes)


POLITE_AND_SHORT = {
    "politeness": Politeness(delay=1, per_host=1),
    "limits": Limits(max_pages=5),
}


async def test_a_crawl_with_the_frontier_of_its_own_is_as_polite_and_short_as_it_was_told(
    autojump_clock,
):
    web = Web(site_of(20), delay=0.1)
    crawler, _, seconds = await crawled(web, **POLITE_AND_SHORT)
    assert (web.peak, crawler.statistics().pages) == (1, 5)
    assert seconds == pytest.approx(5.1)


async def test_a_crawl_with_a_given_frontier_is_exactly_as_polite_and_as_short(
    autojump_clock, frontiers
):
    web = Web(site_of(20), delay=0.1)
    async with frontiers() as frontier:
        crawler, found, seconds = await crawled(web, frontier=frontier, **POLITE_AND_SHORT)
    assert (web.peak, crawler.statistics().pages) == (1, 5)
    assert seconds == pytest.approx(5.1, abs=0.2)
    assert ends(found)[Page] == sum(web.hits.values()) == 5


CRAWLS: dict[str, dict[str, Any]] = {
    "defaults": {},
    "one worker": {"workers": 1},
    "one request at a time": {"politeness": Politeness(per_host=1), "workers": 20},
    "two levels": {"limits": Limits(max_depth=2)},
    "one redirect": {"limits": Limits(max_redirects=1)},
    "one try": {"limits": Limits(max_tries=1)},
    "depth first": {"order": depth_first, "workers": 1},
    "folded": {"fold_canonical": True},
}


@pytest.mark.parametrize("arguments", CRAWLS.values(), ids=CRAWLS)
async def test_a_crawl_with_a_given_frontier_ends_as_one_without(
    autojump_clock, frontiers, arguments
):
    chain = {f"/r{n}": redirect(f"/r{n + 1}") for n in range(5)} | {"/r5": html("/r0", "/r3")}
    tree = {"/": html("/a", "/r2", "/r0"), "/a": html("/b"), "/b": html("/c", "/down")}
    site = chain | tree | {"/c": html(), "/down": Response(503), "/d": html("/c")}

    alone = Web(site, delay=0.1)
    first, expected, _ = await crawled(alone, **arguments)
    web = Web(site, delay=0.1)
    async with frontiers() as frontier:
        second, found, _ = await crawled(web, frontier=frontier, **arguments)
    assert {o.url: type(o) for o in found} == {o.url: type(o) for o in expected}
    assert len(found) == len(expected) == second.statistics().admitted
    assert web.hits == alone.hits
    assert web.peak == alone.peak
    assert second.statistics().retries == first.statistics().retries
    assert list(second.hosts) == list(first.hosts) == ["site.test"]


# The early end, in memory: a frontier that lasts keeps what waits.


@pytest.mark.parametrize("workers", [1, 20])
@pytest.mark.parametrize("per_host", [1, 4])
async def test_a_spent_page_budget_keeps_the_crawl_polite(autojump_clock, workers, per_host):
    web = Web(site_of(50), delay=1)
    _, found, _ = await crawled(
        web,
        frontier=MemoryFrontier(),
        limits=Limits(max_pages=3),
        politeness=Politeness(per_host=per_host),
        workers=workers,
    )
    assert ends(found) == {Page: 3, Reason.PAGE_BUDGET: 48}
    assert web.peak <= per_host
    assert sum(web.hits.values()) == 3


@pytest.mark.parametrize("limits", [Limits(max_pages=3), Limits(max_seconds=9)])
async def test_a_host_that_rests_is_not_waited_for_when_the_limits_end_the_crawl(
    autojump_clock, limits
):
    web = Web(site_of(40), delay=1)
    _, found, seconds = await crawled(web, limits=limits, politeness=Politeness(delay=2))
    assert len(found) == 41
    assert seconds <= 10


async def test_when_the_page_budget_is_spent_the_sitemaps_that_wait_are_not_fetched(
    autojump_clock,
):
    maps = [f"{HOME}{n}.xml" for n in range(30)]
    rules = robots("User-agent: *", "Crawl-delay: 5", *(f"Sitemap: {url}" for url in maps))
    text = Response(200, httpx.Headers({"content-type": "text/plain"}), f"{HOME}a".encode())
    web = Web(site_of(9) | {HOME + "robots.txt": rules} | dict.fromkeys(maps, text))
    crawler, found, seconds = await crawled(web, limits=Limits(max_pages=2))
    assert ends(found)[Page] == 2
    assert seconds <= 40
    left = {record.flaws for record in crawler.sitemaps() if not web.hits[record.url]}
    assert left == {(Reason.PAGE_BUDGET,)}


@pytest.mark.parametrize("seconds", [1, 10])
async def test_a_spent_page_budget_does_not_wait_for_retry_after(autojump_clock, seconds):
    busy = Response(503, httpx.Headers({"retry-after": "300"}))
    theirs = "http://other.test/s.xml"
    web = Web(site_of(9) | {theirs: busy}, delay=lambda job: seconds if job.url == theirs else 1)
    sitemaps = Sitemaps(also=[theirs, HOME + "s.xml"])
    _, found, taken = await crawled(web, limits=Limits(max_pages=3), sitemaps=sitemaps)
    assert ends(found) == {Page: 3, Reason.PAGE_BUDGET: 7}
    assert web.hits[theirs] == 1
    assert taken <= 3 + seconds


def test_any_number_of_requests_at_once_cannot_be_meant():
    with pytest.raises((TypeError, ValueError), match="per_host must be a whole number"):
        Politeness(per_host=math.inf)
