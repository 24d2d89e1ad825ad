"""The chapter's crawler with its slips as switches: with all off it is cured."""

from __future__ import annotations

import asyncio
import types
from collections.abc import Generator, Iterable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urljoin

import httpx
from web import links

ENOUGH = 1_000_000  # bytes of a page


@dataclass(frozen=True)
class Printed:
    """Say which lines are as the chapter prints them, by the erratum's number."""

    unawaited_put: bool = False  # 1
    root_unseen: bool = False  # 2
    raw_location: bool = False  # 3
    uncounted_failure: bool = False  # 9
    spent_in_silence: bool = False  # 10
    yield_from_release: bool = False  # 12
    unchecked_pages: bool = False  # 18
    unwatched_workers: bool = False  # 19


class Crawler:
    def __init__(
        self,
        client: httpx.AsyncClient,
        root: str,
        max_redirect: int = 10,
        printed: Printed = Printed(),
    ) -> None:
        self.client = client
        self.max_tasks = 4
        self.max_redirect = max_redirect
        self.printed = printed
        self.q: asyncio.Queue[tuple[str, int]] = asyncio.Queue()
        self.seen_urls: dict[str, int] = {}  # and how many redirects may follow
        self.targets: dict[str, str] = {}  # of the redirects that were met
        self.refused: set[str] = set()  # redirects that lead nowhere
        self.pages: set[str] = set()
        self.read = 0  # bytes
        if printed.unawaited_put:
            self.q.put((root, max_redirect))
        elif printed.root_unseen:
            self.q.put_nowait((root, max_redirect))
        else:
            self.add({root}, max_redirect)

    async def crawl(self) -> None:
        if self.printed.unwatched_workers:
            workers = [
                asyncio.create_task(self.work()) for _ in range(self.max_tasks)
            ]
            await self.finish(workers)
            return
        async with asyncio.TaskGroup() as group:
            await self.finish(
                [group.create_task(self.work()) for _ in range(self.max_tasks)]
            )

    async def finish(self, workers: list[asyncio.Task[None]]) -> None:
        await self.q.join()
        for w in workers:
            w.cancel()

    async def work(self) -> None:
        while True:
            url, max_redirect = await self.q.get()
            if self.printed.uncounted_failure:
                await self.fetch(url, max_redirect)
                self.q.task_done()
                continue
            try:
                await self.fetch(url, max_redirect)
            finally:
                self.q.task_done()

    async def fetch(self, url: str, max_redirect: int) -> None:
        request = self.client.build_request("GET", url)
        response = await self.client.send(request, stream=True)
        released = Released(response)
        try:
            if response.is_redirect:
                self.follow(url, response, max_redirect)
            else:
                await self.parse(url, response)
        finally:
            if self.printed.yield_from_release:
                await delegated(released)
            else:
                await released

    def follow(self, url: str, response: httpx.Response, max_redirect: int) -> None:
        location = response.headers.get("location")
        if self.printed.raw_location:
            target = response.headers["location"]
        elif location is None:
            return self.refused.add(url)
        else:
            target = urljoin(url, location)
        if not self.printed.spent_in_silence:
            self.targets[url] = target
            max_redirect = self.seen_urls.get(url, max_redirect)
        if max_redirect > 0:
            self.add({target}, max_redirect - 1)

    async def parse(self, url: str, response: httpx.Response) -> None:
        self.pages.add(url)
        kind = response.headers.get("content-type", "")
        if not self.printed.unchecked_pages and not kind.startswith("text/html"):
            return
        body = b""
        async for chunk in response.aiter_bytes(65_536):
            self.read += len(chunk)
            body += chunk
            if len(body) > ENOUGH and not self.printed.unchecked_pages:
                break
        if not self.printed.unchecked_pages:
            body = body.decode(errors="replace").encode()
        self.add(links(url, body), self.max_redirect)

    def add(self, urls: Iterable[str], max_redirect: int) -> None:
        for url in sorted(urls):
            before = self.seen_urls.get(url)
            if before is None:
                self.seen_urls[url] = max_redirect
                self.q.put_nowait((url, max_redirect))
            elif max_redirect > before and not self.printed.spent_in_silence:
                self.seen_urls[url] = max_redirect
                targets = {self.targets[url]} if url in self.targets else set()
                self.add(targets, max_redirect - 1)

    def left(self) -> set[str]:
        """Return the URLs that were one redirect too far away."""
        return set(self.targets.values()) - self.seen_urls.keys()


class Released:
    """Give a connection back: can be awaited, and is no iterator."""

    def __init__(self, response: httpx.Response) -> None:
        self.response = response

    def __await__(self) -> Generator[Any, None, None]:
        return self.response.aclose().__await__()


@types.coroutine
def delegated(thing: Any) -> Generator[Any, None, Any]:
    return (yield from thing)
