"""The least that a crawl on Trio consists of, for the yardsticks `raw` and `httpx`.

One host, a set of the URLs seen, an unbounded channel of those that wait and a count of those
that are not finished, which closes the channel. Nothing is limited, checked or recorded but
the status of each URL: what this costs, every crawler has to pay.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Awaitable, Callable, Iterable

import ada_url
import trio
from selectolax.lexbor import LexborHTMLParser
from tell import tell

REDIRECTS = frozenset({300, 301, 302, 303, 307, 308})

# A path that is joined as it stands: no escape, no colon, no segment that begins with a dot.
_SEGMENT = r"[\w~!$&()*+,;=@-][\w~!$&()*+,;=@.-]*+"
_plain = re.compile(rf"(/|(?:\.\./)*+){_SEGMENT}(?:/{_SEGMENT})*+/?+", re.ASCII).fullmatch


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


def outlinks(body: bytes, url: str, host: str) -> set[str]:
    """Return the URLs below `host` that the `a` elements of a page lead to."""
    hrefs = [node.attributes.get("href") for node in LexborHTMLParser(body).tags("a")]
    distinct = {href.partition("#")[0] for href in hrefs if href}
    distinct.discard("")
    return resolved(distinct, url, host)


def resolved(hrefs: Iterable[str], url: str, host: str) -> set[str]:
    """Resolve hrefs against a page's URL, by hand where that is safe; keep those of the host."""
    directory = url[: url.partition("?")[0].rindex("/") + 1]
    bases = {"": directory, "/": host}
    found = set()
    for href in hrefs:
        if match := _plain(href):
            climb = match[1]
            if climb not in bases:
                bases[climb] = _ancestor(directory, len(climb) // 3, len(host))
            found.add(bases[climb] + href[len(climb) :])
        elif (other := _joined(href, url)).startswith(host):
            found.add(other)
    return found


def _ancestor(directory: str, levels: int, root: int) -> str:
    while levels and len(directory) > root:
        directory = directory[: directory.rindex("/", 0, -1) + 1]
        levels -= 1
    return directory


def _joined(href: str, url: str) -> str:
    try:
        return ada_url.join_url(url, href).partition("#")[0]
    except ValueError:
        return ""


def run(crawl: Callable[[Frontier, int], Awaitable[None]], root: str, workers: str) -> None:
    """Crawl, and print what `measure.py` reads."""
    start_up, wall = time.process_time(), time.perf_counter()
    frontier = Frontier(root)
    trio.run(crawl, frontier, int(workers))
    wall = time.perf_counter() - wall
    failed = list(frontier.statuses.values()).count(0)
    tell(len(frontier.statuses), failed, start_up, wall, frontier.statuses)
