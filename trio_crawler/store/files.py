"""The lock of a crawl directory: one crawl at a time."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from trio_crawler.store.errors import InUse
from trio_crawler.store.faults import of_file, of_files, shown

NAME = "lock"


class Lock:
    """Hold a directory for this process, until `release` or the end of the process.

    The file stays: whoever removed it could remove that of the next one. It holds the number of
    the process. Raises InUse, naming that process, when another one has the directory.
    """

    def __init__(self, directory: Path) -> None:
        self._path = directory / NAME
        with of_files(self._path):
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            self._take(directory)
        except BaseException:
            os.close(self._file)
            raise
        self._held = True

    def _take(self, directory: Path) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise InUse(
                f"{shown(directory)}: another crawl is using it{self._holder()}: "
                "wait for its end, or give another directory"
            ) from error
        except OSError as error:
            raise of_file(self._path, error) from error
        with of_files(self._path):
            os.ftruncate(self._file, 0)
            os.pwrite(self._file, b"%d\n" % os.getpid(), 0)

    def _holder(self) -> str:
        number = os.pread(self._file, 20, 0).strip()
        return f" (process {number.decode()})" if number.isdigit() else ""

    @property
    def gone(self) -> bool:
        """Tell whether the file was removed; a directory that was moved still has it."""
        with of_files(self._path):
            return not os.fstat(self._file).st_nlink

    def release(self) -> None:
        """Let others have the directory; may be called again."""
        if self._held:
            self._held = False
            os.close(self._file)
