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
    ROBOTS = "robots"
    ROBOTS_UNAVAILABLE = "robots_unavailable"
    REL_NOFOLLOW = "rel_nofollow"
    META_NOFOLLOW = "meta_nofollow"
    HEADER_NOFOLLOW = "header_nofollow"

    # Refused as a trap: nobody made a page by hand behind such a URL.
    LONG_URL = "long_url"
    DEEP_PATH = "deep_path"
    REPEATED_PATH = "repeated_path"
    PERMUTED_QUERY = "permuted_query"
    TOO_MANY_HOPS = "too_many_hops"
    NOTHING_NEW = "nothing_new"
    PATTERN_BUDGET = "pattern_budget"
    HOST_BUDGET = "host_budget"
    DUPLICATE = "duplicate"

    # Skipped: it was admitted, and never asked for; ROBOTS and ROBOTS_UNAVAILABLE can be, too.
    HOST_GIVEN_UP = "host_given_up"
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

    # Flaws of a sitemap, besides BAD_CHARSET, INCOMPLETE and TOO_LARGE: it was read in part.
    BAD_SITEMAP = "bad_sitemap"
    BAD_STATUS = "bad_status"
    TOO_MANY_ENTRIES = "too_many_entries"
    TOO_MANY_LEVELS = "too_many_levels"


class Phase(StrEnum):
    """Say how far a fetch had come when it failed."""

    RESOLVE = "resolve"
    CONNECT = "connect"
    TLS = "tls"
    SEND = "send"
    WAIT = "wait"
    READ = "read"


class Purpose(StrEnum):
    """Say what a URL is asked for; a probe is a page that came before: is its host still there?"""

    PAGE = "page"
    ROBOTS = "robots"
    SITEMAP = "sitemap"
    PROBE = "probe"


class Validator(NamedTuple):
    """Hold what makes a request conditional (RFC 9110, 13.1): header values as they came."""

    etag: str | None = None
    last_modified: str | None = None


@dataclass(frozen=True, slots=True)
class Job:
    """One URL on its way through a crawl.

    `depth` counts the links followed from a seed (a redirect adds none), `redirects` the
    redirects this path may still take, `tries` the attempts already made. `priority` (0 to 1) is
    what a sitemap says of it. With a `validator` the request is conditional. A job that is
    `refused` is not asked for: a Reason makes it `Skipped`, a Fault a `Failure`.
    """

    url: str
    depth: int = 0
    redirects: int = 10
    referrer: str | None = None
    tries: int = 0
    purpose: Purpose = Purpose.PAGE
    priority: float | None = None
    validator: Validator | None = None
    refused: Reason | Fault | None = None


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

    `canonical` is the URL that the page calls its own (RFC 6596), `robots` what it asks of robots,
    in its head or by X-Robots-Tag, such as "noindex". `duplicate_of` is the first URL of the same
    host with the same body: what only this page links to was not followed then.
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
    canonical: str | None = None
    robots: tuple[str, ...] = ()
    duplicate_of: str | None = None

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


class Listing(NamedTuple):
    """Hold what a sitemap says of a URL: `last_modified` as it is written, `priority` 0 to 1."""

    sitemap: str
    last_modified: str | None = None
    priority: float | None = None


@dataclass(frozen=True, slots=True)
class Sitemap:
    """A sitemap that was asked for, and what came of it.

    `kind` is "urlset", "index", "text", "rss" or "atom", "" when it could not be told; `entries`
    counts the URLs (or sitemaps) it names, `admitted` those of them that were new and became part
    of the crawl; `refused` holds the first 1,000 that were not admitted. With `flaws` it was read
    in part, or not at all. `referrer` is what names it, None when it was given.
    """

    url: str
    kind: str = ""
    entries: int = 0
    admitted: int = 0
    flaws: tuple[Reason, ...] = ()
    detail: str = ""
    referrer: str | None = None
    refused: tuple[Refused, ...] = field(default=(), repr=False)


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
