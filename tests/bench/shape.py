"""The least that a crawl on Trio consists of, for the yardsticks `raw` and `httpx`.

One host, a set of the URLs seen, an unbounded channel of those that wait and a count of those
that are not finished, which closes the channel. Nothing is limited, checked or recorded but
the status of each URL: what this costs, every crawler has to pay.
"""

from __future__ import annotations

import math
import time
from collections.abc import Awaitable, Callable

import trio
from outlinks import REDIRECTS, outlinks, resolved
from tell import tell


class Frontier:
    """Give every URL of one host once, in `jobs`, which ends when all are settled."""

    def __init__(self, root: str) -> None:
        self.host = root[: root.index("/", 8) + 1]
        self.seen = {root}
        self.statuses: dict[str, int] = {}
        self._waiting, self.jobs = trio.open_memory_channel[str](math.inf)
        self._unfinished = 1
        self._waiting.send_nowait(root)

    def settle(self, url: str, status: int, content_type: str, location: str, body: bytes) -> None:
        """Note a status, and admit where the response leads."""
        self.statuses[url] = status
        if status == 200 and content_type.startswith("text/html"):
            self._admit(outlinks(body, url, self.host))
        elif location and status in REDIRECTS:
            self._admit(resolved([location], url, self.host))
        self._unfinished -= 1
        if not self._unfinished:
            self._waiting.close()

    def _admit(self, urls: set[str]) -> None:
        fresh = urls - self.seen
        self.seen |= fresh
        self._unfinished += len(fresh)
        for url in fresh:
            self._waiting.send_nowait(url)


def run(crawl: Callable[[Frontier, int], Awaitable[None]], root: str, workers: str) -> None:
    """Crawl, and print what `peers.py` reads."""
    start_up, wall = time.process_time(), time.perf_counter()
    frontier = Frontier(root)
    trio.run(crawl, frontier, int(workers))
    wall = time.perf_counter() - wall
    failed = list(frontier.statuses.values()).count(0)
    tell(len(frontier.statuses), failed, start_up, wall, frontier.statuses)
