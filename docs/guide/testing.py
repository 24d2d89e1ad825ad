"""Test in virtual time: a web in memory, whose server is busy for two minutes."""

from __future__ import annotations

import httpx
import trio
import trio.testing
from trio_crawler import Crawler, Job, Response
from trio_crawler.testing import Web, html, redirect


def busy(job: Job) -> Response:
    """Send everybody away for two minutes."""
    if trio.current_time() < 120:
        return Response(503, httpx.Headers({"Retry-After": "120"}))
    return html(title="Back again")


async def main() -> None:
    web = Web({"/": html("/a", "/b"), "/a": redirect("/b"), "/b": busy}, delay=1)
    started = trio.current_time()
    totals = await Crawler([web.url], fetch=web).crawl()
    print(
        f"{totals.pages} pages, {totals.redirects} redirect, {totals.retries} retry"
    )
    print(f"{trio.current_time() - started:.0f} seconds in virtual time")
    print(f"{web.hits.total()} requests, {web.peak} at the same time")


if __name__ == "__main__":
    clock = trio.testing.MockClock(autojump_threshold=0)
    trio.run(main, clock=clock)
