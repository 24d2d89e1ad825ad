"""The results of a command: report and check, the files about them, and the exit status."""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import datetime
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import replace

# Modules of the check are imported when a check begins: most crawls check no links.
from trio_crawler import ArgumentError, Outcome, Page, StoreError, check, report
from trio_crawler.cli.exit import FAULT, NOTHING, colored, complain, discard_output, tell
from trio_crawler.cli.exports import Export
from trio_crawler.cli.files import (
    PRIVATE_DIRECTORY,
    STANDARD_OUTPUT,
    Target,
    refusing,
    target_of,
    written,
)
from trio_crawler.cli.options import CrawlOptions
from trio_crawler.cli.parsing import requested, secret_flags
from trio_crawler.cli.shared_options import ReportOptions, SharedOptions
from trio_crawler.cli.signals import SIGNALS
from trio_crawler.ledger import Ledger
from trio_crawler.report import attempted, visible

if TYPE_CHECKING:
    # SQLite is imported only for a directory.
    from trio_crawler import History
    from trio_crawler.cli.build import Folder
    from trio_crawler.report import CrawlFacts, Report
    from trio_crawler.store import Change

# These a directory writes itself, with each outcome.
_STREAMS = {"--jsonl", "--warc"}


class Results:
    """What the outcomes of a crawl become: a report, a check of links, and files about the whole.

    `stack` closes the `ledger`, and removes files that are unfinished. A file in the directory of
    the crawl is private. Raises click.UsageError for options and files that cannot be used.
    """

    def __init__(
        self,
        options: CrawlOptions | ReportOptions,
        stack: ExitStack,
        folder: Folder | None,
        date: datetime,
        *,
        checks: bool,
    ) -> None:
        self._options, self._folder, self._date = options, folder, date
        if options.directory is not None and requested(options).keys() - _STREAMS:
            # A file may be in the directory itself. If that cannot be made, the store says why.
            with suppress(OSError):
                os.makedirs(options.directory, PRIVATE_DIRECTORY, exist_ok=True)
        keeps = {"outside": options.why, "checks": checks, "traits": options.html is not None}
        self.ledger = stack.enter_context(Ledger(**keeps))
        self.check: Check | None = None
        if checks:
            self.check = Check(options, stack, folder, self.ledger, date)
        self._html: Target | None = None
        if options.html is not None:
            with refusing(f"cannot write --html {options.html}"):
                self._html = target_of(options.html, options.directory)
            stack.callback(self._html.drop)
        self._textless = 0
        self._told = ""
        self._changes: Sequence[Change] = ()
        self._since: float | None = None

    @cached_property
    def report(self) -> Report:
        """The report, whose modules are imported when the crawl is over."""
        options = self._options
        return report.Report(why=options.why, full=options.full, ledger=self.ledger)

    def add(self, outcome: Outcome, *, earlier: bool = False) -> None:
        """Add an outcome; one of an `earlier` run does not count if its URL has a later one."""
        if self._folder is not None and self.check is not None:
            outcome = self._folder.once(outcome, self.check.links)
        self.ledger.add(outcome, earlier=earlier)

    def read(
        self,
        history: History,
        exports: Sequence[Export],
        alive: Callable[[], None],
        *,
        add: Callable[[Outcome], None] | None,
        changes: bool,
    ) -> None:
        """Read the last walk of a directory, to `add` its outcomes and to write the exports.

        With `changes` those since the walk before are told. `alive` is called again and again, and
        may raise.
        """
        takers = [each.take for each in exports] + ([] if add is None else [add])
        # Only a check and the texts of links need more.
        brief = self._options.links is None and (add is None or self.check is None)
        # Only the runs of the command say it, and only since it has a choice.
        lost = any(run.settings.get("texts") is False for run in history.runs)
        for outcome in history.outcomes(brief=brief) if takers else ():
            alive()
            if lost and isinstance(outcome, Page):
                self._textless += bool(outcome.links) and not outcome.anchors
            for take in takers:
                take(outcome)
        for url in history.waiting():
            alive()
            self.ledger.add_waiting(url)
        for export in exports:
            alive()
            export.whole = True
            export.finish()
        for url, ended in history.times() if self._html is not None else ():
            alive()
            self.ledger.add_time(url, ended)
        if history.walks > 1:
            before = [run.started for run in history.runs if run.walk == history.walks - 1]
            self._since = min(before, default=None)
            if self._html is not None:
                self._changes = [*history.changes()]
            if changes:
                about, repeated = (self._since, self._options.full), history.repeated()
                self._told = report.changes(history.changes(), *about, repeated=repeated)

    def finish(
        self,
        facts: Callable[[], CrawlFacts],
        exports: Sequence[Export],
        *,
        owner: bool,
        ended: str,
        more: str = "",
    ) -> int:
        """Print what a crawl or a directory has to say, and return the exit status.

        That is its report, unless it is a check by the `owner` of the site; the findings of the
        check, which tells why it `ended` early; the changes; and `more`. Then the HTML is written.
        Bugs of this program take the place of some of these parts: their tracebacks go to standard
        error. If a file is written to standard output, the report goes to standard error. Raises
        BrokenPipeError when a reader has left.
        """
        options, of_links = self._options, self.check
        if self._textless and options.links is not None:
            noun = "1 page" if self._textless == 1 else f"{self._textless:,} pages"
            complain(
                f"--links {options.links}: the links of {noun} have no texts, which a directory "
                "keeps only if it is crawled with --links from the beginning"
            )
        piped = any(path == STANDARD_OUTPUT for path, _ in requested(options).values())
        stream = sys.stderr if piped else sys.stdout
        color = colored(options.color, stream)
        parts, faults = list[str](), list[Exception]()
        unwritten = {export.path: export.error for export in exports if export.error}
        if of_links is None or not owner:
            parts += attempted(
                lambda: [self.report.text(facts(), color=color, errors=faults)], faults
            )
        if of_links is not None:
            parts += attempted(
                lambda: [of_links.finish(ended, facts().sitemaps, faults, unwritten, color=color)],
                faults,
            )
            if owner:
                shown = of_links.shown
                notes = attempted(lambda: self.report.notes(facts(), shown), faults)
                hints = attempted(lambda: self.report.hints(facts()), faults)
                parts += ["\n".join(notes), "\n".join(hints)]
        if self._html is not None:
            file, document = (options.html or "", self._html), partial(self._document, facts)
            parts += attempted(partial(written, *file, document, unwritten), faults)
        for fault in faults:
            if isinstance(fault, StoreError):
                # A directory that is damaged is no bug: `guarded` says so in one line.
                raise fault
        if gone := [each for each in unwritten.values() if isinstance(each, BrokenPipeError)]:
            raise gone[0]
        for path, error in unwritten.items():
            complain(f"cannot write {path}: {error.strerror}")
        text, printed = "\n\n".join(filter(None, (*parts, self._told, more))), True
        with SIGNALS.writing(2 if piped else 1):
            try:
                print(text, file=stream, flush=True)
            except BrokenPipeError:
                raise
            except OSError as error:
                complain(f"cannot write the report: {error.strerror}")
                discard_output()
                printed = False
        for fault in faults:
            tell("".join(traceback.format_exception(fault)).rstrip())
        if faults:
            return FAULT
        if self._folder is not None and self.report.no_pages:
            complain(
                f"no page of {self._folder.path} was read: pages are the HTML files in the scope "
                "that are no symbolic links"
            )
        status = status_of(self.report, None if of_links is None else of_links.failed)
        whole = printed and not unwritten and all(export.whole for export in exports)
        return status if whole else status or FAULT

    def _document(self, facts: Callable[[], CrawlFacts]) -> list[bytes]:
        command = ["trio-crawler", *sys.argv[1:]]
        html = self.report.html(
            facts(),
            date=self._date,
            command=check.command_line(command, secret_flags(CrawlOptions)),
            check=None if self.check is None else self.check.document(),
            changes=self._changes,
            since=self._since,
            shown=self._folder.shown if self._folder is not None else lambda url: url,
        )
        return [html]


