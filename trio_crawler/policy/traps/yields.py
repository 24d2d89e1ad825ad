"""The yield of a pattern of URLs: on how many pages in a row it had no new text."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from trio_crawler.policy.traps.patterns import fingerprint, is_generated, may_be_dated, steps

_EVERY, _ENOUGH = 4, 4_096
_STEPS_KEPT = 16
# The weight of a page that leads to the same distances as the pages before, and that of a page
# without links of its own pattern, such as the days of a calendar.
_STEADY = _ENDS = 0.1
# Numbers of 6 or 8 digits are dates if so many times more of them look like dates than not.
_MOSTLY = 9


class Streak:
    """The pages in a row on which some URLs of a pattern had no new text.

    `barren` counts all of them, `steady` those whose links had the same distances as the links of
    pages before, each as a tenth. Every fourth page is read, and counts as four. After 4,096
    different pages no more are read: such URLs are not a trap.
    """

    __slots__ = ("_pages", "_prints", "_steps", "barren", "steady")

    def __init__(self) -> None:
        self.barren = self.steady = 0.0
        self._pages = 0
        self._prints: set[int] | None = set()
        # Months have different lengths, so the pages of a calendar have several sets of steps.
        self._steps = deque[int](maxlen=_STEPS_KEPT)

    def add(self, url: str, body: bytes, weight: float = 1.0, links: Sequence[str] = ()) -> None:
        """Record a page with its links; it adds `weight` to `barren` if it has no new text."""
        self._pages += 1
        if self._prints is not None and self._pages % _EVERY == 1:
            self._look(fingerprint(url, body), self._prints, weight)
            self._step(url, links)

    def _look(self, found: int, prints: set[int], weight: float) -> None:
        self.barren = self.barren + _EVERY * weight if found in prints else 0.0
        prints.add(found)
        if len(prints) >= _ENOUGH:
            self._prints = None

    def _step(self, url: str, links: Sequence[str]) -> None:
        if not self.barren:
            self.steady = 0.0
            return
        found = steps(url, links)
        kept = hash(found)
        if found and kept in self._steps:
            self.steady += _EVERY * _STEADY
            return
        self.steady = 0.0
        if found:
            self._steps.append(kept)


class PatternYield:
    """The yield of one pattern: of its dates and random tokens, and apart of its mere numbers.

    The pages of many numbers must not count against the dates of the pattern, whose limit is far
    lower. The limits are of pages in a row without new text, as in `Traps`.
    """

    __slots__ = ("_dates", "_ended", "_limits", "_numbers", "_streaks")

    def __init__(self, barren: float, barren_numbers: float) -> None:
        # By whether a URL is generated.
        self._limits = (barren_numbers, barren)
        self._streaks: list[Streak | None] = [None, None]
        self._ended = [False, False]
        # Pages whose URLs may have a date without separators, and those that have none.
        self._dates = self._numbers = 0

    def is_barren(self, url: str) -> bool:
        """Whether URLs such as this one are a trap."""
        return (self._ended[0] or self._ended[1]) and self._ended[self._is_generated(url)]

    def add(self, url: str, body: bytes, links: Sequence[str], *, leads_on: bool) -> None:
        """Record a page; `leads_on` is whether it links to new URLs of this pattern."""
        dated = may_be_dated(url)
        self._dates += dated
        self._numbers += not dated
        generated = self._is_generated(url)
        if self._ended[generated] or not (generated or leads_on):
            # Of URLs that are a trap no more pages are examined, so the effort is bounded.
            return
        streak = self._streaks[generated] = self._streaks[generated] or Streak()
        streak.add(url, body, 1.0 if leads_on else _ENDS, links)
        if streak.barren >= self._limits[generated] or streak.steady >= self._limits[True]:
            self._ended[generated], self._streaks[generated] = True, None

    def _is_generated(self, url: str) -> bool:
        if is_generated(url):
            return True
        return self._dates > _MOSTLY * self._numbers and may_be_dated(url)
