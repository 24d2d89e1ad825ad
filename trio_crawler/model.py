"""The records of a crawl: jobs, answers, and the five kinds of outcome.

All are frozen, and may be kept and shared; `msgspec.structs.replace` makes a changed copy.
"""

# No `from __future__ import annotations` here: `typing.get_type_hints` would look the names up in
# `__module__`, which is set to another module.

from collections.abc import Awaitable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from enum import StrEnum
from typing import ClassVar, NamedTuple, Protocol, TypeAlias

import httpx
import msgspec
import webencodings

from trio_crawler.arguments import check_kind, check_whole, public
from trio_crawler.facts import PageFacts
from trio_crawler.link import Link
from trio_crawler.reason import NOT_WHOLE, Kind, Reason, of_kind

__all__ = [
    "Anchor",
    "Answer",
    "Checked",
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


@public("trio_crawler")
class Phase(StrEnum):
    """The phase in which a fetch failed."""

    RESOLVE = "resolve"
    CONNECT = "connect"
    TLS = "tls"
    SEND = "send"
    WAIT = "wait"
    READ = "read"


REDIRECTS = frozenset({300, 301, 302, 303, 307, 308})
"""The redirect statuses of the Fetch Standard, and 300, which is a redirect with a Location."""


class Purpose(StrEnum):
    """The purpose of a fetch.

    A check asks whether a URL outside the crawl works; `FRAGMENTS` is a check that reads the body
    too, for the fragments that links name. A probe fetches a page again to see whether its host is
    back. `SEEDS` is not fetched: that job stands for `Crawler(seed_stream=...)` until its end.
    """

    PAGE = "page"
    CHECK = "check"
    FRAGMENTS = "fragments"
    ROBOTS = "robots"
    SITEMAP = "sitemap"
    PROBE = "probe"
    SEEDS = "seeds"


CHECKS = frozenset({Purpose.CHECK, Purpose.FRAGMENTS})
"""The purposes of a URL outside the crawl: each ends in a `Checked`."""

COUNTED = frozenset({Purpose.PAGE, *CHECKS})
"""The purposes of the URLs that a crawl counts: each ends in one outcome."""

ADMITTED = frozenset({*COUNTED, Purpose.SITEMAP, Purpose.SEEDS})
"""The purposes of the jobs that are admitted; the scheduler makes all others itself."""


class Record(msgspec.Struct, frozen=True):
    """A record whose repr leaves out what is long."""

    # ▶ To make a page takes 1 us; as a frozen dataclass it took 6, and the class itself 1 ms.
    _unshown: ClassVar[frozenset[str]] = frozenset()

    def __repr__(self) -> str:
        names = [name for name in self.__struct_fields__ if name not in self._unshown]
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
        return f"{type(self).__qualname__}({shown})"


class Validator(NamedTuple):
    """`etag` and `last_modified` of a response, for conditional requests (RFC 9110, 13.1).

    `digest` is the SHA-1 of its body, and `began` the Unix time of its request, if they are known.
    """

    etag: str | None = None
    last_modified: str | None = None
    digest: bytes | None = None
    began: float | None = None


@public("trio_crawler")
class Fault(Record, frozen=True):
    """A fetch that failed: `reason` is for programs, `detail` is a sentence for people.

    `phase` is the phase in which the fetch failed, None if it is unknown. `about` is the purpose
    of the request that failed, if that was not the request for the URL itself: `Purpose.ROBOTS` if
    the robots.txt of its host could not be fetched.
    """

    reason: Reason
    detail: str = ""
    phase: Phase | None = None
    about: Purpose | None = None

    def __post_init__(self) -> None:
        check_kind("the reason of a Fault", self.reason, Reason, "a Reason")
        check_kind("the detail of a Fault", self.detail, str, "a sentence")
        check_kind("the phase of a Fault", self.phase, Phase | None, "a Phase or None")
        check_kind("the about of a Fault", self.about, Purpose | None, "a Purpose or None")


@public("trio_crawler")
class Job(msgspec.Struct, frozen=True):
    """One `url` to be fetched; `msgspec.structs.replace` makes a changed copy.

    `referrer` is the page that led to it, `purpose` what it is fetched for. `depth` is the number
    of links from a seed (neither a redirect nor a part of a page, such as an image, adds one),
    `redirects` the number of redirects that may still follow, `tries` the number of attempts made.
    `priority` (0 to 1) comes from a sitemap. A `validator` makes the request conditional. A
    `blocked` job is not fetched: a Reason ends it as `Skipped`, a Fault as `Failure`. `again`
    marks the second admission of a URL: the first was a redirect, and a redirect has led back when
    its cookies had changed. That is once at most for each URL, or twice if a run ends in between.
    `repeat` marks the second request for a page that a refresh asks for twice; the first answer is
    the outcome. A `recalled` job is not fetched either: less than `Checks.max_age` ago an earlier
    walk found its URL, outside the crawl, fine.
    """

    url: str
    depth: int = 0
    redirects: int = 10
    referrer: str | None = None
    tries: int = 0
    purpose: Purpose = Purpose.PAGE
    priority: float | None = None
    validator: Validator | None = None
    blocked: Reason | Fault | None = None
    again: bool = False
    repeat: bool = False
    recalled: bool = False


@public("trio_crawler")
class Response(Record, frozen=True):
    """One HTTP response: the status, the headers and the body, content-decoded.

    `request` is the head of the request as it was sent, b"" if the fetch does not report it.
    `flaw` is None if the body is whole. It is `TOO_LARGE` for the beginning of a body that is
    larger than the fetch allows, and `NOT_READ` for a body that the fetch did not read, because of
    its type. Neither is a fault of the site: the outcome is a page, never a duplicate of another.

    Raises TypeError or ValueError, naming the field, for a value that it cannot have.
    """

    _unshown = frozenset({"body", "request"})

    status: int
    headers: httpx.Headers = msgspec.field(default_factory=httpx.Headers)
    body: bytes = b""
    request: bytes = b""
    flaw: Reason | None = None

    def __post_init__(self) -> None:
        check_whole("the status of a Response", self.status, least=100)
        check_kind("the headers of a Response", self.headers, httpx.Headers, "httpx.Headers")
        check_kind("the body of a Response", self.body, bytes, "bytes")
        check_kind("the request of a Response", self.request, bytes, "bytes")
        if self.flaw is not None:
            check_kind("the flaw of a Response", self.flaw, Reason, "a Reason or None")
            if self.flaw not in NOT_WHOLE:
                raise ValueError("the flaw of a Response must be TOO_LARGE or NOT_READ")


Answer: TypeAlias = Response | Fault
"""What a fetch returns for a job."""


@public("trio_crawler")
class Fetch(Protocol):
    """Fetch one URL, once: any `async (job) -> Response | Fault`.

    The crawler calls it from as many tasks at once as it has workers. Return a redirect, do not
    follow it. Return a `Fault` for an error of the network. An exception counts as a bug: it ends
    the crawl, with the URL as a note. Do not catch `trio.Cancelled`.

    The crawler reads six optional attributes: `user_agent` (a str) selects the rules of
    robots.txt, unless `Politeness(agent=...)` does; `random` (a `random.Random`) is the source of
    the crawl's random numbers, unless `Crawler(random=...)` is; `cookies_for`, a function of a
    URL, returns the value of the Cookie header that a request would have now, or None. With
    `cookies_for`, and `Response.request` for what was sent, a login that leads back to its first
    URL is followed: see `Job.again`. `sends_credentials` (a bool) says whether requests have
    cookies, a login or a certificate of the client: links with side effects are followed only if
    it is False (see `Politeness.side_effects`). `trio_crawler.net.wrapping` passes the attributes
    of a fetch on to one that calls it.

    Another one is `lookup`, an async function of a URL that looks up the name of its host and
    returns for how many seconds a fetch of this host will wait for no lookup, math.inf for ever.
    No job of a host is given to a worker before, so a name that is slow or silent holds none. A
    name that cannot be looked up is no exception there, but a `Fault` of the next fetch, in the
    phase `RESOLVE`, after which the name is looked up again. The last, `addresses`, is a function
    of a URL: the addresses that the lookup of its host has found. Hosts at one address share what
    one host may have: see `Politeness`. If it holds for ever and has none, all ports of a name do.
    """

    def __call__(self, job: Job, /) -> Awaitable[Answer]: ...


@public("trio_crawler.frontier")
class Attempt(msgspec.Struct, frozen=True):
    """One fetch of a job: its answer, and its seconds from the start to the end of the body.

    `job.tries` counts it. `names` are those of the answer's fields, in lower case, with spaces.
    """

    job: Job
    answer: Answer
    seconds: float
    names: str = ""


class RejectedLink(NamedTuple):
    """The `url` of a link that was not admitted, and the `reason`."""

    url: str
    reason: Reason


class Anchor(NamedTuple):
    """The element of a link (`kind` is "a" or "area"), and its visible `text`."""

    kind: str = "a"
    text: str = ""


_FAILING = (*of_kind(Kind.FAILED), *of_kind(Kind.TRANSIENT), *of_kind(Kind.LOST))


class _Outcome(Record, frozen=True):
    """What outcomes of all kinds have."""

    @property
    def ok(self) -> bool:
        """Whether the URL itself was answered with a success (2xx)."""
        return isinstance(self, Page | Checked) and 200 <= (self.status or 0) < 300

    @property
    def fault(self) -> Fault | None:
        """Why there is no answer, although the URL was wanted; None if there is one."""
        match self:
            case Failure(reason=reason, detail=detail, phase=phase, about=about):
                return Fault(reason, detail, phase, about)
            case Checked(reason=Reason() as reason, status=None) if reason in _FAILING:
                return Fault(reason, self.detail, self.phase)
        return None


@public("trio_crawler")
class Page(_Outcome, frozen=True):
    """The outcome of a `url` that was answered, with any `status` but a redirect.

    `headers` and `body` are those of the last attempt, `tries` the number of attempts, and
    `seconds` the time from its start to the end of the body. If the crawl ended while the URL
    waited for a retry, there is no body. `depth`, `referrer` and `again` are those of its `Job`.
    `content_type` is the media type, "" if it has none, `charset` the encoding that the body was
    read in, and `title` that of the page, None if it has none. `links` are the distinct URLs
    inside the scope that the page links to, in document order; `rejected` are the other links,
    each with its reason; `links_beyond` counts the links that `Limits.max_links` cut off.

    `canonical` is the canonical URL that the page names (RFC 6596); `robots` are its robots
    directives, such as "noindex", from its head and from X-Robots-Tag. `duplicate_of` is the first
    URL of the same host with the same body; then new links of this page are not followed.
    `folded_into` is the canonical URL that this page was folded into; `duplicate_of` is then the
    same URL, and the links are followed unless the body is a copy as well. `flaws` are the defects
    of a page that was read in spite of them. With the flaw `TOO_LARGE` the body ends at the limit
    of the fetch, and the links are those up to there. With `NOT_READ` the body is empty, and
    `size` is its Content-Length, 0 if that is unknown.

    `anchors` has the first anchor of each distinct link, by its URL, if the crawl keeps anchors;
    `facts` has what the page says of itself, if it keeps facts. If the crawl checks links, `found`
    has everything that the page points to, with kinds and places; they are read when the first one
    is asked for. `targets` has the keys of the elements that a fragment may name, if it checks
    fragments; None if they are unknown, because the page was not read whole. The body of a page
    that was read from a crawl directory is empty; `body_size` is its original size.
    """

    _unshown = frozenset("headers body links rejected anchors found targets facts".split())

    url: str
    status: int
    headers: httpx.Headers
    body: bytes
    depth: int = 0
    referrer: str | None = None
    tries: int = 1
    seconds: float = 0.0
    content_type: str = ""
    charset: str = ""
    title: str | None = None
    links: tuple[str, ...] = ()
    links_beyond: int = 0
    rejected: tuple[RejectedLink, ...] = ()
    flaws: tuple[Reason, ...] = ()
    canonical: str | None = None
    robots: tuple[str, ...] = ()
    duplicate_of: str | None = None
    anchors: Mapping[str, Anchor] = msgspec.field(default_factory=dict)
    body_size: int | None = None
    folded_into: str | None = None
    again: bool = False
    found: Sequence[Link] = ()
    targets: AbstractSet[int] | None = None
    facts: PageFacts | None = None

    @property
    def size(self) -> int:
        """The size of the body in bytes, also if the body itself was not kept."""
        return len(self.body) if self.body_size is None else self.body_size

    @property
    def text(self) -> str:
        """The body decoded by `charset`, invalid bytes replaced; each access decodes it again."""
        return webencodings.decode(self.body, self.charset or "utf-8", "replace")[0]


@public("trio_crawler")
class Redirect(_Outcome, frozen=True):
    """The outcome of a `url` that redirects; `rejected` is why `target` was not admitted.

    `status`, `depth`, `referrer`, `tries` and `seconds` are those of a `Page`, and `again` that of
    its `Job`. If the URL is admitted again, another outcome follows. `fragment` is that of its
    Location, which takes the place of that of a link (RFC 9110, 10.2.2), or "".
    """

    url: str
    status: int
    target: str
    depth: int = 0
    referrer: str | None = None
    tries: int = 1
    seconds: float = 0.0
    rejected: Reason | None = None
    again: bool = False
    fragment: str = ""


@public("trio_crawler")
class Failure(_Outcome, frozen=True):
    """The outcome of a `url` whose last attempt failed; `tries` is 0 if it was never fetched.

    `reason` is for programs, `detail` is a sentence for people. `phase` is where it failed, None
    if that is unknown. `about` is `Purpose.ROBOTS` if the robots.txt of the host could not be
    fetched. `target` is that of the last redirect if `reason` is `TOO_MANY_REDIRECTS`. `depth`,
    `referrer`, `seconds` and `again` are those of a `Page`.
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
    about: Purpose | None = None
    again: bool = False


@public("trio_crawler")
class Skipped(_Outcome, frozen=True):
    """The outcome of a `url` that was admitted but never fetched, for a `reason`.

    `depth`, `referrer` and `again` are those of its `Job`; with `again` it was fetched before.
    """

    url: str
    reason: Reason
    depth: int = 0
    referrer: str | None = None
    again: bool = False


@public("trio_crawler")
class Checked(_Outcome, frozen=True):
    """The outcome of a `url` outside the crawl that was only checked: its links are not followed.

    `status` is that of its last response, None if there was none: then `reason` says why, `detail`
    is a sentence for people, and `phase` where it failed. `tries` is 0 if it was never fetched:
    with a status, that is what an earlier walk found, and it was fine. `target` is the target of a
    redirect, which is checked too unless `rejected` says why not. `again` is that of its `Job`: it
    was checked before, without its fragments. `depth`, `referrer` and `seconds` are those of a
    `Page`, and so are `targets`; `fragment` is that of a `Redirect`.
    """

    _unshown = frozenset({"targets"})

    url: str
    status: int | None = None
    reason: Reason | None = None
    detail: str = ""
    phase: Phase | None = None
    target: str | None = None
    rejected: Reason | None = None
    depth: int = 0
    referrer: str | None = None
    tries: int = 1
    seconds: float = 0.0
    again: bool = False
    targets: AbstractSet[int] | None = None
    fragment: str = ""


Outcome: TypeAlias = Page | Redirect | Failure | Skipped | Checked
"""The end of an admitted URL, of one of five kinds."""


class Listing(NamedTuple):
    """The entry of a URL in a sitemap: `last_modified` as written, `priority` from 0 to 1."""

    sitemap: str
    last_modified: str | None = None
    priority: float | None = None


class Sitemap(Record, frozen=True):
    """A sitemap that the crawl found at `url`, and the result of reading it.

    `kind` is "urlset", "index", "text", "rss" or "atom", "" if it could not be read. `entries`
    counts the URLs (or sitemaps) that it lists, `admitted` the new URLs that entered the crawl;
    `rejected` has the first 1,000 that were not admitted. A sitemap with `flaws` was read in part,
    or not at all; `detail` is a sentence about it. If it was not fetched, `fetched` is False and
    `flaws` has the reason. `referrer` is the URL that names it, None if the caller did.
    """

    _unshown = frozenset({"rejected"})

    url: str
    kind: str = ""
    entries: int = 0
    admitted: int = 0
    flaws: tuple[Reason, ...] = ()
    detail: str = ""
    referrer: str | None = None
    rejected: tuple[RejectedLink, ...] = ()
    fetched: bool = True


@public("trio_crawler")
class Statistics(Record, frozen=True):
    """The counts of a crawl at one moment.

    At every checkpoint `admitted == pages + redirects + failures + skipped + checked + in_flight +
    waiting`; at the end the last two are zero. `retries` counts the attempts after the first of
    each URL, `rejected` the rejected links of each page; `bytes` is the size of all bodies of
    pages, `seconds` the duration of the crawl. A URL that was admitted again counts twice.
    """

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
    checked: int = 0
