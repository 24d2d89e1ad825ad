"""One crawl by several processes of this machine: `-o DIR --processes N`.

They are workers of a shared crawl, whose server runs on a socket in DIR for as long as one of them
does. Each keeps its outcomes in a directory of its own, `DIR/processes/1` and so on; at the end
these are merged into DIR. While the crawl is not finished they stay, with what waits, for the next
run.
"""

from __future__ import annotations

import os
import pickle
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, NoReturn, cast

import click
import trio

from trio_crawler import History, StoreError
from trio_crawler.cli import crawl
from trio_crawler.cli.build import planned
from trio_crawler.cli.directory import printed
from trio_crawler.cli.exit import (
    FAULT,
    INTERRUPTED,
    WRONG_USAGE,
    colored,
    complain,
    guarded,
)
from trio_crawler.cli.files import (
    LEFT,
    PRIVATE,
    PRIVATE_DIRECTORY,
    PROCESSES,
    Draft,
    is_plain,
    refusing,
)
from trio_crawler.cli.main import prepare
from trio_crawler.cli.options import CrawlOptions
from trio_crawler.cli.parsing import NORMAL, requested
from trio_crawler.cli.shared_options import (
    ReportOptions,
    Shared,
    SharedOptions,
    refuse,
    refuse_without_check,
)
from trio_crawler.cli.signals import SIGNALS, name_of
from trio_crawler.cli.terminal import Screen
from trio_crawler.cli.worker import server_program, serving
from trio_crawler.report import visible
from trio_crawler.shared import SharedCounts, opened_store
from trio_crawler.store import End, FileLock, InUse, Unusable, merge

_CRAWL, _NAME, _ARCHIVE, _DONE = "crawl", "crawl.sqlite", "crawl.warc", ".done"
_BLOCK = 1 << 20
_WORK = "from trio_crawler.cli.processes import work; work()"
_STRANDS = 4
# Seconds between two looks at the server and the signals, and between two drawings.
_EVERY, _DRAWN = 0.05, 0.5
# The workers that may end in a row while no URL is done.
_MOST_DEATHS = 3
_ENDED = (End.FINISHED, End.SPENT, End.STOPPED)


def run(options: CrawlOptions) -> int:
    """Crawl by several processes, print the report and return the exit status.

    Raises click.UsageError for options that several processes cannot obey.
    """
    wrong: dict[str, object] = {
        "--processes is for a crawl: check what it has found": options.checked_kinds,
        "--processes needs a crawl directory: name it with -o DIR": options.directory is None,
        "--processes is not for --refresh: it walks for the first time": options.refresh,
        "--processes is not for --canonical: each knows its own pages": options.fold_canonical,
        "--processes needs a name for --urls: standard input cannot be read twice": (
            options.seed_stream == "-"
        ),
    }
    refuse(wrong)
    return guarded(partial(_run, options))


def _run(options: CrawlOptions) -> int:
    refuse_without_check(options, crawl.UNCHECKED)
    # What is wrong with the options or with this machine is told before a directory is made.
    planned(options)
    program = server_program()
    directory = Path(options.directory or "")
    home, shown = directory / PROCESSES, visible(str(directory))
    shutil.rmtree(home.with_suffix(_DONE), ignore_errors=True)
    if (directory / _NAME).exists() and not home.exists():
        if _how(directory) is not End.FINISHED:
            raise Unusable(f"{shown} has a crawl by one process: leave --processes out")
        if options.warc is not None:
            raise Unusable(f"{shown} is complete, and its archive was made then: leave --warc out")
        # It says so, and reports again.
        return crawl.run(options)
    with _locked(home) as lock:
        for flag, (path, _) in requested(options).items():
            # They are written at the end: one that cannot be made is told before the crawl.
            if is_plain(path):
                with refusing(f"cannot write {flag} {path}"):
                    Draft(path).drop()
        color = colored(options.color, sys.stderr)
        with serving(program, home, lock) as (server, url, held):
            shared = Shared(url, _CRAWL, silent=True, strands=_strands(options))
            with Screen(live=options.level >= NORMAL, color=color) as screen:
                kept = [lock, held]
                crawled = trio.run(_crawled, options, home, shared, server, screen, kept)
        crew, left = crawled
        if crew.failed is not None:
            return crew.failed
        if len(SIGNALS.received) > 1:
            name = name_of(SIGNALS.received[1])
            complain(f"stopped at once by {name}: the same command goes on")
            return INTERRUPTED
        status = _reported(options, home, left)
        return status or (FAULT if crew.complained else 0)


