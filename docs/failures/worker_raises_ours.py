"""Give `trio_crawler` a scope with a bug: the error says at which page."""

from __future__ import annotations

import sys

import trio
from trio_crawler import Crawler, Job


def scope(job: Job) -> bool:
    number = int(job.url.rpartition("/")[2] or 0)
    return 8 / (8 - number) != 0


async def main(root: str) -> None:
    await Crawler([root], scope=scope).crawl()


if __name__ == "__main__":
    trio.run(main, sys.argv[1])
