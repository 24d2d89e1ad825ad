"""The crawl directory: the options that are stored there, and the files written with it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

from trio_crawler import (
    History,
    Outcome,
    SqliteFrontier,
    StoreError,
    __version__,
)
from trio_crawler.cli.build import Plan
from trio_crawler.cli.declaration import declared, requested
from trio_crawler.cli.files import STANDARD_OUTPUT, is_plain
from trio_crawler.cli.options import CrawlOptions
from trio_crawler.cli.shared_options import Shared, SharedOptions
from trio_crawler.report import to_jsonl
from trio_crawler.shared import SharedFrontier
from trio_crawler.store import End, Stream


class CrawlDirectory:
    """The parts of a crawl that outlast this run: an open frontier, and the streams beside it.

    `resumed` is whether the walk had earlier runs. A new JSON Lines file begins with their
    outcomes. A new WARC file does not, since the directory has no bodies. Raises StoreError for a
    stream that cannot be written.
    """

    def __init__(
        self, frontier: SqliteFrontier | SharedFrontier, options: CrawlOptions, plan: Plan
    ) -> None:
        # Of both the directory, its streams and what they have.
        self._kept = kept = frontier.kept if isinstance(frontier, SharedFrontier) else frontier
        self._options = options
        self._named = plan.named
        self._streams: list[Stream] = []
        if options.jsonl is not None and is_plain(options.jsonl):
            self._streams.append(kept.stream(options.jsonl, self._line, self._lines))
        self._warc = warc = plan.warc
        self._archive: Stream | None = None
        if options.warc is not None and warc is not None:
            parts = (warc.records, warc.head, warc.rest)
            self._archive = kept.stream(options.warc, *parts, private=True)
            self._streams.append(self._archive)
        with History(kept.directory) as history:
            # These two are streams of this run, and so files of the crawl.
            protect_crawl_files(history, options, streams=("--jsonl", "--warc"))
            last = history.walks
            self.resumed = sum(run.walk == last for run in history.runs) > 1

    def _line(self, outcome: Outcome) -> bytes:
        return to_jsonl(self._named(outcome))

    def _lines(self) -> Iterable[bytes]:
        # In one transaction: with only a part of them the file would count as continued, not as
        # new.
        return map(self._line, self._kept.outcomes(brief=True))

    def restore(self) -> None:
        """Restore the state of the archive."""
        if self._archive is None or self._archive.is_new:
            return
        archive = _relative(self._options.warc, self._kept.directory)
        with History(self._kept.directory) as history:
            runs = [run for run in history.runs if run.walk == history.walks]
        # The archive lacks the responses of a run without it.
        if self._warc is not None and all(run.settings.get("warc") == archive for run in runs):
            self._warc.restore(self._kept.bodies())

    def add(self, outcome: Outcome) -> None:
        """Write an outcome to the streams, once it is settled."""
        for stream in self._streams:
            stream.add(outcome)


def frontier_of(options: CrawlOptions, plan: Plan, directory: str) -> SqliteFrontier:
    """Return the frontier that keeps the crawl in a directory."""
    refresh = options.refresh
    if options.max_age > 0:
        # The directory is looked at before it is locked. If another process finishes the crawl in
        # between, this run finds nothing to do, and reports what that one has found. If it cannot
        # be read, the frontier says what is wrong, or makes it.
        with suppress(StoreError), History(directory) as history:
            runs = history.runs
            refresh = refresh or (bool(runs) and runs[-1].how is End.FINISHED)
    return SqliteFrontier(
        directory,
        meaning=meaning_of(options, plan.seeds),
        refresh=refresh,
        settings=settings_of(options, plan),
    )


def meaning_of(options: CrawlOptions, seeds: Sequence[str]) -> dict[str, Any]:
    """Return the options that define the crawl; the order of several values does not count."""
    values = {
        each.key: getattr(options, name)
        for name, each in declared(CrawlOptions)
        if each.same_crawl
    }
    # Two spellings of a URL are one crawl. Two folders may have the same URL.
    folder = options.folder
    values["urls"] = tuple(seeds) if folder is None else (folder, *options.files)
    # An owner's check is a crawl with these options.
    values["check"] = options.checked_kinds
    values["ignore_nofollow"] = options.ignore_nofollow or options.owner
    lists = {key: sorted(value) for key, value in values.items() if isinstance(value, tuple)}
    return values | lists


def settings_of(options: CrawlOptions, plan: Plan) -> dict[str, Any]:
    """Return how the crawl is run, for readers of the directory; no value may be a secret."""
    recorded = {
        each.key: getattr(options, name) for name, each in declared(CrawlOptions) if each.recorded
    }
    return recorded | {
        "version": __version__,
        "checks": plan.checks,
        "owner": options.owner,
        "folder": options.folder,
        "base": None if plan.folder is None else plan.folder.base,
        "clean_urls": options.clean_urls,
        "whole": plan.pages is not None,
        "seeds": list(plan.seeds),
        "insecure_hosts": list(plan.insecure_hosts),
        "credentials": plan.fetch.sends_credentials,
        "texts": options.links is not None,
        "part": options.shared is not None and not Shared(*options.shared).silent,
        "warc": _relative(options.warc, options.directory or "."),
    }


def _relative(path: str | None, directory: str | os.PathLike[str]) -> str | None:
    """Return a path relative to the directory: both may be moved together."""
    if path is None:
        return None
    return os.path.relpath(os.path.realpath(path), os.path.realpath(directory))


def protect_crawl_files(
    history: History, options: SharedOptions, *, streams: Iterable[str] = ()
) -> None:
    """Raise StoreError for an export that would replace a file of the crawl itself.

    `streams` are the options whose files are files of the crawl.
    """
    for flag, (path, _) in requested(options).items():
        if flag not in streams and path != STANDARD_OUTPUT and history.owns(path):
            raise StoreError(f"{flag} {path}: it is a file of the crawl itself: give another path")
