"""The crawler: a nursery, a fixed number of workers, a channel of jobs, a channel of outcomes.

Compare docs/reading/chapter.py, which waits for a queue and then cancels its workers. Here the
channel closes when no URL is unfinished, and the workers end. Only an early end cancels them.
"""

import random
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Mapping
from typing import NoReturn

import httpx
import trio

from trio_crawler.arguments import public
from trio_crawler.engine.build import Crew, Engine
from trio_crawler.engine.handler import Retry, fetch_once, url_noted
from trio_crawler.engine.outbox import HOW_TO_ITERATE, BareExceptions, Outbox, outcome_block
from trio_crawler.frontier import Frontier, HostStatistics, Settlement
from trio_crawler.model import Fetch, Job, Listing, Outcome, Reason, Sitemap, Statistics
from trio_crawler.policy.plan import Sitemaps
from trio_crawler.policy.scope import Scope
from trio_crawler.policy.settings import Checks, Limits, Order, Politeness
from trio_crawler.policy.traps import Traps


@public("trio_crawler")
class Crawler:
    """Crawl from the seeds: fetch each URL that the scope admits, once.

    None means the default, which suits a stranger's site. One crawler makes one crawl.

    - `seeds`: the URLs to begin with; `seed_stream` yields more, read as there is room for them.
      Without a `scope` what these redirect to is fetched too, but of their links only those to
      the hosts of `seeds` are followed;
    - `scope`: which URLs belong to the crawl; by default those of the hosts of the seeds;
    - `limits`: its bounds, such as pages and seconds; `traps`: the thresholds for endless URLs;
    - `politeness`: requests at once to a host (four), delays, robots.txt (obeyed), nofollow;
    - `sitemaps`: which are read; by default those that robots.txt names;
    - `checks`: which links are asked for besides the pages; by default none;
    - `order`: which URL of a host comes first; by default that nearest to a seed;
    - `fold_canonical`: count a page as a duplicate of the canonical page that it names;
    - `anchors`: keep the text of links; `facts`: keep what pages say of themselves;
    - `workers`: the most URLs that are fetched at the same time;
    - `random`: the seed of the jitter of delays after failures;
    - `fetch`, `frontier`: how a URL is fetched, where URLs are kept (in memory). The caller
      closes what it passes in, also a `seed_stream`.

    Raises TypeError or ValueError, naming the argument, for an invalid value.

    >>> web = Web({"/": html("/a", "/gone"), "/a": html()})
    >>> async def statuses() -> dict[str, int]:
    ...     async with Crawler([web.url], fetch=web).outcomes() as outcomes:
    ...         return {o.url: o.status async for o in outcomes if isinstance(o, Page)}
    >>> for url, status in sorted(trio.run(statuses).items()):
    ...     print(status, url)
    200 http://site.test/
    200 http://site.test/a
    404 http://site.test/gone
    """

    def __init__(
        self,
        seeds: Iterable[str | httpx.URL],
        *,
        seed_stream: AsyncIterable[str | httpx.URL] | None = None,
        scope: Scope | None = None,
        limits: Limits | None = None,
        politeness: Politeness | None = None,
        traps: Traps | None = None,
        sitemaps: Sitemaps | None = None,
        checks: Checks | None = None,
        order: Order | None = None,
        fold_canonical: bool = False,
        anchors: bool = False,
        facts: bool = False,
        workers: int = 10,
        random: random.Random | None = None,
        fetch: Fetch | None = None,
        frontier: Frontier | None = None,
    ) -> None:
        self._engine = Engine(
            fetch,
            frontier,
            seeds=seeds,
            seed_stream=seed_stream,
            scope=scope,
            limits=limits,
            politeness=politeness,
            traps=traps,
            sitemaps=sitemaps,
            checks=checks,
            order=order,
            fold_canonical=fold_canonical,
            anchors=anchors,
            facts=facts,
            workers=workers,
            random=random,
        )
        self.plan, self.frontier = self._engine.plan, self._engine.frontier

    def __repr__(self) -> str:
        figures = self.statistics()
        return f"<Crawler: {figures.admitted} URLs admitted, {figures.waiting} waiting>"

    def __aiter__(self) -> NoReturn:
        raise TypeError(HOW_TO_ITERATE)

    async def crawl(self) -> Statistics:
        """Run the crawl to its end and return its statistics; the outcomes are only counted."""
        async with self.outcomes() as outcomes:
            async for _ in outcomes:
                pass
        return self.statistics()

    @outcome_block
    async def outcomes(self) -> AsyncIterator[AsyncIterator[Outcome]]:
        """Crawl, and yield each outcome as it comes: `async with` this, then `async for`.

        When the caller asks for the next outcome, the last one is settled and its links are
        admitted: a slow caller slows the crawl. A cancelled caller gets no more items, and other
        tasks run before every 16th item, unless they did within the last 20 ms. The end of the
        block ends the crawl: no task goes on, no socket stays open. A bug in the crawler, or in a
        function that was passed in, is raised in an ExceptionGroup, with the URL as a note. An
        exception of the block itself is not grouped. Raises RuntimeError when called a second
        time, and trio.BusyResourceError when two tasks ask for the next outcome.
        """
        engine = self._engine
        with engine.counters.running(), BareExceptions() as bare:
            await engine.open()
            async with engine.opened_fetch() as ask, trio.open_nursery() as nursery:
                await engine.start(nursery, ask, self.work)
                with bare.carried:
                    yield engine.outbox
                nursery.cancel_scope.cancel("the caller has left the block")

    async def work(self, ask: Fetch, outbox: Outbox, crew: Crew) -> None:
        """Fetch jobs by `ask` until no more come; `outbox` and `crew` are those of the crawl."""
        with outbox:
            async for job in self.frontier.jobs:
                if crew.left:
                    crew.start_next()
                with url_noted(job):
                    settlement = await self.fetch(ask, job)
                    if settlement is not None:
                        await outbox.put(settlement)
                # Or the worker would keep the page in memory while it waits for a job.
                del settlement

    async def fetch(self, ask: Fetch, job: Job) -> Settlement | None:
        """Fetch a `job` by `ask`; return its settlement, None if it will be fetched once more."""
        engine, hosts = self._engine, self.frontier.hosts
        if job.blocked or job.recalled:
            return await engine.unfetched(job)
        attempt = await fetch_once(ask, job, hosts.turns.get((job.purpose, job.url)))
        if not engine.restored.is_set():
            await engine.restored.wait()
        settled = await engine.handlers[job.purpose].settled(hosts.answered(attempt))
        if isinstance(settled, Retry):
            await self.frontier.retry(settled.attempt, settled.seconds)
            return None
        return settled

    def stop(self, reason: Reason = Reason.STOPPED) -> None:
        """Admit and fetch nothing more: requests in flight finish, waiting URLs end with `reason`.

        A URL that waits for a retry ends with its last answer; `SqliteFrontier` keeps all instead.
        """
        self._engine.end(reason)

    def statistics(self) -> Statistics:
        """Return the counts at this moment, during the crawl or after it."""
        return self._engine.statistics()

    @property
    def hosts(self) -> Mapping[str, HostStatistics]:
        """The hosts by name, each with its counts at this moment, during the crawl or after it."""
        return self._engine.hosts()

    def sitemaps(self) -> tuple[Sitemap, ...]:
        """Return the sitemaps found so far, each with the result of reading it."""
        return tuple(self._engine.sitemaps.records)

    def listing(self, url: str | httpx.URL) -> Listing | None:
        """Return the entry of a URL in the sitemaps read so far; None if there is none."""
        return self._engine.sitemaps.listing(url)
