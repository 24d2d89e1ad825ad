"""Build: the parts of a crawl, made from the options; and the folder in place of a server."""

from __future__ import annotations

import math
import os
import re
import resource
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote_to_bytes, urlsplit

import msgspec
import trio
from msgspec.structs import fields, replace

from trio_crawler import (
    ArgumentError,
    Checks,
    Crawler,
    Fetch,
    HostPoliteness,
    HttpFetch,
    Job,
    Limits,
    Outcome,
    Page,
    PageFacts,
    Politeness,
    Scope,
    Sitemaps,
    Traps,
    all_of,
    any_of,
    breadth_first,
    by_sitemap,
    depth_first,
    excluding,
    including,
    net,
    normalise,
    report,
    same_site,
    seeds_only,
    with_prefix,
)
from trio_crawler.cli.exports import Named, as_it_is
from trio_crawler.cli.logins import logins, origin_of
from trio_crawler.cli.options import CrawlOptions, errors_of

_ORDERS = {"breadth": breadth_first, "depth": depth_first, "sitemap": by_sitemap}

_OTHER_FILES = 100
"""File descriptors for everything but connections."""

_FOR_IDLE = 8_000
"""File descriptors with which the pool keeps the most idle connections: half of them."""


class Plan(msgspec.Struct, frozen=True):
    """The parts of a crawl.

    `crawler` makes the crawler, and `crawl_fetch` is the fetch to pass to it: `fetch` itself, or
    one that records for `warc` if an archive is written. `checks` says whether links are checked
    besides the pages. The caller opens and closes `fetch`. The `seeds` are normalised,
    and `authorized` are the origins that get a user and a password, or a header Authorization.
    """

    seeds: tuple[str, ...]
    authorized: tuple[str, ...]
    fetch: HttpFetch
    crawl_fetch: Fetch
    warc: report.Warc | None
    crawler: Callable[..., Crawler]
    checks: bool
    pages: Callable[[], AsyncGenerator[str]] | None
    """Makes the stream of all pages of a folder, if those are the seeds."""
    folder: Folder | None

    @property
    def named(self) -> Named:
        """The function that returns what is written of an outcome."""
        return as_it_is if self.folder is None else self.folder.named


def planned(options: CrawlOptions) -> Plan:
    """Plan the crawl that the options ask for.

    Raises click.UsageError for options that cannot be used, alone or together, and for those that
    need a package, or a version of one, that is not installed.
    """
    _raise_file_limit(options.workers)
    with errors_of():
        site = same_site(options.seeds, lenient=not options.strict)
        urls = tuple(dict.fromkeys(map(normalise, options.seeds)))
        auth = logins(options, urls)
        with errors_of(auth="auth" if options.auth else "netrc_file"):
            fetch = _fetch(options, auth)
        checks = _checks(options)
        other = fetch if checks.external else None
        place = None
        if options.folder is not None:
            base = {} if options.base_url is None else {"base_url": options.base_url}
            place = net.FolderFetch(
                options.folder,
                **base,
                clean_urls=options.clean_urls,
                max_bytes=options.max_bytes,
                bodies=options.warc is not None,
                other=other,
            )
        seeds = urls
        if place is not None:
            # Of a folder its index.html, or what is named; without one the pages are the seeds.
            missing = options.walks and place.path_of(place.base_url) is None
            named = tuple(map(place.url_of, options.files))
            seeds = named or (() if missing else (place.base_url,))
        scope = _scope(options, site, place)
        make = partial(
            Crawler,
            seeds,
            scope=scope,
            limits=Limits(
                max_depth=math.inf if options.max_depth is None else options.max_depth,
                max_pages=math.inf if options.max_pages is None else options.max_pages,
                max_seconds=math.inf if options.max_seconds is None else options.max_seconds,
                max_redirects=options.max_redirects,
                max_tries=options.max_tries,
                max_waiting=options.max_waiting * 2**20,
                max_hosts=options.max_hosts,
            ),
            politeness=Politeness(
                per_host=options.per_host,
                delay=options.delay,
                adaptive=options.adaptive,
                patience=options.patience,
                robots=not (options.ignore_robots or options.folder),
                # The owner of a site wants to know what is behind such links, too.
                nofollow=not (options.ignore_nofollow or options.owner),
                side_effects=options.side_effects or None,
                agent=options.user_agent,
                hosts={
                    name: HostPoliteness(own.get("per_host"), own.get("delay"))
                    for name, own in options.hosts.items()
                },
            ),
            traps=Traps.off() if options.no_traps else None,
            sitemaps=_sitemaps(options, seeds, place),
            checks=checks,
            order=_ORDERS[options.order],
            fold_canonical=options.fold_canonical,
            # Not for `-o` and `--warc` alone: there they would cost more than all else that is
            # kept. An archive has the pages themselves.
            anchors=options.links is not None,
            facts=options.facts,
            workers=options.workers,
        )
    warc = None
    if options.warc is not None:
        warc = report.Warc(seeds=seeds, gzip=options.warc.endswith(".gz"))
    source = fetch if place is None else place
    by_header = _authorize(options.headers)
    by_host = [url for url, own in _origin_headers(options).items() if _authorize(own)]
    folder = None
    if place is not None:
        how = {"clean_urls": options.clean_urls, "whole": options.walks}
        folder = Folder(options.folder or "", place.base_url, **how)
    return Plan(
        seeds,
        authorized=(*(_origins(seeds) if by_header else auth or ()), *_origins(by_host)),
        fetch=fetch,
        crawl_fetch=warc.recording(source) if warc else source,
        warc=warc,
        crawler=make,
        checks=checks.any,
        pages=partial(pages_in, place, scope) if place is not None and options.walks else None,
        folder=folder,
    )


