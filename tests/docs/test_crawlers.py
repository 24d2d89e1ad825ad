"""The crawlers of docs/reading: the chapter's, its modern forms, and the loops of the answer."""

from __future__ import annotations

import asyncio
import gc
import re
import select
import socket
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Generator
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import coroutine
from typing import Any

import chapter
import either
import httpx
import modern
import nursery
import outcome
import pytest
import receiving
import selecting
import sleeping
import trio
import workers
from comparative import recording
from sites import liar, long_way, plain, redirects
from sites.serving import Answer, Answerer, page
from virtual import Stuck, run_asyncio, run_trio, visitor
from web import links

DOCS = Path(chapter.__file__).resolve().parents[1]
CRAWLERS = {
    "chapter": (run_asyncio, chapter.crawl),
    "modern": (run_asyncio, modern.crawl),
    "nursery": (run_trio, nursery.crawl),
    "workers": (run_trio, workers.crawl),
    "either on asyncio": (run_asyncio, either.crawl),
    "either on Trio": (run_trio, either.crawl),
}
OWN_LOOPS = [sleeping, selecting, receiving]
each_crawler = pytest.mark.parametrize("name", CRAWLERS)


def crawled(
    name: str, answer: Answerer, clock: Callable[[], float] | None = None
) -> tuple[set[str], Counter[str], float]:
    """Crawl a site in virtual time; return the paths of its pages, its hits, and the seconds."""
    run, crawl = CRAWLERS[name]
    client, site = visitor(answer)

    async def main() -> tuple[set[str], float]:
        now = trio.current_time if run is run_trio else asyncio.get_running_loop().time
        began = now()
        pages = await crawl(client, site.url)
        return pages, now() - began

    pages, seconds = run(main)
    return {url.removeprefix("http://site") for url in pages}, site.hits, seconds


@each_crawler
def test_redirects_that_lead_to_one_page_fetch_it_once_and_a_circle_ends(name: str):
    pages, hits, _ = crawled(name, redirects.answer)
    assert pages == set(redirects.PAGES)
    assert hits == Counter(dict.fromkeys({*redirects.PAGES, *redirects.MOVED}, 1))


@each_crawler
def test_a_chain_that_uses_up_its_redirects_hides_its_end_from_a_later_page(name: str):
    pages, hits, _ = crawled(name, long_way.answer)
    assert pages == {"/", "/late"}
    assert hits["/11"] == 1

    def without_the_chain(path: str) -> Answer:
        return page("/late") if path == "/" else long_way.answer(path)

    assert "/end" in crawled(name, without_the_chain)[0]


@each_crawler
def test_four_pages_are_fetched_at_a_time(name: str):
    def fan(path: str) -> Answer:
        return replace(page(*(f"/{n}" for n in range(8))), wait=1.0)

    assert crawled(name, fan)[2] == 3.0


def test_on_both_backends_either_asks_for_the_same_and_finds_the_same():
    for site in (plain, redirects, long_way):
        ours, theirs = (crawled(f"either on {each}", site.answer) for each in ("asyncio", "Trio"))
        assert ours[:2] == theirs[:2]
        assert ours[1]


@pytest.mark.parametrize("name", [name for name in CRAWLERS if name != "chapter"])
def test_an_error_of_a_worker_leaves_the_block_as_a_group(name: str):
    with pytest.raises(ExceptionGroup) as caught:
        crawled(name, liar.answer)
    (error,) = caught.value.exceptions
    assert isinstance(error, UnicodeDecodeError)


def test_an_error_of_a_worker_of_the_chapter_is_told_only_when_the_task_is_collected(caplog):
    gc.disable()
    try:
        with pytest.raises(Stuck):
            crawled("chapter", liar.answer)
        assert caplog.messages == []
    finally:
        gc.enable()
    gc.collect()
    assert [each.partition("\n")[0] for each in caplog.messages] == [
        "Task exception was never retrieved"
    ]


class Bounded(workers.Crawler):
    """The workers, with a channel that has room for four: who adds a URL waits for the room."""

    def __init__(self, client: httpx.AsyncClient, root: str) -> None:
        super().__init__(client, root)
        self.send, self.jobs = trio.open_memory_channel[tuple[str, int]](4)
        self.send.send_nowait((root, 0))

    async def fetch(self, url: str, max_redirect: int) -> None:
        response = await self.client.get(url)
        for link in sorted(links(url, response.content) - self.seen_urls):
            self.seen_urls.add(link)
            self.unfinished += 1
            await self.send.send((link, 0))


