"""The golden facts: what crawls and checks of 500 random webs find, each joined and sorted.

    python tests/golden/facts.py

writes them anew, after a change that is meant to change them.
"""

from __future__ import annotations

import json
import lzma
import sys
import tempfile
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
import trio
from trio.testing import MockClock

ROOT = Path(__file__).resolve().parents[2]
if __name__ == "__main__":
    sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from sites.random_web import HOME, RandomWeb  # noqa: E402

from trio_crawler import (  # noqa: E402
    Checks,
    Crawler,
    Failure,
    History,
    Limits,
    Outcome,
    Politeness,
    SqliteFrontier,
)
from trio_crawler.check import LinkCheck, Verdict  # noqa: E402
from trio_crawler.cli.results import status_of  # noqa: E402
from trio_crawler.ledger.join import Join  # noqa: E402
from trio_crawler.report import Report  # noqa: E402
from trio_crawler.testing import Web  # noqa: E402

WEBS = 500
FILE = Path(__file__).with_name("webs.json.xz")
Facts: TypeAlias = dict[str, Any]


def facts_of(outcomes: Iterable[Outcome], *, checked: bool, seed: str = HOME) -> Facts:
    """Join the outcomes of a crawl in each way that this project has."""
    report, check = Report(), LinkCheck()
    ends: dict[str, str] = {}
    for outcome in outcomes:
        report.add(outcome)
        check.add(outcome)
        reason = outcome.reason if isinstance(outcome, Failure) else getattr(outcome, "status", "")
        # Of two, the last one counts: a check with fragments comes again.
        ends[outcome.url] = f"{type(outcome).__name__} {reason}"
    links = Join(report.ledger)
    facts: Facts = {
        "ends": dict(sorted(ends.items())),
        "broken": links.broken(),
        "malformed": {page: sorted(hrefs) for page, hrefs in sorted(links.malformed().items())},
        "unlinked": sorted(links.unlinked([seed])),
        "problems": report.problems,
    }
    failed = None
    if checked:
        findings = list(check.findings())
        failed = any(each.verdict is Verdict.FAULT for each in findings)
        facts["findings"] = sorted(map(_row, findings), key=str)
        facts["checked"] = dict(sorted(check.checked.items()))
        not_checked = check.not_checked.items()
        facts["not_checked"] = sorted([*key, number] for key, number in not_checked)
    check.close()
    facts["exit"] = status_of(report, failed)
    return msgspec.json.decode(msgspec.json.encode(facts, enc_hook=str))


def _row(finding: Any) -> list[Any]:
    return list(msgspec.structs.astuple(finding))


async def _outcomes(crawler: Crawler, until: int | None = None) -> list[Outcome]:
    found = []
    async with crawler.outcomes() as outcomes:
        async for outcome in outcomes:
            found.append(outcome)
            if len(found) == until:
                crawler.stop()
    return found


def _crawler(web: RandomWeb, *, checks: bool, frontier: Any = None) -> Crawler:
    return Crawler(
        [HOME],
        fetch=Web(web.site, delay=0.01),
        checks=Checks(fragments=True, assets=True) if checks else None,
        politeness=Politeness(nofollow=False) if checks else None,
        limits=Limits(max_redirects=3, max_tries=2),
        workers=3,
        frontier=frontier,
    )


async def _kept(directory: Path, web: RandomWeb, until: int, *, refresh: bool = False) -> None:
    """Crawl to a directory in two runs, the first of which ends after so many outcomes."""
    for stop in (until, None):
        again = refresh and stop is not None
        async with SqliteFrontier(directory, refresh=again) as frontier:
            await _outcomes(_crawler(web, checks=True, frontier=frontier), stop)


def _read(directory: Path) -> Facts:
    with History(directory) as history:
        facts = facts_of(history.outcomes(), checked=True)
        assert not list(history.waiting())
        changes = sorted(f"{each.kind} {each.url}" for each in history.changes())
    return facts | {"changes": changes}


def golden(seed: int, *, kept: bool = True) -> Facts:
    """Return the facts of one web: crawled, checked, and if `kept` resumed and walked again.

    What is kept is a calm web: in virtual time a thread that writes changes the order. Of a
    resumed check there is only what differs from one in one run.
    """

    def run(function: Any, *given: Any, **named: Any) -> Any:
        clock = MockClock(autojump_threshold=0)
        return trio.run(partial(function, *given, **named), clock=clock)

    first = RandomWeb(seed)
    crawled = run(_outcomes, _crawler(first, checks=False))
    checked = run(_outcomes, _crawler(first, checks=True))
    facts = {"crawl": facts_of(crawled, checked=False), "check": facts_of(checked, checked=True)}
    if kept:
        first, second = RandomWeb(seed, calm=True), RandomWeb(seed, version=2, calm=True)
        checked = run(_outcomes, _crawler(first, checks=True))
        whole, half = facts_of(checked, checked=True), (len(checked) + 1) // 2
        with tempfile.TemporaryDirectory() as name:
            run(_kept, Path(name), first, half)
            resumed = _read(Path(name))
            del resumed["changes"]
            facts["resumed"] = {
                key: value for key, value in resumed.items() if value != whole[key]
            }
            run(_kept, Path(name), second, half, refresh=True)
            facts["refreshed"] = _read(Path(name))
    return facts


def read() -> list[Facts]:
    """Return the golden facts of all webs."""
    found: list[Facts] = json.loads(lzma.decompress(FILE.read_bytes()))
    return found


if __name__ == "__main__":
    text = json.dumps([golden(seed) for seed in range(WEBS)])
    FILE.write_bytes(lzma.compress(text.encode()))
