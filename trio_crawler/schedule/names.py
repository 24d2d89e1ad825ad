"""The names of hosts that are looked up before the jobs of these hosts start."""

from __future__ import annotations

import math
from collections.abc import Callable

import trio

from trio_crawler.model import Answer, Fault, Phase
from trio_crawler.schedule.origin import Host, Origin

# Seconds for which any lookup holds, or a host whose lookup holds no longer would never start.
_LEAST = 1.0


class Names:
    """The hosts that wait until their names are looked up; no worker waits with them.

    `urls` is the channel of the URLs whose hosts are to be looked up: one URL for each lookup.
    Pass each of them to `found`, once. `moved` is called with an origin that waits no more.

    A host waits before its first job. It waits again when its lookup is too old and it has nothing
    in flight, and at the end of its rest after a lookup that failed: each try has a lookup of its
    own.
    """

    def __init__(self, moved: Callable[[Origin], None]) -> None:
        self._sender, self.urls = trio.open_memory_channel[str](math.inf)
        self._moved = moved
        self._sought: dict[Host, Origin] = {}

    def awaits(self, origin: Origin, now: float) -> bool:
        """Whether an origin waits, whose last lookup holds no longer.

        A lookup that is due is asked for.
        """
        host = origin.host
        if host in self._sought:
            return True
        if host.load.in_flight or now < origin.state.free:
            return False
        self._sought[host] = origin
        self._sender.send_nowait(origin.name + "/")
        return True

    def found(self, origin: Origin, now: float, seconds: float) -> None:
        """Record that the lookup of an origin has ended; its result holds for so many seconds."""
        origin.host.named = now + max(seconds, _LEAST)
        del self._sought[origin.host]
        self._moved(origin)

    def answered(self, origin: Origin, answer: Answer) -> None:
        """Record the answer to a job: after a lookup that failed the next one is due."""
        if isinstance(answer, Fault) and answer.phase is Phase.RESOLVE:
            origin.host.named = -math.inf
