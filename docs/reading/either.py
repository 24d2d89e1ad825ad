"""The same in anyio: `either.py URL asyncio` or `either.py URL trio`."""

from __future__ import annotations

import math
import sys
from urllib.parse import urljoin

import anyio
import httpx
from web import links, show


async def crawl(
    client: httpx.AsyncClient, root: str, max_tasks: int = 4, max_redirect: int = 10
) -> set[str]:
    send, jobs = anyio.create_memory_object_stream[tuple[str, int]](math.inf)
    seen_urls: set[str] = set()
    pages: set[str] = set()
    unfinished = 0

    async def work() -> None:
        nonlocal unfinished
        async for url, left in jobs:  # (4)
            await fetch(url, left)
            unfinished -= 1  # (5)
            if unfinished == 0:
                send.close()

    async def fetch(url: str, left: int) -> None:
        response = await client.get(url, follow_redirects=False)
        if not response.is_redirect:
            pages.add(url)
            add(links(url, response.content), max_redirect)
        elif left > 0:
            add({urljoin(url, response.headers["location"])}, left - 1)

    def add(urls: set[str], left: int) -> None:
        nonlocal unfinished
        for url in sorted(urls - seen_urls):  # (6)
            unfinished += 1
            send.send_nowait((url, left))
        seen_urls.update(urls)

    add({root}, max_redirect)
    async with send, jobs, anyio.create_task_group() as group:  # (1) (2) (3)
        for _ in range(max_tasks):
            group.start_soon(work)
    return pages


async def main(root: str) -> None:
    async with httpx.AsyncClient() as client:
        show(await crawl(client, root))


if __name__ == "__main__":
    anyio.run(main, sys.argv[1], backend=sys.argv[2] if sys.argv[2:] else "trio")
