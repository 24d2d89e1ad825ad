"""Limit each read, and beside it a whole visit, to 0.7 s, with one client."""

from __future__ import annotations

import sys

import httpx
import trio

LIMIT = 0.7


async def by_read(client: httpx.AsyncClient, root: str) -> None:
    began = trio.current_time()
    size = len((await client.get(root)).content)
    late = "more" if trio.current_time() - began > 2 * LIMIT else "less"
    print(f"httpx: {size} bytes, after {late} than twice the limit")


async def by_block(client: httpx.AsyncClient, root: str) -> None:
    try:
        with trio.fail_after(LIMIT):
            await client.get(root)
    except trio.TooSlowError:
        print("trio.fail_after: TooSlowError, before the page was whole")


async def main(root: str) -> None:
    async with httpx.AsyncClient(timeout=LIMIT) as client:  # (1)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(by_read, client, root)
            nursery.start_soon(by_block, client, root)


if __name__ == "__main__":
    trio.run(main, sys.argv[1])
