"""The report in HTML of a large site: its size, and the tasks of its script in Chromium.

    python tests/bench/browsed.py --pages 100000

Each page has two or three broken links, as from a template. Times are milliseconds; a task of more
than 50 counts as long. Needs selenium, Chromium and its driver.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx

sys.path.insert(0, str(Path(__file__).parents[1]))

from browser import chromium

from trio_crawler import Failure, Page, Reason, Redirect, Statistics
from trio_crawler.check import CheckFacts, Finding, Verdict, to_json
from trio_crawler.ledger import Ledger
from trio_crawler.report import CrawlFacts, Report

HOME = "https://docs.example.org/"
WORDS = "alpha beta gamma delta report archive handbook chapter section release notes".split()
NOW = datetime.now(UTC)
WATCH = """window.long = [];
const told = list => list.getEntries().forEach(each => long.push(Math.round(each.duration)));
new PerformanceObserver(told).observe({type: "longtask", buffered: true});"""
TYPE = """const typed = document.querySelector('#{} input');
typed.value = "alpha"; typed.dispatchEvent(new Event("input"));"""
STEPS = {
    "search in URLs": TYPE.format("pages"),
    "sort by time": "document.querySelectorAll('#pages th button')[2].click()",
    "faults by page": "document.querySelectorAll('#faults .choice button')[1].click()",
    "search in faults": TYPE.format("faults"),
    "open a section of the map": "document.querySelector('#map .tile').click()",
}


def html_of(number: int) -> bytes:
    """Make the report of a check of a site with so many pages."""
    chance, ledger, facts = random.Random(1), Ledger(traits=True), CheckFacts(date=NOW)
    urls = [HOME]
    for at in range(number):
        folders = "/".join(chance.choice(WORDS) for _ in range(chance.randrange(1, 4)))
        urls.append(f"{HOME}{folders}/{'-'.join(chance.sample(WORDS, 3))}-{at}.html")
    for at, url in enumerate(urls):
        about: dict[str, Any] = {"depth": at.bit_length() // 2, "seconds": chance.expovariate(5)}
        about["referrer"] = urls[chance.randrange(at)] if at else None
        match at % 50:
            case 7:
                ledger.add(Redirect(url, 301, chance.choice(urls), **about))
            case 9:
                ledger.add(Failure(url, Reason.TIMEOUT, **about))
            case _:
                title = f"{' '.join(chance.sample(WORDS, 5))} {at} - Docs"
                about |= {"content_type": "text/html", "links": tuple(chance.sample(urls, 8))}
                about |= {"title": title, "body_size": chance.randrange(40_000)}
                ledger.add(Page(url, 200, httpx.Headers(), b"", **about))
        ledger.add_time(url, 1.7e9 + at / 50)
    place = {"verdict": Verdict.FAULT, "code": "404", "kind": "a", "column": 5, "text": "a link"}
    found = [
        Finding(url=f"{HOME}gone/{(at + link) % 40}.html", page=url, line=10 + link, **place)
        for at, url in enumerate(urls)
        for link in range(2 + at % 2)
    ]
    known = CrawlFacts(Statistics(admitted=len(urls), seconds=number / 50), 10, seeds=[HOME])
    document = json.loads(b"".join(to_json(found, facts)))
    began = time.process_time()
    html = Report(ledger=ledger).html(known, date=NOW, check=document)
    print(f"{len(html) / 1e6:.1f} MB, made in {time.process_time() - began:.1f} CPU seconds")
    return html


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--pages", type=int, default=100_000)
    html = html_of(parser.parse_args().pages)
    with TemporaryDirectory() as folder, chromium() as browser:
        path = Path(folder) / "report.html"
        path.write_bytes(html)
        browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": WATCH})
        browser.get(path.as_uri())
        while not browser.execute_script("return document.documentElement.dataset.ready"):
            time.sleep(0.1)
        for name, script in {"open": "", **STEPS}.items():
            browser.execute_script(script)
            time.sleep(1)
            print(f"{name}: {browser.execute_script('return long.splice(0)') or 'no long task'}")


if __name__ == "__main__":
    main()
