"""The sink: outcomes as JSON Lines in a file or a pipe, without holding up the crawl."""

from __future__ import annotations

import errno
import os
import stat
import sys
from functools import partial
from io import FileIO

import trio

from trio_crawler import Outcome, line

FULL = 64 * 1024
EVERY = 0.2


class Sink:
    """Gather lines and write them in a thread, every 0.2 s or 64 KiB; a context manager.

    A reader at the other end of a pipe may be slow: that slows the crawl, and no deadline of a
    fetch passes meanwhile unseen. After `error` is set nothing more is written. A write that is
    cancelled goes on in its thread, unless it is to a plain file: that never waits for anybody.
    """

    def __init__(self, file: FileIO) -> None:
        self.error: OSError | None = None
        self._file = file
        self._waits = not stat.S_ISREG(os.fstat(file.fileno()).st_mode)
        self._lines = bytearray()
        self._writing = trio.Lock()
        self._stuck = False

    def __enter__(self) -> Sink:
        return self

    def __exit__(self, *error: object) -> None:
        if not self._stuck:
            self._write(self._lines)
        try:
            if not self._stuck:
                self._file.close()
        except OSError as failed:
            self.error = self.error or failed

    async def put(self, outcome: Outcome) -> None:
        """Take one outcome; wait if the reader is behind."""
        self._lines += line(outcome)
        if len(self._lines) >= FULL:
            await self.flush()

    async def flush(self) -> None:
        """Write what was gathered."""
        async with self._writing:
            lines, self._lines = self._lines, bytearray()
            self._stuck = True
            write = partial(self._write, lines)
            await trio.to_thread.run_sync(write, abandon_on_cancel=self._waits)
            self._stuck = False

    async def drain(self) -> None:
        """Write what was gathered again and again, until cancelled."""
        while True:
            await trio.sleep(EVERY)
            await self.flush()

    def _write(self, lines: bytearray) -> None:
        if self.error:
            return
        try:
            rest = memoryview(lines)
            while rest:
                rest = rest[self._file.write(rest) :]
        except OSError as error:
            self.error = error


def opened(path: str) -> FileIO:
    """Open a file for the lines; `-` is standard output. Raises OSError."""
    if path != "-":
        return FileIO(path, "w")
    if sys.stdout is None:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))
    # Unbuffered, so a thread stuck in a write holds no lock of sys.stdout.
    return FileIO(sys.stdout.fileno(), "w", closefd=False)
