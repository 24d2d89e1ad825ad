"""The sink: outcomes on their way into a file or a pipe, without holding up the crawl."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from functools import partial
from io import FileIO

import trio

from trio_crawler import Outcome
from trio_crawler.cli.outputs import STANDARD_OUTPUT

FULL = 64 * 1024
"""Bytes that are written at once."""

EVERY = 0.2
"""Seconds between two writes."""


class Sink:
    """Encode outcomes, gather bytes and write them; `close` it at the end.

    During a crawl a thread writes, every 0.2 s or 64 KiB. So a slow reader of a pipe slows the
    crawl, but does not block the event loop. With `costly` the encoding is done in a thread too.
    After `error` is set nothing more is written. A write to a pipe that is cancelled continues in
    its thread, and `stuck` is set until it is done; a write to a plain file is not cancelled.
    """

    def __init__(
        self,
        file: FileIO,
        encode: Callable[[Outcome], bytes],
        head: bytes = b"",
        tail: Callable[[], bytes] = bytes,
        *,
        costly: bool = False,
    ) -> None:
        self.error: OSError | None = None
        self.stuck = False
        self._file = file
        self._encode = encode
        self._tail = tail
        self._costly = costly
        self._waits = not stat.S_ISREG(os.fstat(file.fileno()).st_mode)
        self._gathered = bytearray(head)
        self._writing = trio.Lock()

    def close(self) -> None:
        """Write the rest and close the file, unless a thread is stuck in a write to it."""
        if not self.stuck:
            self._write(self._gathered + self._tail())
        try:
            if not self.stuck:
                self._file.close()
        except OSError as failed:
            self.error = self.error or failed

    def take(self, outcome: Outcome) -> None:
        """Add one outcome, and write in this thread if there is enough."""
        self._gathered += self._encode(outcome)
        if len(self._gathered) >= FULL:
            gathered, self._gathered = self._gathered, bytearray()
            self._write(gathered)

    async def put(self, outcome: Outcome) -> None:
        """Add one outcome; wait if the reader is behind."""
        if self._costly:
            encoded = await trio.to_thread.run_sync(self._encode, outcome)
        else:
            encoded = self._encode(outcome)
        # Not in one line with the await: another task may write the gathered bytes meanwhile.
        self._gathered += encoded
        if len(self._gathered) >= FULL:
            await self.flush()

    async def flush(self) -> None:
        """Write the gathered bytes."""
        # The bytes are removed and then written: a cancellation in between would lose them.
        async with self._writing:
            with trio.CancelScope(shield=not self._waits):
                await trio.lowlevel.checkpoint_if_cancelled()
                gathered, self._gathered = self._gathered, bytearray()
                self.stuck = True
                write = partial(self._write, gathered)
                await trio.to_thread.run_sync(write, abandon_on_cancel=self._waits)
                self.stuck = False

    async def drain(self) -> None:
        """Write the gathered bytes again and again, until cancelled."""
        while True:
            await trio.sleep(EVERY)
            await self.flush()

    def _write(self, gathered: bytearray) -> None:
        if self.error:
            return
        try:
            rest = memoryview(gathered)
            while rest:
                rest = rest[self._file.write(rest) :]
        except OSError as error:
            self.error = error


def is_plain(path: str) -> bool:
    """Whether a file can be truncated, and so be a stream; a pipe and a device cannot."""
    if path == STANDARD_OUTPUT:
        return False
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return True
    return stat.S_ISREG(mode) or stat.S_ISDIR(mode)
