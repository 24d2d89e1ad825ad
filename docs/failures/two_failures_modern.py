"""The same in a task group: the rest is cancelled, and both errors are told."""

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
        async with asyncio.TaskGroup() as group:  # (1)
            for path in ("liar", "slow", "late"):
                group.create_task(fetch(path))
    except* (UnicodeDecodeError, OSError) as errors:  # (2)
        print(*sorted(type(error).__name__ for error in errors.exceptions))
    print("ended:", ", ".join(sorted(ended)))  # (3)
    await asyncio.sleep(60)
    print("a minute later:", ", ".join(sorted(ended)))


if __name__ == "__main__":
    run_asyncio(main)
