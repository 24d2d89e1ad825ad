"""Write a scope: it returns True to admit a job, False or a Reason to reject it."""

from __future__ import annotations

import sys

import trio
from trio_crawler import Crawler, Job, Page, Reason, excluding, same_site


def near(job: Job) -> bool | Reason:
    """Admit pages that are one link away, and the whole tutorial."""
    return "/tutorial/" in job.url or job.depth <= 1 or Reason.TOO_DEEP


async def main(url: str) -> None:
    scope = same_site([url], excluding(r"/changelog$"), near)
    crawler = Crawler([url], scope=scope)
    rejected: set[str] = set()
    async with crawler.outcomes() as outcomes:
        async for outcome in outcomes:
            if isinstance(outcome, Page):
                rejected |= {
                    f"{link.url}: {link.reason}" for link in outcome.rejected
                }
    print(*sorted(rejected), sep="\n")
    print(f"{crawler.statistics().admitted} URLs were asked for")


if __name__ == "__main__":
    trio.run(main, sys.argv[1])
