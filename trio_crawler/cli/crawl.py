"""The crawl command: one crawl, from its options to its exit status."""

from __future__ import annotations

import math
import os
import signal
import sys
import time
from collections.abc import AsyncIterable, Callable, Mapping
from contextlib import AsyncExitStack, ExitStack, aclosing, suppress
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

import trio

from trio_crawler import (
    Crawler,
    Limits,
    Page,
    Reason,
    Sitemaps,
    StoreError,
    normalise,
    report,
)
from trio_crawler.cli.build import Plan, planned
from trio_crawler.cli.exit import (
    FAULT,
    INTERRUPTED,
    colored,
    complain,
    first,
    guarded,
    refused,
)
from trio_crawler.cli.exports import Export, exports
from trio_crawler.cli.files import (
    PRIVATE,
    STANDARD_OUTPUT,
    SeedList,
    Target,
    is_plain,
    opened_list,
    refusing,
)
from trio_crawler.cli.options import CrawlOptions
from trio_crawler.cli.parsing import NORMAL
from trio_crawler.cli.results import Results
from trio_crawler.cli.shared_options import refuse_without_check
from trio_crawler.cli.signals import SIGNALS, name_of
from trio_crawler.cli.terminal import Screen
from trio_crawler.net import WireStatistics

if TYPE_CHECKING:
    from trio_crawler import SqliteFrontier
    from trio_crawler.cli.directory import CrawlDirectory
    from trio_crawler.frontier import HostStatistics
    from trio_crawler.shared import SharedFrontier

GRACE = 5.0
"""Seconds that requests in flight may take after the first signal, or after --max-time."""

UNCHECKED = "and this crawl checks no links: --check says which it does"
"""Why the options of a check are refused."""

_FAILED = "its directory failed"
_SPENT = "The crawl has no pages left: a worker with a greater --max-pages goes on"
_MOST_DOUBTFUL = 20
"""The most hosts that are asked for a URL that cannot exist."""


def run(options: CrawlOptions) -> int:
    """Crawl, print the report and return the exit status.

    Raises click.UsageError for options that cannot be used, alone or together.
    """
    return guarded(partial(trio.run, _main, options))


async def _main(options: CrawlOptions) -> int:
    plan = planned(options)
    if not plan.checks:
        refuse_without_check(options, UNCHECKED)
    # The files about the whole are written at the very end, when all others are closed.
    with ExitStack() as last:
        last.callback(_unhook)
        with ExitStack() as stack:
            results = Results(options, last, plan.folder, datetime.now(UTC), checks=plan.checks)
            # Those that are written as outcomes come are `whole`; the others, and the streams, are
            # those of the crawl directory.
            lasting = options.directory is not None
            # A crawl that several processes have finished has no streams: all comes at the end.
            alone = options.processes == 1
            streams = lasting and alone and is_plain(options.jsonl or STANDARD_OUTPUT)
            how: dict[str, Any] = {
                "named": plan.named,
                "ledger": results.ledger if options.facts else None,
                "in_place": "--jsonl" if alone else "",
            }
            opened = exports(options, **how, whole=not lasting, but=["--jsonl"] * streams)
            files = [*map(stack.enter_context, opened)]
            if options.warc is not None and plan.warc is not None and not lasting:
                with refusing(f"cannot write --warc {options.warc}"):
                    # Only its owner may read it: answers to a login may be in it.
                    target = Target(options.warc, PRIVATE)
                warc = plan.warc
                written = Export(options.warc, target, warc.records, warc.head(), warc.rest)
                files.append(stack.enter_context(written))
            path = options.seed_stream
            urls = None if path is None else stack.enter_context(opened_list(path))
            screen = stack.enter_context(
                Screen(live=options.level >= NORMAL, color=colored(options.color, sys.stderr))
            )
            if urls is not None:
                urls.tell = screen.say
            crawl = _Crawl(options, plan, screen, files, results, urls)
            await crawl.run()
        return crawl.close()


def _unhook() -> None:
    """Let signals wake Trio no more.

    It closes its socket before it takes it from the interpreter: a signal between the two would be
    told as an exception.
    """
    # In a thread there is no such socket.
    with suppress(ValueError):
        signal.set_wakeup_fd(-1)


