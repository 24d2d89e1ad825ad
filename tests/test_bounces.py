"""A login that bounces: a redirect leads back to a URL whose cookies have changed meanwhile."""

from __future__ import annotations

import math
import random
import sqlite3
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import trio
from cases import examples, for_each
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from sites.frontiers import EVERY
from sites.login import PAGES, LoginWeb, Said, Site, bouncing
from trio.testing import MockClock

from trio_crawler import (
    Crawler,
    Failure,
    History,
    Job,
    Limits,
    Outcome,
    Page,
    Politeness,
    Reason,
    Redirect,
    Response,
    Skipped,
    SqliteFrontier,
    Statistics,
    Traps,
)
from trio_crawler.frontier import Plan, Seen, Settlement
from trio_crawler.store import End

HOME = "http://site.test/"
EAGER = Politeness(robots=False, per_host=100)


async def crawled(
    web: LoginWeb, *seeds: str, frontier: Any = None, **options: Any
) -> list[Outcome]:
    """Crawl to the end; check that the sum holds, and return the outcomes."""
    crawler = Crawler(
        seeds or [web.url], fetch=web, frontier=frontier, **{"politeness": EAGER} | options
    )
    outcomes = []
    async with crawler.outcomes() as stream:
        async for outcome in stream:
            check_sum(crawler.statistics())
            outcomes.append(outcome)
    check_sum(totals := crawler.statistics())
    assert totals.admitted == len(outcomes)
    assert (totals.in_flight, totals.waiting) == (0, 0)
    check_again(outcomes)
    return outcomes


def check_sum(totals: Statistics) -> None:
    ended = totals.pages + totals.redirects + totals.failures + totals.skipped
    assert totals.admitted == ended + totals.in_flight + totals.waiting


def check_again(outcomes: list[Outcome]) -> None:
    """Check that a URL has one outcome, or a redirect and then one more with `again`."""
    by_url: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        by_url.setdefault(outcome.url, []).append(outcome)
    for found in by_url.values():
        first, *more = found
        assert not first.again
        assert [outcome.again for outcome in more] in ([], [True])
        assert not more or isinstance(first, Redirect)


def last(outcomes: list[Outcome]) -> dict[str, Outcome]:
    """Return the last outcome of each URL."""
    return {outcome.url: outcome for outcome in outcomes}


def pages(outcomes: list[Outcome]) -> set[str]:
    return {outcome.url for outcome in outcomes if isinstance(outcome, Page)}


LINKS = tuple(f"/p{number}" for number in range(PAGES))
ALL = {HOME, *(f"{HOME}p{number}" for number in range(PAGES))}


@pytest.mark.parametrize("make", EVERY, ids=lambda make: make.__name__)
async def test_a_url_is_asked_again_when_its_login_leads_back_with_a_cookie(
    make: Callable[[Path], Any], tmp_path: Path, autojump_clock: MockClock
) -> None:
    web = LoginWeb(bouncing)
    async with make(tmp_path) as frontier:
        outcomes = await crawled(web, frontier=frontier)
    assert pages(outcomes) == ALL
    assert web.asked[:3] == [(HOME, ""), (f"{HOME}login", ""), (HOME, "s=1")]
    assert [(one.url, one.again, one.referrer) for one in outcomes[:3]] == [
        (HOME, False, None),
        (f"{HOME}login", False, HOME),
        (HOME, True, f"{HOME}login"),
    ]
    assert max(web.hits.values()) == 2


async def test_without_cookies_the_loop_is_a_loop(autojump_clock: MockClock) -> None:
    web = LoginWeb(bouncing, cookies=False)
    outcomes = await crawled(web)
    assert [type(one) for one in outcomes] == [Redirect, Redirect]
    assert not any(one.again for one in outcomes)


async def test_a_loop_that_sets_no_cookie_stays_a_loop(autojump_clock: MockClock) -> None:
    def site(path: str, cookie: str) -> Said:
        return Said("/b" if path == "/" else "/")

    assert len(await crawled(LoginWeb(site))) == 2


async def test_a_cookie_of_the_same_value_is_no_change(autojump_clock: MockClock) -> None:
    def site(path: str, cookie: str) -> Said:
        if path == "/start":
            return Said(links=("/a",), cookie="s=1")
        return Said("/b" if path == "/a" else "/a", cookie="s=1")

    outcomes = await crawled(LoginWeb(site), f"{HOME}start")
    assert [one.url for one in outcomes] == [f"{HOME}{name}" for name in ("start", "a", "b")]


