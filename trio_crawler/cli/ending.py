"""The early end of a crawl: by Ctrl-C, SIGTERM, SIGHUP or --max-time."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress

import trio

from trio_crawler import Crawler
from trio_crawler.cli.signals import SIGNALS, name_of

GRACE = 5.0
"""Seconds that requests in flight may take after the first signal, or after --max-time."""


class Ending:
    """Obey the signals: the first stops the crawl, the second cancels `scope`.

    `signalled` says whether one was obeyed. `phrase` tells people why the crawl ended early, "" if
    it did not. `at_once` is set by the second signal.
    """

    def __init__(self, say: Callable[[str], None]) -> None:
        self.scope = trio.CancelScope()
        self.signalled = False
        self.phrase = ""
        self.at_once = False
        self._say = say
        self._crawler: Crawler | None = None
        self._woken = trio.Event()
        self._obeyed = 0

    def begin(self, crawler: Crawler, max_seconds: float | None) -> None:
        """Let signals stop this crawl, and cancel it a grace period after --max-time."""
        self._crawler = crawler
        if max_seconds is not None:
            self.scope.deadline = trio.current_time() + max_seconds + GRACE

    def close(self) -> trio.CancelScope:
        """Return the scope, not yet entered, of the work that is left after the crawl."""
        if self.scope.cancelled_caught and not self.phrase:
            self.phrase = f"cut short {GRACE:g} s after --max-time"
        deadline = self.scope.deadline if self.signalled else math.inf
        self.scope = trio.CancelScope(deadline=deadline)
        if self.at_once:
            self.scope.cancel(self.phrase)
        return self.scope

    async def listen(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Obey the signals, also those that came before, until cancelled."""
        # Not `trio.open_signal_receiver`: at its end it delivers again, to the default
        # handler, the signals that were not received.
        token = trio.lowlevel.current_trio_token()

        def wake() -> None:
            # Called by the handler, wherever that interrupts this thread.
            with suppress(trio.RunFinishedError):
                token.run_sync_soon(self._wake)

        with SIGNALS.waking(wake):
            self._obey_all()
            task_status.started()
            while True:
                await self._woken.wait()
                self._woken = trio.Event()
                self._obey_all()

    def _wake(self) -> None:
        self._woken.set()

    def _obey_all(self) -> None:
        for number in SIGNALS.received[self._obeyed :]:
            self._obeyed += 1
            self._obey(name_of(number))

    def _obey(self, name: str) -> None:
        if self.signalled or self._crawler is None:
            self.signalled = self.at_once = True
            self.phrase = f"stopped at once by {name}"
            self.scope.cancel(self.phrase)
            return
        self.signalled, self.phrase = True, f"stopped by {name}"
        self._crawler.stop()
        self.scope.deadline = min(self.scope.deadline, trio.current_time() + GRACE)
        # Its reader may have left, or the terminal: the crawl is ending all the same.
        with suppress(OSError):
            self._say(f"{name}: finishing what is in flight; once more to stop at once")
