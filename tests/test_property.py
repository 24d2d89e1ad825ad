"""Random sites, random delays, random cancellation: the accounting law holds every time."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

import httpx
import pytest
import trio
from cases import examples
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock

from trio_crawler import (
    Crawler,
    Failure,
    Fault,
    Limits,
    Outcome,
    Page,
    Reason,
    Redirect,
    Response,
)
from trio_crawler.testing import Web, fault, html, redirect

HOME = "http://site.test/"


@dataclass
class Site:
    """A web of numbered paths: what each leads to by links or by a redirect, or its fault."""

    links: dict[int, list[int]]
    redirects: dict[int, int]
    faults: set[int]
    size: int
    chance: random.Random

    def answers(self) -> dict[str, Response | Fault]:
        return {f"/{n}": self._answer(n) for n in range(self.size)}

    def _answer(self, n: int) -> Response | Fault:
        if n in self.faults:
            return fault(self.chance.choice([Reason.RESET, Reason.TLS, Reason.TIMEOUT]))
        if n in self.redirects:
            return redirect(self._spelled(self.redirects[n]))
        junk = ["http://[x", "mailto:a@b", "javascript:void(0)", "http://other.test/", "#top", ""]
        links = [self._spelled(target) for target in self.links.get(n, [])]
        return html(*links, *self.chance.sample(junk, 3), *links)

    def _spelled(self, n: int) -> str:
        ways = [
            f"/{n}",
            f"{n}",
            f"./{n}",
            f"/x/../{n}#f",
            f"//site.test/{n}",
            f"{HOME}{n}",
            f" {n}\n",
        ]
        return self.chance.choice(ways)

    def expected(self, max_redirects: int) -> set[str]:
        """Find what must be fetched: the best number of redirects left over all paths."""
        best: dict[int, int] = {}
        agenda = [(0, max_redirects)]
        while agenda:
            n, left = agenda.pop()
            if left < 0 or best.get(n, -1) >= left:
                continue
            best[n] = left
            if n in self.faults:
                continue
            if n in self.redirects:
                agenda.append((self.redirects[n], left - 1))
            else:
                agenda += [(target, max_redirects) for target in self.links.get(n, [])]
        # Empty links and fragments lead to the page itself, which is known already.
        return {f"{HOME}{n}" for n in best}


@st.composite
def sites(draw: st.DrawFn) -> Site:
    size = draw(st.integers(1, 25))
    number = st.integers(0, size - 1)
    return Site(
        links=draw(st.dictionaries(number, st.lists(number, max_size=6))),
        redirects=draw(st.dictionaries(number, number, max_size=12)),
        faults=draw(st.sets(number, max_size=4)),
        size=size,
        chance=random.Random(draw(st.integers(0, 2**32))),
    )


def run(
    site: Site, limits: Limits, workers: int, until: float
) -> tuple[Crawler, Web, list[Outcome]]:
    web = Web(site.answers(), delay=lambda job: site.chance.choice([0, 0.1, 1, 7]))
    outcomes: list[Outcome] = []

    async def main() -> Crawler:
        crawler = Crawler([f"{HOME}0"], fetch=web, limits=limits, workers=workers)
        with trio.move_on_after(until):
            async with crawler.outcomes() as stream:
                async for outcome in stream:
                    outcomes.append(outcome)
        check(crawler, outcomes, cancelled=until < math.inf)
        return crawler

    return trio.run(main, clock=MockClock(autojump_threshold=0)), web, outcomes


def check(crawler: Crawler, outcomes: list[Outcome], cancelled: bool = False) -> None:
    totals = crawler.statistics()
    ended = totals.pages + totals.redirects + totals.failures + totals.skipped
    assert totals.admitted == ended + totals.in_flight + totals.waiting
    assert min(totals.in_flight, totals.waiting) >= 0
    assert len(outcomes) == len({outcome.url for outcome in outcomes})
    if cancelled:
        # The one outcome that was being handed over has been counted.
        assert ended - len(outcomes) in (0, 1)
        return
    assert ended == len(outcomes)
    assert totals.pages == sum(isinstance(outcome, Page) for outcome in outcomes)
    assert totals.redirects == sum(isinstance(outcome, Redirect) for outcome in outcomes)
    assert totals.failures == sum(isinstance(outcome, Failure) for outcome in outcomes)


@examples(300)
@given(sites(), st.integers(0, 4), st.integers(1, 8))
def test_a_crawl_fetches_just_what_can_be_reached_and_each_url_once(site, redirects, workers):
    limits = Limits(max_redirects=redirects, max_tries=1)
    crawler, web, outcomes = run(site, limits, workers, math.inf)
    assert {outcome.url for outcome in outcomes} == set(web.hits) == site.expected(redirects)
    assert set(web.hits.values()) == {1}
    totals = crawler.statistics()
    assert (totals.in_flight, totals.waiting) == (0, 0)
    assert crawler.frontier.statistics().unsettled == 0


@examples(200)
@given(sites(), st.integers(1, 8), st.floats(0, 60))
def test_a_crawl_cancelled_at_any_moment_keeps_its_accounts(site, workers, until):
    _, web, outcomes = run(site, Limits(max_tries=3), workers, until)
    assert web.in_flight == 0
    assert {outcome.url for outcome in outcomes} <= set(web.hits)


@examples(200)
@given(sites(), st.integers(1, 8), st.integers(1, 10))
def test_a_page_budget_is_never_passed(site, workers, pages):
    crawler, _, _ = run(site, Limits(max_pages=pages, max_tries=1), workers, math.inf)
    totals = crawler.statistics()
    assert totals.pages + totals.failures <= pages
    assert (totals.in_flight, totals.waiting) == (0, 0)


@examples(200)
@given(sites(), st.integers(1, 8), st.integers(0, 3))
def test_with_a_depth_limit_every_depth_is_the_shortest(site, workers, depth):
    site.redirects.clear()
    _, _, outcomes = run(site, Limits(max_depth=depth, max_tries=1), workers, math.inf)
    shortest = {0: 0}
    level = [0]
    for distance in range(1, depth + 1):
        found = [m for n in level if n not in site.faults for m in site.links.get(n, [])]
        level = [m for m in dict.fromkeys(found) if m not in shortest]
        shortest |= dict.fromkeys(level, distance)
    expected = {f"{HOME}{n}": distance for n, distance in shortest.items()}
    assert {outcome.url: outcome.depth for outcome in outcomes} == expected


def checkpoints_of(site: dict[str, Response]) -> int:
    """Count the checkpoints of one small crawl."""
    counter = Canceller(math.inf)
    trio.run(counter.crawl, site, clock=MockClock(autojump_threshold=0))
    return counter.steps


class Canceller(trio.abc.Instrument):
    """Cancel a crawl when its tasks have taken so many steps."""

    def __init__(self, at: float) -> None:
        self.at = at
        self.steps = 0
        self.scope = trio.CancelScope()

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self.steps += 1
        if self.steps == self.at:
            self.scope.cancel()

    async def crawl(self, site: dict[str, Response]) -> None:
        web = Web(site, delay=1)
        crawler = Crawler([HOME], fetch=web, workers=2)
        outcomes: list[Outcome] = []
        trio.lowlevel.add_instrument(self)
        with self.scope:
            async with crawler.outcomes() as stream:
                async for outcome in stream:
                    outcomes.append(outcome)
        trio.lowlevel.remove_instrument(self)
        check(crawler, outcomes, cancelled=True)
        assert web.in_flight == 0


def test_a_crawl_cancelled_at_each_of_its_checkpoints_keeps_its_accounts():
    site = {"/": html("/a", "/b"), "/a": redirect("/c"), "/b": html("/a"), "/c": html()}
    steps = checkpoints_of(site)
    assert steps > 15
    for at in range(1, steps + 1):
        trio.run(Canceller(at).crawl, site, clock=MockClock(autojump_threshold=0))


LARGE = Response(200, httpx.Headers({"Content-Type": "text/html"}), b"<p>" + b"x" * 9_000_000)


async def leave(web: Web, fetched: int) -> None:
    """Leave a crawl after so many outcomes."""
    crawler = Crawler([HOME], fetch=web, workers=3)
    outcomes = []
    async with crawler.outcomes() as stream:
        async for outcome in stream:
            outcomes.append(outcome)
            if len(outcomes) == fetched:
                break
    check(crawler, outcomes)


@pytest.mark.parametrize("fetched", [1, 2, 5])
def test_leaving_while_large_pages_are_read_leaves_without_an_error(fetched):
    web = Web({"/": html(*(f"/{n}" for n in range(8))), **{f"/{n}": LARGE for n in range(8)}})
    # By chance: a worker reads a page, another one waits for it.
    for _ in range(5):
        trio.run(leave, web, fetched)


@pytest.mark.parametrize("fetched", [1, 5, 20])
def test_leaving_after_any_number_of_outcomes_keeps_the_accounts(fetched):
    web = Web({"/": html(*(f"/{n}" for n in range(50)))}, delay=1)
    trio.run(leave, web, fetched, clock=MockClock(autojump_threshold=0))
