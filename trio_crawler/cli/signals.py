"""Signals: how Ctrl-C, SIGTERM and --max-time end a crawl."""

from __future__ import annotations

import math
import signal
from collections.abc import Callable

import trio

from trio_crawler import Crawler

GRACE = 5.0
"""Seconds that requests in flight may take after the first signal, or after --max-time."""

# Not every system has SIGTERM.
_SIGNALS = [signal.SIGINT, *([signal.SIGTERM] if hasattr(signal, "SIGTERM") else [])]


class Ending:
    """Listen for Ctrl-C and SIGTERM: the first stops the crawl, the second cancels `scope`.

    `signal` is the number of the first signal, 0 before it comes. `phrase` tells people why the
    crawl ended early, "" if it did not. `at_once` is set by the second signal.
    """

    def __init__(self, say: Callable[[str], None]) -> None:
        self.scope = trio.CancelScope()
        self.signal = 0
        self.phrase = ""
        self.at_once = False
        self._say = say
        self._crawler: Crawler | None = None

    def begin(self, crawler: Crawler, max_seconds: float | None) -> None:
        """Let signals stop this crawl, and cancel it a grace period after --max-time."""
        self._crawler = crawler
        if max_seconds is not None:
            self.scope.deadline = trio.current_time() + max_seconds + GRACE

    def close(self) -> trio.CancelScope:
        """Return the scope, not yet entered, of the work that is left after the crawl."""
        if self.scope.cancelled_caught and not self.phrase:
            self.phrase = f"cut short {GRACE:g} s after --max-time"
        deadline = self.scope.deadline if self.signal else math.inf
        self.scope = trio.CancelScope(deadline=deadline)
        if self.at_once:
            self.scope.cancel(self.phrase)
        return self.scope

    async def listen(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Obey the signals, until cancelled."""
        with trio.open_signal_receiver(*_SIGNALS) as signals:
            task_status.started()
            async for number in signals:
                name = "Ctrl-C" if number == signal.SIGINT else signal.Signals(number).name
                self._obey(number, name)

    def _obey(self, number: int, name: str) -> None:
        if self.signal or self._crawler is None:
            self.signal = self.signal or number
            self.phrase, self.at_once = f"stopped at once by {name}", True
            self.scope.cancel(self.phrase)
            return
        self.signal, self.phrase = number, f"stopped by {name}"
        self._crawler.stop()
        self.scope.deadline = min(self.scope.deadline, trio.current_time() + GRACE)
        self._say(f"{name}: finishing what is in flight; once more to stop at once")
