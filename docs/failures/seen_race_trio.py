"""Put each new link, then mark all as seen: three kinds of `add`."""

from __future__ import annotations

import workers
from web import links

from sites import shared
from virtual import run_trio, visitor


class Crawler(workers.Crawler):
    async def fetch(self, url: str, max_redirect: int) -> None:
        response = await self.client.get(url)
        await self.admit(links(url, response.content))


class Nowait(Crawler):
    async def admit(self, urls: set[str]) -> None:
        for url in sorted(urls - self.seen_urls):
            self.unfinished += 1
            self.send.send_nowait((url, 10))  # (1)
        self.seen_urls |= urls


class Awaited(Crawler):
    async def admit(self, urls: set[str]) -> None:
        for url in sorted(urls - self.seen_urls):
            self.unfinished += 1
            await self.send.send((url, 10))  # (2)
        self.seen_urls |= urls


class MarkedFirst(Crawler):
    async def admit(self, urls: set[str]) -> None:
        new = sorted(urls - self.seen_urls)
        self.seen_urls |= urls  # (3)
        for url in new:
            self.unfinished += 1
            await self.send.send((url, 10))


async def main(kind: type[Crawler]) -> None:
    client, site = visitor(shared.answer)
    await kind(client, site.url).crawl()
    twice = [f"{path} {n}x" for path, n in sorted(site.hits.items()) if n > 1]
    print(f"{kind.__name__}, room for all:", *twice or ["once each"])


if __name__ == "__main__":
    for kind in Nowait, Awaited, MarkedFirst:
        run_trio(main, kind)
