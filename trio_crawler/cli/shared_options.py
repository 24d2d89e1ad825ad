"""The options that all commands have, those of a report, and those of a crawl's requests.

`cli/options.py` explains a declaration.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import click
from click.core import ParameterSource

from trio_crawler.cli import parsing
from trio_crawler.cli.parsing import (
    Group,
    Options,
    Output,
    declared,
    option,
    stream,
    switch,
    undeclared,
)
from trio_crawler.cli.secrets import Login


class Shared(NamedTuple):
    """The store of a crawl that several workers share, as a URL, and the name of the crawl.

    The URL may have a password, and is not in the repr. A `silent` worker has no report, since the
    process that has started it prints one for all. The crawl begins with so many `strands` of each
    host. Without `seeds` another worker tells them.
    """

    store: str
    crawl: str
    silent: bool = False
    strands: int = 1
    seeds: bool = True

    def __repr__(self) -> str:
        return f"Shared({self.crawl!r})"


class SharedOptions(Options):
    """What to write and to show, and what counts as a fault; also of a crawl directory."""

    hosts: Mapping[str, Mapping[str, Any]] = undeclared({}, secret=True)
    """The options of each host that has some of its own, by its name."""

    jsonl: str | None = stream(
        Group.FILES,
        "--jsonl",
        help="Write every result to FILE as a line of JSON. With '-' it goes to standard output, "
        "and the report to standard error.",
    )
    csv: str | None = stream(
        Group.FILES,
        "--csv",
        help="Write every result to FILE as a line of CSV, for a spreadsheet; '-' as above.",
    )
    links: str | None = stream(
        Group.FILES,
        "--links",
        help="Write every link of every page to FILE as a line of CSV, with the text of the "
        "link; '-' as above.",
    )
    sitemap_xml: str | None = option(
        Group.FILES,
        "--sitemap-xml",
        metavar="FILE",
        output=Output.FILE,
        help="Write a sitemap of all pages without a problem. For more than 50,000 pages FILE is "
        "an index, and the sitemaps are beside it.",
    )
    html: str | None = stream(
        Group.FILES,
        "--html",
        help="Write the report to FILE as one page of HTML, to be opened in a browser, sorted and "
        "searched; it needs no network.",
    )
    color: str = option(
        Group.SHOWN,
        "--color",
        metavar="WHEN",
        type=click.Choice(["auto", "always", "never"]),
        default="auto",
        show_default=True,
        help="Show the report in colours: on a terminal (auto, unless NO_COLOR is set or TERM is "
        "dumb), also in a file or a pipe (always), or never.",
    )
    why: bool = switch(
        Group.SHOWN,
        "--why",
        help="List every link that was not followed, with the reason; of a check every link that "
        "was not checked, with its page, line and column.",
    )
    accept: str = option(
        Group.JUDGED,
        "--accept",
        metavar="STATUSES",
        default="200..299",
        show_default=True,
        of_check=True,
        help="Let these statuses be fine, such as 200..299,403,999.",
    )
    ignored: tuple[str, ...] = option(
        Group.JUDGED,
        "--ignore",
        metavar="REGEX",
        multiple=True,
        of_check=True,
        help="Let links be fine in which the regular expression is found. Repeatable.",
    )
    ignore_file: str | None = option(
        Group.JUDGED,
        "--ignore-file",
        metavar="FILE",
        of_check=True,
        help="Read such regular expressions from FILE, one a line; # begins a comment.",
    )
    redirects: str | None = option(
        Group.JUDGED,
        "--redirects",
        metavar="VERDICT",
        type=click.Choice(["fine", "note", "fault"]),
        of_check=True,
        help="Let each redirect be fine, a note or a fault. Without this a permanent one is a "
        "note, and the others are fine.",
    )
    strict_status: bool = switch(
        Group.JUDGED,
        "--strict-status",
        of_check=True,
        help="Let it be a fault, not a note, if another site refuses a check (401, 403, 429, 999) "
        "or is too slow.",
    )
    fail_on: str | None = option(
        Group.JUDGED,
        "--fail-on",
        metavar="WORD",
        type=click.Choice(["fault", "note", "new"]),
        of_check=True,
        help="Exit with 1 for any fault (the default), for any note or fault, or only for faults "
        "that are not in the baseline (new, the default with --baseline).",
    )
    baseline: str | None = option(
        Group.JUDGED,
        "--baseline",
        metavar="FILE",
        of_check=True,
        help="Read the known notes and faults from FILE, and report only the others.",
    )
    by: str = option(
        Group.SHOWN,
        "--by",
        metavar="WORD",
        type=click.Choice(["page", "target"]),
        default="page",
        show_default=True,
        of_check=True,
        help="List what is wrong by the page that has the link, or by the target of the link.",
    )
    new_baseline: str | None = stream(
        Group.FILES,
        "--write-baseline",
        of_check=True,
        help="Write all notes and faults of this check to FILE, to be known in the next one.",
    )
    junit: str | None = stream(
        Group.FILES,
        "--junit",
        of_check=True,
        help="Write the result of the check as JUnit XML, for GitLab and Jenkins.",
    )
    sarif: str | None = stream(
        Group.FILES,
        "--sarif",
        of_check=True,
        help="Write the result of the check as SARIF 2.1.0, for code scanning.",
    )
    markdown: str | None = stream(
        Group.FILES,
        "--markdown",
        of_check=True,
        help="Write the result of the check as Markdown, for the summary of a job.",
    )
    summary: str | None = stream(
        Group.FILES,
        "--json",
        of_check=True,
        help="Write the result of the check as one JSON document.",
    )
    github: bool = switch(
        Group.SHOWN,
        "--github",
        of_check=True,
        help="Print notes and faults as annotations of GitHub Actions, before the report.",
    )


class ReportOptions(SharedOptions):
    """The options of a report."""

    directory: str = option(Group.DIRECTORY, metavar="DIR")
    changes: bool = switch(
        Group.SHOWN,
        "--changes",
        help="Report what has changed between the last two crawls of the site.",
    )
    full: bool = option(
        Group.SHOWN, "-v", "--verbose", is_flag=True, help="Print whole lists in the report."
    )


class RequestOptions(SharedOptions):
    """What a crawl sends, and how it connects; passwords are not in its repr."""

    logins: tuple[tuple[str, Login], ...] = undeclared((), secret=True)
    """The URLs that have a user, with the user and the password."""
    user_agent: str | None = option(
        Group.SENT,
        "--user-agent",
        metavar="TEXT",
        help="Send TEXT as the User-Agent, and obey the rules of robots.txt for the name in it.",
    )
    contact: str | None = option(
        Group.SENT,
        "--from",
        metavar="ADDRESS",
        help="Send this e-mail address in the header From, so that a site can write to you.",
    )
    headers: tuple[tuple[str, str], ...] = option(
        Group.SENT,
        "--header",
        metavar="'NAME: VALUE'",
        multiple=True,
        callback=parsing.headers,
        secret=True,
        help="Send this header, but only to the schemes, hosts and ports of the given URLs. "
        "Repeatable.",
    )
    auth: tuple[str, str | None] | None = option(
        Group.SENT,
        "--auth",
        metavar="USER[:PASSWORD]",
        callback=parsing.credentials,
        secret=True,
        help="Log in by HTTP Basic authentication; sent only where --header is sent. Without "
        ":PASSWORD the terminal is asked for it. A URL may have its own: http://USER@HOST/.",
    )
    netrc: bool = switch(
        Group.SENT,
        "--netrc",
        help="Log in with the user and the password that ~/.netrc has for the host of a given "
        "URL.",
    )
    netrc_file: str | None = option(
        Group.SENT,
        "--netrc-file",
        metavar="FILE",
        help="As --netrc, with FILE instead of ~/.netrc.",
    )
    own_cookies: tuple[str, ...] = option(
        Group.SENT,
        "--cookie",
        metavar="'NAME=VALUE'",
        multiple=True,
        callback=parsing.cookies,
        secret=True,
        help="Send this cookie; sent only where --header is sent. Repeatable.",
    )
    cookies: bool = switch(
        Group.SENT,
        "--cookies",
        recorded=True,
        help="Store the cookies that a host sets, and send them back to it. A login that sets one "
        "and leads back to the URL that led there is followed.",
    )
    cacert: str | None = option(
        Group.CONNECTIONS,
        "--cacert",
        metavar="FILE",
        help="Verify certificates against the authorities in FILE (PEM) only. Without it, those "
        "of the environment variables SSL_CERT_FILE and SSL_CERT_DIR count, if one is set.",
    )
    client_cert: str | None = option(
        Group.CONNECTIONS,
        "--client-cert",
        metavar="FILE",
        help="Show the certificate in FILE (PEM) at the origins of the given URLs, where a server "
        "wants one.",
    )
    client_key: str | None = option(
        Group.CONNECTIONS,
        "--client-key",
        metavar="FILE",
        help="The key of --client-cert, if it is in a FILE of its own. The terminal is asked for "
        "its password, if it has one.",
    )
    client_password: str | None = undeclared(None, secret=True)
    """The password of the key."""
    insecure_hosts: tuple[str, ...] = option(
        Group.CONNECTIONS,
        "--insecure-host",
        metavar="HOST",
        multiple=True,
        callback=parsing.distinct,
        recorded=True,
        stored="insecure_hosts",
        help="Accept any certificate of HOST. Repeatable.",
    )
    allow_private: tuple[str, ...] = option(
        Group.CONNECTIONS,
        "--allow-private",
        metavar="CIDR",
        multiple=True,
        help="Connect to this private address or network too, such as 10.0.0.0/8. Repeatable.",
    )
    public_only: bool = switch(
        Group.CONNECTIONS,
        "--public-only",
        help="Connect to public addresses only, even for the given URLs: for URLs that others "
        "choose.",
    )
    http2: bool = switch(
        Group.CONNECTIONS,
        "--http2",
        help="Use HTTP/2 where a server has it: one connection, but 0.3 ms more of CPU a page.",
    )
    proxy: str | None = option(
        Group.CONNECTIONS,
        "--proxy",
        metavar="URL",
        callback=parsing.proxy,
        secret=True,
        help="Send all requests through this proxy: http, https or socks5. The proxy looks names "
        "up. For http://USER@HOST:PORT the terminal is asked for the password.",
    )
    trust_env: bool = switch(
        Group.CONNECTIONS,
        "--trust-env",
        help="Use the proxies of the environment variables HTTP_PROXY, HTTPS_PROXY, ALL_PROXY "
        "and NO_PROXY (names, *.NAME, addresses, networks).",
    )


OF_CHECKS = {name: each for name, each in declared(SharedOptions) if each.of_check}
"""The options that only a check obeys, by the names of their fields."""


def refuse(wrong: Mapping[str, object]) -> None:
    """Raise click.UsageError with the first sentence that is so."""
    for sentence, is_so in wrong.items():
        if is_so:
            raise click.UsageError(sentence)


def refuse_without_check(options: SharedOptions, why: str) -> None:
    """Raise click.UsageError if an option is given that only a check obeys.

    `why` says what is missing. What a configuration has is for the commands that obey it.
    """
    source = click.get_current_context().get_parameter_source
    refuse(
        {
            f"{each.flag} is about a check, {why}": getattr(options, name)
            not in (each.attributes.get("default"), None, (), False)
            and source(name) is not ParameterSource.DEFAULT_MAP
            for name, each in OF_CHECKS.items()
        }
    )
