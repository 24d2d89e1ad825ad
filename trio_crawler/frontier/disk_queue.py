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

# Jobs of a block. A smaller one would cost a system call for a few jobs, a larger one would block
# the event loop for long. Blocks get smaller so that all queues keep some `_JOBS` jobs in memory.
_MIN_BLOCK, _MAX_BLOCK = 4, 200
_JOBS = 50_000

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[StoredJob]).decode


def nameless_file(directory: Path) -> RawIOBase:
    """Return a new file without a name, which no crash leaves behind. The caller closes it."""
    return TemporaryFile(buffering=0, dir=directory)


class DiskQueueFile:
    """A file for the blocks of many queues; the first block opens it, by a call to `opened`.

    The file does not shrink until all blocks are read; then it is emptied. `close` closes it.
    Raises StoreError for an OSError; nothing has changed then.
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
        # The number of jobs of a block.
        self.block = _MAX_BLOCK

    def __len__(self) -> int:
        return self._end

    def add_queue(self) -> None:
        """Count one queue more: with more queues the blocks get smaller."""
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
        """Close the file; its jobs are lost."""
        if self._file is not None:
            self._file.close()

    def _open(self) -> RawIOBase:
        if self._file is None:
            self._file = self._opened(self._directory)
        return self._file


class DiskQueue:
    """A first-in, first-out queue of jobs, with all but the first and the last in a file.

    A job in the file takes a few bytes of memory; a short queue never uses the file. The jobs must
    be StoredJobs, and none may be blocked by a Fault. If a call raises StoreError, no job was
    added, removed or lost, and the call may be repeated.
    """

    __slots__ = ("_blocks", "_count", "_file", "_head", "_next", "_tail")

    def __init__(self, file: DiskQueueFile) -> None:
        file.add_queue()
        self._file = file
        self._count = 0
        # The oldest job is the last of these.
        self._head: list[Job] = []
        # The blocks after the head, from index `_next` on: offset, length, offset, ...
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
            # On average each entry is moved at most once.
            del self._blocks[: self._next]
            self._next = 0
        self._file.forget()

    def _swap(self) -> None:
        self._head, self._tail = self._tail, self._head
        self._head.reverse()
