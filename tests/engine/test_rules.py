"""What the judging of one link costs."""

from __future__ import annotations

import time

from trio_crawler import MemoryFrontier
from trio_crawler.engine.rules import Rules
from trio_crawler.frontier import Plan
from trio_crawler.policy.robots.rules import ALLOW_ALL
from trio_crawler.policy.robots.store import KnownRules


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
