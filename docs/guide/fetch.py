"""Write a fetch: a function that says what comes for a job. This one remembers."""

from __future__ import annotations

import sys

import trio
from trio_crawler import Crawler, Fault, HttpFetch, Job, Response


class Remembering:
    """Ask for each URL once, by another fetch, and know the answer from then on."""

    def __init__(self, fetch: HttpFetch) -> None:
        self.fetch = fetch
        self.user_agent = fetch.user_agent  # robots.txt has rules for this name
        self.known: dict[str, Response | Fault] = {}

    async def __call__(self, job: Job) -> Response | Fault:
        if job.url not in self.known:
            self.known[job.url] = await self.fetch(job)
        else:
            await trio.lowlevel.checkpoint()
        return self.known[job.url]


async def main(url: str) -> None:
    async with HttpFetch(seeds=[url]) as fetch:
        remembering = Remembering(fetch)
        for _ in range(2):
            totals = await Crawler([url], fetch=remembering).crawl()
            requests = fetch.statistics().requests
            print(f"{totals.pages} pages, {requests} requests so far")


if __name__ == "__main__":
    trio.run(main, sys.argv[1])
