"""What is kept of very many URLs: texts in blocks, numbers, traits, ends, records on disk."""

from __future__ import annotations

import marshal
import sys
import weakref
import zlib
from array import array
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from functools import lru_cache, partial
from itertools import chain
from pathlib import Path
from struct import Struct
from tempfile import SpooledTemporaryFile, gettempdir
from typing import Any, NamedTuple, TypeVar

from trio_crawler.model import Outcome, Page, Reason, Record
from trio_crawler.page.urls import seen_key
from trio_crawler.store.compact import UrlSet
from trio_crawler.store.errors import file_errors

_BLOCK = 64 * 1024
# The URLs of the last pages, as far as they have at most so many characters: most links of a page
# are among them.
_RECENT, _LONGEST_URL = 32_768, 256
# Blocks that are never compressed, and those of the others that are kept decompressed.
_FIRST, _OPEN = 4, 16

_number = Struct("<I").pack
_key = Struct("<q").pack


class TextList:
    """A list of texts that only grows; full blocks after the first 256 KiB are compressed.

    ▶ A URL of an ordinary site takes 10 to 20 bytes.
    """

    def __init__(self) -> None:
        self._blocks: list[bytes | list[str]] = []
        # The index of the first text of each block.
        self._starts = array("Q")
        self._tail: list[str] = []
        self._tail_size = 0
        self._count = 0
        self._open = lru_cache(_OPEN)(_unpacked)

    def __len__(self) -> int:
        return self._count

    def append(self, text: str) -> None:
        """Add a text."""
        self._tail.append(text)
        self._count += 1
        self._tail_size += len(text)
        if self._tail_size >= _BLOCK:
            few = len(self._blocks) < _FIRST
            # Not msgspec: an href may have lone surrogates.
            packed = self._tail if few else zlib.compress(marshal.dumps(self._tail), 1)
            self._blocks.append(packed)
            self._starts.append(self._count - len(self._tail))
            self._tail, self._tail_size = [], 0

    def __getitem__(self, index: int) -> str:
        first = self._count - len(self._tail)
        if index >= first:
            return self._tail[index - first]
        at = bisect_right(self._starts, index) - 1
        return self._texts(self._blocks[at])[index - self._starts[at]]

    def __iter__(self) -> Iterator[str]:
        for block in self._blocks:
            yield from self._texts(block)
        yield from self._tail

    def _texts(self, block: bytes | list[str]) -> list[str]:
        return block if isinstance(block, list) else self._open(block)


def _unpacked(packed: bytes) -> list[str]:
    texts: list[str] = marshal.loads(zlib.decompress(packed))  # noqa: S302
    return texts


class UrlTable(UrlSet):
    """Numbers of URLs, from 0 on in the order of their first mention, and the URLs by number.

    Each spelling has a number of its own; `same` has for the number of each that is not the
    `seen_key` of its URL the number of this key. A number takes 20 bytes, besides the URL in
    `urls`. As in a `UrlSet`, two URLs may be taken for one, which happens with a chance of 3 in
    1,000,000 among 10,000,000.
    """

    __slots__ = ("_numbers", "same", "urls")

    # An entry is the key and the number.
    _width = 12

    def __init__(self) -> None:
        super().__init__(_RECENT)
        self.urls = TextList()
        self.same: dict[int, int] = {}
        self._numbers: dict[str, int] = {}

    def number(self, url: str) -> int:
        """Return the number of a URL, a new one if needed."""
        known = self._numbers.get(url)
        return self._find(url) if known is None else known

    def numbers(self, urls: Iterable[str]) -> array[int]:
        """Return the numbers of URLs, new ones where needed."""
        known, find = self._numbers.get, self._find
        return array(
            "I", [find(url) if (number := known(url)) is None else number for url in urls]
        )

    def known(self, url: str) -> int | None:
        """Return the number of a URL; None if it has none."""
        key, index = self._place(url)
        return self._search_bucket(self._buckets[index], key)

    def _find(self, url: str) -> int:
        key, index = self._place(url)
        bucket = self._buckets[index]
        number = self._search_bucket(bucket, key)
        if number is None:
            number = self._count
            self.urls.append(url)
            self._buckets[index] = bucket + key + _number(number)
            self._grow()
            if "%" in url and (usual := seen_key(url)) != url:
                self.same[number] = self._find(usual)
        if len(url) <= _LONGEST_URL:
            if len(self._numbers) >= _RECENT:
                self._numbers.clear()
            self._numbers[url] = number
        return number

    def _search_bucket(self, bucket: bytes, key: bytes) -> int | None:
        at = bucket.find(key)
        while at >= 0 and at % self._width:
            at = bucket.find(key, at + 1)
        return None if at < 0 else int.from_bytes(bucket[at + 8 : at + 12], "little")


