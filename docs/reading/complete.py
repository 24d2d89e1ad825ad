"""Run a coroutine until it is done; return its value. See counting.py."""

from __future__ import annotations

import sys
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

import counting
from awaits import Future
from cancel import Task
from ground import soon, turn
from web import show


class StopError(BaseException):
    pass


def stop_callback() -> None:
    raise StopError


class EventLoop:
    def run_forever(self) -> None:
        while True:
            turn()

    def run_until_complete(self, coro: Coroutine[Future, None, Any]) -> Any:
        result: Any = None

        async def main() -> None:
            nonlocal result
            try:
                result = await coro
            finally:
                soon.append(stop_callback)

        task = Task(main())
        with suppress(StopError):
            self.run_forever()
        if task.error:
            raise task.error
        return result


class Crawler(counting.Crawler):
    def __init__(self, root: str) -> None:
        super().__init__(root)
        self.begun: set[str] = set()  # pages that are being fetched

    async def crawl(self) -> set[str]:
        await super().crawl()
        return self.seen_urls  # (1)

    async def fetch(self, url: str) -> None:
        self.begun.add(url)
        try:
            await super().fetch(url)
        finally:
            self.begun.remove(url)  # (3)


if __name__ == "__main__":
    crawler = Crawler(sys.argv[1])
    try:
        show(EventLoop().run_until_complete(crawler.crawl()))  # (2)
    except BaseException:
        print("fetches never left:", len(crawler.begun))
        raise
