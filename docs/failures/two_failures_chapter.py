"""One fetch fails, then another: `gather` tells of one, and cancels no task."""

from __future__ import annotations

import asyncio

from web import links

from sites.hurry import answer
from virtual import run_asyncio, visitor


async def main() -> None:
    client, site = visitor(answer)
    ended = []

    async def fetch(path: str) -> None:
        try:
            response = await client.get(site.url + path)
            links(str(response.url), response.content)
        finally:
            ended.append(path)
            if path == "slow":
                raise OSError("no room to note what has come")

    try:
        await asyncio.gather(fetch("liar"), fetch("slow"), fetch("late"))  # (1)
    except (UnicodeDecodeError, OSError) as error:  # (2)
        print(type(error).__name__)
    print("ended:", ", ".join(sorted(ended)))  # (3)
    await asyncio.sleep(60)
    print("a minute later:", ", ".join(sorted(ended)))


if __name__ == "__main__":
    run_asyncio(main)
