"""Files beside the database: streams, which have each record exactly once, and locks."""

import errno
import fcntl
import hashlib
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, TypeAlias

from trio_crawler.arguments import (
    check_callable,
    check_flag,
    check_kind,
    check_path,
    check_whole,
    public,
)
from trio_crawler.model import Outcome
from trio_crawler.store.database import NAME, PRIVATE, Count, Database
from trio_crawler.store.errors import (
    InUse,
    StoreError,
    check_plain,
    file_error,
    file_errors,
    printable,
)

LOCK_FILE = "lock"
"""The name of the file that locks a directory."""

_FLAGS = os.O_RDWR | os.O_CLOEXEC | os.O_NOCTTY | os.O_NOFOLLOW | os.O_NONBLOCK


def open_file(path: Path, *, create: bool, mode: int = PRIVATE) -> int:
    """Open a file to read and to write, without waiting for the reader of a pipe.

    A new file gets the permissions `mode`. A symbolic link is not followed. Raises OSError.
    """
    return os.open(path, _FLAGS | (os.O_CREAT if create else 0), mode)


def sync_directory(directory: Path) -> None:
    """Make the names of new files durable."""
    file = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


@public("trio_crawler.store")
class FileLock:
    """An exclusive lock on an open file, until `release` or the end of the process.

    Raises BlockingIOError if the file is locked already, OSError if it cannot be locked.

    >>> with open("list.txt", "w") as file, open("list.txt") as again:
    ...     lock = FileLock(file.fileno())
    ...     try:
    ...         FileLock(again.fileno())
    ...     except BlockingIOError:
    ...         print("locked")
    ...     lock.release()
    locked
    """

    def __init__(self, file: int) -> None:
        check_whole("file", file)
        self._file = file
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def release(self) -> None:
        """Release the lock; call it before the file is closed."""
        with suppress(OSError):
            fcntl.flock(self._file, fcntl.LOCK_UN)


class Lock:
    """An exclusive lock on a directory, until `release` or the end of the process.

    The lock file has the process ID. It is never removed, since that could remove the lock file of
    the next process. Raises InUse, naming the process, if another process has the directory.
    """

    def __init__(self, directory: Path) -> None:
        self._path = directory / LOCK_FILE
        with file_errors(self._path):
            self._file = open_file(self._path, create=True)
        with ExitStack() as on_error:
            on_error.callback(os.close, self._file)
            with file_errors(self._path):
                check_plain(self._path, os.fstat(self._file), to_write=True)
            with file_errors(self._path):
                try:
                    self._lock = FileLock(self._file)
                except BlockingIOError as error:
                    number = os.pread(self._file, 20, 0).strip()
                    by = f" (process {number.decode()})" if number.isdigit() else ""
                    raise InUse(
                        f"{printable(directory)}: another crawl is using it{by}: "
                        "wait for its end, or give another directory"
                    ) from error
            on_error.callback(self._lock.release)
            with file_errors(self._path):
                os.ftruncate(self._file, 0)
                os.pwrite(self._file, b"%d\n" % os.getpid(), 0)
            on_error.pop_all()
        self._locked = True

    @property
    def removed(self) -> bool:
        """Whether the lock file was removed; a directory that was moved still has it."""
        with file_errors(self._path):
            return not os.fstat(self._file).st_nlink

    def release(self) -> None:
        """Release the directory; may be called again."""
        if self._locked:
            self._locked = False
            self._lock.release()
            os.close(self._file)


TAIL = 4_096
"""The digest of this many bytes at the end of the committed records detects a changed file."""

Head: TypeAlias = Callable[[], bytes | Iterable[bytes]]
"""A function that returns the beginning of a new file, as bytes or in pieces."""

# The process's umask decides who may read it.
_SHARED = 0o666

_OWN_FILES = frozenset({NAME, f"{NAME}-wal", f"{NAME}-shm", LOCK_FILE})


