"""Exclusive file locks, and reads and writes at an offset, on every system.

POSIX has `fcntl` and positioned reads and writes; Windows has `msvcrt`.
"""

from __future__ import annotations

import errno
import os
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from trio_crawler.arguments import check_whole
from trio_crawler.store.errors import InUse, check_plain, file_errors, printable

_msvcrt: Any = None
try:
    import fcntl
except ImportError:
    import msvcrt as _msvcrt

LOCK_FILE = "lock"
"""The name of the file that locks a directory."""

# Windows locks bytes, and no other process can read a locked byte: few files are this long.
_WINDOWS_BYTE = 2**31 - 2
_FLAGS = os.O_RDWR
for _name in ("O_CLOEXEC", "O_NOCTTY", "O_NOFOLLOW", "O_NONBLOCK", "O_BINARY"):
    _FLAGS |= getattr(os, _name, 0)

PRIVATE, PRIVATE_DIRECTORY = 0o600, 0o700
"""The permissions of a crawl: its files may hold cookies, and pages of a login."""


def open_file(path: Path, *, create: bool, mode: int = PRIVATE) -> int:
    """Open a file to read and to write, without waiting for the reader of a pipe.

    A new file gets the permissions `mode`. A symbolic link is not followed. Raises OSError.
    """
    if not hasattr(os, "O_NOFOLLOW") and path.is_symlink():
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
    return os.open(path, _FLAGS | (os.O_CREAT if create else 0), mode)


def make_file(path: Path) -> None:
    """Make an empty file where there is nothing, not even a symbolic link. Raises OSError."""
    os.close(os.open(path, _FLAGS | os.O_CREAT | os.O_EXCL, PRIVATE))


def read_at(file: int, size: int, place: int) -> bytes:
    """Return up to `size` bytes from the offset `place` on."""
    if hasattr(os, "pread"):
        return os.pread(file, size, place)
    os.lseek(file, place, os.SEEK_SET)
    return os.read(file, size)


def write_at(file: int, data: memoryview | bytes, place: int) -> int:
    """Write data at the offset `place`; return the number of bytes written."""
    if hasattr(os, "pwrite"):
        return os.pwrite(file, data, place)
    os.lseek(file, place, os.SEEK_SET)
    return os.write(file, data)


def sync_directory(directory: Path) -> None:
    """Make the names of new files durable, on systems that can open a directory."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    file = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


class FileLock:
    """An exclusive lock on an open file, until `release` or the end of the process.

    Raises BlockingIOError if the file is locked already, OSError if it cannot be locked. On
    Windows a lock moves the position of the file.

    >>> with open("list.txt", "w") as file, open("list.txt") as again:
    ...     lock = FileLock(file.fileno())
    ...     try:
    ...         FileLock(again.fileno())
    ...     except BlockingIOError:
    ...         print("locked")
    ...     lock.release()
    locked
    """

    __module__ = "trio_crawler.store"

    def __init__(self, file: int) -> None:
        check_whole("file", file)
        self._file = file
        if _msvcrt is None:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        else:
            self._windows(_msvcrt.LK_NBLCK)

    def release(self) -> None:
        """Release the lock; call it before the file is closed."""
        with suppress(OSError):
            if _msvcrt is None:
                fcntl.flock(self._file, fcntl.LOCK_UN)
            else:
                self._windows(_msvcrt.LK_UNLCK)

    def _windows(self, how: int) -> None:
        os.lseek(self._file, _WINDOWS_BYTE, os.SEEK_SET)
        try:
            _msvcrt.locking(self._file, how, 1)
        except OSError as error:
            if error.errno in (errno.EACCES, errno.EDEADLK):
                raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN)) from error
            raise


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
                    number = read_at(self._file, 20, 0).strip()
                    by = f" (process {number.decode()})" if number.isdigit() else ""
                    raise InUse(
                        f"{printable(directory)}: another crawl is using it{by}: "
                        "wait for its end, or give another directory"
                    ) from error
            on_error.callback(self._lock.release)
            with file_errors(self._path):
                os.ftruncate(self._file, 0)
                write_at(self._file, b"%d\n" % os.getpid(), 0)
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
