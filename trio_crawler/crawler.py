"""The crawler: a nursery, a fixed number of workers, a channel of jobs, a channel of outcomes.

This is the page to read beside the chapter's. There the workers are tasks in a list, joined by
a queue and then cancelled one by one; here a block owns them, the count of unfinished URLs ends
the channel, and the channel ends their loops. Cancelling is left for early ends.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from types import TracebackType

import trio

from trio_crawler.eager import Eager
from trio_crawler.frontier.memory import Frontier, MemoryFrontier
from trio_crawler.model import Fault, Fetch, Job, Outcome, Reason, Response, Statistics
from trio_crawler.net.fetch import HttpFetch
from trio_crawler.outbox import Apart, Outbox
from trio_crawler.page.urls import normalise, without_userinfo
from trio_crawler.policy.limits import Limits
from trio_crawler.policy.retry import delay_after, passing
from trio_crawler.policy.scope import Admits, same_site
from trio_crawler.tally import Tally
from trio_crawler.verdict import Judge, Verdict, web


class Crawler:
    """Crawl from the seeds through everything the scope admits, each URL once.

    The defaults suit a stranger's site: the hosts of the seeds, ten workers, the bounds of
    `Limits()`. A `fetch` or a `frontier` that is passed in stays the caller's to close. One
    crawler makes one crawl, in the caller's own nursery and cancel scopes.

    Raises ValueError for a seed that is not an http or https URL, and for no workers.
    """

    def __init__(
        self,
        seeds: Iterable[str],
        *,
        scope: Admits | None = None,
        limits: Limits | None = None,
        workers: int = 10,
        fetch: Fetch | None = None,
        frontier: Frontier | None = None,
    ) -> None:
        if isinstance(seeds, str):
            raise TypeError(f"seeds must be several URLs: write [{without_userinfo(seeds)!r}]")
        if workers < 1:
            raise ValueError(f"workers must be 1 or more, not {workers}")
        self.seeds = tuple(dict.fromkeys(_seed(url) for url in seeds))
        self.scope = scope or same_site(self.seeds)
        self.limits = limits or Limits()
        self.workers = workers
        self.frontier: Frontier = frontier or MemoryFrontier(self.limits)
        self._given_fetch = fetch
        self._judge = Judge(self.limits, self.frontier.knows, self._refusal, self._room)
        self._last: dict[str, tuple[Response | Fault, float]] = {}
        self._outbox: Outbox | None = None
        self._stopped: Reason | None = None
        self._tally = Tally()

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

        Raises RuntimeError when called a second time.
        """
        with self._tally.running(), Apart() as apart:
            async with self._opened_fetch() as ask, trio.open_nursery() as nursery:
                nursery.start_soon(self.frontier.run, self._seed_jobs())
                outbox = self._outbox = Outbox(
                    self.workers, self._tally.count, self.frontier.settle
                )
                for number in range(self.workers):
                    nursery.start_soon(self.work, ask, outbox, name=f"worker {number}")
                with apart.carried:
                    yield outbox
                nursery.cancel_scope.cancel("the caller has left the block")

    async def work(self, ask: Fetch, outbox: Outbox) -> None:
        """Turn jobs into outcomes until no more jobs come."""
        with outbox:
            async for job in Eager(self.frontier.jobs):
                self._tally.take()
                with _Noting(job):
                    verdict = await self.fetch(ask, job)
                if verdict:
                    await outbox.put(verdict)
                # While this worker waits for a job it keeps no page.
                del verdict

    async def fetch(self, ask: Fetch, job: Job) -> Verdict | None:
        """Ask for one URL, once; None when it is to be tried again later."""
        last = self._last.pop(job.url, None)
        if reason := self._over():
            return await self._judge.answer(job, *last) if last else self._judge.skip(job, reason)
        job = Job(job.url, job.depth, job.redirects, job.referrer, job.tries + 1)
        started = trio.current_time()
        answer = await ask(job)
        seconds = trio.current_time() - started
        delay = self._delay(job, answer)
        if delay is None:
            return await self._judge.answer(job, answer, seconds)
        self._last[job.url] = _without_body(answer), seconds
        self._tally.retry()
        await self.frontier.retry(job, delay)
        return None

    def _delay(self, job: Job, answer: Response | Fault) -> float | None:
        """Return the seconds until the next try; None when this answer is the last."""
        if not passing(answer) or job.tries >= self.limits.max_tries or self._over():
            return None
        delay = delay_after(answer, job.tries, datetime.now(UTC))
        # What would come after the end of the crawl is not waited for.
        return delay if self._tally.seconds + delay < self.limits.max_seconds else None

    def stop(self, reason: Reason = Reason.STOPPED) -> None:
        """Admit and start nothing more; what is in flight finishes, what waits is skipped.

        A URL that waits to be tried again ends by its last answer, without the body.
        """
        self._stopped = self._stopped or reason
        self.frontier.hurry()

    def statistics(self) -> Statistics:
        """Count the crawl at this moment."""
        return self._tally.statistics(self.frontier.statistics().admitted)

    async def _room(self) -> None:
        if self._outbox is not None:
            await self._outbox.room()

    def _opened_fetch(self) -> AbstractAsyncContextManager[Fetch]:
        if self._given_fetch is not None:
            return nullcontext(self._given_fetch)
        return HttpFetch(limits=self.limits, seeds=self.seeds)

    def _seed_jobs(self) -> list[Job]:
        return [Job(url, redirects=self.limits.max_redirects) for url in self.seeds]

    def _refusal(self, job: Job) -> Reason | None:
        if not web(job.url):
            return Reason.OTHER_SCHEME
        if job.depth > self.limits.max_depth:
            return Reason.TOO_DEEP
        return self.scope(job) or self._over()

    def _over(self) -> Reason | None:
        if self._stopped:
            return self._stopped
        if self._tally.spent >= self.limits.max_pages:
            return Reason.PAGE_BUDGET
        return Reason.TIME_BUDGET if self._tally.seconds >= self.limits.max_seconds else None


class _Noting:
    """Add the URL to whatever bug passes by, without catching it."""

    __slots__ = ("_job",)

    def __init__(self, job: Job) -> None:
        self._job = job

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if isinstance(error, Exception):
            via = f", linked from {self._job.referrer}" if self._job.referrer else ""
            error.add_note(f"while crawling {self._job.url}{via}")


def _without_body(answer: Response | Fault) -> Response | Fault:
    # Any number of URLs may wait for their next try.
    return replace(answer, body=b"") if isinstance(answer, Response) else answer


def _seed(url: str) -> str:
    try:
        seed = normalise(url)
    except ValueError:
        raise ValueError(f"not a URL: {without_userinfo(url)!r}") from None
    if not web(seed):
        raise ValueError(f"not an http or https URL: {without_userinfo(url)!r}")
    return seed
