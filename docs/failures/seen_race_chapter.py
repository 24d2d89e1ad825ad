"""Put each new link, then mark all as seen: four kinds of `add`."""

from __future__ import annotations

import asyncio

import chapter
import httpx
from web import links

from sites import shared
from virtual import run_asyncio, visitor


class Crawler(chapter.Crawler):
    def __init__(self, client: httpx.AsyncClient, root: str, room: int) -> None:
        super().__init__(client, root)
        self.q = asyncio.Queue(room)
        self.q.put_nowait((root, 10))

    async def fetch(self, url: str, max_redirect: int) -> None:
        response = await self.client.get(url)
        await self.admit(links(url, response.content))


class Nowait(Crawler):
    async def admit(self, urls: set[str]) -> None:
        for url in sorted(urls - self.seen_urls):
            self.q.put_nowait((url, 10))  # (1)
        self.seen_urls |= urls


class Awaited(Crawler):
    async def admit(self, urls: set[str]) -> None:
        for url in sorted(urls - self.seen_urls):
            await self.q.put((url, 10))  # (2)
        self.seen_urls |= urls


class MarkedFirst(Crawler):
    async def admit(self, urls: set[str]) -> None:
        new = sorted(urls - self.seen_urls)
        self.seen_urls |= urls  # (3)
        for url in new:
            await self.q.put((url, 10))


async def main(kind: type[Crawler], room: int) -> None:
    client, site = visitor(shared.answer)
    await kind(client, site.url, room).crawl()
    twice = [f"{path} {n}x" for path, n in sorted(site.hits.items()) if n > 1]
    print(f"{kind.__name__}, room for {room or 'all'}:", *twice or ["once each"])


if __name__ == "__main__":
    for kind, room in (Nowait, 0), (Awaited, 0), (Awaited, 2), (MarkedFirst, 2):
        run_asyncio(main, kind, room)
