"""The crawl directory: the options stored there, the files written with it, and its report."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from trio_crawler import (
    History,
    Outcome,
    Politeness,
    SqliteFrontier,
    Statistics,
    StoreError,
    __version__,
    report,
    store,
)
from trio_crawler.cli.exit import guarded
from trio_crawler.cli.exports import as_it_is, exports
from trio_crawler.cli.files import LEFT, PROCESSES, STANDARD_OUTPUT, is_plain
from trio_crawler.cli.options import CrawlOptions
from trio_crawler.cli.parsing import declared, requested
from trio_crawler.cli.results import Results
from trio_crawler.cli.shared_options import (
    ReportOptions,
    Shared,
    SharedOptions,
    refuse_without_check,
)
from trio_crawler.cli.signals import SIGNALS
from trio_crawler.report import to_jsonl
from trio_crawler.store import End, Stream

if TYPE_CHECKING:
    from trio_crawler.cli.build import Plan
    from trio_crawler.shared import SharedFrontier


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
        self._kept = kept = frontier if isinstance(frontier, SqliteFrontier) else frontier.kept
        self._options = options
        self._named = plan.named
        self._streams: list[Stream] = []
        alone = options.processes == 1
        if options.jsonl is not None and alone and is_plain(options.jsonl):
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
        "credentials": plan.fetch.sends_credentials,
        "texts": options.links is not None,
        "part": options.shared is not None and not Shared(*options.shared).silent,
        "warc": _relative(options.warc, options.directory or "."),
    }


def _relative(path: str | None, directory: str | os.PathLike[str]) -> str | None:
    """Return a path relative to the directory: both may be moved together."""
    return path and os.path.relpath(os.path.realpath(path), os.path.realpath(directory))


def protect_crawl_files(
    history: History, options: SharedOptions, *, streams: Iterable[str] = ()
) -> None:
    """Raise StoreError for an export that would replace a file of the crawl itself.

    `streams` are the options whose files are files of the crawl.
    """
    for flag, (path, _) in requested(options).items():
        if flag not in streams and path != STANDARD_OUTPUT and history.owns(path):
            raise StoreError(f"{flag} {path}: it is a file of the crawl itself: give another path")


# The report of a directory, printed again and exported, without the network.

_EARLY = (store.End.STOPPED, store.End.CUT_SHORT)
_NO_CHANGES = "The site was crawled only once: --refresh crawls it again and reports the changes"


class _Settings(msgspec.Struct):
    """What a run of the command has stored, for the report; the defaults are for what is missing.

    A crawl of another program has none of it. Without `per_host` it is not known how polite it
    was, and without `base` it was one of servers.
    """

    part: bool = False
    seeds: tuple[str, ...] = ()
    insecure_hosts: tuple[str, ...] = ()
    checks: bool | None = None
    owner: bool = False
    facts: bool = False
    cookies: bool | None = None
    credentials: bool | None = None
    folder: str | None = None
    base: str | None = None
    clean_urls: bool = False
    whole: bool = False
    per_host: Annotated[int, Meta(ge=1)] | None = None
    delay: Annotated[float, Meta(ge=0, le=1e300)] = 0.0
    adaptive: bool = False
    patience: Annotated[float, Meta(ge=0, le=1e300)] = 360.0
    ignore_robots: bool = False
    ignore_nofollow: bool = False


def run(options: ReportOptions) -> int:
    """Print the report of a crawl directory, write exports, and return the exit status."""
    return guarded(partial(printed, options, SIGNALS.check))


def printed(options: ReportOptions, check_signals: Callable[[], None]) -> int:
    """Print the report, and write exports; `check_signals` is called often, and may raise."""
    with History(options.directory) as history, ExitStack() as stack:
        protect_crawl_files(history, options)
        # The last run of the last walk; there is none before its first one is stored.
        walked = [run for run in history.runs if run.walk == history.walks]
        run = walked[-1] if walked else None
        try:
            known = msgspec.convert({} if run is None else run.settings, _Settings)
        except msgspec.ValidationError:
            known = _Settings()
        if not known.checks:
            refuse_without_check(options, f"and {options.directory} has a crawl without one")
        folder = None
        if known.folder is not None and known.base is not None:
            # Imported only now: to report on servers takes no crawler.
            from trio_crawler.cli.build import Folder

            how = {"clean_urls": known.clean_urls, "whole": known.whole}
            folder = Folder(known.folder, known.base, **how)
        named = as_it_is if folder is None else folder.named
        date = datetime.fromtimestamp(0.0 if run is None else run.started, UTC)
        results = Results(options, stack, folder, date, checks=bool(known.checks))
        ledger = results.ledger if known.facts else None
        files = [*map(stack.enter_context, exports(options, named=named, ledger=ledger))]
        results.read(history, files, check_signals, add=results.add, changes=options.changes)
        early = "" if run is None or run.how not in _EARLY else run.how
        statistics = _statistics(history, options)
        waiting = statistics.waiting + statistics.in_flight
        return results.finish(
            partial(_facts, history, options, run, known, early, statistics),
            files,
            owner=known.owner,
            ended=early or ("URLs wait for its next run" if waiting else ""),
            more=_NO_CHANGES if options.changes and history.walks < 2 else "",
        )


def _statistics(history: History, options: ReportOptions) -> Statistics:
    """Return the counts of a crawl; several processes may have left URLs for a later run."""
    found, left = history.statistics(), Path(options.directory, PROCESSES, LEFT)
    try:
        waiting = int(left.read_text())
    except (OSError, ValueError):
        return found
    return replace(found, admitted=found.admitted + waiting, waiting=found.waiting + waiting)


def _facts(
    history: History,
    options: ReportOptions,
    run: store.Run | None,
    known: _Settings,
    early: str,
    statistics: Statistics,
) -> report.CrawlFacts:
    polite, finished = None, run is not None and run.how is store.End.FINISHED
    if known.per_host is not None:
        polite = Politeness(
            per_host=known.per_host,
            delay=known.delay,
            adaptive=known.adaptive,
            patience=known.patience,
            robots=not known.ignore_robots,
            nofollow=not known.ignore_nofollow,
        )
    return report.CrawlFacts(
        statistics,
        (None if run is None else run.workers) or 0,
        seeds=known.seeds,
        ended=early,
        insecure=known.insecure_hosts,
        # Not `authorized`: logins are stored nowhere.
        politeness=polite,
        hosts=history.hosts(),
        sitemaps=history.sitemaps(),
        listing=history.listing,
        # What waits is with the store of the workers.
        directory="" if known.part and not finished else options.directory,
        spent=run is not None and run.how is store.End.SPENT,
        cookies=known.cookies,
        credentials=known.credentials,
        checks=known.checks,
    )
