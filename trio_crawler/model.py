"""The words of a crawl: a job, what a fetch answers, and the four ways a URL can end.

Everything here is frozen and does nothing; whoever receives one may keep it for ever.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import NamedTuple, TypeAlias

import httpx
import webencodings

from trio_crawler.reasons import Phase as Phase
from trio_crawler.reasons import Reason as Reason


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


@dataclass(frozen=True, slots=True, init=False)
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

    # ▶ Some five are made for each URL. What a frozen dataclass has for this looks each slot up by
    # its name, and takes 1.9 times as long.
    def __init__(
        self,
        url: str,
        depth: int = 0,
        redirects: int = 10,
        referrer: str | None = None,
        tries: int = 0,
        purpose: Purpose = Purpose.PAGE,
        priority: float | None = None,
        validator: Validator | None = None,
        refused: Reason | Fault | None = None,
    ) -> None:
        _url(self, url)
        _depth(self, depth)
        _redirects(self, redirects)
        _referrer(self, referrer)
        _tries(self, tries)
        _purpose(self, purpose)
        _priority(self, priority)
        _validator(self, validator)
        _refused(self, refused)


SLOTS = {each.name: vars(Job)[each.name].__set__ for each in fields(Job)}
"""What sets each field of a job that is being made."""

_url, _depth, _redirects = SLOTS["url"], SLOTS["depth"], SLOTS["redirects"]
_referrer, _tries, _purpose = SLOTS["referrer"], SLOTS["tries"], SLOTS["purpose"]
_priority, _validator, _refused = SLOTS["priority"], SLOTS["validator"], SLOTS["refused"]


@dataclass(frozen=True, slots=True)
class Response:
    """Hold one HTTP response: the status, the headers and the whole body, content-decoded.

    `request` is the head of the request as it was sent, if the fetch tells.
    """

    status: int
    headers: httpx.Headers = field(default_factory=httpx.Headers)
    body: bytes = field(default=b"", repr=False)
    request: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True)
class Fault:
    """Say why no response came: a reason for programs, a sentence for people.

    `phase` is how far the fetch had come, where that is known.
    """

    reason: Reason
    detail: str = ""
    phase: Phase | None = None


Fetch: TypeAlias = Callable[[Job], Awaitable[Response | Fault]]
"""Ask for one URL, once: redirects are reported, not followed; only our own bugs raise.

What it calls itself, in an attribute `user_agent`, chooses the rules of robots.txt; so does
`Politeness(agent=...)`, which goes first.
"""


class Refused(NamedTuple):
    """Name a link that was not admitted, and why."""

    url: str
    reason: Reason


class Anchor(NamedTuple):
    """Say what a link is: its `kind` is the element ("a", "area"), `text` what a reader sees."""

    kind: str = "a"
    text: str = ""


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

    `anchors` has the first anchor of each distinct link, by its URL, if the crawl keeps them. Of a
    page that comes from a crawl directory the body is empty: `body_size` is what it had.
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
    anchors: Mapping[str, Anchor] = field(default_factory=dict, repr=False)
    body_size: int | None = None

    @property
    def size(self) -> int:
        """Return the bytes of the body, also where it is not here any more."""
        return len(self.body) if self.body_size is None else self.body_size

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
"""The four ways in which a URL that was admitted can end."""


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
