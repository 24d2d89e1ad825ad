"""Crawl until it is enough, then cancel. See awaits.py, ground.py."""

from __future__ import annotations

import sys
from collections.abc import Coroutine

from awaits import Future, connect, read_all
from ground import Queue, soon, turn
from web import body, links, request, show


class CancelledError(BaseException):
    pass


class Task:
    alive = 0

    def __init__(self, coro: Coroutine[Future, None, None]) -> None:
        self.coro, self.cancelled = coro, False
        self.error: Exception | None = None
        self.future: Future | None = None  # what it waits for
        self.thrown: CancelledError | None = None
        Task.alive += 1
        soon.append(self.step)

    def cancel(self) -> None:
        self.thrown = CancelledError()
        self.wake(self.future)

    def wake(self, future: Future | None) -> None:
        if future and future is self.future:  # not one given up
            self.future = None
            soon.append(self.step)

    def step(self) -> None:
        coro, thrown, self.thrown = self.coro, self.thrown, None  # thrown once
        try:
            self.future = coro.throw(thrown) if thrown else coro.send(None)
            self.future.add_done_callback(self.wake)
            return
        except (StopIteration, CancelledError) as end:
            self.cancelled = isinstance(end, CancelledError)
        except Exception as error:  # kept, so that the others can go on
            self.error = error
        Task.alive -= 1


class Crawler:
    def __init__(self, root: str, max_pages: int) -> None:
        self.max_tasks, self.max_pages = 4, max_pages
        self.seen_urls, self.pages = {root}, set()
        self.enough = Future()
        self.q = Queue()
        self.q.put_nowait(root)

    async def crawl(self) -> None:
        workers = [Task(self.work()) for _ in range(self.max_tasks)]  # (1)
        await self.enough  # (2)
        for w in workers:
            w.cancel()  # (3)

    async def work(self) -> None:
        while True:
            url = await self.q.get()
            page = await self.fetch(url)
            for link in sorted(links(url, page) - self.seen_urls):
                self.seen_urls.add(link)
                self.q.put_nowait(link)
            self.pages.add(url)
            if len(self.pages) in (self.max_pages, len(self.seen_urls)):
                self.enough.set_result(None)

    async def fetch(self, url: str) -> bytes:
        with await connect(url) as sock:
            try:
                sock.sendall(request(url))
                return body(await read_all(sock))
            finally:
                await read_all(sock)  # (4)


if __name__ == "__main__":
    crawler = Crawler(sys.argv[1], int(sys.argv[2]) if sys.argv[2:] else 1000)
    Task(crawler.crawl())
    while Task.alive:
        turn()
    show(crawler.pages)
