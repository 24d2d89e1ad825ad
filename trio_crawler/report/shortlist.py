"""The least few of many things, and how many there were."""

from __future__ import annotations

from bisect import insort
from typing import Generic, TypeVar

# Tuples of strings and numbers: what compares.
T = TypeVar("T", bound="tuple[str | float, ...]")


class Shortlist(Generic[T]):
    """Keep the `most` least items in order and count the rest; None keeps them all.

    What is kept does not depend on the order in which the items came.
    """

    def __init__(self, most: int | None) -> None:
        self.total = 0
        self._most = most
        self._kept: list[T] = []

    def __repr__(self) -> str:
        return f"<Shortlist {len(self._kept)} of {self.total}>"

    def add(self, item: T) -> None:
        """Count an item, and keep it if it is among the least."""
        self.total += 1
        if self._most is None:
            self._kept.append(item)
        elif len(self._kept) < self._most:
            insort(self._kept, item)
        elif self._kept and item < self._kept[-1]:
            self._kept.pop()
            insort(self._kept, item)

    @property
    def items(self) -> list[T]:
        """Return what was kept, in order."""
        return sorted(self._kept)

    @property
    def beyond(self) -> int:
        """Count what was not kept."""
        return self.total - len(self._kept)