LONGEST = 200
"""The characters of a title that are kept."""

_MOST_TYPES, _MAX_DEPTH = 1_000, 0xFFFF


class Trait(Record, frozen=True):
    """The traits of a URL.

    The place of its title in `titles`, 0 if it has none; the type of a page; its depth; the Unix
    time of its end, 0 if that is unknown.
    """

    title: int = 0
    type: str = ""
    depth: int = 0
    ended: float = 0.0


class Traits:
    """The traits of the URLs of a crawl, by their numbers: 16 bytes each, besides the title."""

    def __init__(self) -> None:
        self.titles = TextList()
        self.titles.append("")
        self._types = {"": 0}
        self._type_of = [""]
        self._title, self._type = array("I"), array("H")
        self._depth, self._ended = array("H"), array("d")

    def add(self, number: int, outcome: Outcome) -> None:
        """Record an outcome in place of an earlier one, but for its time."""
        self._reach(number)
        self._depth[number] = min(outcome.depth, _MAX_DEPTH)
        self._title[number] = self._type[number] = 0
        if isinstance(outcome, Page):
            media = outcome.content_type.partition(";")[0].strip().lower()[:LONGEST]
            if media not in self._types and len(self._types) < _MOST_TYPES:
                self._types[media] = len(self._types)
                self._type_of.append(media)
            self._type[number] = self._types.get(media, 0)
            if outcome.title:
                self._title[number] = len(self.titles)
                self.titles.append(outcome.title[:LONGEST])

    def at(self, number: int, ended: float) -> None:
        """Record when a URL ended."""
        self._reach(number)
        self._ended[number] = ended

    def get(self, number: int) -> Trait:
        """Return the traits of a URL."""
        if number >= len(self._title):
            return Trait()
        media = self._type_of[self._type[number]]
        return Trait(self._title[number], media, self._depth[number], self._ended[number])

    def _reach(self, number: int) -> None:
        more = number + 1 - len(self._title)
        if more > 0:
            more += len(self._title) // 4
            for column in (self._title, self._type, self._depth, self._ended):
                column.frombytes(bytes(column.itemsize * more))


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


PAGE, REDIRECT, FAILURE, SKIPPED, CHECKED = range(1, 6)
"""The kinds of ends."""

HTML, NOINDEX, OTHER_CANONICAL, FOLDED, DEEP, TRIED, AGAIN, ROBOTS, OWN_FRAGMENT = (
    1 << bit for bit in range(9)
)
"""The flags of an end.

A page that is HTML, has "noindex", names another page as its canonical one, was folded into
another; a URL that is no seed by its depth, was asked for, was admitted again; a failure of the
robots.txt; a redirect whose target has a fragment.
"""

NO_URL = 0xFFFF_FFFF

REASON_OF: tuple[Reason | None, ...] = (None, *Reason)
NUMBER_OF = {reason: number for number, reason in enumerate(REASON_OF)}

_NOT_MODIFIED = 304
_MAX_STATUS, _MAX_SECONDS = 0xFFFF, 1e30
# The rows of a block.
_ENDS = 2_048
_row = Struct("<BBHHIIfQII")
T = TypeVar("T")


