"""The link check of the command: its policy, its files and its exit status."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from trio_crawler import ArgumentError, Outcome, check
from trio_crawler.check import Baseline, Finding, LinkCheck, Verdict, Verdicts, check_report
from trio_crawler.cli.declaration import requested, secret_flags
from trio_crawler.cli.files import Target, refusing, target_of, written
from trio_crawler.cli.options import CrawlOptions
from trio_crawler.cli.shared_options import ReportOptions, SharedOptions
from trio_crawler.ledger import Ledger
from trio_crawler.report import attempted, visible

if TYPE_CHECKING:
    from trio_crawler.cli.build import Folder

WRITERS: dict[str, Callable[..., Iterator[bytes]]] = {
    "--junit": check.to_junit,
    "--sarif": check.to_sarif,
    "--markdown": check.to_markdown,
    "--json": check.to_json,
    "--write-baseline": lambda found, *_, **__: check.write_baseline(found),
}
"""The writers of the files about a whole check, by their options."""

_MOST_FAULTS = 200
"""The most faults that are shown while a check runs."""

_MOST_LISTED = 1_000
"""The most links of one kind and reason that --why lists without -v."""


class Check:
    """The link check of one crawl, from its options on; `stack` removes files that are unfinished.

    The outcomes are those of the `ledger`. A file in the directory of the crawl is private. The
    report names the `date`. Raises click.UsageError for options and files that cannot be used.
    """

    def __init__(
        self,
        options: CrawlOptions | ReportOptions,
        stack: ExitStack,
        folder: Folder | None,
        ledger: Ledger,
        date: datetime,
    ) -> None:
        self._options, self._folder, self._date = options, folder, date
        self._files: dict[str, tuple[str, Target]] = {}
        for flag, (path, _) in requested(options).items():
            if flag not in WRITERS:
                continue
            with refusing(f"cannot write {flag} {path}"):
                target = target_of(path, options.directory)
            stack.callback(target.drop)
            self._files[flag] = path, target
        self._verdicts = _verdicts(options)
        self._baseline: Baseline | None = None
        if options.baseline is not None:
            with _reading("--baseline", options.baseline), open(options.baseline, "rb") as file:
                self._baseline = check.read_baseline(file, options.baseline)
        shown = sys.maxsize if options.full else _MOST_LISTED
        why = shown if options.why or options.html is not None else 0
        self._links = LinkCheck(self._verdicts, why=why, ledger=ledger)
        self._told: set[str] = set()
        self.failed = False
        self._written: tuple[list[Finding], check.CheckFacts, int] | None = None

    def once(self, outcome: Outcome) -> Outcome:
        """Return an outcome; of two URLs of one file the second one has no links."""
        return outcome if self._folder is None else self._folder.once(outcome, self._links)

    def tell(self, outcome: Outcome, say: Callable[..., None]) -> None:
        """Print each fault that is certain already, once, unless the baseline has it.

        The outcome must have been added.
        """
        for fault in self._links.certain(outcome) if len(self._told) < _MOST_FAULTS else ():
            known = self._baseline is not None and fault in self._baseline
            if not known and fault.url not in self._told:
                self._told.add(fault.url)
                page = "" if fault.page is None else f" from {self.shown(fault.page)}"
                detail = f": {fault.detail}" if fault.detail else ""
                line = visible(f"{fault.code} {self.shown(fault.url)}{page}{detail}")
                say(line, fault=True)
            if len(self._told) == _MOST_FAULTS:
                say(f"{_MOST_FAULTS} faults are shown: the report has the others")
                return

    def finish(
        self,
        ended: str,
        sitemaps: Iterable[Any],
        faults: list[Exception],
        unwritten: dict[str, OSError],
        *,
        color: bool,
    ) -> str:
        """Write the files, and return the report; set `failed`.

        `ended` says why the crawl ended early, "" if it did not. A sitemap that could not be read
        is a finding. An exception in one part of the report, or in one file, is added to `faults`,
        and the error of a file to `unwritten`: all others are made all the same.
        """
        options, folder = self._options, self._folder
        found = [*self._links.findings(), *self._unread(sitemaps)]
        known, mended, all_found = 0, None, found
        if self._baseline is not None:
            comparison = self._baseline.compare(found)
            known, found = len(comparison.known), list(comparison.new)
            # The entries of pages that were not fetched would count as mended.
            mended = comparison.mended if not ended else None
        fail_on = options.fail_on or ("fault" if self._baseline is None else "new")
        counted = found if fail_on == "new" else all_found
        wanted = Verdict.NOTE if fail_on == "note" else Verdict.FAULT
        self.failed = any(each.verdict >= wanted for each in counted)
        command = ["trio-crawler", *sys.argv[1:]]
        facts = check.CheckFacts(
            date=self._date,
            command=check.command_line(command, secret_flags(CrawlOptions)),
            checked=self._links.checked,
            not_checked=self._links.not_checked,
            listed=self._links.listed if options.why else None,
            recalled=self._links.recalled,
            unlinked=None if ended or folder is None else folder.unlinked(self._links),
            unread={} if ended or folder is None else folder.unread(self._links),
            mended=mended,
            ended=ended,
        )
        self._written = found, facts, known
        lines: list[str] = []
        for flag, (path, target) in self._files.items():
            listed = all_found if flag == "--write-baseline" else found
            write = partial(WRITERS[flag], listed, facts, path_of=self._path_of)
            lost = attempted(partial(written, path, target, write, unwritten), faults)
            lines += [f"{flag} {path} is not written. {line}" for line in lost]
        text = check_report(
            found,
            facts,
            by_target=options.by == "target",
            full=options.full,
            known=known,
            shown=self.shown,
            color=color,
            errors=faults,
        )
        if options.github:
            pieces = partial(check.to_annotations, found, path_of=self._path_of)
            told = attempted(lambda: [b"".join(pieces()).decode().removesuffix("\n")], faults)
            lines[:0] = filter(None, told)
        return "\n".join([*lines, text])

    def document(self) -> dict[str, Any]:
        """Return the document of --json with what --why lists, and the number of known findings.

        It must be called after `finish`.
        """
        if self._written is None:
            raise RuntimeError("the check is not finished")
        found, facts, known = self._written
        facts = replace(facts, listed=self._links.listed)
        document = json.loads(b"".join(check.to_json(found, facts, path_of=self._path_of)))
        return {**document, "known": known}

    def _unread(self, sitemaps: Iterable[Any]) -> Iterator[Finding]:
        """Yield the findings of sitemaps that were named and could not be read whole."""
        for each in sitemaps:
            for flaw in each.flaws if each.fetched else ():
                verdict = self._verdicts.of(each.url, reason=flaw)
                if verdict is not Verdict.FINE:
                    about = {"code": flaw.value, "page": each.referrer, "detail": each.detail}
                    yield Finding(verdict=verdict, url=each.url, **about)

    def shown(self, url: str) -> str:
        """Return the text to show for a URL: the path of a file in the folder."""
        return self._path_of(url) or url

    def _path_of(self, url: str) -> str | None:
        return None if self._folder is None else self._folder.path_of(url)


def _verdicts(options: SharedOptions) -> Verdicts:
    patterns = [*options.ignored]
    if (path := options.ignore_file) is not None:
        with _reading("--ignore-file", path), open(path, encoding="utf-8") as file:
            patterns += check.parse_patterns(file, path)  # type: ignore[arg-type]
    redirects = None if options.redirects is None else Verdict(options.redirects)
    with _reading("--accept"):
        accept = check.parse_statuses(options.accept)
        own = {
            name: check.parse_statuses(of_host["accept"])
            for name, of_host in options.hosts.items()
            if "accept" in of_host
        }
    with _reading("--ignore"):
        return Verdicts(accept, patterns, redirects, options.strict_status, own)


@contextmanager
def _reading(option: str, path: str = "") -> Iterator[None]:
    """Raise click.UsageError, which names the option, for an error of the block."""
    try:
        yield
    except OSError as error:
        told = f"{option}: cannot read {path}: {error.strerror}"
        raise click.UsageError(told) from None
    except ArgumentError as error:
        raise click.UsageError(error.named(option)) from None
    except ValueError as error:
        raise click.UsageError(f"{option}: {error}") from None
