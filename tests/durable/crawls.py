"""Durable crawls by the command: started, stopped in any way, taken up again, and looked at."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from random import Random

from cli.command import environment
from durable import compare
from durable.server import RUN, Served

from trio_crawler import Outcome

ROOT = Path(__file__).parents[2]
ENDED = "Finished "
"""What stands in the report of a crawl that has come to an end, well or stopped."""

FAILED = "Ended early: its directory failed"
LONGEST = 120.0


@dataclass(frozen=True, slots=True)
class Run:
    """One start of the command and how it ended; a negative `status` is the signal.

    `begun` is a time of `time.monotonic`, which the server's log has, too.
    """

    number: int
    status: int
    begun: float
    seconds: float
    out: str
    err: str

    @property
    def whole(self) -> bool:
        """Tell whether the crawl came to its end in this run."""
        return self.status in (0, 1) and ENDED in self.out and FAILED not in self.out


@dataclass
class Durable:
    """A crawl of a served site, run by run; the directory and the files stand in `kept`.

    What the runs say is in `home`, and so is the rest if nothing else is told.
    """

    served: Served
    home: Path
    workers: int = 10
    words: Sequence[str] = ()
    warc: bool = True
    kept: Path | None = None
    runs: list[Run] = field(default_factory=list)
    numbers: Iterator[int] = field(default_factory=lambda: count(1))

    def __post_init__(self) -> None:
        self.site = self.served.site
        self.edited: Collection[str] = ()
        kept = self.kept or self.home
        self.directory = kept / "crawl"
        self.lines = kept / "pages.jsonl"
        self.archive = kept / "pages.warc.gz"
        self.home.mkdir(parents=True, exist_ok=True)

    def command(self, number: int, *words: str) -> list[str]:
        """Return the command of run `number`."""
        tasks = str(self.workers)
        files = ["-o", str(self.directory), "--jsonl", str(self.lines)]
        if self.warc:
            files += ["--warc", str(self.archive)]
        sent = ["--header", f"{RUN}: {number}"]
        how = ["--max-tasks", tasks, "--per-host", tasks, "-q"]
        start = [sys.executable, "-m", "trio_crawler"]
        return [*start, self.served.url, *files, *how, *sent, *self.words, *words]

    def start(self, *words: str, largest: int = 0, **env: str) -> Started:
        """Start the command once more; files may not become larger than `largest`, if given."""
        number = next(self.numbers)
        command = self.command(number, *words)
        return Started(self, number, command, environment(**env), largest)

    def run(self, *words: str, largest: int = 0, **env: str) -> Run:
        """Run the command until it ends by itself."""
        return self.start(*words, largest=largest, **env).ended()

    def complaints(self, whole: Sequence[Outcome]) -> dict[str, list[str]]:
        """Compare with an uninterrupted crawl, in every place where something is kept."""
        outcomes = compare.stored(self.directory)
        site, url, stops = self.site, self.served.url, self.stops
        asked = self.served.asked()
        found = {
            "outcomes": compare.outcomes(outcomes, whole, site.either),
            "requests": compare.requests(asked, site, self.workers, stops, self.edited),
            "jsonl": compare.lines(self.lines, outcomes),
            "database": compare.database(self.directory),
            "words": [f"run {run.number}: {run.err[-600:]}" for run in self.runs if _loud(run)],
        }
        if self.warc:
            errands = {"/robots.txt", "/sitemap.xml"} & {request.path for request in asked}
            found["warc"] = compare.archive(self.archive, outcomes, site, url, errands)
        return found

    @property
    def stops(self) -> set[int]:
        """Return the numbers of the runs that were stopped before the end."""
        return {run.number for run in self.runs if not run.whole or run.status < 0}


@dataclass
class Started:
    """A run that is going on, in a process group of its own."""

    crawl: Durable
    number: int
    command: Sequence[str]
    env: dict[str, str]
    largest: int = 0

    def __post_init__(self) -> None:
        self.begun = time.monotonic()
        self._out = self.crawl.home / f"run{self.number}.out"
        self._err = self.crawl.home / f"run{self.number}.err"
        with self._out.open("wb") as out, self._err.open("wb") as err:
            self.process = subprocess.Popen(
                self.command,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                env=self.env,
                start_new_session=True,
                preexec_fn=self._bound if self.largest else None,
            )

    def _bound(self) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (self.largest, self.largest))

    def has_said(self, words: str) -> bool:
        """Tell whether these words stand on standard error."""
        return words in self._err.read_text("utf-8", "replace")

    def has_written(self) -> bool:
        """Tell whether there is anything on standard output."""
        return self._out.stat().st_size > 0

    def has_asked(self, path: str = "") -> bool:
        """Tell whether the server was asked in this run, for a path that begins so."""
        return any(a.path.startswith(path) for a in self.crawl.served.asked(self.number))

    def is_over(self, patience: float) -> bool:
        """Wait for the end, so many seconds at most."""
        try:
            self.process.wait(patience)
        except subprocess.TimeoutExpired:
            return False
        return True

    def send(self, number: signal.Signals) -> float:
        """Send a signal to the whole group; return when."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, number)
        return time.monotonic()

    def killed(self) -> Run:
        """Kill it at once."""
        self.send(signal.SIGKILL)
        return self.ended()

    def ended(self, patience: float = LONGEST) -> Run:
        """Wait for the end, and note the run; one that does not end is killed, and an error."""
        if not self.is_over(patience):
            self.send(signal.SIGKILL)
            self.process.wait()
            raise TimeoutError(f"run {self.number} hung: {self._err.read_text()[-2000:]}")
        seconds = time.monotonic() - self.begun
        out, err = (file.read_text("utf-8", "replace") for file in (self._out, self._err))
        run = Run(self.number, self.process.returncode, self.begun, seconds, out, err)
        self.crawl.runs.append(run)
        return run


