"""A deadline in an async generator, meant for its fetches, strikes its reader."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator

from sites.plain import answer
from virtual import run_asyncio, visitor


async def pages() -> AsyncIterator[str]:
    client, site = visitor(answer)
    async with asyncio.timeout(1):  # (1)
        for number in range(3):
            await client.get(f"{site.url}{number or ''}")
            yield f"page {number}"  # (2)


async def main() -> None:
    try:
        async for page in pages():
            print("has", page)
            await asyncio.sleep(5)  # (3)
            print("has read it")
    except asyncio.CancelledError:
        now = asyncio.get_running_loop().time()
        print(f"the reader gets a CancelledError, at {now:.0f} s")


if __name__ == "__main__":
    logging.disable()  # what asyncio says of the generator when it shuts down
    run_asyncio(main)
