"""The same generator on asyncio, kept by no variable: leaving the loop drops it."""

from __future__ import annotations

import asyncio
from typing import Any

from streaming_modern import pages

from sites.endless import answer
from virtual import run_asyncio, visitor


def tell(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    print("asyncio:", context["message"])


async def main() -> None:
    asyncio.get_running_loop().set_exception_handler(tell)
    client, site = visitor(answer)
    async for url in pages(client, site.url):  # (3)
        print("has", url, "and leaves")
        break
    await asyncio.sleep(0.05)
    before = site.hits.total()
    await asyncio.sleep(10)
    print("requests in the next 10 s:", site.hits.total() - before)


if __name__ == "__main__":
    run_asyncio(main)
