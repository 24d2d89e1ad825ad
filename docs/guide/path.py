"""Follow one URL through a crawl: a page with one link, served on loopback.

Printed are the stations named here, in the order in which each was first reached;
functions that may wait are marked. Some 300 others are called on the way.
"""

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
    "crawler.py Crawler._seed_jobs": "The seed, normalised, becomes a `Job`.",
    "frontier/memory.py MemoryFrontier.run": "The frontier begins with the seeds.",
    "frontier/seen.py Seen.admit": (
        "Is it new? One key a URL decides, once and for all."
    ),
    "frontier/join.py Join.add": (
        "It is counted in, before anybody can count it out."
    ),
    "frontier/host_scheduler.py Turns.put": "It waits in the line of its host.",
    "frontier/host_scheduler.py Turns._errand": (
        "Its host has its turn: first comes robots.txt."
    ),
    "crawler.py Crawler.fetch": "A worker asks for one URL, once.",
    "net/fetch.py HttpFetch.__call__": (
        "One deadline covers everything from here to the end."
    ),
    "net/wire.py Wire.ask": (
        "A kept connection of this origin is taken, or a new one made."
    ),
    "net/resolve.py Resolver.__call__": (
        "The name is looked up, by one for all who ask."
    ),
    "net/addresses.py AddressPolicy.refusal": "May this address be connected to?",
    "net/dial.py connect": "The address that was judged is the one connected to.",
    "net/connection.py Connection.ask": (
        "The request is sent and the head of the answer awaited."
    ),
    "net/head.py parse": (
        "The head is read: where does its body end, and can one be sure?"
    ),
    "frontier/scheduler.py Dispatch.answered": (
        "The host has answered: its next URL may start."
    ),
    "engine/handler.py Tries.delay": (
        "Is it to be tried again? Then it goes back, and no worker waits."
    ),
    "engine/robots.py Errands.done": (
        "It was robots.txt: that is no outcome, and no page."
    ),
    "policy/robots/store.py Robots.store": "Its rules are kept for a day.",
    "policy/robots/store.py Robots.refusal": (
        "Now the page itself: do the rules allow it?"
    ),
    "engine/counters.py Tally.take": "It does not wait any more, it is in flight.",
    "net/decode.py Body.feed": "The body comes, each piece within the bounds.",
    "net/decode.py Body.finish": "It is decoded, and whole, or it is a fault.",
    "engine/pages.py Judge.answer": (
        "What does the answer mean? A page, a redirect, a failure."
    ),
    "page/charset.py decide": "The encoding is decided as browsers do it.",
    "page/html/read.py read": "Title and links are read from the text.",
    "engine/links.py Outlinks.of": "Each link is judged, once for each page.",
    "frontier/memory.py MemoryFrontier.knows": (
        "What was admitted before needs no judging."
    ),
    "engine/rules.py Admission.outside": "Depth, scope and robots.txt have their say.",
    "policy/traps/watch.py Watch.refusal": (
        "Does it look as if there were no end to such URLs?"
    ),
    "engine/outbox.py Outbox.put": (
        "The verdict goes to the caller, or waits until there is room."
    ),
    "engine/counters.py Tally.count": (
        "The outcome is counted and given to the caller's loop."
    ),
    "frontier/memory.py MemoryFrontier.settle": (
        "The caller asks for the next one: the new links are counted in, "
        "then this URL is counted out, in one step."
    ),
    "frontier/jobs.py Jobs.end": (
        "The count is zero: no more jobs come, and the workers end."
    ),
    "net/wire.py Wire.aclose": "The connections are closed, and the block is left.",
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


def table(calls: list[Call]) -> str:
    """Write the stations as a table, in the order in which they were reached."""
    rows = ["| | room | function | waits | |", "|---|---|---|---|---|"]
    stations = [call for call in calls if call.place in STATIONS]
    for number, (place, waits) in enumerate(stations, 1):
        path, name = place.split()
        mark = "await" if waits else ""
        rows.append(
            f"| {number} | `{path}` | `{name}` | {mark} | {STATIONS[place]} |"
        )
    return "\n".join(rows) + "\n"


if __name__ == "__main__":
    print(table(followed()), end="")