def _strands(options: CrawlOptions) -> int:
    """Return the parts of a host that processes may ask at the same time: the owner's, of --mine.

    Where robots.txt is obeyed it may ask for a delay, which one process alone can keep.
    """
    alone = options.delay or options.adaptive or options.hosts or not options.ignore_robots
    most = 1 if alone else options.per_host
    # Several for each process: another number of them can share these, too.
    return min(most, _STRANDS * options.processes) if most >= options.processes else 1


@contextmanager
def _locked(home: Path) -> Iterator[int]:
    """Make the directory, and lock it until all processes that get the file have ended."""
    try:
        home.mkdir(PRIVATE_DIRECTORY, parents=True, exist_ok=True)
        lock = os.open(home / "lock", os.O_RDWR | os.O_CREAT, PRIVATE)
    except OSError as error:
        raise Unusable(f"{visible(str(home))}: {error.strerror}") from error
    try:
        try:
            FileLock(lock)
        except BlockingIOError:
            raise InUse(f"{visible(str(home.parent))} is in use by another crawl") from None
        try:
            yield lock
        finally:
            if not _parts(home):
                # No worker has begun.
                shutil.rmtree(home, ignore_errors=True)
    finally:
        os.close(lock)


def _parts(home: Path) -> list[Path]:
    """Return the directories of the workers."""
    return sorted(each.parent for each in home.glob(f"[0-9]*/{_NAME}"))


async def _crawled(
    options: CrawlOptions,
    home: Path,
    shared: Shared,
    server: subprocess.Popen[bytes],
    screen: Screen,
    kept: list[int],
) -> tuple[_Crew, int]:
    """Crawl by the processes, until all have ended; return how many URLs wait for a later run."""
    async with opened_store(shared.store, shared.crawl) as store:
        crew = _Crew(options, home, shared, store.counts, store.release, screen, kept)
        with crew.scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(crew.obey, server)
                nursery.start_soon(crew.draw)
                await crew.run()
                nursery.cancel_scope.cancel("all workers have ended")
        counts = None if crew.failed is not None else await store.counts()
    # The seeds count as one more until all are read, and before the crawl has begun.
    return crew, 1 if counts is None else counts.added - counts.done


