"""Workers that share a crawl by a store, in one virtual clock."""

from __future__ import annotations

import sqlite3
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
import trio
from sites.store_model import StoreModel
from trio.testing import MockClock

from trio_crawler import (
    ArgumentError,
    Checks,
    Crawler,
    HostPoliteness,
    Job,
    Limits,
    Outcome,
    Politeness,
    Reason,
    Response,
    Sitemaps,
    StoreError,
    Traps,
)
from trio_crawler.frontier import Plan
from trio_crawler.shared.frontier import SharedFrontier
from trio_crawler.shared.message import Back, Child, Join, Refused, Reply, Work, packed
from trio_crawler.store import DifferentCrawl, merge
from trio_crawler.store.database import NAME
from trio_crawler.testing import Web, html

HOSTS, PAGES, WORKERS = 8, 40, 3
HOME = "http://h0.test/"


def site() -> dict[str, Response]:
    """Return a tree of pages on each host; all start pages link to each other."""
    homes = [f"http://h{host}.test/" for host in range(HOSTS)]
    return {
        f"{home}{page or ''}": html(
            *(f"/{below}" for below in range(4 * page + 1, 4 * page + 5) if below < PAGES), *homes
        )
        for home in homes
        for page in range(PAGES)
    }


@dataclass
class Shared:
    """What a crawl by several workers did."""

    store: Any
    starts: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    flying: Counter[str] = field(default_factory=Counter)
    peak: Counter[str] = field(default_factory=Counter)
    depths: list[int] = field(default_factory=list)
    hits: Counter[str] = field(default_factory=Counter)
    ends: Counter[str] = field(default_factory=Counter)
    by_worker: list[int] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)


def leaves_of(group: BaseExceptionGroup[Any]) -> list[BaseException]:
    """Return the exceptions in a group and in the groups in it."""
    return [
        leaf
        for each in group.exceptions
        for leaf in (leaves_of(each) if isinstance(each, BaseExceptionGroup) else [each])
    ]


async def crawled(
    store: Any = None,
    *,
    leaves: Callable[[int, int], bool] = lambda worker, outcomes: False,
    late: float = 0.0,
    strands: int = 1,
    pages: dict[str, Response] | None = None,
    frontiers: list[SharedFrontier] | None = None,
    **given: Any,
) -> Shared:
    """Crawl by three workers; one of them `leaves` after so many outcomes, if that says so.

    Each begins so many seconds `late` after the one before. Their `frontiers` are put on a list.
    """
    web = Web(site() if pages is None else pages, delay=0.2)
    found = Shared(store or StoreModel(delay=0.01))
    about = {"politeness": Politeness(per_host=2, robots=False), "traps": Traps.off(), **given}

    async def fetch(job: Job) -> Any:
        host = job.url.split("/")[2]
        found.flying[host] += 1
        found.peak[host] = max(found.peak[host], found.flying[host])
        found.starts[host].append(trio.current_time())
        found.depths.append(job.depth)
        found.hits[job.url] += 1
        try:
            return await web(job)
        finally:
            found.flying[host] -= 1

    async def work(number: int) -> None:
        frontier = SharedFrontier(found.store, meaning={}, ttl=5, strands=strands)
        if frontiers is not None:
            frontiers.append(frontier)
        crawler = Crawler(
            [HOME],
            scope=lambda job: True,
            fetch=fetch,
            frontier=frontier,
            sitemaps=Sitemaps(follow=False),
            **about,
        )
        await trio.sleep(number * late)
        count = 0
        try:
            async with crawler.outcomes() as outcomes:
                async for outcome in outcomes:
                    found.ends[outcome.url] += 1
                    count += 1
                    if leaves(number, count):
                        break
        except* Refused as group:
            found.refused += [
                each.reason for each in leaves_of(group) if isinstance(each, Refused)
            ]
        found.by_worker.append(count)

    with trio.fail_after(600):
        async with trio.open_nursery() as nursery:
            for number in range(WORKERS):
                nursery.start_soon(work, number)
    return found


ALL = HOSTS * PAGES


async def test_workers_share_a_crawl_fairly_and_each_url_has_one_outcome(autojump_clock) -> None:
    found = await crawled()
    assert (len(found.ends), set(found.ends.values())) == (ALL, {1})
    assert set(found.hits.values()) == {1}
    assert min(found.by_worker) >= ALL // WORKERS // 2
    assert set(found.peak.values()) == {2}
    assert found.store.added == found.store.done == ALL + 1
    # Some forty URLs a call.
    assert found.store.calls < ALL


