"""Names are looked up beside the workers: one that is slow or silent holds no other host."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import trio
from cases import for_each
from sites.frontiers import FRONTIERS

from trio_crawler import (
    Crawler,
    Failure,
    Fault,
    Job,
    Limits,
    Outcome,
    Page,
    Phase,
    Politeness,
    Reason,
    Response,
    Skipped,
    SqliteFrontier,
)
from trio_crawler.model import Fetch
from trio_crawler.testing import Web, html

SILENCE = 10.0
"""Seconds that a lookup takes if no name server answers."""

NO_ANSWER = Fault(Reason.DNS, "no answer", Phase.RESOLVE)

HOLDS = 60.0
"""Seconds for which a lookup holds."""


class Names:
    """A fetch that looks names up, as `HttpFetch` does: in the call itself if it was not before.

    `fails` is whether the lookup of a host that begins now fails, as `fault`, after 10 seconds.
    """

    def __init__(
        self,
        web: Fetch,
        fails: Callable[[str], bool],
        seconds: float = 0.01,
        fault: Fault = NO_ANSWER,
    ) -> None:
        self.looked_up: list[tuple[float, str]] = []
        self.late: list[str] = []
        self.asked: list[tuple[float, str]] = []
        self._web = web
        self._fails = fails
        self._fault = fault
        self._seconds = seconds
        self._known: dict[str, tuple[float, bool]] = {}

    async def lookup(self, url: str) -> float:
        host = url.split("/")[2]
        self.looked_up.append((trio.current_time(), host))
        failed = self._fails(host)
        await trio.sleep(SILENCE if failed else self._seconds)
        self._known[host] = trio.current_time() + HOLDS, failed
        return HOLDS

    async def __call__(self, job: Job) -> Response | Fault:
        host = job.url.split("/")[2]
        until, _ = self._known.get(host, (0.0, False))
        if trio.current_time() >= until:
            self.late.append(host)
            await self.lookup(job.url)
        self.asked.append((trio.current_time(), job.url))
        if self._known[host][1]:
            await trio.lowlevel.checkpoint()
            return self._fault
        return await self._web(job)


def home(number: int, kind: str = "well") -> str:
    return f"http://{kind}{number}.test/"


def well(count: int, pages: int) -> Web:
    site = {}
    for number in range(count):
        site[home(number)] = html(*(f"/{page}" for page in range(1, pages)))
        site |= {f"{home(number)}{page}": html() for page in range(1, pages)}
    return Web(site, delay=0.1)


def none(host: str) -> bool:
    return False


def silent(host: str) -> bool:
    return host.startswith("silent")


async def timed(crawler: Crawler) -> list[tuple[float, Outcome]]:
    """Crawl; return each outcome with its time."""
    found = []
    async with crawler.outcomes() as outcomes:
        async for outcome in outcomes:
            found.append((trio.current_time(), outcome))
    return found


@pytest.mark.parametrize("obeyed", [True, False])
async def test_thirty_silent_names_delay_no_page_of_ten_well_hosts(autojump_clock, obeyed):
    fetch = Names(well(10, 20), silent)
    seeds = [home(number, "silent") for number in range(30)]
    seeds += [home(number) for number in range(10)]
    crawler = Crawler(seeds, fetch=fetch, workers=4, politeness=Politeness(robots=obeyed))
    outcomes = await timed(crawler)
    pages = [time for time, outcome in outcomes if isinstance(outcome, Page)]
    assert len(pages) == 200
    # 200 pages and 10 files of 0.1 seconds, by four workers.
    assert max(pages) <= 6 < SILENCE
    assert fetch.late == []
    failures = [outcome for _, outcome in outcomes if isinstance(outcome, Failure)]
    assert {failure.reason for failure in failures} == {Reason.DNS}
    assert len(failures) == 30
    figures = crawler.statistics()
    assert figures.admitted == figures.pages + figures.failures == 230


async def test_each_try_of_a_silent_name_has_a_lookup_of_its_own(autojump_clock):
    fetch = Names(well(1, 1), silent)
    await Crawler([home(0, "silent")], fetch=fetch, limits=Limits(max_tries=3)).crawl()
    assert len(fetch.asked) == 3
    assert len(fetch.looked_up) == 3
    # A lookup begins when the rest after the try before it is over, not before.
    for (begun, _), (tried, _) in zip(fetch.looked_up[1:], fetch.asked, strict=False):
        assert begun >= tried + 0.25


@pytest.mark.parametrize("reason", [Reason.DNS, Reason.NO_SUCH_HOST])
async def test_an_outage_of_five_minutes_in_which_names_fail_loses_no_page(autojump_clock, reason):
    web, away = well(3, 40), Fault(Reason.RESET, "away", Phase.SEND)

    def down() -> bool:
        return 2 <= trio.current_time() < 302

    async def answer(job: Job) -> Response | Fault:
        return away if down() else await web(job)

    fetch = Names(answer, lambda host: down(), fault=Fault(reason, "no", Phase.RESOLVE))
    seeds = [home(number) for number in range(3)]
    outcomes = await timed(Crawler(seeds, fetch=fetch, politeness=Politeness(delay=0.5)))
    assert [type(outcome) for _, outcome in outcomes] == [Page] * 120
    assert any(2 < time < 302 for time, _ in fetch.looked_up)


async def test_a_fetch_that_looks_nothing_up_is_called_as_before(autojump_clock):
    async def fetch(job: Job) -> Response | Fault:
        return await web(job)

    web = well(2, 5)
    outcomes = await timed(Crawler([home(0), home(1)], fetch=fetch))
    assert outcomes[0][0] == pytest.approx(0.1)
    assert len(outcomes) == 10


async def test_a_name_is_looked_up_again_when_its_lookup_is_too_old(autojump_clock):
    fetch = Names(well(1, 10), none)
    await Crawler([home(0)], fetch=fetch, politeness=Politeness(delay=40)).crawl()
    # Requests at 0, 40, ... 400: every other one has a new lookup.
    assert [round(time) for time, _ in fetch.looked_up] == [0, 80, 160, 240, 320, 400]
    assert fetch.late == []


async def test_a_crawl_of_one_host_waits_for_one_lookup_and_no_more(autojump_clock):
    fetch = Names(well(1, 2000), none, seconds=0.5)
    outcomes = await timed(Crawler([home(0)], fetch=fetch))
    assert len(outcomes) == 2000
    assert len(fetch.looked_up) == 1
    # One page, then 1,999 by four at once.
    assert outcomes[-1][0] == pytest.approx(0.5 + 0.1 + 500 * 0.1, abs=0.2)


async def test_http_and_https_of_a_host_share_a_lookup(autojump_clock):
    site = {home(0): html(), "https://well0.test/": html()}
    fetch = Names(Web(site, delay=0.1), none)
    await Crawler(list(site), fetch=fetch).crawl()
    assert [host for _, host in fetch.looked_up] == ["well0.test"]
    assert fetch.late == []


@for_each("make", FRONTIERS)
@for_each("reason", [Reason.STOPPED, Reason.TIME_BUDGET])
async def test_a_crawl_that_ends_early_waits_for_no_lookup(
    autojump_clock, make: Any, reason: Reason, tmp_path: Path
):
    fetch = Names(well(1, 1), silent)
    seeds = [home(number, "silent") for number in range(9)]
    async with make(tmp_path) as frontier:
        limits = Limits(max_seconds=3 if reason is Reason.TIME_BUDGET else math.inf)
        crawler = Crawler([home(0), *seeds], fetch=fetch, frontier=frontier, limits=limits)
        found = []
        async with crawler.outcomes() as outcomes:
            async for outcome in outcomes:
                found.append(outcome)
                if isinstance(outcome, Page) and reason is Reason.STOPPED:
                    crawler.stop()
        figures = crawler.statistics()
    assert trio.current_time() < SILENCE
    assert figures.pages == 1
    skipped = [outcome for outcome in found if isinstance(outcome, Skipped)]
    left = 0 if make is not FRONTIERS[1] else 9
    assert len(skipped) == 9 - left
    assert figures.admitted == figures.pages + figures.skipped + figures.waiting == 10


async def test_names_that_a_run_was_looking_up_are_looked_up_by_the_next_one(
    autojump_clock, tmp_path
):
    seeds = [home(number) for number in range(5)]
    first = {f"well{number}.test" for number in range(4)}
    for fails in (first.__contains__, none):
        fetch = Names(well(5, 3), fails)
        async with SqliteFrontier(tmp_path) as frontier:
            with trio.move_on_after(5):
                await Crawler(seeds, fetch=fetch, frontier=frontier).crawl()
        counts = Counter(host for _, host in fetch.looked_up)
        assert set(counts.values()) == {1}
    assert set(counts) == first
    assert frontier.statistics().admitted == 15


async def test_a_bug_in_a_lookup_ends_the_crawl_at_once_with_the_url_as_a_note(autojump_clock):
    class Broken(Names):
        async def lookup(self, url: str) -> float:
            if "silent" in url:
                raise ZeroDivisionError
            return await super().lookup(url)

    fetch = Broken(well(1, 100), none)
    with pytest.raises(ExceptionGroup) as caught:
        await Crawler([home(0), home(0, "silent")], fetch=fetch).crawl()
    (error,) = caught.value.exceptions
    assert isinstance(error, ZeroDivisionError)
    assert error.__notes__ == [f"while crawling {home(0, 'silent')}"]
    assert trio.current_time() < 1


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (None, "the seconds that the lookup of fetch returns must be a number, not None"),
        (-1.0, "the seconds that the lookup of fetch returns must be 0 or more, not -1"),
    ],
)
async def test_a_lookup_that_returns_no_seconds_is_told_so(autojump_clock, returned, message):
    class Odd(Names):
        async def lookup(self, url: str) -> float:
            return returned

    with pytest.raises(ExceptionGroup) as caught:
        await Crawler([home(0)], fetch=Odd(well(1, 1), none)).crawl()
    assert message in str(caught.value.exceptions[0])


def odd(lookup: Any) -> Callable[[Job], Awaitable[Response]]:
    async def fetch(job: Job) -> Response:
        return html()

    fetch.lookup = lookup  # type: ignore[attr-defined]
    return fetch


async def test_a_lookup_that_is_not_async_is_told_so(autojump_clock):
    with pytest.raises(ExceptionGroup) as caught:
        await Crawler([home(0)], fetch=odd(lambda url: 3)).crawl()
    assert "the lookup of fetch returned 3: make it async" in str(caught.value.exceptions[0])


def test_a_lookup_that_is_no_function_is_refused_when_the_crawler_is_made():
    with pytest.raises(TypeError, match="the lookup of fetch must be an async function of a URL"):
        Crawler([home(0)], fetch=odd(3))


async def test_a_lookup_that_holds_for_no_time_does_as_well(autojump_clock):
    class Short(Names):
        async def lookup(self, url: str) -> float:
            await super().lookup(url)
            return 0.0

    fetch = Short(well(3, 10), none)
    outcomes = await timed(Crawler([home(number) for number in range(3)], fetch=fetch))
    assert len(outcomes) == 30


async def test_a_cancelled_crawl_leaves_no_lookup_behind(autojump_clock):
    fetch = Names(well(1, 1), silent)
    before = trio.lowlevel.current_statistics().tasks_living
    with trio.move_on_after(3) as scope:
        await Crawler([home(number, "silent") for number in range(50)], fetch=fetch).crawl()
    assert scope.cancelled_caught
    assert len(fetch.looked_up) == 50
    assert trio.lowlevel.current_statistics().tasks_living == before


async def test_no_more_than_a_thousand_lookups_are_in_flight(autojump_clock):
    fetch = Names(well(1, 1), silent)
    seeds = [home(number, "silent") for number in range(1500)]
    with trio.move_on_after(5):
        await Crawler(seeds, fetch=fetch, limits=Limits(max_tries=1)).crawl()
    assert len(fetch.looked_up) == 1000
