"""The report of a crawl directory: printed again, and exported, without the network."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import partial
from typing import Any

from trio_crawler import History, report, store
from trio_crawler.cli.directory import folder_of, politeness_of, protect_crawl_files, setting
from trio_crawler.cli.exit import guarded
from trio_crawler.cli.exports import as_it_is, exports
from trio_crawler.cli.results import Results
from trio_crawler.cli.shared_options import ReportOptions, refuse_without_check
from trio_crawler.cli.signals import SIGNALS

_EARLY = (store.End.STOPPED, store.End.CUT_SHORT)
_NO_CHANGES = "The site was crawled only once: --refresh crawls it again and reports the changes"


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
        settings = {} if run is None else run.settings
        known = (setting(settings.get(name), bool) for name in ("checks", "owner", "facts"))
        checks, owner, facts = known
        if not checks:
            refuse_without_check(options, f"and {options.directory} has a crawl without one")
        folder = folder_of(settings)
        named = as_it_is if folder is None else folder.named
        date = datetime.fromtimestamp(0.0 if run is None else run.started, UTC)
        results = Results(options, stack, folder, date, checks=bool(checks))
        how: dict[str, Any] = {"named": named, "ledger": results.ledger if facts else None}
        files = [*map(stack.enter_context, exports(options, **how))]
        results.read(history, files, check_signals, add=results.add, changes=options.changes)
        early = "" if run is None or run.how not in _EARLY else run.how
        statistics = history.statistics()
        waiting = statistics.waiting + statistics.in_flight
        return results.finish(
            partial(_facts, history, options, run, early),
            files,
            owner=bool(owner),
            ended=early or ("URLs wait for its next run" if waiting else ""),
            more=_NO_CHANGES if options.changes and history.walks < 2 else "",
        )


def _facts(
    history: History, options: ReportOptions, run: store.Run | None, early: str
) -> report.CrawlFacts:
    settings = {} if run is None else run.settings
    return report.CrawlFacts(
        history.statistics(),
        (None if run is None else run.workers) or 0,
        seeds=setting(settings.get("seeds"), tuple[str, ...]) or (),
        ended=early,
        insecure=setting(settings.get("insecure_hosts"), tuple[str, ...]) or (),
        # Not `authorized`: logins are stored nowhere.
        politeness=politeness_of(settings),
        hosts=history.hosts(),
        sitemaps=history.sitemaps(),
        listing=history.listing,
        directory=options.directory,
        spent=run is not None and run.how is store.End.SPENT,
        cookies=setting(settings.get("cookies"), bool),
        credentials=setting(settings.get("credentials"), bool),
        checks=setting(settings.get("checks"), bool),
    )