async def test_the_delay_of_a_host_is_kept_over_all_workers(autojump_clock) -> None:
    found = await crawled(politeness=Politeness(delay=1, robots=False))
    gaps = [b - a for starts in found.starts.values() for a, b in pairwise(starts)]
    assert min(gaps) > 0.999
    assert len(found.ends) == ALL


async def test_all_workers_end_at_the_time_limit_of_the_first(autojump_clock) -> None:
    gently = Politeness(delay=1, robots=False)
    began = trio.current_time()
    found = await crawled(late=3, limits=Limits(max_seconds=9), politeness=gently)
    starts = [at - began for each in found.starts.values() for at in each]
    assert 8 < max(starts) < 9
    assert min(found.by_worker) > 0


async def test_levels_come_one_after_the_other_over_all_workers(autojump_clock) -> None:
    found = await crawled(limits=Limits(max_depth=2))
    assert found.depths == sorted(found.depths)
    assert max(found.depths) == 2


@pytest.mark.parametrize("late", [0.0, 1.0])
@pytest.mark.parametrize("strands", [3, 8])
async def test_workers_share_the_strands_of_one_host_and_its_limit(
    autojump_clock, strands: int, late: float
) -> None:
    count = 400
    pages = {
        f"{HOME}{page or ''}": html(
            *(f"/{below}" for below in range(4 * page + 1, 4 * page + 5) if below < count)
        )
        for page in range(count)
    }
    polite = Politeness(per_host=8, robots=False)
    found = await crawled(pages=pages, strands=strands, late=late, politeness=polite)
    assert (len(found.ends), set(found.hits.values())) == (count, {1})
    assert min(found.by_worker) >= count // WORKERS // 3
    assert 6 <= found.peak["h0.test"] <= 8
    assert found.store.added == found.store.done == count + 1


async def test_a_worker_that_joins_late_gets_its_strands_at_once_and_keeps_them(
    autojump_clock,
) -> None:
    count = 3_000
    # Each page brings ten more: new jobs of each strand come with each reply of the store.
    links = {page: range(10 * page + 291, min(10 * page + 301, count)) for page in range(count)}
    links[0] = range(1, 301)
    pages = {f"{HOME}{page or ''}": html(*map("/{}".format, links[page])) for page in links}
    polite, began = Politeness(per_host=30, robots=False), trio.current_time()
    found = await crawled(pages=pages, strands=12, late=1.0, politeness=polite)
    assert len(found.ends) == count
    # Three workers have ten tasks each, and a page takes 0.2 s: 20 s, if all are always busy.
    assert trio.current_time() - began < 24


def tree(host: str, count: int, *others: str) -> dict[str, Response]:
    """Return so many pages of a host, of which the first one links to others, too."""
    links = {each: [f"/{10 * each + more}" for more in range(1, 11)] for each in range(count)}
    return {
        f"http://{host}/{page or ''}": html(
            *links[page][: max(0, count - 10 * page - 1)], *(() if page else others)
        )
        for page in range(count)
    }


def has_too_much(frontier: SharedFrontier) -> bool:
    """Whether a worker holds hosts that its tasks leave alone, beside those it parts with."""
    leases = frontier._leases
    held = leases._more.keys() - leases._parted.keys()
    return not frontier.jobs.idle and frontier.hosts.ready > 0 and len(held) > 1


