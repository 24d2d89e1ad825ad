"""The Trio generator without the decorator: as wrong, and it ends worse."""

from __future__ import annotations

import logging
import math
import sys
from collections.abc import AsyncIterator

import httpx
import trio
from streaming_trio import Streaming

from sites.endless import answer
from virtual import run_trio, visitor


async def pages(client: httpx.AsyncClient, root: str) -> AsyncIterator[str]:
    crawler = Streaming(client, root)
    crawler.found, found = trio.open_memory_channel[str](math.inf)
    async with trio.open_nursery() as nursery:  # (1)
        nursery.start_soon(crawler.crawl)
        while True:
            yield await found.receive()  # (2)


async def main() -> None:
    client, site = visitor(answer)
    stream = pages(client, site.url)  # (3)
    async for url in stream:
        print("has", url, "and leaves")
        break
    await trio.sleep(0.05)
    before = site.hits.total()
    await trio.sleep(10)
    print("requests in the next 10 s:", site.hits.total() - before)


if __name__ == "__main__":
    # More is said while it falls apart, in other words on each Python.
    logging.disable()
    sys.unraisablehook = lambda unraisable: None
    try:
        run_trio(main)
    except (RuntimeError, trio.TrioInternalError):
        print("then Trio itself ends with an internal error")
