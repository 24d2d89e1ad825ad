"""Clashes: files that cannot be written as they are asked for, or not together."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from typing import Protocol

import click

STANDARD_OUTPUT = "-"


class Exporting(Protocol):
    """Options that name files to write; None where none is wanted."""

    @property
    def jsonl(self) -> str | None: ...
    @property
    def csv(self) -> str | None: ...
    @property
    def links(self) -> str | None: ...
    @property
    def sitemap_xml(self) -> str | None: ...


class Keeping(Exporting, Protocol):
    """Options of a crawl that may be kept."""

    @property
    def output(self) -> str | None: ...
    @property
    def refresh(self) -> bool: ...
    @property
    def warc(self) -> str | None: ...


def check(options: Keeping) -> None:
    """Raise click.UsageError for what a crawl cannot write."""
    if options.refresh and options.output is None:
        raise click.UsageError("--refresh needs a crawl directory: name it with -o DIR")
    if options.output in ("", STANDARD_OUTPUT):
        raise click.UsageError("-o needs the name of a directory; --jsonl - writes to a pipe")
    check_files({**exported(options), "--warc": options.warc})


def exported(options: Exporting) -> dict[str, str | None]:
    """Give the files that are asked for, by the options that do."""
    return {
        "--jsonl": options.jsonl,
        "--csv": options.csv,
        "--links": options.links,
        "--sitemap-xml": options.sitemap_xml,
    }


def check_files(files: dict[str, str | None]) -> None:
    """Raise click.UsageError if two are the same, or one cannot be standard output."""
    for option in ("--sitemap-xml", "--warc"):
        if files.get(option) == STANDARD_OUTPUT:
            raise click.UsageError(f"{option} needs the name of a file, not '-'")
    known: dict[str, str] = {}
    for option, path in files.items():
        if path is None:
            continue
        _refuse_report(option, path)
        place = path if path == STANDARD_OUTPUT else os.path.realpath(path)
        if place in known:
            where = "standard output" if path == STANDARD_OUTPUT else path
            raise click.UsageError(f"{known[place]} and {option} cannot both write to {where}")
        known[place] = known[f"{place}.part"] = option


def _refuse_report(option: str, path: str) -> None:
    """Refuse the file that the report goes to: opened twice, each would write over the other."""
    with suppress(OSError, ValueError):
        about = os.stat(path)
        if stat.S_ISREG(about.st_mode) and os.path.samestat(about, os.fstat(1)):
            raise click.UsageError(
                f"{option}: the report goes to {path}: write '-', and it goes to standard error"
            )
