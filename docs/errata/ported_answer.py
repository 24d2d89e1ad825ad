"""The answer's loop with its slips as switches: with all off it is cured."""

from __future__ import annotations

import io
import os
import select
import socket
from collections.abc import Coroutine, Generator
from dataclasses import dataclass
from typing import Any

FOREVER = float("inf")


@dataclass(frozen=True)
class Printed:
    """Say which lines are as the answer prints them; the letter is the slip's."""

    opened_for_reading: bool = False  # c
    text_buffer: bool = False  # d
    buffered_file: bool = False  # e
    one_reader: bool = False  # f
    unkeyed_sort: bool = False  # g
    blind_to_the_end: bool = False  # h
    over_reading: bool = False  # i


CURED = Printed()


class Stuck(Exception):
    """The loop would select for ever: nothing will become readable."""


class Clock:
    """Stand for `time.time` and `select.select`: time passes at once."""

    now = 0.0

    def select(self, files: list[Any], timeout: float | None) -> list[Any]:
        readable = select.select(files, [], [], 0)[0]
        if not readable and timeout is None:
            raise Stuck
        if not readable:
            self.now += timeout or 0
        return readable


class AsyncSleep:
    def __init__(self, until: float) -> None:
        self.until = until

    def __await__(self) -> Generator[Any, None, None]:
        yield self


class AsyncRead:
    def __init__(self, file: Any, amount: int, printed: Printed = CURED) -> None:
        self.file = file
        self.amount = amount
        self.buffer: Any = "" if printed.text_buffer else b""

    def __await__(self) -> Generator[Any, None, Any]:
        while len(self.buffer) < self.amount:
            yield self
            chunk = self.file.read(1)
            if not chunk:
                raise EOFError
            self.buffer += chunk
        return self.buffer


class AsyncRecv:
    def __init__(
        self, connection: socket.socket, amount: int, printed: Printed = CURED
    ) -> None:
        self.file = connection
        self.amount = amount
        self.printed = printed
        self.buffer = b""

    def __await__(self) -> Generator[Any, None, bytes]:
        while (missing := self.amount - len(self.buffer)) > 0:
            try:
                amount = 1024 if self.printed.over_reading else missing
                chunk = self.file.recv(amount)
            except BlockingIOError:
                yield self
                continue
            if not chunk and not self.printed.blind_to_the_end:
                raise EOFError
            self.buffer += chunk
        return self.buffer


def opened(fd: int, printed: Printed = CURED) -> io.IOBase:
    """Open a descriptor for reading as the answer does."""
    return open(fd, "rb") if printed.buffered_file else open(fd, "rb", buffering=0)


def opened_to_write(path: str | os.PathLike[str], printed: Printed) -> io.IOBase:
    return open(path) if printed.opened_for_reading else open(path, "w")


def run(
    clock: Clock, printed: Printed, *coroutines: Coroutine[Any, Any, Any]
) -> None:
    """Run all these coroutines: read what is readable, or wake a sleeper."""
    waiting: list[tuple[float, Any]] = [(0.0, each) for each in coroutines]
    reading: dict[Any, list[Any]] = {}
    while waiting or reading:
        until, coroutine = waiting.pop(0) if waiting else (FOREVER, None)
        timeout = None if until == FOREVER else max(0.0, until - clock.now)
        readable = clock.select(list(reading), timeout)
        if readable and clock.now < until:
            if coroutine is not None:
                waiting.append((until, coroutine))
                if printed.unkeyed_sort:
                    waiting.sort()
                else:
                    waiting.sort(key=lambda item: item[0])
            coroutine = reading[readable[0]].pop(0)
            if not reading[readable[0]]:
                del reading[readable[0]]
        try:
            command = coroutine.send(None)
        except StopIteration:
            continue
        if isinstance(command, AsyncSleep):
            waiting.append((command.until, coroutine))
            waiting.sort(key=lambda item: item[0])
        elif printed.one_reader:
            reading[command.file] = [coroutine]
        else:
            reading.setdefault(command.file, []).append(coroutine)
