"""Limits: how far a crawl goes."""

import math
from dataclasses import dataclass

from trio_crawler.arguments import check_number, check_whole


@dataclass(frozen=True, slots=True)
class Limits:
    """The bounds of a crawl; `math.inf` is no bound.

    `max_pages` counts failures, and pages with any status; a redirect and its target count as
    one. With `max_depth` the crawl goes level by level, so that a page's depth is its true
    distance from a seed. After `max_seconds` no URL is admitted and no request is started; the
    requests in flight finish. `max_redirects` bounds the redirects in a row, `max_tries` the
    attempts at one URL, and `max_links` the links that are followed from one page; of these all
    URLs together have at most 4 MiB. The timeout of a request and the bound on a body belong to
    the fetch: see `HttpFetch`.

    No URL is admitted while the URLs that wait, with their referrers and 100 bytes for each, have
    `max_waiting` bytes, and none of a new host after `max_hosts` were found (a host counts for
    each of its ports). Seeds are always admitted.

    Raises TypeError or ValueError, naming the limit, for an invalid value.
    """

    __module__ = "trio_crawler"

    max_depth: float = math.inf
    max_pages: float = math.inf
    max_seconds: float = math.inf
    max_redirects: int = 10
    max_tries: int = 4
    max_links: int = 100_000
    max_waiting: float = 2**30
    max_hosts: float = 50_000

    def __post_init__(self) -> None:
        if self.max_depth != math.inf:
            check_whole("max_depth", self.max_depth)
        if self.max_pages != math.inf:
            check_whole("max_pages", self.max_pages, least=1)
        check_number("max_seconds", self.max_seconds, above=True)
        check_whole("max_redirects", self.max_redirects)
        check_whole("max_tries", self.max_tries, least=1)
        check_whole("max_links", self.max_links, least=1)
        check_number("max_waiting", self.max_waiting, least=1)
        check_number("max_hosts", self.max_hosts, least=1)
