"""A web of very many hosts in virtual time: nothing is lost, each host is spared, and it ends.

What must come is known before the crawl, and so is the least time that it takes. The first lines
have the times that are promised; `tests/bench/broad.py` measures the same web over sockets.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import pytest
import trio
from sites.broad import DEAD, SERVED, BroadWeb, File, Kind, parts
from sites.broad_fetch import BroadFetch, lookup_fault
from sites.webs import everything
from trio.testing import MockClock

from trio_crawler import (
    Crawler,
    Failure,
    Outcome,
    Page,
    Reason,
    Skipped,
    SqliteFrontier,
    Statistics,
    Traps,
)

BUSY_LOST = 0.02
"""The part of the pages of busy hosts that may end as 429 or 503, their tries used up."""

NEVER = 10_000
"""Seconds after which a crawl is taken for one that does not end."""


@dataclass(frozen=True)
class Case:
    """A web, and what is promised of its crawl.

    The last page comes `over` times the bound after the start, or sooner, and the crawl is over
    after `ends` seconds. Of the hosts 99 % are asked `wait` seconds after a page has led there,
    and all after `longest` seconds.
    """

    hosts: int
    workers: int
    over: float
    ends: float
    wait: float
    longest: float
    dead: float = 0.03
    hanging: float = 0.02

    def web(self) -> BroadWeb:
        """Make the web."""
        return BroadWeb(seed=1, hosts=self.hosts, dead=self.dead, hanging=self.hanging)


# A quarter of the hosts are ill.
ILL = {"dead": 0.15, "hanging": 0.1}
SMALL = Case(150, 20, over=1.4, ends=200, wait=20, longest=40)
# Hosts that are silent hold a quarter of the workers, and new ones wait for those.
SMALL_ILL = Case(150, 20, over=2.2, ends=700, wait=40, longest=60, **ILL)
LARGE = Case(3_000, 200, over=1.7, ends=250, wait=10, longest=60)
LARGE_ILL = Case(3_000, 200, over=3.4, ends=400, wait=100, longest=180, **ILL)

slow = pytest.mark.slow
CASES = [
    pytest.param(SMALL, id="small"),
    pytest.param(SMALL_ILL, id="small, ill"),
    pytest.param(LARGE, id="large", marks=slow),
    pytest.param(LARGE_ILL, id="large, ill", marks=slow),
]
of_each_web = pytest.mark.parametrize("case", CASES)


@dataclass
class Crawled:
    """A crawl that has ended: what it asked for, what came, and when it was over."""

    web: BroadWeb
    fetch: BroadFetch
    totals: Statistics = field(default_factory=Statistics)
    outcomes: list[Outcome] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def pages(self) -> Counter[str]:
        """The URLs of the pages that came with status 200."""
        return Counter(one.url for one in self.outcomes if isinstance(one, Page) and one.ok)

    def host_of(self, outcome: Outcome) -> Kind:
        """Return the kind of the host of an outcome."""
        return self.web.host(parts(outcome.url)[1]).kind


@cache
def crawled(case: Case) -> Crawled:
    """Crawl a web once; many tests look at what came."""
    return trio.run(crawl, case.web(), case.workers, clock=MockClock(autojump_threshold=0))


async def crawl(web: BroadWeb, workers: int, traps: Traps | None = None) -> Crawled:
    """Crawl a web to its end."""
    found = Crawled(web, BroadFetch(web))
    traps = Traps.off() if traps is None else traps
    crawler = Crawler(web.seeds, scope=everything, fetch=found.fetch, workers=workers, traps=traps)
    began = trio.current_time()
    with trio.fail_after(NEVER):
        async with crawler.outcomes() as outcomes:
            found.outcomes = [_without_body(outcome) async for outcome in outcomes]
    found.seconds = trio.current_time() - began
    found.totals = crawler.statistics()
    return found


def _without_body(outcome: Outcome) -> Outcome:
    if not isinstance(outcome, Page):
        return outcome
    return Page(outcome.url, outcome.status, outcome.headers, b"")


@of_each_web
def test_each_admitted_url_ends_in_one_outcome(case):
    run = crawled(case)
    totals = run.totals
    ended = totals.pages + totals.redirects + totals.failures + totals.skipped
    assert totals.admitted == ended == len(run.outcomes)
    assert len({outcome.url for outcome in run.outcomes}) == len(run.outcomes)
    assert (totals.in_flight, totals.waiting, run.fetch.watch.in_flight) == (0, 0, 0)


@of_each_web
def test_every_page_that_can_be_had_comes_and_is_fetched_once(case):
    run = crawled(case)
    wanted, pages = set(run.web.wanted()), run.pages
    missing = wanted - set(pages)
    busy = [url for url in wanted if run.web.host(parts(url)[1]).kind is Kind.BUSY]
    assert missing <= set(busy)
    assert len(missing) <= BUSY_LOST * len(busy)
    assert set(pages.values()) == {1}
    assert set(run.fetch.served) == wanted - missing
    assert set(run.fetch.served.values()) == {1}


@of_each_web
def test_nothing_else_comes_but_the_first_pages_of_hosts_that_stop_answering(case):
    run = crawled(case)
    others = [url for url in run.pages if not run.web.is_wanted(url)]
    of_hosts = Counter(run.web.host(parts(url)[1]) for url in others)
    assert others
    assert {host.kind for host in of_hosts} == {Kind.STOPS}
    assert max(of_hosts.values()) <= SERVED


@of_each_web
def test_a_dead_host_ends_as_failures_that_say_why(case):
    run = crawled(case)
    dead = [one for one in run.outcomes if run.host_of(one) in DEAD]
    by_kind: dict[Kind, set[Reason]] = {kind: set() for kind in DEAD}
    named: dict[Kind, set[Reason]] = {}
    for host in run.web.hosts:
        if failing := run.web.failing_lookup(host.name):
            named[host.kind] = {lookup_fault(host.name, failing).reason}
    for one in dead:
        if isinstance(one, Failure):
            by_kind[run.host_of(one)].add(one.reason)
    assert not [one for one in dead if isinstance(one, Page | Skipped)]
    assert by_kind.pop(Kind.REFUSED) == {Reason.CONNECTION_REFUSED}
    assert by_kind.pop(Kind.GARBAGE) == {Reason.TLS}
    assert by_kind == named


@of_each_web
def test_no_host_is_asked_too_much_too_early_or_for_what_its_robots_txt_refuses(case):
    run = crawled(case)
    watch = run.fetch.watch
    assert watch.violations == []
    # Without hosts that ask for it nothing would be proved.
    served = [host for host in run.web.hosts if host.is_served]
    assert any(host.delay and host.pages > 2 for host in served)
    assert any(host.kind is Kind.BUSY and host.pages > 10 for host in served)
    assert any(host.file is File.RULES and host.pages > 3 for host in served)


@of_each_web
def test_the_last_page_comes_little_later_than_the_bound(case):
    run = crawled(case)
    bound = run.web.bound().seconds(case.workers)
    print(f"\nlast page {run.fetch.times[-1]:.1f} s, bound {bound:.1f}, end {run.seconds:.1f}")
    assert bound <= run.fetch.times[-1] <= case.over * bound


@of_each_web
def test_the_crawl_ends_by_itself_though_some_hosts_never_answer(case):
    assert crawled(case).seconds <= case.ends


@of_each_web
def test_every_host_is_asked_soon_after_a_page_has_led_there(case):
    run = crawled(case)
    watch = run.fetch.watch
    asked = {run.web.host(name).name for name in watch.first}
    assert asked == {host.name for host in run.web.hosts}
    waits = watch.waits()
    print(f"\nwait of 50, 99, 100 %: {[waits[int(q * len(waits)) - 1] for q in (0.5, 0.99, 1)]}")
    assert waits[int(0.99 * len(waits)) - 1] <= case.wait
    assert waits[-1] <= case.longest


@pytest.mark.slow
@pytest.mark.parametrize("left", [1_000, *(pytest.param(n, marks=slow) for n in (100, 2_500))])
def test_a_crawl_that_is_left_and_resumed_loses_nothing_and_repeats_only_what_was_in_flight(
    tmp_path, left
):
    web = SMALL.web()
    fetch = BroadFetch(web)

    async def main() -> list[list[Outcome]]:
        first = await in_directory(tmp_path / "crawl", fetch, left)
        # Longer than any Retry-After: the next run knows nothing of it.
        await trio.sleep(60)
        fetch.watch.forget()
        return [first, await in_directory(tmp_path / "crawl", fetch, None)]

    first, second = trio.run(main, clock=MockClock(autojump_threshold=0))
    assert len(first) == left
    assert set(fetch.served) == set(web.wanted())
    again = sum(fetch.served.values()) - len(fetch.served)
    assert again <= SMALL.workers
    urls = [one.url for one in first[:-1]] + [one.url for one in second]
    assert len(set(urls)) == len(urls)
    assert set(web.wanted()) <= {*urls, first[-1].url}
    assert fetch.watch.violations == []


async def in_directory(directory: Path, fetch: BroadFetch, most: int | None) -> list[Outcome]:
    """Crawl until so many outcomes have come, or to the end."""
    found: list[Outcome] = []
    async with SqliteFrontier(directory) as frontier:
        crawler = Crawler(
            fetch.web.seeds,
            scope=everything,
            fetch=fetch,
            frontier=frontier,
            workers=SMALL.workers,
            traps=Traps.off(),
        )
        async with crawler.outcomes() as outcomes:
            async for outcome in outcomes:
                found.append(outcome)
                if len(found) == most:
                    break
    return found


@pytest.mark.slow
def test_no_trap_refuses_a_page_of_a_host_whose_pages_differ_by_their_numbers_only():
    web = BroadWeb(seed=1, hosts=20, largest=4_000)
    run = trio.run(crawl, web, 20, Traps(), clock=MockClock(autojump_threshold=0))
    missing = set(web.wanted()) - set(run.pages)
    # A server that refuses each tenth request may refuse one URL until its tries are gone.
    assert {web.host(parts(url)[1]).kind for url in missing} <= {Kind.BUSY}
    assert len(missing) <= 2


@pytest.mark.slow
@pytest.mark.parametrize("seed", [6, 7])
def test_no_page_of_a_host_that_is_busy_now_and_then_is_lost(seed):
    web = BroadWeb(seed=seed, hosts=20, largest=4_000)
    run = trio.run(crawl, web, 20, clock=MockClock(autojump_threshold=0))
    assert any(host.kind is Kind.BUSY and host.pages > 80 for host in web.hosts)
    assert set(web.wanted()) <= set(run.pages)


@slow
def test_no_trap_refuses_a_page_of_the_large_web():
    web = LARGE.web()
    run = trio.run(crawl, web, LARGE.workers, Traps(), clock=MockClock(autojump_threshold=0))
    missing = set(web.wanted()) - set(run.pages)
    assert {web.host(parts(url)[1]).kind for url in missing} <= {Kind.BUSY}


LINK = re.compile(rb'href="([^"]+)"')


def test_the_pages_that_can_be_had_are_those_that_the_links_lead_to():
    web = SMALL.web()
    agenda = [*web.seeds]
    seen, served = set(agenda), set()
    while agenda:
        url = agenda.pop()
        scheme, name, _ = parts(url)
        host = web.host(name)
        if host.kind in DEAD or host.file in (File.BROKEN, File.CLOSED):
            continue
        reply = web.reply(url, asked=0)
        fields = dict(reply.fields)
        links = [link.decode() for link in LINK.findall(reply.body)]
        if reply.status == 200:
            served.add(url)
        if "Location" in fields:
            links.append(fields["Location"])
        here = f"{scheme}://{name}"
        refused = ("/private/", "/?")
        found = {here + link if link[0] == "/" else link for link in links}
        found = {link for link in found if not parts(link)[2].startswith(refused)}
        agenda += found - seen
        seen |= found
    stops = {url for url in served if web.host(parts(url)[1]).kind is Kind.STOPS}
    assert served - stops == set(web.wanted())
    assert {web.host(parts(url)[1]).name for url in seen} == {host.name for host in web.hosts}


def test_a_web_is_a_function_of_its_seed():
    one, same, other = BroadWeb(hosts=60), BroadWeb(hosts=60), BroadWeb(seed=2, hosts=60)
    urls = [*one.wanted()]
    assert [one.reply(url, 5) for url in urls] == [same.reply(url, 5) for url in urls]
    assert (one.seeds, one.bound()) == (same.seeds, same.bound())
    assert one.hosts != other.hosts


def test_the_large_web_is_made_of_what_it_says():
    web = LARGE.web()
    kinds = Counter(host.kind for host in web.hosts)
    files = Counter(host.file for host in web.hosts)
    shares = {**dict.fromkeys(DEAD, 18), Kind.BUSY: 81, Kind.DOWN: 9, Kind.MOVED: 90}
    shares |= {Kind.SILENT: 30, Kind.STOPS: 30}
    # The ten largest hosts are well, whatever was drawn for them.
    assert all(number - 10 <= kinds[kind] <= number for kind, number in shares.items())
    assert kinds[Kind.WELL] <= 3_000 - sum(shares.values()) + 10
    assert len(web.seeds) == 200
    assert 0.48 < files[File.MISSING] / 3_000 < 0.52
    assert 0.045 < files[File.DELAY] / 3_000 < 0.055
    sizes = sorted((host.pages for host in web.hosts), reverse=True)
    assert sizes[:3] == [20_000, 8_409, 5_066]
    assert 70_000 < len([*web.wanted()]) < 80_000
    assert max(host.least() for host in web.hosts if host.is_served) <= 65
