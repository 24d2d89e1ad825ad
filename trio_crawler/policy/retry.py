"""Retries: which answers are retried, and after how long. Time and chance are arguments."""

from __future__ import annotations

import re
from datetime import datetime

import httpx

from trio_crawler.model import Answer, Fault, Phase, Reason, Response
from trio_crawler.policy.http_dates import parse_http_date

PASSING = frozenset(
    {
        Reason.DNS,
        Reason.CONNECTION_REFUSED,
        Reason.UNREACHABLE,
        Reason.NO_SOCKETS,
        Reason.CONNECT_TIMEOUT,
        Reason.RESET,
        Reason.INCOMPLETE,
    }
)
"""The faults that may be over at the next try."""

PASSING_STATUSES = frozenset({429, 502, 503, 504})
"""The statuses that speak of this moment, not of this URL (RFC 6585, 4; RFC 9110, 15.6)."""

LEAST_BAD = 429
"""No status below this one is retried, or blamed on the host."""

FIRST_DELAY = 0.5
"""Seconds before the first retry, and of a host's first rest; each next one is twice as long."""

MAX_DELAY = 300.0
"""Seconds that a URL waits at most for its next try, whatever the server asks for."""

# The faults and statuses that blame the host, and not only the URL.
_OF_THE_HOST = (PASSING - {Reason.INCOMPLETE, Reason.NO_SOCKETS}) | {Reason.TIMEOUT}
_NOT_OF_THE_HOST = (501, 505)
_SILENT = (Phase.SEND, Phase.WAIT)

# Seconds: a Retry-After of more than a day is not meant for a crawl.
_MAX_MEANT = 86_400
# RFC 9110, 10.2.3: digits and nothing else.
_SECONDS = re.compile("[0-9]{1,10}")


def may_pass(answer: Answer, tries: int = 1) -> bool:
    """Whether the next try may be answered otherwise than try number `tries` was.

    An answer that is mostly the URL's own fault, but is all that shows of a host in trouble, is
    retried once: 500 and the like, and a timeout before the first byte.
    """
    if isinstance(answer, Fault):
        silent = answer.reason is Reason.TIMEOUT and answer.phase in _SILENT
        return answer.reason in PASSING or (silent and tries < 2)
    if answer.status < LEAST_BAD:
        return False
    return answer.status in PASSING_STATUSES or (tries < 2 and _blames_host(answer.status))


def blames_host(answer: Answer) -> bool:
    """Whether an answer may say that the host, and not only the URL, is in trouble."""
    if isinstance(answer, Fault):
        return answer.reason in _OF_THE_HOST and answer.phase is not Phase.READ
    return answer.status >= LEAST_BAD and _blames_host(answer.status)


def _blames_host(status: int) -> bool:
    return status in PASSING_STATUSES or (status >= 500 and status not in _NOT_OF_THE_HOST)


def delay_after(answer: Answer, tries: int, now: datetime, jitter: float) -> float:
    """Return the seconds from the answer to try number `tries` until the next try.

    That is what the server asks for by Retry-After, and at least 0.5, 1, 2, ... seconds, halved
    by a `jitter` in [0, 1).
    """
    asked = retry_after(answer.headers, now) if isinstance(answer, Response) else None
    return max(asked or 0.0, backoff(tries, MAX_DELAY, jitter))


def backoff(row: int, longest: float, jitter: float) -> float:
    """Return the seconds to wait after so many failures in a row: 0.5, 1, 2, ... `longest`.

    A `jitter` of 0 halves them, one of almost 1 leaves them whole: tasks and hosts that failed
    together come back apart.
    """
    whole = min(FIRST_DELAY * 2.0 ** min(row - 1, 10), longest)
    return float(whole * (0.5 + jitter / 2))


def retry_after(headers: httpx.Headers, now: datetime) -> float | None:
    """Return the seconds that Retry-After asks for (RFC 9110, 10.2.3); None if there are none.

    More than 300 count as 300. A time of more than a day, and a value that is neither a number of
    seconds nor a date, are ignored. A date that has passed asks for 0 seconds. Of several fields
    the longest counts. `now` must know its time zone.
    """
    asked = (_asked(value.strip(" \t"), now) for value in headers.get_list("retry-after"))
    meant = [seconds for seconds in asked if seconds is not None and seconds <= _MAX_MEANT]
    return min(max(meant), MAX_DELAY) if meant else None


def _asked(value: str, now: datetime) -> float | None:
    if _SECONDS.fullmatch(value):
        return float(value)
    date = parse_http_date(value)
    return None if date is None else max((date - now).total_seconds(), 0.0)