class Row(NamedTuple):
    """The end of one URL.

    `number` is that of the usual spelling of the URL, `kind` one of the five, `code` the number of
    a reason. `status` is 0 without an answer. `target` is the number of the URL that a redirect
    leads to, or that a page is a copy of; `referrer` that of the page that led here; both are
    `NO_URL` if there is none. `title` and `text` are equal for equal titles and texts, and 0
    without one.
    """

    number: int
    kind: int
    code: int
    status: int
    flags: int
    target: int
    referrer: int
    seconds: float
    size: int = 0
    title: int = 0
    text: int = 0

    @property
    def reason(self) -> Reason | None:
        """Why a URL failed, was skipped, or was not checked; None for a page or a redirect."""
        return REASON_OF[self.code] if self.kind >= FAILURE else None

    @property
    def rejected(self) -> Reason | None:
        """Why the target of a redirect was rejected; None if it was not."""
        return REASON_OF[self.code] if self.kind == REDIRECT else None

    @property
    def good(self) -> bool:
        """Whether it is a page with a status of 2xx or 304 (in a refresh: it has not changed)."""
        return self.kind == PAGE and (200 <= self.status < 300 or self.status == _NOT_MODIFIED)

    @property
    def indexable(self) -> bool:
        """Whether a search engine may list the page.

        Such a page is good HTML and no copy, has no "noindex", and names no other page as its
        canonical one.
        """
        flags = self.flags & (HTML | NOINDEX | OTHER_CANONICAL)
        return flags == HTML and self.good and self.target == NO_URL


_row_of = partial(tuple.__new__, Row)


class Rows:
    """The rows of URLs by their numbers, in blocks that need not be moved when they grow."""

    def __init__(self) -> None:
        self._blocks: list[bytearray] = []
        self._count = 0
        # By the number of a URL: the number of its row, from 1 on.
        self._at = array("I")

    def __len__(self) -> int:
        return self._count

    def __contains__(self, number: int) -> bool:
        return number < len(self._at) and self._at[number] > 0

    def of(self, items: Iterable[T], kinds: Collection[int]) -> Iterator[tuple[T, Row]]:
        """Yield each of the items, one a number from 0 on, that has a row of some kinds, with it.

        ▶ A third of the time of `get` for each: a report reads each row three times.
        """
        blocks, size, columns = self._blocks, _row.size, _row.unpack_from
        for number, (place, item) in enumerate(zip(self._at, items, strict=False)):
            if place:
                place -= 1
                at, block = place % _ENDS * size, blocks[place // _ENDS]
                if block[at] in kinds:
                    yield item, _row_of((number, *columns(block, at)))

    def get(self, number: int) -> Row | None:
        """Return the row of a URL; None if it has none."""
        place = self._at[number] if number < len(self._at) else 0
        if not place:
            return None
        block, at = divmod(place - 1, _ENDS)
        # ▶ Half of the time of `Row(...)`.
        return _row_of((number, *_row.unpack_from(self._blocks[block], at * _row.size)))

    def put(self, row: Row, room: int) -> Row | None:
        """Write a row, for one of `room` URLs; return the one whose place it takes."""
        number, at = row.number, self._at
        before = self.get(number)
        if number >= len(at):
            at.frombytes(bytes(at.itemsize * (room - len(at))))
        if before is None:
            if self._count % _ENDS == 0:
                self._blocks.append(bytearray(_ENDS * _row.size))
            self._count += 1
            at[number] = self._count
        if row.status > _MAX_STATUS or row.seconds > _MAX_SECONDS:
            # From a fetch of the caller: the report is about the rest.
            status, seconds = min(row.status, _MAX_STATUS), min(row.seconds, _MAX_SECONDS)
            row = row._replace(status=status, seconds=seconds)
        block, start = divmod(at[number] - 1, _ENDS)
        _row.pack_into(self._blocks[block], start * _row.size, *row[1:])
        return before
