"""Exclusive file locks, and files that are opened without following a link."""

from __future__ import annotations

import fcntl
import os
from contextlib import ExitStack, suppress
from pathlib import Path

from trio_crawler.arguments import check_whole, public
from trio_crawler.store.errors import InUse, check_plain, file_errors, printable

LOCK_FILE = "lock"
"""The name of the file that locks a directory."""

_FLAGS = os.O_RDWR | os.O_CLOEXEC | os.O_NOCTTY | os.O_NOFOLLOW | os.O_NONBLOCK

PRIVATE, PRIVATE_DIRECTORY = 0o600, 0o700
"""The permissions of a crawl: its files may hold cookies, and pages of a login."""


def open_file(path: Path, *, create: bool, mode: int = PRIVATE) -> int:
    """Open a file to read and to write, without waiting for the reader of a pipe.

    A new file gets the permissions `mode`. A symbolic link is not followed. Raises OSError.
    """
    return os.open(path, _FLAGS | (os.O_CREAT if create else 0), mode)


def make_file(path: Path) -> None:
    """Make an empty file where there is nothing, not even a symbolic link. Raises OSError."""
    os.close(os.open(path, _FLAGS | os.O_CREAT | os.O_EXCL, PRIVATE))


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