def _scope(options: CrawlOptions, site: Scope, folder: FolderFetch | None) -> Scope:
    """Return the scope of a crawl: the site, or the folder, without what the options leave out.

    Of a list these are its URLs, their redirects, and what is asked for: links are followed on the
    hosts of the given URLs, or without any as the options say.
    """
    if folder is not None:
        site = with_prefix(folder.base_url)
    elif not options.seeds:
        site = all_of() if options.under or options.include else seeds_only
    scopes = [site]
    if options.under:
        absolute = [prefix for prefix in options.under if "://" in prefix]
        paths = [prefix.lstrip("/") for prefix in options.under if "://" not in prefix]
        origins = [f"{origin}/" for origin in _origins(map(normalise, options.seeds))]
        bases = origins if folder is None else [folder.base_url]
        with errors_of(prefixes="under"):
            below = [f"{base}{path}" for base in bases for path in paths]
            scopes.append(with_prefix(*absolute, *below))
    if options.include:
        with errors_of(patterns="include"):
            scopes.append(including(*options.include))
    with errors_of(patterns="exclude"):
        scopes += [excluding(*options.exclude)] if options.exclude else []
    found = all_of(*scopes) if len(scopes) > 1 else site
    listed = options.seed_stream is not None and site is not seeds_only
    return any_of(seeds_only, found) if listed else found


def _origins(urls: Iterable[str]) -> list[str]:
    """Return the origins of normalised URLs, each once."""
    return list(dict.fromkeys(map(origin_of, urls)))


def _checks(options: CrawlOptions) -> Checks:
    kinds = options.checked_kinds
    most = options.check_max_per_host
    with errors_of(delay="check_delay", max_per_host="check_max_per_host"):
        return Checks(
            external="external" in kinds,
            assets="assets" in kinds,
            fragments="fragments" in kinds,
            robots=options.check_robots,
            delay=options.check_delay,
            max_age=options.max_age,
            max_per_host=math.inf if most is None else most,
        )


