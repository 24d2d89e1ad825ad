"""Records that are too many for memory."""

from __future__ import annotations

import marshal
import sys
import weakref
from array import array
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from itertools import chain
from pathlib import Path
from tempfile import SpooledTemporaryFile, gettempdir
from typing import Any

from trio_crawler.store.errors import file_errors

MEMORY = 32 * 1024 * 1024
"""Bytes that are kept in memory; more are in a temporary file without a name."""

# ▶ Version 2 of marshal takes half of the time: it does not look for objects that occur twice.
_WITHOUT_REFERENCES = 2


class Spool:
    """Records that are written once and read several times.

    The first ones with a `size` are kept as they are, up to `room` bytes; all others are packed,
    and of these what is beyond 32 MiB is in a file. An iteration yields those that are kept, and
    then the others; `in_order` nothing is kept after the first that is packed. Raises StoreError
    if the file cannot be written.

    ▶ zstd packs a page of python3-doc (97 KB) to 16 KB in 0.17 ms, zlib takes 0.55 ms.
    """

    def __init__(self, room: int = MEMORY, *, in_order: bool = False) -> None:
        self._kept: list[Any] = []
        self._room = room
        self._in_order = in_order
        # None until a record is packed.
        self._file: SpooledTemporaryFile[bytes] | None = None
        self._places = array("Q", [0])

    def __len__(self) -> int:
        return len(self._kept) + len(self._places) - 1

    def _open(self) -> SpooledTemporaryFile[bytes]:
        # Imported late: a small crawl that checks no links has no record.
        if sys.version_info >= (3, 14):
            from compression import zstd
        else:
            from backports import zstd
        # The contexts are used again: to make one takes as long as to pack a small page.
        packer = zstd.ZstdCompressor(level=1)
        self._pack: Callable[[bytes], bytes] = partial(packer.compress, mode=packer.FLUSH_FRAME)
        self._unpack: Callable[[bytes], bytes] = zstd.decompress
        self._file = SpooledTemporaryFile(MEMORY)  # noqa: SIM115 - `close` closes it
        # A caller that never closes it leaves nothing behind either.
        weakref.finalize(self, _close, self._file)
        return self._file

    def append(self, record: Any, size: int | None = None) -> int:
        """Add a record of what `marshal` can write, and return its index, which may be negative.

        `size` is about how many bytes the record takes as it is.
        """
        if size is not None:
            if size <= self._room:
                self._room -= size
                self._kept.append(record)
                return len(self._kept) - 1
            if self._in_order:
                # Or a smaller one that comes later would be before this one.
                self._room = -1
        file = self._file or self._open()
        # Not msgspec: an href may have lone surrogates.
        packed = self._pack(marshal.dumps(record, _WITHOUT_REFERENCES))
        with file_errors(Path(gettempdir())):
            file.seek(self._places[-1])
            file.write(packed)
        self._places.append(self._places[-1] + len(packed))
        return -(len(self._places) - 1)

    def __getitem__(self, index: int) -> Any:
        if index >= 0:
            return self._kept[index]
        if self._file is None:
            raise IndexError(index)
        start, end = self._places[-index - 1 : -index + 1]
        # What was written last may still be in the buffer of the file.
        with file_errors(Path(gettempdir())):
            self._file.seek(start)
            packed = self._file.read(end - start)
        return marshal.loads(self._unpack(packed))  # noqa: S302 - our own

    def __iter__(self) -> Iterator[Any]:
        return chain(self._kept, map(self.__getitem__, range(-1, -len(self._places), -1)))

    def close(self) -> None:
        """Free the memory and the file."""
        self._kept.clear()
        if self._file is not None:
            _close(self._file)


def _close(file: SpooledTemporaryFile[bytes]) -> None:
    # On a full disk the buffer of the file cannot be written. It is not needed any more.
    with suppress(OSError):
        file.close()
