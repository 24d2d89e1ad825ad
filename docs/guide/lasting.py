"""A crawl that lasts: it is left again and again, and goes on until all is done."""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import trio
from trio_crawler import Crawler, History, SqliteFrontier
from trio_crawler.report import to_jsonl


async def some(url: str, directory: Path, most: int) -> int:
    """Go on with a crawl for so many outcomes; return how many there were."""
    taken = 0
    async with SqliteFrontier(directory) as frontier:
        lines = frontier.stream(directory / "handbook.jsonl", to_jsonl)
        async with Crawler([url], frontier=frontier).outcomes() as outcomes:
            async for outcome in outcomes:
                lines.add(outcome)
                taken += 1
                if taken == most:
                    break
    return taken


async def main(url: str, directory: Path) -> None:
    while taken := await some(url, directory, most=5):
        print(f"outcomes that a run was given: {taken}")
    print("the next run found nothing left to do")
    with History(directory) as history:
        totals = history.statistics()
        print(f"{totals.admitted} URLs, and {totals.waiting} of them are left")
    records = (directory / "handbook.jsonl").read_bytes().splitlines()
    print(f"{len(records)} records, {len(set(records))} of them different")


if __name__ == "__main__":
    with TemporaryDirectory() as directory:
        trio.run(main, sys.argv[1], Path(directory))
