"""Retries: which answers are retried, and after how long. The clock and jitter are arguments."""

from __future__ import annotations

import re
from datetime import datetime

import httpx

from trio_crawler.expressions import lazy
from trio_crawler.model import Answer, Fault, Phase, Reason, Response
from trio_crawler.policy.headers import parse_http_date
from trio_crawler.reason import Kind, of_kind

TRANSIENT = frozenset(of_kind(Kind.TRANSIENT))
"""The faults that may not happen again at the next try, such as a reset connection."""

TRANSIENT_STATUSES = frozenset({429, 502, 503, 504})
"""The statuses of a temporary state of the server (RFC 6585, 4; RFC 9110, 15.6)."""

REFUSALS = frozenset({429, 503})
"""The statuses with which a server refuses a request, for instance since there are too many."""

LEAST_BAD = 429
"""No status below this one is retried, or blamed on the host."""

FIRST_DELAY = 0.5
"""Seconds before the first retry, and of a host's first rest; both double with each failure."""

MAX_DELAY = 300.0
"""The most seconds that a URL waits for its next try, also if the server asks for more."""

# Failures in a row after which a host that never answered is given up if its name does not exist,
# or if its port is closed. Both are answers, but ones that may be wrong while a network or a
# server comes up.
_ABSENT_TRIES = 2
# Faults that may be due to the host, and not only to the URL.
_HOST_FAULTS = (TRANSIENT - {Reason.INCOMPLETE, Reason.NO_SOCKETS}) | {Reason.TIMEOUT}
# Statuses of 500 and more that are due to the request.
_REQUEST_STATUSES = (501, 505)
_BEFORE_ANSWER = (Phase.SEND, Phase.WAIT)
# With any other error a server that has the page may answer HEAD. These are its answer to GET,
# too, and the last four are retried after a while.
_SAME_BY_GET = frozenset({401, 429, 502, 503, 504})
# So are these faults: a server that does not expect HEAD may break the connection, or wait.
_BY_HEAD = frozenset({Reason.RESET, Reason.INCOMPLETE, Reason.BAD_REPLY, Reason.TIMEOUT})

# Seconds: a Retry-After of more than a day is not meant for a crawl.
_MAX_RETRY_AFTER = 86_400
# RFC 9110, 10.2.3: digits and nothing else.
_SECONDS = re.compile("[0-9]{1,10}")
_NUMBER = re.compile(r"[0-9]{1,10}(?:\.[0-9]{1,9})?")
# Of `"default";r=0;t=30`, and in earlier drafts `remaining=0, reset=30`.
_NOTHING_LEFT = lazy(r"(?:^|[;,])\s*(?:r|remaining)\s*=\s*0\s*(?:[;,]|$)")
_UNTIL = lazy(r"(?:^|[;,])\s*(?:t|reset)\s*=\s*([0-9]+)")
# A greater number is no duration but a Unix time.
_LEAST_TIME = 1e9


def is_transient(answer: Answer, tries: int = 1) -> bool:
    """Whether a job should be retried after this answer to try number `tries`.

    Two kinds of answer are retried once: 500 and the like, and a timeout before the first byte.
    They are mostly due to the URL alone, but may be the only sign of a host in trouble.
    """
    if isinstance(answer, Fault):
        silent = answer.reason is Reason.TIMEOUT and answer.phase in _BEFORE_ANSWER
        return answer.reason in TRANSIENT or (silent and tries < 2)
    if answer.status < LEAST_BAD:
        return False
    return answer.status in TRANSIENT_STATUSES or (tries < 2 and _blames_host(answer.status))


def blames_host(answer: Answer) -> bool:
    """Whether an answer may mean that the host, and not only the URL, is in trouble."""
    if isinstance(answer, Fault):
        return answer.reason in _HOST_FAULTS and answer.phase is not Phase.READ
    return answer.status >= LEAST_BAD and _blames_host(answer.status)


def tries_of_host(answer: Answer, tries: int, *, neighbour_up: bool = False) -> int:
    """Return the failures in a row, the last one `answer`, that lose a host without patience.

    That is `tries` as a rule. It is two if the name of the host does not exist, or if the host
    refuses connections on this port while it answers on another one (`neighbour_up`). A host that
    answered before has patience, since a name server may deny a name in an outage, and a server
    may be restarted.
    """
    reason = answer.reason if isinstance(answer, Fault) else None
    absent = reason is Reason.NO_SUCH_HOST or (
        neighbour_up and reason is Reason.CONNECTION_REFUSED
    )
    return min(tries, _ABSENT_TRIES) if absent else tries


