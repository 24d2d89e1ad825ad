"""Hosts: what waits for one host, and what it bears."""

from __future__ import annotations

from collections.abc import Iterator

from trio_crawler.frontier.queues import Fifo, Line
from trio_crawler.model import Job, Purpose
from trio_crawler.policy.host_state import Manners
from trio_crawler.policy.politeness import HostStatistics


class Host:
    """Hold a host's jobs by one scheme, its manners, and its place among the others."""

    __slots__ = (
        "asking",
        "good",
        "hops",
        "line",
        "manners",
        "name",
        "parked",
        "sated",
        "sitemaps",
        "ticket",
        "twin",
    )

    def __init__(self, name: str, line: Line, manners: Manners, twin: Host | None) -> None:
        self.name = name
        self.line = line
        self.manners = manners
        # The same host by the other scheme, if that was met: they share the load.
        self.twin = twin
        # Most hosts never have any of these two.
        self.sitemaps: Fifo | None = None
        # Whether its next sitemap waits for that of another host.
        self.parked = False
        # Whether a sitemap came last: then a page is next, or enough of them starve all pages.
        self.sated = False
        # Where robots.txt files of other hosts, or its own, were redirected to.
        self.hops: Fifo | None = None
        # What is asked for to know whether it may be asked: until that has answered nothing is.
        self.asking: Purpose | None = None
        # The last page that came.
        self.good: str | None = None
        # The number of its only valid entry in one of the two heaps.
        self.ticket = 0

    def __len__(self) -> int:
        return sum(len(line) for line in (self.line, self.sitemaps, self.hops) if line)

    @property
    def first(self) -> Line | None:
        """Return where its next job stands, if one may be asked for."""
        if self.hops or self.asking:
            return self.hops or None
        # A sitemap is worth more than any page: it names them.
        if self.sitemaps and not self.parked and not (self.sated and self.line):
            return self.sitemaps
        return self.line or None

    def put(self, job: Job) -> None:
        """Let a job wait."""
        if job.purpose is Purpose.PAGE:
            self.line.put(job)
        elif job.purpose is Purpose.SITEMAP:
            self.sitemaps = self.sitemaps or Fifo()
            self.sitemaps.put(job)
        else:
            self.hops = self.hops or Fifo()
            self.hops.put(job)

    def empty(self) -> Iterator[Job]:
        """Take all that belongs to the crawl's account, which the hops of a robots.txt do not."""
        for line in (self.sitemaps, self.line):
            while line:
                yield line.pop()

    def statistics(self, now: float) -> HostStatistics:
        """Tell of the host at this moment."""
        manners = self.manners
        load = manners.load
        scheme, _, name = self.name.partition("://")
        return HostStatistics(
            scheme=scheme,
            host=name,
            waiting=len(self),
            flying=load.flying,
            limit=manners.limit,
            delay=load.delay,
            rest=max(manners.free - now, 0.0),
            latency=load.latency,
            failures=manners.failures,
            given_up=manners.given_up,
        )