class _Crew:
    """The workers of one run: each is started, and replaced if it ends before its time.

    `failed` is the exit status if they cannot go on, which cancels `scope`, else None. One that
    has `complained` of its list of URLs has done its work.
    """

    def __init__(
        self,
        options: CrawlOptions,
        home: Path,
        shared: Shared,
        counts: Callable[[], Awaitable[SharedCounts | None]],
        release: Callable[[str], Awaitable[None]],
        screen: Screen,
        kept: list[int],
    ) -> None:
        self._options, self._home, self._shared = options, home, shared
        self._counts, self._release = counts, release
        self._screen, self._kept = screen, kept
        self._running: dict[int, trio.Process] = {}
        self._obeyed = self._deaths = 0
        self._done = -1
        self._begun, self.scope = trio.Event(), trio.CancelScope()
        self.failed: int | None = None
        self.complained = False

    async def run(self) -> None:
        """Let the first worker begin or resume the crawl, and then the others join it."""
        # The workers of an earlier run that was killed: they have ended, or DIR would be locked.
        await self._release("")
        async with trio.open_nursery() as nursery:
            for number in range(1, self._options.processes + 1):
                nursery.start_soon(self._keep, number)

    async def obey(self, server: subprocess.Popen[bytes]) -> None:
        """Pass each signal on to the workers, and end them if there is no server."""
        while True:
            await trio.sleep(_EVERY)
            if server.poll() is not None and self.failed is None:
                log = visible(str(self._home / "log"))
                self._fail(FAULT, f"the server has ended, see {log}: the same command goes on")
            while self._obeyed < len(SIGNALS.received):
                name = name_of(SIGNALS.received[self._obeyed])
                self._obeyed += 1
                for process in self._running.values():
                    process.terminate()
                if self._obeyed == 1:
                    self._screen.say(
                        f"{name}: finishing what is in flight; once more to stop at once"
                    )

    async def draw(self) -> None:
        """Draw the live line, until cancelled."""
        began = trio.current_time()
        while self._screen.live:
            if (counts := await self._counts()) is not None:
                minutes, rest = divmod(int(trio.current_time() - began), 60)
                waiting = max(0, counts.added - counts.done - counts.out)
                self._screen.show(
                    f"{counts.done:,} done  {waiting:,} in queue  {counts.out} in flight  "
                    f"{len(self._running)} processes  {minutes}:{rest:02}"
                )
            await trio.sleep(_DRAWN)

    async def _keep(self, number: int) -> None:
        """Run a worker, and another one if it ends before its time."""
        part, stopped = self._home / str(number), False
        while not stopped and not self._obeyed and self.failed is None:
            process = await self._opened(number)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._relay, process)
                try:
                    if number > 1:
                        await self._begun.wait()
                    await self._instruct(process, number, part)
                    if number == 1:
                        # It alone has the list of URLs, and refuses the options of another crawl.
                        await self._joined(process)
                    status = await process.wait()
                finally:
                    # If this is cancelled. Its directory stands that; DIR is locked until it ends.
                    process.kill()
                    with trio.CancelScope(shield=True):
                        await process.wait()
            del self._running[number]
            if status == WRONG_USAGE:
                self._fail(WRONG_USAGE)
            stopped = _how(part) in _ENDED
            self.complained |= stopped and status == FAULT
            if stopped:
                # The first one may have ended the crawl before it was seen.
                self._begun.set()
            if not stopped and self.failed is None:
                await self._release(f":{process.pid}:")
                if not self._obeyed:
                    await self._mourn(number, status)

    async def _joined(self, process: trio.Process) -> None:
        """Let the others begin when the first worker has joined the crawl, or been stopped."""
        while process.returncode is None and not self._begun.is_set():
            counts = await self._counts()
            if self._obeyed or (counts is not None and counts.workers):
                self._begun.set()
            await trio.sleep(_EVERY)

    async def _mourn(self, number: int, status: int) -> None:
        """Say how a worker died. After several deaths without progress, end the crawl."""
        counts = await self._counts()
        done = -1 if counts is None else counts.done
        self._deaths = 1 + self._deaths * (done == self._done)
        self._done = done
        how = signal.Signals(-status).name if status < 0 else f"status {status}"
        told = f"worker {number} has ended by {how}"
        if self._deaths > _MOST_DEATHS:
            self._fail(FAULT, f"{told}, as {_MOST_DEATHS} did before: the same command goes on")
        else:
            self._screen.say(f"{told}: another one takes its place")

    def _fail(self, status: int, told: str = "") -> None:
        """End all workers at once; `status` is that of this command."""
        if self.failed is None:
            self.failed = status
            if told:
                self._screen.say(f"trio-crawler: {told}")
            self.scope.cancel("the workers cannot go on")

    async def _opened(self, number: int) -> trio.Process:
        """Start a process, which imports what it needs and waits for its options."""
        self._running[number] = process = await trio.lowlevel.open_process(
            [sys.executable, "-c", _WORK],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            pass_fds=self._kept,
            start_new_session=True,
        )
        for _ in range(self._obeyed):
            process.terminate()
        return process

    async def _instruct(self, process: trio.Process, number: int, part: Path) -> None:
        """Send a worker its options."""
        options = self._options
        suffix = ".gz" if (options.warc or "").endswith(".gz") else ""
        own = options.but(
            jsonl=None,
            csv=None,
            sitemap_xml=None,
            html=None,
            processes=1,
            shared=self._shared._replace(seeds=number == 1),
            directory=str(part),
            # For the texts of links in its directory.
            links=options.links and os.devnull,
            warc=options.warc and str(part / f"{_ARCHIVE}{suffix}"),
            seed_stream=options.seed_stream if number == 1 else None,
        )
        with suppress(trio.BrokenResourceError):
            await cast("trio.abc.SendStream", process.stdin).send_all(pickle.dumps(own))

    async def _relay(self, process: trio.Process) -> None:
        """Print what a worker complains of."""
        rest = b""
        async for part in cast("trio.abc.ReceiveStream", process.stderr):
            *lines, rest = (rest + part).split(b"\n")
            for line in lines:
                self._screen.say(line.decode(errors="replace"))


