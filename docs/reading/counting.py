"""Crawl with a queue that counts, and is joined. See cancel.py."""

from __future__ import annotations

import sys
from typing import Any

import ground
from awaits import Future, fetch
from cancel import Task
from ground import turn
from web import links, show


class Event:
    def __init__(self) -> None:
        self._future = Future()

    def set(self) -> None:
        if not self._future.done:
            self._future.set_result(None)

    def clear(self) -> None:
        if self._future.done:  # it cannot go back: a new one
            self._future = Future()

    async def wait(self) -> None:
        await self._future


class Queue(ground.Queue):
    def __init__(self) -> None:
        super().__init__()
        self._unfinished_tasks = 0
        self._finished = Event()
        self._finished.set()

    def put_nowait(self, item: Any) -> None:
        self._unfinished_tasks += 1  # (1)
        self._finished.clear()
        super().put_nowait(item)

    def task_done(self) -> None:
        self._unfinished_tasks -= 1  # (2)
        if self._unfinished_tasks == 0:
            self._finished.set()  # (3)

    async def join(self) -> None:
        await self._finished.wait()


class Crawler:
    def __init__(self, root: str) -> None:
        self.max_tasks = 4
        self.seen_urls = {root}
        self.q = Queue()
        self.q.put_nowait(root)  # (4)

    async def crawl(self) -> None:
        workers = [Task(self.work()) for _ in range(self.max_tasks)]  # (5)
        await self.q.join()  # (6)
        for w in workers:
            w.cancel()  # (7)

    async def work(self) -> None:
        while True:  # (8)
            url = await self.q.get()
            await self.fetch(url)
            self.q.task_done()

    async def fetch(self, url: str) -> None:
        new = links(url, await fetch(url)) - self.seen_urls
        self.seen_urls.update(new)
        for link in sorted(new):
            self.q.put_nowait(link)


if __name__ == "__main__":
    crawler = Crawler(sys.argv[1])
    Task(crawler.crawl())
    while Task.alive:
        turn()
    show(crawler.seen_urls)
