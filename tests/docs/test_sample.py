"""docs/report.html: the report in HTML of a check of the demo's site."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from zlib import crc32

import pytest
from msgspec.structs import replace

from trio_crawler import Checks, Crawler, Failure, Outcome, Politeness
from trio_crawler.check import CheckFacts, LinkCheck, to_json
from trio_crawler.cli import demo
from trio_crawler.ledger import Ledger
from trio_crawler.report import CrawlFacts, Report

pytestmark = pytest.mark.docs

SAMPLE = Path(__file__).resolve().parents[2] / "docs/report.html"
BEGAN = datetime(2026, 11, 27, 12, 0, tzinfo=UTC)


def seconds_of(outcome: Outcome) -> float:
    """Return how long a request took, in a run in which nothing is chance."""
    if outcome.url.endswith("/tide.html"):
        return 1.2
    path = outcome.url.split("/", 3)[3].encode()
    return 0.02 + crc32(path) % 40 / 1000 if getattr(outcome, "seconds", 0) else 0.0


async def test_the_sample_is_the_report_of_the_demo(recorded: Callable[[Path, str], None]) -> None:
    with demo.served(0) as url, Ledger(checks=True, traits=True) as ledger:
        owner = Politeness(nofollow=False)
        crawler = Crawler([url], workers=1, checks=Checks(), facts=True, politeness=owner)
        async with crawler.outcomes() as outcomes:
            found = [outcome async for outcome in outcomes]
        at = BEGAN.timestamp()
        # How long a URL waited for its retries is chance.
        for outcome in sorted(found, key=lambda each: isinstance(each, Failure)):
            seconds = seconds_of(outcome)
            ledger.add(replace(outcome, seconds=seconds) if seconds else outcome)
            # Four at once, as a check asks for the pages of one host.
            at += seconds / 4
            ledger.add_time(outcome.url, at)
        links = LinkCheck(ledger=ledger, why=1_000)
        findings = list(links.findings())
        counts = {"checked": links.checked, "not_checked": links.not_checked}
        facts = CheckFacts(date=BEGAN, listed=links.listed, **counts)
        html = Report(ledger=ledger).html(
            CrawlFacts(
                replace(crawler.statistics(), seconds=at - BEGAN.timestamp()),
                100,
                seeds=[url],
                politeness=owner,
                sitemaps=crawler.sitemaps(),
                listing=crawler.listing,
                checks=True,
            ),
            date=BEGAN,
            command=f"trio-crawler check {url} --facts --html report.html",
            check=json.loads(b"".join(to_json(findings, facts))),
            version="0.1.0",
        )
    text = html.decode()
    assert '<p class="verdict fault">6 faults, 1 note</p>' in text
    recorded(SAMPLE, text.replace(url.split("/")[2], "127.0.0.1:8000"))
