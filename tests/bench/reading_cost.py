"""Measure what a task and a page cost on asyncio and on Trio, for the page `docs/failures.md`.

    python tests/bench/reading_cost.py > docs/generated/reading_cost.md

Needs `pip install -e .[docs]`. Each row is the median of five processes of its own. "resident"
is what the process has grown by for each of 10,000 tasks, 4,000 connections with a task that
reads, or 1,000 threads, that wait. "CPU" is what each of 100 tasks takes that do nothing, in the
quickest of 1,000 blocks; and what a page takes of the programs of docs/reading when there is no
network: it comes after one turn of the loop, and has no links. The last row is `trio_crawler` with
all that it checks and records.
"""

from __future__ import annotations

import asyncio
import os
import platform
import resource
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
sys.path[:0] = [str(DOCS / "reading"), str(DOCS / "failures"), str(DOCS), str(ROOT)]

TASKS, THREADS, PAGES, ROUNDS = 10_000, 1_000, 5_000, 5
CONNECTIONS, BLOCKS = 4_000, 1_000


def memory() -> tuple[int, int]:
    """Return the bytes of address space and of memory that the process has."""
    pages = Path("/proc/self/statm").read_text().split()[:2]
    size, resident = (int(each) * os.sysconf("SC_PAGE_SIZE") for each in pages)
    return size, resident


def grown(before: tuple[int, int], count: int) -> str:
    """Say what each of so many takes: resident KiB, and MiB of address space."""
    size, resident = (after - was for after, was in zip(memory(), before, strict=True))
    return f"{resident / count / 1024:.1f} {size / count / 1024 / 1024:.1f}"


async def tasks_of_asyncio() -> str:
    """Let tasks wait for an event."""
    async with asyncio.TaskGroup() as group:
        never, before = asyncio.Event(), memory()
        tasks = [group.create_task(never.wait()) for _ in range(TASKS)]
        await asyncio.sleep(0)
        said = grown(before, TASKS)
        for task in tasks:
            task.cancel()
    return said


async def tasks_of_trio() -> str:
    """Let tasks wait for an event."""
    import trio
    import trio.testing

    async with trio.open_nursery() as nursery:
        never, before = trio.Event(), memory()
        for _ in range(TASKS):
            nursery.start_soon(never.wait)
        await trio.testing.wait_all_tasks_blocked()
        said = grown(before, TASKS)
        nursery.cancel_scope.cancel()
    return said


def pairs() -> list[tuple[socket.socket, socket.socket]]:
    """Return connections."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return [socket.socketpair() for _ in range(CONNECTIONS)]


async def connections_of_asyncio() -> str:
    """Let a task read from each of some connections on which nothing comes."""
    made, before = pairs(), memory()
    tasks, writers = [], []
    async with asyncio.TaskGroup() as group:
        for own, _ in made:
            reader, writer = await asyncio.open_connection(sock=own)
            writers.append(writer)
            tasks.append(group.create_task(reader.read()))
        await asyncio.sleep(0)
        said = grown(before, CONNECTIONS)
        for task in tasks:
            task.cancel()
    return said


async def connections_of_trio() -> str:
    """Let a task read from each of some connections on which nothing comes."""
    import trio
    import trio.testing

    made, before = pairs(), memory()
    async with trio.open_nursery() as nursery:
        for own, _ in made:
            stream = trio.SocketStream(trio.socket.from_stdlib_socket(own))
            nursery.start_soon(stream.receive_some)
        await trio.testing.wait_all_tasks_blocked()
        said = grown(before, CONNECTIONS)
        nursery.cancel_scope.cancel()
    return said


async def nothing() -> None:
    """Be a task that ends."""


async def started_by_asyncio() -> str:
    """Start tasks that end."""
    took = []
    for _ in range(BLOCKS):
        began = time.process_time_ns()
        async with asyncio.TaskGroup() as group:
            for _ in range(100):
                group.create_task(nothing())
        took.append(time.process_time_ns() - began)
    return f"{min(took) / 100 / 1000:.1f}"


async def started_by_trio() -> str:
    """Start tasks that end."""
    import trio

    took = []
    for _ in range(BLOCKS):
        began = time.process_time_ns()
        async with trio.open_nursery() as nursery:
            for _ in range(100):
                nursery.start_soon(nothing)
        took.append(time.process_time_ns() - began)
    return f"{min(took) / 100 / 1000:.1f}"


def threads() -> str:
    """Let threads wait for an event."""
    never, before = threading.Event(), memory()
    waiting = [threading.Thread(target=never.wait) for _ in range(THREADS)]
    for thread in waiting:
        thread.start()
    said = grown(before, THREADS)
    never.set()
    for thread in waiting:
        thread.join()
    return said


def page_of_asyncio() -> str:
    """Crawl with the chapter's crawler."""
    import cost

    cost.PAGES = PAGES
    return f"{asyncio.run(cost.crawl_asyncio()) * 1e6:.1f}"


