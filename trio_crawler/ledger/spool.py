"""Records that are too many for memory."""

from __future__ import annotations

import marshal
import sys
import weakref
from array import array
from collections.abc import Callable, Iterator
from functools import partial
from io import BytesIO
from itertools import chain
from tempfile import TemporaryFile
from typing import Any, BinaryIO

MEMORY = 32 * 1024 * 1024
"""Bytes that are kept in memory; more are in a temporary file without a name."""

# ▶ Version 2 of marshal takes half of the time: it does not look for objects that occur twice.
_WITHOUT_REFERENCES = 2


class Spool:
    """Records that are written once and read several times.

    The first ones with a `size` are kept as they are, up to `room` bytes; all others are packed,
    and of these what is beyond 32 MiB is in a file, as long as the disk has room. An iteration
    yields those that are kept, and then the others; `in_order` nothing is kept after the first
    that is packed.

    ▶ zstd packs a page of python3-doc (97 KB) to 16 KB in 0.17 ms, zlib takes 0.55 ms.
    """

    def __init__(self, room: int = MEMORY, *, in_order: bool = False) -> None:
        self._kept: list[Any] = []
        self._room = room
        self._in_order = in_order
        # In memory, and then a file without a name; None until a record is packed.
        self._file: BinaryIO | None = None
        self._in_memory = True
        self._places = array("Q", [0])
        # Packed, since a file could not be made or written.
        self._unwritten: list[bytes] = []

    def __len__(self) -> int:
        return len(self._kept) + len(self._places) - 1 + len(self._unwritten)

    def _open(self) -> BinaryIO:
        # Imported late: a small crawl that checks no links has no record.
        if sys.version_info >= (3, 14):
            from compression import zstd
        else:
            from backports import zstd
        # The contexts are used again: to make one takes as long as to pack a small page.
        packer = zstd.ZstdCompressor(level=1)
        self._pack: Callable[[bytes], bytes] = partial(packer.compress, mode=packer.FLUSH_FRAME)
        self._unpack: Callable[[bytes], bytes] = zstd.decompress
        self._file = BytesIO()
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
        start = self._places[-1]
        try:
            if not self._unwritten:
                if self._in_memory and start + len(packed) > MEMORY:
                    file = self._move()
                _write(file, start, packed)
                self._places.append(start + len(packed))
                return -(len(self._places) - 1)
        except OSError:
            pass
        self._unwritten.append(packed)
        return -(len(self._places) - 1 + len(self._unwritten))

    def _move(self) -> BinaryIO:
        """Move what is in memory to a file. Raises OSError, and then all stays where it is."""
        memory = self._file
        assert isinstance(memory, BytesIO)  # noqa: S101 - for mypy
        # Without a buffer, so that an error comes with the record that could not be written.
        file = TemporaryFile(buffering=0)  # noqa: SIM115 - `close` closes it
        # Who never closes it leaves nothing behind either.
        weakref.finalize(self, file.close)
        _write(file, 0, memory.getbuffer())
        self._file, self._in_memory = file, False
        return file

    def __getitem__(self, index: int) -> Any:
        if index >= 0:
            return self._kept[index]
        if self._file is None:
            raise IndexError(index)
        at = -index - 1
        late = at - (len(self._places) - 1)
        if late >= 0:
            packed = self._unwritten[late]
        else:
            start, end = self._places[at : at + 2]
            self._file.seek(start)
            packed = self._file.read(end - start)
        return marshal.loads(self._unpack(packed))  # noqa: S302 - our own

    def __iter__(self) -> Iterator[Any]:
        packed = len(self._places) - 1 + len(self._unwritten)
        return chain(self._kept, map(self.__getitem__, range(-1, -packed - 1, -1)))

    def close(self) -> None:
        """Free the memory and the file."""
        self._kept.clear()
        self._unwritten.clear()
        if self._file is not None:
            self._file.close()


def _write(file: BinaryIO, start: int, packed: bytes | memoryview) -> None:
    file.seek(start)
    rest = memoryview(packed)
    while rest:
        rest = rest[file.write(rest) :]
