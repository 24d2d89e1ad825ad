"""What the judging of one link costs, and which links are judged once."""

from __future__ import annotations

import time
from typing import Any

from trio_crawler import Crawler, Job, Limits, MemoryFrontier, Reason
from trio_crawler.engine import rules as rules_module
from trio_crawler.engine.rules import Rules
from trio_crawler.frontier import Plan
from trio_crawler.model import RejectedLink
from trio_crawler.policy.robots import ALLOW_ALL, KnownRules
from trio_crawler.testing import Web, html


async def test_a_link_to_an_origin_without_rules_costs_a_microsecond(capsys):
    plan, frontier = Plan([]), MemoryFrontier()
    await frontier.open(plan)
    for number in range(10_000):
        known = KnownRules(ALLOW_ALL, 0.0)
        frontier.hosts.restore_rules(f"https://host{number}.example.org/", known)
    rules = Rules(plan, frontier)
    url = "https://host77.example.org/some/usual/path/page.html?with=query"
    spent = min(seconds(rules, url) for _ in range(10))
    with capsys.disabled():
        print(f" {spent * 1e6:.2f} us", end="")
    # The promise is 1 us on an idle core; a busy one may take three times as long.
    assert spent < 3e-6


def seconds(rules: Rules, url: str) -> float:
    start = time.process_time()
    for _ in range(10_000):
        rules.disallowed(url)
    return (time.process_time() - start) / 10_000


SEED, OUT, MAIL = "https://e.test/", "https://out.test/", "mailto:a@e.test"


def rules_of(**options: Any) -> Rules:
    return Rules(Plan([SEED], **options), MemoryFrontier())


def test_a_link_that_leads_out_is_judged_once():
    rules = rules_of()
    for url, reason in ((OUT, Reason.OTHER_SITE), (MAIL, Reason.OTHER_SCHEME)):
        assert url not in rules.out
        assert rules.outside(Job(url, 1)) is reason
        assert rules.out[url] == RejectedLink(url, reason)


def test_a_link_that_a_callers_scope_rejects_is_judged_each_time():
    rules = rules_of(scope=lambda job: job.depth < 2)
    assert rules.outside(Job(OUT, 2)) is Reason.EXCLUDED
    assert not rules.out


async def test_a_link_that_is_too_deep_has_that_reason_wherever_it_leads(autojump_clock):
    web = Web({"/": html("/a", OUT), "/a": html("/b", OUT), "/b": html(OUT, "/c")}, url=SEED)
    rejected = {}
    async with Crawler([SEED], fetch=web, limits=Limits(max_depth=2)).outcomes() as outcomes:
        async for page in outcomes:
            rejected[page.url] = list(page.rejected)
    other, deep = (OUT, Reason.OTHER_SITE), (OUT, Reason.TOO_DEEP)
    assert rejected == {
        SEED: [other],
        f"{SEED}a": [other],
        f"{SEED}b": [deep, (f"{SEED}c", Reason.TOO_DEEP)],
    }


def test_links_that_lead_out_are_forgotten_when_there_are_too_many(monkeypatch):
    monkeypatch.setattr(rules_module, "_MOST_OUT", 10)
    rules = rules_of()
    for number in range(11):
        rules.outside(Job(f"{OUT}{number}", 1))
    assert list(rules.out) == [f"{OUT}10"]
