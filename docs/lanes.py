"""Records of what each task of a run does: the same ones from asyncio and from Trio.

Both engines drive a task by `send` and `throw` on its coroutine, so both are watched in one
place: `Watched` stands before the coroutine and looks, after each step, what it waits in. On
Trio an instrument puts it there when a task is spawned, on asyncio a task factory does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from types import FrameType
from typing import Any
from urllib.parse import urlsplit

import trio
import trio_crawler

OURS = (str(Path(__file__).parent), str(Path(trio_crawler.__file__).parent))
CANCELLED = (asyncio.CancelledError, trio.Cancelled)
NAMES = {"_move_elems_to_channel": "as_safe_channel"}


@dataclass(frozen=True)
class Record:
    """Say what a task did at a moment (seconds): it `started`, `waits`, `ended`, ...

    `what` is one of started, waits, ended, raised, cancelled. `where` is the task's name; or of
    a wait its kind, and what is fetched or the function that waits; or what was raised. `parent`
    is the task that started this one.
    """

    time: float
    task: int
    parent: int | None
    what: str
    where: str


def _asked(names: dict[str, Any]) -> str:
    return short(str(names["url"]))


def _job(names: dict[str, Any]) -> str:
    return short(names["job"].url)


def short(url: str) -> str:
    """Return the path of a URL, with its host if there are several."""
    parts = urlsplit(url)
    return (
        parts.path
        if parts.netloc in ("site", "site.test")
        else parts.netloc + parts.path
    )


WAITS: dict[tuple[str, str], tuple[str, Callable[[dict[str, Any]], str] | None]] = {
    ("httpx/_client.py", "get"): ("fetching", _asked),
    ("trio_crawler/testing.py", "__call__"): ("fetching", _job),
    ("asyncio/queues.py", "get"): ("receiving", None),
    ("trio/_channel.py", "receive"): ("receiving", None),
    ("streams/memory.py", "receive"): ("receiving", None),
    ("asyncio/queues.py", "put"): ("sending", None),
    ("trio/_channel.py", "send"): ("sending", None),
    ("asyncio/queues.py", "join"): ("joining", None),
    ("asyncio/taskgroups.py", "__aexit__"): ("joining", None),
    ("_backends/_asyncio.py", "__aexit__"): ("joining", None),
    ("_core/_run.py", "_nested_child_finished"): ("joining", None),
    ("asyncio/tasks.py", "sleep"): ("sleeping", None),
    ("trio/_timeouts.py", "sleep_until"): ("sleeping", None),
    ("trio/_timeouts.py", "sleep_forever"): ("sleeping", None),
    ("trio/_sync.py", "acquire_on_behalf_of"): ("queueing", None),
    ("asyncio/locks.py", "acquire"): ("queueing", None),
}


def frames(coro: Any) -> Iterator[FrameType]:
    """Yield the frames that wait for each other, the outermost first."""
    while coro is not None:
        kind = next(
            (k for k in ("cr", "gi", "ag") if hasattr(coro, k + "_frame")), None
        )
        if kind is None or getattr(coro, kind + "_frame") is None:
            return
        yield getattr(coro, kind + "_frame")
        coro = getattr(coro, "gi_yieldfrom" if kind == "gi" else kind + "_await")


def waits_in(coro: Any) -> str:
    """Say what a coroutine waits in: the outermost primitive that `WAITS` knows."""
    own = ""
    for frame in frames(coro):
        path, name = frame.f_code.co_filename, frame.f_code.co_name
        for (file, function), (kind, word) in WAITS.items():
            if name == function and path.endswith(file):
                return f"{kind} {word(frame.f_locals) if word else own}"
        if path.startswith(OURS):
            own = name
    return f"waiting {own}"


def end_by(error: BaseException) -> tuple[str, str]:
    """Say how a task ends that raises this."""
    rest = (
        error.split(CANCELLED)[1]
        if isinstance(error, BaseExceptionGroup)
        else error
    )
    if rest is None or isinstance(rest, CANCELLED):
        return "cancelled", ""
    return "raised", type(error).__name__


class Watched(Coroutine[Any, Any, Any]):
    """Be a coroutine, and write down each of its steps."""

    def __init__(self, log: Log, coro: Any, task: int, parent: int | None) -> None:
        self.log, self.coro, self.task, self.parent = log, coro, task, parent
        self.name = (
            ""  # of the task, where an engine has a better one than the coroutine
        )
        self.began = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self.coro, name)

    def __await__(self) -> Iterator[Any]:
        return self  # type: ignore[return-value]

    def send(self, value: Any) -> Any:
        return self.step(self.coro.send, value)

    def throw(self, *error: Any) -> Any:
        return self.step(self.coro.throw, *error)

    def close(self) -> None:
        self.coro.close()

    def step(self, resume: Callable[..., Any], *given: Any) -> Any:
        if not self.began:
            self.began = True
            own = self.coro.cr_code.co_filename.startswith(OURS)
            named = self.coro.__name__ if own else self.name.rpartition(".")[2]
            self.write("started", NAMES.get(named, named))
        try:
            request = resume(*given)
        except StopIteration:
            self.write("ended", "")
            raise
        except BaseException as error:
            self.write(*end_by(error))
            raise
        self.write("waits", waits_in(self.coro))
        return request

    def write(self, what: str, where: str) -> None:
        if not self.log.closed:
            record = Record(self.log.now(), self.task, self.parent, what, where)
            self.log.records.append(record)


class Log(trio.abc.Instrument):
    """Collect the records of one run until it is `closed`."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.closed = False
        self.now: Callable[[], float] = trio.current_time
        self._numbers = count()
        self._known: dict[object, int] = {}

    def watched(self, coro: Any, parent: object) -> Watched:
        return Watched(self, coro, next(self._numbers), self._known.get(parent))

    def task_spawned(self, task: trio.lowlevel.Task) -> None:
        """Watch the program's tasks on Trio: the main one, and all below it."""
        nursery = task.parent_nursery
        parent = nursery.parent_task if nursery else None
        if parent in self._known or task.coro.cr_code.co_filename.startswith(OURS):
            task.coro = watched = self.watched(task.coro, parent)
            watched.name = task.name
            self._known[task] = watched.task

    def factory(
        self, loop: asyncio.AbstractEventLoop, coro: Any, **options: Any
    ) -> asyncio.Task[Any]:
        """Watch the tasks on asyncio; a task's parent is the one that created it."""
        self.now = loop.time
        if not hasattr(coro, "cr_code"):
            return asyncio.Task(coro, loop=loop, **options)  # the engine's own
        try:
            parent = asyncio.current_task(loop)
        except RuntimeError:
            parent = None
        watched = self.watched(coro, parent)
        task = Task(watched, loop=loop, **options)
        self._known[task] = watched.task
        return task


class Task(asyncio.Task[Any]):
    """Tell the watched coroutine its task's name, which anyio sets later."""

    def set_name(self, value: object) -> None:
        super().set_name(value)
        coro = self.get_coro()
        if isinstance(coro, Watched):
            coro.name = str(value)
