"""The tables in a report in HTML, and reports of crawls in HTML; no test is here."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from report.crawls import HOME

from trio_crawler.ledger import Ledger
from trio_crawler.model import Outcome, Statistics
from trio_crawler.report import CrawlFacts, Report

NOW = datetime(2026, 11, 27, 15, 0, tzinfo=UTC)
TABLE = re.compile(rb'<script type="application/json" id="data-(\w+)">(.*?)</script>', re.DOTALL)


def tables(html: bytes) -> dict[str, Any]:
    """Return the tables of a file, by their names."""
    return {name.decode(): json.loads(text) for name, text in TABLE.findall(html)}


def html_of(
    outcomes: Iterable[Outcome], given: dict[str, Any] | None = None, **facts: Any
) -> bytes:
    """Return the report of a crawl in HTML; `given` are the arguments of `Report.html`."""
    known = {"statistics": Statistics(), "workers": 10, "seeds": [HOME]} | facts
    ledger = Ledger(traits=True)
    for at, outcome in enumerate(outcomes):
        ledger.add(outcome)
        ledger.add_time(outcome.url, 1e9 + at)
    return Report(ledger=ledger).html(CrawlFacts(**known), **{"date": NOW, **(given or {})})
