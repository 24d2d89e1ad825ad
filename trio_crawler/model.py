"""The records of a crawl: a job, the answer to it, and the four ways in which a URL can end.

All records are frozen, and may be kept and shared.
"""

# Annotations are objects here, not strings: strings are looked up in `__module__`, which is not
# this module.

from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple, Protocol, TypeAlias

import httpx
import msgspec
import webencodings

from trio_crawler.arguments import check_kind, check_whole

__all__ = [
    "Anchor",
    "Answer",
    "Failure",
    "Fault",
    "Fetch",
    "Job",
    "Listing",
    "Outcome",
    "Page",
    "Phase",
    "Purpose",
    "Reason",
    "Redirect",
    "RejectedLink",
    "Response",
    "Sitemap",
    "Skipped",
    "Statistics",
    "Validator",
]


class Reason(StrEnum):
    """Why a link was rejected, why a URL was skipped or failed, or what is wrong with a page."""

    __module__ = "trio_crawler"

    # Rejected: the URL never entered the frontier.
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

    # Rejected as a trap: such URLs have no end.
    LONG_URL = "long_url"
    DEEP_PATH = "deep_path"
    REPEATED_PATH = "repeated_path"
    PERMUTED_QUERY = "permuted_query"
    TOO_MANY_HOPS = "too_many_hops"
    NOTHING_NEW = "nothing_new"
    PATTERN_BUDGET = "pattern_budget"
    HOST_BUDGET = "host_budget"
    DUPLICATE = "duplicate"

    # Skipped: the URL was admitted and never fetched. ROBOTS and ROBOTS_UNAVAILABLE skip, too.
    HOST_GIVEN_UP = "host_given_up"
    PAGE_BUDGET = "page_budget"
    TIME_BUDGET = "time_budget"
    STOPPED = "stopped"

    # Failed: the URL was fetched, and no page came.
    DNS = "dns"
    CONNECTION_REFUSED = "connection_refused"
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

    # Flaws of a page that came, and was read as well as it could be.
    BAD_CHARSET = "bad_charset"
    TOO_MANY_LINKS = "too_many_links"

    # Flaws of a sitemap, besides BAD_CHARSET, INCOMPLETE and TOO_LARGE: it was read in part.
    BAD_SITEMAP = "bad_sitemap"
    BAD_STATUS = "bad_status"
    TOO_MANY_ENTRIES = "too_many_entries"
    TOO_MANY_LEVELS = "too_many_levels"


class Phase(StrEnum):
    """How far a fetch had come when it failed."""

    __module__ = "trio_crawler"

    RESOLVE = "resolve"
    CONNECT = "connect"
    TLS = "tls"
    SEND = "send"
    WAIT = "wait"
    READ = "read"


REDIRECTS = frozenset({300, 301, 302, 303, 307, 308})
"""The redirect statuses of the Fetch Standard, and 300, which is a redirect with a Location."""


class Purpose(StrEnum):
    """Why a URL is fetched; a probe fetches a page again to see whether its host is back."""

    PAGE = "page"
    ROBOTS = "robots"
    SITEMAP = "sitemap"
    PROBE = "probe"


class Validator(NamedTuple):
    """The header values that make a request conditional (RFC 9110, 13.1), as they came."""

    etag: str | None = None
    last_modified: str | None = None


@dataclass(frozen=True, slots=True)
class Fault:
    """Why no response came: a reason for programs, a sentence for people.

    `phase` is how far the fetch had come, where that is known. `about` is the purpose of the
    request that failed, if it was not a request for the URL itself: `Purpose.ROBOTS` when the
    robots.txt of its host could not be fetched.
    """

    __module__ = "trio_crawler"

    reason: Reason
    detail: str = ""
    phase: Phase | None = None
    about: Purpose | None = None

    def __post_init__(self) -> None:
        check_kind("the reason of a Fault", self.reason, Reason, "a Reason")