@pytest.mark.slow
@pytest.mark.merge
@pytest.mark.parametrize(
    ("sizes", "per_host", "delayed"),
    [
        ([600] + [3] * 600, 2, 0),
        ([500] * 5 + [3] * 100, 10, 0),
        ([20] * 10 + [150] * 10, 10, 10),
    ],
    ids=["one huge", "few large", "delays"],
)
async def test_no_worker_waits_two_seconds_while_another_has_more_than_it_can_ask(
    autojump_clock, sizes: list[int], per_host: int, delayed: int
) -> None:
    homes = [f"http://h{number}.test/" for number in range(len(sizes))]
    pages: dict[str, Response] = {}
    for number, size in enumerate(sizes):
        pages |= tree(f"h{number}.test", size, *(() if number else homes))
    slow = {f"h{number}.test": HostPoliteness(delay=5) for number in range(delayed)}
    polite = Politeness(per_host=per_host, robots=False, hosts=slow)
    frontiers: list[SharedFrontier] = []
    waited: Counter[int] = Counter()
    longest = 0

    async def watch() -> None:
        nonlocal longest
        while True:
            await trio.sleep(0.1)
            for number, each in enumerate(frontiers):
                others = any(map(has_too_much, {*frontiers} - {each}))
                idle = each.jobs.idle and not each.hosts.ready
                waited[number] = waited[number] + 1 if idle and others else 0
                longest = max(longest, waited[number])

    async with trio.open_nursery() as nursery:
        nursery.start_soon(watch)
        found = await crawled(pages=pages, politeness=polite, frontiers=frontiers)
        nursery.cancel_scope.cancel()
    assert (len(found.ends), set(found.hits.values())) == (sum(sizes), {1})
    assert longest < 20


@pytest.mark.parametrize(
    "polite",
    [
        Politeness(),
        Politeness(robots=False, per_host=3),
        Politeness(robots=False, delay=1),
        Politeness(robots=False, adaptive=True),
    ],
)
async def test_a_host_that_one_worker_has_to_ask_alone_has_no_strands(polite: Politeness) -> None:
    frontier = SharedFrontier(StoreModel(), meaning={}, strands=4)
    with pytest.raises(ArgumentError, match="politeness must have robots=False, no delay, and"):
        await frontier.open(Plan([HOME], politeness=polite))


@pytest.mark.parametrize("limits", [Limits(), Limits(max_depth=4)], ids=["all", "levels"])
async def test_a_worker_that_joins_late_gets_its_share_of_the_hosts(
    autojump_clock, limits: Limits
) -> None:
    found = await crawled(late=0.7, limits=limits)
    assert (len(found.ends), set(found.hits.values())) == (ALL, {1})
    assert min(found.by_worker) >= ALL // WORKERS // 4
    assert set(found.peak.values()) == {2}


async def test_the_page_budget_is_that_of_all_workers(autojump_clock) -> None:
    found = await crawled(limits=Limits(max_pages=50))
    assert sum(found.hits.values()) == 50


@pytest.mark.parametrize("after", [1, 20, 60])
async def test_a_worker_that_leaves_loses_nothing(autojump_clock, after: int) -> None:
    found = await crawled(leaves=lambda worker, count: worker == 0 and count == after)
    assert len(found.ends) == ALL
    # What it had in flight, and what it had not told: two for each of its ten tasks.
    assert sum(found.hits.values()) - ALL <= 20


class Gap:
    """A store that does not answer one worker for a time, or loses each n-th reply of all."""

    def __init__(self, *, frozen: float = 0.0, lost: int = 0) -> None:
        self._store = StoreModel(delay=0.01)
        self._frozen, self._lost = frozen, lost
        self._victim: str | None = None
        self._calls = 0
        self.again = 0

    async def call(self, command: str, message: bytes) -> bytes:
        self._calls += 1
        if command != "work":
            return await self._store.call(command, message)
        name = msgspec.msgpack.decode(message)[0]
        if self._frozen and self._calls > 20 and self._victim in (None, name):
            self._victim, frozen, self._frozen = name, self._frozen, 0.0
            await trio.sleep(frozen)
        reply = await self._store.call(command, message)
        if self._lost and not self._calls % self._lost:
            reply = await self._store.call(command, message)
            self.again += msgspec.msgpack.decode(reply, type=Reply).again
        return reply


async def test_a_worker_that_is_frozen_past_its_lease_is_fenced_and_loses_nothing(
    autojump_clock,
) -> None:
    found = await crawled(Gap(frozen=30.0))
    assert found.refused == ["FENCED"]
    assert len(found.ends) == ALL
    assert set(found.peak.values()) == {2}


