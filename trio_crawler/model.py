"""The words of a crawl: a job, what a fetch answers, and the four ways a URL can end.

Everything here is frozen and does nothing; whoever receives one may keep it for ever.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple, TypeAlias

import httpx
import webencodings


class Reason(StrEnum):
    """Say why a URL was refused, was skipped or failed, or what is wrong with a page."""

    # Refused: the URL never entered the frontier.
    OTHER_SITE = "other_site"
    OTHER_SCHEME = "other_scheme"
    BAD_URL = "bad_url"
    EXCLUDED = "excluded"
    NOT_INCLUDED = "not_included"
    TOO_DEEP = "too_deep"

    # Skipped: it was admitted, and the crawl ended before its turn came.
    PAGE_BUDGET = "page_budget"
    TIME_BUDGET = "time_budget"
    STOPPED = "stopped"

    # Failed: it was asked for, and no page came.
    DNS = "dns"
    REFUSED = "refused"
    UNREACHABLE = "unreachable"
    BLOCKED_ADDRESS = "blocked_address"
    NO_SOCKETS = "no_sockets"
    CONNECT_TIMEOUT = "connect_timeout"
    TLS = "tls"
    TIMEOUT = "timeout"
    RESET = "reset"
    BAD_REPLY = "bad_reply"
    INCOMPLETE = "incomplete"
    TOO_LARGE = "too_large"
    TOO_MANY_REDIRECTS = "too_many_redirects"
    BAD_LOCATION = "bad_location"

    # Flaws: the page came, and was read as well as it could be.
    BAD_CHARSET = "bad_charset"
    TOO_MANY_LINKS = "too_many_links"


class Phase(StrEnum):
    """Say how far a fetch had come when it failed."""

    RESOLVE = "resolve"
    CONNECT = "connect"
    TLS = "tls"
    SEND = "send"
    WAIT = "wait"
    READ = "read"


@dataclass(frozen=True, slots=True)
class Job:
    """One URL on its way through a crawl.

    `depth` counts the links followed from a seed (a redirect adds none), `redirects` the
    redirects this path may still take, `tries` the attempts already made.
    """

    url: str
    depth: int = 0
    redirects: int = 10
    referrer: str | None = None
    tries: int = 0


@dataclass(frozen=True, slots=True)
class Response:
    """Hold one HTTP response: the status, the headers and the whole body, content-decoded."""

    status: int
    headers: httpx.Headers = field(default_factory=httpx.Headers)
    body: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True)
class Fault:
    """Say why no response came: a reason for programs, a sentence for people.

    `phase` is how far the fetch had come, where that is known.
    """

    reason: Reason
    detail: str = ""
    phase: Phase | None = None


Fetch: TypeAlias = Callable[[Job], Awaitable[Response | Fault]]
"""Ask for one URL, once: redirects are reported, not followed; only our own bugs raise."""


class Refused(NamedTuple):
    """Name a link that was not admitted, and why."""

    url: str
    reason: Reason


@dataclass(frozen=True, slots=True)
class Page:
    """A URL that answered with something other than a redirect, whatever its status.

    `links` are the distinct URLs the page leads to inside the scope, in document order;
    `refused` those outside it; `links_beyond` counts what `Limits.max_links` cut off.
    `seconds` runs from the start of the last attempt to the end of the body. A URL that waited
    to be tried again when the crawl ended has its last status and headers, and no body.
    """

    url: str
    status: int
    headers: httpx.Headers = field(repr=False)
    body: bytes = field(repr=False)
    depth: int = 0
    referrer: str | None = None
    tries: int = 1
    seconds: float = 0.0
    content_type: str = ""
    charset: str = ""
    title: str | None = None
    links: tuple[str, ...] = field(default=(), repr=False)
    links_beyond: int = 0
    refused: tuple[Refused, ...] = field(default=(), repr=False)
    flaws: tuple[Reason, ...] = ()

    @property
    def ok(self) -> bool:
        """Tell whether the status is one of success (2xx)."""
        return 200 <= self.status < 300

    @property
    def text(self) -> str:
        """Decode the body by `charset`, bad bytes replaced; decoded anew at each call."""
        return webencodings.decode(self.body, self.charset or "utf-8", "replace")[0]


@dataclass(frozen=True, slots=True)
class Redirect:
    """A URL that answered with another URL; `refused` says why that one was not admitted."""

    url: str
    status: int
    target: str
    depth: int = 0
    referrer: str | None = None
    tries: int = 1
    seconds: float = 0.0
    refused: Reason | None = None


@dataclass(frozen=True, slots=True)
class Failure:
    """A URL that was asked for and gave no page.

    `target` is where it would have led, when `reason` is `TOO_MANY_REDIRECTS`; `phase` is how
    far the last attempt had come, where that is known.
    """

    url: str
    reason: Reason
    detail: str = ""
    depth: int = 0
    referrer: str | None = None
    tries: int = 1
    seconds: float = 0.0
    target: str | None = None
    phase: Phase | None = None


@dataclass(frozen=True, slots=True)
class Skipped:
    """A URL that was admitted and never asked for; `reason` says why the crawl ended before."""

    url: str
    reason: Reason
    depth: int = 0
    referrer: str | None = None


Outcome: TypeAlias = Page | Redirect | Failure | Skipped


@dataclass(frozen=True, slots=True)
class Statistics:
    """Count a crawl at one moment.

    At every moment `admitted == pages + redirects + failures + skipped + in_flight + waiting`;
    at the end the last two are zero. `refused` counts refused links, once for each page that
    has them; `bytes` counts the bodies of pages; `seconds` is the age of the crawl.
    """

    admitted: int = 0
    pages: int = 0
    redirects: int = 0
    failures: int = 0
    skipped: int = 0
    in_flight: int = 0
    waiting: int = 0
    retries: int = 0
    refused: int = 0
    bytes: int = 0
    seconds: float = 0.0
