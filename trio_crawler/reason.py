"""The reasons of a crawl: why a link was rejected, and why a URL was skipped or failed.

A reason is a member of `Reason` and a row of `REASONS`, which has all that depends on it alone.
"""

from collections.abc import Mapping
from enum import Enum, StrEnum, auto
from typing import NamedTuple, TypeAlias

__all__ = ["NOT_WHOLE", "REASONS", "About", "Kind", "Reason", "Weight", "of_kind"]


class Reason(StrEnum):
    """Why a link was rejected, why a URL was skipped or failed, or a flaw of a page or sitemap.

    >>> Reason("no_such_host") is Reason.NO_SUCH_HOST
    True
    """

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
    SIDE_EFFECT = "side_effect"
    CHECK_BUDGET = "check_budget"

    # Rejected as a trap: a site with endless URLs.
    LONG_URL = "long_url"
    DEEP_PATH = "deep_path"
    REPEATED_PATH = "repeated_path"
    PERMUTED_QUERY = "permuted_query"
    TOO_MANY_HOPS = "too_many_hops"
    NOTHING_NEW = "nothing_new"
    BARREN_QUERY = "barren_query"
    PATTERN_BUDGET = "pattern_budget"
    HOST_BUDGET = "host_budget"
    TOO_MANY_HOSTS = "too_many_hosts"
    TOO_MANY_PORTS = "too_many_ports"
    WAITING_BUDGET = "waiting_budget"
    DUPLICATE = "duplicate"

    # Skipped: the URL was admitted but never fetched. Also ROBOTS and ROBOTS_UNAVAILABLE.
    HOST_GIVEN_UP = "host_given_up"
    PAGE_BUDGET = "page_budget"
    TIME_BUDGET = "time_budget"
    STOPPED = "stopped"

    # Failed: the URL was fetched, but there was no complete and valid response.
    DNS = "dns"
    NO_SUCH_HOST = "no_such_host"
    CONNECTION_REFUSED = "connection_refused"
    UNREACHABLE = "unreachable"
    BLOCKED_ADDRESS = "blocked_address"
    PROXY = "proxy"
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

    # Flaws of a page, which is a Page all the same; also TOO_LARGE, for a body that was cut at the
    # limit of the fetch. NOT_READ is for a body that was left after the head, because nothing
    # reads its type.
    BAD_CHARSET = "bad_charset"
    TOO_MANY_LINKS = "too_many_links"
    NOT_READ = "not_read"

    # Flaws of a sitemap, read in part or not at all; also BAD_CHARSET, INCOMPLETE, TOO_LARGE.
    BAD_SITEMAP = "bad_sitemap"
    BAD_STATUS = "bad_status"
    TOO_MANY_ENTRIES = "too_many_entries"
    TOO_MANY_LEVELS = "too_many_levels"


class Kind(Enum):
    """What kind of reason it is."""

    OUTSIDE = auto()
    """The scope or an option leaves the URL out, or it is none."""
    GUEST = auto()
    """The host asks programs not to go there."""
    ENDLESS = auto()
    """A rule against sites without an end."""
    LIMIT = auto()
    """A limit of the crawl."""
    EARLY = auto()
    """The crawl ended before the URL was fetched."""
    LOST = auto()
    """The host was given up."""
    FAILED = auto()
    """There was no complete and valid response."""
    TRANSIENT = auto()
    """The same, but it may not happen again at the next try."""
    FLAW = auto()
    """A flaw of a page or a sitemap that was answered."""


class Weight(Enum):
    """What the reason means for a link to such a URL: `policy.verdict` judges by it."""

    CHOSEN = auto()
    """The crawl was not asked to look."""
    NOTED = auto()
    """A limit of the crawl or of its machine, or a flaw of a page that breaks no link."""
    GIVEN_UP = auto()
    """The URL was not asked for, because its host did not answer for others."""
    DOUBTFUL = auto()
    """The link of an external host may be well for a browser, with a login, or an hour later."""
    BROKEN = auto()
    """The link leads nowhere, for any visitor."""


class About(NamedTuple):
    """What depends on a reason alone.

    `sentence` says it to people, without a full stop. `unasked` says why a check did not ask for
    such links, "" if it does, and `way` how it would. `option` lets a crawl follow such links, and
    `hint` ends its report; both are "" if there is none.
    """

    kind: Kind
    weight: Weight
    sentence: str
    unasked: str = ""
    way: str = ""
    option: str = ""
    hint: str = ""


