"""Noise: what differs between two fetches of one page at nearly the same moment."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from struct import iter_unpack
from typing import Any, NamedTuple, TypeAlias

import msgspec

from trio_crawler.page.urls import is_web
from trio_crawler.policy.url_shapes import url_shape
from trio_crawler.store.database import Database
from trio_crawler.store.decoding import BadRow, Url, decoded

_ROW: Any = tuple[int, Url, bytes | None, bytes | None, int, str]
_BLOCKS_ROW: Any = tuple[int, bytes | None]
_LINKS = msgspec.json.Decoder(list[str])
# Blocks are numbers of two bytes, so neither is a block.
_START, _END = -1, -2
# How many blocks away is a block that marks a place: a heading may stand between.
_NEAR = 4

_Mark: TypeAlias = tuple[int, int, int]
"""Two blocks, and 0 for the place between them; or a block, how far away it is, and 1."""


class Gap(NamedTuple):
    """A place at which two texts differ: its blocks in the older one, and how many at most."""

    begin: int
    end: int
    size: int


class Noise:
    """What two fetches of a page have shown, by the shape of its URL; read up to a number.

    A block of text is noise if it stands at a place where the two fetches differed: between the
    same blocks, or as far, up to four blocks, from one that the page has only once. So noise that
    all pages of a shape have in common is known from one of them, and an edit elsewhere is told.
    At such a place no more blocks may differ than at the two fetches.
    """

    def __init__(self, database: Database, last: int) -> None:
        self._database = database
        self._places: dict[str, dict[_Mark, int]] = {}
        self._links: dict[str, set[str]] = {}
        self._retitled: set[str] = set()
        sql = (
            "SELECT number, url, text_blocks, blocks, retitled, repeated_.links FROM repeated_ "
            "JOIN urls USING (number) JOIN page_ USING (number) WHERE number <= ?"
        )
        for _, url, first, second, retitled, links in database.read(_ROW, sql, last):
            if first is None or second is None or not is_web(url):
                continue
            with database.store_errors():
                self._learn(url_shape(url), _unpacked(first), _unpacked(second))
                self._links.setdefault(url_shape(url), set()).update(decoded(_LINKS, links))
            if retitled:
                self._retitled.add(url_shape(url))

    def _learn(self, shape: str, first: Sequence[int], second: Sequence[int]) -> None:
        places = self._places.setdefault(shape, {})
        for gap in _gaps(first, second):
            for mark in _marks(gap, first, second):
                places[mark] = max(gap.size, places.get(mark, 0))

    def in_text(self, url: str, before: int, now: int) -> bool:
        """Whether the texts of two pages, by their numbers, differ in nothing but noise."""
        places = self._places.get(url_shape(url)) if is_web(url) else None
        if not places:
            return False
        old, new = self._blocks(before), self._blocks(now)
        found = _gaps(old, new)
        # The digests of the texts differ, and if no block does, it is not known where.
        return bool(found) and all(
            any(gap.size <= places.get(mark, 0) for mark in _marks(gap, old, new)) for gap in found
        )

    def in_links(self, url: str, links: Iterable[str]) -> bool:
        """Whether links of a page differ in nothing but noise; these are in one of two fetches."""
        known = self._links.get(url_shape(url), ()) if is_web(url) else ()
        return all(is_web(link) and url_shape(link) in known for link in links)

    def in_title(self, url: str) -> bool:
        """Whether the title of a page is another at each fetch."""
        return is_web(url) and url_shape(url) in self._retitled

    def _blocks(self, number: int) -> list[int]:
        sql = "SELECT number, text_blocks FROM page_ WHERE number = ?"
        for _, blocks in self._database.read(_BLOCKS_ROW, sql, number):
            with self._database.store_errors():
                return _unpacked(blocks or b"")
        return []


def _unpacked(blocks: bytes) -> list[int]:
    """Return the hashes of the blocks of a text. Raises BadRow."""
    if len(blocks) % 2:
        raise BadRow("the blocks of a text are cut")
    return [block for (block,) in iter_unpack("<H", blocks)]


def _gaps(old: Sequence[int], new: Sequence[int]) -> list[Gap]:
    codes = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    return [
        Gap(begin, end, max(end - begin, last - first))
        for what, begin, end, first, last in codes
        if what != "equal"
    ]


def _marks(gap: Gap, old: Sequence[int], new: Sequence[int]) -> Iterator[_Mark]:
    """Yield the marks of a place: the blocks around it, and each near one that is there once."""
    text = [_START, *old, _END]
    before, after = gap.begin, gap.end + 1
    yield text[before], text[after], 0
    for far in range(_NEAR):
        for place, away in ((before - far, -far), (after + far, far + 1)):
            if 0 <= place < len(text):
                block = text[place]
                if old.count(block) < 2 and new.count(block) < 2:
                    yield block, away, 1
