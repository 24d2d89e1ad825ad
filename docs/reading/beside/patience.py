"""Crawl a site with a page of an hour, in virtual time: when is the end?"""

from __future__ import annotations

import asyncio
from typing import Any

import modern
import trio
import workers

from sites.hour import answer
from virtual import run_asyncio, run_trio, visitor


class Patient(workers.Crawler):
    async def fetch(self, url: str, max_redirect: int) -> None:
        with trio.fail_after(30):
            await super().fetch(url, max_redirect)


async def ended(now: Any, crawler: Any) -> str:
    client, _ = visitor(answer)
    began = now()
    try:
        made = crawler(client, "http://site/")
        await made.crawl()
        end = f"{len(made.pages)} pages"
    except ExceptionGroup as group:
        end = type(group.exceptions[0]).__name__
    return f"{end} after {now() - began:,.0f} s"


async def on_asyncio() -> str:
    return await ended(asyncio.get_running_loop().time, modern.Crawler)


if __name__ == "__main__":
    print("modern.py:", run_asyncio(on_asyncio))
    print("workers.py:", run_trio(ended, trio.current_time, workers.Crawler))
    print("workers.py, patient:", run_trio(ended, trio.current_time, Patient))
