"""`gather` that returns the errors: it tells all of them, and ends nothing."""

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

    fetches = map(fetch, ("liar", "slow", "late"))
    results = await asyncio.gather(*fetches, return_exceptions=True)  # (1)
    print(*sorted(type(error).__name__ for error in results if error))
    now = asyncio.get_running_loop().time()
    print(f"ended: {', '.join(sorted(ended))}, after {now:.0f} s")


if __name__ == "__main__":
    run_asyncio(main)
