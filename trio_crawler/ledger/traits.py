"""What a report in HTML shows of a URL beside its end: title, type, depth and time."""

from __future__ import annotations

from array import array
from typing import NamedTuple

from trio_crawler.ledger.url_table import TextList
from trio_crawler.model import Outcome, Page

LONGEST = 200
"""The characters of a title that are kept."""

_MOST_TYPES, _MAX_DEPTH = 1_000, 0xFFFF


class Trait(NamedTuple):
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
