"""Scope: which URLs belong to a crawl. A filter is a function; filters compose."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from functools import cache
from typing import TYPE_CHECKING, TypeAlias

from trio_crawler.model import Job, Reason
from trio_crawler.page.urls import host, normalise, without_userinfo

if TYPE_CHECKING:
    import tldextract

Admits: TypeAlias = Callable[[Job], Reason | None]
"""Judge a job: None admits it, a reason refuses it. Must be quick and must not wait."""

Pattern: TypeAlias = str | re.Pattern[str]


def same_site(seeds: Iterable[str], *, lenient: bool = False) -> Admits:
    """Admit the hosts of the seeds, on any port, by http or https.

    Strict: the same host, with or without one leading `www.`. Lenient: the same registrable
    domain by the public suffix list (https://publicsuffix.org/), so `a.example.co.uk` goes with
    `www.example.co.uk` and not with `other.co.uk`. IP addresses match only themselves.
    """
    if isinstance(seeds, str):
        raise TypeError(f"seeds must be several URLs: write [{without_userinfo(seeds)!r}]")
    site_of = _registrable if lenient else _without_www
    sites = frozenset(site_of(host(_prefix(seed))) for seed in seeds)
    site = cache(site_of) if lenient else site_of

    def same_site(job: Job) -> Reason | None:
        return None if site(host(job.url)) in sites else Reason.OTHER_SITE

    return same_site


def under(*prefixes: str) -> Admits:
    """Admit URLs that begin with one of the prefixes, such as `https://example.org/docs/`.

    Raises ValueError, naming the prefix, for one that is not a URL.
    """
    wanted = tuple(_prefix(prefix) for prefix in prefixes)

    def under(job: Job) -> Reason | None:
        return None if job.url.startswith(wanted) else Reason.NOT_INCLUDED

    return under


def including(*patterns: Pattern) -> Admits:
    """Admit URLs in which one of the regular expressions is found (`re.search`).

    Raises ValueError, naming the pattern, for one that does not compile.
    """
    found = _finder(patterns)
    return lambda job: None if found(job.url) else Reason.NOT_INCLUDED


def excluding(*patterns: Pattern) -> Admits:
    """Refuse URLs in which one of the regular expressions is found (`re.search`).

    Raises ValueError, naming the pattern, for one that does not compile.
    """
    found = _finder(patterns)
    return lambda job: Reason.EXCLUDED if found(job.url) else None


def all_of(*filters: Admits) -> Admits:
    """Admit what every filter admits; the first refusal gives the reason."""

    def all_of(job: Job) -> Reason | None:
        return next((reason for admits in filters if (reason := admits(job))), None)

    return all_of


def any_of(*filters: Admits) -> Admits:
    """Admit what at least one filter admits; of several refusals the last gives the reason."""

    def any_of(job: Job) -> Reason | None:
        reason: Reason | None = Reason.NOT_INCLUDED
        for admits in filters:
            if (reason := admits(job)) is None:
                return None
        return reason

    return any_of


def everything(job: Job) -> Reason | None:
    """Admit every URL: the whole web, as far as the links lead."""
    return None


def _finder(patterns: Collection[Pattern]) -> Callable[[str], bool]:
    compiled = [_compiled(pattern) for pattern in patterns]
    return lambda url: any(pattern.search(url) for pattern in compiled)


def _prefix(prefix: str) -> str:
    try:
        return normalise(prefix)
    except ValueError:
        raise ValueError(f"not a URL to begin with: {without_userinfo(prefix)!r}") from None


def _compiled(pattern: Pattern) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise ValueError(f"not a regular expression: {pattern!r} ({error})") from None


def _without_www(host: str) -> str:
    return host.removeprefix("www.")


def _registrable(host: str) -> str:
    return _suffixes()(host.rstrip(".")).top_domain_under_public_suffix or host


@cache
def _suffixes() -> tldextract.TLDExtract:
    # The list that tldextract carries: nothing is fetched and nothing is written to disk.
    # Imported late because it costs 0.15 s, and only the lenient rule needs it.
    import tldextract

    return tldextract.TLDExtract(
        suffix_list_urls=(), cache_dir=None, include_psl_private_domains=True
    )
