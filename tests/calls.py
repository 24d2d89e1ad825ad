"""The public classes and functions, and what each cannot be called without."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import is_dataclass
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path
from typing import Any

import httpx
import msgspec
from net.test_arguments import CLASSES
from sites.store_model import StoreModel
from test_package import PUBLIC

from trio_crawler import (
    BridgedOutcomes,
    Checks,
    Crawler,
    Fault,
    HostPoliteness,
    Job,
    Limits,
    MemoryFrontier,
    Page,
    Politeness,
    Reason,
    Response,
    Sitemaps,
    SqliteFrontier,
    Statistics,
    Traps,
)
from trio_crawler.check import Baseline, CheckFacts, Finding, LinkCheck, Verdict, Verdicts
from trio_crawler.frontier import Hosts, Join, Plan
from trio_crawler.ledger import Ledger
from trio_crawler.net import CookieStore
from trio_crawler.report import CrawlFacts, Report, Warc

HOME = "http://site.test/"
NOW = datetime(2026, 1, 1, tzinfo=UTC)
FINDINGS: dict[str, Any] = {"findings": [], "facts": CheckFacts(date=NOW)}
PAGE = Page(HOME, 200, httpx.Headers(), b"", content_type="text/html")
CHECKED = (
    *(Baseline, CheckFacts, Checks, CrawlFacts, Fault, Finding, HostPoliteness, Limits),
    *(Politeness, Response, Sitemaps, Traps, Verdicts),
)
"""The records that a caller makes; all others carry what the crawl itself has made."""


def is_record(found: Any) -> bool:
    """Whether something is a class that only carries values."""
    known = is_dataclass(found) or hasattr(found, "_fields") or issubclass(found, msgspec.Struct)
    return known and found not in (*CHECKED, Plan) and bool(inspect.signature(found).parameters)


def is_called(found: Any) -> bool:
    """Whether a caller calls it with arguments of which some may be wrong."""
    if not inspect.isclass(found):
        return inspect.isfunction(found)
    if found is BridgedOutcomes:
        # Only `bridged` makes one.
        return False
    protocol = getattr(found, "_is_protocol", False)
    return not (protocol or issubclass(found, Enum | BaseException) or is_record(found))


CLASSES_AND_FUNCTIONS = {name: found for name, found in PUBLIC.items() if callable(found)}
RECORDS = {
    name: found
    for name, found in CLASSES_AND_FUNCTIONS.items()
    if inspect.isclass(found) and not getattr(found, "_is_protocol", False) and is_record(found)
}
CALLED = {name: found for name, found in CLASSES_AND_FUNCTIONS.items() if is_called(found)}
"""`net.test_arguments` has the table of effects of some."""

METHODS: dict[str, Callable[[], Callable[..., Any]]] = {
    "Crawler.listing": lambda: Crawler([HOME]).listing,
    "Crawler.stop": lambda: Crawler([HOME]).stop,
    "CookieStore.cookies_for": lambda: CookieStore().cookies_for,
    "CookieStore.store": lambda: CookieStore().store,
    "Hosts.end": lambda: Hosts(Plan(), end=lambda reason: None).end,
    "HttpFetch.__call__": lambda: CLASSES[0](),
    "Join.add": lambda: Join().add,
    "Ledger.add": lambda: Ledger().add,
    "Ledger.add_time": lambda: Ledger().add_time,
    "LinkCheck.certain": lambda: LinkCheck().certain,
    "MemoryFrontier.end": lambda: MemoryFrontier().end,
    "MemoryFrontier.open": lambda: MemoryFrontier().open,
    "Report.add": lambda: Report().add,
    "Report.hints": lambda: Report().hints,
    "Report.html": lambda: Report(ledger=Ledger(traits=True)).html,
    "Report.text": lambda: Report().text,
    "SqliteFrontier.end": lambda: SqliteFrontier("never made").end,
    "SqliteFrontier.stream": lambda: SqliteFrontier("never made").stream,
    "Warc.records": lambda: Warc().records,
    "Warc.recording": lambda: Warc().recording,
    "Warc.restore": lambda: Warc().restore,
}
"""Some methods, each of a new object."""

NEEDED: dict[str, dict[str, Any]] = {
    "Crawler": {"seeds": [HOME]},
    "CheckFacts": {"date": NOW},
    "CookieStore.store": {"url": HOME, "headers": httpx.Headers()},
    "CrawlFacts": {"statistics": Statistics(), "workers": 1, "seeds": [HOME]},
    "Fault": {"reason": Reason.TIMEOUT},
    "FileLock": {"file": 0},
    "Finding": {"verdict": Verdict.FAULT, "url": HOME, "code": "404"},
    "Hosts": {"plan": Plan(), "end": lambda reason: None},
    "FolderFetch": {"folder": "."},
    "HttpxFetch": {"client_or_transport": httpx.MockTransport(lambda request: None)},
    "JobChannel": {"choose": lambda last: None},
    "Response": {"status": 200},
    "SharedFrontier": {"store": StoreModel(now=lambda: 1.0)},
    "SqliteFrontier": {"directory": "never made"},
    "SqliteFrontier.stream": {"path": "x", "encode": bytes},
    "Stream": {"path": Path("never made"), "committed": None, "tail": None, "encode": bytes},
    "Web": {"site": {}},
    "breadth_first": {"job": Job(HOME)},
    "by_sitemap": {"job": Job(HOME)},
    "changes": {"found": [], "since": None},
    "check_report": FINDINGS,
    "command_line": {"words": []},
    "csv_entry": {"outcome": PAGE},
    "csv_row": {"outcome": PAGE},
    "csv_with_facts": {"entries": [], "ledger": Ledger()},
    "depth_first": {"job": Job(HOME)},
    "jsonl_with_links": {"entries": [], "ledger": Ledger()},
    "link_rows": {"outcome": PAGE},
    "bridged": {"open_crawler": lambda: Crawler([HOME])},
    "merge": {"out": "never made", "directories": ["nowhere"]},
    "normalise": {"url": HOME},
    "links_of": {"page": PAGE},
    "one_line": {"outcome": PAGE},
    "opened_store": {"url": "redis://127.0.0.1:1/0", "crawl": "c"},
    "parse_patterns": {"lines": [], "file": "x"},
    "parse_statuses": {"text": "200"},
    "progress_line": {"statistics": Statistics(), "problems": 0, "hosts": []},
    "read_baseline": {"lines": [b'{"trio_crawler_baseline":1}'], "file": "x"},
    "redirect": {"target": "/a"},
    "same_site": {"seeds": [HOME]},
    "seeds_only": {"job": Job(HOME)},
    "seen_key": {"url": HOME},
    "sitemap_entry": {"outcome": PAGE},
    "sitemap_home": {"line": b""},
    "sitemap_index": {"urls": []},
    "sitemap_parts": {"entries": []},
    "to_annotations": {"findings": []},
    "to_json": FINDINGS,
    "to_jsonl": {"outcome": PAGE},
    "to_junit": FINDINGS,
    "to_markdown": FINDINGS,
    "to_sarif": FINDINGS,
    "Ledger.add": {"outcome": PAGE},
    "Ledger.add_time": {"url": HOME, "ended": 0},
    "Report.hints": {"crawl": CrawlFacts(Statistics(), 1, seeds=[HOME])},
    "Report.html": {"crawl": CrawlFacts(Statistics(), 1, seeds=[HOME]), "date": NOW},
    "Report.text": {"crawl": CrawlFacts(Statistics(), 1, seeds=[HOME])},
    "wrapping": {"fetch": lambda job: None},
    "attempted": {"section": lambda: []},
    "visible": {"text": ""},
    "write_baseline": {"findings": []},
}


def short(name: str) -> str:
    """Return the name of a class or function without its room."""
    return name.rpartition(".")[2]


def callables() -> Iterator[tuple[str, Callable[[], Callable[..., Any]]]]:
    """Yield the short name of each class, function and method, and how to get it."""
    for name, found in CALLED.items():
        yield short(name), lambda found=found: found
    yield from METHODS.items()


def parameters(made: Callable[..., Any]) -> Iterator[inspect.Parameter]:
    return iter(inspect.signature(made).parameters.values())


ARGUMENTS = list(
    {
        (name, each.name): (name, make, each)
        for name, make in callables()
        for each in parameters(make())
    }.values()
)


def call(name: str, make: Callable[[], Callable[..., Any]], **given: Any) -> Any:
    """Call something with what it needs, and with `given`."""
    function, named = make(), {**NEEDED.get(name, {}), **given}
    names = list(inspect.signature(function).parameters.items())
    var = inspect.Parameter.VAR_POSITIONAL
    at = next((at for at, (_, each) in enumerate(names) if each.kind is var), None)
    if at is None:
        return function(**named)
    before = [named.pop(each) for each, _ in names[:at] if each in named]
    return function(*before, *named.pop(names[at][0], ()), **named)
