"""Wait for the chapter's crawl until it should be over, then look at its tasks."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import httpx
from chapter import Crawler


def heard(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    print(f"heard now: {context['message']}:", type(context["exception"]).__name__)


async def main(root: str) -> None:
    asyncio.get_running_loop().set_exception_handler(heard)
    async with httpx.AsyncClient() as client:
        crawl = asyncio.create_task(Crawler(client, root).crawl())
        await asyncio.wait([crawl], timeout=2)
        print("crawl() is", "over" if crawl.done() else "still in q.join()")
        workers = asyncio.all_tasks() - {crawl, asyncio.current_task()}
        print(len(workers), "of 4 workers are alive, and wait for links")
        crawl.cancel()  # now nothing holds the fourth
        await asyncio.wait([crawl])


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