def is_doubtful_by_head(answer: Answer) -> bool:
    """Whether an answer to HEAD may not be that to GET."""
    if isinstance(answer, Fault):
        return answer.reason in _BY_HEAD
    return answer.status >= 400 and answer.status not in _SAME_BY_GET


def is_silent(answer: Answer) -> bool:
    """Whether no answer came in time, from the server or from the one behind a gateway (504)."""
    if isinstance(answer, Fault):
        late = answer.reason in (Reason.TIMEOUT, Reason.CONNECT_TIMEOUT)
        return late and answer.phase is not Phase.READ
    return answer.status == 504


def _blames_host(status: int) -> bool:
    return status in TRANSIENT_STATUSES or (status >= 500 and status not in _REQUEST_STATUSES)


def delay_after(answer: Answer, tries: int, now: datetime, jitter: float) -> float:
    """Return the seconds from the answer to try number `tries` until the next try.

    The delay is the Retry-After of the server, but at least the `backoff` for that try. `jitter`
    is in [0, 1).
    """
    asked = retry_after(answer.headers, now) if isinstance(answer, Response) else None
    return max(asked or 0.0, backoff(tries, MAX_DELAY, jitter))


def backoff(row: int, longest: float, jitter: float) -> float:
    """Return the seconds to wait after `row` failures in a row: 0.5, 1, 2, ... `longest`.

    `jitter`, in [0, 1), scales them by a factor from 0.5 to 1, so that jobs and hosts that failed
    together are not retried together.
    """
    whole = min(FIRST_DELAY * 2.0 ** min(row - 1, 10), longest)
    return float(whole * (0.5 + jitter / 2))


def retry_after(headers: httpx.Headers, now: datetime) -> float | None:
    """Return the seconds that Retry-After asks for (RFC 9110, 10.2.3), at most 300.

    None if there is no such field, or none with a value that counts: a value that is neither a
    number of seconds nor a date is ignored, and so is a time of more than a day. A date in the
    past counts as 0 seconds. If there are several fields, the longest time counts. `now` must
    have a time zone.
    """
    parsed = (_parsed(value.strip(" \t"), now) for value in headers.get_list("retry-after"))
    valid = [seconds for seconds in parsed if seconds is not None and seconds <= _MAX_RETRY_AFTER]
    return min(max(valid), MAX_DELAY) if valid else None


def quota_reset(headers: httpx.Headers, now: datetime) -> float | None:
    """Return the seconds until a host answers again whose quota is used up, at most 300.

    None if something is left of it, or if the host says nothing of a quota. It may say so by
    RateLimit (draft-ietf-httpapi-ratelimit-headers), or by a pair of fields that end in
    RateLimit-Remaining and RateLimit-Reset, with `X-` or without. The latter has seconds, or the
    Unix time. What is no number is ignored, and so is a time of more than a day. Of several the
    longest time counts. `now` must have a time zone.
    """
    fields = {
        name.removeprefix("x-").replace("rate-limit", "ratelimit"): value.strip()
        for name, value in headers.items()
    }
    resets = list[str]()
    # Fields that come twice are joined by commas.
    if "0" in re.split(", *", fields.get("ratelimit-remaining", "")):
        reset = fields.get("ratelimit-reset", "")
        resets += re.split(", *", fields.get("ratelimit-reset-after", reset))
    policies = fields.get("ratelimit", "")
    # In earlier drafts the comma stands between the parameters of the only policy.
    for policy in policies.split(",") if ";" in policies else [policies]:
        if _NOTHING_LEFT.search(policy):
            resets += _UNTIL.findall(policy)
    numbers = [float(reset) for reset in resets if _NUMBER.fullmatch(reset)]
    seconds = [each - now.timestamp() if each > _LEAST_TIME else each for each in numbers]
    valid = [each for each in seconds if 0 < each <= _MAX_RETRY_AFTER]
    return min(max(valid), MAX_DELAY) if valid else None


def rest_asked_for(response: Response, names: str, now: datetime) -> float:
    """Return the seconds for which a response asks to leave its host alone; 0 if it does not.

    `names` are those of its header fields, in lower case.
    """
    asked = quota_reset(response.headers, now) if "limit" in names else None
    if blames_host(response):
        asked = max(asked or 0.0, retry_after(response.headers, now) or 0.0)
    return asked or 0.0


def _parsed(value: str, now: datetime) -> float | None:
    if _SECONDS.fullmatch(value):
        return float(value)
    date = parse_http_date(value)
    return None if date is None else max((date - now).total_seconds(), 0.0)
