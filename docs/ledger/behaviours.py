"""The ledger: what the chapter's asyncio, the best asyncio, AnyIO on it and Trio do."""

# ruff: noqa: E501 - a row of the ledger is a line

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType

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
from ledger.trying import on_anyio


@dataclass(frozen=True)
class Behaviour:
    """Hold a question, and where the programs are that answer it: NAME_SIDE in a module."""

    question: str
    module: ModuleType
    name: str

    def program(self, *sides: str) -> Callable[[], str] | None:
        """Return the program of the first of these sides that there is."""
        names = (f"{self.name}_{side}" for side in sides)
        return next(
            filter(None, (getattr(self.module, name, None) for name in names)), None
        )

    def tried(self) -> tuple[str, ...]:
        """Return the answers of the chapter's asyncio, today's, AnyIO on it, and Trio.

        Without a program of its own AnyIO runs that of Trio, by its own names.
        """
        trio, own = self.program("trio"), self.program("anyio")
        return (
            self.program("chapter", "asyncio")(),
            self.program("modern", "asyncio", "chapter")(),
            own() if own else on_anyio(trio),
            trio(),
        )


BEHAVIOURS = [
    Behaviour("One of two workers raises; the crawl joins the queue", failing, "worker_raises"),
    Behaviour("Two tasks wait for one event and fail, a third sleeps", failing, "two_failures"),
    Behaviour("A server fails before it is ready, and its client waits for it", starting, "start"),
    Behaviour("A task that no variable keeps, after a garbage collection", starting, "unkept"),
    Behaviour("A crawl of five workers is cancelled from outside; a second later", cancelling, "from_outside"),
    Behaviour("A result and a cancellation in one turn: does the cancellation arrive?", cancelling, "same_turn"),
    Behaviour("A cancellation meets `except Exception` (the chapter's own loop; asyncio: until 3.7)", swallowing, "except_exception"),
    Behaviour("One second for thirty reads that take 0.2 s each", deadlines, "deadline"),
    Behaviour("One second for each of thirty reads that take 0.2 s", deadlines, "each_read"),
    Behaviour("Half a second, and a cleanup that awaits for three more", deadlines, "cleanup"),
    Behaviour("A loop of awaits that never have to wait is cancelled", deadlines, "never_waits"),
    Behaviour("A part of a task is to be ended, without a deadline", cancelling, "part"),
    Behaviour("A group of tasks is ended early, and that is no error", cancelling, "early"),
    Behaviour("Ctrl-C: when the program hears of it", ending, "ctrl_c"),
    Behaviour("The main function returns, and a worker still waits", ending, "left_over"),
    Behaviour("A generator with a group of workers in it is closed early", streaming, "generator"),
    Behaviour("Results are streamed, and the consumer breaks: the form that holds", streaming, "streaming"),
    Behaviour("A thousand waits of 30 s in a test that takes no time", ending, "fake_time"),
    Behaviour("How the endless loop of a worker ends", queues, "loop_ends"),
    Behaviour("Two producers, one consumer: who says that there is no more", queues, "last_producer"),
    Behaviour("Await the put, then mark as seen: the race of two pages with the same link", queues, "seen_race"),
    Behaviour("Two tasks read from one socket", sharing, "two_readers"),
    Behaviour("Two workers feed each other through a bounded queue", sharing, "circle"),
    Behaviour("A parser computes, and another task wants to run", sharing, "computing"),
]  # fmt: skip

AHEAD = [
    Behaviour("Two tasks wake from a sleep in the same instant and fail, a third sleeps", failing, "two_sleepers"),
    Behaviour("`except KeyboardInterrupt` around the program, Ctrl-C in a task", ending, "by_name"),
    Behaviour("`except ValueError` around the wait for one child that raises it", failing, "caught_by_name"),
    Behaviour("A cancelled loop with a bare `except` around each await", swallowing, "swallowing"),
    Behaviour("The memory of a task that waits", ahead, "memory"),
    Behaviour("The processor time of a job that is taken from a queue with jobs in it", ahead, "taking_faster"),
    Behaviour("Looking into a live process from outside", ahead, "from_outside"),
    Behaviour("Opening a session of aiohttp", ahead, "ecosystem"),
]  # fmt: skip

HEAD = """\
| | asyncio of the chapter's time | the best asyncio here | AnyIO on asyncio | Trio |
| --- | --- | --- | --- | --- |"""
CAUGHT_UP = "Where the best asyncio does as Trio does"
REMAINS = "What remains"
SAME = "Where all do the same"
IN_FRONT = "Where asyncio is ahead, or Trio costs more"


def kind(said: tuple[str, ...]) -> str:
    """Sort a behaviour by what was seen, and by nothing else."""
    chapter, modern, _, trio = said
    if modern != trio:
        return REMAINS
    return SAME if chapter == trio else CAUGHT_UP


def ledger() -> str:
    """Try every behaviour on this interpreter; return one table in Markdown."""
    groups: dict[str, list[str]] = {CAUGHT_UP: [], REMAINS: [], SAME: []}
    for each in BEHAVIOURS:
        said = each.tried()
        groups[kind(said)].append(row(each.question, said))
    groups[IN_FRONT] = [row(each.question, each.tried()) for each in AHEAD]
    version = ".".join(map(str, sys.version_info[:2]))
    lines = [f"Tried on Python {version}.\n", HEAD]
    for title, rows in groups.items():
        lines += [f"| **{title}** | | | | |", *rows]
    return "\n".join(lines) + "\n"


def row(question: str, said: tuple[str, ...]) -> str:
    return f"| {' | '.join([question, *said])} |"


if __name__ == "__main__":
    print(ledger(), end="")
