"""Reasons: why a URL did not become a page, or what is wrong with one, and in which phase."""

from __future__ import annotations

from enum import StrEnum


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
