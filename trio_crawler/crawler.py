"""The crawler: a nursery, a fixed number of workers, a channel of jobs, a channel of outcomes.

This is the page to read beside the chapter's. There the workers are tasks in a list, joined by
a queue and then cancelled one by one; here a block owns them, the count of unfinished URLs ends
the channel, and the channel ends their loops. Cancelling is left for early ends.
"""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext

import trio

from trio_crawler.eager import Eager
from trio_crawler.engine.counters import Tally
from trio_crawler.engine.exceptions import Noting
from trio_crawler.engine.handler import Tries, tried
from trio_crawler.engine.links import Outlinks
from trio_crawler.engine.outbox import Apart, Outbox
from trio_crawler.engine.pages import Judge, Verdict
from trio_crawler.engine.robots import Errands
from trio_crawler.engine.rules import Admission, seeds_of, watch_for
from trio_crawler.engine.sitemaps import Sitemaps
from trio_crawler.frontier.memory import MemoryFrontier
from trio_crawler.frontier.protocol import Frontier
from trio_crawler.frontier.queues import Order, breadth_first
from trio_crawler.model import (
    Fault,
    Fetch,
    Job,
    Listing,
    Outcome,
    Purpose,
    Reason,
    Response,
    Sitemap,
    Statistics,
)
from trio_crawler.net.fetch import DEFAULT_USER_AGENT, HttpFetch
from trio_crawler.page.urls import seen_key
from trio_crawler.policy.limits import Limits
from trio_crawler.policy.politeness import HostStatistics, Politeness
from trio_crawler.policy.robots.store import Robots, product_token
from trio_crawler.policy.scope import Admits, same_site
from trio_crawler.policy.traps.watch import Traps
from trio_crawler.recall import recall


