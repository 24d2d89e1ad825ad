"""The nursery alone: a task for each page; the block ends with the last."""

from __future__ import annotations

import sys
from urllib.parse import urljoin

import httpx
import trio
from web import links, show


async def crawl(
    client: httpx.AsyncClient, root: str, max_tasks: int = 4, max_redirect: int = 10
) -> set[str]:
    seen_urls: set[str] = set()
    pages: set[str] = set()
    room = trio.CapacityLimiter(max_tasks)

    async def fetch(url: str, left: int) -> None:  # (4) (5)
        async with room:
            response = await client.get(url, follow_redirects=False)
        if not response.is_redirect:
            pages.add(url)
            add(links(url, response.content), max_redirect)
        elif left > 0:
            add({urljoin(url, response.headers["location"])}, left - 1)

    def add(urls: set[str], left: int) -> None:
        for url in sorted(urls - seen_urls):  # (6)
            seen_urls.add(url)
            nursery.start_soon(fetch, url, left)

    async with trio.open_nursery() as nursery:  # (1) (2) (3)
        add({root}, max_redirect)
    return pages


async def main(root: str) -> None:
    async with httpx.AsyncClient() as client:
        show(await crawl(client, root))


if __name__ == "__main__":
    trio.run(main, sys.argv[1])
