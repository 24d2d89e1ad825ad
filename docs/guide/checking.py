"""Check the links of a site, and print each fault with its place."""

from __future__ import annotations

import sys

import trio
from trio_crawler import Checks, Crawler
from trio_crawler.check import LinkCheck, Verdict


async def main(url: str) -> None:
    check = LinkCheck()
    crawler = Crawler([url], checks=Checks(external=False))
    async with crawler.outcomes() as outcomes:
        async for outcome in outcomes:
            check.add(outcome)
    # The pages come in any order.
    for finding in sorted(
        check.findings(), key=lambda each: (each.target, each.page or "")
    ):
        if finding.verdict is Verdict.FAULT:
            print(f"{finding.page}:{finding.line}: {finding.target}")
            print(f"    {finding.says}.")
    check.close()


if __name__ == "__main__":
    trio.run(main, sys.argv[1])
