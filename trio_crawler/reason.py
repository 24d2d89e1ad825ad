"""The reasons of a crawl: why a link was rejected, and why a URL was skipped or failed."""

from enum import StrEnum

__all__ = ["NOT_WHOLE", "Reason"]


class Reason(StrEnum):
    """Why a link was rejected, why a URL was skipped or failed, or a flaw of a page or sitemap."""

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


NOT_WHOLE = frozenset({Reason.TOO_LARGE, Reason.NOT_READ})
"""The flaws of a page whose body is not whole."""