async def test_a_cookie_for_another_path_is_no_change(autojump_clock: MockClock) -> None:
    def site(path: str, cookie: str) -> Said:
        return Said("/b" if path == "/" else "/", cookie="s=1; Path=/elsewhere")

    assert len(await crawled(LoginWeb(site))) == 2


async def test_a_cookie_that_is_deleted_is_a_change(autojump_clock: MockClock) -> None:
    def site(path: str, cookie: str) -> Said:
        if path == "/start":
            return Said(links=("/a",), cookie="s=1")
        if path == "/out":
            return Said("/a", cookie="s=; Max-Age=0")
        return Said("/out") if cookie else Said()

    outcomes = await crawled(LoginWeb(site), f"{HOME}start")
    assert last(outcomes)[f"{HOME}a"].again


async def test_a_page_that_tests_for_cookies_leads_to_itself_once(
    autojump_clock: MockClock,
) -> None:
    def site(path: str, cookie: str) -> Said:
        return Said() if "test=1" in cookie else Said(path, cookie="test=1")

    outcomes = await crawled(LoginWeb(site))
    assert [(type(one), one.again) for one in outcomes] == [(Redirect, False), (Page, True)]


async def test_a_wall_with_another_cookie_in_each_answer_ends_after_the_second_asking(
    autojump_clock: MockClock,
) -> None:
    count = 0

    def site(path: str, cookie: str) -> Said:
        nonlocal count
        count += 1
        return Said("/wall" if path == "/" else "/", cookie=f"n={count}; Path=/")

    web = LoginWeb(site)
    outcomes = await crawled(web)
    assert web.hits == {HOME: 2, f"{HOME}wall": 2}
    assert [(one.url, one.again) for one in outcomes[2:]] == [
        (HOME, True),
        (f"{HOME}wall", True),
    ]


async def test_each_page_that_bounced_before_the_first_cookie_came_is_asked_again(
    autojump_clock: MockClock,
) -> None:
    def site(path: str, cookie: str) -> Said:
        return (
            Said(links=tuple(f"/p{n}" for n in range(9)))
            if path == "/"
            else bouncing(path, cookie)
        )

    outcomes = await crawled(LoginWeb(site))
    assert {f"{HOME}p{n}" for n in range(9)} <= pages(outcomes)
    assert sum(one.again for one in outcomes) == 9


async def test_the_login_may_be_in_flight_before_the_page_has_bounced(
    autojump_clock: MockClock,
) -> None:
    def site(path: str, cookie: str) -> Said:
        if path == "/login":
            return Said("/a", cookie="s=1")
        return Said() if cookie else Said("/login")

    for slow in ("/a", "/login"):
        web = LoginWeb(site, delay=lambda job, slow=slow: 5 if job.url.endswith(slow) else 1)
        outcomes = await crawled(web, f"{HOME}a", f"{HOME}login")
        assert isinstance(last(outcomes)[f"{HOME}a"], Page), slow


async def test_a_page_that_was_answered_is_not_asked_again(autojump_clock: MockClock) -> None:
    def site(path: str, cookie: str) -> Said:
        if path == "/german":
            return Said("/", cookie="lang=de; Path=/")
        return Said(links=("/german",))

    web = LoginWeb(site)
    assert len(await crawled(web)) == 2
    assert web.hits[HOME] == 1


async def test_without_the_request_nothing_is_known_and_nothing_asked_again(
    autojump_clock: MockClock,
) -> None:
    class Silent(LoginWeb):
        async def __call__(self, job: Job) -> Response:
            return replace(await super().__call__(job), request=b"")

    assert len(await crawled(Silent(bouncing))) == 2


async def test_a_fetch_whose_cookies_for_is_no_function_is_refused() -> None:
    web = LoginWeb(bouncing)
    web.cookies_for = "s=1"  # type: ignore[assignment]
    with pytest.raises(TypeError, match="the cookies_for of fetch must be a function of a URL"):
        Crawler([HOME], fetch=web)


# Bounds.


