"""A task is not a value: `start_soon` returns None, errors go up."""

from __future__ import annotations

import sys

import trio
from awaits_trio import fetch
from web import links, show


async def crawl(root: str) -> set[str]:
    seen_urls = {root}

    async def visit(url: str) -> None:
        new = links(url, await fetch(url)) - seen_urls
        seen_urls.update(new)  # (1) (2)
        for link in sorted(new):
            nursery.start_soon(visit, link)  # (4)

    async with trio.open_nursery() as nursery:  # (3)
        nursery.start_soon(visit, root)
    return seen_urls


if __name__ == "__main__":
    show(trio.run(crawl, sys.argv[1]))
