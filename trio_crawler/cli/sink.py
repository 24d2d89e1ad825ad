"""The sink: outcomes on their way into a file or a pipe, without holding up the crawl."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from functools import partial
from io import FileIO

import trio

from trio_crawler import Outcome, Page
from trio_crawler.cli.outputs import STANDARD_OUTPUT

FULL = 64 * 1024
"""Bytes that are written at once."""

BATCH = 512 * 1024
"""Bytes of bodies whose outcomes are encoded at once in a thread.

▶ To call a thread for each outcome takes longer than to encode it.
"""

_OVERHEAD = 4 * 1024
"""The bytes that an outcome counts for besides its body."""

EVERY = 0.2
"""Seconds between two writes."""


class Sink:
    """Encode outcomes, gather bytes and write them; `close` it at the end.

    During a crawl a thread writes, every 0.2 s or 64 KiB. So a slow reader of a pipe slows the
    crawl, but does not block the event loop. With `costly` outcomes are gathered instead, up to
    512 KiB of bodies and one outcome more, and that thread encodes them too.

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
        # With `costly`: the outcomes that are not encoded yet, and the bytes that they count for.
        self._outcomes: list[Outcome] = []
        self._waiting = 0
        self._writing = trio.Lock()

    def close(self) -> None:
        """Write the rest and close the file, unless a thread is stuck in a write to it."""
        if not self.stuck:
            self._write(self._taken()())
            self._write(self._tail())
        try:
            if not self.stuck:
                self._file.close()
        except OSError as failed:
            self.error = self.error or failed

    def take(self, outcome: Outcome) -> None:
        """Add one outcome, and write in this thread if there is enough."""
        self._gathered += self._encode(outcome)
        if len(self._gathered) >= FULL:
            self._write(self._taken()())

    async def put(self, outcome: Outcome) -> None:
        """Add one outcome; wait if the reader is behind."""
        if self._costly:
            self._outcomes.append(outcome)
            self._waiting += _OVERHEAD + (len(outcome.body) if isinstance(outcome, Page) else 0)
        else:
            self._gathered += self._encode(outcome)
        if len(self._gathered) >= FULL or self._waiting >= BATCH:
            await self.flush()

    async def flush(self) -> None:
        """Write what was gathered."""
        # It is removed and then written: a cancellation in between would lose it.
        async with self._writing:
            with trio.CancelScope(shield=not self._waits):
                await trio.lowlevel.checkpoint_if_cancelled()
                if not (self._gathered or self._outcomes):
                    return
                taken = self._taken()
                self.stuck = True
                write = partial(self._encode_and_write, taken)
                await trio.to_thread.run_sync(write, abandon_on_cancel=self._waits)
                self.stuck = False

    def _encode_and_write(self, taken: Callable[[], bytes | bytearray]) -> None:
        try:
            data = taken()
        except BaseException:
            # A bug, but no write is stuck: the file can be closed.
            self.stuck = False
            raise
        self._write(data)

    def _taken(self) -> Callable[[], bytes | bytearray]:
        """Remove what was gathered; return a function that encodes it, for any thread."""
        gathered, self._gathered = self._gathered, bytearray()
        outcomes, self._outcomes, self._waiting = self._outcomes, [], 0
        if not outcomes:
            return lambda: gathered
        return lambda: b"".join([gathered, *map(self._encode, outcomes)])

    async def drain(self) -> None:
        """Write the gathered bytes again and again, until cancelled."""
        while True:
            await trio.sleep(EVERY)
            await self.flush()

    def _write(self, gathered: bytes | bytearray) -> None:
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
