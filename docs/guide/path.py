"""Follow one URL through a crawl: a page with one link, served on loopback."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import NamedTuple

import trio
import trio_crawler

from sites.serving import Answer, page, serving

PACKAGE = Path(trio_crawler.__file__).parent
WAITS = inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR

STATIONS = {
    "frontier/memory.py MemoryFrontier.open": "The frontier is given the plan.",
    "policy/plan.py Plan.first_jobs": "The seed, normalised, becomes a Job.",
    "frontier/memory.py Seen.admit": "Is it new? One key a URL decides, once and for all.",
    "frontier/memory.py Join.add": "It is counted in, before it can be counted out.",
    "schedule/host_scheduler.py HostScheduler.put": "It waits in the queue of its host.",
    "schedule/origin.py Origin.prerequisite": "Its host has its turn: robots.txt comes first.",
    "crawler.py Crawler.fetch": "A worker fetches one URL, once.",
    "net/fetcher.py Fetcher.__call__": "One deadline covers everything from here to the end.",
    "net/http1/wire.py Wire.ask": "A kept connection of this origin is taken, or a new one made.",
    "net/dial/connector.py Resolver.__call__": "The name is looked up, once for all that ask.",
    "net/dial/addresses.py AddressPolicy.block_reason": "May this address be connected to?",
    "net/dial/connector.py connect": "The address that was judged is the one connected to.",
    "net/http1/connection.py Connection.ask": "The request is sent, the answer awaited.",
    "net/http1/message.py parse": "The head is read: where does the body end?",
    "schedule/hosts.py Hosts.answered": "The host has answered: its next URL may start.",
    "engine/sitemaps.py RobotsHandler.settled": "It was robots.txt, and has no outcome.",
    "schedule/origins.py Origins.store_rules": "Its rules are stored for a day.",
    "policy/robots.py Rules.allows": "Now the page itself: do the rules allow it?",
    "net/http1/connection.py Connection.take_whole": "The body is read, within bounds.",
    "engine/pages.py PageHandler.settled": "A page, a redirect or a failure?",
    "page/read.py read": "Its encoding is decided as browsers do it.",
    "page/read.py title_of": "Its title and its links are read.",
    "engine/links.py Links.judge": "Each new link is judged, once for each page.",
    "frontier/memory.py MemoryFrontier.known": "A link that was admitted before needs no judging.",
    "engine/links.py Rules.outside": "Do depth, scope and robots.txt let it in?",
    "policy/traps.py HostTraps.rejection": "Does it look as if there were no end to such URLs?",
    "engine/outbox.py Outbox.put": "The outcome goes to the caller, if it has room.",
    "engine/outbox.py Counters.count": "The outcome is counted and returned to the caller's loop.",
    "frontier/memory.py MemoryFrontier.settle": "Its links are counted in, then it is out.",
    "schedule/hosts.py JobChannel.end": "The count is zero: the workers end.",
    "net/http1/wire.py Wire.aclose": "The connections are closed, and the block is left.",
}


class Call(NamedTuple):
    """One function, `place` is its file and name, and whether it may wait."""

    place: str
    waits: bool


@contextmanager
def following(calls: list[Call]) -> Iterator[None]:
    """Note the first call of each function of the package, in this thread."""
    known: set[str] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        path = Path(code.co_filename)
        unnamed = code.co_name.startswith("<")
        if event != "call" or unnamed or PACKAGE not in path.parents:
            return
        place = f"{path.relative_to(PACKAGE)} {code.co_qualname}"
        if place not in known:
            known.add(place)
            calls.append(Call(place, bool(code.co_flags & WAITS)))

    sys.setprofile(note)
    try:
        yield
    finally:
        sys.setprofile(None)


def followed() -> list[Call]:
    """Crawl two pages, and return the first call of each function."""
    calls: list[Call] = []

    def answer(path: str) -> Answer:
        return page("/second") if path == "/" else Answer(status=404)

    async def crawl(url: str) -> None:
        crawler = trio_crawler.Crawler([url], workers=1)
        with following(calls):
            await crawler.crawl()

    with serving(answer) as site:
        trio.run(crawl, site.url)
    return calls
