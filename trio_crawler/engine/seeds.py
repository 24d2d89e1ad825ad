"""The seeding task: it admits the URLs of a stream as the frontier has room for them."""

from __future__ import annotations

from collections.abc import AsyncIterable

import httpx
import trio
from msgspec.structs import replace

from trio_crawler.engine.exceptions import noted
from trio_crawler.frontier.protocol import Frontier
from trio_crawler.model import Job, Reason
from trio_crawler.page.urls import web_url
from trio_crawler.policy.plan import SEEDING, Plan
from trio_crawler.settlement import Settlement

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
            with noted(lambda: f"while reading seed_stream, after {self._taken:,} URLs"):
                await self._read(stream)
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