def _sitemaps(options: CrawlOptions, seeds: Iterable[str], folder: FolderFetch | None) -> Sitemaps:
    urls = [word for word in options.sitemaps if not word.startswith("/")]
    paths = [word for word in options.sitemaps if word.startswith("/")]
    found = [*urls, *(f"{origin}{path}" for origin in _origins(seeds) for path in paths)]
    if folder is not None:
        own = folder.url_of("sitemap.xml")
        found = [*urls, *(folder.url_of(path.lstrip("/")) for path in paths)]
        if options.walks and not options.no_sitemaps and folder.path_of(own) is not None:
            found.append(own)
    with errors_of(also="sitemaps"):
        return Sitemaps(not options.no_sitemaps, found, only=options.sitemap_only)


def _fetch(options: CrawlOptions, auth: dict[str, tuple[str, str]] | None) -> HttpFetch:
    # All cookies make one header (RFC 6265, 5.4).
    cookies = [("Cookie", "; ".join(options.own_cookies))] if options.own_cookies else []
    cert, password = options.client_cert, options.client_password
    key = cert if options.client_key is None else options.client_key
    secret = () if password is None else (password,)
    return HttpFetch(
        seeds=options.seeds,
        user_agent=options.user_agent,
        contact=options.contact,
        headers=[*options.headers, *cookies],
        auth=auth,
        origin_headers=_origin_headers(options),
        cookies=net.CookieStore() if options.cookies else None,
        timeout=options.timeout,
        max_bytes=options.max_bytes,
        # An archive has all bodies. Nothing else needs those in which there are no links: a
        # refresh compares them by their validators and sizes.
        bodies=options.warc is not None,
        allow_private=options.allow_private,
        public_only=options.public_only,
        cacert=options.cacert,
        client_cert=None if cert is None or key is None else (cert, key, *secret),
        insecure_hosts=options.insecure_hosts,
        http2=options.http2,
        proxy=options.proxy,
        trust_env=options.trust_env,
    )


def _origin_headers(options: CrawlOptions) -> dict[str, Sequence[tuple[str, str]]]:
    """Return the headers of hosts by their origins: https, and those of the given URLs."""
    seeds = _origins(map(normalise, options.seeds))
    found: dict[str, Sequence[tuple[str, str]]] = {}
    for name, own in options.hosts.items():
        if headers := own.get("headers"):
            https = normalise(f"https://{name}/")
            given = [each for each in seeds if urlsplit(each).hostname == urlsplit(https).hostname]
            found |= dict.fromkeys([https, *(f"{each}/" for each in given)], headers)
    return found


def _authorize(headers: Iterable[tuple[str, str]]) -> bool:
    return any(name.lower() == "authorization" for name, _ in headers)


def _raise_file_limit(workers: int) -> None:
    """Raise the limit of open files for this number of workers, as far as the system allows."""
    # A worker may try two addresses at once, and needs as many files for the rest.
    needed = 4 * workers + _OTHER_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    # The pool of idle connections takes half of what there is. Some systems have a maximum below
    # a hard limit of infinity.
    for wanted in (needed + _FOR_IDLE, needed):
        limit = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        if soft == resource.RLIM_INFINITY or soft >= limit:
            return
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
            return


# A folder that is checked in place of a server.

if TYPE_CHECKING:
    from trio_crawler.check import LinkCheck
    from trio_crawler.net import FolderFetch

_NAMES = 100_000
"""The URLs whose files are remembered: a page's links are those of many others."""


async def pages_in(folder: FolderFetch, scope: Scope) -> AsyncGenerator[str]:
    """Yield the URLs of the pages in a folder that the scope admits."""
    for url in folder.pages():
        if scope(Job(url)) is True:
            yield url
        else:
            await trio.lowlevel.checkpoint()


