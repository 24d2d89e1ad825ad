"""The report in HTML of the command: its file, and what the other reports do not need."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from datetime import datetime
from typing import TYPE_CHECKING

from trio_crawler import History, check
from trio_crawler.cli.declaration import secret_flags
from trio_crawler.cli.files import naming, target_of
from trio_crawler.cli.folder import Folder
from trio_crawler.cli.options import CrawlOptions
from trio_crawler.ledger import Ledger
from trio_crawler.report import CrawlFacts, Report
from trio_crawler.store import Change

if TYPE_CHECKING:
    from trio_crawler.cli.checking import Check


class HtmlFile:
    """The file of `--html`; `stack` removes it if it is not written.

    In `directory`, that of the crawl, it is private. Raises click.UsageError for a file that
    cannot be used.
    """

    def __init__(
        self,
        path: str,
        stack: ExitStack,
        *,
        directory: str | None,
        folder: Folder | None,
        date: datetime,
        ledger: Ledger,
    ) -> None:
        with naming("--html", path):
            self._target = target_of(path, directory)
        stack.callback(self._target.drop)
        self.path = path
        self.error: OSError | None = None
        self._folder = folder
        self._date = date
        self._ledger = ledger
        self._changes: Sequence[Change] = ()
        self._since: float | None = None

    def saw(self, url: str) -> None:
        """Record that a URL ends now."""
        self._ledger.add_time(url, time.time())

    def read(self, history: History, alive: Callable[[], None], since: float | None) -> None:
        """Read the times of a walk, and the changes since the one before, which began at `since`.

        `alive` is called before each, and may raise.
        """
        for url, ended in history.times():
            alive()
            self._ledger.add_time(url, ended)
        if history.walks > 1:
            self._changes, self._since = [*history.changes()], since

    def write(self, report: Report, facts: CrawlFacts, links: Check | None) -> list[str]:
        """Write the file, after the check if there is one; set `error` if that cannot be."""
        command = ["trio-crawler", *sys.argv[1:]]
        html = report.html(
            facts,
            date=self._date,
            command=check.command_line(command, secret_flags(CrawlOptions)),
            check=None if links is None else links.document(),
            changes=self._changes,
            since=self._since,
            shown=self._shown,
        )
        try:
            self._target.write([html])
            self._target.keep()
        except OSError as error:
            self.error = error
        return []

    def _shown(self, url: str) -> str:
        return (self._folder.path_of(url) or url) if self._folder else url
