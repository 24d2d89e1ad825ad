"""The chapter's event loop with its slips as switches: with all off it is cured."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator
from dataclasses import dataclass
from functools import partial
from selectors import DefaultSelector, SelectorKey
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import socket

Coroutine = Generator["Future", Any, Any]


@dataclass(frozen=True)
class Printed:
    """Say which lines are as the chapter prints them, by the erratum's number."""

    thrown_past_step: bool = False  # 4
    one_join: bool = False  # 5
    late_callback_lost: bool = False  # 6
    only_stop_iteration: bool = False  # 7
    no_arguments: bool = False  # 8
    left_open: bool = False  # 13
    refusal_swallowed: bool = False  # 14
    half_sent: bool = False  # 15
    resumed_inside: bool = False  # 20


class CancelledError(Exception):
    """Thrown into a coroutine that is cancelled."""


class StopError(BaseException):
    """Thrown by the last callback: the loop has nothing more to wait for."""


class Stuck(Exception):
    """The loop would select for ever: nothing is registered."""


class Loop:
    def __init__(self, printed: Printed = Printed()) -> None:
        self.printed = printed
        self.selector = DefaultSelector()
        self.ready: deque[Callable[[], Any]] = deque()

    def call(self, fn: Callable[[Future], None], future: Future) -> None:
        if self.printed.resumed_inside:
            fn(future)
        else:
            self.ready.append(partial(fn, future))

    def run_until_complete(self, coro: Coroutine) -> Any:
        task = Task(self, coro)
        try:
            task.add_done_callback(stop_callback)
            self.run_forever()
        except StopError:
            return task.get()
        finally:
            self.selector.close()

    def run_forever(self) -> None:
        while True:
            while self.ready:
                self.ready.popleft()()
            if not self.selector.get_map():
                raise Stuck
            for key, mask in self.selector.select():
                if self.printed.no_arguments:
                    key.data()
                else:
                    key.data(key, mask)

    def readiness(self, sock: socket.socket, event: int) -> Coroutine:
        f = Future(self)

        def on_ready(key: SelectorKey, mask: int) -> None:
            self.selector.unregister(sock)
            f.set_result(None)

        self.selector.register(sock, event, on_ready)
        try:
            yield from f
        except CancelledError:
            if not f.done:
                self.selector.unregister(sock)
            raise


def stop_callback(future: Future) -> None:
    raise StopError


class Future:
    def __init__(self, loop: Loop) -> None:
        self.loop = loop
        self.result: Any = None
        self.exception: Exception | None = None
        self.done = False
        self.callbacks: list[Callable[[Future], None]] = []

    def add_done_callback(self, fn: Callable[[Future], None]) -> None:
        if self.done and not self.loop.printed.late_callback_lost:
            self.loop.call(fn, self)
        else:
            self.callbacks.append(fn)

    def set_result(self, result: Any, exception: Exception | None = None) -> None:
        self.result, self.exception, self.done = result, exception, True
        callbacks = list(self.callbacks)
        if not self.loop.printed.one_join:
            self.callbacks.clear()
        for fn in callbacks:
            self.loop.call(fn, self)

    def get(self) -> Any:
        if self.exception is not None:
            raise self.exception
        return self.result

    def __iter__(self) -> Coroutine:
        yield self
        return self.get()


class Task(Future):
    def __init__(self, loop: Loop, coro: Coroutine) -> None:
        super().__init__(loop)
        self.coro = coro
        self.cancelled = False
        self.awaited: Future | None = None
        self.step(None)

    def step(self, future: Future | None) -> None:
        if future is self.awaited or self.loop.printed.one_join:
            self.advance(self.coro.send, None)

    def cancel(self) -> None:
        if self.loop.printed.thrown_past_step:
            self.coro.throw(CancelledError())
        elif not self.done:
            self.advance(self.coro.throw, CancelledError())

    def advance(self, move: Callable[[Any], Future], value: Any) -> None:
        printed = self.loop.printed
        try:
            self.awaited = move(value)
        except CancelledError:
            self.cancelled = True
            if not printed.thrown_past_step:
                self.set_result(None)
        except StopIteration as stop:
            self.set_result(stop.value)
        except Exception as error:
            if printed.only_stop_iteration:
                raise
            self.set_result(None, error)
        else:
            self.awaited.add_done_callback(self.step)
