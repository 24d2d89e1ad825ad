"""Retry: which answers are tried again, and after how long."""

from __future__ import annotations

import random
import re
from datetime import datetime

import httpx

from trio_crawler.model import Fault, Phase, Reason, Response
from trio_crawler.policy.http_dates import moment

PASSING = frozenset(
    {
        Reason.DNS,
        Reason.REFUSED,
        Reason.UNREACHABLE,
        Reason.NO_SOCKETS,
        Reason.CONNECT_TIMEOUT,
        Reason.RESET,
        Reason.INCOMPLETE,
    }
)
"""The faults that may be over at the next try."""

_SILENT = (Phase.SEND, Phase.WAIT)
_NOT_OF_THE_HOST = (501, 505)

PASSING_STATUSES = frozenset({429, 502, 503, 504})
"""The statuses that speak of this moment, not of this URL (RFC 6585, 4; RFC 9110, 15.6)."""

FIRST_DELAY = 0.5
LONGEST_DELAY = 300.0
"""Seconds that a URL waits at most for its next try, whoever asked for it."""

_MEANT = 86_400
"""Seconds: whoever asks for more than a day did not mean this crawl."""

# RFC 9110, 10.2.3: digits and nothing else.
_SECONDS = re.compile("[0-9]{1,10}")


def passing(answer: Response | Fault, tries: int = 1) -> bool:
    """Tell whether the answer to try number `tries` may be another one at the next.

    What mostly is the URL's own fault, but is all that is seen of a host in trouble, is asked for
    once more: 500 and the like, and a time-out before the first byte.
    """
    if isinstance(answer, Fault):
        silent = answer.reason is Reason.TIMEOUT and answer.phase in _SILENT
        return answer.reason in PASSING or (silent and tries < 2)
    return answer.status in PASSING_STATUSES or (failing(answer.status) and tries < 2)


def failing(status: int) -> bool:
    """Tell whether a status may say that the host, and not only the URL, is in trouble."""
    return status in PASSING_STATUSES or (status >= 500 and status not in _NOT_OF_THE_HOST)


def delay_after(answer: Response | Fault, tries: int, now: datetime) -> float:
    """Return the seconds from the answer to try number `tries` until the next try.

    They are what the server asks for by Retry-After, and never less than `delay_before`.
    """
    asked = retry_after(answer.headers, now) if isinstance(answer, Response) else None
    return max(asked or 0.0, delay_before(tries))


def delay_before(tries: int, *, jitter: float | None = None) -> float:
    """Return the seconds to wait after `tries` failed attempts: 0.5, 1, 2, ... halved at random.

    They are never more than 300. `jitter` in [0, 1) stands for the chance; workers that failed
    together come back apart.
    """
    chance = random.random() if jitter is None else jitter  # noqa: S311 - no secret in it
    whole = min(FIRST_DELAY * 2 ** min(tries - 1, 10), LONGEST_DELAY)
    return float(whole * (0.5 + chance / 2))


def retry_after(headers: httpx.Headers, now: datetime) -> float | None:
    """Return the seconds that Retry-After asks for (RFC 9110, 10.2.3), None if it does not.

    More than 300 count as 300; more than a day, and what is neither a number of seconds nor a
    date, is nonsense and as if it were not there. A date that has passed asks for 0 seconds. Of
    several fields the longest counts. `now` must know its time zone.
    """
    asked = (_asked(value.strip(" \t"), now) for value in headers.get_list("retry-after"))
    meant = [seconds for seconds in asked if seconds is not None and seconds <= _MEANT]
    return min(max(meant), LONGEST_DELAY) if meant else None


def _asked(value: str, now: datetime) -> float | None:
    if _SECONDS.fullmatch(value):
        return float(value)
    date = moment(value)
    return None if date is None else max((date - now).total_seconds(), 0.0)
