"""What the judging of one link costs, and which links are judged once."""

from __future__ import annotations

import time
from typing import Any

from trio_crawler import Crawler, Job, Limits, MemoryFrontier, Reason, Traps
from trio_crawler.engine import links as links_module
from trio_crawler.engine.links import Rules
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
    url = "https://host77.example.org/some/usual/path/page.html?with=query"
    spent = min(seconds(frontier, url) for _ in range(10))
    with capsys.disabled():
        print(f" {spent * 1e6:.2f} us", end="")
    # The promise is 1 us on an idle core; a busy one may take three times as long.
    assert spent < 3e-6


def seconds(frontier: MemoryFrontier, url: str) -> float:
    start = time.process_time()
    for _ in range(10_000):
        frontier.hosts.disallows(url)
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
    monkeypatch.setattr(links_module, "_MOST_OUT", 10)
    rules = rules_of()
    for number in range(11):
        rules.outside(Job(f"{OUT}{number}", 1))
    assert list(rules.out) == [f"{OUT}10"]


async def test_the_traps_count_a_url_once_until_many_others_have_come(monkeypatch):
    monkeypatch.setattr(links_module, "_REMEMBERED", 10)
    plan, frontier = Plan([SEED], traps=Traps(per_host=22)), MemoryFrontier()
    await frontier.open(plan)
    rules, old = Rules(plan, frontier), [f"{SEED}old/{number}" for number in range(30)]
    for start in range(0, len(old), 5):
        rules.restore(old[start : start + 5])
    # Earlier runs let these through, and the last ten are known as such.
    assert [rules.trapped(Job(url, 1)) for url in old[-10:]] == [None] * 10
    for number in range(20):
        assert rules.trapped(Job(f"{SEED}new/{number}", 1)) is None
    # Of 22 URLs, 20 are counted: the old ones are forgotten now, and the new ones are not.
    counted = [rules.trapped(Job(url, 1)) for url in old[-3:]]
    assert counted == [None, None, Reason.HOST_BUDGET]
    assert rules.trapped(Job(f"{SEED}new/19", 1)) is None