async def test_no_request_starts_after_the_lease_of_a_worker(autojump_clock) -> None:
    store = StoreModel()
    starts: list[float] = []
    called = 0.0

    class Silent:
        async def call(self, command: str, message: bytes) -> bytes:
            nonlocal called
            if command == "work" and len(starts) > 5:
                await trio.sleep_forever()
            called = trio.current_time()
            return await store.call(command, message)

    async def fetch(job: Job) -> Response:
        starts.append(trio.current_time())
        await trio.sleep(0.5)
        return html()

    homes = [f"http://h0.test/{number}" for number in range(100)]
    crawler = Crawler(
        homes,
        fetch=fetch,
        frontier=SharedFrontier(Silent(), meaning={}, ttl=5),
        politeness=Politeness(per_host=1, robots=False),
        sitemaps=Sitemaps(follow=False),
        workers=50,
    )
    with trio.move_on_after(60):
        await crawler.crawl()
    assert 5 < len(starts) < 100
    assert max(starts) < called + 4


async def test_no_message_tells_of_too_many_jobs_and_a_page_ends_after_its_links_are_told(
    autojump_clock,
) -> None:
    store, homes, links = StoreModel(), 30, 500
    seeds = [f"http://h{host}.test/" for host in range(homes)]
    most = told = ended = 0

    class Watched:
        async def call(self, command: str, message: bytes) -> bytes:
            nonlocal most, told, ended
            if command == "work":
                work = msgspec.msgpack.decode(message, type=Work)
                found = sum(map(len, work.found))
                most, told, ended = max(most, found), told + found, ended + len(work.ended)
                assert told >= homes + links * min(ended, homes)
            return await store.call(command, message)

    crawler = Crawler(
        seeds,
        fetch=Web(dict.fromkeys(seeds, html(*map(str, range(links))))),
        frontier=SharedFrontier(Watched(), meaning={}),
        politeness=Politeness(robots=False),
        limits=Limits(max_pages=homes),
        sitemaps=Sitemaps(follow=False),
        workers=homes,
    )
    await crawler.crawl()
    assert 4_000 < most <= 5_000
    assert (store.added, ended) == (homes * (links + 1) + 1, homes)


async def test_a_reply_that_was_lost_is_asked_for_again_and_changes_nothing(
    autojump_clock,
) -> None:
    store = Gap(lost=5)
    found = await crawled(store)
    assert store.again > 5
    assert (len(found.ends), set(found.hits.values())) == (ALL, {1})


async def test_a_worker_that_joins_with_another_meaning_or_with_checks_is_refused() -> None:
    store = StoreModel()
    await SharedFrontier(store, meaning={"depth": 1, "scope": "host"}).open(Plan([HOME]))
    await SharedFrontier(store, meaning={"depth": 1}).open(Plan([HOME]))
    workers = len(store._seq)
    with pytest.raises(DifferentCrawl, match="depth was 1, now it is 2"):
        await SharedFrontier(store, meaning={"depth": 2}).open(Plan([HOME]))
    with pytest.raises(DifferentCrawl, match="max_pages was -1, now it is 5"):
        await SharedFrontier(store).open(Plan([HOME], limits=Limits(max_pages=5)))
    # They have left: the fair share of the others does not count them.
    assert len(store._seq) == workers == 2
    with pytest.raises(Refused, match="there is no shared crawl of this name yet"):
        await SharedFrontier(StoreModel()).open(Plan([HOME]))
    with pytest.raises(ArgumentError, match="checks of links cannot be shared"):
        await SharedFrontier(store).open(Plan([HOME], checks=Checks()))


async def test_when_all_have_left_the_page_budget_of_the_next_one_counts(autojump_clock) -> None:
    first = await crawled(limits=Limits(max_pages=50))
    second = await crawled(first.store, limits=Limits(max_pages=80))
    same = await crawled(first.store)
    assert [len(each.ends) for each in (first, second, same)] == [50, 30, 0]


@pytest.mark.parametrize("first", ["with seeds", "without"])
async def test_a_crawl_is_not_over_before_the_worker_with_the_seeds_has_told_all_of_them(
    autojump_clock, first: str
) -> None:
    store, web, ended = StoreModel(delay=0.01), Web(site(), delay=0.2), Counter[str]()

    async def slowly() -> AsyncIterator[str]:
        for host in range(HOSTS):
            yield f"http://h{host}.test/"
            await trio.sleep(7)

    async def work(seeds: bool) -> None:
        frontier = SharedFrontier(store, meaning={}, ttl=5, seeds=seeds)
        stream = slowly() if seeds else None
        about = {"scope": lambda job: True, "traps": Traps.off()}
        crawler = Crawler([], seed_stream=stream, fetch=web, frontier=frontier, **about)
        if seeds == (first == "without"):
            await trio.sleep(1)
        async with crawler.outcomes() as outcomes:
            async for outcome in outcomes:
                ended[outcome.url] += 1

    with trio.fail_after(600):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(work, True)
            nursery.start_soon(work, False)
    assert (len(ended), set(ended.values())) == (ALL, {1})


