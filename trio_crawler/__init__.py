"""A web crawler in structured concurrency, on Trio.

from trio_crawler import Crawler, Failure, Page

crawler = Crawler(["https://example.org/"])
async with crawler.outcomes() as outcomes:
    async for outcome in outcomes:
        match outcome:
            case Page(url=url, status=status):
                print(status, url)
            case Failure(url=url, reason=reason):
                print(reason, url)
print(crawler.statistics())
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from trio_crawler._version import __version__

if TYPE_CHECKING:
    from trio_crawler.crawler import Crawler as Crawler
    from trio_crawler.frontier.join import Join as Join
    from trio_crawler.frontier.memory import MemoryFrontier as MemoryFrontier
    from trio_crawler.frontier.protocol import Frontier as Frontier
    from trio_crawler.frontier.queues import Order as Order
    from trio_crawler.frontier.queues import breadth_first as breadth_first
    from trio_crawler.frontier.queues import by_sitemap as by_sitemap
    from trio_crawler.frontier.queues import depth_first as depth_first
    from trio_crawler.frontier.sqlite import SqliteFrontier as SqliteFrontier
    from trio_crawler.model import Anchor as Anchor
    from trio_crawler.model import Failure as Failure
    from trio_crawler.model import Fault as Fault
    from trio_crawler.model import Fetch as Fetch
    from trio_crawler.model import Job as Job
    from trio_crawler.model import Listing as Listing
    from trio_crawler.model import Outcome as Outcome
    from trio_crawler.model import Page as Page
    from trio_crawler.model import Phase as Phase
    from trio_crawler.model import Purpose as Purpose
    from trio_crawler.model import Reason as Reason
    from trio_crawler.model import Redirect as Redirect
    from trio_crawler.model import Refused as Refused
    from trio_crawler.model import Response as Response
    from trio_crawler.model import Sitemap as Sitemap
    from trio_crawler.model import Skipped as Skipped
    from trio_crawler.model import Statistics as Statistics
    from trio_crawler.model import Validator as Validator
    from trio_crawler.net.cookies import CookieStore as CookieStore
    from trio_crawler.net.fetch import FetchStatistics as FetchStatistics
    from trio_crawler.net.fetch import HttpFetch as HttpFetch
    from trio_crawler.net.wire import Wire as Wire
    from trio_crawler.net.wire import WireStatistics as WireStatistics
    from trio_crawler.policy.limits import Limits as Limits
    from trio_crawler.policy.politeness import HostStatistics as HostStatistics
    from trio_crawler.policy.politeness import Politeness as Politeness
    from trio_crawler.policy.scope import Admits as Admits
    from trio_crawler.policy.scope import all_of as all_of
    from trio_crawler.policy.scope import any_of as any_of
    from trio_crawler.policy.scope import everything as everything
    from trio_crawler.policy.scope import excluding as excluding
    from trio_crawler.policy.scope import including as including
    from trio_crawler.policy.scope import same_site as same_site
    from trio_crawler.policy.scope import under as under
    from trio_crawler.policy.traps.watch import Traps as Traps
    from trio_crawler.report import CSV_HEAD as CSV_HEAD
    from trio_crawler.report import LINKS_HEAD as LINKS_HEAD
    from trio_crawler.report import Report as Report
    from trio_crawler.report import Warc as Warc
    from trio_crawler.report import brief as brief
    from trio_crawler.report import csv_row as csv_row
    from trio_crawler.report import line as line
    from trio_crawler.report import link_rows as link_rows
    from trio_crawler.store.changes import Change as Change
    from trio_crawler.store.errors import DifferentCrawl as DifferentCrawl
    from trio_crawler.store.errors import InUse as InUse
    from trio_crawler.store.errors import StoreError as StoreError
    from trio_crawler.store.history import History as History
    from trio_crawler.store.history import Run as Run
    from trio_crawler.store.streams import Stream as Stream

# Imported when first asked for: `--help` needs none of Trio, httpx and the parsers.
_HOMES = {
    "trio_crawler.crawler": "Crawler",
    "trio_crawler.frontier.join": "Join",
    "trio_crawler.frontier.queues": "Order breadth_first by_sitemap depth_first",
    "trio_crawler.frontier.memory": "MemoryFrontier",
    "trio_crawler.frontier.protocol": "Frontier",
    "trio_crawler.frontier.sqlite": "SqliteFrontier",
    "trio_crawler.model": (
        "Anchor Failure Fault Fetch Job Listing Outcome Page Phase Purpose Reason Redirect "
        "Refused Response Sitemap Skipped Statistics Validator"
    ),
    "trio_crawler.net.cookies": "CookieStore",
    "trio_crawler.net.fetch": "FetchStatistics HttpFetch",
    "trio_crawler.net.wire": "Wire WireStatistics",
    "trio_crawler.policy.limits": "Limits",
    "trio_crawler.policy.politeness": "HostStatistics Politeness",
    "trio_crawler.policy.scope": (
        "Admits all_of any_of everything excluding including same_site under"
    ),
    "trio_crawler.policy.traps.watch": "Traps",
    "trio_crawler.report": "CSV_HEAD LINKS_HEAD Report Warc brief csv_row line link_rows",
    "trio_crawler.store.changes": "Change",
    "trio_crawler.store.errors": "DifferentCrawl InUse StoreError",
    "trio_crawler.store.history": "History Run",
    "trio_crawler.store.streams": "Stream",
}
_HOME = {name: home for home, names in _HOMES.items() for name in names.split()}

__all__ = [
    "__version__",
    *sorted(_HOME),
]


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOME[name]), name)
    if isinstance(value, type):
        value.__module__ = __name__
    return value


def __dir__() -> list[str]:
    return __all__
