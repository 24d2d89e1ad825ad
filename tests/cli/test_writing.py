"""A file of outcomes: every byte once, whoever writes and whatever is cancelled meanwhile."""

from __future__ import annotations

import threading

import httpx
import pytest
import trio
import trio.testing
from cases import for_each

from trio_crawler import Outcome, Page, Reason, Skipped
from trio_crawler.cli.exports import BATCH, Export
from trio_crawler.cli.files import Target

OUTCOMES = [Skipped(f"https://a.test/{number}", Reason.STOPPED) for number in range(3)]


def encoded(outcome: Outcome) -> bytes:
    return f"{outcome.url}\n".encode()


WHOLE = b"".join(map(encoded, OUTCOMES))


def export(folder, *how, **more) -> Export:
    return Export("x", Target(str(folder / "x")), *how, **more)


async def test_what_is_encoded_in_a_thread_stands_once_though_others_write_meanwhile(tmp_path):
    begun, go_on = threading.Event(), threading.Event()

    def slowly(outcome: Outcome) -> bytes:
        if outcome is OUTCOMES[1]:
            begun.set()
            go_on.wait(20)
        return encoded(outcome)

    file = export(tmp_path, slowly, b"head\n", lambda: b"tail\n")
    await file.put(OUTCOMES[0])
    await file.put(OUTCOMES[1])
    async with trio.open_nursery() as nursery:
        nursery.start_soon(file.flush)
        await trio.to_thread.run_sync(begun.wait)
        await file.put(OUTCOMES[2])
        nursery.start_soon(file.flush)
        await trio.testing.wait_all_tasks_blocked()
        go_on.set()
    assert (tmp_path / "x").read_bytes() == b"head\n" + WHOLE
    file.finish()
    assert (tmp_path / "x").read_bytes() == b"head\n" + WHOLE + b"tail\n"


async def test_outcomes_are_encoded_many_at_a_time_in_one_thread(tmp_path):
    threads = list[str]()

    def noted(outcome: Outcome) -> bytes:
        threads.append(threading.current_thread().name)
        return encoded(outcome)

    page = Page("https://a.test/", 200, httpx.Headers(), bytes(BATCH // 4))
    file = export(tmp_path, noted)
    for _ in range(3):
        await file.put(page)
    assert not threads
    await file.put(page)
    assert len(threads) == 4
    assert set(threads).isdisjoint({threading.current_thread().name})
    file.finish()
    assert (tmp_path / "x").read_bytes() == 4 * encoded(page)


async def test_outcomes_without_bodies_are_not_gathered_without_end(tmp_path):
    counts = list[int]()
    file = export(tmp_path, lambda outcome: bytes(1))
    for _ in range(1_000):
        await file.put(OUTCOMES[0])
        counts.append((tmp_path / "x").stat().st_size)
    assert 0 < min(filter(None, counts)) <= BATCH // 1_024
    file.finish()
    assert (tmp_path / "x").stat().st_size == 1_000


async def test_a_bug_in_the_encoding_is_raised_and_the_file_is_closed(tmp_path):
    target = Target(str(tmp_path / "x"))
    file = Export("x", target, lambda outcome: bytes(1 // len(outcome.url[20:])))
    await file.put(Skipped("https://a.test/", Reason.STOPPED))
    with pytest.raises(ZeroDivisionError):
        await file.flush()
    file.finish()
    assert target.file.closed


@for_each("steps", range(6))
async def test_a_flush_to_a_plain_file_that_is_cancelled_loses_nothing(tmp_path, steps):
    file = export(tmp_path, encoded)
    for outcome in OUTCOMES:
        await file.put(outcome)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(file.flush)
        for _ in range(steps):
            await trio.lowlevel.checkpoint()
        nursery.cancel_scope.cancel()
    file.finish()
    assert (tmp_path / "x").read_bytes() == WHOLE


def test_where_nobody_waits_it_writes_at_once_when_there_is_enough(tmp_path):
    file = export(tmp_path, encoded)
    page = Page("https://a.test/", 200, httpx.Headers(), b"", body_size=BATCH // 2)
    sizes = list[int]()
    for _ in range(3):
        file.take(page)
        sizes.append((tmp_path / "x").stat().st_size)
    file.finish()
    sizes.append((tmp_path / "x").stat().st_size)
    assert sizes == [each * len(encoded(page)) for each in (0, 2, 2, 3)]
