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
    return guarded(partial(printed, options, SIGNALS.check))


def printed(options: ReportOptions, check_signals: Callable[[], None]) -> int:
    """Print the report, and write exports; `check_signals` is called often, and may raise."""
    with History(options.directory) as history, ExitStack() as stack:
        protect_crawl_files(history, options)
        # The last run of the last walk; there is none before its first one is stored.
        walked = [run for run in history.runs if run.walk == history.walks]
        run = walked[-1] if walked else None
        settings = {} if run is None else run.settings
        paths = {flag: path for flag, (path, _) in requested(options).items() if flag not in FILES}
        known = (setting(settings.get(name), bool) for name in ("checks", "owner", "facts"))
        checks, owner, facts = known
        if not checks:
            refuse_without_check(options, f"and {options.directory} has a crawl without one")
        folder = folder_of(settings)
        named = as_it_is if folder is None else folder.named
        keeps = {"outside": options.why, "checks": bool(checks)}
        ledger = stack.enter_context(Ledger(**keeps, traits=options.html is not None))
        how: dict[str, Any] = {"named": named, "ledger": ledger if facts else None}
        files = [*map(stack.enter_context, exports(paths, options.directory, **how))]
        date = datetime.fromtimestamp(0.0 if run is None else run.started, UTC)
        where: dict[str, Any] = {"directory": options.directory, "folder": folder, "date": date}
        check = html = None
        if options.html is not None:
            # Imported only now: most reports write no such file.
            from trio_crawler.cli.html import HtmlFile

            html = HtmlFile(options.html, stack, **where, ledger=ledger)
        if checks:
            check = Check(
                options,
                stack,
                **where,
                full=options.full,
                ledger=ledger,
            )
        once = check.once if check is not None else as_it_is
        takers = [lambda outcome: ledger.add(once(outcome)), *(export.take for export in files)]
        # Only a check and the texts of links need more.
        brief = check is None and "--links" not in paths
        textless = read_back(history, takers, ledger, check_signals, brief=brief)
        for export in files:
            check_signals()
            export.finish()
        check_signals()
        if html is not None:
            html.read(history, check_signals, began_before(history))
        told = changes(history, options.full) or _NO_CHANGES if options.changes else ""
        early = "" if run is None or run.how not in _EARLY else run.how
        statistics = history.statistics()
        waiting = statistics.waiting + statistics.in_flight
        return finish(
            Report(why=options.why, full=options.full, ledger=ledger),
            check,
            html,
            partial(_facts, history, options, run, early),
            files,
            options,
            owner=bool(owner),
            ended=early or ("URLs wait for its next run" if waiting else ""),
            textless=textless,
            more=[told],
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
    since = began_before(history)
    return report.changes(history.changes(), since, full, repeated=history.repeated())


def began_before(history: History) -> float | None:
    """Return when the walk before the last one began; None if there was none."""
    before = [run.started for run in history.runs if run.walk == history.walks - 1]
    return min(before, default=None)