@public("trio_crawler.store")
class Stream:
    """A file of records at `path`; the database has the number of its `committed` bytes.

    `encode` returns the records of an outcome, `head` the beginning of a new file, as bytes or in
    pieces, and `rest` any other records since its last call; the thread that writes calls them.
    `is_new` is whether the file had no record when it was opened.

    If `committed` is None the file is new to the crawl, and must be empty. Bytes beyond
    `committed` were written by a run that was killed before its transaction, and are cut off; if
    the last run has `closed` the file, there must be none. The end of the committed bytes must
    have the digest `tail`. With `private` only its owner may read a new file. Raises StoreError
    if the file cannot be written, is not a plain file, is in use by another crawl or stream, or
    does not have the committed bytes; a symbolic link is not followed.

    >>> web = Web({"/": html("/a"), "/a": html()})
    >>> async def kept() -> None:
    ...     async with SqliteFrontier("site", meaning={}) as frontier:
    ...         stream: Stream = frontier.stream("site.jsonl", encode=to_jsonl)
    ...         async with Crawler([web.url], fetch=web, frontier=frontier).outcomes() as outcomes:
    ...             async for outcome in outcomes:
    ...                 stream.add(outcome)
    >>> trio.run(kept)
    >>> len(Path("site.jsonl").read_text().splitlines())
    2
    """

    def __init__(
        self,
        path: Path,
        committed: int | None,
        tail: bytes | None,
        encode: Callable[[Outcome], bytes],
        head: Head = bytes,
        rest: Callable[[], bytes] = bytes,
        *,
        closed: bool = False,
        private: bool = False,
    ) -> None:
        check_kind("path", path, Path, "a Path")
        if committed is not None:
            check_whole("committed", committed)
        check_kind("tail", tail, bytes | None, "a digest as bytes, or None")
        check_callable("encode", encode, "a function from an outcome to bytes")
        check_callable("head", head, "a function that returns bytes")
        check_callable("rest", rest, "a function that returns bytes")
        check_flag("closed", closed)
        check_flag("private", private)
        self.path = path
        self.committed = committed or 0
        self.is_new = not committed
        self._encode = encode
        self._head = head
        self._rest = rest
        self._added: list[Outcome] = []
        self._written = self.committed
        self._tail = b""
        self._locked: FileLock | None = None
        self._file = self._open(PRIVATE if private else _SHARED)
        try:
            self._check(tail, new=committed is None, closed=closed)
        except BaseException:
            self.close()
            raise

    def add(self, outcome: Outcome) -> None:
        """Add an outcome; its record is written with the next URL that is settled, or later."""
        check_kind("outcome", outcome, Outcome, "an outcome")
        self._added.append(outcome)

    def pop(self) -> list[Outcome]:
        """Return the outcomes that were added since the last call."""
        added, self._added = self._added, []
        return added

    def _open(self, mode: int) -> int:
        try:
            # A file with committed records must exist.
            return open_file(self.path, create=self.is_new, mode=mode)
        except FileNotFoundError as error:
            if self.is_new:
                raise file_error(self.path, error) from error
            raise self._changed("it is gone") from error
        except OSError as error:
            if error.errno == errno.ENXIO:
                raise self._not_plain() from error
            raise file_error(self.path, error) from error

    def _check(self, tail: bytes | None, *, new: bool, closed: bool) -> None:
        """Cut off what was not committed. Raises StoreError for another or a changed file."""
        with file_errors(self.path):
            about = os.fstat(self._file)
        if not stat.S_ISREG(about.st_mode):
            raise self._not_plain()
        if about.st_size < self.committed or (closed and about.st_size > self.committed):
            raise self._changed(f"it has {about.st_size:,} bytes, not {self.committed:,}")
        self._lock()
        if new:
            check_plain(self.path, about, to_write=True)
        if new and about.st_size:
            raise StoreError(
                f"{printable(self.path)}: it exists already, and does not belong to this crawl: "
                "move it away, or give another path"
            )
        with file_errors(self.path):
            size = min(TAIL, self.committed)
            self._tail = os.pread(self._file, size, self.committed - size)
        if self.committed and self.tail != tail:
            raise self._changed("it has other content")
        with file_errors(self.path):
            os.ftruncate(self._file, self.committed)
            if self.is_new:
                sync_directory(self.path.parent)

    @property
    def tail(self) -> bytes:
        """The digest of the last bytes that were written."""
        return hashlib.sha1(self._tail, usedforsecurity=False).digest()

    def _lock(self) -> None:
        with file_errors(self.path), suppress(BlockingIOError):
            self._locked = FileLock(self._file)
            return
        by = "another crawl or stream"
        raise InUse(f"{printable(self.path)}: {by} is writing to it: give another path")

    def _changed(self, what: str) -> StoreError:
        return StoreError(
            f"{printable(self.path)}: {what}, although the crawl wrote it: "
            "restore it, or give another path"
        )

    def _not_plain(self) -> StoreError:
        return StoreError(
            f"{printable(self.path)}: it is not a plain file, so a later run could not cut it "
            "back: give another path"
        )

    def records(self, outcomes: list[Outcome]) -> Iterator[bytes]:
        """Yield the records of outcomes, after the head if the file is empty."""
        if not self._written:
            head = self._head()
            yield from (head,) if isinstance(head, bytes) else head
        yield b"".join([*map(self._encode, outcomes), self._rest()])

    def append(self, pieces: Iterable[bytes]) -> int | None:
        """Append data to the file and flush it to the disk; return the new length.

        None if there are no data.
        """
        before = self._written
        for data in filter(None, pieces):
            with file_errors(self.path):
                about = os.fstat(self._file)
                if self._written == before and (
                    not about.st_nlink or about.st_size < self._written
                ):
                    raise self._changed("it was removed or cut during the crawl")
                rest = memoryview(data)
                while rest:
                    count = os.pwrite(self._file, rest, self._written)
                    self._written += count
                    rest = rest[count:]
            self._tail = (self._tail + data[-TAIL:])[-TAIL:]
        if self._written == before:
            return None
        with file_errors(self.path):
            os.fsync(self._file)
        return self._written

    def commit(self) -> None:
        """Count all appended bytes as committed."""
        self.committed = self._written

    def roll_back(self, length: int) -> None:
        """Cut the file back to a length; if that fails, the next opening does it."""
        self._written = self.committed = length
        with suppress(OSError):
            if os.fstat(self._file).st_size > length:
                os.ftruncate(self._file, length)

    def close(self) -> None:
        """Close the file; may be called again."""
        if self._file >= 0:
            if self._locked is not None:
                self._locked.release()
            os.close(self._file)
            self._file = -1


