"""Show what the chapter draws in its figures 5.1 to 5.3: frames, and where they are."""

from __future__ import annotations

import dis
import inspect
from collections.abc import Generator
from types import FrameType


def foo() -> FrameType:
    return bar()


def bar() -> FrameType:
    return inspect.currentframe()


def talk() -> Generator[int, str, str]:
    heard = yield 1
    return heard


def ask() -> Generator[int, str, str]:
    said = yield from talk()
    return said


def place(frame: FrameType) -> str:
    return f"{frame.f_code.co_name}, f_lasti {frame.f_lasti}"


if __name__ == "__main__":
    kept = foo()
    print(
        f"5.1: kept after its return: {place(kept)}; behind it {place(kept.f_back)}"
    )
    one, other = talk(), talk()
    one.send(None)
    print(
        f"5.2: one of two: {place(one.gi_frame)}; the other {other.gi_frame.f_lasti}"
    )
    dis.disassemble(one.gi_code, one.gi_frame.f_lasti)
    asking = ask()
    asking.send(None)
    print(
        f"5.3: {place(asking.gi_frame)}, and below it {place(asking.gi_yieldfrom.gi_frame)}"
    )
