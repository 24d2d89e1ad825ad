"""What an answer says: by its header fields, and whether and when to ask again."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import httpx

from trio_crawler.expressions import lazy
from trio_crawler.model import Answer, Fault, Phase, Reason, Response, Validator
from trio_crawler.policy.robots import product_token
from trio_crawler.reason import Kind, of_kind

LONGEST = 1_024
"""The most bytes of a value that is kept; an entity tag takes a few dozen."""

# Apache, and others like it, mark the entity tag of a body that they encode, and do not recognise
# their mark in a request (bug 45023). The tag without the mark is that of the body as it is
# decoded, which is the one that is kept.
_coded = lazy(rb'((?:W/)?"[^"]*[^"-])(?:--?|;)(?:gzip|br|deflate|zstd)"')
# Bytes that a field value cannot hold (RFC 9110, 5.5).
_has_control = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]").search

MAX_DIRECTIVES = 50
"""The most directives kept from the header fields of one page, and from its meta elements."""

_LONGEST = 100
"""The most characters of a directive; no date in one is that long."""

_MAX_TEXT = 4_096
"""The most characters that are read of one field or attribute."""

# A date has a comma before its day.
_COMMA = lazy(r",(?!\s*[0-9])")
_VALUED = lazy(r"unavailable_after|max-[a-z-]+")
_AGENT = lazy(r"\*|[a-z0-9_-]\S*")


def parse_http_date(text: str) -> datetime | None:
    """Return a date in one of the formats of HTTP (RFC 9110, 5.6.7) as UTC; None if it is none."""
    try:
        date = parsedate_to_datetime(text)
        return date.replace(tzinfo=UTC) if date.tzinfo is None else date.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


class ReceivedHeaders(httpx.Headers):
    """The headers of a response as they were received: httpx reads them when somebody looks.

    Until then `received` has the fields, and their values by name in lower case.

    ▶ It takes 6 us for the eight fields of a usual head, and 2 us to find one of them.
    """

    def __init__(self, fields: list[tuple[bytes, bytes]], values: dict[bytes, bytes]) -> None:
        self.received = fields, values

    def __getattr__(self, name: str) -> Any:
        """Let httpx read the fields: a method looks for an attribute that was not set yet."""
        given = self.__dict__
        if "received" not in given:
            raise AttributeError(name)
        fields, _ = given.pop("received")
        set_before = dict(given)
        super().__init__(fields)
        given.update(set_before)
        return getattr(self, name)

    @property
    def raw(self) -> list[tuple[bytes, bytes]]:
        """The fields as they were received."""
        received = self.__dict__.get("received")
        return super().raw if received is None else list(received[0])


def by_name(fields: Iterable[tuple[bytes, bytes]]) -> dict[bytes, bytes]:
    """Return the values of fields by their names in lower case; several of one name as a list."""
    values: dict[bytes, bytes] = {}
    for name, value in fields:
        lower = name.lower()
        values[lower] = values[lower] + b", " + value if lower in values else value
    return values


def validator_of(headers: httpx.Headers) -> Validator | None:
    """Return the validator of a response (RFC 9110, 8.8); None if it has none.

    An entity tag is kept as it was received, weak or strong, quoted or not; one character stands
    for one byte (latin-1). A field that came twice, or cannot be sent back, is left out.
    """
    etag, last_modified = _only(headers, b"etag"), _only(headers, b"last-modified")
    return Validator(etag, last_modified) if etag or last_modified else None


def conditions_of(validator: Validator) -> list[tuple[bytes, bytes]]:
    """Return the fields that make a request conditional (RFC 9110, 13.1.2 and 13.1.3).

    With both values there are both fields; the server then uses the entity tag alone. An entity
    tag that is marked with a content coding (`"a-gzip"`) is sent with the mark and without it. A
    value that cannot be sent is left out.
    """
    fields = []
    if validator.etag is not None and (tag := _encoded(validator.etag)) is not None:
        marked = _coded.fullmatch(tag)
        tags = tag if marked is None else b'%b, %b"' % (tag, marked[1])
        fields.append((b"If-None-Match", tags))
    # With a tag the server ignores the date (RFC 9110, 13.1.3).
    if validator.last_modified is not None and (date := _encoded(validator.last_modified)):
        fields.append((b"If-Modified-Since", date))
    return fields


def _only(headers: httpx.Headers, name: bytes) -> str | None:
    # Raw bytes: httpx would decode them by an encoding that it guesses.
    values = [value for key, value in headers.raw if key.lower() == name]
    value = _sendable(values[0]) if len(values) == 1 else None
    return None if value is None else value.decode("latin-1")


def _encoded(value: str) -> bytes | None:
    try:
        return _sendable(value.encode("latin-1"))
    except UnicodeEncodeError:
        return None


def _sendable(value: bytes) -> bytes | None:
    value = value.strip(b" \t")
    # "*" stands for every version: the answer would be 304 for ever.
    if value in (b"", b"*") or len(value) > LONGEST or _has_control(value):
        return None
    return value


def header_directives(headers: httpx.Headers, token: str) -> tuple[str, ...]:
    """Return the directives of all X-Robots-Tag fields that are for all agents or for this one.

    They are in lower case, distinct and in order; "none" becomes "noindex" and "nofollow".
    `token` is a product token. In a field such as "somebot: noindex, nofollow" all directives are
    for that agent, up to the next agent that the field names.
    """
    fields = headers.get_list("x-robots-tag")
    return _distinct(each for text in fields for each in _for_agent(text, token.lower()))


def meta_directives(contents: Iterable[str]) -> tuple[str, ...]:
    """Return the directives in the `content` attributes of meta elements.

    They have the form that `header_directives` documents. The caller chooses the elements:
    `<meta name=robots>`, and those that are named after its product token.
    """
    return _distinct(
        each for text in contents for part in _elements(text) for each in _words(part)
    )


def _for_agent(text: str, token: str) -> Iterator[str]:
    ours = True
    for element in _elements(text):
        name, colon, rest = element.partition(":")
        if colon and _AGENT.fullmatch(name) and not _VALUED.fullmatch(name):
            ours = name == "*" or (token != "" and product_token(name) == token)
            element = rest
        if ours:
            yield from _words(element)


def _elements(text: str) -> Iterator[str]:
    for part in _COMMA.split(text[:_MAX_TEXT].lower()):
        yield ":".join(piece.strip() for piece in part.split(":"))


def _words(element: str) -> Iterable[str]:
    """Return the directives of one element; white space separates them, but not in a value."""
    return [element] if ":" in element else element.split()


def _distinct(elements: Iterable[str]) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for element in elements:
        if len(found) >= MAX_DIRECTIVES:
            break
        if element == "none":
            found.update({"noindex": None, "nofollow": None})
        elif len(element) <= _LONGEST:
            found[element] = None
    return tuple(found)[:MAX_DIRECTIVES]


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
_SECONDS = lazy("[0-9]{1,10}")
_NUMBER = lazy(r"[0-9]{1,10}(?:\.[0-9]{1,9})?")
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
