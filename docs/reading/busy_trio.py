"""Several pages at once; a refusal is raised where one connects."""

from __future__ import annotations

import sys
from collections import Counter

import trio
from busy import closed
from web import address, body, links, request, show


async def fetch(url: str, pages: dict[str, bytes]) -> None:
    stream = await trio.open_tcp_stream(*address(url))  # (1)
    async with stream:
        await stream.send_all(request(url))  # (2)
        chunks = [chunk async for chunk in stream]  # (3)
    pages[url] = body(b"".join(chunks))


async def fetch_all(urls: set[str]) -> dict[str, bytes]:
    pages: dict[str, bytes] = {}
    async with trio.open_nursery() as nursery:
        for url in sorted(urls):
            nursery.start_soon(fetch, url, pages)
    return pages


async def crawl(root: str) -> set[str]:
    seen, todo = set[str](), {root}
    while todo:
        seen |= todo
        pages = await fetch_all(todo)  # (4)
        found = [links(url, pages[url]) for url in pages]
        todo = set().union(*found) - seen
    return seen


async def main(root: str) -> None:
    tried: Counter[str] = Counter()
    try:
        show(await crawl(root))
    except* OSError as refused:
        for error in refused.exceptions:  # the cause: all it tried
            causes = error.__cause__.exceptions
            tried.update(type(each).__name__ for each in causes)
    if tried:
        raise SystemExit(f"gave up: {dict(tried)}")


if __name__ == "__main__":
    refused = sys.argv[2:] == ["refused"]
    trio.run(main, closed() if refused else sys.argv[1])