_OUTSIDE = ("outside of the crawl", "--check external checks such links")
_NOFOLLOW = ("ruled out by nofollow", "--ignore-nofollow checks such links")
_NO_TRAPS = ("--no-traps checks such links", "--no-traps follows them")
_ENDLESS = ("as in a site without an end", *_NO_TRAPS)
_MORE = "a greater one checks more"

_Row: TypeAlias = "tuple[str, ...]"
_ROWS: Mapping[tuple[Kind, Weight], Mapping[Reason, _Row]] = {
    (Kind.OUTSIDE, Weight.CHOSEN): {
        Reason.OTHER_SITE: ("The link leads to another site, which is not checked", *_OUTSIDE),
        Reason.OTHER_SCHEME: (
            "The scheme of the link is not checked",
            "no request is made for this scheme",
        ),
        Reason.EXCLUDED: ("An option excludes the URL", "left out by --exclude"),
        Reason.NOT_INCLUDED: ("No option includes the URL", *_OUTSIDE),
        Reason.SIDE_EFFECT: (
            "A request for the URL may change something",
            "a request may change something",
            "--follow-side-effects checks such links",
        ),
    },
    (Kind.OUTSIDE, Weight.BROKEN): {
        Reason.BAD_URL: ("The link is no valid URL",),
    },
    (Kind.GUEST, Weight.NOTED): {
        Reason.ROBOTS: (
            "The robots.txt of the host disallows the URL",
            "disallowed by robots.txt",
            "--ignore-robots checks such links",
        ),
    },
    (Kind.GUEST, Weight.CHOSEN): {
        Reason.REL_NOFOLLOW: ("The link asks not to be followed (rel=nofollow)", *_NOFOLLOW),
        Reason.META_NOFOLLOW: (
            "The page asks not to follow its links (robots meta nofollow)",
            *_NOFOLLOW,
        ),
        Reason.HEADER_NOFOLLOW: (
            "The page asks not to follow its links (X-Robots-Tag nofollow)",
            *_NOFOLLOW,
        ),
    },
    (Kind.ENDLESS, Weight.NOTED): {
        Reason.LONG_URL: ("The URL is too long, as in a site without an end", *_ENDLESS),
        Reason.DEEP_PATH: (
            "The path of the URL is too deep, as in a site without an end",
            *_ENDLESS,
        ),
        Reason.REPEATED_PATH: ("The path of the URL repeats itself", *_ENDLESS),
        Reason.PERMUTED_QUERY: (
            "The URL is another one with its parameters in another order",
            *_ENDLESS,
        ),
        Reason.TOO_MANY_HOPS: ("The URL is too many links away from the start", *_ENDLESS),
        Reason.NOTHING_NEW: ("URLs like this one had nothing new", *_ENDLESS),
        Reason.BARREN_QUERY: ("URLs with a parameter of this one had nothing new", *_ENDLESS),
        Reason.PATTERN_BUDGET: ("Too many URLs like this one were crawled", *_ENDLESS),
        Reason.HOST_BUDGET: ("Too many URLs of the host were crawled", *_ENDLESS),
        Reason.DUPLICATE: (
            "Only copies of another page link to the URL",
            "on copies of other pages",
            *_NO_TRAPS,
        ),
    },
    (Kind.EARLY, Weight.NOTED): {
        Reason.PAGE_BUDGET: (
            "The crawl reached its limit of pages before the URL",
            "--max-pages was reached",
            _MORE,
            "",
            "links were not followed after --max-pages (a greater one follows more)",
        ),
        Reason.TIME_BUDGET: (
            "The time of the crawl was over before the URL",
            "--max-time was over",
            _MORE,
        ),
        Reason.STOPPED: (
            "The crawl was stopped before the URL",
            "the check was stopped",
            "a check to its end has all",
        ),
    },
    (Kind.LIMIT, Weight.CHOSEN): {
        Reason.TOO_DEEP: (
            "The URL is deeper in the site than the crawl may go",
            "beyond --depth",
            "--check external checks such links",
        ),
        Reason.CHECK_BUDGET: (
            "Enough links to the host were checked",
            "--check-max-per-host was reached",
            _MORE,
        ),
    },
    (Kind.LIMIT, Weight.NOTED): {
        Reason.WAITING_BUDGET: (
            "Too many URLs were waiting",
            "--max-waiting was reached",
            _MORE,
            "--max-waiting lets more wait",
            "links were not followed while too many URLs waited (--max-waiting lets more wait)",
        ),
        Reason.TOO_MANY_HOSTS: (
            "Too many hosts were found",
            "--max-hosts was reached",
            _MORE,
            "--max-hosts allows more",
            "links to new hosts were not followed after many hosts (--max-hosts allows more)",
        ),
        Reason.TOO_MANY_PORTS: (
            "Too many ports of the host were found",
            "at one more port of a host than ten",
            "",
            "name its ports as seeds to crawl them",
            "links to more than ten ports of a host were not followed",
        ),
    },
    (Kind.LOST, Weight.GIVEN_UP): {
        Reason.ROBOTS_UNAVAILABLE: (
            "The robots.txt of the host cannot be read, so no URL is asked for",
        ),
        Reason.HOST_GIVEN_UP: ("The host no longer answered, so the URL was not asked for",),
    },
    (Kind.FAILED, Weight.BROKEN): {
        Reason.TLS: ("The host has no valid certificate, or its TLS fails",),
        Reason.BAD_REPLY: ("The server does not answer in HTTP",),
        Reason.TOO_MANY_REDIRECTS: ("The redirects have no end",),
        Reason.BAD_LOCATION: ("The redirect has no valid target",),
    },
    (Kind.FAILED, Weight.NOTED): {
        Reason.BLOCKED_ADDRESS: ("The crawl may not connect to the address of the host",),
        Reason.PROXY: ("The proxy does not pass the request on",),
        Reason.TOO_LARGE: ("The body is larger than the crawl reads",),
    },
    (Kind.FAILED, Weight.DOUBTFUL): {
        Reason.TIMEOUT: ("The server does not answer in time",),
    },
    (Kind.TRANSIENT, Weight.BROKEN): {
        Reason.DNS: ("The name server cannot look up the name of the host",),
        Reason.NO_SUCH_HOST: ("The name of the host does not exist",),
        Reason.CONNECTION_REFUSED: ("The host refuses the connection",),
        Reason.UNREACHABLE: ("The host cannot be reached",),
    },
    (Kind.TRANSIENT, Weight.NOTED): {
        Reason.NO_SOCKETS: ("This machine had no socket left",),
    },
    (Kind.TRANSIENT, Weight.DOUBTFUL): {
        Reason.CONNECT_TIMEOUT: ("The host does not accept a connection in time",),
        # Many a firewall resets the connections of programs.
        Reason.RESET: ("The server closes the connection before it answers",),
        Reason.INCOMPLETE: ("The server breaks off in the middle of its answer",),
    },
    (Kind.FLAW, Weight.NOTED): {
        Reason.BAD_CHARSET: ("The page is not in the encoding that it declares",),
        Reason.TOO_MANY_LINKS: ("The page has more links than the crawl follows",),
        Reason.TOO_MANY_ENTRIES: ("The sitemap has more entries than the crawl reads",),
        Reason.TOO_MANY_LEVELS: ("The sitemap is too many sitemaps away from the first",),
    },
    (Kind.FLAW, Weight.CHOSEN): {
        # Such as an image or an archive.
        Reason.NOT_READ: ("The body is of a type that has no links",),
    },
    (Kind.FLAW, Weight.BROKEN): {
        Reason.BAD_SITEMAP: ("The sitemap cannot be read",),
        Reason.BAD_STATUS: ("The server has no sitemap there",),
    },
}
REASONS: Mapping[Reason, About] = {
    reason: About(kind, weight, *row)
    for (kind, weight), rows in _ROWS.items()
    for reason, row in rows.items()
}
"""What each reason means: every reason has its row."""


def of_kind(kind: Kind) -> tuple[Reason, ...]:
    """Return the reasons of a kind: to compare a Reason is quicker than to hash it."""
    return tuple(reason for reason, about in REASONS.items() if about.kind is kind)


NOT_WHOLE = frozenset({Reason.TOO_LARGE, Reason.NOT_READ})
"""The flaws of a page whose body is not whole."""
