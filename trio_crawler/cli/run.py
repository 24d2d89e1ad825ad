"""The run: one crawl from the command line, with its signals, its output and its end."""

from __future__ import annotations

import math
import os
import signal
import sys
from contextlib import ExitStack
from dataclasses import dataclass

import click
import trio

from trio_crawler import Crawler, Report, brief
from trio_crawler.cli.declared import NORMAL
from trio_crawler.cli.options import Options
from trio_crawler.cli.prepare import insecure_hosts, prepared
from trio_crawler.cli.screen import Screen
from trio_crawler.cli.sink import Sink, opened

GRACE = 5.0
"""Seconds that what is in flight may take after the first Ctrl-C, or after --max-time."""

CLOSED_PIPE = 128 + signal.SIGPIPE


@dataclass(slots=True)
class Ending:
    """Note how a crawl is brought to its end from outside."""

    signal: int = 0
    phrase: str = ""


def run(options: Options) -> int:
    """Crawl as the options say, print the report and return the exit status.

    Raises click.UsageError for options that cannot be meant or do not go together.
    """
    status = CLOSED_PIPE
    try:
        status = trio.run(_main, options)
    except* BrokenPipeError:
        # The reader of our output has left, as `head` does: end without a word.
        _discard_output()
    return status


def _discard_output() -> None:
    # Otherwise Python complains when it flushes standard output at exit.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


async def _main(options: Options) -> int:
    try:
        crawler, fetch = prepared(options)
    except ValueError as error:
        # Only here: a ValueError of the crawl itself is a bug, and gets its traceback.
        raise click.UsageError(str(error)) from None
    report = Report(why=options.why, full=options.level > NORMAL)
    ending = Ending()
    with ExitStack() as stack:
        sink = _sink(options, stack)
        if isinstance(sink, str):
            print(f"trio-crawler: {sink}", file=sys.stderr)
            return 2
        screen = stack.enter_context(Screen(live=options.level >= NORMAL))
        async with fetch, trio.open_nursery() as nursery:
            nursery.start_soon(screen.draw, crawler.statistics, lambda: report.problems)
            if sink:
                nursery.start_soon(sink.drain)
            scope = trio.CancelScope(deadline=_cut_off(options))
            await nursery.start(_listen, crawler, scope, screen, ending)
            with scope:
                await _crawl(crawler, report, screen, sink, options)
                if sink:
                    # Here a slow reader has all the time it wants, until Ctrl-C.
                    await sink.flush()
            nursery.cancel_scope.cancel("the crawl is over")
            # Before everything is closed.
            wire = fetch.statistics().wire
    if scope.cancelled_caught and not ending.phrase:
        ending.phrase = f"cut short {GRACE:g} s after --max-time"
    text = report.text(
        crawler.statistics(),
        options.max_tasks,
        seeds=crawler.seeds,
        ended=ending.phrase,
        insecure=insecure_hosts(options),
        wire=wire,
        politeness=crawler.politeness,
        hosts=crawler.hosts(),
        sitemaps=crawler.sitemaps(),
        listing=crawler.listing,
    )
    return _finish(options, report, text, sink, ending)


async def _crawl(
    crawler: Crawler, report: Report, screen: Screen, sink: Sink | None, options: Options
) -> None:
    async with crawler.outcomes() as outcomes:
        async for outcome in outcomes:
            report.add(outcome)
            if options.level > NORMAL:
                screen.say(brief(outcome))
            if sink:
                await sink.put(outcome)
                if sink.error:
                    return


async def _listen(
    crawler: Crawler,
    scope: trio.CancelScope,
    screen: Screen,
    ending: Ending,
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> None:
    with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        task_status.started()
        async for number in signals:
            name = "Ctrl-C" if number == signal.SIGINT else signal.Signals(number).name
            if ending.signal:
                ending.phrase = f"stopped at once by {name}"
                scope.cancel(ending.phrase)
                return
            ending.signal, ending.phrase = number, f"stopped by {name}"
            crawler.stop()
            scope.deadline = min(scope.deadline, trio.current_time() + GRACE)
            screen.say(f"{name}: finishing what is in flight; once more to stop at once")


def _cut_off(options: Options) -> float:
    return math.inf if options.max_time is None else trio.current_time() + options.max_time + GRACE


def _sink(options: Options, stack: ExitStack) -> Sink | str | None:
    if options.jsonl is None:
        return None
    try:
        return stack.enter_context(Sink(opened(options.jsonl)))
    except OSError as error:
        return f"cannot write {options.jsonl}: {error.strerror}"


def _finish(options: Options, report: Report, text: str, sink: Sink | None, ending: Ending) -> int:
    if sink and isinstance(sink.error, BrokenPipeError):
        raise sink.error
    output = sys.stderr if options.jsonl == "-" else sys.stdout
    unwritten = sink.error if sink else None
    if unwritten:
        _complain(options.jsonl, unwritten)
    try:
        print(text, file=output, flush=True)
    except BrokenPipeError:
        raise
    except OSError as error:
        _complain("the report", error)
        _discard_output()
        unwritten = error
    return _status(report, unwritten, ending)


def _complain(what: str | None, error: OSError) -> None:
    print(f"trio-crawler: cannot write {what}: {error.strerror}", file=sys.stderr)


def _status(report: Report, unwritten: OSError | None, ending: Ending) -> int:
    if ending.signal:
        return 128 + ending.signal
    if report.nothing:
        return 3
    return 1 if report.problems or unwritten else 0
