"""The report of a crawl directory: printed again, and exported, without the network."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from trio_crawler import History, Politeness, Statistics, report, store
from trio_crawler.cli.directory import protect_crawl_files
from trio_crawler.cli.exit import guarded
from trio_crawler.cli.exports import as_it_is, exports
from trio_crawler.cli.files import LEFT, PROCESSES
from trio_crawler.cli.folder import Folder
from trio_crawler.cli.results import Results
from trio_crawler.cli.shared_options import ReportOptions, refuse_without_check
from trio_crawler.cli.signals import SIGNALS

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
