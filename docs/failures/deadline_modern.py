"""Limit the whole visit to 0.7 s, twice: by the client, and by asyncio."""

from __future__ import annotations

import asyncio
import sys

import aiohttp
import httpx

LIMIT = 0.7


async def by_aiohttp(root: str) -> None:
    limit = aiohttp.ClientTimeout(total=LIMIT)
    async with aiohttp.ClientSession(timeout=limit) as session:
        async with session.get(root) as response:
            await response.read()


async def by_block(root: str) -> None:
    async with httpx.AsyncClient() as client:
        async with asyncio.timeout(LIMIT):
            await client.get(root)


async def main(root: str) -> None:
    for name, visit in ("aiohttp", by_aiohttp), ("asyncio.timeout", by_block):
        try:
            await visit(root)
        except TimeoutError:
            print(f"{name}: TimeoutError, before the page was whole")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
