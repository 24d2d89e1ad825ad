"""Keep: the crawl directory that -o names, and what is written together with it."""

from __future__ import annotations

from collections.abc import Mapping

import trio

from trio_crawler import History, Outcome, SqliteFrontier, StoreError, report
from trio_crawler.cli.build import Plan
from trio_crawler.cli.main import Options
from trio_crawler.cli.outputs import STANDARD_OUTPUT, exported
from trio_crawler.cli.settings import meaning, place, settings
from trio_crawler.cli.sink import is_plain
from trio_crawler.report import Report, to_jsonl
from trio_crawler.store import Stream

_PORTION = 64
"""Stored outcomes between two checkpoints."""


class Keep:
    """Hold what lasts beyond this run: an open frontier, and the streams beside it.

    A new JSON Lines file begins with what earlier runs of the walk have settled. A new WARC file
    does not: bodies are not kept. Raises StoreError for a stream that cannot be written.
    """

    def __init__(
        self, frontier: SqliteFrontier, options: Options, warc: report.Warc | None
    ) -> None:
        self.frontier = frontier
        self._options = options
        self._streams: list[Stream] = []
        if options.jsonl is not None and is_plain(options.jsonl):
            self._streams.append(frontier.stream(options.jsonl, to_jsonl, self._lines))
        self._warc = warc
        self._archive: Stream | None = None
        if options.warc is not None and warc is not None:
            parts = (warc.records, warc.head, warc.rest)
            self._archive = frontier.stream(options.warc, *parts)
            self._streams.append(self._archive)
        with History(frontier.directory) as history:
            # Its lines are a stream of this run.
            leave_alone(history, {**exported(options), "--jsonl": None})

    def _lines(self) -> bytes:
        # At once: what is written in part would not be new any more.
        return b"".join(map(to_jsonl, self.frontier.outcomes()))

    async def recall(self, told: Report) -> None:
        """Tell what earlier runs of the walk have settled, and the archive what it holds."""
        for number, outcome in enumerate(self.frontier.outcomes()):
            if number % _PORTION == 0:
                await trio.lowlevel.checkpoint()
            told.add(outcome)
        if self._archive is not None and not self._archive.is_new:
            await trio.to_thread.run_sync(self._recall_archive)

    def _recall_archive(self) -> None:
        archive = place(self._options.warc, self.frontier.directory)
        with History(self.frontier.directory) as history:
            runs = [run for run in history.runs if run.walk == history.walks]
        # What a run without the archive has fetched is not in it.
        if self._warc is not None and all(run.settings.get("warc") == archive for run in runs):
            self._warc.restore(self.frontier.bodies())

    def add(self, outcome: Outcome) -> None:
        """Write an outcome to the streams, once it is settled."""
        for stream in self._streams:
            stream.add(outcome)


def frontier_of(options: Options, plan: Plan, directory: str) -> SqliteFrontier:
    """Make the frontier that keeps the crawl in a directory."""
    return SqliteFrontier(
        directory,
        meaning=meaning(options, plan),
        refresh=options.refresh,
        settings=settings(options, plan, directory),
    )


def leave_alone(history: History, files: Mapping[str, str | None]) -> None:
    """Raise StoreError for an export that would take the place of a file of the crawl itself."""
    for path in files.values():
        if path is not None and path != STANDARD_OUTPUT and history.owns(path):
            raise StoreError(f"{path}: the crawl itself needs it: give another path")
