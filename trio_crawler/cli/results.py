"""The results of a command: its report, its check, the files about them, and its exit status."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

from trio_crawler import Outcome, Page, StoreError, report
from trio_crawler.check import command_line
from trio_crawler.cli.declaration import requested, secret_flags
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
from trio_crawler.cli.shared_options import ReportOptions
from trio_crawler.cli.signals import SIGNALS
from trio_crawler.ledger import Ledger
from trio_crawler.report import CrawlFacts, Report, attempted

if TYPE_CHECKING:
    # SQLite is imported only for a directory.
    from trio_crawler import History
    from trio_crawler.cli.build import Folder
    from trio_crawler.cli.checking import Check
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
        self.report = Report(why=options.why, full=options.full, ledger=self.ledger)
        self.check: Check | None = None
        if checks:
            # Imported only now: most crawls check no links.
            from trio_crawler.cli.checking import Check

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

    def add(self, outcome: Outcome, *, earlier: bool = False) -> None:
        """Add an outcome; one of an `earlier` run does not count if its URL has a later one."""
        once = outcome if self.check is None else self.check.once(outcome)
        self.ledger.add(once, earlier=earlier)

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
        options, check = self._options, self.check
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
        if check is None or not owner:
            parts += attempted(
                lambda: [self.report.text(facts(), color=color, errors=faults)], faults
            )
        if check is not None:
            parts += attempted(
                lambda: [check.finish(ended, facts().sitemaps, faults, unwritten, color=color)],
                faults,
            )
            if owner:
                shown = check.shown
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
        status = status_of(self.report, None if check is None else check.failed)
        whole = printed and not unwritten and all(export.whole for export in exports)
        return status if whole else status or FAULT

    def _document(self, facts: Callable[[], CrawlFacts]) -> list[bytes]:
        command = ["trio-crawler", *sys.argv[1:]]
        html = self.report.html(
            facts(),
            date=self._date,
            command=command_line(command, secret_flags(CrawlOptions)),
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
