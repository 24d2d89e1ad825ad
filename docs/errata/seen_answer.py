"""Programs on which a slip of the answer is seen: each function runs one and says what it saw."""

from __future__ import annotations

import os
import select
import socket
import tempfile
from collections.abc import Coroutine
from typing import Any

from errata.ported_answer import (
    AsyncRead,
    AsyncRecv,
    AsyncSleep,
    Clock,
    Printed,
    Stuck,
    opened,
    opened_to_write,
    run,
)
from errata.ported_crawl import StillSpinning


def ended(printed: Printed, *coroutines: Coroutine[Any, Any, Any]) -> str:
    try:
        run(Clock(), printed, *coroutines)
    except Stuck:
        return "waits for ever"
    except Exception as error:
        return f"raises {type(error).__name__}"
    return "ends"


async def written(fd: int, *pieces: bytes) -> None:
    """Write a piece a second."""
    for number, piece in enumerate(pieces, 1):
        await AsyncSleep(float(number))
        os.write(fd, piece)


def reading(printed: Printed, *amounts: int, pieces: tuple[bytes, ...]) -> str:
    """Read a pipe with one reader for each amount; say what each of them got."""
    near, far = os.pipe()
    got: list[Any] = []

    async def reader(file: Any, amount: int) -> None:
        got.append(await AsyncRead(file, amount, printed))

    with opened(near, printed) as file:
        readers = [reader(file, amount) for amount in amounts]
        said = ended(printed, *readers, written(far, *pieces))
    os.close(far)
    for each in readers:
        each.close()
    return f"{said}; {len(got)} of {len(amounts)} readers served"


def opened_for_reading(printed: bool) -> str:
    with tempfile.NamedTemporaryFile() as there:
        with opened_to_write(
            there.name, Printed(opened_for_reading=printed)
        ) as file:
            chosen = bool(select.select([], [file], [], 0)[1])
            try:
                file.write("some text")
            except OSError as error:
                return f"select says writable: {chosen}; write raises {type(error).__name__}"
    return f"select says writable: {chosen}; written"


def text_buffer(printed: bool) -> str:
    return reading(Printed(text_buffer=printed), 2, pieces=(b"ab",))


def buffered_file(printed: bool) -> str:
    return reading(Printed(buffered_file=printed), 10, pieces=(b"12345", b"67890"))


def one_reader(printed: bool) -> str:
    return reading(Printed(one_reader=printed), 2, 2, pieces=(b"abcd",))


def unkeyed_sort(printed: bool) -> str:
    near, far = os.pipe()
    os.write(far, b"x")
    switches = Printed(unkeyed_sort=printed)

    async def sleeper() -> None:
        await AsyncSleep(1.0)

    async def reader(file: Any) -> None:
        await AsyncRead(file, 1)

    with opened(near) as file:
        coroutines = [sleeper(), sleeper(), reader(file)]
        said = ended(switches, *coroutines)
        os.close(far)
    for each in coroutines:
        each.close()
    return f"two sleepers until the same time, and a reader: {said}"


class Counting:
    """Hold a socket, and stop who asks it a thousand times without a pause."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self.sock, self.asked = sock, 0
        self.fileno = sock.fileno

    def recv(self, amount: int) -> bytes:
        self.asked += 1
        if self.asked > 1000:
            raise StillSpinning
        return self.sock.recv(amount)


def receiving(
    printed: Printed, sent: bytes, amount: int
) -> tuple[str, list[bytes]]:
    near, far = socket.socketpair()
    got = []

    async def receiver() -> None:
        got.append(await AsyncRecv(Counting(near), amount, printed))

    with near, far:
        far.sendall(sent)
        far.shutdown(socket.SHUT_WR)
        return ended(printed, receiver()), got


def blind_to_the_end(printed: bool) -> str:
    said, _ = receiving(Printed(blind_to_the_end=printed), b"only 12 here", 100)
    if said == f"raises {StillSpinning.__name__}":
        return "12 of 100 bytes, then the end: asks 1,000 times without a pause"
    return f"12 of 100 bytes, then the end: {said}"


def over_reading(printed: bool) -> str:
    _, got = receiving(Printed(over_reading=printed), b"two messages", 3)
    return f"asked for 3 bytes, got {len(got[0])}"


def sample_output(printed: bool) -> str:
    lines = []

    async def sleepy(identifier: str, count: int) -> None:
        for i in range(count):
            lines.append(f"{identifier} step {i + 1}")
            await AsyncSleep(i + 1.0)

    run(Clock(), Printed(), sleepy("background", 5))
    shown = "id background round 1" if printed else lines[0]
    return f"shown: '{shown}'; the program prints: '{lines[0]}'"
