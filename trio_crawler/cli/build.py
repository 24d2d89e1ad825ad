"""Prepare: a crawl as the options want it."""

from __future__ import annotations

import math
import resource
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from urllib.parse import urlsplit

from trio_crawler import (
    Crawler,
    Fetch,
    HttpFetch,
    Limits,
    Order,
    Politeness,
    Scope,
    Sitemaps,
    Traps,
    all_of,
    breadth_first,
    by_sitemap,
    depth_first,
    excluding,
    including,
    report,
    same_site,
    with_prefix,
)
from trio_crawler.cli.main import Options
from trio_crawler.net import CookieStore

_ORDERS = {"breadth": breadth_first, "depth": depth_first, "sitemap": by_sitemap}

_BESIDES = 100
"""File descriptors for everything but connections."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Hold what a crawl needs: `crawler` makes one, which asks by `asks`.

    The `fetch` is the caller's to open and close; `warc` archives what is asked by `asks`. The
    certificates of `insecure_hosts`, written as in normalised URLs, are not verified.
    """

    seeds: tuple[str, ...]
    insecure_hosts: tuple[str, ...]
    limits: Limits
    politeness: Politeness
    order: Order
    fetch: HttpFetch
    asks: Fetch
    warc: report.Warc | None
    crawler: Callable[..., Crawler]


def planned(options: Options) -> Plan:
    """Plan the crawl that the options want.

    Raises ValueError for options that cannot be meant or do not go together, or that need another
    version of a package.
    """
    _make_room(options.max_tasks)
    limits, politeness, order = _limits(options), _politeness(options), _ORDERS[options.order]
    insecure = tuple(map(_host, options.insecure_host))
    fetch = _fetch(options, insecure)
    make = partial(
        Crawler,
        options.urls,
        scope=_scope(options),
        limits=limits,
        politeness=politeness,
        traps=Traps.off() if options.no_traps else None,
        sitemaps=_sitemaps(options),
        order=order,
        fold_canonical=options.canonical,
        anchors=bool(options.output or options.links or options.warc),
        workers=options.max_tasks,
    )
    # What is wrong with all that together shows here.
    seeds = tuple(make(fetch=fetch).plan.seeds)
    warc = _warc(options.warc, seeds)
    asks: Fetch = warc.recording(fetch) if warc else fetch
    return Plan(seeds, insecure, limits, politeness, order, fetch, asks, warc, make)


def _warc(path: str | None, seeds: Iterable[str]) -> report.Warc | None:
    return report.Warc(seeds=seeds, gzip=path.endswith(".gz")) if path is not None else None


def _limits(options: Options) -> Limits:
    return Limits(
        max_depth=math.inf if options.depth is None else options.depth,
        max_pages=options.max_pages or math.inf,
        max_seconds=options.max_time or math.inf,
        max_redirects=options.max_redirect,
        max_tries=options.max_tries,
    )


def _politeness(options: Options) -> Politeness:
    return Politeness(
        per_host=options.per_host,
        delay=options.delay,
        adaptive=options.adaptive,
        patience=options.patience,
        robots=not options.ignore_robots,
        nofollow=not options.ignore_nofollow,
        agent=options.user_agent,
    )


def _sitemaps(options: Options) -> Sitemaps:
    """Return which sitemaps are read."""
    if options.no_sitemaps and options.sitemap:
        raise ValueError("use --sitemap or --no-sitemaps, not both")
    paths = [word for word in options.sitemap if word.startswith("/")]
    urls = [word for word in options.sitemap if not word.startswith("/")]
    try:
        known = Crawler(urls).plan.seeds
    except ValueError as error:
        raise ValueError(str(error).replace("seeds", "--sitemap", 1)) from None
    found = [*known, *(f"{origin}{path}" for origin in _origins(options) for path in paths)]
    return Sitemaps(follow=not options.no_sitemaps, also=found)


def _fetch(options: Options, insecure: Sequence[str]) -> HttpFetch:
    if options.proxy and options.trust_env:
        raise ValueError("use --proxy or --trust-env, not both")
    try:
        return HttpFetch(
            seeds=options.urls,
            user_agent=options.user_agent,
            contact=options.contact,
            headers=_headers(options),
            auth=options.auth,
            cookies=CookieStore() if options.cookies else None,
            timeout=options.timeout,
            allow_private=options.allow_private,
            insecure_hosts=insecure,
            http2=options.http2,
            proxy=options.proxy,
            trust_env=options.trust_env,
        )
    except ImportError as error:
        raise ValueError(str(error)) from None


def _headers(options: Options) -> list[tuple[str, str]]:
    """Give the headers for the seeds; all cookies make one header (RFC 6265, 5.4)."""
    named = {name.lower() for name, _ in options.header}
    if options.auth and "authorization" in named:
        raise ValueError("use --auth or a header Authorization, not both")
    if options.cookie and "cookie" in named:
        raise ValueError("use --cookie or a header Cookie, not both")
    cookies = [("Cookie", "; ".join(options.cookie))] if options.cookie else []
    return [*options.header, *cookies]


def _scope(options: Options) -> Scope:
    filters = [same_site(options.urls, lenient=not options.strict)]
    if options.under:
        filters.append(with_prefix(*_prefixes(options)))
    if options.include:
        filters.append(including(*options.include))
    return all_of(*filters, excluding(*options.exclude))


def _prefixes(options: Options) -> list[str]:
    absolute = [prefix for prefix in options.under if "://" in prefix]
    paths = [prefix for prefix in options.under if "://" not in prefix]
    origins = _origins(options)
    return absolute + [f"{origin}/{path.lstrip('/')}" for origin in origins for path in paths]


def _origins(options: Options) -> list[str]:
    """Give the origins of the URLs to crawl, each once."""
    parts = map(urlsplit, Crawler(options.urls).plan.seeds)
    return list(dict.fromkeys(f"{part.scheme}://{part.netloc}" for part in parts))


def _host(host: str) -> str:
    """Write a host as normalised URLs have it. Raises ValueError for what is none."""
    bare = host.strip("[]")
    (seed,) = Crawler([f"https://[{bare}]/" if ":" in bare else f"https://{bare}/"]).plan.seeds
    return urlsplit(seed).hostname or ""


def _make_room(tasks: int) -> None:
    """Raise the limit of open files to what so many tasks need, as far as it may be raised."""
    # A task may try two addresses at once, and as many connections again may be kept idle.
    wanted = 4 * tasks + _BESIDES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
