"""The report of a crawl directory: printed again, and exported, without the network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any

import trio

from trio_crawler import History, Outcome, Page, report, store
from trio_crawler.cli.declaration import requested
from trio_crawler.cli.directory import politeness_of, protect_crawl_files, texts_of
from trio_crawler.cli.exit import WRONG_USAGE, close, complain, guarded
from trio_crawler.cli.exports import Export, exports
from trio_crawler.cli.options import ReportOptions
from trio_crawler.cli.signals import SIGNALS
from trio_crawler.frontier import HostStatistics
from trio_crawler.report import Report

_PORTION = 64
"""Outcomes between two checks for a cancellation."""

_EARLY = (store.End.STOPPED, store.End.CUT_SHORT)
_NO_CHANGES = "The site was crawled only once: --refresh crawls it again and reports the changes"


def run(options: ReportOptions) -> int:
    """Print the report of a crawl directory, write exports, and return the exit status."""
    return guarded(partial(_run, options))


def _run(options: ReportOptions) -> int:
    with History(options.directory) as history, ExitStack() as stack:
        protect_crawl_files(history, options)
        paths = {flag: path for flag, (path, _) in requested(options).items()}
        try:
            files = [stack.enter_context(export) for export in exports(paths, options.directory)]
        except OSError as error:
            complain(f"cannot write {error.filename}: {error.strerror}")
            return WRONG_USAGE
        result = Report(why=options.why, full=options.full)
        texts = _Texts(history)
        for outcome in history.outcomes(brief="--links" not in paths):
            SIGNALS.check()
            result.add(outcome)
            texts.add(outcome)
            for export in files:
                export.sink.take(outcome)
        for url in history.waiting():
            SIGNALS.check()
            result.add_waiting(url)
        for export in files:
            SIGNALS.check()
            export.finish()
        text = _text(history, result, options)
    if options.changes:
        SIGNALS.check()
        text += "\n\n" + (changes(options.directory, options.full) or _NO_CHANGES)
    SIGNALS.check()
    if options.links is not None and texts.missing:
        complain(without_texts(options.links, texts.missing))
    return close(result, text, files)


def _text(history: History, result: Report, options: ReportOptions) -> str:
    runs = [run for run in history.runs if run.walk == history.walks]
    settings: dict[str, Any] = dict(runs[-1].settings) if runs else {}
    how = runs[-1].how if runs else None
    facts = report.CrawlFacts(
        history.statistics(),
        (runs[-1].workers if runs else None) or 0,
        workers_chosen=settings.get("workers_chosen") is True,
        seeds=texts_of(settings, "seeds"),
        ended=how if how in _EARLY else "",
        insecure=texts_of(settings, "insecure_hosts"),
        # Not `authorized`: logins are stored nowhere.
        politeness=politeness_of(settings),
        hosts=history.hosts(),
        sitemaps=history.sitemaps(),
        listing=history.listing,
        directory=options.directory,
        spent=how is store.End.SPENT,
        cookies=_flag(settings, "cookies"),
        credentials=_flag(settings, "credentials"),
        checks=_flag(settings, "checks"),
    )
    return result.text(facts)


def _flag(settings: dict[str, Any], name: str) -> bool | None:
    """Return a flag from the settings; None if another program has stored something else."""
    value = settings.get(name)
    return value if isinstance(value, bool) else None


class _Texts:
    """The count of the pages whose links have no texts, since a run did not keep them."""

    def __init__(self, history: History) -> None:
        # Only those of the command say it, and only since it has a choice.
        self._lost = any(run.settings.get("texts") is False for run in history.runs)
        self.missing = 0

    def add(self, outcome: Outcome) -> None:
        """Count an outcome."""
        if self._lost and isinstance(outcome, Page):
            self.missing += bool(outcome.links) and not outcome.anchors


def without_texts(path: str, pages: int) -> str:
    """Return a sentence about pages whose links are written to a file without their texts."""
    noun = "1 page" if pages == 1 else f"{pages:,} pages"
    return (
        f"--links {path}: the links of {noun} have no texts, which a directory "
        "keeps only if it is crawled with --links from the beginning"
    )


def write(directory: str, files: Sequence[Export]) -> int:
    """Write the outcomes of the last walk to files, in a thread that Trio may cancel.

    Return the number of pages whose links have no texts.
    """
    with History(directory) as history:
        texts = _Texts(history)
        for number, outcome in enumerate(history.outcomes()):
            if number % _PORTION == 0:
                trio.from_thread.check_cancelled()
            texts.add(outcome)
            for export in files:
                export.sink.take(outcome)
    for export in files:
        export.whole = True
    return texts.missing


def left(directory: str, result: Report) -> Mapping[str, HostStatistics]:
    """Add the URLs that wait to a report, in a thread that Trio may cancel; return the hosts."""
    with History(directory) as history:
        for number, url in enumerate(history.waiting()):
            if number % _PORTION == 0:
                trio.from_thread.check_cancelled()
            result.add_waiting(url)
        return history.hosts()


def changes(directory: str, full: bool) -> str:
    """Return the changes since the walk before the last one; "" if there was none."""
    with History(directory) as history:
        if history.walks < 2:
            return ""
        before = [run.started for run in history.runs if run.walk == history.walks - 1]
        since = min(before, default=None)
        return report.changes(history.changes(), since, full, repeated=history.repeated())
