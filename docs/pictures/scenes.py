"""The runs that the pictures are drawn from, each in virtual time."""

from __future__ import annotations

import asyncio
import io
import math
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import chapter
import edge_modern
import edge_trio
import httpx
import modern
import nursery
import politeness_chapter
import politeness_trio
import streaming_modern
import streaming_trio
import trio
import workers
from trio_crawler import Crawler
from trio_crawler.testing import Web, html

import drawing
from lanes import Log, Record
from sites import hosts, uneven
from sites.serving import Answer, Answerer
from virtual import Stuck, run_asyncio, run_trio, visitor

ROOT = "http://site/"
Main = Callable[[httpx.AsyncClient], Awaitable[object]]
Run = Callable[..., object]


def recorded(
    run: Run, main: Main, answer: Answerer = uneven.answer, name: str = "main"
) -> list[Record]:
    """Run a program against a site, and return its records, however it ends."""
    log = Log()
    client, _ = visitor(answer)

    async def call() -> object:
        async with client:
            return await main(client)

    call.__name__ = name
    with (
        suppress(Stuck, UnicodeDecodeError, ExceptionGroup),
        redirect_stdout(io.StringIO()),
    ):
        run(call, log=log)
    return log.records


@dataclass
class Scene:
    """Say how a picture is made: of which runs, and until when (seconds)."""

    title: str
    panels: list[tuple[str, Callable[[], list[Record]]]]
    until: float = 6.0
    draw: Callable[..., str] = drawing.timeline
    words: dict[str, str] = field(default_factory=dict)

    def drawn(self, name: str) -> str:
        panels = [(heading, records()) for heading, records in self.panels]
        return self.draw(name, self.title, panels, self.until, self.words)


# The ladder: the same site, each with four workers.


def crawls(program: Any, run: Run) -> list[Record]:
    async def crawl(client: httpx.AsyncClient) -> object:
        return await program.crawl(client, ROOT)

    return recorded(run, crawl, name="crawl")


@contextmanager
def without_shutdown() -> Iterator[None]:
    """Take `Queue.shutdown` away where it is: Python 3.11 and 3.12 do not have it."""
    kept = asyncio.Queue.__dict__.get("shutdown")
    if kept:
        del asyncio.Queue.shutdown
    try:
        yield
    finally:
        if kept:
            asyncio.Queue.shutdown = kept


def own_crawler() -> list[Record]:
    pages = {
        path: html("/", *(f"/{name}" for name in uneven.LINKS.get(path, "")))
        for path in uneven.WAITS
    }
    web = Web(
        pages,
        delay=lambda job: uneven.WAITS[job.url.removeprefix("http://site.test")],
    )

    async def crawl(_: httpx.AsyncClient) -> None:
        async with Crawler([web.url], fetch=web, workers=4).outcomes() as outcomes:
            async for _outcome in outcomes:
                pass

    return recorded(run_trio, crawl, name="reader")


# One worker raises: the page /a is not the UTF-8 it says it is.


def spoilt(path: str) -> Answer:
    answer = uneven.answer(path)
    return replace(answer, body=b"caf\xe9") if path == "/a" else answer


def raises(program: Any, run: Run) -> list[Record]:
    async def crawl(client: httpx.AsyncClient) -> object:
        return await program.crawl(client, ROOT)

    return recorded(run, crawl, spoilt, "crawl")


def modern_raises() -> list[Record]:
    with without_shutdown():
        return raises(modern, run_asyncio)


# The crawl is cancelled from outside, three seconds after its start.


async def cancelled_asyncio(client: httpx.AsyncClient) -> None:
    async def crawl() -> None:
        await chapter.crawl(client, ROOT)

    task = asyncio.create_task(crawl())
    await asyncio.sleep(3)
    task.cancel()
    await asyncio.sleep(5)


async def cancelled_trio(client: httpx.AsyncClient) -> None:
    async def crawl() -> None:
        await workers.crawl(client, ROOT)

    async with trio.open_nursery() as outer:
        outer.start_soon(crawl)
        await trio.sleep(3)
        outer.cancel_scope.cancel()
    await trio.sleep(5)


# A deadline of half a second, and a goodbye that takes three, or is held to one.


def visit(
    program: Any, run: Run, end: Callable[[], Awaitable[None]]
) -> list[Record]:
    async def main(_: httpx.AsyncClient) -> None:
        await program.main("", end)

    return recorded(run, main, name="visit")


# Pages as they come, and a reader who leaves after the second one.


async def read_asyncio(client: httpx.AsyncClient) -> None:
    pages = streaming_modern.pages(client, ROOT)
    await anext(pages)
    await anext(pages)
    await asyncio.sleep(6)


def streamed_asyncio() -> list[Record]:
    with without_shutdown():
        return recorded(run_asyncio, read_asyncio, name="reader")


