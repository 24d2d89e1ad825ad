"""The rota: whose turn it is, among the hosts that may be asked and those that rest."""

from __future__ import annotations

import heapq
import math

from trio_crawler.frontier.origin import Host

_FEW = 64


class Rota:
    """Keep hosts in the order of their turns.

    Of those that may be asked now the one with the fewest requests in flight comes first, then
    the one that has waited longest. A host has one valid entry at most; those that it left are
    passed over, and swept out before they are half of all. `wakes` is when the next host will
    have rested, or earlier.
    """

    __slots__ = ("_number", "_ready", "_resting", "_stale", "wakes")

    def __init__(self) -> None:
        self._ready: list[tuple[int, int, Host]] = []
        self._resting: list[tuple[float, int, Host]] = []
        self._number = 0
        self._stale = 0
        self.wakes = math.inf

    def place(self, host: Host, free: float, now: float) -> None:
        """Give a host its place, and no other: it may be asked from `free` on."""
        if len(self._ready) == 1:
            _, number, only = self._ready[0]
            if only is host and host.ticket == number and free <= now:
                # Nobody is there to be before it, as in nearly every crawl of one site.
                return
            self._ready[0] = (only.manners.load.flying, number, only)
        self.remove(host)
        self._number = host.ticket = self._number + 1
        if free <= now:
            heapq.heappush(self._ready, (host.manners.load.flying, self._number, host))
        else:
            heapq.heappush(self._resting, (free, self._number, host))
            self.wakes = self._resting[0][0]
        if self._stale > _FEW + (len(self._ready) + len(self._resting)) // 2:
            self._sweep()

    def remove(self, host: Host) -> None:
        """Take a host's place away, if it has one."""
        if host.ticket:
            self._stale += 1
            host.ticket = 0

    def pop(self) -> Host | None:
        """Take the host whose turn it is."""
        while self._ready:
            _, number, host = heapq.heappop(self._ready)
            if self._is_valid(host, number):
                return host
        return None

    def rested(self, now: float) -> Host | None:
        """Take a host that has rested; it is to be placed anew."""
        while self.wakes <= now:
            _, number, host = heapq.heappop(self._resting)
            self.wakes = self._resting[0][0] if self._resting else math.inf
            if self._is_valid(host, number):
                return host
        return None

    def _is_valid(self, host: Host, number: int) -> bool:
        if host.ticket != number:
            self._stale -= 1
            return False
        host.ticket = 0
        return True

    def _sweep(self) -> None:
        # Each entry is swept out once, so that is no more work than to push it was.
        self._ready = [entry for entry in self._ready if entry[1] == entry[2].ticket]
        self._resting = [entry for entry in self._resting if entry[1] == entry[2].ticket]
        heapq.heapify(self._ready)
        heapq.heapify(self._resting)
        self.wakes = self._resting[0][0] if self._resting else math.inf
        self._stale = 0
