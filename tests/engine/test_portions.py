"""A page with many links and a crawl with many seeds: the loop is not held, nothing is lost."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
import trio

from trio_crawler import Crawler, Frontier, Limits, MemoryFrontier, Page, SqliteFrontier, Traps
from trio_crawler.engine.links import _SLICE
from trio_crawler.engine.outbox import PORTION
from trio_crawler.testing import Web, html

MANY = 3 * PORTION + 7


class Admitted(trio.abc.Instrument):
    """Note how many URLs each step of a task admits; call `then` after a step that admits any."""

    def __init__(self, frontier: Frontier) -> None:
        self.frontier = frontier
        self.before = 0
        self.most = 0
        self.scope: trio.CancelScope | None = None

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        now = self.frontier.statistics().admitted
        self.most = max(self.most, now - self.before)
        self.before = now
        if self.scope is not None and PORTION < now < MANY:
            self.scope.cancel()


@pytest.fixture(params=["memory", "lasting"])
async def frontier(request, tmp_path):
    if request.param == "memory":
        yield MemoryFrontier()
    else:
        async with SqliteFrontier(tmp_path / "crawl") as lasting:
            yield lasting


def many_links() -> Web:
    paths = [f"/page/{number}" for number in range(MANY)]
    return Web({"/": html(*paths)} | {path: html(title=path) for path in paths})


async def test_the_links_of_a_page_are_admitted_in_portions(frontier, autojump_clock):
    web = many_links()
    crawler = Crawler([web.url], fetch=web, frontier=frontier)
    admitted = Admitted(frontier)
    trio.lowlevel.add_instrument(admitted)
    totals = await crawler.crawl()
    trio.lowlevel.remove_instrument(admitted)
    assert totals.pages == MANY + 1
    # In a directory the last portion is settled with the page.
    assert PORTION <= admitted.most < 2 * PORTION


async def test_seeds_are_admitted_in_portions(frontier, autojump_clock):
    web = many_links()
    seeds = [f"{web.url}page/{number}" for number in range(MANY)]
    crawler = Crawler(seeds, fetch=web, frontier=frontier)
    steps: list[int] = []
    before = 0

    class Waiting(trio.abc.Instrument):
        def after_task_step(self, task: trio.lowlevel.Task) -> None:
            nonlocal before
            now = frontier.statistics().unsettled
            steps.append(now - before)
            before = now

    waiting = Waiting()
    await trio.lowlevel.checkpoint()
    trio.lowlevel.add_instrument(waiting)
    totals = await crawler.crawl()
    trio.lowlevel.remove_instrument(waiting)
    assert totals.pages == MANY
    # The join begins with one unit.
    assert max(steps[1:]) <= PORTION + 1


@pytest.mark.parametrize("limits", [Limits(), Limits(max_depth=1), Limits(max_pages=MANY)])
async def test_a_link_to_a_seed_that_is_not_admitted_yet_does_not_find_it(limits, autojump_clock):
    paths = [f"/seed/{number}" for number in range(MANY)]
    web = Web({path: html(paths[-1], "/deep", title=path) for path in paths} | {"/deep": html()})
    seeds = [web.url.rstrip("/") + path for path in paths]
    found = {}
    crawler = Crawler(seeds, fetch=web, limits=limits)
    async with crawler.outcomes() as outcomes:
        async for outcome in outcomes:
            found[outcome.url] = outcome.depth, outcome.referrer
    assert found[seeds[-1]] == (0, None)
    assert len(found) == MANY + 1
    assert set(web.hits.values()) == {1}


async def test_the_links_of_a_page_are_rejected_in_order_however_many(autojump_clock):
    known = [f"/page/{number}" for number in range(2 * _SLICE)]
    outside = [f"http://other.test/{number}" for number in range(2 * _SLICE + 1)]
    web = Web({"/": html("/again", *known), "/again": html(*outside, "http://[", *known)})
    crawler = Crawler([web.url], fetch=web, traps=Traps.off(), scope=lambda job: "site" in job.url)
    async with crawler.outcomes() as outcomes:
        async for outcome in outcomes:
            if outcome.url.endswith("/again"):
                break
    assert isinstance(outcome, Page)
    assert [link.url for link in outcome.rejected] == ["http://[", *outside]
    assert outcome.links == tuple(web.url.rstrip("/") + path for path in known)
    assert crawler.statistics().admitted == len(known) + 2


async def test_a_caller_that_is_cancelled_between_portions_loses_nothing(frontier, autojump_clock):
    web = many_links()
    crawler = Crawler([web.url], fetch=web, frontier=frontier)
    admitted = Admitted(frontier)
    found: Counter[str] = Counter()
    async with crawler.outcomes() as outcomes:
        first = await anext(outcomes)
        trio.lowlevel.add_instrument(admitted)
        with trio.CancelScope() as admitted.scope:
            await anext(outcomes)
        trio.lowlevel.remove_instrument(admitted)
        assert admitted.scope.cancelled_caught
        assert PORTION < frontier.statistics().admitted < MANY
        found[first.url] += 1
        async for outcome in outcomes:
            found[outcome.url] += 1
    assert set(found.values()) == {1}
    assert len(found) == crawler.statistics().admitted == MANY + 1


async def test_a_crawl_that_is_cancelled_between_portions_goes_on(tmp_path: Path, autojump_clock):
    web = many_links()
    found: Counter[str] = Counter()
    async with SqliteFrontier(tmp_path / "crawl") as frontier:
        admitted = Admitted(frontier)
        trio.lowlevel.add_instrument(admitted)
        with trio.CancelScope() as admitted.scope:
            await Crawler([web.url], fetch=web, frontier=frontier).crawl()
        trio.lowlevel.remove_instrument(admitted)
        assert admitted.scope.cancelled_caught
        assert PORTION < frontier.statistics().admitted < MANY
    async with SqliteFrontier(tmp_path / "crawl") as frontier:
        crawler = Crawler([web.url], fetch=web, frontier=frontier)
        async with crawler.outcomes() as outcomes:
            async for outcome in outcomes:
                found[outcome.url] += 1
        assert set(found.values()) == {1}
        assert len(found) == crawler.statistics().admitted == MANY + 1
