"""The options that both commands have; `cli/options.py` explains a declaration."""

from __future__ import annotations

from dataclasses import dataclass

import click

from trio_crawler.cli.declaration import Group, Output, option


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedOptions:
    """The options of both commands."""

    jsonl: str | None = option(
        Group.FILES,
        "--jsonl",
        metavar="FILE",
        output=Output.STREAM,
        help="Write every result to FILE as a line of JSON. With '-' it goes to standard output, "
        "and the report to standard error.",
    )
    csv: str | None = option(
        Group.FILES,
        "--csv",
        metavar="FILE",
        output=Output.STREAM,
        help="Write every result to FILE as a line of CSV, for a spreadsheet; '-' as above.",
    )
    links: str | None = option(
        Group.FILES,
        "--links",
        metavar="FILE",
        output=Output.STREAM,
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
    why: bool = option(
        Group.SHOWN,
        "--why",
        is_flag=True,
        help="List every link that was not followed, with the reason; of a check every link that "
        "was not checked, with its page, line and column.",
    )
