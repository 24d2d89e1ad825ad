"""A site of nine pages in memory, and what the programs of this page share."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import trio

LINKS = {
    "/": ["/a", "/b", "/c", "/d", "/e"],
    "/a": ["/f", "/b"],
    "/f": ["/g"],
    "/g": ["/h", "/"],
}
PAGES = {"/", *(link for links in LINKS.values() for link in links)}
MOMENT, LIMIT = 0.02, 1.0  # seconds: of a page, and after which a crawl hangs


class Site:
    """The pages that were fetched, and the links that were not seen before."""

    def __init__(self, sleep: Callable[[float], Awaitable[None]]) -> None:
        self.sleep, self.pages, self.seen = sleep, set[str](), {"/"}

    async def fetch(self, url: str) -> list[str]:
        """Return the links of a page that were not seen before."""
        await self.sleep(MOMENT)
        self.pages.add(url)
        new = [link for link in LINKS.get(url, []) if link not in self.seen]
        self.seen.update(new)
        return new

    def tell(self, end: str) -> None:
        print(f"{len(self.pages)} of {len(PAGES)} pages; the crawl {end}")


def asyncio_run(crawl: Callable[[Site], Awaitable[object]]) -> None:
    async def main() -> str:
        try:
            async with asyncio.timeout(LIMIT):
                await crawl(site)
        except TimeoutError:
            return "still waits after a second"
        return "has ended"

    site = Site(asyncio.sleep)
    site.tell(asyncio.run(main()))


def trio_run(crawl: Callable[[Site], Awaitable[object]]) -> None:
    async def main() -> str:
        with trio.move_on_after(LIMIT) as scope:
            await crawl(site)
        hangs = scope.cancelled_caught
        return "still waits after a second" if hangs else "has ended"

    site = Site(trio.sleep)
    site.tell(trio.run(main))
