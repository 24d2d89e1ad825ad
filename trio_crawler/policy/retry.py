"""Retry: which faults are tried again, and after how long."""

from __future__ import annotations

import random

from trio_crawler.model import Reason

PASSING = frozenset(
    {
        Reason.DNS,
        Reason.REFUSED,
        Reason.UNREACHABLE,
        Reason.CONNECT_TIMEOUT,
        Reason.RESET,
        Reason.INCOMPLETE,
    }
)
"""The faults that may be over at the next try. A page that took the whole deadline is not."""

FIRST_DELAY = 0.5


def delay_before(tries: int, *, jitter: float | None = None) -> float:
    """Return the seconds to wait after `tries` failed attempts: 0.5, 1, 2, ... halved at random.

    `jitter` in [0, 1) stands for the chance; workers that failed together come back apart.
    """
    chance = random.random() if jitter is None else jitter  # noqa: S311 - no secret in it
    return float(FIRST_DELAY * 2 ** (tries - 1) * (0.5 + chance / 2))
