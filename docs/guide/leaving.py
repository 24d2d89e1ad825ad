"""Leave a crawl early, in three ways: nothing goes on, as the site can tell."""

from __future__ import annotations

import sys

import httpx
import trio
from trio_crawler import Crawler, Page


async def left_by_break(url: str) -> None:
    async with Crawler([url]).outcomes() as outcomes:
        async for outcome in outcomes:
            if isinstance(outcome, Page) and not outcome.ok:
                break


async def left_by_deadline(url: str) -> None:
    with trio.move_on_after(0.4):
        await Crawler([url]).crawl()


async def left_by_error(url: str) -> None:
    try:
        async with Crawler([url]).outcomes() as outcomes:
            async for _ in outcomes:
                raise LookupError("something of our own")
    except LookupError as error:
        print(f"caught as it was raised: {error}")


async def main(url: str) -> None:
    for leave in (left_by_break, left_by_deadline, left_by_error):
        await leave(url)
        async with httpx.AsyncClient(base_url=url) as witness:
            before = (await witness.get("/~hits")).text
            await trio.sleep(0.3)
            same = before == (await witness.get("/~hits")).text
        print(
            f"{leave.__name__}: {'no request' if same else 'requests'} came later"
        )


if __name__ == "__main__":
    trio.run(main, sys.argv[1])