class Job(msgspec.Struct, frozen=True):
    """One URL on its way through a crawl; `msgspec.structs.replace` makes a changed copy.

    `depth` counts the links from a seed (a redirect adds none), `redirects` the redirects that
    this path may still follow, `tries` the attempts already made. `priority` (0 to 1) comes from a
    sitemap. A `validator` makes the request conditional. A `blocked` job is not fetched: a Reason
    ends it as `Skipped`, a Fault as `Failure`.
    """

    __module__ = "trio_crawler"

    # ▶ Some five are made for each URL. A struct takes 0.7 us, a frozen dataclass 12.
    url: str
    depth: int = 0
    redirects: int = 10
    referrer: str | None = None
    tries: int = 0
    purpose: Purpose = Purpose.PAGE
    priority: float | None = None
    validator: Validator | None = None
    blocked: Reason | Fault | None = None


@dataclass(frozen=True, slots=True)
class Response:
    """One HTTP response: the status, the headers and the whole body, content-decoded.

    `request` is the head of the request as it was sent, if the fetch reports it.

    Raises TypeError and ValueError for a status that is no whole number from 100 on, and for
    headers or a body of another type.
    """

    __module__ = "trio_crawler"

    status: int
    headers: httpx.Headers = field(default_factory=httpx.Headers)
    body: bytes = field(default=b"", repr=False)
    request: bytes = field(default=b"", repr=False)

    def __post_init__(self) -> None:
        check_whole("the status of a Response", self.status, least=100)
        check_kind("the headers of a Response", self.headers, httpx.Headers, "httpx.Headers")
        check_kind("the body of a Response", self.body, bytes, "bytes")


Answer: TypeAlias = Response | Fault
"""What a fetch returns for a job."""


class Fetch(Protocol):
    """Fetch one URL, once: any `async (job) -> Response | Fault`.

    Called with a `Job`, from as many tasks at once as the crawler has workers. A redirect is
    returned, not followed. Faults of the network are returned as a `Fault`; an exception is a bug,
    and ends the crawl with the URL as a note. A cancellation must pass through.

    Two optional attributes are read: `user_agent` (a str) chooses the rules of robots.txt, unless
    `Politeness(agent=...)` does; `random` (a `random.Random`) seeds the crawl's chance, unless
    `Crawler(random=...)` does.
    """

    def __call__(self, job: Job, /) -> Awaitable[Answer]: ...


Fetch.__module__ = "trio_crawler"


class Attempt(msgspec.Struct, frozen=True):
    """One job that was fetched once: the answer, and the seconds from start to end of body.

    `job.tries` counts this attempt.
    """

    __module__ = "trio_crawler.frontier"

    job: Job
    answer: Answer
    seconds: float


class RejectedLink(NamedTuple):
    """A link that was not admitted, and the reason."""

    url: str
    reason: Reason


class Anchor(NamedTuple):
    """The element of a link ("a", "area"), and the text that a reader sees."""

    kind: str = "a"
    text: str = ""


@dataclass(frozen=True, slots=True)
class Page:
    """A URL that answered with something other than a redirect, whatever its status.

    `links` are the distinct URLs that the page links to inside the scope, in document order;
    `rejected` are the other links, each with its reason; `links_beyond` counts the links that
    `Limits.max_links` cut off. `seconds` runs from the start of the last attempt to the end of the
    body. A URL that waited for a retry when the crawl ended has its last status and headers, and
    no body.

    `canonical` is the canonical URL that the page names (RFC 6596), `robots` are its directives
    for robots, from its head and from X-Robots-Tag, such as "noindex". `duplicate_of` is the first
    URL of the same host with the same body; the links that only this page has are not followed
    then. `folded_into` is the canonical URL that this page gave way to, which is also its
    `duplicate_of` then. `flaws` are the defects of a page that was read all the same.

    `anchors` has the first anchor of each distinct link, by its URL, if the crawl keeps anchors.
    The body of a page that comes from a crawl directory is empty: `size` is what it had.
    """

    __module__ = "trio_crawler"

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
    rejected: tuple[RejectedLink, ...] = field(default=(), repr=False)
    flaws: tuple[Reason, ...] = ()
    canonical: str | None = None
    robots: tuple[str, ...] = ()
    duplicate_of: str | None = None
    anchors: Mapping[str, Anchor] = field(default_factory=dict, repr=False)
    body_size: int | None = None
    folded_into: str | None = None

    @property
    def size(self) -> int:
        """The bytes of the body, also of one that is no longer here."""
        return len(self.body) if self.body_size is None else self.body_size

    @property
    def ok(self) -> bool:
        """Whether the status is a success (2xx)."""
        return 200 <= self.status < 300

    @property
    def text(self) -> str:
        """The body decoded by `charset`, bad bytes replaced; decoded anew at each call."""
        return webencodings.decode(self.body, self.charset or "utf-8", "replace")[0]


