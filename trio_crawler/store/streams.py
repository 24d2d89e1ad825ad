"""Streams: files beside the database that hold each record exactly once."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import stat
from collections.abc import Callable, Container
from contextlib import suppress
from pathlib import Path

from trio_crawler.model import Outcome
from trio_crawler.store.errors import InUse, StoreError
from trio_crawler.store.faults import of_file, of_files, shown

TAIL = 4_096
"""Bytes at the end of what is committed that tell whether a file is still the same."""


class Stream:
    """Append records to a file of which so many bytes are `committed`.

    What stands behind those was written by a run that ended before its transaction, and is cut
    off; but if that run has `closed` it, nothing may stand there. The last of what is committed
    must have the digest `tail`. With None committed the file is new to the crawl, and must be
    empty. `encode` makes the records of an outcome, `head` what a new file
    begins with, and `rest` what came up since the last time besides outcomes; all are called in
    the thread that writes.

    Raises StoreError when the file cannot be written, is no plain file, is in use by another
    crawl, or does not hold what was committed.
    """

    def __init__(
        self,
        path: Path,
        committed: int | None,
        tail: bytes | None,
        encode: Callable[[Outcome], bytes],
        head: Callable[[], bytes] = bytes,
        rest: Callable[[], bytes] = bytes,
        *,
        closed: bool = False,
    ) -> None:
        self.path = path
        self.committed = committed or 0
        self.fresh = not committed
        self._encode = encode
        self._head = head
        self._rest = rest
        self._added: list[Outcome] = []
        self._written = self.committed
        self._tail = b""
        self._file = self._opened()
        try:
            self._check(new=committed is None, closed=closed)
            self._compare(tail)
            self._cut()
        except BaseException:
            self.close()
            raise

    def __repr__(self) -> str:
        return f"<Stream {shown(self.path)}: {self.committed} bytes>"

    def add(self, outcome: Outcome) -> None:
        """Take an outcome; it is written with the transaction that settles its URL, or later."""
        self._added.append(outcome)

    def take(self, unsettled: Container[str] = ()) -> list[Outcome]:
        """Give what was added, and keep it no longer; but for those of `unsettled` URLs."""
        added = self._added
        self._added = [outcome for outcome in added if outcome.url in unsettled] if added else []
        if not self._added:
            return added
        return [outcome for outcome in added if outcome.url not in unsettled]

    def is_file(self, path: str | Path) -> bool:
        """Tell whether a path leads to this very file."""
        try:
            return os.path.samestat(os.fstat(self._file), os.stat(path))
        except OSError:
            return False

    def _opened(self) -> int:
        flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK
        # What was committed must be there.
        flags |= os.O_CREAT if self.fresh else 0
        try:
            return os.open(self.path, flags, 0o666)
        except FileNotFoundError as error:
            if self.fresh:
                raise of_file(self.path, error) from error
            raise self._lost("it is gone") from error
        except OSError as error:
            if error.errno == errno.ENXIO:
                raise self._not_plain() from error
            raise of_file(self.path, error) from error

    def _check(self, *, new: bool, closed: bool) -> None:
        with of_files(self.path):
            about = os.fstat(self._file)
        if not stat.S_ISREG(about.st_mode):
            raise self._not_plain()
        if about.st_size < self.committed or (closed and about.st_size > self.committed):
            raise self._lost(f"it holds {about.st_size:,} bytes, not {self.committed:,}")
        self._lock()
        if new and about.st_size:
            raise StoreError(
                f"{shown(self.path)}: it is there already, and not of this crawl: "
                "move it away, or give another path"
            )

    def _compare(self, tail: bytes | None) -> None:
        """Refuse a file that is another one by now, or has been changed."""
        with of_files(self.path):
            size = min(TAIL, self.committed)
            self._tail = os.pread(self._file, size, self.committed - size)
        if self.committed and self.tail != tail:
            raise self._lost("it holds something else")

    @property
    def tail(self) -> bytes:
        """Return the digest of the last bytes that were written."""
        return hashlib.sha1(self._tail, usedforsecurity=False).digest()

    def _lock(self) -> None:
        with of_files(self.path), suppress(BlockingIOError):
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        raise InUse(f"{shown(self.path)}: another crawl is writing to it: give another path")

    def _cut(self) -> None:
        with of_files(self.path):
            os.ftruncate(self._file, self.committed)
            if self.fresh:
                _sync_directory(self.path)

    def _lost(self, what: str) -> StoreError:
        return StoreError(
            f"{shown(self.path)}: {what}, though the crawl wrote it: "
            "put it back, or give another path"
        )

    def _not_plain(self) -> StoreError:
        return StoreError(
            f"{shown(self.path)}: it is not a plain file, so a crawl that goes on could not cut "
            "it back: give another path"
        )

    def records(self, outcomes: list[Outcome]) -> bytes:
        """Make the bytes of outcomes, behind the head if nothing is there."""
        head = b"" if self._written else self._head()
        return b"".join([head, *map(self._encode, outcomes), self._rest()])

    def append(self, data: bytes) -> int:
        """Write behind what is committed, down to the disk; return the new length."""
        with of_files(self.path):
            about = os.fstat(self._file)
            if not about.st_nlink or about.st_size < self._written:
                raise self._lost("somebody removed or cut it meanwhile")
            rest = memoryview(data)
            while rest:
                count = os.pwrite(self._file, rest, self._written)
                self._written += count
                rest = rest[count:]
            os.fsync(self._file)
        self._tail = (self._tail + data[-TAIL:])[-TAIL:]
        return self._written

    def commit(self) -> None:
        """Note that what was appended counts."""
        self.committed = self._written

    def cut_back(self, length: int) -> None:
        """Forget what was appended behind a length. May fail, and then the next open does it."""
        self._written = self.committed = length
        with suppress(OSError):
            if os.fstat(self._file).st_size > length:
                os.ftruncate(self._file, length)

    def close(self) -> None:
        """Close the file."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def _sync_directory(path: Path) -> None:
    """Make sure that the name of a new file lasts."""
    directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
