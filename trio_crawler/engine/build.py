"""Build the engine of one crawl from its plan."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

import trio

from trio_crawler.arguments import check_flag, check_function, check_kind, check_methods
from trio_crawler.engine.bounces import Bounces
from trio_crawler.engine.canonical import CanonicalFolding
from trio_crawler.engine.checks import CheckHandler
from trio_crawler.engine.counters import Counters
from trio_crawler.engine.handler import Handler
from trio_crawler.engine.links import Links
from trio_crawler.engine.lookups import lookup_of, start_lookups
from trio_crawler.engine.outbox import Outbox
from trio_crawler.engine.pages import PageHandler
from trio_crawler.engine.repeats import Repeats
from trio_crawler.engine.robots import ProbeHandler, RobotsHandler
from trio_crawler.engine.rules import Rules
from trio_crawler.engine.seeds import Seeder
from trio_crawler.engine.sitemaps import SitemapHandler
from trio_crawler.frontier.memory import MemoryFrontier
from trio_crawler.frontier.protocol import Frontier, FrontierStatistics, Past
from trio_crawler.model import Fetch, Purpose, Reason, Statistics
from trio_crawler.net.fetch import HttpFetch
from trio_crawler.net.request import DEFAULT_USER_AGENT
from trio_crawler.policy.plan import Plan
from trio_crawler.policy.politeness import HostStatistics, Politeness
from trio_crawler.policy.robots.parse import product_token

_METHODS = ("open", "run", "known", "add", "settle", "retry", "end", "statistics")


@dataclass(slots=True)
class Engine:
    """The parts of one crawl. `fetch` is None if the caller passed none: the crawl makes one."""

    plan: Plan
    frontier: Frontier
    fetch: Fetch | None
    counters: Counters
    outbox: Outbox
    handlers: Mapping[Purpose, Handler]
    rules: Rules
    pages: PageHandler
    sitemaps: SitemapHandler
    checks: CheckHandler
    folding: CanonicalFolding
    is_open: bool = False
    ended: Reason | None = None

    def opened_fetch(self) -> AbstractAsyncContextManager[Fetch]:
        """Return a block with the fetch; it closes a fetch that the crawl itself made."""
        return HttpFetch(seeds=self.plan.seeds) if self.fetch is None else nullcontext(self.fetch)

    def start_lookups(self, nursery: trio.Nursery, ask: Fetch) -> None:
        """Look up the names of the hosts beside the workers, if the fetch can do that."""
        start_lookups(nursery, ask, self.frontier.hosts)

    def start_seeding(self, nursery: trio.Nursery) -> None:
        """Read the stream of seeds beside the workers, if there is one."""
        if self.plan.seed_stream is not None:
            nursery.start_soon(Seeder(self.plan, self.frontier).run, self.plan.seed_stream)

    async def open(self) -> None:
        """Open the frontier, and restore the state that earlier runs left in it."""
        past = await self.frontier.open(self.plan)
        self.is_open = True
        if self.ended is not None:
            self.frontier.end(self.ended)
        if past is not None:
            # With a million URLs this takes some seconds.
            await trio.to_thread.run_sync(self._restore, past)

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

    def _restore(self, past: Past) -> None:
        self.counters.restore(past.statistics)
        self.sitemaps.restore(past.sitemaps, past.listings)
        self.pages.restore(past)
        self.checks.restore(past)
        self.frontier.hosts.restore_bodies(past.bodies)
        for urls in past.urls:
            self.frontier.hosts.restore_urls(urls)
            self.rules.restore(urls)
        self.folding.restore(past.outcomes)


def plan_of(fetch: Fetch | None, *, politeness: Politeness | None, **given: Any) -> Plan:
    """Return the plan of a crawl.

    The user agent comes from the politeness, else from the fetch; the random generator from the
    arguments, else from the fetch. Without a word in the politeness, whether the fetch sends
    credentials decides on links with side effects.

    Raises TypeError or ValueError, naming the argument, for an invalid value.
    """
    if fetch is not None:
        check_function("fetch", fetch, "an async function of a job, such as HttpFetch()")
    lookup_of(fetch)
    agent = getattr(fetch, "user_agent", DEFAULT_USER_AGENT)
    if isinstance(politeness, Politeness) and politeness.agent is not None:
        agent = politeness.agent
    check_kind("the user_agent of fetch", agent, str, "a str")
    sends = getattr(fetch, "sends_credentials", False)
    check_flag("the sends_credentials of fetch", sends)
    politeness = Politeness() if politeness is None else politeness
    if isinstance(politeness, Politeness) and politeness.side_effects is None:
        politeness = replace(politeness, side_effects=not sends)
    if given["random"] is None:
        given["random"] = getattr(fetch, "random", None)
    return Plan(politeness=politeness, agent=product_token(agent), **given)


def checked_frontier(frontier: Frontier | None) -> Frontier:
    """Return `frontier`, by default one in memory; raise TypeError if it lacks a method."""
    if frontier is None:
        return MemoryFrontier()
    check_methods("frontier", frontier, _METHODS, "a frontier, such as MemoryFrontier()")
    return frontier


def build(fetch: Fetch | None, frontier: Frontier | None, **given: Any) -> Engine:
    """Return the engine of one crawl; `given` are the arguments of its `Plan`.

    Raises TypeError or ValueError, naming the argument, for an invalid value.
    """
    plan, frontier = plan_of(fetch, **given), checked_frontier(frontier)
    counters = Counters()
    outbox = Outbox(plan.workers, counters, frontier)
    rules = Rules(plan, frontier)
    folding = CanonicalFolding(plan, frontier, rules)
    links = Links(plan, frontier, rules, folding)
    repeats = Repeats(frontier, plan.workers)
    pages = PageHandler(plan, links, folding, outbox, repeats, Bounces.of(fetch))
    sitemaps = SitemapHandler(plan, frontier, rules)
    checks = CheckHandler(plan, links)
    handlers: dict[Purpose, Handler] = {
        Purpose.PAGE: pages,
        Purpose.CHECK: checks,
        Purpose.FRAGMENTS: checks,
        Purpose.SITEMAP: sitemaps,
        Purpose.ROBOTS: RobotsHandler(plan, frontier, sitemaps),
        Purpose.PROBE: ProbeHandler(),
    }
    parts = (counters, outbox, handlers, rules, pages, sitemaps, checks, folding)
    return Engine(plan, frontier, fetch, *parts)
