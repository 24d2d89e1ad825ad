"""The ends of URLs, packed in 38 bytes each."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterable, Iterator
from functools import partial
from struct import Struct
from typing import NamedTuple, TypeVar

from trio_crawler.model import Reason

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
_BLOCK = 2_048
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
                at, block = place % _BLOCK * size, blocks[place // _BLOCK]
                if block[at] in kinds:
                    yield item, _row_of((number, *columns(block, at)))

    def get(self, number: int) -> Row | None:
        """Return the row of a URL; None if it has none."""
        place = self._at[number] if number < len(self._at) else 0
        if not place:
            return None
        block, at = divmod(place - 1, _BLOCK)
        # ▶ Half of the time of `Row(...)`.
        return _row_of((number, *_row.unpack_from(self._blocks[block], at * _row.size)))

    def put(self, row: Row, room: int) -> Row | None:
        """Write a row, for one of `room` URLs; return the one whose place it takes."""
        number, at = row.number, self._at
        before = self.get(number)
        if number >= len(at):
            at.frombytes(bytes(at.itemsize * (room - len(at))))
        if before is None:
            if self._count % _BLOCK == 0:
                self._blocks.append(bytearray(_BLOCK * _row.size))
            self._count += 1
            at[number] = self._count
        if row.status > _MAX_STATUS or row.seconds > _MAX_SECONDS:
            # From a fetch of the caller: the report is about the rest.
            status, seconds = min(row.status, _MAX_STATUS), min(row.seconds, _MAX_SECONDS)
            row = row._replace(status=status, seconds=seconds)
        block, start = divmod(at[number] - 1, _BLOCK)
        _row.pack_into(self._blocks[block], start * _row.size, *row[1:])
        return before