def work() -> NoReturn:
    """Crawl as the process of a worker, with the options that standard input has."""
    prepare()
    with os.fdopen(os.dup(0), "rb") as given:
        options = pickle.load(given)  # noqa: S301 - from the process that has started this one
    # Before, a signal ends it without a word: the command itself tells of that.
    SIGNALS.note()
    SIGNALS.take()
    threading.Thread(target=_end_with_parent, daemon=True).start()
    # Of a command line without a word, so to say: these options were looked at before.
    with click.Context(click.Command("worker")):
        sys.exit(SIGNALS.ignore(crawl.run(options)))


def _end_with_parent() -> None:
    """End this process as `kill -9` would when the one that has started it has ended."""
    while os.read(0, 1):
        pass
    os._exit(FAULT)


def _how(directory: Path) -> End | None:
    """Return how the last run of a directory has ended; None if it has not, or was killed."""
    try:
        with History(directory) as history:
            return history.runs[-1].how if history.runs else None
    except StoreError:
        return None


def _reported(options: CrawlOptions, home: Path, left: int) -> int:
    """Merge the directories of the workers, print the report and return the exit status.

    So many URLs are `left` for a later run.
    """
    directory, made = home.parent, home / "merged"
    if not (parts := _parts(home)):
        complain("stopped before the crawl could begin")
        return INTERRUPTED
    shutil.rmtree(made, ignore_errors=True)
    merge(made, parts, _check)
    if options.warc is not None:
        with refusing(f"cannot write --warc {options.warc}"):
            _concatenate([*home.glob(f"[0-9]*/{_ARCHIVE}*")], options.warc)
    os.replace(made / _NAME, directory / _NAME)
    (home / LEFT).write_text(str(left))
    given: dict[str, Any] = {name: getattr(options, name) for name in SharedOptions.fields}
    told = ReportOptions(
        **given, directory=str(directory), changes=False, full=options.level > NORMAL
    )
    status = printed(told, _check)
    if not left:
        done = home.with_suffix(_DONE)
        home.rename(done)
        shutil.rmtree(done, ignore_errors=True)
    return status


def _check() -> None:
    """Raise Interrupted after the second signal: the first one has ended the crawl."""
    if len(SIGNALS.received) > 1:
        SIGNALS.check()


def _concatenate(archives: Sequence[Path], path: str) -> None:
    """Write the archives one after another. Raises OSError."""

    def blocks() -> Iterator[bytes]:
        for archive in archives:
            with archive.open("rb") as file:
                yield from iter(partial(file.read, _BLOCK), b"")

    draft = Draft(path, PRIVATE)
    try:
        draft.write(blocks())
        draft.keep()
    finally:
        draft.drop()