class _Crawl:
    """One crawl of the command, with its results and its files."""

    def __init__(
        self,
        options: CrawlOptions,
        plan: Plan,
        screen: Screen,
        files: list[Export],
        results: Results,
        urls: SeedList | None,
    ) -> None:
        self._options, self._plan, self._screen = options, plan, screen
        self._files, self._results, self._urls = files, results, urls
        self._live = [export for export in files if export.whole]
        self._late = [export for export in files if not export.whole]
        self._silent = options.shared is not None and options.shared[2]
        self._ending = Ending((lambda _: None) if self._silent else screen.say)
        self._crawler: Crawler | None = None
        self._wire: WireStatistics | None = None
        self._hosts: Mapping[str, HostStatistics] | None = None
        self._failed: StoreError | None = None
        # By the origins of hosts the title and heading of the answer to an invented URL.
        self._missing: dict[str, tuple[str, str] | None] = {}
        # Whether earlier runs have outcomes that are not in the ledger yet.
        self._resumed = False

    async def run(self) -> None:
        """Crawl, and write the files."""
        async with self._plan.fetch as fetch, trio.open_nursery() as nursery:
            await nursery.start(self._ending.listen)
            for export in self._live:
                nursery.start_soon(export.drain)
            with self._ending.scope:
                try:
                    await self._crawl(nursery)
                except* StoreError as group:
                    # If the directory fails in the middle, what came until then is reported.
                    if self._crawler is None:
                        raise
                    self._failed = first(group)
            with self._ending.close():
                if (
                    self._options.directory
                    and self._crawler is not None
                    and not (self._failed or self._silent)
                ):
                    await trio.to_thread.run_sync(self._read_back, self._options.directory)
                asks = self._options.facts and not self._silent and self._plan.folder is None
                if asks and self._crawler and not self._ending.phrase:
                    await self._ask_for_nothing(self._crawler)
                for export in self._files:
                    await trio.to_thread.run_sync(export.finish)
            nursery.cancel_scope.cancel("the crawl is over")
            # Before everything is closed.
            self._wire = fetch.statistics().wire

    async def _crawl(self, nursery: trio.Nursery) -> None:
        options, plan = self._options, self._plan
        async with AsyncExitStack() as stack:
            directory: CrawlDirectory | None = None
            frontier: SqliteFrontier | SharedFrontier | None = None
            # SQLite and the store are imported only now: other crawls need neither.
            if options.shared is not None:
                from trio_crawler.cli.worker import shared_frontier

                frontier = await stack.enter_async_context(shared_frontier(options, plan))
            elif options.directory is not None:
                from trio_crawler.cli.directory import frontier_of

                opening = frontier_of(options, plan, options.directory)
                frontier = await stack.enter_async_context(opening)
            if options.directory is not None and frontier is not None:
                from trio_crawler.cli.directory import CrawlDirectory

                directory = CrawlDirectory(frontier, options, plan)
            stream: AsyncIterable[str] | None = self._urls
            if plan.pages is not None:
                stream = await stack.enter_async_context(aclosing(plan.pages()))
            crawler = plan.crawler(seed_stream=stream, fetch=plan.crawl_fetch, frontier=frontier)
            self._ending.begin(crawler, options.max_seconds)
            nursery.start_soon(
                self._screen.draw,
                crawler.statistics,
                lambda: self._results.ledger.errors,
                lambda: crawler.hosts.values(),
            )
            if directory is not None:
                await trio.to_thread.run_sync(directory.restore)
                self._resumed = directory.resumed
            self._crawler = crawler
            await self._consume(crawler, directory)
        for export in self._live:
            # A slow reader has as long as it needs, until Ctrl-C.
            await export.flush()

    async def _consume(self, crawler: Crawler, directory: CrawlDirectory | None) -> None:
        """Report and write the outcomes as they come."""
        async with crawler.outcomes() as outcomes:
            # That of a shared crawl is known now.
            limit, scope = crawler.frontier.hosts.deadline, self._ending.scope
            scope.deadline = min(scope.deadline, limit + GRACE)
            async for outcome in outcomes:
                if not self._silent:
                    self._results.add(outcome)
                if self._options.html is not None:
                    self._results.ledger.add_time(outcome.url, time.time())
                if self._options.full:
                    self._screen.say(report.one_line(self._plan.named(outcome)))
                elif self._results.check is not None and self._screen.live:
                    self._results.check.tell(outcome, self._screen.say)
                if directory is not None:
                    directory.add(outcome)
                for export in self._live:
                    await export.put(outcome)
                    if export.error:
                        return

    async def _ask_for_nothing(self, crawler: Crawler) -> None:
        """Ask hosts with a page that looks like an error for a URL that cannot exist.

        Whether they answer it alike decides whether such a page is one.
        """
        urls = [
            normalise(f"/{os.urandom(8).hex()}", page)
            for page in self._results.report.looks_missing(_MOST_DOUBTFUL)
        ]
        asked = Crawler(
            urls,
            limits=Limits(max_depth=0, max_tries=1),
            politeness=crawler.plan.politeness,
            sitemaps=Sitemaps(follow=False),
            facts=True,
            fetch=self._plan.fetch,
        )
        async with asked.outcomes() as outcomes:
            async for each in outcomes:
                # A redirect says nothing: it may lead to the start page.
                if isinstance(each, Page) and each.url in urls:
                    heading = (each.facts.h1 if each.facts else ()) or ("",)
                    told = (each.title or "", heading[0]) if each.ok else None
                    self._missing[each.url.rpartition("/")[0]] = told

    def _read_back(self, directory: str) -> None:
        """Write the files that the directory has all outcomes for, and report on all runs.

        Not before: to read the outcomes of a million URLs takes a minute. It is a thread, which
        ends if this crawl is cancelled.
        """
        from trio_crawler import History

        add = partial(self._results.add, earlier=True) if self._resumed else None
        alive, changes = trio.from_thread.check_cancelled, self._options.refresh
        with History(directory) as history:
            self._results.read(history, self._late, alive, add=add, changes=changes)
            self._resumed, self._hosts = False, history.hosts()

    def close(self) -> int:
        """Print the report and return the exit status."""
        crawler, options, status = self._crawler, self._options, 0
        if not self._silent:
            if crawler is None:
                complain(f"{self._ending.phrase} before the crawl could begin")
                return INTERRUPTED
            ended = self._ending.phrase or (_FAILED if self._failed else "")
            unwritten = [
                f"{export.path} is not written: 'report {options.directory}' can do that"
                for export in self._late
                if not export.whole and not export.error
            ]
            if options.shared:
                from trio_crawler.shared import SharedFrontier

                shared = crawler.frontier
                if isinstance(shared, SharedFrontier) and shared.ended is Reason.PAGE_BUDGET:
                    unwritten.append(_SPENT)
            if self._resumed:
                all_runs = f"'report {options.directory}' has"
                unwritten.insert(0, f"The report does not have all runs: {all_runs}")
            status = self._results.finish(
                partial(self._facts, crawler, ended),
                self._files,
                owner=options.owner,
                ended=ended,
                more="\n".join(unwritten),
            )
        if self._urls is not None and (problem := self._urls.problem):
            complain(problem)
            status = status or FAULT
        if self._failed is not None:
            refused(self._failed)
            # Not the status of a directory that is refused: this crawl has begun.
            return FAULT
        return status

    def _facts(self, crawler: Crawler, ended: str) -> report.CrawlFacts:
        options, totals = self._options, crawler.statistics()
        return report.CrawlFacts(
            totals,
            options.workers,
            seeds=crawler.plan.seeds,
            ended=ended,
            insecure=options.insecure_hosts,
            authorized=self._plan.authorized,
            wire=self._wire,
            politeness=crawler.plan.politeness,
            hosts=crawler.hosts if self._hosts is None else self._hosts,
            sitemaps=crawler.sitemaps(),
            listing=crawler.listing,
            # A worker has a part of the crawl: what waits is not in its directory.
            directory="" if options.shared else options.directory or "",
            cookies=options.cookies,
            credentials=self._plan.fetch.sends_credentials,
            checks=self._plan.checks,
            missing=self._missing,
            spent=totals.pages + totals.failures >= (options.max_pages or math.inf),
            cpu=time.process_time(),
        )


