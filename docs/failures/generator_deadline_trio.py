"""The same behind the decorator: the reader's block ends, and nothing is raised."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import trio

from sites.plain import answer
from virtual import run_trio, visitor


@trio.as_safe_channel
async def pages() -> AsyncGenerator[str, None]:
    client, site = visitor(answer)
    with trio.fail_after(1):  # (1)
        for number in range(3):
            await client.get(f"{site.url}{number or ''}")
            yield f"page {number}"  # (2)


async def main() -> None:
    began = trio.current_time()
    async with pages() as stream:
        async for page in stream:
            print("has", page)
            await trio.sleep(5)  # (3)
            print("has read it")
    now = trio.current_time() - began
    print(f"the block is over, at {now:.0f} s")


if __name__ == "__main__":
    run_trio(main)
