"""The options of a link check: what is checked, what counts as a fault, and the files for CI."""

from __future__ import annotations

from dataclasses import dataclass, field

import click

from trio_crawler.cli import parsing
from trio_crawler.cli.declaration import Group, Output, option
from trio_crawler.cli.request_options import RequestOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckOptions(RequestOptions):
    """What a crawl checks besides its pages; `owner` for the command "check"."""

    owner: bool = field(default=False, metadata={"declared": ()})
    """Whether the site's owner asks: nofollow is not obeyed, and the report is about links."""
    folder: str | None = field(default=None, metadata={"declared": ()})
    """The folder that is checked in place of a server."""
    checks: tuple[str, ...] = option(
        Group.CHECKED,
        "--check",
        metavar="KINDS",
        callback=parsing.kinds,
        same_crawl=True,
        help="Check links besides the pages of the site: external (links that leave it), assets "
        "(images, styles, scripts and the like), fragments (the #name of a link), or all. "
        "Several are separated by commas.",
    )
    check_robots: bool = option(
        Group.CHECKED,
        "--check-robots",
        is_flag=True,
        same_crawl=True,
        help="Obey the robots.txt of hosts that the crawl only checks links to.",
    )
    check_delay: float = option(
        Group.CHECKED,
        "--check-delay",
        metavar="SECONDS",
        type=float,
        default=0.5,
        show_default=True,
        recorded=True,
        help="Wait at least this time between two checks of one host.",
    )
    max_age: float = option(
        Group.CHECKED,
        "--max-age",
        metavar="TIME",
        default="0",
        callback=parsing.duration,
        recorded=True,
        help="Do not ask again for a URL outside the site that an earlier check in DIR (-o) found "
        "fine less than this time ago, such as 90m, 12h or 7d (without a unit, seconds). When the "
        "check in DIR is finished, the same command begins the next one, as with --refresh.",
    )
    accept: str = option(
        Group.CHECKED,
        "--accept",
        metavar="STATUSES",
        default="200..299",
        show_default=True,
        help="Let these statuses be fine, such as 200..299,403,999.",
    )
    ignored: tuple[str, ...] = option(
        Group.CHECKED,
        "--ignore",
        metavar="REGEX",
        multiple=True,
        help="Let links be fine in which the regular expression is found. Repeatable.",
    )
    ignore_file: str | None = option(
        Group.CHECKED,
        "--ignore-file",
        metavar="FILE",
        help="Read such regular expressions from FILE, one a line; # begins a comment.",
    )
    redirects: str | None = option(
        Group.CHECKED,
        "--redirects",
        metavar="VERDICT",
        type=click.Choice(["fine", "note", "fault"]),
        help="Let each redirect be fine, a note or a fault. Without this a permanent one is a "
        "note, and the others are fine.",
    )
    strict_status: bool = option(
        Group.CHECKED,
        "--strict-status",
        is_flag=True,
        help="Let it be a fault, not a note, if another site refuses a check (401, 403, 429, 999) "
        "or is too slow.",
    )
    fail_on: str | None = option(
        Group.CHECKED,
        "--fail-on",
        metavar="WORD",
        type=click.Choice(["fault", "note", "new"]),
        help="Exit with 1 for any fault (the default), for any note or fault, or only for faults "
        "that are not in the baseline (new, the default with --baseline).",
    )
    baseline: str | None = option(
        Group.CHECKED,
        "--baseline",
        metavar="FILE",
        help="Read the known notes and faults from FILE, and report only the others.",
    )
    by: str = option(
        Group.SHOWN,
        "--by",
        metavar="WORD",
        type=click.Choice(["page", "target"]),
        default="page",
        show_default=True,
        help="List what is wrong by the page that has the link, or by the target of the link.",
    )
    new_baseline: str | None = option(
        Group.FILES,
        "--write-baseline",
        metavar="FILE",
        output=Output.STREAM,
        help="Write all notes and faults of this check to FILE, to be known in the next one.",
    )
    junit: str | None = option(
        Group.FILES,
        "--junit",
        metavar="FILE",
        output=Output.STREAM,
        help="Write the result of the check as JUnit XML, for GitLab and Jenkins.",
    )
    sarif: str | None = option(
        Group.FILES,
        "--sarif",
        metavar="FILE",
        output=Output.STREAM,
        help="Write the result of the check as SARIF 2.1.0, for code scanning.",
    )
    markdown: str | None = option(
        Group.FILES,
        "--markdown",
        metavar="FILE",
        output=Output.STREAM,
        help="Write the result of the check as Markdown, for the summary of a job.",
    )
    summary: str | None = option(
        Group.FILES,
        "--json",
        metavar="FILE",
        output=Output.STREAM,
        help="Write the result of the check as one JSON document.",
    )
    github: bool = option(
        Group.SHOWN,
        "--github",
        is_flag=True,
        help="Print notes and faults as annotations of GitHub Actions, before the report.",
    )
    base_url: str | None = option(
        Group.CHECKED,
        "--base-url",
        metavar="URL",
        same_crawl=True,
        help="Check a folder as the site at this URL, so that links to URL lead into the folder.",
    )
    clean_urls: bool = option(
        Group.CHECKED,
        "--clean-urls",
        is_flag=True,
        same_crawl=True,
        help="In a folder, let the link /a lead to a.html, as some servers do.",
    )

    @property
    def checked_kinds(self) -> tuple[str, ...]:
        """The kinds of links that are checked; for an owner all of them, unless some are named."""
        return self.checks or (parsing.KINDS if self.owner else ())
