"""Again: what a crawl directory holds, told and written once more."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any

import trio

from trio_crawler import History, report, store
from trio_crawler.cli.directory import leave_alone
from trio_crawler.cli.exit import close, complain, guarded
from trio_crawler.cli.exports import Export, exports
from trio_crawler.cli.main import WRONG_USAGE
from trio_crawler.cli.outputs import exported
from trio_crawler.cli.retold import Retold
from trio_crawler.cli.settings import politeness_of
from trio_crawler.report import Report

_PORTION = 64
"""Outcomes between two looks at whether somebody still wants them."""

_EARLY = (store.End.STOPPED, store.End.CUT_SHORT)
_NO_CHANGES = "There was one walk only: --refresh makes another, and tells what has changed"


def write(directory: str, files: Sequence[Export]) -> None:
    """Write the outcomes of the last walk to files; for a thread that Trio may cancel."""
    with History(directory) as history:
        for number, outcome in enumerate(history.outcomes()):
            if number % _PORTION == 0:
                trio.from_thread.check_cancelled()
            for export in files:
                export.sink.take(outcome)
    for export in files:
        export.whole = True


def since_before(directory: str, full: bool) -> str:
    """Tell what has changed since the walk before; "" if there was none."""
    with History(directory) as history:
        if history.walks < 2:
            return ""
        before = [run.started for run in history.runs if run.walk == history.walks - 1]
        return report.changes(history.changes(), min(before, default=None), full)


def retell(options: Retold) -> int:
    """Print the report of a crawl directory again, write exports, and return the exit status."""
    return guarded(partial(_retell, options))


def _retell(options: Retold) -> int:
    with History(options.directory) as history, ExitStack() as stack:
        leave_alone(history, exported(options))
        try:
            files = [stack.enter_context(export) for export in exports(exported(options))]
        except OSError as error:
            complain(f"cannot write {error.filename}: {error.strerror}")
            return WRONG_USAGE
        told = Report(why=options.why, full=options.full)
        for outcome in history.outcomes():
            told.add(outcome)
            for export in files:
                export.sink.take(outcome)
        for export in files:
            export.finish()
        text = _text(history, told, options)
    if options.changes:
        text += "\n\n" + (since_before(options.directory, options.full) or _NO_CHANGES)
    return close(told, text, files)


def _text(history: History, told: Report, options: Retold) -> str:
    runs = [run for run in history.runs if run.walk == history.walks]
    settings: dict[str, Any] = dict(runs[-1].settings) if runs else {}
    how = runs[-1].how if runs else None
    facts = report.CrawlFacts(
        history.statistics(),
        (runs[-1].workers if runs else None) or 0,
        seeds=settings.get("seeds", ()),
        ended=how if how in _EARLY else "",
        insecure=settings.get("insecure_hosts", ()),
        politeness=politeness_of(settings),
        hosts=history.hosts(),
        sitemaps=history.sitemaps(),
        listing=history.listing,
        directory=options.directory,
        spent=how is store.End.SPENT,
    )
    return told.text(facts)
