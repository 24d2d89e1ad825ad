"""Hosts: what waits for one host, and what it bears."""

from __future__ import annotations

from trio_crawler.frontier.line import Fifo, Line
from trio_crawler.model import Job, Purpose
from trio_crawler.policy.manners import Manners
from trio_crawler.policy.politeness import HostStatistics

# Most hosts never have any of these: nothing is put in here.
_NONE = Fifo()


class Host:
    """Hold a host's jobs by one scheme, its manners, and its place among the others."""

    __slots__ = ("asking", "good", "hops", "line", "manners", "name", "sitemaps", "ticket", "twin")

    def __init__(self, name: str, line: Line, manners: Manners, twin: Host | None) -> None:
        self.name = name
        self.line = line
        self.manners = manners
        # The same host by the other scheme, if that was met: they share the load.
        self.twin = twin
        self.sitemaps = _NONE
        # Where robots.txt files of other hosts, or its own, were redirected to.
        self.hops = _NONE
        # What is asked for to know whether it may be asked: until that has answered nothing is.
        self.asking: Purpose | None = None
        # The last page that came.
        self.good: str | None = None
        # The number of its only valid entry in one of the two heaps.
        self.ticket = 0

    def __len__(self) -> int:
        return len(self.line) + len(self.sitemaps) + len(self.hops)

    @property
    def first(self) -> Line | None:
        """Return where its next job stands, if one may be asked for."""
        if self.hops or self.asking:
            return self.hops or None
        # A sitemap is worth more than any page: it names them.
        return self.sitemaps or self.line or None

    def place(self, job: Job) -> Line:
        """Return where this job is to stand."""
        if job.purpose is Purpose.PAGE:
            return self.line
        if job.purpose is Purpose.SITEMAP:
            self.sitemaps = self.sitemaps or Fifo()
            return self.sitemaps
        self.hops = self.hops or Fifo()
        return self.hops

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
