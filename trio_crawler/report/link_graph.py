"""The links of a crawl, as pairs of the numbers of URLs."""

from __future__ import annotations

import zlib
from array import array
from collections import deque
from collections.abc import Collection, Iterable, Iterator
from itertools import chain, compress, repeat
from typing import TypeAlias

BLOCK = 16_384
FREE_BLOCKS = 32

Pairs: TypeAlias = "tuple[array[int], array[int]]"
"""The sources and the targets of some links, side by side."""


class LinkGraph:
    """Links as (source, target) pairs of some 4 bytes each; links to dropped targets are removed.

    ▶ The sources of a full block are compressed, to a sixth at 0.01 us a link: those of a page are
    all the same. Targets anywhere on a site would be compressed by a fifth only.

    In a graph of more than `free_blocks` (2.5 MiB), each block of `block` links that becomes full
    triggers a search of the one or two oldest blocks for such links. So the work of a call does
    not grow with the graph.
    """

    def __init__(self, block: int = BLOCK, free_blocks: int = FREE_BLOCKS) -> None:
        self._block = block
        self._free_blocks = free_blocks
        self._sources = array("I")
        self._targets = array("I")
        # The compressed sources and the targets.
        self._blocks: deque[tuple[bytes, array[int]]] = deque()
        # One byte for each target, 0 if it was dropped; targets beyond its end were not.
        self._needed = bytearray()

    def __len__(self) -> int:
        return len(self._targets) + sum(len(targets) for _, targets in self._blocks)

    def add(self, source: int, targets: Iterable[int]) -> None:
        """Add a link from the source to each target."""
        before = len(self._targets)
        self._targets.extend(targets)
        self._sources.extend(array("I", [source]) * (len(self._targets) - before))
        if len(self._targets) >= self._block:
            self._end_block()

    def drop_links_to(self, target: int) -> None:
        """Mark every link to this target for removal; some may stay until the end."""
        self._cover(target)
        self._needed[target] = 0

    def links_to(self, targets: Collection[int]) -> Iterator[tuple[int, int]]:
        """Yield the links to any of these targets; none of them may have been dropped."""
        wanted = bytearray(max(targets, default=-1) + 1)
        for target in targets:
            wanted[target] = 1
        size = len(wanted)
        full = ((_unpacked(sources), ends) for sources, ends in self._blocks)
        for sources, ends in chain(full, [(self._sources, self._targets)]):
            hits = (end < size and wanted[end] for end in ends)
            yield from compress(zip(sources, ends, strict=True), hits)

    def _cover(self, target: int) -> None:
        if target >= len(self._needed):
            self._needed.extend(repeat(1, target + 1 - len(self._needed)))

    def _end_block(self) -> None:
        self._cover(max(self._targets))
        self._blocks.append((_packed(self._sources), self._targets))
        self._sources, self._targets = array("I"), array("I")
        # If a block became much smaller, one more is searched, so that the old blocks run out.
        for _ in range(min(2, len(self._blocks) - self._free_blocks)):
            packed, targets = self._blocks.popleft()
            sources, targets = self._without_dropped(_unpacked(packed), targets)
            if len(targets) > self._block // 2:
                self._blocks.append((_packed(sources), targets))
                return
            self._sources.extend(sources)
            self._targets.extend(targets)

    def _without_dropped(self, sources: array[int], targets: array[int]) -> Pairs:
        needed = [self._needed[target] for target in targets]
        return array("I", compress(sources, needed)), array("I", compress(targets, needed))


def _packed(sources: array[int]) -> bytes:
    return zlib.compress(sources, 1)


def _unpacked(packed: bytes) -> array[int]:
    return array("I", zlib.decompress(packed))
