"""The same crawl on stock httpx, `httpx_crawler.py URL N`.

    python tests/bench/httpx_crawler.py http://127.0.0.1:8000/ 10

Trio, `httpx.AsyncClient` with its own transport and pool, selectolax. The pool may hold as many
connections as there are workers, so that nothing has to wait in it.
"""

from __future__ import annotations

import sys

import httpx
import trio
from shape import Frontier, run

TRIES = 4


async def crawl(frontier: Frontier, workers: int) -> None:
    """Run to the end of the frontier."""
    limits = httpx.Limits(max_connections=workers, max_keepalive_connections=workers)
    client = httpx.AsyncClient(limits=limits, timeout=30)
    async with client, trio.open_nursery() as nursery:
        for _ in range(workers):
            nursery.start_soon(work, frontier, client)


async def work(frontier: Frontier, client: httpx.AsyncClient) -> None:
    """Fetch what the frontier gives."""
    async for url in frontier.jobs:
        response = await ask(client, url)
        location = response.headers.get("location", "")
        media = response.headers.get("content-type", "")
        frontier.settle(url, response.status_code, media, location, response.content)


async def ask(client: httpx.AsyncClient, url: str) -> httpx.Response:
    """Ask for one URL; status 0 means that no response came."""
    for _ in range(TRIES):
        try:
            return await client.get(url)
        except httpx.TransportError:
            continue
    return httpx.Response(0)


if __name__ == "__main__":
    run(crawl, *sys.argv[1:])
