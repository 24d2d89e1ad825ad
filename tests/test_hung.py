"""URLs that hang at a host that answers others, in virtual time, with each frontier."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import chain, pairwise, zip_longest

import pytest
import trio
from sites.frontiers import EVERY
from sites.webs import HOME, Log, Site

from trio_crawler import (
    Crawler,
    Failure,
    Fault,
    Frontier,
    Job,
    Limits,
    MemoryFrontier,
    Page,
    Phase,
    Politeness,
    Reason,
    Response,
    SqliteFrontier,
)
from trio_crawler.frontier import Attempt, Plan
from trio_crawler.model import Purpose
from trio_crawler.testing import Web, html

TIMEOUT = 10
SILENCE = Fault(Reason.TIMEOUT, "no answer", Phase.WAIT)
UNCONNECTED = Fault(Reason.CONNECT_TIMEOUT, "no answer", Phase.CONNECT)
HANGING = [f"/hang{number}" for number in range(40)]
GOOD = [f"/good{number}" for number in range(200)]
EAGER = Politeness(per_host=100, robots=False)


@pytest.fixture(params=EVERY, ids=lambda make: make.__name__)
def frontier(request, tmp_path):
    return request.param(tmp_path)


def mixed(hanging: Iterable[str], good: list[str], every: int) -> list[str]:
    """Put one URL that hangs before each few good ones."""
    groups = [good[start : start + every] for start in range(0, len(good), every)]
    pairs = zip_longest(hanging, groups, fillvalue=())
    return list(chain.from_iterable([one, *group] for one, group in pairs if one))


ORDERS = {
    "first": HANGING + GOOD,
    "mixed": mixed(HANGING, GOOD, 5),
    "last": GOOD + HANGING,
}


def site(links: list[str], fault: Fault = SILENCE) -> Site:
    """Make a home page with these links, some of which hang."""
    pages: Site = {HOME: html(*links)}
    return pages | {HOME[:-1] + link: fault if "hang" in link else html() for link in links}


def slowness(job: Job) -> float:
    return TIMEOUT if "hang" in job.url else 0.05


async def crawled(web: Web, frontier: Frontier, **plan: object) -> tuple[float, list[object]]:
    """Crawl; return when the last good page came, and all outcomes."""
    last, outcomes = 0.0, []
    given = {"workers": 8, "limits": Limits(max_tries=3)} | plan
    crawler = Crawler([HOME], fetch=web, frontier=frontier, **given)  # type: ignore[arg-type]
    async with crawler.outcomes() as stream:
        async for outcome in stream:
            outcomes.append(outcome)
            last = trio.current_time() if "good" in outcome.url else last
    return last, outcomes


@pytest.mark.parametrize(
    ("make", "order"),
    [(make, "first") for make in EVERY] + [(EVERY[0], order) for order in ("mixed", "last")],
    ids=lambda value: getattr(value, "__name__", value),
)
async def test_forty_urls_that_hang_do_not_hold_two_hundred_that_answer(
    autojump_clock, tmp_path, make, order
):
    web = Web(site(ORDERS[order]), delay=slowness)
    async with make(tmp_path) as opened:
        last, outcomes = await crawled(web, opened)
    # With all timeouts first it would be 40 / 4 * 10 seconds.
    assert last <= 60
    assert trio.current_time() <= 160
    good = [outcome for outcome in outcomes if isinstance(outcome, Page)]
    assert len(good) == 201
    assert {outcome.tries for outcome in good} == {1}
    hung = [outcome for outcome in outcomes if isinstance(outcome, Failure)]
    assert [(outcome.reason, outcome.tries) for outcome in hung] == [(Reason.TIMEOUT, 2)] * 40
    assert web.peak <= 4


@pytest.mark.parametrize("order", ORDERS)
async def test_where_connections_hang_the_others_are_not_held_either(autojump_clock, order):
    web = Web(site(ORDERS[order], UNCONNECTED), delay=slowness)
    last, outcomes = await crawled(web, MemoryFrontier())
    assert last <= 60
    assert sum(isinstance(outcome, Page) for outcome in outcomes) == 201


async def test_seeds_that_hang_before_any_page_came_do_not_hold_the_others(autojump_clock):
    web = Web(site(ORDERS["first"]), delay=slowness)
    crawler = Crawler([HOME[:-1] + link for link in ORDERS["first"]], fetch=web, workers=8)
    last = 0.0
    async with crawler.outcomes() as stream:
        async for outcome in stream:
            last = trio.current_time() if "good" in outcome.url else last
    assert last <= 60
    assert crawler.statistics().pages == 200


async def test_a_timeout_of_one_url_does_not_rest_a_host_that_answers_others(autojump_clock):
    links = ["/hang0", *GOOD]
    log = Log(Web(site(links), delay=lambda job: TIMEOUT if "hang" in job.url else 0.5))
    crawler = Crawler([HOME], fetch=log)
    await crawler.crawl()
    times = [time for time, job in log.asked if "good" in job.url]
    # Three at a time, and never a rest.
    assert max(b - a for a, b in pairwise(times)) <= 0.51
    assert log.of(Purpose.PROBE) == []
    assert [job.url for _, job in log.asked].count(HOME + "robots.txt") == 1


async def test_slow_pages_among_urls_that_hang_come_in_the_end(autojump_clock):
    """The first try of some is cut short, and the last try has the whole timeout."""
    slow = [f"/slow{number}" for number in range(4)]
    links = [*HANGING[:8], *slow, *GOOD[:40]]
    web = Web(site(links), delay=lambda job: 9 if "slow" in job.url else slowness(job))
    _, outcomes = await crawled(web, MemoryFrontier())
    found = [outcome for outcome in outcomes if "slow" in outcome.url]
    assert [outcome.status for outcome in found] == [200] * 4
    assert 2 in {outcome.tries for outcome in found}


async def test_once_a_slow_page_has_come_slow_pages_are_not_cut_short_any_more(autojump_clock):
    slow = [f"/slow{number}" for number in range(300)]
    links = HANGING[:8] + slow
    web = Web(site(links), delay=lambda job: 3 if "slow" in job.url else slowness(job))
    await crawled(web, MemoryFrontier())
    again = [url for url, hits in web.hits.items() if "slow" in url and hits > 1]
    assert len(again) <= 12


async def test_a_last_try_is_never_cut_short(autojump_clock):
    links = HANGING[:8] + [f"/slow{number}" for number in range(20)]
    web = Web(site(links), delay=lambda job: 9 if "slow" in job.url else slowness(job))
    crawler = Crawler([HOME], fetch=web, limits=Limits(max_tries=1))
    assert (await crawler.crawl()).pages == 21


# Which is next: a URL that was never tried, or a retry.


async def taken(frontier: Frontier, count: int) -> list[str]:
    with trio.fail_after(5):
        return [(await frontier.jobs.receive()).url for _ in range(count)]


async def test_urls_never_tried_come_before_retries_but_every_eleventh_turn_is_a_retrys(
    autojump_clock, frontier
):
    async with frontier as opened, trio.open_nursery() as nursery:
        plan = Plan([HOME], politeness=EAGER, workers=100)
        await opened.open(plan)
        nursery.start_soon(opened.run)
        await taken(opened, 1)
        tried = [Job(f"{HOME}tried{number}", referrer=HOME) for number in range(5)]
        new = [Job(f"{HOME}new{number}", referrer=HOME) for number in range(40)]
        await opened.add(tried)
        await taken(opened, 5)
        for job in tried:
            attempt = Attempt(Job(job.url, tries=1), Response(404), 0.1)
            opened.hosts.answered(attempt)
            await opened.retry(attempt, 1)
        await trio.sleep(2)
        # Five retries are due, and wait for a worker, when the others are found.
        first = await taken(opened, 1)
        await opened.add(new)
        found = first + await taken(opened, 44)
        places = [place for place, url in enumerate(found) if "tried" in url]
        assert places == [0, 11, 22, 33, 44]
        assert [url for url in found if "tried" in url] == [job.url for job in tried]
        nursery.cancel_scope.cancel("the test is over")


async def test_retries_that_a_run_of_sqlite_has_left_come_after_urls_never_tried_in_the_next_one(
    tmp_path, autojump_clock
):
    """A kill after the first round leaves both."""
    links = HANGING[:5] + GOOD[:60]
    web = Web(
        site(links),
        delay=lambda job: TIMEOUT if "hang" in job.url else 0.5 if job.depth else 0.05,
    )
    one = Politeness(per_host=5)
    async with SqliteFrontier(tmp_path) as opened:
        with trio.move_on_after(TIMEOUT + 0.9):
            await Crawler([HOME], fetch=web, frontier=opened, politeness=one).crawl()
    assert [web.hits[HOME[:-1] + link] for link in HANGING[:5]] == [1] * 5
    log = Log(web)
    async with SqliteFrontier(tmp_path) as opened:
        await Crawler([HOME], fetch=log, frontier=opened, politeness=one).crawl()
    pages = [job.url for _, job in log.asked if job.purpose is Purpose.PAGE]
    places = [place for place, url in enumerate(pages) if "hang" in url]
    left = sum("good" in url for url in pages)
    assert left > 20
    # The first ones go at every eleventh turn, the others at the end.
    assert places[:2] == [10, 21] or places[0] == 10
    assert len(places) == 5


async def test_a_site_without_end_does_not_starve_its_retries(autojump_clock):
    """Each page leads to the next, and every third one fails twice."""

    def answer(job: Job) -> Response:
        number = int(job.url.rpartition("n")[2])
        following = html(*(f"{HOME}n{2 * number + more}" for more in (1, 2)))
        return Response(502) if number % 3 == 1 and job.tries < 3 else following

    class Endless:
        def __init__(self) -> None:
            self.tries: dict[str, int] = {}

        async def __call__(self, job: Job) -> Response:
            await trio.sleep(0.1)
            if job.purpose is not Purpose.PAGE:
                return Response(404)
            self.tries[job.url] = job.tries
            return answer(job)

    web = Endless()
    limits = Limits(max_pages=600)
    crawler = Crawler([f"{HOME}n0"], fetch=web, limits=limits, politeness=Politeness(per_host=1))
    with trio.fail_after(10**6):
        await crawler.crawl()
    assert max(web.tries.values()) == 3
    assert sum(tries == 3 for tries in web.tries.values()) > 10
    assert math.isinf(crawler.plan.limits.max_depth)