async def test_both_chains_together_have_the_redirects_of_the_limit(
    autojump_clock: MockClock,
) -> None:
    def site(path: str, cookie: str) -> Said:
        if path == "/login":
            return Said("/", cookie="s=1")
        if path == "/":
            return Said("/1" if cookie else "/login")
        number = int(path[1:])
        return Said(f"/{number + 1}") if number < 3 else Said()

    for most, found in ((5, Page), (4, Failure)):
        outcomes = await crawled(LoginWeb(site), limits=Limits(max_redirects=most))
        assert isinstance(outcomes[-1], found)
    assert outcomes[-1].reason is Reason.TOO_MANY_REDIRECTS


async def test_a_login_that_leads_back_beyond_the_limit_is_a_redirect_too_many(
    autojump_clock: MockClock,
) -> None:
    outcomes = await crawled(LoginWeb(bouncing), limits=Limits(max_redirects=1))
    assert [type(one) for one in outcomes] == [Redirect, Failure]
    assert outcomes[1].reason is Reason.TOO_MANY_REDIRECTS
    assert outcomes[1].target == HOME


async def test_a_url_that_failed_by_a_redirect_too_many_is_not_asked_again(
    autojump_clock: MockClock,
) -> None:
    def site(path: str, cookie: str) -> Said:
        if path == "/x":
            return Said("/a", cookie="s=1")
        return Said("/a" if path == "/" else "/b")

    web = LoginWeb(site, delay=lambda job: 9 if job.url.endswith("x") else 1)
    outcomes = await crawled(web, HOME, f"{HOME}x", limits=Limits(max_redirects=1))
    assert [type(one) for one in outcomes] == [Redirect, Failure, Redirect]


async def test_the_second_asking_of_a_page_counts_as_one_page_of_the_budget(
    autojump_clock: MockClock,
) -> None:
    outcomes = await crawled(LoginWeb(bouncing), limits=Limits(max_pages=3))
    assert len(pages(outcomes)) == 3
    assert sum(isinstance(one, Skipped) for one in outcomes) == PAGES - 2


async def test_a_page_keeps_the_depth_at_which_it_was_found(autojump_clock: MockClock) -> None:
    def site(path: str, cookie: str) -> Said:
        match path:
            case "/":
                return Said(links=("/a", "/1"))
            case "/a":
                return Said(links=("/end",)) if cookie else Said("/elsewhere")
            case "/1" | "/2":
                return Said(links=(f"/{int(path[1:]) + 1}",))
            case "/3":
                return Said("/a", cookie="s=1")
        return Said()

    outcomes = await crawled(LoginWeb(site), limits=Limits(max_depth=3))
    assert last(outcomes)[f"{HOME}a"] == next(one for one in outcomes if one.again)
    assert (last(outcomes)[f"{HOME}a"].depth, last(outcomes)[f"{HOME}end"].depth) == (1, 2)


async def test_a_host_may_have_no_more_urls_because_one_is_admitted_again(
    autojump_clock: MockClock,
) -> None:
    # Its own budget has no room left, and the second asking is no new URL.
    outcomes = await crawled(LoginWeb(bouncing), traps=Traps(per_host=2))
    assert last(outcomes)[HOME].again
    assert len(pages(outcomes)) == 2


async def test_a_login_outside_the_scope_is_not_followed(autojump_clock: MockClock) -> None:
    def site(path: str, cookie: str) -> Said:
        return Said("http://sso.test/login")

    outcomes = await crawled(LoginWeb(site))
    assert [(type(one), one.rejected) for one in outcomes] == [(Redirect, Reason.OTHER_SITE)]


async def test_a_login_on_another_host_of_the_scope_leads_back(autojump_clock: MockClock) -> None:
    def site(path: str, cookie: str) -> Said:
        if path == "/sso":
            return Said(f"{HOME}back", cookie="ours=1")
        if path == "/back":
            return Said("/", cookie="s=1")
        return Said() if "s=1" in cookie else Said("http://sso.test/sso")

    outcomes = await crawled(LoginWeb(site), scope=lambda job: True)
    assert isinstance(last(outcomes)[HOME], Page)


# A directory.