class Folder:
    """The folder that is checked: its `path`, and the `base`, the URL that stands for it.

    `whole` is whether all its pages are checked, not only those that links lead to. `path_of`
    returns the path of what a URL names there, as CI names the files of a repository, whether
    there is such a file or not; None for a URL of another place.
    """

    def __init__(self, path: str, base: str, *, clean_urls: bool, whole: bool) -> None:
        self.path, self.base, self._whole = path, base, whole
        self._clean_urls = clean_urls
        self._files: FolderFetch | None = None
        # A folder that was checked in an earlier run may not be there any more.
        with suppress(ArgumentError):
            self._files = net.FolderFetch(path, base_url=base, clean_urls=clean_urls)
        self.path_of = lru_cache(_NAMES)(self._path_of)

    def _path_of(self, url: str) -> str | None:
        before, mark, fragment = url.partition("#")
        if not before.startswith(self.base):
            return None
        path = None if self._files is None else self._files.path_of(before)
        if path is None:
            below, question, query = before.removeprefix(self.base).partition("?")
            names = "/".join(map(_name, below.split("/")))
            path = os.path.join(self.path, names) + question + query
        return path.removeprefix(f".{os.sep}").replace(os.sep, "/") + mark + fragment

    def named(self, outcome: Outcome) -> Outcome:
        """Return an outcome with the paths of files as its URLs, if the folder has no URL."""
        if not _NOWHERE(self.base):
            return outcome
        changed: dict[str, Any] = {}
        for field in fields(outcome):
            match getattr(outcome, field.name):
                case str(url) if field.name in _URLS:
                    changed[field.name] = self.shown(url)
                case tuple(links) if field.name == "links":
                    changed["links"] = tuple(map(self.shown, links))
                case tuple(links) if field.name == "rejected":
                    changed["rejected"] = tuple(
                        each._replace(url=self.shown(each.url)) for each in links
                    )
                case dict(anchors) if field.name == "anchors":
                    changed["anchors"] = {self.shown(url): at for url, at in anchors.items()}
                case PageFacts() as facts:
                    pairs = tuple((name, self.shown(url)) for name, url in facts.hreflang)
                    changed["facts"] = replace(facts, hreflang=pairs)
        return replace(outcome, **changed)

    def shown(self, url: str) -> str:
        """Return the text to show for a URL: the path of a file in the folder."""
        return self.path_of(url) or url

    def once(self, outcome: Outcome, links: LinkCheck) -> Outcome:
        """Return an outcome without its links, if `links` has the page by another URL."""
        if isinstance(outcome, Page) and outcome.ok and self._has_twin(outcome.url, links):
            return replace(outcome, links=(), rejected=(), found=())
        return outcome

    def _has_twin(self, url: str, links: LinkCheck) -> bool:
        """Whether there is an outcome of another URL that the same file answers for."""
        if url.endswith("/"):
            twin = f"{url}index.html"
        elif not (self._clean_urls or url.endswith("/index.html")):
            return False
        else:
            twin = url.removesuffix("index.html" if url.endswith("/index.html") else ".html")
            twin = f"{url}.html" if twin == url else twin
        return links.knows(twin) and self.path_of(twin) == self.path_of(url)

    def unlinked(self, links: LinkCheck) -> list[str] | None:
        """Return the pages that no link leads to; None if not all pages are checked.

        No link has to lead to the first page, nor to the one that servers answer 404 with.
        """
        known = {self.base, f"{self.base}404.html", f"{self.base}404"}
        if not self._whole:
            return None
        alone = set(links.unlinked()) - known
        # A link may have the other URL of a page.
        return sorted(url for url in alone if not self._has_twin(url, links))

    def unread(self, links: LinkCheck) -> Counter[str]:
        """Count the files that are no pages and were not asked for, by their endings."""
        if self._files is None or not self._whole:
            return Counter()
        read = f"{self.base}sitemap.xml"
        return Counter(
            os.path.splitext(url)[1]
            for url in self._files.others()
            if url != read and not links.knows(url)
        )


# The URL of a folder that has none is at a host that cannot exist (RFC 6761, 6.4).
_NOWHERE = re.compile("https?://[^/]*[.]invalid[:/]").match
_URLS = frozenset("url referrer target canonical duplicate_of folded_into".split())


def _name(segment: str) -> str:
    """Return the name in a segment of a path; one that no file can have stays encoded."""
    name = os.fsdecode(unquote_to_bytes(segment))
    return segment if os.sep in name or "\0" in name or name in (".", "..") else name
