"""The run: one crawl from the command line, from its options to its exit status."""

from __future__ import annotations

from contextlib import AsyncExitStack, ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click
import trio

from trio_crawler import Crawler, report
from trio_crawler.cli.build import Plan, planned
from trio_crawler.cli.exit import close, complain, guarded
from trio_crawler.cli.exports import Export, exports, plain
from trio_crawler.cli.main import WRONG_USAGE, Options
from trio_crawler.cli.output import NORMAL
from trio_crawler.cli.outputs import exported
from trio_crawler.cli.signals import Ending
from trio_crawler.cli.sink import is_plain
from trio_crawler.cli.terminal import Screen
from trio_crawler.net import WireStatistics
from trio_crawler.report import Report, one_line

if TYPE_CHECKING:
    from trio_crawler.cli.directory import Keep


def run(options: Options) -> int:
    """Crawl as the options say, print the report and return the exit status.

    Raises click.UsageError for options that cannot be meant or do not go together.
    """
    return guarded(partial(trio.run, _main, options))


async def _main(options: Options) -> int:
    try:
        plan = planned(options)
    except ValueError as error:
        # Only here: a ValueError of the crawl itself is a bug, and gets its traceback.
        raise click.UsageError(str(error)) from None
    with ExitStack() as stack:
        try:
            files = _files(options, plan, stack)
        except OSError as error:
            complain(f"cannot write {error.filename}: {error.strerror}")
            return WRONG_USAGE
        screen = stack.enter_context(Screen(live=options.level >= NORMAL))
        crawling = _Crawling(options, plan, screen, files)
        await crawling.run()
    return crawling.close()


class _Files:
    """The files to export to: `live` ones as outcomes come, `late` ones from the directory."""

    def __init__(self, live: list[Export], late: list[Export]) -> None:
        self.live = live
        self.late = late

    @property
    def all(self) -> list[Export]:
        return [*self.live, *self.late]


def _files(options: Options, plan: Plan, stack: ExitStack) -> _Files:
    """Open what is to be written to, but for the streams of a crawl directory."""
    files, kept = exported(options), options.output is not None
    live, lines = [], files.pop("--jsonl")
    if lines is not None and not (kept and is_plain(lines)):
        live.append(stack.enter_context(plain(lines)))
    if options.warc is not None and plan.warc is not None and not kept:
        warc = plan.warc
        archive = plain(options.warc, warc.records, warc.head(), tail=warc.rest, costly=True)
        live.append(stack.enter_context(archive))
    if options.output is not None and any(files.values()):
        # A file may be wanted in the directory itself; the store tells why it cannot be made.
        with suppress(OSError):
            Path(options.output).mkdir(parents=True, exist_ok=True)
    drafts = [stack.enter_context(draft) for draft in exports(files, whole=not kept)]
    return _Files(live, drafts) if kept else _Files(live + drafts, [])


class _Crawling:
    """One crawl, and what is known of it."""

    def __init__(self, options: Options, plan: Plan, screen: Screen, files: _Files) -> None:
        self._options = options
        self._plan = plan
        self._screen = screen
        self._files = files
        self._report = Report(why=options.why, full=options.level > NORMAL)
        self._ending = Ending(screen.say)
        self._crawler: Crawler | None = None
        self._wire: WireStatistics | None = None
        self._changes = ""

    async def run(self) -> None:
        """Crawl, and write the files."""
        async with self._plan.fetch as fetch, trio.open_nursery() as nursery:
            await nursery.start(self._ending.listen)
            for export in self._files.live:
                nursery.start_soon(export.sink.drain)
            with self._ending.scope:
                await self._crawl(nursery)
            with self._ending.close():
                await self._finish_files()
            nursery.cancel_scope.cancel("the crawl is over")
            # Before everything is closed.
            self._wire = fetch.statistics().wire

    async def _crawl(self, nursery: trio.Nursery) -> None:
        plan = self._plan
        async with AsyncExitStack() as stack:
            keep = await self._keep(stack)
            crawler = plan.crawler(fetch=plan.asks, frontier=keep.frontier if keep else None)
            self._ending.begin(crawler, self._options.max_time)
            nursery.start_soon(
                self._screen.draw, crawler.statistics, lambda: self._report.problems
            )
            if keep is not None:
                await keep.recall(self._report)
            # Before that there is no whole report.
            self._crawler = crawler
            await self._take(crawler, keep)
        for export in self._files.live:
            # Here a slow reader has all the time it wants, until Ctrl-C.
            await export.sink.flush()

    async def _keep(self, stack: AsyncExitStack) -> Keep | None:
        """Open the crawl directory, if one is named."""
        options, plan = self._options, self._plan
        if options.output is None:
            return None
        # SQLite and the store are imported only now: a crawl that is not kept needs neither.
        from trio_crawler.cli.directory import Keep, frontier_of

        frontier = frontier_of(options, plan, options.output)
        await stack.enter_async_context(frontier)
        return Keep(frontier, options, plan.warc)

    async def _take(self, crawler: Crawler, keep: Keep | None) -> None:
        """Take the outcomes as they come."""
        async with crawler.outcomes() as outcomes:
            async for outcome in outcomes:
                self._report.add(outcome)
                if self._options.level > NORMAL:
                    self._screen.say(one_line(outcome))
                if keep is not None:
                    keep.add(outcome)
                for export in self._files.live:
                    await export.sink.put(outcome)
                    if export.sink.error:
                        return

    async def _finish_files(self) -> None:
        """Write what is written when the crawl is over."""
        directory, late = self._options.output, self._files.late
        if directory is not None and self._crawler is not None:
            from trio_crawler.cli.report import since_before, write

            if late:
                await trio.to_thread.run_sync(write, directory, late)
            if self._options.refresh:
                full = self._options.level > NORMAL
                self._changes = await trio.to_thread.run_sync(since_before, directory, full)
        for export in self._files.all:
            await trio.to_thread.run_sync(export.finish)

    def close(self) -> int:
        """Print the report and return the exit status."""
        crawler, options = self._crawler, self._options
        if crawler is None:
            complain(f"{self._ending.phrase} before it could go on")
            return 128 + self._ending.signal
        for export in self._files.late:
            if not export.whole and not export.error:
                complain(f"{export.path} is not written: 'report {options.output}' can do that")
        facts = report.CrawlFacts(
            crawler.statistics(),
            options.max_tasks,
            seeds=crawler.plan.seeds,
            ended=self._ending.phrase,
            insecure=self._plan.insecure_hosts,
            wire=self._wire,
            politeness=crawler.plan.politeness,
            hosts=crawler.hosts,
            sitemaps=crawler.sitemaps(),
            listing=crawler.listing,
            directory=options.output or "",
            spent=options.max_pages is not None and _spent(crawler) >= options.max_pages,
        )
        text = self._report.text(facts)
        told = "\n\n".join(filter(None, (text, self._changes)))
        return close(self._report, told, self._files.all, self._ending.signal)


def _spent(crawler: Crawler) -> int:
    totals = crawler.statistics()
    return totals.pages + totals.failures