class Ending:
    """Obey the signals: the first stops the crawl, the second cancels `scope`.

    `signalled` says whether one was obeyed. `phrase` tells people why the crawl ended early, "" if
    it did not. `at_once` is set by the second signal.
    """

    def __init__(self, say: Callable[[str], None]) -> None:
        self.scope = trio.CancelScope()
        self.signalled = False
        self.phrase = ""
        self.at_once = False
        self._say = say
        self._crawler: Crawler | None = None
        self._woken = trio.Event()
        self._obeyed = 0

    def begin(self, crawler: Crawler, max_seconds: float | None) -> None:
        """Let signals stop this crawl, and cancel it a grace period after --max-time."""
        self._crawler = crawler
        if max_seconds is not None:
            self.scope.deadline = trio.current_time() + max_seconds + GRACE

    def close(self) -> trio.CancelScope:
        """Return the scope, not yet entered, of the work that is left after the crawl."""
        if self.scope.cancelled_caught and not self.phrase:
            self.phrase = f"cut short {GRACE:g} s after --max-time"
        deadline = self.scope.deadline if self.signalled else math.inf
        self.scope = trio.CancelScope(deadline=deadline)
        if self.at_once:
            self.scope.cancel(self.phrase)
        return self.scope

    async def listen(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Obey the signals, also those that came before, until cancelled."""
        # Not `trio.open_signal_receiver`: at its end it delivers again, to the default
        # handler, the signals that were not received.
        token = trio.lowlevel.current_trio_token()

        def wake() -> None:
            # Called by the handler, wherever that interrupts this thread.
            with suppress(trio.RunFinishedError):
                token.run_sync_soon(lambda: self._woken.set())

        with SIGNALS.waking(wake):
            self._obey()
            task_status.started()
            while True:
                await self._woken.wait()
                self._woken = trio.Event()
                self._obey()

    def _obey(self) -> None:
        for number in SIGNALS.received[self._obeyed :]:
            name = name_of(number)
            self._obeyed += 1
            if self.signalled or self._crawler is None:
                self.signalled = self.at_once = True
                self.phrase = f"stopped at once by {name}"
                self.scope.cancel(self.phrase)
                continue
            self.signalled, self.phrase = True, f"stopped by {name}"
            self._crawler.stop()
            self.scope.deadline = min(self.scope.deadline, trio.current_time() + GRACE)
            # Its reader may have left, or the terminal: the crawl is ending all the same.
            with suppress(OSError):
                self._say(f"{name}: finishing what is in flight; once more to stop at once")