def test_with_a_bound_all_workers_could_wait_for_each_other():
    def three_each(path: str) -> Answer:
        number = int(path.removeprefix("/") or 0)
        return page(*(f"/{n}" for n in range(3 * number + 1, 3 * number + 4) if n < 100))

    client, site = visitor(three_each)
    with pytest.raises(Stuck):
        run_trio(lambda: Bounded(client, site.url).crawl())
    assert len(run_trio(workers.crawl, client, site.url)) == 100


async def cancelled_workers(client: httpx.AsyncClient, root: str) -> int:
    crawler = modern.Crawler(client, root)
    cancelled = 0
    work = crawler.work

    async def watched() -> None:
        nonlocal cancelled
        try:
            await work()
        except asyncio.CancelledError:
            cancelled += 1
            raise

    crawler.work = watched
    await crawler.crawl()
    assert len(crawler.pages) == plain.SIZE
    return cancelled


def test_where_the_queue_has_a_shutdown_no_worker_of_modern_asyncio_is_cancelled():
    client, site = visitor(plain.answer)
    by_hand = 0 if hasattr(asyncio.Queue, "shutdown") else 4
    assert run_asyncio(cancelled_workers, client, site.url) == by_hand


def test_where_the_queue_has_no_shutdown_the_four_workers_are_cancelled(monkeypatch):
    monkeypatch.delattr(asyncio.Queue, "shutdown", raising=False)
    client, site = visitor(plain.answer)
    assert run_asyncio(cancelled_workers, client, site.url) == 4


def original(name: str) -> list[str]:
    """Return what the published program reported of a site, as recorded."""
    reports = (DOCS / "generated" / "original.txt").read_text().split("\n\n")
    (report,) = (each for each in reports if each.partition("\n")[0].endswith(f"# {name}"))
    return re.findall(r"^http://site(/.*)", report, re.MULTILINE)


def test_the_published_program_found_the_pages_that_ours_finds():
    pages, hits, _ = crawled("chapter", plain.answer)
    assert {line.split()[0] for line in original("plain")} == pages == set(hits)


def test_the_published_program_stood_still_at_the_page_at_which_ours_does():
    old, newer = (DOCS / "generated" / "original-hangs.txt").read_text().split("\n\n")
    ours = recording("--for 2 liar reading/chapter.py".split()).read_text()
    assert old.splitlines()[-1] == ours.splitlines()[-1]
    assert newer.endswith("site: 1 requests for 1 paths\n")
    assert all("[after 5 s: nothing printed; Ctrl-C]" in report for report in (old, newer))


def test_the_published_program_asked_for_the_same_but_for_the_target_of_a_308():
    pages, hits, _ = crawled("chapter", redirects.answer)
    lines = original("redirects")
    assert {line.split()[0] for line in lines} == set(hits) - {"/new"}
    assert {line.split()[0] for line in lines if " 200 " in line} == pages - {"/new"}
    assert "/old 308 None None 0" in lines


def stripped(line: str) -> str:
    return line.partition("  # (")[0].strip()


def table(heading: str) -> list[list[str]]:
    """Return the rows of the table of workers.md below a heading, without their backquotes."""
    text = (DOCS / "reading" / "workers.md").read_text()
    part = re.split(r"^#+ ", text.partition(heading)[2], flags=re.MULTILINE)[0]
    rows = [re.split(r"(?<!\\)\|", line)[1:-1] for line in part.splitlines() if "|" in line]
    return [[cell.strip().strip("`").replace("\\|", "|") for cell in row] for row in rows[2:]]


def test_each_line_of_the_table_is_in_workers_and_what_it_became_is_in_the_crawler():
    rows = table("### What became of each line")
    assert len(rows) >= 15
    ours = {stripped(line) for line in (DOCS / "reading" / "workers.py").read_text().splitlines()}
    for line, became, file, _ in rows:
        assert line in ours
        code = (DOCS.parent / "trio_crawler" / file).read_text().splitlines()
        assert became in {each.strip() for each in code}


def test_each_addition_of_the_crawler_names_a_test_that_exists():
    rows = table("### What the crawler adds, and why")
    assert len(rows) >= 8
    for _, _, test in rows:
        file, _, name = test.partition("::")
        assert re.search(rf"def {name}\(", (DOCS.parent / file).read_text())


# The loops of the answer.


async def noted(log: list[Any], name: Any, event: Awaitable[object]) -> None:
    await event
    log.append(name)


@pytest.mark.parametrize("loop", [sleeping, selecting])
def test_coroutines_wake_in_the_order_of_their_times_and_then_of_their_coming(loop: Any):
    log: list[Any] = []
    now, tens = sleeping.time.monotonic(), (5, 3, 1, 4, 2, 3, 1, 0)
    times = [now + n / 100 for n in tens]
    loop.run(*(noted(log, n, sleeping.AsyncSleep(until)) for n, until in enumerate(times)))
    assert log == sorted(range(8), key=tens.__getitem__)