async def test_the_seeds_of_a_stream_are_told_many_at_a_time(autojump_clock) -> None:
    store, count = StoreModel(delay=0.01), 3_000

    async def stream() -> AsyncIterator[str]:
        for page in range(count):
            yield f"{HOME}{page}"

    frontier = SharedFrontier(store, meaning={})
    crawler = Crawler([], seed_stream=stream(), fetch=Web({}), frontier=frontier)
    await crawler.crawl()
    assert store.added == store.done == count + 1
    assert store.calls < count // 8


async def test_a_worker_without_seeds_takes_no_stream_of_them() -> None:
    async def stream() -> AsyncIterator[str]:
        yield HOME

    crawler = Crawler([], seed_stream=stream(), frontier=SharedFrontier(StoreModel(), seeds=False))
    with pytest.raises(ArgumentError, match="seed_stream has seeds"):
        await crawler.crawl()


async def test_a_worker_that_is_stopped_leaves_the_rest_to_the_others(autojump_clock) -> None:
    store = StoreModel(delay=0.01)
    ends: Counter[str] = Counter()
    web = Web(site(), delay=0.2)

    async def work(stops: bool) -> None:
        crawler = Crawler(
            [HOME],
            scope=lambda job: True,
            fetch=web,
            frontier=SharedFrontier(store, meaning={}, ttl=5),
            politeness=Politeness(per_host=2, robots=False),
            traps=Traps.off(),
            sitemaps=Sitemaps(follow=False),
        )
        outcomes: list[Outcome] = []
        async with crawler.outcomes() as found:
            async for outcome in found:
                outcomes.append(outcome)
                ends[outcome.url] += 1
                if stops and len(outcomes) == 30:
                    crawler.stop(Reason.STOPPED)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(work, True)
        nursery.start_soon(work, False)
    assert (len(ends), set(ends.values())) == (ALL, {1})


def work(name: str, seq: int, **changes: Any) -> bytes:
    """Encode a message that asks for nothing, but for the `changes`."""
    message = Work(name, seq, 5_000, [], [], 0, 0, [], [], False, 0, 0)
    return packed(msgspec.structs.replace(message, **changes))


async def test_a_host_that_is_given_back_rests_as_long_as_its_worker_says() -> None:
    now = 1_000.0
    store = StoreModel(now=lambda: now)
    for name in ("a", "b"):
        await store.call("join", packed(Join(name, 60_000, "{}", "", -1, False, 1 << 52)))

    async def granted(name: str, seq: int, **changes: Any) -> list[str]:
        reply = await store.call("work", work(name, seq, ttl=60_000, room=9, **changes))
        return [grant.host for grant in msgspec.msgpack.decode(reply, type=Reply).granted]

    jobs = [Child(0, number, "h.test", 0, str(number)) for number in range(2)]
    assert await granted("a", 1, found=[jobs], want=1) == ["h.test"]
    assert await granted("b", 1, want=1) == []
    assert await granted("a", 2, back=[Back("h.test", 500, [3, 2])]) == []
    now += 499
    assert await granted("b", 2, want=1) == []
    now += 1
    assert await granted("b", 3, want=1) == ["h.test"]


async def test_a_clock_of_the_store_that_jumps_takes_no_lease() -> None:
    now, day = 1e9, 86_400_000.0
    store = StoreModel(now=lambda: now)
    for name in ("a", "b"):
        await store.call("join", packed(Join(name, 5_000, "{}", "", -1, False, 1 << 52)))
    for seq, jump in enumerate((day, -2 * day, day), 1):
        now += jump
        for name in ("a", "b"):
            await store.call("work", work(name, seq))


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (("other", 1, {}), "FENCED"),
        (("a", 3, {}), "LOST"),
        (("a", 1, {"ended": [7]}), "TWICE"),
    ],
)
async def test_a_message_that_is_refused_changes_nothing(message, reason) -> None:
    store = StoreModel()
    for name in "a":
        await SharedFrontier(store, meaning={}).open(Plan([HOME]))
        store._seq = {name: 0}
        store._expiry = {name: 1e9}
    name, seq, changes = message
    before = msgspec.json.encode([store.added, store.done, store._seq])
    with pytest.raises(Refused) as caught:
        await store.call("work", work(name, seq, **changes))
    assert caught.value.reason == reason
    assert msgspec.json.encode([store.added, store.done, store._seq]) == before


