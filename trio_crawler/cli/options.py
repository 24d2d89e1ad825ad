"""Options: each is declared once, as a field with its flags, its help and its name in the store.

A field has the name of the argument of the library that it becomes, where there is one. This
module imports nothing of the library: `--help` needs none of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import click

from trio_crawler.cli import parsing
from trio_crawler.cli.parsing import (
    Declaration,
    Group,
    Output,
    declared,
    option,
    switch,
    time,
    undeclared,
)
from trio_crawler.cli.shared_options import RequestOptions, refuse

_COUNT = click.IntRange(min=0)
_POSITIVE = click.IntRange(min=1)


class CrawlOptions(RequestOptions):
    """The options of a crawl and of a check; passwords are not in its repr."""

    owner: bool = undeclared(False)
    """Whether the site's owner asks: nofollow is not obeyed, and the report is about links."""
    shared: tuple[str, str, bool, int, bool] | None = undeclared(None)
    """Where the crawl is that this worker shares with others."""
    folder: str | None = undeclared(None)
    """The folder that is checked in place of a server."""
    files: tuple[str, ...] = undeclared(())
    """The files in it that the check begins with, in place of all its pages."""
    checks: tuple[str, ...] = option(
        Group.CHECKED,
        "--check",
        metavar="KINDS",
        callback=parsing.kinds,
        same_crawl=True,
        help="Check external links, assets, fragments or all besides the pages of the site. "
        "Several are separated by commas. An external link leaves the site, assets are images, "
        "styles, scripts and such, a fragment is the #name of a link. [default of check: all]",
    )
    check_robots: bool = switch(
        Group.CHECKED,
        "--check-robots",
        same_crawl=True,
        help="Obey the robots.txt of hosts that the crawl only checks links to.",
    )
    check_delay: float | None = time(
        Group.CHECKED,
        "--check-delay",
        show_default="0.5, and 0.1 after two good answers",
        recorded=True,
        help="Wait at least this time between two checks of one host.",
    )
    check_max_per_host: int | None = option(
        Group.CHECKED,
        "--check-max-per-host",
        metavar="N",
        type=int,
        recorded=True,
        help="Check at most N URLs of each host outside the site. [default: no limit]",
    )
    max_age: float = time(
        Group.CHECKED,
        "--max-age",
        default=0.0,
        recorded=True,
        help="Do not ask again for a URL outside the site that an earlier check in DIR (-o) found "
        "fine less than this time ago, such as 12h or 7d. When the check in DIR is finished, the "
        "same command begins the next one, as with --refresh.",
    )
    base_url: str | None = option(
        Group.CHECKED,
        "--base-url",
        metavar="URL",
        same_crawl=True,
        help="Check a folder as the site at this URL, so that links to URL lead into the folder.",
    )
    clean_urls: bool = switch(
        Group.CHECKED,
        "--clean-urls",
        same_crawl=True,
        help="In a folder, let the link /a lead to a.html, as some servers do.",
    )
    linked_only: bool = switch(
        Group.CHECKED,
        "--linked-only",
        same_crawl=True,
        help="Of a folder, check the pages that links from its index.html lead to, not all.",
    )
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
        help="Follow only URLs in which the regular expression is found. Repeatable: one will do.",
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
        help="Read this sitemap too: a URL, or a path on the given hosts. Repeatable.",
    )
    sitemap_only: bool = switch(
        Group.CRAWLED,
        "--sitemap-only",
        same_crawl=True,
        help="Fetch each URL and what the sitemaps list, and follow no links.",
    )
    no_sitemaps: bool = switch(
        Group.CRAWLED,
        "--no-sitemaps",
        same_crawl=True,
        help="Read no sitemap at all.",
    )
    fold_canonical: bool = switch(
        Group.CRAWLED,
        "--canonical",
        same_crawl=True,
        help="Count a page as a duplicate if it names another as canonical; follow its links.",
    )
    ignore_robots: bool = switch(
        Group.CRAWLED,
        "--ignore-robots",
        same_crawl=True,
        recorded=True,
        help="Neither request nor obey robots.txt.",
    )
    ignore_nofollow: bool = switch(
        Group.CRAWLED,
        "--ignore-nofollow",
        same_crawl=True,
        recorded=True,
        help="Follow links even where rel=nofollow, a robots meta element or X-Robots-Tag asks "
        "crawlers not to.",
    )
    side_effects: bool = switch(
        Group.CRAWLED,
        "--follow-side-effects",
        recorded=True,
        help="Follow links that look as if they log out, delete or edit something. Without this "
        "they are not followed if cookies, a login or a certificate of the client are sent.",
    )
    no_traps: bool = switch(
        Group.CRAWLED,
        "--no-traps",
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
    max_seconds: float | None = time(
        Group.BOUNDS,
        "--max-time",
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
        recorded=True,
        stored="workers",
        help="Fetch at most N URLs at the same time. At one host --per-host is the limit.",
    )
    processes: int = option(
        Group.SPEED,
        "--processes",
        metavar="N",
        type=_POSITIVE,
        default=1,
        show_default=True,
        help="Crawl by N processes, each with its own --max-tasks, to use several cores for many "
        "hosts: each host has one at a time. This needs -o, and a server that pip install "
        "'trio-crawler[machines]' brings.",
    )
    timeout: float = time(
        Group.SPEED,
        "--timeout",
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
    mine: bool = switch(
        Group.SPEED,
        "--mine",
        help="The site is yours: have as many requests in flight there as there are tasks, with "
        "no delay, and follow what robots.txt and nofollow rule out; --why without --mine lists "
        "that. Other sites are checked as before, and a server that answers with 429 or 503 is "
        "asked less often.",
    )
    delay: float = time(
        Group.SPEED,
        "--delay",
        default=0.0,
        show_default=True,
        recorded=True,
        help="Wait at least this time between two requests to one host. A longer delay in its "
        "robots.txt is obeyed.",
    )
    adaptive: bool = switch(
        Group.SPEED,
        "--adaptive",
        recorded=True,
        help="Begin with --per-host, then raise that limit for a host that answers quickly, and "
        "lower it for one that slows down.",
    )
    patience: float = time(
        Group.SPEED,
        "--patience",
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
    refresh: bool = switch(
        Group.DIRECTORY,
        "--refresh",
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
    facts: bool = switch(
        Group.FILES,
        "--facts",
        recorded=True,
        help="Read what each page says of itself: headings, description, languages, Open Graph, "
        "JSON-LD, words, images, headers. The report lists what is missing, and --html, --jsonl, "
        "--csv and -o have it all.",
    )
    level: int = option(
        Group.SHOWN,
        "-v",
        "--verbose",
        flag_value="verbose",
        multiple=True,
        expose_value=False,
        help="Print each URL when it is done, and whole lists in the report.",
        beside=Declaration(
            Group.SHOWN,
            "-q",
            "--quiet",
            flag_value="quiet",
            multiple=True,
            callback=parsing.level,
            help="Show no live line.",
        ),
    )

    @property
    def full(self) -> bool:
        """Whether the report has whole lists, as that of a directory with -v."""
        return self.level > parsing.NORMAL

    @property
    def checked_kinds(self) -> tuple[str, ...]:
        """The kinds of links that are checked; for an owner all of them, unless some are named."""
        return self.checks or (parsing.KINDS if self.owner else ())

    @property
    def walks(self) -> bool:
        """Whether all pages of a folder are seeds, not only its first one or those named."""
        named = self.files or self.sitemap_only or self.linked_only
        return self.folder is not None and not named

    @property
    def login(self) -> list[str]:
        """The options that give the users and passwords of all URLs."""
        files = {"--netrc": self.netrc, "--netrc-file": self.netrc_file is not None}
        given = {"--auth": self.auth is not None} | files
        return [option for option, is_given in given.items() if is_given]


def refuse_contradictions(options: CrawlOptions) -> None:
    """Raise click.UsageError for options that exclude each other, or that need another one."""
    headers = {name.lower() for name, _ in options.headers}
    nowhere, own_site = options.directory is None, "external" not in options.checked_kinds
    aged, bounded = options.max_age, options.check_max_per_host is not None
    proxies = options.proxy is not None and options.trust_env
    private = options.allow_private and options.public_only
    login = [*options.login, *(["a user in a URL"] if options.logins else []), ""][0]
    keyless = options.client_cert is None and options.client_key is not None
    wrong: dict[str, object] = {
        "--refresh needs a crawl directory: name it with -o DIR": options.refresh and nowhere,
        "--max-age needs a crawl directory as its memory: name it with -o": aged and nowhere,
        "--max-age is about URLs outside the site: --check external": aged and own_site,
        "--check-max-per-host is about other sites: --check external": bounded and own_site,
        f"use {' or '.join(options.login[:2])}, not both": len(options.login) > 1,
        f"use {login} or a --header Authorization, not both": login and "authorization" in headers,
        "use --cookie or a --header Cookie, not both": options.own_cookies and "cookie" in headers,
        "use --proxy or --trust-env, not both": proxies,
        "use --allow-private or --public-only, not both": private,
        "--client-key would have no effect without --client-cert": keyless,
    }
    sitemaps = {"--sitemap": options.sitemaps, "--sitemap-only": options.sitemap_only}
    for flag, given in sitemaps.items():
        wrong[f"use {flag} or --no-sitemaps, not both"] = given and options.no_sitemaps
    refuse(wrong)
    if options.seeds:
        return
    # These have no effect on a list alone, whose URLs are treated as those of strangers, and none
    # on a folder but those about its paths.
    of_list = {
        "--under with a path": any("://" not in prefix for prefix in options.under),
        "--sitemap": options.sitemaps,
        "--sitemap-only": options.sitemap_only,
    }
    given = {
        "--lenient": not options.strict,
        **({} if options.folder is not None else of_list),
        "--header": options.headers,
        "--cookie": options.own_cookies,
        **dict.fromkeys(options.login, True),
        "--client-cert": options.client_cert,
    }
    beside = "beside --urls" if options.folder is None else "not a folder"
    refuse({f"{flag} needs a URL on the command line, {beside}": given[flag] for flag in given})
    only = "--depth needs --linked-only: all pages of a folder are checked"
    refuse({only: options.max_depth is not None and options.walks})


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
        flags = {name: each.flag for name, each in reversed([*declared(CrawlOptions)])}
        option = flags.get(fields.get(error.argument, error.argument))
        raise click.UsageError(error.named(option) if option else str(error)) from None