class Crawler:
    """Crawl from the seeds through everything the scope admits, each URL once.

    The defaults suit a stranger's site: the hosts of the seeds, ten workers, four of them at one
    host, robots.txt obeyed, the bounds of `Limits()` and `Traps()`. `traps=None` follows every
    URL. Sitemaps that robots.txt names are read, and so are `sitemaps`; None reads none. `order`
    ranks the jobs of each host. With `fold_canonical` a page that names another as its canonical
    one gives way to that. With `anchors` pages tell the text of their links.

    A `fetch` or a `frontier` that is passed in stays the caller's to close; such a frontier has
    its own limits, politeness and order for scheduling. One crawler makes one crawl, in the
    caller's own nursery and cancel scopes.

    Raises ValueError for a seed or sitemap that is not an http or https URL, and for no workers.
    """

    def __init__(
        self,
        seeds: Iterable[str],
        *,
        scope: Admits | None = None,
        limits: Limits | None = None,
        politeness: Politeness | None = None,
        traps: Traps | None = Traps(),  # noqa: B008 - it is frozen
        sitemaps: Iterable[str] | None = (),
        order: Order = breadth_first,
        fold_canonical: bool = False,
        anchors: bool = False,
        workers: int = 10,
        fetch: Fetch | None = None,
        frontier: Frontier | None = None,
    ) -> None:
        if not callable(order):
            raise TypeError(f"order must be a function that ranks a job, not {order!r}")
        if workers < 1:
            raise ValueError(f"workers must be 1 or more, not {workers}")
        self.seeds = seeds_of(seeds, "seeds")
        self.scope = same_site(self.seeds) if scope is None else scope
        self.limits = limits = limits or Limits()
        self.politeness = politeness = politeness or Politeness()
        self.workers = workers
        if frontier is None:
            frontier = MemoryFrontier(limits, politeness, order=order)
        self.frontier: Frontier = frontier
        self._given_fetch = fetch
        self._given_sitemaps = seeds_of(sitemaps or (), "sitemaps")
        self._outbox: Outbox | None = None
        self._tally = Tally()
        self._robots = Robots(_agent(politeness, fetch), obey=politeness.robots)
        self._watch = watch_for(traps, limits)
        judges, lasting = (limits, self._robots, self._watch, self._tally), self.frontier.lasting
        self._admission = Admission(self.scope, *judges, lasting=lasting)
        self._tries = Tries(limits, self._admission, self._tally, lasting)
        self._outlinks = self._outlinks_of(fold_canonical)
        self._judge = self._judge_of(anchors)
        judging = self._robots, limits, self._admission.refusal
        self._sitemaps = Sitemaps(self.frontier, *judging, follow=sitemaps is not None)
        self._errands = Errands(self.frontier, self._robots, self._sitemaps)

    def _outlinks_of(self, fold: bool) -> Outlinks:
        admission = self._admission
        return Outlinks(
            self.limits,
            self.frontier.knows,
            admission.outside,
            admission.trapped,
            self._robots.token,
            self.politeness.nofollow,
            self._watch,
            fold,
        )

    def _judge_of(self, anchors: bool) -> Judge:
        return Judge(
            self.limits,
            self.frontier.knows,
            self._admission.refusal,
            self._room,
            self._outlinks,
            self._robots.token,
            anchors=anchors,
            unchanged=self.frontier.facts,
        )

    def __repr__(self) -> str:
        figures = self.statistics()
        return f"<Crawler: {figures.admitted} URLs admitted, {figures.waiting} waiting>"

    async def crawl(self) -> Statistics:
        """Run the crawl to its end and return its statistics; the outcomes are only counted."""
        async with self.outcomes() as outcomes:
            async for _ in outcomes:
                pass
        return self.statistics()

    @asynccontextmanager
    async def outcomes(self) -> AsyncIterator[AsyncIterator[Outcome]]:
        """Crawl, and give each outcome as it comes: `async with` this, then `async for`.

        An outcome is settled when the next one is asked for, so a slow caller slows the
        fetching. Leaving the block, however it is left, ends the crawl: no task goes on, no
        socket stays open. A bug, ours or in a function passed in, comes out as an
        ExceptionGroup with the URL as a note; an exception of the block itself comes out bare.
        One task at a time may ask for the next outcome: another gets trio.BusyResourceError.

        Raises RuntimeError when called a second time.
        """
        with self._tally.running(), Apart() as apart:
            await self._go_on()
            async with self._opened_fetch() as ask, trio.open_nursery() as nursery:
                nursery.start_soon(
                    self.frontier.run, self._seed_jobs(), self._robots, self.workers
                )
                nursery.start_soon(self._end_in_time)
                outbox = self._outbox = Outbox(
                    self.workers, self._tally.count, self.frontier.settle
                )
                for number in range(self.workers):
                    nursery.start_soon(self.work, ask, outbox, name=f"worker {number}")
                with apart.carried:
                    yield outbox
                nursery.cancel_scope.cancel("the caller has left the block")

    async def _go_on(self) -> None:
        """Take over what earlier runs have left, if the frontier has kept it."""
        past = await self.frontier.past()
        if past is not None:
            self._tally.recall(past.statistics)
            self._sitemaps.recall(past.sitemaps, past.listings)
            await trio.to_thread.run_sync(recall, past, self._watch, self._outlinks)

    async def work(self, ask: Fetch, outbox: Outbox) -> None:
        """Turn jobs into outcomes until no more jobs come."""
        with outbox:
            async for job in Eager(self.frontier.jobs):
                if job.purpose is Purpose.PAGE:
                    self._tally.take()
                with Noting(job):
                    verdict = await self.fetch(ask, job)
                if verdict:
                    await outbox.put(verdict)
                # While this worker waits for a job it keeps no page.
                del verdict

    async def fetch(self, ask: Fetch, job: Job) -> Verdict | None:
        """Ask for one URL, once; None when it is to be tried again later, or was an errand."""
        over = self._admission.over()
        if over:
            # A frontier that was given may have other limits, and does not know.
            self.frontier.hurry()
        if over and self.frontier.lasting and job.refused is None:
            await self._put_back(job)
            return None
        if reason := job.refused or over:
            return await self._refuse(job, reason)
        job = tried(job)
        started = trio.current_time()
        answer = await ask(job)
        seconds = trio.current_time() - started
        self.frontier.answered(job, answer, seconds)
        delay = self._tries.delay(job, answer)
        if delay is not None:
            await self._retry(job, answer, seconds, delay)
        elif job.purpose is Purpose.PAGE:
            self._tries.last(job)
            return await self._judge.answer(job, answer, seconds)
        elif self._admission.over() and not self.frontier.lasting:
            await self._errands.dropped(job)
        else:
            await self._errands.done(job, answer)
        return None

    async def _put_back(self, job: Job) -> None:
        """Leave a job that was not asked for to a later run."""
        if job.purpose is Purpose.PAGE:
            self._tally.put_back()
        if job.purpose in (Purpose.PAGE, Purpose.SITEMAP):
            await self.frontier.retry(job, 0.0)

    async def _refuse(self, job: Job, reason: Reason | Fault) -> Verdict | None:
        """End a job that is not asked for: by its last answer, if it had one."""
        if job.purpose is not Purpose.PAGE:
            await self._errands.dropped(job)
            return None
        if last := self._tries.last(job):
            return await self._judge.answer(job, *last)
        if isinstance(reason, Fault):
            return await self._judge.answer(job, reason, 0.0)
        return self._judge.skip(job, reason)

    async def _retry(
        self, job: Job, answer: Response | Fault, seconds: float, delay: float
    ) -> None:
        if job.purpose is Purpose.PAGE:
            self._tries.keep(job, answer, seconds)
            self._tally.retry()
        await self.frontier.retry(job, delay)

    async def _end_in_time(self) -> None:
        if self.limits.max_seconds < math.inf:
            await trio.sleep(self.limits.max_seconds)
            self.frontier.hurry()

    def stop(self, reason: Reason = Reason.STOPPED) -> None:
        """Admit and start nothing more; what is in flight finishes, what waits is skipped.

        A URL that waits to be tried again ends by its last answer, without the body. What a
        lasting frontier keeps is not skipped: it waits for a later run.
        """
        self._admission.stopped = self._admission.stopped or reason
        self.frontier.hurry()

    def statistics(self) -> Statistics:
        """Count the crawl at this moment."""
        return self._tally.statistics(self.frontier.statistics().admitted)

    def hosts(self) -> list[HostStatistics]:
        """Tell of each host at this moment, in the order in which they were met."""
        return self.frontier.hosts()

    def sitemaps(self) -> tuple[Sitemap, ...]:
        """Tell what came of each sitemap that was read up to this moment."""
        return tuple(self._sitemaps.records)

    def listing(self, url: str) -> Listing | None:
        """Return what the sitemaps read up to this moment say of a URL of an outcome."""
        return self._sitemaps.listings.get(seen_key(url))

    async def _room(self) -> None:
        if self._outbox is not None:
            await self._outbox.room()

    def _opened_fetch(self) -> AbstractAsyncContextManager[Fetch]:
        if self._given_fetch is not None:
            return nullcontext(self._given_fetch)
        return HttpFetch(limits=self.limits, seeds=self.seeds)

    def _seed_jobs(self) -> list[Job]:
        pages = [Job(url, redirects=self.limits.max_redirects) for url in self.seeds]
        return pages + [self._sitemaps.job(url) for url in self._given_sitemaps]


def _agent(politeness: Politeness, fetch: Fetch | None) -> str:
    if politeness.agent is not None:
        return product_token(politeness.agent)
    # A fetch around another may tell what that one sends.
    return product_token(getattr(fetch, "user_agent", DEFAULT_USER_AGENT))