def page_of_trio() -> str:
    """Crawl with its Trio form."""
    import cost
    import trio

    cost.PAGES = PAGES
    return f"{trio.run(cost.crawl_trio) * 1e6:.1f}"


def page_of_ours() -> str:
    """Crawl with trio_crawler."""
    import trio

    from trio_crawler import Crawler, Politeness
    from trio_crawler.testing import Web, html

    seeds = [f"http://nowhere/{number}" for number in range(PAGES)]
    # Bodies that differ, or each would be a duplicate of the first.
    web = Web({seed: html(title=seed) for seed in seeds})
    crawler = Crawler(seeds, workers=4, fetch=web, politeness=Politeness(robots=False))
    began = time.process_time()
    trio.run(crawler.crawl)
    return f"{(time.process_time() - began) / PAGES * 1e6:.1f}"


def on_asyncio(main: Callable[[], Coroutine[Any, Any, str]]) -> Callable[[], str]:
    """Return a row that asyncio runs."""
    return lambda: asyncio.run(main())


def on_trio(main: Callable[[], Coroutine[Any, Any, str]]) -> Callable[[], str]:
    """Return a row that Trio runs."""
    import trio

    return lambda: trio.run(main)


WAITING: dict[str, Callable[[], str]] = {
    "asyncio task": on_asyncio(tasks_of_asyncio),
    "Trio task": on_trio(tasks_of_trio),
    "thread": threads,
    "asyncio connection": on_asyncio(connections_of_asyncio),
    "Trio connection": on_trio(connections_of_trio),
}
STARTING: dict[str, Callable[[], str]] = {
    "asyncio, `TaskGroup`": on_asyncio(started_by_asyncio),
    "Trio, nursery": on_trio(started_by_trio),
}
CRAWLING: dict[str, Callable[[], str]] = {
    "the chapter's crawler, asyncio": page_of_asyncio,
    "its Trio form": page_of_trio,
    "`trio_crawler`": page_of_ours,
}


PRINTED = {"asyncio task": "3k (a coroutine)", "thread": "50k"}


def measured(name: str) -> list[float]:
    """Return the medians of one row."""
    command = [sys.executable, __file__, name]
    each = [
        subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
        for _ in range(ROUNDS)
    ]
    return [median(float(value) for value in column) for column in zip(*each, strict=True)]


def main() -> None:
    """Print the tables, and what they were measured on."""
    from importlib.metadata import version

    print(f"Measured on {time.strftime('%Y-%m-%d')}, not compared by the tests: "
          f"Python {platform.python_version()}, Trio {version('trio')}, "
          f"{platform.system()} on {platform.machine()}, {os.cpu_count()} cores, "
          "by `python tests/bench/reading_cost.py`.\n")  # fmt: skip
    print("| one that waits | resident | address space | the chapter says |\n|---|---:|---:|---:|")
    for name in WAITING:
        resident, size = measured(name)
        print(
            f"| {name} | {resident:.1f} KiB | {size:.1f} MiB | {PRINTED.get(name, '')} |",
            flush=True,
        )
    print("\n| a task that starts and ends | CPU |\n|---|---:|")
    for name in STARTING:
        print(f"| {name} | {measured(name)[0]:.1f} µs |", flush=True)
    print("\n| a page without a network | CPU |\n|---|---:|")
    for name in CRAWLING:
        print(f"| {name} | {measured(name)[0]:.0f} µs |", flush=True)


if __name__ == "__main__":
    if sys.argv[1:]:
        print((WAITING | STARTING | CRAWLING)[sys.argv[1]]())
    else:
        main()
