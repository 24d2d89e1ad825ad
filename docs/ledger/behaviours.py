"""The ledger: what the chapter's asyncio, the best asyncio of this interpreter and Trio do."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass

from ledger import (
    ahead,
    cancelling,
    deadlines,
    ending,
    failing,
    queues,
    sharing,
    starting,
    streaming,
    swallowing,
)

Says = Callable[[], str]


@dataclass(frozen=True)
class Behaviour:
    """Hold a question, and the three programs that answer it."""

    question: str
    chapter: Says
    modern: Says
    trio: Says

    def tried(self) -> tuple[str, str, str]:
        return self.chapter(), self.modern(), self.trio()


BEHAVIOURS = [
    Behaviour(
        "One of two workers raises; the crawl joins the queue",
        failing.worker_raises_chapter,
        failing.worker_raises_modern,
        failing.worker_raises_trio,
    ),
    Behaviour(
        "Two tasks wait for one event and fail, a third sleeps",
        failing.two_failures_chapter,
        failing.two_failures_modern,
        failing.two_failures_trio,
    ),
    Behaviour(
        "A server fails before it is ready, and its client waits for it",
        starting.start_chapter,
        starting.start_modern,
        starting.start_trio,
    ),
    Behaviour(
        "A task that no variable keeps, after a garbage collection",
        starting.unkept_chapter,
        starting.unkept_modern,
        starting.unkept_trio,
    ),
    Behaviour(
        "A crawl of five workers is cancelled from outside; a second later",
        cancelling.from_outside_chapter,
        cancelling.from_outside_modern,
        cancelling.from_outside_trio,
    ),
    Behaviour(
        "A result and a cancellation in one turn: does the cancellation arrive?",
        cancelling.same_turn_chapter,
        cancelling.same_turn_modern,
        cancelling.same_turn_trio,
    ),
    Behaviour(
        "A cancellation meets `except Exception` (the chapter's own loop; asyncio: until 3.7)",
        swallowing.except_exception_chapter,
        swallowing.except_exception_modern,
        swallowing.except_exception_trio,
    ),
    Behaviour(
        "One second for thirty reads that take 0.2 s each",
        deadlines.deadline_chapter,
        deadlines.deadline_modern,
        deadlines.deadline_trio,
    ),
    Behaviour(
        "One second for each of thirty reads that take 0.2 s",
        deadlines.deadline_chapter,
        deadlines.each_read_modern,
        deadlines.each_read_trio,
    ),
    Behaviour(
        "Half a second, and a cleanup that awaits for three more",
        deadlines.cleanup_chapter,
        deadlines.cleanup_modern,
        deadlines.cleanup_trio,
    ),
    Behaviour(
        "A loop of awaits that never have to wait is cancelled",
        deadlines.never_waits_chapter,
        deadlines.never_waits_modern,
        deadlines.never_waits_trio,
    ),
    Behaviour(
        "A part of a task is to be ended, without a deadline",
        cancelling.part_chapter,
        cancelling.part_modern,
        cancelling.part_trio,
    ),
    Behaviour(
        "A group of tasks is ended early, and that is no error",
        cancelling.early_chapter,
        cancelling.early_modern,
        cancelling.early_trio,
    ),
    Behaviour(
        "Ctrl-C: when the program hears of it",
        ending.ctrl_c_chapter,
        ending.ctrl_c_modern,
        ending.ctrl_c_trio,
    ),
    Behaviour(
        "The main function returns, and a worker still waits",
        ending.left_over_chapter,
        ending.left_over_modern,
        ending.left_over_trio,
    ),
    Behaviour(
        "A generator with a group of workers in it is closed early",
        streaming.generator_chapter,
        streaming.generator_modern,
        streaming.generator_trio,
    ),
    Behaviour(
        "Results are streamed, and the consumer breaks: the form that holds",
        streaming.streaming_chapter,
        streaming.streaming_modern,
        streaming.streaming_trio,
    ),
    Behaviour(
        "A thousand waits of 30 s in a test that takes no time",
        ending.fake_time_asyncio,
        ending.fake_time_asyncio,
        ending.fake_time_trio,
    ),
    Behaviour(
        "How the endless loop of a worker ends",
        queues.loop_ends_chapter,
        queues.loop_ends_modern,
        queues.loop_ends_trio,
    ),
    Behaviour(
        "Two producers, one consumer: who says that there is no more",
        queues.last_producer_chapter,
        queues.last_producer_modern,
        queues.last_producer_trio,
    ),
    Behaviour(
        "Await the put, then mark as seen: the race of two pages with the same link",
        queues.seen_race_asyncio,
        queues.seen_race_asyncio,
        queues.seen_race_trio,
    ),
    Behaviour(
        "Two tasks read from one socket",
        sharing.two_readers_chapter,
        sharing.two_readers_modern,
        sharing.two_readers_trio,
    ),
    Behaviour(
        "Two workers feed each other through a bounded queue",
        sharing.circle_asyncio,
        sharing.circle_asyncio,
        sharing.circle_trio,
    ),
    Behaviour(
        "A parser computes, and another task wants to run",
        sharing.computing_asyncio,
        sharing.computing_asyncio,
        sharing.computing_trio,
    ),
]

AHEAD = [
    Behaviour(
        "Two tasks wake from a sleep in the same instant and fail, a third sleeps",
        failing.two_failures_chapter,
        failing.two_sleepers_modern,
        failing.two_sleepers_trio,
    ),
    Behaviour(
        "`except KeyboardInterrupt` around the program, Ctrl-C in a task",
        ending.by_name_chapter,
        ending.by_name_modern,
        ending.by_name_trio,
    ),
    Behaviour(
        "`except ValueError` around the wait for one child that raises it",
        failing.caught_by_name_chapter,
        failing.caught_by_name_modern,
        failing.caught_by_name_trio,
    ),
    Behaviour(
        "A cancelled loop with a bare `except` around each await",
        swallowing.swallowing_chapter,
        swallowing.swallowing_chapter,
        swallowing.swallowing_trio,
    ),
    Behaviour(
        "The memory of a task that waits",
        ahead.memory_asyncio,
        ahead.memory_asyncio,
        ahead.memory_trio,
    ),
    Behaviour(
        "The processor time of a job that is taken from a queue with jobs in it",
        ahead.taking_faster_asyncio,
        ahead.taking_faster_asyncio,
        ahead.taking_faster_trio,
    ),
    Behaviour(
        "Looking into a live process from outside",
        ahead.from_outside_asyncio,
        ahead.from_outside_asyncio,
        ahead.from_outside_trio,
    ),
    Behaviour(
        "Opening a session of aiohttp",
        ahead.ecosystem_asyncio,
        ahead.ecosystem_asyncio,
        ahead.ecosystem_trio,
    ),
]

COLUMNS = """\
| | asyncio of the chapter's time | the best asyncio here | Trio |
| --- | --- | --- | --- |"""
CAUGHT_UP = "Where the best asyncio does as Trio does"
REMAINS = "What remains"
SAME = "Where all three do the same"
IN_FRONT = "Where asyncio is ahead, or Trio costs more"


def kind(said: tuple[str, str, str]) -> str:
    """Sort a behaviour by what was seen, and by nothing else."""
    chapter, modern, trio = said
    if modern != trio:
        return REMAINS
    return SAME if chapter == trio else CAUGHT_UP


def ledger() -> str:
    """Try every behaviour on this interpreter; return tables in Markdown."""
    rows: dict[str, list[str]] = {
        CAUGHT_UP: [],
        REMAINS: [],
        SAME: [],
        IN_FRONT: [],
    }
    for each in BEHAVIOURS:
        said = each.tried()
        rows[kind(said)].append(row(each.question, said))
    rows[IN_FRONT] = [row(each.question, each.tried()) for each in AHEAD]
    version = ".".join(map(str, sys.version_info[:2]))
    tables = [
        f"### {title}\n\n{COLUMNS}\n" + "\n".join(lines)
        for title, lines in rows.items()
        if lines
    ]
    return "\n\n".join([f"Tried on Python {version}.", *tables]) + "\n"


def row(question: str, said: tuple[str, ...]) -> str:
    return f"| {' | '.join([question, *said])} |"


if __name__ == "__main__":
    print(ledger(), end="")