async def read_trio(client: httpx.AsyncClient) -> None:
    async with streaming_trio.pages(client, ROOT) as pages:
        await anext(pages)
        await anext(pages)
    await trio.sleep(6)


# Four workers; `slow` is to be asked only every ten seconds, `fast` at any time.


def mixed() -> Iterator[str]:
    for n, name in enumerate("abcdef"):
        yield f"http://slow/{name}"
        yield from (f"http://fast/{m}" for m in (20 + 2 * n, 21 + 2 * n))


def quick(path: str) -> Answer:
    return Answer(wait=1.0 + int(path[1:], 16) / 50)


async def politeness_in_worker(client: httpx.AsyncClient) -> None:
    await through(politeness_chapter.Polite(client, "http://slow/a"))


async def politeness_pacer(client: httpx.AsyncClient) -> None:
    lines = {host: trio.open_memory_channel[Any](math.inf) for host in hosts.REST}
    politeness_trio.Paced.lines = lines
    await through(politeness_trio.Paced(client, "http://slow/a"))


async def through(crawler: Any) -> None:
    crawler.free, crawler.ended = Counter(), {}
    for url in mixed():
        crawler.add({url}, 0)
    await crawler.crawl()


def plain(run: Run, main: Main, name: str = "main") -> Callable[[], list[Record]]:
    return partial(recorded, run, main, name=name)


def ladder(title: str, program: Any, run: Run) -> Scene:
    return Scene(title, [("", partial(crawls, program, run))])


SLOW = {"sleeping": "waiting until slow may be asked"}
STREAM = {
    "receiving": "waiting for a job or a page",
    "sleeping": "doing other things",
}
SCENES = {
    "chapter": ladder("The chapter's workers, on asyncio", chapter, run_asyncio),
    "nursery": ladder("A task for each page, in one nursery", nursery, run_trio),
    "workers": ladder("Workers, a channel and a count, on Trio", workers, run_trio),
    "trio-crawler": Scene(
        "trio_crawler with four workers",
        [("", own_crawler)],
        words={"receiving": "waiting for a job or an outcome"},
    ),
    "worker-raises-asyncio": Scene(
        "A worker raises: the chapter's crawler",
        [("", partial(raises, chapter, run_asyncio))],
        8,
    ),
    "worker-raises-trio": Scene(
        "A worker raises: the Trio crawler",
        [("", partial(raises, workers, run_trio))],
        8,
    ),
    "three-lanes": Scene(
        "A worker raises: the chapter's crawler waits for ever, the others raise",
        [
            ("asyncio, as in the chapter", partial(raises, chapter, run_asyncio)),
            ("asyncio, with a task group", modern_raises),
            ("Trio, with a nursery", partial(raises, workers, run_trio)),
        ],
        8,
    ),
    "cancelled-asyncio": Scene(
        "crawl() is cancelled: the chapter's crawler",
        [("", plain(run_asyncio, cancelled_asyncio))],
    ),
    "cancelled-trio": Scene(
        "crawl() is cancelled: the Trio crawler",
        [("", plain(run_trio, cancelled_trio))],
    ),
    "edge-and-level": Scene(
        "A deadline of 0.5 s, and a goodbye that takes 3 s",
        [
            (
                "asyncio",
                partial(visit, edge_modern, run_asyncio, edge_modern.goodbye),
            ),
            ("Trio", partial(visit, edge_trio, run_trio, edge_trio.goodbye)),
            (
                "asyncio, held to one second",
                partial(visit, edge_modern, run_asyncio, edge_modern.limited),
            ),
            (
                "Trio, held to one second, shielded",
                partial(visit, edge_trio, run_trio, edge_trio.limited),
            ),
        ],
        4,
        words={"goodbye": "goodbye"},
    ),
    "streaming-asyncio": Scene(
        "The reader of an async generator leaves after the second page",
        [("", streamed_asyncio)],
        words=STREAM,
    ),
    "streaming-trio": Scene(
        "The reader of a safe channel leaves after the second page",
        [("", plain(run_trio, read_trio, "reader"))],
        words=STREAM,
    ),
    "politeness-in-worker": Scene(
        "Who waits for the slow host is a worker",
        [("", partial(recorded, run_asyncio, politeness_in_worker, quick))],
        55,
        words=SLOW,
    ),
    "politeness-pacer": Scene(
        "Who waits for the slow host is the pacer",
        [("", partial(recorded, run_trio, politeness_pacer, quick))],
        55,
        words=SLOW,
    ),
    "tree-chapter": Scene(
        "Tasks of the chapter's crawler, cancelled after 3 s",
        [("", plain(run_asyncio, cancelled_asyncio))],
        5,
        drawing.tree,
    ),
    "tree-trio": Scene(
        "Tasks of the Trio crawler, cancelled after 3 s",
        [("", plain(run_trio, cancelled_trio))],
        5,
        drawing.tree,
    ),
}