@dataclass(frozen=True, slots=True)
class Redirect:
    """A URL that answered with another URL; `rejected` says why that one was not admitted."""

    __module__ = "trio_crawler"

    url: str
    status: int
    target: str
    depth: int = 0
    referrer: str | None = None
    tries: int = 1
    seconds: float = 0.0
    rejected: Reason | None = None


@dataclass(frozen=True, slots=True)
class Failure:
    """A URL that was fetched and gave no page.

    `target` is the URL that a redirect named, when `reason` is `TOO_MANY_REDIRECTS`. `phase` is
    how far the last attempt had come, where that is known. `about` is `Purpose.ROBOTS` when the
    robots.txt of the host could not be fetched.
    """

    __module__ = "trio_crawler"

    url: str
    reason: Reason
    detail: str = ""
    depth: int = 0
    referrer: str | None = None
    tries: int = 1
    seconds: float = 0.0
    target: str | None = None
    phase: Phase | None = None
    about: Purpose | None = None


@dataclass(frozen=True, slots=True)
class Skipped:
    """A URL that was admitted and never fetched; `reason` says why not."""

    __module__ = "trio_crawler"

    url: str
    reason: Reason
    depth: int = 0
    referrer: str | None = None


Outcome: TypeAlias = Page | Redirect | Failure | Skipped
"""The four ways in which a URL that was admitted can end."""


class Listing(NamedTuple):
    """What a sitemap says about a URL: `last_modified` as it is written, `priority` 0 to 1."""

    sitemap: str
    last_modified: str | None = None
    priority: float | None = None


@dataclass(frozen=True, slots=True)
class Sitemap:
    """A sitemap that was named, and what came of it.

    `kind` is "urlset", "index", "text", "rss" or "atom", "" for one that could not be read.
    `entries` counts the URLs (or sitemaps) that it lists, `admitted` those that were new and
    entered the crawl; `rejected` holds the first 1,000 that were not admitted. A sitemap with
    `flaws` was read in part, or not at all; `fetched` is False for one that was not fetched, for
    the reason in `flaws`. `referrer` is the URL that names it, None for one that was given.
    """

    url: str
    kind: str = ""
    entries: int = 0
    admitted: int = 0
    flaws: tuple[Reason, ...] = ()
    detail: str = ""
    referrer: str | None = None
    rejected: tuple[RejectedLink, ...] = field(default=(), repr=False)
    fetched: bool = True


@dataclass(frozen=True, slots=True)
class Statistics:
    """The counts of a crawl at one moment.

    At every moment `admitted == pages + redirects + failures + skipped + in_flight + waiting`;
    at the end the last two are zero. `rejected` counts rejected links, once for each page that
    has them; `bytes` counts the bodies of pages; `seconds` is the age of the crawl.
    """

    __module__ = "trio_crawler"

    admitted: int = 0
    pages: int = 0
    redirects: int = 0
    failures: int = 0
    skipped: int = 0
    in_flight: int = 0
    waiting: int = 0
    retries: int = 0
    rejected: int = 0
    bytes: int = 0
    seconds: float = 0.0
