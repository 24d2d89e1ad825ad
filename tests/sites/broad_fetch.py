"""A fetch of a broad web that sleeps instead of sending anything: for virtual time.

web = BroadWeb(hosts=150)
fetch = BroadFetch(web)
await Crawler(web.seeds, scope=everything, fetch=fetch).crawl()
assert not fetch.watch.violations
"""

from __future__ import annotations

import random
import socket
from collections import Counter

import httpx
import trio
from msgspec.structs import replace
from sites.broad import BroadWeb, FailingLookup, Kind, Reply, parts
from sites.broad_watch import Watch

from trio_crawler import Fault, Job, Reason, Response
from trio_crawler.model import Answer, Phase, Purpose
from trio_crawler.net.errors import name_fault
from trio_crawler.net.fetcher import TIMEOUT

REFUSING = 0.001
"""Seconds until a connection is refused."""


def lookup_fault(name: str, failing: FailingLookup) -> Fault:
    """Return the fault of a lookup, which is for the crawler to name."""
    error = socket.gaierror(failing.number, "the lookup fails in this web")
    return replace(name_fault(error, name), phase=Phase.RESOLVE)


class BroadFetch:
    """Answer a job as `HttpFetch` would if the web existed, and watch the crawler meanwhile.

    After `timeout` seconds a job ends with the fault of that phase. `served` counts the answers
    with status 200 to the pages that can be had; `times` has the moment of the first one of each,
    in their order. `random` seeds the crawl.
    """

    def __init__(self, web: BroadWeb, *, timeout: float = TIMEOUT) -> None:
        self.web = web
        self.watch = Watch(web)
        self.served: Counter[str] = Counter()
        self.times: list[float] = []
        self.random = random.Random(web.seed)
        self._timeout = timeout

    async def __call__(self, job: Job) -> Answer:
        """Return the answer to a job, after the time that it takes."""
        asked = self.watch.start(job.url, trio.current_time())
        try:
            return await self._answer(job, asked)
        finally:
            self.watch.end(job.url)

    async def _answer(self, job: Job, asked: int) -> Answer:
        scheme, name, _ = parts(job.url)
        failing = self.web.failing_lookup(name)
        if failing is not None:
            await trio.sleep(min(failing.seconds, self._timeout))
            return lookup_fault(name, failing)
        kind = self.web.host(name).kind
        if kind is Kind.REFUSED:
            await trio.sleep(REFUSING)
            return Fault(Reason.CONNECTION_REFUSED, f"{name} refuses", Phase.CONNECT)
        reply = self.web.reply(job.url, asked)
        if kind is Kind.GARBAGE and scheme == "https":
            await trio.sleep(reply.seconds)
            return Fault(Reason.TLS, f"{name} does not speak TLS", Phase.TLS)
        if reply.seconds > self._timeout:
            await trio.sleep(self._timeout)
            return Fault(Reason.TIMEOUT, f"{name} is silent", Phase.WAIT)
        await trio.sleep(reply.seconds)
        self._record(job, reply)
        return Response(reply.status, httpx.Headers([*reply.fields]), reply.body)

    def _record(self, job: Job, reply: Reply) -> None:
        now = trio.current_time()
        self.watch.answer(job.url, reply, now)
        page = job.purpose is Purpose.PAGE and reply.status == 200
        if page and self.web.is_wanted(job.url):
            self.served[job.url] += 1
            if self.served[job.url] == 1:
                self.times.append(now)
