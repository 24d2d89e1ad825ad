"""A crawl that is done but for a few URLs of hosts that stay away ends soon."""

from __future__ import annotations

import pytest
import trio
from sites.webs import site_of

from trio_crawler import Crawler, Fault, Job, Phase, Politeness, Reason, Response
from trio_crawler.policy.host_state import MAX_REST, SHORT_PATIENCE
from trio_crawler.testing import Web

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