def test_the_loop_sleeps_for_all_sleepers_at_once(monkeypatch):
    class Clock:
        now = 0.0

        def monotonic(self) -> float:
            return self.now

        def sleep(self, seconds: float) -> None:
            self.now += seconds

    clock = Clock()
    monkeypatch.setattr(sleeping, "time", clock)
    sleeping.run(*(sleeping.asleep(0.5) for _ in range(5)))
    assert clock.now == 0.5


@pytest.mark.skipif(sys.platform != "linux", reason="epoll")
async def test_a_file_on_disk_is_ready_to_select_and_refused_by_epoll(tmp_path):
    (tmp_path / "file").write_bytes(b"x")
    with (tmp_path / "file").open("rb") as file:
        assert select.select([file], [], [], 0)[0] == [file]
        with pytest.raises(PermissionError):
            await trio.lowlevel.wait_readable(file)


def test_of_two_readers_of_one_socket_the_second_takes_the_place_of_the_first():
    ours, theirs = socket.socketpair()
    log: list[Any] = []
    with ours, theirs:
        theirs.send(b"x")
        selecting.run(*(noted(log, name, selecting.AsyncRead(ours)) for name in (1, 2)))
    assert log == [2]


def test_a_loop_that_reads_waits_for_a_time_and_a_socket_at_once():
    ours, theirs = socket.socketpair()
    log: list[Any] = []

    async def send_later() -> None:
        await selecting.asleep(0.01)
        theirs.send(b"x")
        await selecting.asleep(0.01)
        log.append("slept")

    with ours, theirs:
        selecting.run(noted(log, "read", selecting.AsyncRead(ours)), send_later())
    assert log == ["read", "slept"]


def test_at_the_end_of_a_stream_the_receive_of_the_answer_lets_nobody_have_a_turn():
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    turns: list[str] = []

    async def other() -> None:
        turns.append("the other")
        await sleeping.AsyncSleep(0)

    async def receive() -> None:
        turns.append("the reader")
        await receiving.AsyncRecv(ours, 2)

    waiting = other()
    theirs.send(b"x")
    theirs.close()
    with ours, pytest.raises(SystemExit, match="1 bytes in 100,000 turns"):
        receiving.run(receive(), waiting)
    waiting.close()
    assert turns == ["the reader"]


async def test_at_the_end_of_a_stream_the_receive_of_trio_lets_the_others_have_their_turn():
    ours, theirs = trio.socket.socketpair()
    theirs.close()
    turns = 0

    async def spin() -> None:
        nonlocal turns
        while await ours.recv(1) == b"":
            turns += 1

    with ours, trio.fail_after(5):
        async with trio.open_nursery() as block:
            block.start_soon(spin)
            while turns < 10:
                await trio.lowlevel.checkpoint()
            block.cancel_scope.cancel()
    assert turns >= 10


async def test_a_loop_over_a_stream_of_trio_ends_at_its_end():
    ours, theirs = trio.socket.socketpair()
    await theirs.send(b"x")
    theirs.close()
    async with trio.SocketStream(ours) as stream:
        with trio.fail_after(5):
            assert [bytes(chunk) async for chunk in stream] == [b"x"]


@coroutine
def overheard(
    task: Coroutine[Any, Any, Any], log: list[tuple[Any, Any]]
) -> Generator[Any, Any, None]:
    """Drive a coroutine as Trio's loop does, and note what each says to the other."""
    reply: Any = None
    while True:
        try:
            message = task.send(reply)
        except StopIteration:
            return
        reply = yield message
        log.append((message, reply))


async def test_what_trio_is_yielded_is_a_message_and_what_it_sends_is_an_outcome(autojump_clock):
    log: list[tuple[Any, Any]] = []
    asleep = trio.sleep
    await overheard(asleep(1), log)
    ((message, reply),) = log
    assert type(message).__module__.startswith("trio.")
    assert not isinstance(message, asyncio.Future)
    assert isinstance(reply, outcome.Outcome)


@pytest.mark.parametrize("name", [loop.__name__ for loop in OWN_LOOPS])
def test_the_loops_of_the_answer_keep_the_names_of_the_listing_beside(name: str):
    ours, theirs = import_module(name), import_module(f"{name}_trio")
    assert asyncio.iscoroutinefunction(theirs.crawl)
    assert not asyncio.iscoroutinefunction(ours.crawl)
    assert set(vars(theirs)) & {"fetch", "crawl"} == set(vars(ours)) & {"fetch", "crawl"}
