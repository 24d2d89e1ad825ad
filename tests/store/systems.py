"""Make this process look like one on Windows, without POSIX's files and locks."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import types
from importlib.abc import MetaPathFinder

import httpx
import trio

# These look at the system when they are imported, which was before.
assert subprocess
assert httpx
assert trio

# Python 3.13 itself needs O_NONBLOCK, except on Windows.
_ONLY_POSIX = ("pread", "pwrite", "O_CLOEXEC", "O_NOCTTY", "O_DIRECTORY")


class _Missing(MetaPathFinder):
    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name == "fcntl":
            raise ModuleNotFoundError(f"No module named {name!r}")


def windows() -> None:
    """Hide what POSIX alone has; put a `msvcrt` in place that locks one byte."""
    sys.meta_path.insert(0, _Missing())
    sys.modules.pop("fcntl", None)
    for name in _ONLY_POSIX:
        delattr(os, name)
    msvcrt = types.ModuleType("msvcrt")
    msvcrt.LK_NBLCK, msvcrt.LK_UNLCK = 2, 0
    held = {}

    def locking(file: int, mode: int, count: int) -> None:
        place = os.lseek(file, 0, os.SEEK_CUR)
        if mode == msvcrt.LK_UNLCK:
            assert held.pop(file) == (place, count)
            fcntl.flock(file, fcntl.LOCK_UN)
            return
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise PermissionError(13, "Permission denied") from None
        held[file] = place, count

    msvcrt.locking = locking
    sys.modules["msvcrt"] = msvcrt
