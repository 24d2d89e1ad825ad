"""Outputs: the files to write, checked before anything is opened."""

from __future__ import annotations

import os
import stat
from contextlib import suppress

import click

from trio_crawler.cli.declaration import Output, requested
from trio_crawler.cli.options import CrawlOptions
from trio_crawler.cli.shared_options import SharedOptions

STANDARD_OUTPUT = "-"


def check_crawl(options: CrawlOptions) -> None:
    """Raise click.UsageError for what a crawl cannot write."""
    if options.refresh and options.directory is None:
        raise click.UsageError("--refresh needs a crawl directory: name it with -o DIR")
    if options.max_age and options.directory is None:
        raise click.UsageError("--max-age needs a crawl directory as its memory: name it with -o")
    if options.directory is not None:
        check_directory(options.directory, "-o", "; to write to a pipe use --jsonl -")
    check_files(options)


def check_directory(directory: str, named: str, hint: str = "") -> None:
    """Raise click.UsageError if this is no name of a directory."""
    if directory in ("", STANDARD_OUTPUT):
        raise click.UsageError(f"{named} needs the name of a directory{hint}")


def check_files(options: SharedOptions) -> None:
    """Raise click.UsageError if two files are the same, or one cannot be standard output."""
    known: dict[str, str] = {}
    for flag, (path, output) in requested(options).items():
        if not path or (path == STANDARD_OUTPUT and output is Output.FILE):
            raise click.UsageError(f"{flag} needs the name of a file, not '{path}'")
        _refuse_report(flag, path)
        place = path if path == STANDARD_OUTPUT else os.path.realpath(path)
        if place in known:
            where = "standard output" if path == STANDARD_OUTPUT else path
            raise click.UsageError(f"{known[place]} and {flag} cannot both write to {where}")
        # The second is the file while it is written.
        known[place] = known[f"{place}.part"] = flag


def _refuse_report(flag: str, path: str) -> None:
    """Refuse the file that the report goes to: opened twice, each would overwrite the other."""
    with suppress(OSError, ValueError):
        about = os.stat(path)
        if stat.S_ISREG(about.st_mode) and os.path.samestat(about, os.fstat(1)):
            raise click.UsageError(
                f"{flag}: the report goes to {path}: with {flag} - it goes to standard error"
            )
