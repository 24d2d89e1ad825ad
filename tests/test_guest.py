"""A crawl as a guest of many hosts, in virtual time: limits, rests, outages, fair turns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from itertools import pairwise, product

import pytest
import trio
from cases import for_each
from sites.webs import HOME, Site, collect, everything, site_of

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
    Traps,
)
from trio_crawler.frontier import HostStatistics
from trio_crawler.page.urls import authority
from trio_crawler.testing import Web, html, redirect, robots

SLOW = "http://slow.test/"
FAST = "http://fast.test/"


class Log:
    """Ask a web, and note when each request starts and how many are under way to a host."""

    def __init__(self, web: Web) -> None:
        self.starts: dict[str, list[float]] = {}
        self.urls: list[tuple[float, str]] = []
        self.peak: Counter[str] = Counter()
        self._web = web
        self._flying: Counter[str] = Counter()

    async def __call__(self, job: Job) -> Response | Fault:
        host = authority(job.url)
        self.starts.setdefault(host, []).append(trio.current_time())
        self.urls.append((trio.current_time(), job.url))
        self._flying[host] += 1
        self.peak[host] = max(self.peak[host], self._flying[host])
        try:
            return await self._web(job)
        finally:
            self._flying[host] -= 1


async def last_of(host: str, crawler: Crawler) -> float:
    """Run a crawl and tell when the last outcome of a host came."""
    last = 0.0
    async with crawler.outcomes() as outcomes:
        async for outcome in outcomes:
            if outcome.url.startswith(host):
                last = trio.current_time()
    return last


async def watched(crawler: Crawler, every: float) -> list[HostStatistics]:
    """Run a crawl and look at its first host again and again."""
    seen = []

    async def watch() -> None:
        while True:
            await trio.sleep(every)
            seen.extend(list(crawler.hosts.values())[:1])

    async with trio.open_nursery() as nursery:
        nursery.start_soon(watch)
        await crawler.crawl()
        nursery.cancel_scope.cancel()
    return seen


def kinds(outcomes: list[Outcome]) -> Counter[tuple[str, object]]:
    """Count outcomes by what they are, and their status or reason."""
    return Counter(
        (type(o).__name__, getattr(o, "status", getattr(o, "reason", 0))) for o in outcomes
    )


# A slow host and a fast one.


@pytest.mark.parametrize("per_host", [4, 10, 50])
@pytest.mark.parametrize("slowness", ["latency", "crawl-delay", "retry-after"])
async def test_a_slow_host_does_not_hold_a_fast_one(autojump_clock, per_host, slowness):
    site = site_of(40, SLOW) | site_of(200, FAST)
    if slowness == "crawl-delay":
        site[SLOW + "robots.txt"] = robots("User-agent: *", "Crawl-delay: 5")
    if slowness == "retry-after":
        site |= {f"{SLOW}{n}": once(busy("60"), html()) for n in range(0, 40, 10)}
    pause = 20 if slowness == "latency" else 0.1
    web = Web(site, delay=lambda job: pause if job.url.startswith(SLOW) else 0.1)
    gently = Politeness(per_host=per_host)
    crawler = Crawler([SLOW, FAST], fetch=web, workers=10, politeness=gently)
    done = await last_of(FAST, crawler)
    # Alone, with as many at once as its share of the workers, and one slow answer at most.
    alone = 0.2 + 200 * 0.1 / min(per_host, 5)
    assert done <= 2 * alone
    assert trio.current_time() >= 60
    assert crawler.statistics().pages == 242


def once(first: Response | Fault, then: Response | Fault) -> Callable[[Job], Response | Fault]:
    """Answer the first time so, and then so."""
    return lambda job: first if job.tries == 1 else then


@pytest.mark.parametrize("per_host", [4, 9, 10, 50])
async def test_a_fast_host_whose_pages_are_found_one_by_one_is_not_held_by_a_slow_one(
    autojump_clock, per_host
):
    site = site_of(200, SLOW) | {FAST: html("/0")}
    site |= {f"{FAST}{n}": html(f"/{n + 1}") for n in range(100)}
    web = Web(site, delay=lambda job: 10 if job.url.startswith(SLOW) and job.depth else 0.1)
    gently = Politeness(per_host=per_host)
    crawler = Crawler([SLOW, FAST], fetch=web, workers=10, politeness=gently, traps=Traps.off())
    done = await last_of(FAST, crawler)
    # Alone it takes 10.2 s; all workers may be busy when the first of its pages is found.
    assert done <= 10.2 + 10


async def test_a_thousand_urls_of_one_host_do_not_hold_ten_hosts_of_few(autojump_clock):
    small = [f"http://small{n}.test/" for n in range(10)]
    site = site_of(1000)
    for home in small:
        site |= site_of(5, home)
    last: dict[str, float] = {}
    async with Crawler([HOME, *small], fetch=Web(site, delay=1)).outcomes() as outcomes:
        async for outcome in outcomes:
            last[authority(outcome.url)] = trio.current_time()
    assert max(last[authority(home)] for home in small) <= 10
    assert last["site.test"] >= 100


# The manners of one host.


@pytest.mark.parametrize("per_host", [1, 3, 7])
async def test_no_more_requests_to_a_host_are_in_flight_than_per_host(autojump_clock, per_host):
    other = "http://site.test:8080/"
    log = Log(Web(site_of(50) | site_of(50, other), delay=1))
    crawler = Crawler(
        [HOME, other], fetch=log, workers=20, politeness=Politeness(per_host=per_host)
    )
    seen = await watched(crawler, 0.5)
    # A host is a name and a port.
    assert log.peak == {"site.test": per_host, "site.test:8080": per_host}
    assert {figures.limit for figures in seen} == {per_host}
    assert max(figures.in_flight for figures in seen) == per_host


async def test_http_and_https_are_one_host_and_share_its_limits(autojump_clock):
    secure = "https://site.test/"
    site = site_of(20) | site_of(20, secure) | {HOME + "5": once(busy("60"), html())}
    log = Log(Web(site, delay=1))
    gently = Politeness(per_host=3, delay=0.25)
    outcomes = await collect(Crawler([HOME, secure], fetch=log, politeness=gently))
    assert kinds(outcomes) == {("Page", 200): 42}
    assert log.peak["site.test"] == 3
    starts = log.starts["site.test"]
    gaps = [after - before for before, after in pairwise(starts)]
    assert min(gaps) >= 0.25
    assert max(gaps) >= 59


async def test_two_starts_at_a_host_are_never_closer_than_the_delay(autojump_clock):
    log = Log(Web(site_of(30) | {"/7": redirect("/3")}, delay=0.1))
    crawler = Crawler([HOME], fetch=log, politeness=Politeness(delay=2.5))
    seen = await watched(crawler, 1)
    starts = log.starts["site.test"]
    assert [after - before for before, after in pairwise(starts)] == [2.5] * 31
    assert {figures.delay for figures in seen} == {2.5}
    assert max(figures.rest for figures in seen) <= 2.5


@for_each(
    "asked, given, kept",
    [("3", 0, 3), ("0.5", 0, 0.5), ("3", 5, 5), ("5", 3, 5), ("100000", 0, 60), ("-1", 1, 1)],
)
async def test_the_longer_of_delay_and_crawl_delay_is_kept_and_the_latter_is_60_s_at_most(
    autojump_clock, asked, given, kept
):
    rules = robots("User-agent: *", f"Crawl-delay: {asked}")
    log = Log(Web(site_of(10) | {"/robots.txt": rules}, delay=0.1))
    crawler = Crawler([HOME], fetch=log, politeness=Politeness(delay=given))
    await collect(crawler)
    starts = log.starts["site.test"]
    assert len(starts) == 12
    gaps = [after - before for before, after in pairwise(starts)]
    assert gaps == pytest.approx([kept] * 11)
    assert crawler.hosts["site.test"].delay == kept


async def test_a_crawl_delay_holds_only_its_own_host(autojump_clock):
    rules = robots("User-agent: *", "Crawl-delay: 30")
    site = site_of(5, SLOW) | {SLOW + "robots.txt": rules} | site_of(20, FAST)
    crawler = Crawler([SLOW, FAST], fetch=Web(site, delay=1))
    assert await last_of(FAST, crawler) == 6
    assert [(name, host.delay) for name, host in crawler.hosts.items()] == [
        ("slow.test", 30),
        ("fast.test", 0),
    ]


async def test_an_adaptive_limit_grows_with_a_quick_host_and_falls_with_a_slow_one(
    autojump_clock,
):
    def latency(job: Job) -> float:
        # A server that does ten things at once, and from then on each of them slower.
        return 0.1 if web.in_flight <= 10 else 0.1 * web.in_flight

    web = Web(site_of(3000), delay=latency)
    log = Log(web)
    crawler = Crawler([HOME], fetch=log, workers=64, politeness=Politeness(adaptive=True))
    seen = await watched(crawler, 0.5)
    limits = [figures.limit for figures in seen]
    assert limits[0] > 4
    assert max(limits) >= 10
    assert any(after < before for before, after in pairwise(limits))
    assert log.peak["site.test"] < 40
    assert all(figures.latency >= 0.09 for figures in seen)


async def test_a_limit_that_is_not_adaptive_stays(autojump_clock):
    log = Log(Web(site_of(300), delay=0.1))
    await Crawler([HOME], fetch=log, workers=64).crawl()
    assert log.peak["site.test"] == 4


# Retry-After.


def busy(asked: str, status: int = 503) -> Response:
    answer = html(status=status)
    answer.headers["Retry-After"] = asked
    return answer


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize(
    ("asked", "seconds"), [("7", 7), ("120", 120), ("301", 300), ("3600", 300)]
)
async def test_retry_after_holds_every_url_of_its_host_to_the_millisecond(
    autojump_clock, status, asked, seconds
):
    site = site_of(20, SLOW) | site_of(20, FAST)
    site[SLOW] = html(SLOW + "busy", *(f"{SLOW}{n}" for n in range(20)))
    site[SLOW + "busy"] = once(busy(asked, status), html())
    log = Log(Web(site, delay=1))
    crawler = Crawler([SLOW, FAST], fetch=log, politeness=Politeness(per_host=1))
    outcomes = await collect(crawler)
    starts = log.starts["slow.test"]
    # Home from 1 to 2 after robots.txt, then the busy page until 2.
    assert starts[:4] == pytest.approx([0, 0, 1, 2 + seconds], abs=0.0005)
    assert starts[3] >= 2 + seconds
    assert max(log.starts["fast.test"]) == 20
    assert kinds(outcomes) == {("Page", 200): 43}


async def test_while_a_host_rests_its_statistics_say_for_how_long(autojump_clock):
    web = Web(site_of(3) | {"/0": once(busy("100"), html())}, delay=1)
    crawler = Crawler([HOME], fetch=web, politeness=Politeness(per_host=1))
    seen = await watched(crawler, 10)
    assert [figures.rest for figures in seen] == [92, 82, 72, 62, 52, 42, 32, 22, 12, 2]
    assert {figures.failures for figures in seen} == {1}


async def test_what_fails_at_once_is_one_trouble(autojump_clock):
    """Four requests were in flight when the server went away."""
    troubles = {f"{HOME}{n}": once(busy("100"), html()) for n in range(4)}
    seen = await watched(Crawler([HOME], fetch=Web(site_of(9) | troubles, delay=1)), 10)
    assert {figures.failures for figures in seen} == {1}
    assert seen[0].rest == 92


async def test_retry_after_may_be_a_date(autojump_clock):
    date = format_datetime(datetime.now(UTC) + timedelta(seconds=100), usegmt=True)
    log = Log(Web(site_of(9) | {"/0": once(busy(date), html())}, delay=1))
    crawler = Crawler([HOME], fetch=log, politeness=Politeness(per_host=1))
    await collect(crawler)
    # Dates are in whole seconds, and this test takes some itself.
    assert 95 <= log.starts["site.test"][3] - 2 <= 100


@pytest.mark.parametrize(
    "asked", ["-5", "nan", "inf", "1e3", "9" * 5000, "1000000000", "soon", "", "7.5"]
)
async def test_nonsense_in_retry_after_is_as_if_it_were_not_there(autojump_clock, asked):
    log = Log(Web(site_of(9) | {"/0": once(busy(asked), html())}, delay=1))
    crawler = Crawler([HOME], fetch=log, politeness=Politeness(per_host=1))
    await collect(crawler)
    assert 2.25 <= log.starts["site.test"][3] <= 2.5
    assert trio.current_time() <= 13


async def test_what_is_in_flight_when_a_host_asks_for_rest_is_finished(autojump_clock):
    web = Web(
        site_of(40) | {"/0": once(busy("50"), html())},
        delay=lambda job: 1 if job.url == HOME + "0" else 3,
    )
    log = Log(web)
    outcomes = await collect(Crawler([HOME], fetch=log))
    assert kinds(outcomes) == {("Page", 200): 41}
    starts = log.starts["site.test"]
    assert not [start for start in starts if 4 < start < 54]
    assert 54 in starts


# Outages.

TROUBLES = {
    "connection_refused": Fault(Reason.CONNECTION_REFUSED, "refused", Phase.CONNECT),
    "dns": Fault(Reason.DNS, "no answer", Phase.RESOLVE),
    "no_such_host": Fault(Reason.NO_SUCH_HOST, "no such name", Phase.RESOLVE),
    "unreachable": Fault(Reason.UNREACHABLE, "no route", Phase.CONNECT),
    "connect_timeout": Fault(Reason.CONNECT_TIMEOUT, "no answer", Phase.CONNECT),
    "silence": Fault(Reason.TIMEOUT, "no answer", Phase.WAIT),
    "reset": Fault(Reason.RESET, "reset", Phase.WAIT),
    "503": html(status=503),
    "502": html(status=502),
    "500": html(status=500),
}
PATIENT_SECONDS = 300
MOST_REQUESTS = 40
"""Requests that a host gets in an outage of 300 s; about 22 were seen, 5 of them for pages."""


def away(
    site: Site, host: str, trouble: str, since: float, seconds: float = PATIENT_SECONDS
) -> Site:
    """Let a host answer with a trouble from a moment on."""

    def when(answer: Response | Fault | Callable[[Job], Response | Fault]):
        def answered(job: Job) -> Response | Fault:
            if since <= trio.current_time() < since + seconds:
                return TROUBLES[trouble]
            return answer(job) if callable(answer) else answer

        return answered

    known: Mapping[str, object] = {host + "robots.txt": Response(404)} | site
    return {url: when(a) if url.startswith(host) else a for url, a in known.items()}


def latency(host: str, trouble: str, since: float) -> Callable[[Job], float]:
    """Take a second; in an outage the time that such a trouble takes."""

    def seconds(job: Job) -> float:
        if not (job.url.startswith(host) and since <= trio.current_time() < since + 300):
            return 1
        return {"silence": 30, "connect_timeout": 10}.get(trouble, 0.01)

    return seconds


def requests(log: Log, host: str, since: float) -> list[str]:
    return [u for at, u in log.urls if u.startswith(host) and since <= at < since + 300]


@pytest.mark.slow
@pytest.mark.parametrize("obeyed", [True, False])
@pytest.mark.parametrize("trouble", TROUBLES)
async def test_an_outage_of_five_minutes_loses_none_of_600_pages(autojump_clock, trouble, obeyed):
    site = away(site_of(600), HOME, trouble, 50.5)
    log = Log(Web(site, delay=latency(HOME, trouble, 50.5)))
    outcomes = await collect(Crawler([HOME], fetch=log, politeness=Politeness(robots=obeyed)))
    assert kinds(outcomes) == {("Page", 200): 601}
    assert max(outcome.tries for outcome in outcomes if isinstance(outcome, Page)) <= 3
    during = requests(log, HOME, 50.5)
    assert len(during) <= MOST_REQUESTS
    # The others ask for robots.txt: they use up no try of a URL.
    assert sum(url != HOME + "robots.txt" for url in during) <= 6
    # It is back on its feet half a minute after the host, and as quick as ever.
    assert trio.current_time() <= 50 + 300 + 30 + 120 + 5


@pytest.mark.parametrize("obeyed", [True, False])
@pytest.mark.parametrize("pages", [1, 3, 7])
@pytest.mark.parametrize("trouble", TROUBLES)
async def test_an_outage_that_begins_with_few_pages_left_loses_none(
    autojump_clock, trouble, pages, obeyed
):
    # The home page has come at 1 or 2 (its robots.txt takes one); the leaves are asked for then.
    since = 1.5 + obeyed
    site = away(site_of(pages), HOME, trouble, since - 0.6)
    site[HOME] = html(*(f"/{n}" for n in range(pages)))
    log = Log(Web(site, delay=latency(HOME, trouble, since - 0.6)))
    outcomes = await collect(Crawler([HOME], fetch=log, politeness=Politeness(robots=obeyed)))
    assert kinds(outcomes) == {("Page", 200): pages + 1}
    assert 1 <= len(requests(log, HOME, since - 0.6)) <= MOST_REQUESTS


@pytest.mark.parametrize("trouble", TROUBLES)
async def test_an_outage_at_the_beginning_of_a_second_host_loses_no_page(autojump_clock, trouble):
    """Its robots.txt has come, and not one page."""
    site = site_of(40) | {HOME + "5": html(FAST)}
    rest = site_of(20, FAST)
    times = iter(range(10**6))

    def rules(job: Job) -> Response | Fault:
        first = next(times) == 0
        return Response(404) if first or trio.current_time() >= 310 else TROUBLES[trouble]

    site |= away(rest, FAST, trouble, 0, 310) | {FAST + "robots.txt": rules}
    log = Log(Web(site, delay=1))
    outcomes = await collect(Crawler([HOME], fetch=log, scope=everything))
    assert kinds(outcomes) == {("Page", 200): 41 + 21}
    assert len(requests(log, FAST, 5)) <= MOST_REQUESTS


@pytest.mark.parametrize("trouble", ["dns", "no_such_host", "unreachable"])
async def test_an_outage_of_our_own_network_loses_no_host_that_was_not_met_before(
    autojump_clock, trouble
):
    """No host can be reached for 8 s: that says nothing of any of them."""
    homes = [f"http://host{n}.test/" for n in range(20)]
    site: Site = {}
    for home in homes:
        site |= away(site_of(3, home), home, trouble, 3.5, 8)
    web = Web(site, delay=lambda job: 0.01 if 3.5 <= trio.current_time() < 11.5 else 1)
    outcomes = await collect(Crawler(homes, fetch=web, workers=4))
    assert kinds(outcomes) == {("Page", 200): 80}


@pytest.mark.parametrize("obeyed", [True, False])
@pytest.mark.parametrize(("trouble", "tries"), [("dns", 4), ("no_such_host", 2)])
async def test_a_host_whose_name_does_not_exist_is_given_up_after_two_tries(
    autojump_clock, trouble, tries, obeyed
):
    log = Log(Web({HOME: TROUBLES[trouble], HOME + "robots.txt": TROUBLES[trouble]}))
    crawler = Crawler([HOME], fetch=log, politeness=Politeness(robots=obeyed))
    (failure,) = await collect(crawler)
    assert isinstance(failure, Failure)
    assert failure.reason.value == trouble
    assert len(log.urls) == tries


async def test_an_outage_of_one_host_does_not_hold_another(autojump_clock):
    site = away(site_of(100, SLOW), SLOW, "silence", 10.5) | site_of(100, FAST)
    web = Web(site, delay=latency(SLOW, "silence", 10.5))
    crawler = Crawler([SLOW, FAST], fetch=web, workers=8)
    assert await last_of(FAST, crawler) <= 2 + 100 / 4 + 1
    assert crawler.statistics().pages == 202


@pytest.mark.parametrize(
    ("trouble", "pages"),
    [
        *product(["502", "503", "silence", "reset"], [20, 60, 600]),
        # Ten pages that answer so are ten broken pages.
        *product(["500"], [60, 600]),
    ],
)
async def test_an_outage_of_pages_while_robots_txt_is_answered_loses_no_page(
    autojump_clock, trouble, pages
):
    """The file comes from the proxy in front, and the pages from what is away behind it."""
    since = 4.5 if pages == 20 else 10.5
    site = away(site_of(pages), HOME, trouble, since)
    site[HOME + "robots.txt"] = robots("User-agent: *", "Disallow: /private")
    log = Log(Web(site, delay=latency(HOME, trouble, since)))
    outcomes = await collect(Crawler([HOME], fetch=log))
    assert kinds(outcomes) == {("Page", 200): pages + 1}
    assert len(requests(log, HOME, since)) <= 2 * MOST_REQUESTS


async def test_a_linked_robots_txt_does_not_vouch_for_the_pages_behind_a_proxy(autojump_clock):
    """It is a page too, and comes in the middle of the outage."""
    leaves = [f"{HOME}{n}" for n in range(30)]
    site = away(site_of(30), HOME, "503", 12.5)
    site[HOME] = html(*leaves[:20], HOME + "robots.txt", *leaves[20:])
    site[HOME + "robots.txt"] = robots("User-agent: *", "Disallow: /private")
    gently = Politeness(per_host=1)
    outcomes = await collect(Crawler([HOME], fetch=Web(site, delay=1), politeness=gently))
    assert kinds(outcomes) == {("Page", 200): 32}


@pytest.mark.parametrize("trouble", ["connection_refused", "silence", "503", "500"])
async def test_a_host_that_stays_away_is_given_up_and_the_others_end_long_before(
    autojump_clock, trouble
):
    site = away(site_of(100, SLOW), SLOW, trouble, 10.5, 10**9) | site_of(100, FAST)
    log = Log(Web(site, delay=latency(SLOW, trouble, 10.5)))
    crawler = Crawler([SLOW, FAST], fetch=log)
    outcomes = []
    done = 0.0
    async with crawler.outcomes() as stream:
        async for outcome in stream:
            outcomes.append(outcome)
            done = trio.current_time() if outcome.url.startswith(FAST) else done
    assert done <= 30
    # 360 s of patience, and the last rest and silence.
    assert 10 + 360 <= trio.current_time() <= 10 + 360 + 60
    late = [outcome for outcome in outcomes if getattr(outcome, "status", 0) != 200]
    last = {"503": ("Page", 503), "500": ("Page", 500)}
    reasons = {"connection_refused": Reason.CONNECTION_REFUSED, "silence": Reason.TIMEOUT}
    ended = last.get(trouble) or ("Failure", reasons[trouble])
    found = kinds(late)
    # Those that were asked for end by their last answer.
    assert set(found) == {("Skipped", Reason.HOST_GIVEN_UP), ended}
    assert found[ended] <= 5
    assert len(late) + sum(o.url.startswith(SLOW) for o in outcomes if o not in late) == 101
    assert len([url for at, url in log.urls if url.startswith(SLOW) and at > 11]) <= MOST_REQUESTS
    slow, fast = crawler.hosts.values()
    assert slow.given_up == {"http": Reason.HOST_GIVEN_UP}
    assert not fast.given_up


async def test_patience_says_how_long_a_host_may_be_away(autojump_clock):
    site = away(site_of(100), HOME, "connection_refused", 10.5, 10**9)
    web = Web(site, delay=latency(HOME, "connection_refused", 10.5))
    crawler = Crawler([HOME], fetch=web, politeness=Politeness(patience=60))
    await collect(crawler)
    assert 70 <= trio.current_time() <= 101
    assert crawler.statistics().skipped > 50


@pytest.mark.parametrize("obeyed", [True, False])
@pytest.mark.parametrize(
    "trouble", ["connection_refused", "dns", "connect_timeout", "unreachable", "reset"]
)
async def test_a_host_that_was_never_reached_fails_with_its_reason_each_url_once(
    autojump_clock, trouble, obeyed
):
    site = site_of(0) | {HOME: html(*(f"{SLOW}{n}" for n in range(100)))}
    site |= away(site_of(100, SLOW), SLOW, trouble, 0, 10**9)
    log = Log(Web(site, delay=1))
    crawler = Crawler([HOME], fetch=log, scope=everything, politeness=Politeness(robots=obeyed))
    outcomes = await collect(crawler)
    reason = Reason.RESET if trouble == "reset" else Reason(trouble)
    assert kinds(outcomes) == {("Page", 200): 1, ("Failure", reason): 100}
    assert all(o.detail.endswith(TROUBLES[trouble].detail) for o in outcomes[1:])
    assert len(log.starts["slow.test"]) <= 12
    assert trio.current_time() <= 15
    given_up = crawler.hosts["slow.test"].given_up["http"]
    assert isinstance(given_up, Fault)
    assert given_up.reason is reason


@pytest.mark.parametrize("trouble", ["503", "500", "silence"])
async def test_a_host_that_never_answered_well_is_given_up_soon(autojump_clock, trouble):
    site = {HOME: html(*(f"{SLOW}{n}" for n in range(100)))}
    site |= away(site_of(100, SLOW), SLOW, trouble, 0, 10**9)
    log = Log(Web(site, delay=lambda job: 30 if trouble == "silence" else 1))
    outcomes = await collect(Crawler([HOME], fetch=log, scope=everything))
    expected = ("Skipped", Reason.ROBOTS_UNAVAILABLE)
    if trouble == "silence":
        expected = ("Failure", Reason.TIMEOUT)
    assert kinds(outcomes) == {("Page", 200): 1, expected: 100}
    assert len(log.starts["slow.test"]) <= 6
    assert trio.current_time() <= 100


async def test_a_few_urls_that_always_fail_do_not_make_a_host_given_up(autojump_clock):
    """Every third page is broken, for good: that is not the host."""
    broken = {f"{HOME}{n}": html(status=500) for n in range(0, 90, 3)}
    log = Log(Web(site_of(90) | broken, delay=1))
    outcomes = await collect(Crawler([HOME], fetch=log))
    assert kinds(outcomes) == {("Page", 200): 61, ("Page", 500): 30}
    assert trio.current_time() <= 200


async def test_a_hundred_broken_urls_in_a_row_do_not_make_a_host_given_up(autojump_clock):
    broken = {f"{HOME}{n}": html(status=500) for n in range(100)}
    log = Log(Web(site_of(120) | broken, delay=1))
    outcomes = await collect(Crawler([HOME], fetch=log))
    assert kinds(outcomes) == {("Page", 200): 21, ("Page", 500): 100}
    # Each of them twice, one at a time; robots.txt tells between that the host is there.
    assert trio.current_time() <= 600


@for_each("trouble", ["connection_refused", "connect_timeout", "tls"])
@for_each("obeyed", [True, False])
async def test_a_site_without_https_loses_no_page_to_a_link_that_has_it(
    autojump_clock, trouble, obeyed
):
    """One host, and two origins: the one at port 443 never answers."""
    secure = "https://site.test/"
    answer = TROUBLES.get(trouble) or Fault(Reason.TLS, "bad certificate", Phase.TLS)
    site = site_of(100) | dict.fromkeys([secure + "x", secure + "robots.txt"], answer)
    site[HOME] = html(secure + "x", *(f"/{n}" for n in range(100)))
    crawler = Crawler([HOME], fetch=Web(site, delay=1), politeness=Politeness(robots=obeyed))
    outcomes = await collect(crawler)
    assert kinds(outcomes) == {("Page", 200): 101, ("Failure", answer.reason): 1}


async def test_what_waits_for_a_host_that_rests_is_skipped_when_the_crawl_is_stopped(
    autojump_clock,
):
    web = Web(site_of(50) | {"/0": busy("300")}, delay=1)
    gently = Politeness(per_host=1)
    crawler = Crawler([HOME], fetch=web, limits=Limits(max_seconds=20), politeness=gently)
    outcomes = await collect(crawler)
    assert trio.current_time() == 20
    # What was asked for ends by its last answer.
    found = {("Page", 200): 1, ("Page", 503): 1, ("Skipped", Reason.TIME_BUDGET): 49}
    assert kinds(outcomes) == found
