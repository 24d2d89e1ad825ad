"""The tasks of a crawl: the crew of its workers, the lookups of names, and the seeding.

A name that is slow or silent holds no worker. The seeding task admits the URLs of a stream as the
frontier has room for them.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, Awaitable, Callable, Sequence
from typing import TypeAlias

import httpx
import trio
from msgspec.structs import replace

from trio_crawler.arguments import check_function, check_number, several_strings
from trio_crawler.engine.handler import url_noted
from trio_crawler.engine.outbox import Outbox
from trio_crawler.frontier.protocol import Frontier
from trio_crawler.model import Fetch, Job, Reason
from trio_crawler.page.urls import web_url
from trio_crawler.policy.plan import SEEDING, Plan
from trio_crawler.schedule.hosts import Hosts
from trio_crawler.settlement import Settlement

AT_ONCE = 200
"""The most workers that start before there is work for them."""

# Workers that start before other tasks can run.
_PORTION = 50


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
            if number % _PORTION == 0:
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


def lookup_of(fetch: Fetch | None) -> Callable[[str], Awaitable[float]] | None:
    """Return the `lookup` of a fetch, None if it has none. Raises TypeError for a bad one."""
    lookup: Callable[[str], Awaitable[float]] | None = getattr(fetch, "lookup", None)
    if lookup is not None:
        check_function("the lookup of fetch", lookup, "an async function of a URL")
    return lookup


def addresses_of(fetch: Fetch | None) -> Callable[[str], Sequence[str]]:
    """Return the `addresses` of a fetch; without them none are known. Raises TypeError."""
    addresses: Callable[[str], Sequence[str]] = getattr(fetch, "addresses", lambda _: ())
    check_function("the addresses of fetch", addresses, "a function of a URL")
    return addresses


def start_lookups(nursery: trio.Nursery, fetch: Fetch, hosts: Hosts) -> None:
    """Let each host wait until its name is looked up, if the fetch can do that.

    Call this before the first job is received. The task that it starts ends with the nursery.
    """
    if (lookup := lookup_of(fetch)) is not None:
        addresses = addresses_of(fetch)
        nursery.start_soon(_run, nursery, lookup, addresses, hosts, hosts.await_names())


async def _run(
    nursery: trio.Nursery,
    lookup: Callable[[str], Awaitable[float]],
    addresses: Callable[[str], Sequence[str]],
    hosts: Hosts,
    urls: trio.MemoryReceiveChannel[str],
) -> None:
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


class Seeder:
    """Admit the URLs of `Plan.seed_stream`, each as a seed.

    The stream is counted in the join as one job, `SEEDING`: the frontier admits it with the seeds,
    and this task settles it after the last URL. So the crawl cannot end while the stream has URLs,
    and none of them counts as admitted before it is read. A resumed crawl reads the stream from
    its beginning and passes over the URLs that were admitted: what was seen is its position, which
    cannot disagree with the frontier, nor with a stream that has changed.
    """

    def __init__(self, plan: Plan, frontier: Frontier) -> None:
        self._frontier = frontier
        self._redirects = plan.limits.max_redirects
        # Links found on pages are refused at `max_waiting`; the stream must not use all of that.
        self._max_bytes = plan.limits.max_waiting / 2
        self._taken = 0

    async def run(self, stream: AsyncIterable[str | httpx.URL]) -> None:
        """Read the stream to its end, or to that of the crawl, and settle its job.

        An exception of the stream has a note with the number of URLs that were read before.
        """
        seeding = self._frontier.hosts.seeding
        await seeding.begun.wait()
        with seeding.scope:
            # A crawl that was stopped before it began reads nothing.
            await trio.lowlevel.checkpoint_if_cancelled()
            try:
                await self._read(stream)
            except Exception as error:
                error.add_note(f"while reading seed_stream, after {self._taken:,} URLs")
                raise
        await self._frontier.settle(Settlement(SEEDING))

    async def _read(self, stream: AsyncIterable[str | httpx.URL]) -> None:
        frontier, hosts = self._frontier, self._frontier.hosts
        async for each in stream:
            url = web_url("each of seed_stream", each)
            self._taken += 1
            if frontier.known([url]):
                if not self._taken % _CHUNK:
                    await trio.lowlevel.checkpoint()
                continue
            while hosts.waiting >= MAX_WAITING or hosts.waiting_bytes >= self._max_bytes:
                await hosts.seeding.wait(hosts.waiting // 2)
            job = Job(url, redirects=self._redirects)
            if hosts.rejection(url) is Reason.TOO_MANY_HOSTS:
                job = replace(job, blocked=Reason.TOO_MANY_HOSTS)
            await frontier.add([job])
