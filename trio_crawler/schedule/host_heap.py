"""The heap of the hosts: which of those that may be requested now is next."""

from __future__ import annotations

import heapq
import math
from collections import deque
from typing import Any, cast

from trio_crawler.schedule.host_state import State
from trio_crawler.schedule.origin import RUN, Origin, Share

# Invalid entries of the heaps that need not be removed.
_FEW_STALE = 64
_LAST = 1_000
# One of so many turns goes to the run that waits longest: it would wait while new runs begin.
_OLDEST_TURN = 10


class HostHeap:
    """Origins, in the order in which their next jobs start.

    Of the origins that may be requested now and are well, the one with the fewest requests in
    flight comes first, then as `Origin.order` says. Three quarters of the `workers` first serve
    those that need long, the longest before the others: a large host that takes its turns like a
    small one ends long after it. Doubtful origins, which do not answer, hold at most a quarter of
    the workers, or one, while others may be requested. They are requested again only if they hold
    less than an eighth, so that new ones need not wait for them. With those that are requested for
    the first time they hold at most three quarters.

    An origin has at most one valid place, the one with its ticket. Invalid entries are skipped,
    and removed before they are most of all. `held` is the number of requests in flight by `Share`,
    `hosts` the number of origins, `live` that of those with a place. `only` is the origin that was
    placed last if it was the only one with a place, and might be requested at once. `wakes` is the
    time at which the next rest ends; because of an invalid entry it may be too early.
    """

    __slots__ = (
        "_doubtful",
        "_heaps",
        "_long",
        "_new",
        "_number",
        "_ready",
        "_resting",
        "_runs",
        "_turn",
        "_workers",
        "held",
        "hosts",
        "live",
        "only",
        "wakes",
    )

    def __init__(self, workers: int = 10) -> None:
        self._workers = workers
        # Those that need long have a second entry, in `_long`.
        self._ready: list[tuple[int, int, int, int, Origin]] = []
        self._long: list[tuple[int, int, Origin]] = []
        self._new: list[tuple[int, Origin]] = []
        self._doubtful: list[tuple[int, Origin]] = []
        # Those in a run, in the order in which they were placed.
        self._runs: deque[tuple[int, Origin]] = deque()
        self._turn = 0
        self._resting: list[tuple[float, int, Origin]] = []
        self._heaps: tuple[list[Any], ...] = (
            self._ready,
            self._long,
            self._new,
            self._doubtful,
            self._resting,
        )
        self._number = 0
        self.live = 0
        self.only: Origin | None = None
        self.held, self.hosts = [0] * len(Share), [0] * len(Share)
        self.wakes = math.inf

    def place(self, origin: Origin, free: float, now: float) -> None:
        """Set the only place of an origin, which may be requested from the time `free` on."""
        share = origin.share
        if len(self._ready) == 1:
            *_, number, only = self._ready[0]
            if only is origin and origin.ticket == number and free <= now and share < Share.LONG:
                # Nothing changes: it is the only origin, as in nearly every crawl of one site.
                self.only = origin if self.live == 1 else None
                return
            # Its requests in flight may have changed while it was the only entry.
            self._ready[0] = (*only.order(number), number, only)
        self.live += not origin.ticket
        number = self._number = origin.ticket = self._number + 1
        load, well = origin.host.load, origin.state.state is State.WELL
        self.only = None
        if free > now:
            heapq.heappush(self._resting, (free, number, origin))
            self.wakes = self._resting[0][0]
        elif share >= Share.NEW and not (well and load.in_flight):
            silent = share is Share.DOUBTFUL
            heapq.heappush(self._doubtful if silent else self._new, (number, origin))
        else:
            # A host that has not answered its first request gets a second one after all others.
            key = load.in_flight + _LAST * (share >= Share.NEW)
            # If it is the only one, its order is set when another comes.
            order = origin.order(number)[1:] if self._ready or self._long else (0, number)
            heapq.heappush(self._ready, (key, *order, number, origin))
            self.only = origin if self.live == 1 else None
            if 0 < origin.run < RUN and not load.in_flight:
                self._runs.append((number, origin))
            if share is Share.LONG:
                # In steps of powers of two, within which hosts take turns.
                heapq.heappush(self._long, (-math.frexp(origin.length)[1], number, origin))
        if sum(map(len, self._heaps)) + len(self._runs) > _FEW_STALE + 4 * self.live:
            self._sweep()

    def move(self, origin: Origin, share: Share) -> None:
        """Let another share of the workers serve an origin, from its next place on."""
        in_flight = origin.state.in_flight
        self.held[origin.share] -= in_flight
        self.held[share] += in_flight
        self.hosts[origin.share] -= 1
        self.hosts[share] += 1
        origin.share = share

    def remove(self, origin: Origin) -> None:
        """Remove the place of an origin, if it has one."""
        if origin.ticket:
            self.live -= 1
            origin.ticket = 0
            self.only = None

    def pop(self) -> Origin | None:
        """Remove and return the next origin that may be requested now; None if there is none."""
        held, workers, self.only = self.held, self._workers, None
        doubtful, unproven = held[Share.DOUBTFUL], held[Share.DOUBTFUL] + held[Share.NEW]
        room_for_new = doubtful < max(1, workers // 4) and unproven < max(1, 3 * workers // 4)
        longs = 3 * (workers - unproven) // 4
        while True:
            heap: list[Any] = self._ready
            if self._new and (room_for_new or not heap):
                heap = self._new
            elif self._doubtful and (doubtful < max(1, workers // 8) or not heap):
                heap = self._doubtful
            elif self._long and held[Share.LONG] < longs:
                heap = self._long
            elif not heap:
                return None
            elif (oldest := self._oldest_run()) is not None:
                return oldest
            *_, number, origin = heapq.heappop(heap)
            if origin.ticket == number:
                self.live -= 1
                origin.ticket = 0
                return cast("Origin", origin)

    def _oldest_run(self) -> Origin | None:
        """Remove and return the origin whose run waits longest, in one of a few turns."""
        self._turn += 1
        if self._turn % _OLDEST_TURN:
            return None
        while self._runs:
            number, origin = self._runs.popleft()
            if origin.ticket == number:
                self.remove(origin)
                return origin
        return None

    def pop_rested(self, now: float) -> Origin | None:
        """Remove and return an origin whose rest is over; None if there is none."""
        while self.wakes <= now:
            _, number, origin = heapq.heappop(self._resting)
            self.wakes = self._resting[0][0] if self._resting else math.inf
            if origin.ticket == number:
                self.remove(origin)
                return origin
        return None

    def _sweep(self) -> None:
        # Each invalid entry is removed once, so this costs no more than pushing.
        for heap in self._heaps:
            heap[:] = [entry for entry in heap if entry[-2] == entry[-1].ticket]
            heapq.heapify(heap)
        self._runs = deque([entry for entry in self._runs if entry[0] == entry[1].ticket])
        self.wakes = self._resting[0][0] if self._resting else math.inf
