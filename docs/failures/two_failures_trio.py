"""The same in a nursery: the rest is cancelled, and both errors are told."""

from __future__ import annotations

import trio
from web import links

from sites.hurry import answer
from virtual import run_trio, visitor


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
        async with trio.open_nursery() as nursery:  # (1)
            for path in ("liar", "slow", "late"):
                nursery.start_soon(fetch, path)
    except* (UnicodeDecodeError, OSError) as errors:  # (2)
        print(*sorted(type(error).__name__ for error in errors.exceptions))
    print("ended:", ", ".join(sorted(ended)))  # (3)
    await trio.sleep(60)
    print("a minute later:", ", ".join(sorted(ended)))


if __name__ == "__main__":
    run_trio(main)
