"""The options of a check that only judge and show what was found, also in a crawl directory."""

from __future__ import annotations

from dataclasses import dataclass

import click

from trio_crawler.cli.declaration import Group, Output, declared, option
from trio_crawler.cli.shared_options import SharedOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictOptions(SharedOptions):
    """What counts as a fault, and how and where the faults are shown."""

    accept: str = option(
        Group.JUDGED,
        "--accept",
        metavar="STATUSES",
        default="200..299",
        show_default=True,
        help="Let these statuses be fine, such as 200..299,403,999.",
    )
    ignored: tuple[str, ...] = option(
        Group.JUDGED,
        "--ignore",
        metavar="REGEX",
        multiple=True,
        help="Let links be fine in which the regular expression is found. Repeatable.",
    )
    ignore_file: str | None = option(
        Group.JUDGED,
        "--ignore-file",
        metavar="FILE",
        help="Read such regular expressions from FILE, one a line; # begins a comment.",
    )
    redirects: str | None = option(
        Group.JUDGED,
        "--redirects",
        metavar="VERDICT",
        type=click.Choice(["fine", "note", "fault"]),
        help="Let each redirect be fine, a note or a fault. Without this a permanent one is a "
        "note, and the others are fine.",
    )
    strict_status: bool = option(
        Group.JUDGED,
        "--strict-status",
        is_flag=True,
        help="Let it be a fault, not a note, if another site refuses a check (401, 403, 429, 999) "
        "or is too slow.",
    )
    fail_on: str | None = option(
        Group.JUDGED,
        "--fail-on",
        metavar="WORD",
        type=click.Choice(["fault", "note", "new"]),
        help="Exit with 1 for any fault (the default), for any note or fault, or only for faults "
        "that are not in the baseline (new, the default with --baseline).",
    )
    baseline: str | None = option(
        Group.JUDGED,
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


_ALSO_OF_CRAWLS = {name for name, _ in declared(SharedOptions)}
OF_CHECKS = {name: each for name, each in declared(VerdictOptions) if name not in _ALSO_OF_CRAWLS}
"""The options that only a check obeys, by their names."""

FILES = frozenset(each.flag for each in OF_CHECKS.values() if each.output is not Output.NONE)
"""The options that name a file about a whole check."""


def refuse_without_check(options: VerdictOptions, why: str) -> None:
    """Raise click.UsageError if an option is given that only a check obeys.

    `why` says what is missing.
    """
    for name, each in OF_CHECKS.items():
        usual = each.attributes.get("default")
        if getattr(options, name) not in (usual, None, (), False):
            raise click.UsageError(f"{each.flag} is about a check, {why}")
