"""The same crawl of a web in memory takes the same time, to the last digit."""

from __future__ import annotations

import math
from random import Random

import pytest
import trio
import trio.testing

from trio_crawler import Crawler, Job, Page, Politeness, Reason
from trio_crawler.model import Answer
from trio_crawler.testing import Site, Web, fault, html

PAGES = [f"/{number}" for number in range(30)]


def troubled() -> Site:
    """Return a site: every third page fails twice, every seventh answers 503 once."""
    tries: dict[str, int] = {}

    def page(job: Job) -> Answer:
        number = int(job.url.rpartition("/")[2])
        tries[job.url] = tries.get(job.url, 0) + 1
        if not number % 3 and tries[job.url] < 3:
            return fault(Reason.RESET)
        if not number % 7 and tries[job.url] < 2:
            return html(status=503)
        return html("/")

    return {"/": html(*PAGES), **dict.fromkeys(PAGES, page)}


def times(random: Random | None = None) -> dict[str, tuple[int, float]]:
    """Crawl; return the tries and the time of the outcome of each URL."""

    async def main() -> dict[str, tuple[int, float]]:
        found: dict[str, tuple[int, float]] = {}
        begun = trio.current_time()
        web = Web(troubled(), delay=0.3)
        crawler = Crawler([web.url], fetch=web, politeness=Politeness(delay=0.1), random=random)
        async with crawler.outcomes() as outcomes:
            async for outcome in outcomes:
                assert isinstance(outcome, Page)
                found[outcome.url] = outcome.tries, trio.current_time() - begun
        return found

    return trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))


def test_a_crawl_with_faults_takes_the_same_times_to_the_last_digit():
    first = times()
    assert len(first) == 1 + len(PAGES)
    assert max(tries for tries, _ in first.values()) == 3
    for _ in range(3):
        assert times() == first


def test_a_generator_of_the_caller_decides_the_times():
    first = times(Random(1))
    assert times(Random(1)) == first
    assert times(Random(2)) != first


@pytest.mark.parametrize("tries", [1, 2, 3])
async def test_the_jitter_of_a_url_does_not_depend_on_what_else_is_crawled(autojump_clock, tries):
    async def second_try(extra: int) -> float:
        site = {f"/{n}": fault() for n in range(extra)} | {"/x": fault()}
        at: list[float] = []
        web = Web(site)

        async def noted(job: Job) -> Answer:
            if job.url.endswith("/x"):
                at.append(trio.current_time())
            return await web(job)

        urls = [web.url + "x", *(f"http://other{n}.test/" for n in range(extra))]
        politeness = Politeness(patience=0, robots=False)
        await Crawler(urls, fetch=noted, politeness=politeness, random=Random(5)).crawl()
        return at[tries] - at[0] if len(at) > tries else math.nan

    alone = await second_try(0)
    assert alone > 0
    assert await second_try(4) == pytest.approx(alone, abs=1e-9)
