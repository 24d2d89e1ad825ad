"""Edges between numbered things, of which most will not be asked for."""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Collection, Iterable, Iterator
from itertools import chain, compress, repeat
from typing import TypeAlias

_BLOCK = 16_384
_FREE = 32

Block: TypeAlias = "tuple[array[int], array[int]]"


class Edges:
    """Hold (source, target) pairs at 8 bytes each, and drop those to targets that are closed.

    From 4 MiB on, for each block that has filled up the oldest one or two are gone through: a
    bounded piece of work, so that no call takes longer because there are many edges.
    """

    def __init__(self) -> None:
        self._sources = array("I")
        self._targets = array("I")
        self._blocks: deque[Block] = deque()
        # One byte a target; those beyond its end are open.
        self._open = bytearray()

    def __len__(self) -> int:
        return len(self._targets) + sum(len(targets) for _, targets in self._blocks)

    def add(self, source: int, targets: Iterable[int]) -> None:
        """Add an edge from the source to each target."""
        before = len(self._targets)
        self._targets.extend(targets)
        self._sources.extend(array("I", [source]) * (len(self._targets) - before))
        if len(self._targets) >= _BLOCK:
            self._turn()

    def close(self, target: int) -> None:
        """Forget, sooner or later, every edge to this target; nobody will ask for them."""
        self._cover(target)
        self._open[target] = 0

    def leading_to(self, targets: Collection[int]) -> Iterator[tuple[int, int]]:
        """Yield the edges to any of these targets, which are not closed."""
        wanted = bytearray(max(targets, default=-1) + 1)
        for target in targets:
            wanted[target] = 1
        size = len(wanted)
        for sources, ends in chain(self._blocks, [(self._sources, self._targets)]):
            hits = (end < size and wanted[end] for end in ends)
            yield from compress(zip(sources, ends, strict=True), hits)

    def _cover(self, target: int) -> None:
        if target >= len(self._open):
            self._open.extend(repeat(1, target + 1 - len(self._open)))

    def _turn(self) -> None:
        self._cover(max(self._targets))
        self._blocks.append((self._sources, self._targets))
        self._sources, self._targets = array("I"), array("I")
        # A block that was worth the work is followed by one more, so that old ones run out.
        for _ in range(min(2, len(self._blocks) - _FREE)):
            sources, targets = self._kept(*self._blocks.popleft())
            if len(targets) > _BLOCK // 2:
                self._blocks.append((sources, targets))
                return
            self._sources.extend(sources)
            self._targets.extend(targets)

    def _kept(self, sources: array[int], targets: array[int]) -> Block:
        still = [self._open[target] for target in targets]
        return array("I", compress(sources, still)), array("I", compress(targets, still))