def test_whole_crawls_of_several_workers_take_the_same_virtual_time_each_time() -> None:
    async def timed() -> float:
        began = trio.current_time()
        await crawled()
        return trio.current_time() - began

    times = {round(trio.run(timed, clock=MockClock(autojump_threshold=0)), 3) for _ in range(2)}
    assert max(times) < ALL * 0.2 / HOSTS


async def test_an_outcome_is_on_the_disk_before_the_store_knows_of_it(
    autojump_clock, tmp_path: Path
) -> None:
    store, told = StoreModel(), list[int]()

    class Watched:
        async def call(self, command: str, message: bytes) -> bytes:
            if command == "work":
                told.extend(msgspec.msgpack.decode(message, type=Work).ended)
                with closing(sqlite3.connect(tmp_path / NAME)) as database:
                    written = {number for (number,) in database.execute("SELECT number FROM urls")}
                assert written.issuperset(told)
            return await store.call(command, message)

    async with SharedFrontier(Watched(), meaning={}, directory=tmp_path) as frontier:
        # FULL, so that no transaction is lost with the power of the machine either.
        assert frontier.kept._journal.store._database.row("PRAGMA synchronous") == (2,)
        crawler = Crawler([HOME], fetch=Web(site()), frontier=frontier)
        await crawler.crawl()
    assert len(told) == PAGES


async def test_a_worker_whose_directory_fails_leaves_and_the_other_does_its_work(
    autojump_clock, tmp_path: Path
) -> None:
    store, web, failed = StoreModel(delay=0.01), Web(site(), delay=0.2), []

    async def work(home: Path, *, fails: bool) -> None:
        async with SharedFrontier(store, meaning={}, ttl=60, directory=home) as frontier:
            crawler = Crawler(
                [HOME],
                scope=lambda job: True,
                fetch=web,
                frontier=frontier,
                politeness=Politeness(per_host=2, robots=False),
                sitemaps=Sitemaps(follow=False),
            )
            async with crawler.outcomes() as outcomes:
                async for _ in outcomes:
                    if fails and crawler.statistics().pages == 30:
                        with closing(sqlite3.connect(home / NAME)) as database:
                            database.execute(
                                "CREATE TRIGGER fails BEFORE INSERT ON urls "
                                "BEGIN DELETE FROM nowhere; END"
                            )

    async def work_in_vain(home: Path) -> None:
        try:
            await work(home, fails=True)
        except* StoreError as group:
            failed.extend(leaves_of(group))

    began = trio.current_time()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(work_in_vain, tmp_path / "bad")
        nursery.start_soon(partial(work, tmp_path / "good", fails=False))
    # It has left: nobody had to wait for the end of its lease.
    assert trio.current_time() - began < 60
    assert len(failed) == 1
    assert merge(tmp_path / "all", [tmp_path / "bad", tmp_path / "good"]).urls == ALL


async def test_while_the_store_is_away_few_large_pages_wait_in_memory(
    autojump_clock, tmp_path: Path
) -> None:
    body = html(*(f"/{number}" for number in range(200))).body.ljust(4 << 20)
    store, fetched = StoreModel(), 0

    class Away:
        async def call(self, command: str, message: bytes) -> bytes:
            if command == "work" and fetched:
                await trio.sleep_forever()
            return await store.call(command, message)

    async def fetch(job: Job) -> Response:
        nonlocal fetched
        fetched += 1
        return Response(200, httpx.Headers({"Content-Type": "text/html"}), body)

    async with SharedFrontier(Away(), meaning={}, ttl=60, directory=tmp_path) as frontier:
        crawler = Crawler(
            [f"{HOME}{number}" for number in range(200)],
            fetch=fetch,
            frontier=frontier,
            politeness=Politeness(per_host=100, robots=False),
            sitemaps=Sitemaps(follow=False),
            workers=40,
        )
        with trio.move_on_after(50):
            await crawler.crawl()
    # Four that fill the 16 MiB, and one for each task; without the bound 80.
    assert 40 <= fetched < 50