def _loud(run: Run) -> bool:
    return "Traceback" in run.err or "Traceback" in run.out


def whole_crawl(served: Served, home: Path, workers: int = 10) -> tuple[Durable, list[Outcome]]:
    """Crawl without a stop; every URL of the site has its outcome, and no other has one."""
    crawl = Durable(served, home / "whole", workers)
    served.begin(home / "whole.log")
    run = crawl.run()
    assert run.whole, run
    outcomes = compare.stored(crawl.directory)
    urls = {served.url.rstrip("/") + path for path in served.site.urls}
    assert {outcome.url for outcome in outcomes} == urls
    return crawl, outcomes


def until_whole(crawl: Durable, most: int = 5) -> Run:
    """Take a crawl up again until it is whole; raise AssertionError if it never is."""
    for _ in range(most):
        if (run := crawl.run()).whole:
            return run
    raise AssertionError(f"not whole after {most} runs: {run}")


def assert_equal(crawl: Durable, whole: Sequence[Outcome]) -> None:
    """Find nothing in which a crawl differs from one that nothing has stopped."""
    found = crawl.complaints(whole)
    assert not any(found.values()), found


def assert_completed(crawl: Durable, whole: Sequence[Outcome]) -> None:
    """Take a crawl up again until it is whole, and as if nothing had stopped it."""
    until_whole(crawl)
    assert_equal(crawl, whole)


def kill_again_and_again(
    crawl: Durable, random: Random, kills: int, startup: float, seconds: float
) -> int:
    """Kill runs at random instants, so many or until the crawl is over; return how many.

    One in five is killed while it starts up, the others after `startup` seconds and a share of the
    `seconds` that the whole crawl takes.
    """
    done = 0
    while done < kills:
        started = crawl.start()
        early = random.random() < 0.2
        wait = random.uniform(0, startup) if early else _wait(random, startup, seconds, kills)
        if started.is_over(wait):
            if started.ended().whole:
                break
        else:
            done += started.killed().status == -signal.SIGKILL
    return done


def _wait(random: Random, startup: float, seconds: float, kills: int) -> float:
    return startup + random.expovariate(1.3 * kills / seconds)
