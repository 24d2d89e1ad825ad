"""Build the engine of one crawl from its plan, and the tasks that it runs beside the workers.

A name that is slow or silent holds no worker. The seeding task admits the URLs of a stream as the
frontier has room for them.
"""

from __future__ import annotations

from collections.abc import (
    AsyncIterable,
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Mapping,
    Sequence,
)
from contextlib import AbstractAsyncContextManager, nullcontext
from itertools import islice
from typing import Any, TypeAlias, TypeVar

import httpx
import trio
from msgspec.structs import replace

from trio_crawler.arguments import (
    check_flag,
    check_function,
    check_kind,
    check_methods,
    check_number,
    several_strings,
)
from trio_crawler.engine.handler import Handler, url_noted
from trio_crawler.engine.links import CanonicalFolding, Links, Rules
from trio_crawler.engine.outbox import Counters, Outbox
from trio_crawler.engine.pages import CheckHandler, PageHandler
from trio_crawler.engine.repeats import Bounces, Repeats
from trio_crawler.engine.sitemaps import ProbeHandler, RobotsHandler, SitemapHandler
from trio_crawler.frontier.memory import MemoryFrontier
from trio_crawler.frontier.protocol import Frontier, FrontierStatistics, Past
from trio_crawler.model import Fetch, Job, Purpose, Reason, Statistics
from trio_crawler.net.fetch import HttpFetch
from trio_crawler.net.request import DEFAULT_USER_AGENT
from trio_crawler.net.turn import DEADLINES, Deadlines
from trio_crawler.page.urls import web_url
from trio_crawler.policy.plan import SEEDING, Plan
from trio_crawler.policy.robots import product_token
from trio_crawler.policy.settings import HostStatistics, Politeness
from trio_crawler.schedule.hosts import Hosts
from trio_crawler.settlement import Settlement

# Rows of earlier runs that are read, and then used, before other tasks can run.
_PORTION = 2_000
_T = TypeVar("_T")
_METHODS = ("open", "run", "known", "add", "settle", "retry", "end", "statistics")


