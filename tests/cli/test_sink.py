"""The sink: every byte once, whoever writes and whatever is cancelled meanwhile."""

from __future__ import annotations

import threading
from io import FileIO

import pytest
import trio

from trio_crawler import Outcome, Reason, Skipped
from trio_crawler.cli.sink import FULL, Sink

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
    async with trio.open_nursery() as nursery:
        nursery.start_soon(sink.put, OUTCOMES[1])
        await trio.to_thread.run_sync(begun.wait)
        await sink.flush()
        go_on.set()
    await sink.put(OUTCOMES[2])
    sink.close()
    assert (tmp_path / "x").read_bytes() == b"head\n" + WHOLE + b"tail\n"


@pytest.mark.parametrize("steps", range(6))
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
