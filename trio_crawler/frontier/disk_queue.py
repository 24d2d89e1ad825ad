"""Spill: a line of jobs of which only both ends are in memory."""

from __future__ import annotations

import errno
import os
from array import array
from collections.abc import Sequence
from dataclasses import fields
from io import FileIO
from itertools import starmap
from operator import attrgetter
from pathlib import Path
from tempfile import TemporaryFile

import msgspec

from trio_crawler.frontier.filed import Filed
from trio_crawler.model import Job, Purpose, Reason, Validator
from trio_crawler.store.faults import of_files

# Jobs in all the blocks that lines have in memory, as long as there are few lines; and in a block:
# less would cost a call of the system for a handful, more would hold the event loop for long.
_WINDOW, _LEAST, _MOST = 50_000, 4, 200

# Real types, not classes whose annotations would be looked up in what is their module by name.
_Row = tuple[
    str, int, int, str | None, int, Purpose, float | None, Validator | None, Reason | None, int
]
_row = attrgetter(*(each.name for each in fields(Filed)))
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[_Row]).decode


class SpillFile:
    """Keep the blocks of many lines in one file without a name, which no crash leaves behind.

    It is made in `directory` with the first block. It does not become shorter before all that is
    in it was read: then it is emptied. Let `close` be called in the end. Whatever the system says
    against reading or writing is raised, as StoreError; then nothing was changed.
    """

    def __init__(self, directory: str | Path) -> None:
        self._directory = Path(directory)
        self._file: FileIO | None = None
        self._end = 0
        self._blocks = 0
        self._lines = 0
        # How many jobs make a block.
        self.block = _MOST

    def __len__(self) -> int:
        return self._end

    def join(self) -> None:
        """Note that there is one more line."""
        self._lines += 1
        self.block = min(_MOST, max(_LEAST, _WINDOW // self._lines))

    def write(self, jobs: Sequence[Job]) -> tuple[int, int]:
        """Keep a block; return its offset and its length in bytes."""
        block = memoryview(_encode(list(map(_row, jobs))))
        offset, written = self._end, 0
        with of_files(self._directory):
            number = self._open()
            while written < len(block):
                written += os.pwrite(number, block[written:], offset + written)
        self._end += written
        self._blocks += 1
        return offset, written

    def read(self, offset: int, length: int) -> list[Filed]:
        """Return the jobs of a block."""
        with of_files(self._directory):
            number = self._open()
            block = os.pread(number, length, offset)
            while len(block) < length:
                more = os.pread(number, length - len(block), offset + len(block))
                if not more:
                    raise OSError(errno.EIO, "a file of waiting URLs was cut")
                block += more
        return list(starmap(Filed, _decode(block)))

    def forget(self) -> None:
        """Note that one block is not needed any more."""
        self._blocks -= 1
        if not self._blocks:
            self._end = 0
            with of_files(self._directory):
                os.ftruncate(self._open(), 0)

    def close(self) -> None:
        """Give the file up; what is in it is lost."""
        if self._file is not None:
            self._file.close()

    def _open(self) -> int:
        if self._file is None:
            # It is open as long as this is, and closed by `close`.
            self._file = TemporaryFile(buffering=0, dir=self._directory)  # noqa: SIM115
        return self._file.fileno()


class Spill:
    """Keep jobs, each of them Filed, as they came; all but the first and the last in a file.

    A job in the file takes a few bytes of memory; a line that is short never touches it. None may
    be refused by a Fault: what waits is not refused yet. When a call raises StoreError, no job was
    added, taken, or lost, and the call may be repeated.
    """

    __slots__ = ("_blocks", "_count", "_file", "_head", "_next", "_tail")

    def __init__(self, file: SpillFile) -> None:
        file.join()
        self._file = file
        self._count = 0
        # The first of all is the last of these.
        self._head: list[Job] = []
        # Where the blocks are which come after these: offset, length, and so on, from `_next` on.
        self._blocks: array[int] | None = None
        self._next = 0
        self._tail: list[Job] = []

    def __len__(self) -> int:
        return self._count

    def put(self, job: Job) -> None:
        """Add a job."""
        if len(self._tail) >= self._file.block:
            self._make_room()
        self._tail.append(job)
        self._count += 1

    def peek(self) -> Job:
        """Return the oldest job."""
        if not self._head:
            self._refill()
        return self._head[-1]

    def pop(self) -> Job:
        """Take the oldest job."""
        if not self._head:
            self._refill()
        job = self._head.pop()
        self._count -= 1
        return job

    def _make_room(self) -> None:
        if self._head or self._blocks:
            place = self._file.write(self._tail)
            self._blocks = self._blocks or array("Q")
            self._blocks.extend(place)
            self._tail.clear()
        else:
            self._turn()

    def _refill(self) -> None:
        if not self._blocks:
            self._turn()
            return
        self._head.extend(
            reversed(self._file.read(self._blocks[self._next], self._blocks[self._next + 1]))
        )
        self._next += 2
        if self._next * 2 >= len(self._blocks):
            # Each entry is moved once at most, on the average.
            del self._blocks[: self._next]
            self._next = 0
        self._file.forget()

    def _turn(self) -> None:
        self._head, self._tail = self._tail, self._head
        self._head.reverse()
