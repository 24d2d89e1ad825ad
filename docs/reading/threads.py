"""Crawl with threads and a queue that is joined, as asyncio will."""

from __future__ import annotations

import sys
from queue import Queue
from threading import Lock, Thread

from blocking import fetch
from web import links, show


class Crawler:
    def __init__(self, root: str) -> None:
        self.max_tasks = 4
        self.q: Queue[str] = Queue()
        self.seen_urls = {root}
        self.lock = Lock()
        self.q.put(root)

    def crawl(self) -> None:
        for _ in range(self.max_tasks):
            worker = Thread(target=self.work, name="worker", daemon=True)
            worker.start()  # (1)
        self.q.join()  # (2)

    def work(self) -> None:
        while True:
            url = self.q.get()
            self.visit(url)
            self.q.task_done()  # (2)

    def visit(self, url: str) -> None:
        found = links(url, fetch(url))  # (3)
        with self.lock:  # (4)
            new = sorted(found - self.seen_urls)
            self.seen_urls.update(new)
        for link in new:
            self.q.put(link)  # (5)


if __name__ == "__main__":
    crawler = Crawler(sys.argv[1])
    crawler.crawl()
    show(crawler.seen_urls)
