"""The sink: every byte once, whoever writes and whatever is cancelled meanwhile."""

from __future__ import annotations

import threading
from io import FileIO

import httpx
import pytest
import trio
import trio.testing
from cases import for_each

from trio_crawler import Outcome, Page, Reason, Skipped
from trio_crawler.cli.sink import BATCH, FULL, Sink

OUTCOMES = [Skipped(f"https://a.test/{number}", Reason.STOPPED) for number in range(3)]


def encoded(outcome: Outcome) -> bytes:
    return f"{outcome.url}\n".encode()


WHOLE = b"".join(map(encoded, OUTCOMES))


async def test_what_is_encoded_in_a_thread_stands_once_though_others_write_meanwhile(tmp_path):
    begun, go_on = threading.Event(), threading.Event()

    def slowly(outcome: Outcome) -> bytes:
        if outcome is OUTCOMES[1]:
            begun.set()
            go_on.wait(20)
        return encoded(outcome)

    sink = Sink(FileIO(tmp_path / "x", "w"), slowly, b"head\n", lambda: b"tail\n", costly=True)
    await sink.put(OUTCOMES[0])
    await sink.put(OUTCOMES[1])
    async with trio.open_nursery() as nursery:
        nursery.start_soon(sink.flush)
        await trio.to_thread.run_sync(begun.wait)
        await sink.put(OUTCOMES[2])
        nursery.start_soon(sink.flush)
        await trio.testing.wait_all_tasks_blocked()
        go_on.set()
    assert (tmp_path / "x").read_bytes() == b"head\n" + WHOLE
    sink.close()
    assert (tmp_path / "x").read_bytes() == b"head\n" + WHOLE + b"tail\n"


async def test_what_is_costly_to_encode_is_encoded_many_at_a_time_in_one_thread(tmp_path):
    threads = list[str]()

    def noted(outcome: Outcome) -> bytes:
        threads.append(threading.current_thread().name)
        return encoded(outcome)

    page = Page("https://a.test/", 200, httpx.Headers(), bytes(BATCH // 4))
    sink = Sink(FileIO(tmp_path / "x", "w"), noted, costly=True)
    for _ in range(3):
        await sink.put(page)
    assert not threads
    await sink.put(page)
    assert len(threads) == 4
    assert set(threads).isdisjoint({threading.current_thread().name})
    sink.close()
    assert (tmp_path / "x").read_bytes() == 4 * encoded(page)


async def test_outcomes_without_bodies_are_not_gathered_without_end(tmp_path):
    counts = list[int]()
    sink = Sink(FileIO(tmp_path / "x", "w"), lambda outcome: bytes(1), costly=True)
    for _ in range(1_000):
        await sink.put(OUTCOMES[0])
        counts.append((tmp_path / "x").stat().st_size)
    assert 0 < min(filter(None, counts)) <= BATCH // 1_024
    sink.close()
    assert (tmp_path / "x").stat().st_size == 1_000


async def test_a_bug_in_the_encoding_is_raised_and_the_file_is_closed(tmp_path):
    file = FileIO(tmp_path / "x", "w")
    sink = Sink(file, lambda outcome: bytes(1 // len(outcome.url[20:])), costly=True)
    await sink.put(Skipped("https://a.test/", Reason.STOPPED))
    with pytest.raises(ZeroDivisionError):
        await sink.flush()
    sink.close()
    assert file.closed


@for_each("steps", range(6))
async def test_a_flush_to_a_plain_file_that_is_cancelled_loses_nothing(tmp_path, steps):
    sink = Sink(FileIO(tmp_path / "x", "w"), encoded)
    for outcome in OUTCOMES:
        await sink.put(outcome)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(sink.flush)
        for _ in range(steps):
            await trio.lowlevel.checkpoint()
        nursery.cancel_scope.cancel()
    sink.close()
    assert (tmp_path / "x").read_bytes() == WHOLE


def test_where_nobody_waits_it_writes_at_once_when_there_is_enough(tmp_path):
    sink = Sink(FileIO(tmp_path / "x", "w"), lambda outcome: b"x" * (FULL // 2))
    sink.take(OUTCOMES[0])
    assert (tmp_path / "x").stat().st_size == 0
    sink.take(OUTCOMES[1])
    assert (tmp_path / "x").stat().st_size == FULL
    sink.take(OUTCOMES[2])
    sink.close()
    assert (tmp_path / "x").stat().st_size == FULL * 3 // 2