def status_of(found: Report, failed: bool | None) -> int:
    """Return the exit status of a crawl; `failed` is what a check says, None without one."""
    if found.no_pages or found.turned_away:
        return NOTHING
    return FAULT if (found.problems if failed is None else failed) else 0


# The check of links: its policy, its files and its exit status.

if TYPE_CHECKING:
    from trio_crawler.cli.build import Folder

WRITERS: dict[str, Callable[..., Iterator[bytes]]] = {
    "--junit": lambda *about, **how: check.to_junit(*about, **how),
    "--sarif": lambda *about, **how: check.to_sarif(*about, **how),
    "--markdown": lambda *about, **how: check.to_markdown(*about, **how),
    "--json": lambda *about, **how: check.to_json(*about, **how),
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
        self._path_of = (lambda url: None) if folder is None else folder.path_of
        self._verdicts = _verdicts(options)
        self._baseline: check.Baseline | None = None
        if options.baseline is not None:
            with _reading("--baseline", options.baseline), open(options.baseline, "rb") as file:
                self._baseline = check.read_baseline(file, options.baseline)
        shown = sys.maxsize if options.full else _MOST_LISTED
        why = shown if options.why or options.html is not None else 0
        self.links = check.LinkCheck(self._verdicts, why=why, ledger=ledger)
        self._told: set[str] = set()
        self.failed = False
        self._written: tuple[list[check.Finding], check.CheckFacts, int] | None = None

    def tell(self, outcome: Outcome, say: Callable[..., None]) -> None:
        """Print each fault that is certain already, once, unless the baseline has it.

        The outcome must have been added.
        """
        for fault in self.links.certain(outcome) if len(self._told) < _MOST_FAULTS else ():
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
        found = [*self.links.findings(), *self._unread(sitemaps)]
        known, mended, all_found = 0, None, found
        if self._baseline is not None:
            comparison = self._baseline.compare(found)
            known, found = len(comparison.known), list(comparison.new)
            # The entries of pages that were not fetched would count as mended.
            mended = comparison.mended if not ended else None
        fail_on = options.fail_on or ("fault" if self._baseline is None else "new")
        counted = found if fail_on == "new" else all_found
        wanted = check.Verdict.NOTE if fail_on == "note" else check.Verdict.FAULT
        self.failed = any(each.verdict >= wanted for each in counted)
        command = ["trio-crawler", *sys.argv[1:]]
        facts = check.CheckFacts(
            date=self._date,
            command=check.command_line(command, secret_flags(CrawlOptions)),
            checked=self.links.checked,
            not_checked=self.links.not_checked,
            listed=self.links.listed if options.why else None,
            recalled=self.links.recalled,
            unlinked=None if ended or folder is None else folder.unlinked(self.links),
            unread={} if ended or folder is None else folder.unread(self.links),
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
        text = check.check_report(
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
        facts = replace(facts, listed=self.links.listed)
        document = json.loads(b"".join(check.to_json(found, facts, path_of=self._path_of)))
        return {**document, "known": known}

    def _unread(self, sitemaps: Iterable[Any]) -> Iterator[check.Finding]:
        """Yield the findings of sitemaps that were named and could not be read whole."""
        for each in sitemaps:
            for flaw in each.flaws if each.fetched else ():
                verdict = self._verdicts.of(each.url, reason=flaw)
                if verdict is not check.Verdict.FINE:
                    about = {"code": flaw.value, "page": each.referrer, "detail": each.detail}
                    yield check.Finding(verdict=verdict, url=each.url, **about)

    def shown(self, url: str) -> str:
        """Return the text to show for a URL: the path of a file in the folder."""
        return self._path_of(url) or url


def _verdicts(options: SharedOptions) -> check.Verdicts:
    patterns = [*options.ignored]
    if (path := options.ignore_file) is not None:
        with _reading("--ignore-file", path), open(path, encoding="utf-8") as file:
            patterns += check.parse_patterns(file, path)  # type: ignore[arg-type]
    redirects = None if options.redirects is None else check.Verdict(options.redirects)
    with _reading("--accept"):
        accept = check.parse_statuses(options.accept)
        own = {
            name: check.parse_statuses(of_host["accept"])
            for name, of_host in options.hosts.items()
            if "accept" in of_host
        }
    with _reading("--ignore"):
        return check.Verdicts(accept, patterns, redirects, options.strict_status, own)


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