_ROW: Any = tuple[Count | None, bytes | None, int, int]


class StreamSet:
    """The streams of one run, and their rows in the database.

    A stream is known by its path relative to the directory, so that both may be moved together.
    Every method but `roll_back` and `close` raises StoreError.
    """

    def __init__(self, directory: Path, database: Database) -> None:
        self._directory = directory
        self._database = database
        self._streams: dict[str, Stream] = {}
        self._marked = False

    def open(
        self,
        path: str | Path,
        encode: Callable[[Outcome], bytes],
        head: Head,
        rest: Callable[[], bytes],
        *,
        private: bool = False,
    ) -> Stream:
        """Open a new file, or one of this crawl; any other file is not touched.

        A file in the directory is private, as the directory is.
        """
        check_path("path", path)
        name = _relative_path(self._directory, path)
        if name in _OWN_FILES:
            raise StoreError(
                f"{printable(path)}: it is a file of the crawl itself: give another path"
            )
        sql = "SELECT length, tail, behind, closed FROM streams WHERE path = ?"
        found = self._database.read(_ROW, sql, name)
        length, tail, behind, closed = found[0] if found else (None, None, False, False)
        if behind:
            raise StoreError(
                f"{printable(path)}: a run has gone on without it, so records are missing: "
                "give another path"
            )
        private = private or not (os.path.isabs(name) or name.startswith("../"))
        how = {"closed": bool(closed), "private": private}
        stream = Stream(Path(path), length, tail, encode, head, rest, **how)
        try:
            # Before the first write, so that bytes of a killed run are known as the crawl's own.
            self._database.execute(
                "INSERT INTO streams (path, length, behind, closed) VALUES (?, 0, 0, 0) "
                "ON CONFLICT (path) DO UPDATE SET closed = 0",
                name,
            )
        except BaseException:
            stream.close()
            raise
        self._streams[name] = stream
        return stream

    def append(self, writes: Iterable[tuple[Stream, list[Outcome]]]) -> dict[str, int]:
        """Write the records of outcomes to their streams; return the new lengths by name.

        A new file gets its head also without outcomes. No record counts before `record`.
        """
        outcomes_of: dict[int, list[Outcome]] = {}
        for stream, outcomes in writes:
            outcomes_of.setdefault(id(stream), []).extend(outcomes)
        lengths = {
            name: stream.append(stream.records(outcomes_of.get(id(stream), [])))
            for name, stream in self._streams.items()
        }
        return {name: length for name, length in lengths.items() if length is not None}

    def record(self, lengths: Mapping[str, int], *, settled: bool) -> None:
        """Record new lengths, and whether this run has settled a URL; inside a transaction."""
        sql = "UPDATE streams SET length = ?, tail = ? WHERE path = ?"
        written = ((at, self._streams[name].tail, name) for name, at in lengths.items())
        self._database.execute_many(sql, written)
        if settled and not self._marked:
            # The streams of earlier runs that this run does not write lack its records.
            found = self._database.rows("SELECT path FROM streams")
            behind = [row for row in found if row[0] not in self._streams]
            self._database.execute_many("UPDATE streams SET behind = 1 WHERE path = ?", behind)
            self._marked = True

    def commit(self, lengths: Iterable[str]) -> None:
        """Count the records in the streams with these names as committed."""
        for name in lengths:
            self._streams[name].commit()

    def roll_back(self) -> None:
        """Cut the streams back to their lengths in the database, if it can be read."""
        try:
            lengths = dict(
                self._database.read(tuple[str, int], "SELECT path, length FROM streams")
            )
        except StoreError:
            return
        for name, stream in self._streams.items():
            stream.roll_back(lengths.get(name, 0))

    def end(self) -> None:
        """Record the end of the run: in the next run the files must have the same length."""
        sql = "UPDATE streams SET closed = 1 WHERE path = ?"
        self._database.execute_many(sql, [(name,) for name in self._streams])

    def close(self) -> None:
        """Close the files; may be called again."""
        for stream in self._streams.values():
            stream.close()
        self._streams.clear()


def is_own_file(directory: Path, database: Database, path: str | Path) -> bool:
    """Whether a file belongs to the crawl: its database, its lock, or one of its streams."""
    name = _relative_path(directory, path)
    if name in _OWN_FILES:
        return True
    return bool(database.rows("SELECT 1 FROM streams WHERE path = ?", name))


def _relative_path(directory: Path, path: str | Path) -> str:
    """Return the path of a file relative to a directory, with symbolic links resolved."""
    with file_errors(Path(path)):
        whole, inside = Path(path).resolve(), directory.resolve()
    # A path need not be UTF-8.
    return os.path.relpath(whole, inside).encode("utf-8", "backslashreplace").decode()