async def run(
    directory: Path, web: LoginWeb, *, until: int = 10**6, workers: int = 10, refresh: bool = False
) -> Statistics:
    """Crawl in a directory; leave after so many outcomes."""
    async with SqliteFrontier(directory, refresh=refresh) as frontier:
        crawler = Crawler(
            [web.url], fetch=web, frontier=frontier, politeness=EAGER, workers=workers
        )
        async with crawler.outcomes() as outcomes:
            async for _ in outcomes:
                until -= 1
                if not until:
                    break
    return crawler.statistics()


@for_each("left_after", range(1, PAGES + 3))
async def test_a_run_that_ends_early_leaves_no_url_and_asks_none_a_third_time(
    left_after: int, tmp_path: Path, autojump_clock: MockClock
) -> None:
    web = LoginWeb(bouncing)
    await run(tmp_path, web, until=left_after)
    # The session lasts, as that of a caller's own store of cookies does.
    await run(tmp_path, web)
    with History(tmp_path) as history:
        outcomes = list(history.outcomes())
        totals = history.statistics()
    check_again(outcomes)
    check_sum(totals)
    assert totals.admitted == len(outcomes)
    assert pages(outcomes) == ALL
    assert sum(one.again for one in outcomes) <= 1


async def test_a_second_asking_that_waited_is_marked_in_the_next_run(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    web = LoginWeb(bouncing)
    # The third is the second asking, which is not settled then.
    await run(tmp_path, web, until=3)
    async with SqliteFrontier(tmp_path) as frontier:
        crawler = Crawler([HOME], fetch=web, frontier=frontier, politeness=EAGER)
        async with crawler.outcomes() as outcomes:
            found = [one async for one in outcomes]
    assert [one.url for one in found if one.again] == [HOME]
    assert pages(found) == ALL


async def test_a_second_asking_that_waited_logs_in_anew_and_loses_no_page(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    await run(tmp_path, LoginWeb(bouncing), until=3)
    # The cookies of the first run are gone.
    web = LoginWeb(bouncing)
    await run(tmp_path, web)
    assert web.hits[HOME] == 2
    with History(tmp_path) as history:
        outcomes = list(history.outcomes())
        check_sum(history.statistics())
    assert pages(outcomes) == ALL
    found = [(type(one), one.again) for one in outcomes if one.url == HOME]
    assert found == [(Redirect, False), (Redirect, True), (Page, True)]
    # It is complete: nothing is asked a fourth time.
    later = LoginWeb(bouncing)
    await run(tmp_path, later)
    assert later.asked == []


async def test_a_longer_path_raises_the_redirects_of_the_first_admission(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    url = f"{HOME}a"
    async with SqliteFrontier(tmp_path) as frontier, trio.open_nursery() as nursery:
        await frontier.open(Plan([HOME], politeness=EAGER))
        nursery.start_soon(frontier.run)
        assert (await frontier.jobs.receive()).url == HOME
        for job in (Job(url, redirects=7), Job(url, redirects=5, again=True)):
            assert await frontier.add([job]) == 1
        assert await frontier.add([Job(url, redirects=9)]) == 0
        nursery.cancel_scope.cancel("the test is over")
    with closing(sqlite3.connect(tmp_path / "crawl.sqlite")) as connection:
        sql = "SELECT redirects, again FROM urls WHERE url = ? ORDER BY number"
        assert connection.execute(sql, [url]).fetchall() == [(9, None), (5, 1)]


async def test_a_later_run_without_the_session_logs_in_again(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    await run(tmp_path, LoginWeb(bouncing), until=6, workers=1)
    web = LoginWeb(bouncing)
    await run(tmp_path, web, workers=1)
    with History(tmp_path) as history:
        outcomes = list(history.outcomes())
    check_again(outcomes)
    assert pages(outcomes) == ALL
    assert web.hits[HOME] == 0


async def test_a_login_of_an_earlier_run_is_asked_again_when_the_session_is_gone(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    def site(path: str, cookie: str) -> Said:
        if path == "/login":
            return Said("/", cookie="s=1")
        return Said(links=LINKS) if cookie else Said("/login")

    await run(tmp_path, LoginWeb(site), until=5, workers=1)
    web = LoginWeb(site)
    await run(tmp_path, web, workers=1)
    assert web.hits[f"{HOME}login"] == 1
    with History(tmp_path) as history:
        outcomes = list(history.outcomes())
        check_sum(history.statistics())
    check_again(outcomes)


async def test_a_refresh_logs_in_anew_and_finds_no_change(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    await run(tmp_path, LoginWeb(bouncing))
    totals = await run(tmp_path, LoginWeb(bouncing), refresh=True)
    assert (totals.pages, totals.redirects) == (PAGES + 1, 2)
    with History(tmp_path) as history:
        changes = list(history.changes())
        assert [run.how for run in history.runs] == [End.FINISHED, End.FINISHED]
    assert {change.kind for change in changes} == {"unchanged"}
    assert Counter(change.url for change in changes) == dict.fromkeys([*ALL, f"{HOME}login"], 1)


async def test_a_walk_that_found_no_login_is_compared_by_the_last_outcome(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    def opened(path: str, cookie: str) -> Said:
        return bouncing(path, "s=1")

    await run(tmp_path, LoginWeb(bouncing))
    await run(tmp_path, LoginWeb(opened), refresh=True)
    with History(tmp_path) as history:
        found = {change.url: change.kind for change in history.changes()}
    assert found.pop(f"{HOME}login") == "gone"
    assert found == dict.fromkeys(ALL, "unchanged")


# The rule in one place.


def test_a_url_is_admitted_again_once_and_counts_twice() -> None:
    seen = Seen()
    back = Job(HOME, redirects=8, again=True)
    assert seen.admit(Job(HOME)) is not None
    assert seen.admit(back) is back
    assert seen.admit(back) is None
    assert seen.admit(Job(HOME)) is None
    assert len(seen) == 2


def test_a_url_that_is_new_is_not_admitted_again() -> None:
    seen = Seen()
    assert seen.admit(Job(HOME, again=True)) == Job(HOME)
    assert seen.admit(Job(HOME, again=True)) == Job(HOME, again=True)


def test_a_job_without_redirects_left_does_not_use_the_second_admission_up() -> None:
    seen = Seen()
    seen.admit(Job(HOME))
    assert seen.admit(Job(HOME, redirects=-1, again=True)) is None
    assert seen.admit(Job(HOME, redirects=0, again=True)) is not None


def test_the_target_of_a_second_asking_has_the_redirects_that_its_own_chain_has_left() -> None:
    seen = Seen()
    first, back = Job(HOME, redirects=9), Job(HOME, redirects=5, again=True)
    seen.admit(first)
    seen.admit(back)
    onward = Job(f"{HOME}a", redirects=4, referrer=HOME)
    outcome = Redirect(HOME, 302, onward.url, again=True)
    assert seen.successors(Settlement(back, outcome, [onward])) == [onward]
    # A path with more redirects left goes on to the target of the second asking.
    assert seen.admit(Job(HOME, redirects=10)) == Job(f"{HOME}a", redirects=9, referrer=HOME)


# Random sites.


class Random:
    """A site of redirects and pages that depend on which cookies there are."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self.size = chance.randint(1, 12)
        self._said: dict[tuple[str, str], Said] = {}

    def __call__(self, path: str, cookie: str) -> Said:
        if (path, cookie) not in self._said:
            self._said[path, cookie] = self._made()
        return self._said[path, cookie]

    def _made(self) -> Said:
        chance = self._chance
        ways = tuple(f"/{chance.randrange(self.size)}" for _ in range(3))
        name, value = chance.choice("ab"), chance.randrange(3)
        cookie = chance.choice([None, f"{name}={value}; Path=/", f"{name}=; Max-Age=0; Path=/"])
        return Said(ways[0], (), cookie) if chance.random() < 0.6 else Said(None, ways, cookie)


@examples(300)
@given(st.integers(0, 2**32), st.integers(1, 8), st.integers(1, 6))
def test_the_laws_hold_on_any_site(seed: int, workers: int, redirects: int) -> None:
    chance = random.Random(seed)
    site: Site = Random(chance)
    web = LoginWeb(site, delay=lambda job: chance.choice([0, 0.1, 1, 7]), url=f"{HOME}0")

    async def main() -> None:
        limits = Limits(max_redirects=redirects, max_pages=chance.choice([3, math.inf]))
        outcomes = await crawled(web, workers=workers, limits=limits, traps=Traps.off())
        assert max(web.hits.values()) <= 2
        asked = Counter(one.url for one in outcomes if not isinstance(one, Skipped))
        assert web.hits == asked

    trio.run(main, clock=MockClock(autojump_threshold=0))
