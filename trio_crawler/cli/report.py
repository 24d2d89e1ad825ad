"""The report of a crawl directory: printed again, and exported, without the network."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import partial
from typing import Any

from trio_crawler import History, Outcome, Page, report, store
from trio_crawler.cli.checking import Check
from trio_crawler.cli.declaration import requested
from trio_crawler.cli.directory import folder_of, politeness_of, protect_crawl_files, setting
from trio_crawler.cli.exit import finish, guarded
from trio_crawler.cli.exports import as_it_is, exports
from trio_crawler.cli.shared_options import FILES, ReportOptions, refuse_without_check
from trio_crawler.cli.signals import SIGNALS
from trio_crawler.ledger import Ledger
from trio_crawler.report import Report

_EARLY = (store.End.STOPPED, store.End.CUT_SHORT)
_NO_CHANGES = "The site was crawled only once: --refresh crawls it again and reports the changes"


def run(options: ReportOptions) -> int:
    """Print the report of a crawl directory, write exports, and return the exit status."""
    return guarded(partial(_run, options))


def _run(options: ReportOptions) -> int:
    with History(options.directory) as history, ExitStack() as stack:
        protect_crawl_files(history, options)
        settings = _settings(history)
        asked = requested(options)
        paths = {flag: path for flag, (path, _) in asked.items() if flag not in FILES}
        checks, owner = (setting(settings.get(name), bool) for name in ("checks", "owner"))
        if not checks:
            refuse_without_check(options, f"and {options.directory} has a crawl without one")
        folder = folder_of(settings)
        named = as_it_is if folder is None else folder.named
        made = exports(paths, options.directory, named=named)
        files = [stack.enter_context(export) for export in made]
        ledger = stack.enter_context(Ledger(outside=options.why, checks=bool(checks)))
        check = _check(history, options, stack, ledger) if checks else None
        once = check.once if check is not None else as_it_is
        takers = [lambda outcome: ledger.add(once(outcome)), *(export.take for export in files)]
        # Only a check and the texts of links need more.
        brief = check is None and "--links" not in paths
        textless = read_back(history, takers, ledger, SIGNALS.check, brief=brief)
        for export in files:
            SIGNALS.check()
            export.finish()
        SIGNALS.check()
        told = changes(history, options.full) or _NO_CHANGES if options.changes else ""
        return finish(
            Report(why=options.why, full=options.full, ledger=ledger),
            check,
            partial(_facts, history, options),
            files,
            options,
            owner=bool(owner),
            ended=_ended(history),
            textless=textless,
            more=[told],
        )


def _last_run(history: History) -> store.Run | None:
    """Return the last run of the last walk; None before its first one is stored."""
    return next((run for run in reversed(history.runs) if run.walk == history.walks), None)


def _settings(history: History) -> dict[str, Any]:
    run = _last_run(history)
    return {} if run is None else dict(run.settings)


def _ended(history: History) -> str:
    """Return why a check ended early; "" if it did not."""
    run, statistics = _last_run(history), history.statistics()
    if run is not None and run.how in _EARLY:
        return run.how
    return "URLs wait for its next run" if statistics.waiting + statistics.in_flight else ""


def _check(history: History, options: ReportOptions, stack: ExitStack, ledger: Ledger) -> Check:
    """Return the check, with its files open. Raises OSError."""
    run = _last_run(history)
    began = 0.0 if run is None else run.started
    return Check(
        options,
        stack,
        directory=options.directory,
        folder=folder_of(_settings(history)),
        full=options.full,
        date=datetime.fromtimestamp(began, UTC),
        ledger=ledger,
    )


def _facts(history: History, options: ReportOptions) -> report.CrawlFacts:
    run, settings = _last_run(history), _settings(history)
    how = None if run is None else run.how
    return report.CrawlFacts(
        history.statistics(),
        (None if run is None else run.workers) or 0,
        seeds=setting(settings.get("seeds"), tuple[str, ...]) or (),
        ended=how if how in _EARLY else "",
        insecure=setting(settings.get("insecure_hosts"), tuple[str, ...]) or (),
        # Not `authorized`: logins are stored nowhere.
        politeness=politeness_of(settings),
        hosts=history.hosts(),
        sitemaps=history.sitemaps(),
        listing=history.listing,
        directory=options.directory,
        spent=how is store.End.SPENT,
        cookies=setting(settings.get("cookies"), bool),
        credentials=setting(settings.get("credentials"), bool),
        checks=setting(settings.get("checks"), bool),
    )


def read_back(
    history: History,
    takers: Sequence[Callable[[Outcome], None]],
    ledger: Ledger,
    check: Callable[[], None],
    *,
    brief: bool,
) -> int:
    """Pass the outcomes of the last walk to the takers, and the URLs that wait to the ledger.

    `check` is called before each, and may raise. Return the number of pages whose links have no
    texts, since a run did not keep them, unless they are `brief`.
    """
    # Only the runs of the command say it, and only since it has a choice.
    lost = any(run.settings.get("texts") is False for run in history.runs)
    textless = 0
    for outcome in history.outcomes(brief=brief) if takers else ():
        check()
        if lost and isinstance(outcome, Page):
            textless += bool(outcome.links) and not outcome.anchors
        for take in takers:
            take(outcome)
    for url in history.waiting():
        check()
        ledger.add_waiting(url)
    return textless


def changes(history: History, full: bool) -> str:
    """Return the changes since the walk before the last one; "" if there was none."""
    if history.walks < 2:
        return ""
    before = [run.started for run in history.runs if run.walk == history.walks - 1]
    since = min(before, default=None)
    return report.changes(history.changes(), since, full, repeated=history.repeated())
