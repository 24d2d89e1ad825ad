"""Write a scope: a function that returns None for a job, or why it is refused."""

from __future__ import annotations

import sys

import trio
from trio_crawler import Crawler, Job, Page, Reason, all_of, excluding, same_site


def near(job: Job) -> Reason | None:
    """Admit what is one link away, and of the tutorial everything."""
    if "/tutorial/" in job.url or job.depth <= 1:
        return None
    return Reason.TOO_DEEP


async def main(url: str) -> None:
    scope = all_of(same_site([url]), excluding(r"/changelog$"), near)
    crawler = Crawler([url], scope=scope)
    refused: set[str] = set()
    async with crawler.outcomes() as outcomes:
        async for outcome in outcomes:
            if isinstance(outcome, Page):
                refused |= {
                    f"{link.url}: {link.reason}" for link in outcome.refused
                }
    print(*sorted(refused), sep="\n")
    print(f"{crawler.statistics().admitted} URLs were asked for")


if __name__ == "__main__":
    trio.run(main, sys.argv[1])