class Engine:
    """The parts of one crawl. `fetch` is None if the caller passed none: the crawl makes one.

    `restored` is set when the state of earlier runs is restored.
    `given` are the other arguments of its `Plan`. Raises TypeError or ValueError, naming the
    argument, for an invalid value.
    """

    def __init__(self, fetch: Fetch | None, frontier: Frontier | None, **given: Any) -> None:
        self.plan = plan = plan_of(fetch, **given)
        frontier = MemoryFrontier() if frontier is None else frontier
        check_methods("frontier", frontier, _METHODS, "a frontier, such as MemoryFrontier()")
        self.frontier, self.fetch = frontier, fetch
        self.counters = Counters()
        self.outbox = outbox = Outbox(plan.workers, self.counters, frontier)
        self.rules = rules = Rules(plan, frontier)
        self.folding = folding = CanonicalFolding(plan, frontier, rules)
        links = Links(plan, frontier, rules, folding)
        repeats = Repeats(frontier, plan.workers)
        self.pages = PageHandler(plan, links, folding, outbox, repeats, Bounces.of(fetch))
        self.sitemaps = SitemapHandler(plan, frontier, rules)
        self.checks = CheckHandler(plan, links)
        self.handlers: dict[Purpose, Handler] = {
            Purpose.PAGE: self.pages,
            Purpose.CHECK: self.checks,
            Purpose.FRAGMENTS: self.checks,
            Purpose.SITEMAP: self.sitemaps,
            Purpose.ROBOTS: RobotsHandler(plan, frontier, self.sitemaps),
            Purpose.PROBE: ProbeHandler(),
        }
        self.is_open = False
        self.ended: Reason | None = None
        self._past: Past | None = None
        self.restored = trio.Event()

    def opened_fetch(self) -> AbstractAsyncContextManager[Fetch]:
        """Return a block with the fetch; it closes a fetch that the crawl itself made."""
        return HttpFetch(seeds=self.plan.seeds) if self.fetch is None else nullcontext(self.fetch)

    async def start(self, nursery: trio.Nursery, ask: Fetch, work: Work) -> None:
        """Start the workers, and beside them all other tasks of the crawl."""
        hosts = self.frontier.hosts
        lookup, addresses = lookups_of(ask)
        if lookup is not None:
            urls = hosts.await_names()
            nursery.start_soon(look_up_names, nursery, lookup, addresses, hosts, urls)
        if self.plan.seed_stream is not None:
            nursery.start_soon(read_seeds, self.plan.seed_stream, self.plan, self.frontier)
        nursery.start_soon(self.run)
        deadlines = Deadlines()
        nursery.start_soon(deadlines.keep)
        token = DEADLINES.set(deadlines)
        try:
            await Crew(nursery, self.plan.workers, work, ask, self.outbox).start()
        finally:
            DEADLINES.reset(token)

    async def open(self) -> None:
        """Open the frontier, and restore the counts of earlier runs."""
        self._past = await self.frontier.open(self.plan)
        self.is_open = True
        if self.ended is not None:
            self.frontier.end(self.ended)
        if self._past is not None:
            self.counters.restore(self._past.statistics)

    async def run(self) -> None:
        """Restore all else that earlier runs left, and run the frontier to its end.

        With a million URLs this takes some seconds; the frontier may hand out jobs before.
        """
        if self._past is not None:
            await self._restore(self._past)
        self.restored.set()
        self.outbox.handlers = self.handlers
        self.frontier.hosts.when_ended = self.outbox.wake
        await self.frontier.run()

    async def unfetched(self, job: Job) -> Settlement:
        """Return the settlement of a job that is blocked, or recalled from an earlier walk."""
        if not self.restored.is_set():
            await self.restored.wait()
        if job.blocked is None:
            return await self.checks.recalled(job)
        last = self.frontier.hosts.last(job)
        return self.handlers[job.purpose].blocked(job, job.blocked, last)

    def end(self, reason: Reason) -> None:
        """End the crawl early; if the frontier is not open yet, as soon as it is."""
        check_kind("reason", reason, Reason, "a Reason")
        if self.is_open:
            self.frontier.end(reason)
        else:
            self.ended = self.ended or reason

    def statistics(self) -> Statistics:
        """Return the counts at this moment."""
        frontier = self.frontier.statistics() if self.is_open else FrontierStatistics()
        return self.counters.statistics(frontier)

    def hosts(self) -> Mapping[str, HostStatistics]:
        """Return the hosts by name."""
        return self.frontier.hosts.statistics() if self.is_open else {}

    async def _restore(self, past: Past) -> None:
        hosts = self.frontier.hosts
        hosts.restore_bodies(())
        # The first jobs use the hosts meanwhile, so this thread alone changes the hosts.
        await trio.to_thread.run_sync(self.sitemaps.restore, past.sitemaps, past.listings)
        await trio.to_thread.run_sync(self.pages.restore, past)
        self.checks.restore(past)
        async for bodies in _in_portions(past.bodies, _PORTION):
            hosts.restore_bodies(bodies)
        async for (urls,) in _in_portions(past.urls, 1):
            hosts.restore_urls(urls)
            self.rules.restore(urls)
        if self.folding.folds:
            async for outcomes in _in_portions(past.outcomes, _PORTION):
                self.folding.restore(outcomes)


async def _in_portions(rows: Iterable[_T], size: int) -> AsyncIterator[list[_T]]:
    """Yield the rows in portions, each read in a thread."""
    rows = iter(rows)
    while portion := await trio.to_thread.run_sync(lambda: list(islice(rows, size))):
        yield portion


def plan_of(fetch: Fetch | None, *, politeness: Politeness | None, **given: Any) -> Plan:
    """Return the plan of a crawl.

    The user agent comes from the politeness, else from the fetch; the random generator from the
    arguments, else from the fetch. Without a word in the politeness, links with side effects are
    followed if the fetch says that it sends no credentials.

    Raises TypeError or ValueError, naming the argument, for an invalid value.
    """
    if fetch is not None:
        check_function("fetch", fetch, "an async function of a job, such as HttpFetch()")
    lookups_of(fetch)
    agent = getattr(fetch, "user_agent", DEFAULT_USER_AGENT)
    if isinstance(politeness, Politeness) and politeness.agent is not None:
        agent = politeness.agent
    check_kind("the user_agent of fetch", agent, str, "a str")
    # One that does not say may send some: a wrapper that has forgotten to pass that on.
    sends = fetch is not None and getattr(fetch, "sends_credentials", True)
    check_flag("the sends_credentials of fetch", sends)
    politeness = Politeness() if politeness is None else politeness
    if isinstance(politeness, Politeness) and politeness.side_effects is None:
        politeness = replace(politeness, side_effects=not sends)
    if given["random"] is None:
        given["random"] = getattr(fetch, "random", None)
    return Plan(politeness=politeness, agent=product_token(agent), **given)


AT_ONCE = 200
"""The most workers that start before there is work for them."""

# Workers that start before other tasks can run.
_WORKERS = 50


Work: TypeAlias = "Callable[[Fetch, Outbox, Crew], Awaitable[None]]"


