"""Options: each is declared once, as a field with its flags, its help and its name in the store.

A field has the name of the argument of the library that it becomes, where there is one. This
module imports nothing of the library: `--help` needs none of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import click

from trio_crawler.cli import parsing
from trio_crawler.cli.check_options import CheckOptions
from trio_crawler.cli.declaration import Group, Output, declaration, declared, option
from trio_crawler.cli.verdict_options import VerdictOptions

_COUNT = click.IntRange(min=0)
_POSITIVE = click.IntRange(min=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class CrawlOptions(CheckOptions):
    """The options of a crawl; passwords are not in its repr."""

    seeds: tuple[str, ...] = option(
        Group.CRAWLED,
        nargs=-1,
        metavar="URL...",
        callback=parsing.urls,
        same_crawl=True,
        stored="urls",
    )
    seed_stream: str | None = option(
        Group.CRAWLED,
        "--urls",
        metavar="FILE",
        same_crawl=True,
        stored="list",
        help="Fetch the URLs in FILE, one a line, or in standard input (-), as there is room for "
        "them. Blank lines and lines that begin with # are skipped. Links are followed on the "
        "hosts of each given URL; without one, where --include or --under says so.",
    )
    strict: bool = option(
        Group.CRAWLED,
        "--strict/--lenient",
        default=True,
        same_crawl=True,
        help="Stay on the host of each URL, with or without www. (strict, the default), or on "
        "its domain with all subdomains (lenient).",
    )
    include: tuple[str, ...] = option(
        Group.CRAWLED,
        "--include",
        metavar="REGEX",
        multiple=True,
        same_crawl=True,
        help="Follow only URLs in which the regular expression is found. Repeatable: one "
        "match is enough.",
    )
    exclude: tuple[str, ...] = option(
        Group.CRAWLED,
        "--exclude",
        metavar="REGEX",
        multiple=True,
        same_crawl=True,
        help="Do not follow URLs in which the regular expression is found. Repeatable.",
    )
    under: tuple[str, ...] = option(
        Group.CRAWLED,
        "--under",
        metavar="PREFIX",
        multiple=True,
        callback=parsing.prefixes,
        same_crawl=True,
        help="Follow only URLs that begin with PREFIX, which is a URL or a path on the given "
        "hosts. Repeatable.",
    )
    sitemaps: tuple[str, ...] = option(
        Group.CRAWLED,
        "--sitemap",
        metavar="URL",
        multiple=True,
        callback=parsing.sitemaps,
        same_crawl=True,
        help="Read this sitemap too, besides those that robots.txt names: a URL, or a path on "
        "the given hosts. Repeatable.",
    )
    sitemap_only: bool = option(
        Group.CRAWLED,
        "--sitemap-only",
        is_flag=True,
        same_crawl=True,
        help="Fetch each URL and what the sitemaps list, and follow no links.",
    )
    no_sitemaps: bool = option(
        Group.CRAWLED,
        "--no-sitemaps",
        is_flag=True,
        same_crawl=True,
        help="Read no sitemap at all.",
    )
    fold_canonical: bool = option(
        Group.CRAWLED,
        "--canonical",
        is_flag=True,
        same_crawl=True,
        help="Treat a page as a duplicate if it names another page as its canonical page. Its "
        "links are followed all the same.",
    )
    ignore_robots: bool = option(
        Group.CRAWLED,
        "--ignore-robots",
        is_flag=True,
        same_crawl=True,
        recorded=True,
        help="Neither request nor obey robots.txt.",
    )
    ignore_nofollow: bool = option(
        Group.CRAWLED,
        "--ignore-nofollow",
        is_flag=True,
        same_crawl=True,
        recorded=True,
        help="Follow links even where rel=nofollow, a robots meta element or X-Robots-Tag asks "
        "crawlers not to.",
    )
    side_effects: bool = option(
        Group.CRAWLED,
        "--follow-side-effects",
        is_flag=True,
        recorded=True,
        help="Follow links that look as if they log out, delete or edit something. Without this "
        "they are not followed if cookies, a login or a certificate of the client are sent.",
    )
    no_traps: bool = option(
        Group.CRAWLED,
        "--no-traps",
        is_flag=True,
        same_crawl=True,
        help="Follow even URLs that look endless, such as those of a calendar.",
    )
    max_depth: int | None = option(
        Group.BOUNDS,
        "--depth",
        metavar="N",
        type=_COUNT,
        same_crawl=True,
        help="Follow at most N links in a row, counted from the given URLs.",
    )
    max_pages: int | None = option(
        Group.BOUNDS,
        "--max-pages",
        metavar="N",
        type=_POSITIVE,
        recorded=True,
        help="Fetch at most N pages.",
    )
    max_waiting: int = option(
        Group.BOUNDS,
        "--max-waiting",
        metavar="MIB",
        type=_POSITIVE,
        default=1024,
        show_default=True,
        help="Follow no new link while the URLs that wait, with those that led to them, take this "
        "many MiB.",
    )
    max_hosts: int = option(
        Group.BOUNDS,
        "--max-hosts",
        metavar="N",
        type=_POSITIVE,
        default=50_000,
        show_default=True,
        help="Follow no link to a new host after N hosts; each port of a host counts.",
    )
    max_seconds: float | None = option(
        Group.BOUNDS,
        "--max-time",
        metavar="TIME",
        type=str,
        callback=parsing.seconds,
        recorded=True,
        help="Start no request after this time, such as 90s or 1h: a TIME is in seconds, or has "
        "one of the units ms, s, m, h, d and w. Requests in flight get 5 more seconds.",
    )
    max_redirects: int = option(
        Group.BOUNDS,
        "--max-redirect",
        metavar="N",
        type=_COUNT,
        default=10,
        show_default=True,
        same_crawl=True,
        help="Follow at most N redirects in a row.",
    )
    max_bytes: int = option(
        Group.BOUNDS,
        "--max-bytes",
        metavar="N",
        type=_POSITIVE,
        default=10 * 1024 * 1024,
        show_default=True,
        recorded=True,
        help="Read at most N bytes of a body; the links after them are not found.",
    )
    max_tries: int = option(
        Group.SPEED,
        "--max-tries",
        metavar="N",
        type=_POSITIVE,
        default=4,
        show_default=True,
        recorded=True,
        help="Try a URL at most N times when the network fails or the server is busy.",
    )
    workers: int = option(
        Group.SPEED,
        "--max-tasks",
        metavar="N",
        type=click.IntRange(min=1, max=100_000),
        default=10,
        show_default=True,
        callback=parsing.workers,
        recorded=True,
        stored="workers",
        help="Fetch at most N URLs at the same time. At one host --per-host is the limit.",
    )
    workers_chosen: bool = field(default=False, metadata={"declared": ()})
    """Whether the number of workers is on the command line."""
    timeout: float = option(
        Group.SPEED,
        "--timeout",
        metavar="TIME",
        type=str,
        callback=parsing.seconds,
        default=30.0,
        show_default=True,
        recorded=True,
        help="End a try of a URL after this time, which covers everything from the lookup of the "
        "host to the end of the body.",
    )
    per_host: int = option(
        Group.SPEED,
        "--per-host",
        metavar="N",
        type=_POSITIVE,
        default=4,
        show_default=True,
        recorded=True,
        help="Fetch at most N URLs of one host at the same time.",
    )
    mine: bool = option(
        Group.SPEED,
        "--mine",
        is_flag=True,
        help="The site is yours: have as many requests in flight there as there are tasks, with "
        "no delay, and follow what robots.txt and nofollow rule out; --why without --mine lists "
        "that. Other sites are checked as before, and a server that answers with 429 or 503 is "
        "asked less often.",
    )
    delay: float = option(
        Group.SPEED,
        "--delay",
        metavar="TIME",
        type=str,
        callback=parsing.seconds,
        default=0.0,
        show_default=True,
        recorded=True,
        help="Wait at least this time between two requests to one host. A longer delay in its "
        "robots.txt is obeyed.",
    )
    adaptive: bool = option(
        Group.SPEED,
        "--adaptive",
        is_flag=True,
        recorded=True,
        help="Begin with --per-host, then raise that limit for a host that answers quickly, and "
        "lower it for one that slows down.",
    )
    patience: float = option(
        Group.SPEED,
        "--patience",
        metavar="TIME",
        type=str,
        callback=parsing.seconds,
        default=360.0,
        show_default=True,
        recorded=True,
        help="Give up a host that answered before, after this time without a good answer.",
    )
    order: str = option(
        Group.SPEED,
        "--order",
        metavar="WORD",
        type=click.Choice(["breadth", "depth", "sitemap"]),
        default="breadth",
        show_default=True,
        recorded=True,
        help="Fetch first the URLs that are fewest links away (breadth), those that are most "
        "links away (depth), or those that sitemaps give the highest priority (sitemap).",
    )
    directory: str | None = option(
        Group.DIRECTORY,
        "-o",
        "--output",
        metavar="DIR",
        help="Keep the crawl in DIR. The same command continues it where it stopped. The texts of "
        "links are kept only with --links.",
    )
    refresh: bool = option(
        Group.DIRECTORY,
        "--refresh",
        is_flag=True,
        help="Crawl the site in DIR again, and report what has changed.",
    )
    warc: str | None = option(
        Group.FILES,
        "--warc",
        metavar="FILE",
        output=Output.FILE,
        recorded=True,
        help="Archive all requests and responses as a WARC file, compressed if the name ends in "
        ".gz.",
    )
    level: int = option(
        Group.SHOWN,
        "-v",
        "--verbose",
        flag_value="verbose",
        multiple=True,
        expose_value=False,
        help="Print each URL when it is done, and whole lists in the report.",
        beside=declaration(
            Group.SHOWN,
            "-q",
            "--quiet",
            flag_value="quiet",
            multiple=True,
            callback=parsing.level,
            help="Show no live line.",
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportOptions(VerdictOptions):
    """The options of a report."""

    directory: str = option(Group.DIRECTORY, metavar="DIR")
    changes: bool = option(
        Group.SHOWN,
        "--changes",
        is_flag=True,
        help="Report what has changed between the last two crawls of the site.",
    )
    full: bool = option(
        Group.SHOWN, "-v", "--verbose", is_flag=True, help="Print whole lists in the report."
    )


def flag(name: str) -> str | None:
    """Return the option of a crawl that sets a field; None if none has this name."""
    return next((each.flag for field, each in declared(CrawlOptions) if field == name), None)


@contextmanager
def errors_of(**fields: str) -> Iterator[None]:
    """Raise click.UsageError, which names the option, for the ArgumentError of a block.

    An option has the name of the argument that it becomes, except those in `fields`.
    """
    # The command imports the library only when it has read its options.
    from trio_crawler import ArgumentError

    try:
        yield
    except ArgumentError as error:
        option = flag(fields.get(error.argument, error.argument))
        raise click.UsageError(error.named(option) if option else str(error)) from None
