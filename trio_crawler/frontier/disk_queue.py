"""The disk queue: a queue of jobs with only its two ends in memory."""

from __future__ import annotations

import errno
from array import array
from collections.abc import Callable, Sequence
from io import RawIOBase
from pathlib import Path
from tempfile import TemporaryFile

import msgspec

from trio_crawler.frontier.url_index import StoredJob
from trio_crawler.model import Job
from trio_crawler.store.errors import file_errors

# A smaller block would cost a system call for a few jobs, a larger one would hold the event loop
# for long. As long as there are few queues, all their blocks in memory have `_JOBS` jobs.
_MIN_BLOCK, _MAX_BLOCK = 4, 200
_JOBS = 50_000

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[StoredJob]).decode


def nameless_file(directory: Path) -> RawIOBase:
    """Open a file without a name, so that no crash leaves it behind."""
    return TemporaryFile(buffering=0, dir=directory)


class DiskQueueFile:
    """Store the blocks of many queues in one file, which `opened` opens with the first block.

    The file does not shrink until all blocks are read; then it is emptied. `close` closes it. An
    error of the system is raised as StoreError, and then nothing was changed.
    """

    def __init__(
        self, directory: str | Path, *, opened: Callable[[Path], RawIOBase] = nameless_file
    ) -> None:
        self._directory = Path(directory)
        self._opened = opened
        self._file: RawIOBase | None = None
        self._end = 0
        self._blocks = 0
        self._queues = 0
        # The jobs of a block.
        self.block = _MAX_BLOCK

    def __len__(self) -> int:
        return self._end

    def add_queue(self) -> None:
        """Count one queue more: blocks get smaller as queues get more."""
        self._queues += 1
        self.block = min(_MAX_BLOCK, max(_MIN_BLOCK, _JOBS // self._queues))

    def write(self, jobs: Sequence[Job]) -> tuple[int, int]:
        """Write a block; return its offset and its length in bytes."""
        block = memoryview(_encode(jobs))
        written = 0
        with file_errors(self._directory):
            file = self._open()
            file.seek(self._end)
            while written < len(block):
                written += file.write(block[written:]) or 0
        offset, self._end = self._end, self._end + written
        self._blocks += 1
        return offset, written

    def read(self, offset: int, length: int) -> list[StoredJob]:
        """Return the jobs of a block."""
        block = b""
        with file_errors(self._directory):
            file = self._open()
            file.seek(offset)
            while len(block) < length:
                more = file.read(length - len(block))
                if not more:
                    raise OSError(errno.EIO, "the file of waiting URLs has been truncated")
                block += more
        return _decode(block)

    def forget(self) -> None:
        """Count one block less; after the last the file is emptied."""
        self._blocks -= 1
        if not self._blocks:
            self._end = 0
            with file_errors(self._directory):
                self._open().truncate(0)

    def close(self) -> None:
        """Close the file: what is in it is lost."""
        if self._file is not None:
            self._file.close()

    def _open(self) -> RawIOBase:
        if self._file is None:
            self._file = self._opened(self._directory)
        return self._file


class DiskQueue:
    """Queue jobs first in, first out; all but the first and the last are in a file.

    A job in the file takes a few bytes of memory; a queue that is short never touches it. The jobs
    are StoredJobs, and none is blocked by a Fault. When a call raises StoreError, no job was
    added, removed or lost, and the call may be repeated.
    """

    __slots__ = ("_blocks", "_count", "_file", "_head", "_next", "_tail")

    def __init__(self, file: DiskQueueFile) -> None:
        file.add_queue()
        self._file = file
        self._count = 0
        # The oldest job is the last of these.
        self._head: list[Job] = []
        # The blocks that come after the head: offset, length, offset, ..., from `_next` on.
        self._blocks: array[int] | None = None
        self._next = 0
        self._tail: list[Job] = []

    def __len__(self) -> int:
        return self._count

    def put(self, job: Job) -> None:
        """Add a job."""
        if len(self._tail) >= self._file.block:
            self._empty_tail()
        self._tail.append(job)
        self._count += 1

    def peek(self) -> Job:
        """Return the oldest job."""
        if not self._head:
            self._fill_head()
        return self._head[-1]

    def pop(self) -> Job:
        """Remove and return the oldest job."""
        if not self._head:
            self._fill_head()
        job = self._head.pop()
        self._count -= 1
        return job

    def _empty_tail(self) -> None:
        if self._head or self._blocks:
            place = self._file.write(self._tail)
            self._blocks = self._blocks or array("Q")
            self._blocks.extend(place)
            self._tail.clear()
        else:
            self._swap()

    def _fill_head(self) -> None:
        if not self._blocks:
            self._swap()
            return
        offset, length = self._blocks[self._next : self._next + 2]
        self._head.extend(reversed(self._file.read(offset, length)))
        self._next += 2
        if self._next * 2 >= len(self._blocks):
            # Each entry is moved once at most, on the average.
            del self._blocks[: self._next]
            self._next = 0
        self._file.forget()

    def _swap(self) -> None:
        self._head, self._tail = self._tail, self._head
        self._head.reverse()