class Crew:
    """The workers of a crawl: tasks in its nursery, each a call of `work`.

    Up to 200 start at once. The others are `left`: a worker that receives a job starts the next of
    them. So 200 are free as long as any are left, and a crawl that needs few has few to end.
    """

    def __init__(
        self,
        nursery: trio.Nursery,
        workers: int,
        work: Work,
        ask: Fetch,
        outbox: Outbox,
    ) -> None:
        self._nursery = nursery
        self.left = workers
        self._work = work
        self._for_each = ask, outbox

    async def start(self) -> None:
        """Start the first workers; a checkpoint before each fifty of them."""
        for number in range(AT_ONCE):
            if number % _WORKERS == 0:
                await trio.lowlevel.checkpoint()
            # Workers that began meanwhile may have started the rest.
            if self.left:
                self.start_next()

    def start_next(self) -> None:
        """Start one of the workers that are left."""
        self.left -= 1
        self._nursery.start_soon(self._work, *self._for_each, self)


LOOKUPS_AT_ONCE = 1_000
"""The most tasks that look up names; a fetch has a bound of its own, 300 or less."""


def lookups_of(
    fetch: Fetch | None,
) -> tuple[Callable[[str], Awaitable[float]] | None, Callable[[str], Sequence[str]]]:
    """Return `lookup` and `addresses` of a fetch: without them none is made, and none are known.

    Raises TypeError for one that is no function.
    """
    lookup = getattr(fetch, "lookup", None)
    if lookup is not None:
        check_function("the lookup of fetch", lookup, "an async function of a URL")
    addresses = getattr(fetch, "addresses", lambda _: ())
    check_function("the addresses of fetch", addresses, "a function of a URL")
    return lookup, addresses


async def look_up_names(
    nursery: trio.Nursery,
    lookup: Callable[[str], Awaitable[float]],
    addresses: Callable[[str], Sequence[str]],
    hosts: Hosts,
    urls: trio.MemoryReceiveChannel[str],
) -> None:
    """Look up the name of each host, which waits for that; end with the nursery."""
    slots = trio.Semaphore(LOOKUPS_AT_ONCE)

    async def look_up(url: str) -> None:
        with url_noted(Job(url)):
            coming = lookup(url)
            if not isinstance(coming, Awaitable):
                raise TypeError(f"the lookup of fetch returned {coming!r}: make it async")
            seconds = await coming
            check_number("the seconds that the lookup of fetch returns", seconds)
            found = several_strings("the addresses that fetch returns", addresses(url))
        slots.release()
        hosts.named(url, seconds, found)

    async for url in urls:
        await slots.acquire()
        nursery.start_soon(look_up, url)


MAX_WAITING = 10_000
"""The seeding task waits while this many URLs wait; it goes on when half of them are gone."""

# Known URLs that are passed over before other tasks can run.
_CHUNK = 50


async def read_seeds(
    stream: AsyncIterable[str | httpx.URL], plan: Plan, frontier: Frontier
) -> None:
    """Admit the URLs of a stream, each as a seed, to its end or that of the crawl.

    The stream is counted in the join as one job, `SEEDING`: the frontier admits it with the seeds,
    and this task settles it after the last URL. So the crawl cannot end while the stream has URLs,
    and none of them counts as admitted before it is read. A resumed crawl reads the stream from
    its beginning and passes over the URLs that were admitted: what was seen is its position, which
    cannot disagree with the frontier, nor with a stream that has changed. An exception of the
    stream has a note with the number of URLs that were read before.
    """
    hosts, redirects, taken = frontier.hosts, plan.limits.max_redirects, 0
    # Links found on pages are refused at `max_waiting`; the stream must not use all of that.
    max_bytes = plan.limits.max_waiting / 2
    await hosts.seeding.begun.wait()
    with hosts.seeding.scope:
        # A crawl that was stopped before it began reads nothing.
        await trio.lowlevel.checkpoint_if_cancelled()
        try:
            async for each in stream:
                url = web_url("each of seed_stream", each)
                taken += 1
                if frontier.known([url]):
                    if not taken % _CHUNK:
                        await trio.lowlevel.checkpoint()
                    continue
                while hosts.waiting >= MAX_WAITING or hosts.waiting_bytes >= max_bytes:
                    await hosts.seeding.wait(hosts.waiting // 2)
                job = Job(url, redirects=redirects)
                if hosts.rejection(url) is Reason.TOO_MANY_HOSTS:
                    job = replace(job, blocked=Reason.TOO_MANY_HOSTS)
                await frontier.add([job])
        except Exception as error:
            error.add_note(f"while reading seed_stream, after {taken:,} URLs")
            raise
    await frontier.settle(Settlement(SEEDING))
