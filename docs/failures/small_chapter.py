"""The chapter's crawler on one small site after the other, in virtual time."""

from __future__ import annotations

import logging

import httpx
from chapter import Crawler
from small_witness import answer_in_memory, asked
from web import links

from sites.small import SITES
from virtual import Stuck, run_asyncio, visitor


class Printed(Crawler):
    """As the chapter and its repository have it, where our port is more careful."""

    died = ""

    def __init__(self, client: httpx.AsyncClient, root: str) -> None:
        super().__init__(client, root, max_redirect=1)
        self.seen_urls = set()  # the root is not in it

    async def fetch(self, url: str, max_redirect: int) -> None:
        response = await self.client.get(url, follow_redirects=False)
        if response.status_code in (300, 301, 302, 303, 307):
            if max_redirect > 0:
                self.add({response.headers["location"]}, max_redirect - 1)
        else:
            self.pages.add(url)
            self.add(links(url, response.content), self.max_redirect)

    async def work(self) -> None:
        try:
            await super().work()
        except Exception as error:  # only to tell of it here
            self.died = type(error).__name__
            raise


def ends(name: str) -> str:
    client, site = visitor(answer_in_memory)
    crawler = Printed(client, f"{site.url}{name}/")
    try:
        run_asyncio(crawler.crawl)
        ended = "ends"
    except Stuck:
        ended = f"HANGS: a worker died of {crawler.died}"
    return f"{name}\n    asked for {asked(site)}\n    {ended}"


if __name__ == "__main__":
    logging.disable()  # what asyncio says of dead workers when they are collected
    for name in SITES:
        print(ends(name))
