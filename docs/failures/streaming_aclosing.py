"""The generator in `aclosing`, as today's asyncio advises."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

from streaming_modern import pages

from sites.endless import answer
from virtual import run_asyncio, visitor


async def main() -> None:
    client, site = visitor(answer)
    try:
        async with aclosing(pages(client, site.url)) as stream:
            async for url in stream:
                print("has", url, "and leaves")
                break
    except BaseException as error:
        print("the block raises a", type(error).__name__)
    before = site.hits.total()
    await asyncio.sleep(10)
    print("requests in the next 10 s:", site.hits.total() - before)


if __name__ == "__main__":
    run_asyncio(main)
