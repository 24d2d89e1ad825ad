"""A crawl that is done but for a few URLs of hosts that stay away ends soon."""

from __future__ import annotations

import httpx
import pytest
import trio
from sites.webs import collect, site_of

from trio_crawler import Crawler, Fault, Job, Page, Phase, Politeness, Reason, Response
from trio_crawler.schedule.host_state import MAX_REST, SHORT_PATIENCE
from trio_crawler.testing import Web, html

WELL, AWAY = "http://well.test/", "http://away.test/"
SILENT = Fault(Reason.CONNECT_TIMEOUT, "no answer", Phase.CONNECT)


async def lasted(well: int, away: int, *, both: bool = False, patience: float = 360.0) -> float:
    """Crawl two hosts with so many pages, one of which, or both, is soon away."""
    web = Web(site_of(well, WELL) | site_of(away, AWAY), delay=0.05)

    async def fetch(job: Job) -> Response | Fault:
        gone = trio.current_time() - begun > 0.2 and (both or job.url.startswith(AWAY))
        return SILENT if gone else await web(job)

    begun = trio.current_time()
    politeness = Politeness(patience=patience)
    await Crawler([WELL, AWAY], fetch=fetch, politeness=politeness).crawl()
    return trio.current_time() - begun


async def test_a_crawl_waits_a_minute_for_the_last_one_in_a_hundred_of_its_urls(autojump_clock):
    assert SHORT_PATIENCE <= await lasted(3000, 25) <= SHORT_PATIENCE + 2 * MAX_REST


async def test_a_crawl_waits_as_long_as_ever_for_more_of_its_urls(autojump_clock):
    assert await lasted(300, 100) >= 360


async def test_a_crawl_waits_as_long_as_ever_if_no_other_host_was_answered_since(autojump_clock):
    assert await lasted(3000, 25, both=True) >= 360


@pytest.mark.parametrize("patience", [0, 20])
async def test_a_shorter_patience_counts(autojump_clock, patience):
    assert await lasted(3000, 25, patience=patience) <= 80


CLOSED = Fault(Reason.CONNECTION_REFUSED, "no answer", Phase.CONNECT)


async def lasted_with_closed(closed: str) -> float:
    """Crawl a site with a link to a host that refuses connections."""
    site = {"http://site.test:8080/": html(closed)}
    web = Web({**site, closed: CLOSED, robots_of(closed): CLOSED})
    begun = trio.current_time()
    page, failure = await collect(Crawler(list(site), fetch=web, scope=lambda job: True))
    assert isinstance(page, Page)
    assert (failure.url, failure.reason) == (closed, Reason.CONNECTION_REFUSED)
    return trio.current_time() - begun


def robots_of(url: str) -> str:
    return str(httpx.URL(url).join("/robots.txt"))


async def test_a_closed_port_of_the_sites_own_host_delays_a_crawl_by_half_a_second(autojump_clock):
    assert 0.2 <= await lasted_with_closed("http://site.test:8000/") <= 0.6


async def test_another_host_that_refuses_connections_has_all_its_tries(autojump_clock):
    assert await lasted_with_closed("http://other.test:8080/") >= 1.5
