"""Prove that signals end the command well: thousands, at random moments of its whole life.

    python tests/rigs/signals.py --signals 2000 --seed 1

Each run of the command gets one, two or three of SIGINT, SIGTERM and SIGHUP, from the start of the
process to its last moment. Then its exit status must be 128 and the number of a signal, standard
error at most one line and no traceback, the report there if the server was asked for anything,
and no `.part` file. A crawl with `-o` is stopped and taken up until it is whole, and then compared
with one that nothing has stopped.

The interpreter's own moments are counted apart: `/proc/PID/status` says, before a signal is sent,
whether the process handles SIGTERM yet. A traceback there may have no frame of the package. After
the last moment of the command, when it ignores signals, its exit status is the one without them.
"""

from __future__ import annotations

import argparse
import re
import shutil
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

HERE = Path(__file__).resolve()
sys.path[:0] = [str(HERE.parents[1]), str(HERE.parents[2])]

from cli.command import environment  # noqa: E402
from durable.crawls import ENDED, Durable, Run, Started, until_whole, whole_crawl  # noqa: E402
from durable.server import RUN, Served, served  # noqa: E402
from durable.site import Site  # noqa: E402

KINDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
AT_ONCE = 1.0
"""Seconds that a second signal may take, and a first one where nothing is in flight."""

FIRST = 5.0
SLACK = 2.0
"""Seconds that a busy machine may take on top."""

# What pip installs as `trio-crawler`.
SCRIPT = "import re, sys\nfrom trio_crawler.cli import main\nsys.exit(main())\n"


@dataclass(frozen=True, slots=True)
class Mask:
    """What a process does with the signals; all False once it is gone."""

    caught: bool = False
    ignored: bool = False
    pending: bool = False
    there: bool = False


def mask_of(pid: int) -> Mask:
    """Read what a process does with SIGTERM now, and whether any signal of ours is pending."""
    try:
        text = Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return Mask()
    found = {name: int(bits, 16) for name, bits in re.findall(r"(S\w+):\t([0-9a-f]{16})", text)}
    if not found:
        return Mask()
    term, ours = 1 << signal.SIGTERM - 1, sum(1 << number - 1 for number in KINDS)
    waits = (found["SigPnd"] | found["ShdPnd"]) & ours
    return Mask(bool(found["SigCgt"] & term), bool(found["SigIgn"] & term), bool(waits), True)


@dataclass
class Struck:
    """A run and the signals that it got; `apart` says that one came in the interpreter's time.

    `due` says that the handler has had the first one, so the exit status must show it.
    """

    mode: str
    sent: list[int] = field(default_factory=list)
    apart: bool = False
    late: bool = False
    due: bool = False
    last: float = 0.0

    def strike(self, started: Started, plan: Sequence[tuple[float, signal.Signals]]) -> None:
        """Send signals, each so many seconds after the one before, until there is no process."""
        for wait, number in plan:
            until = time.monotonic() + wait
            while (left := until - time.monotonic()) > 0.003:
                if started.is_over(left - 0.002):
                    return
            while time.monotonic() < until:
                pass
            before = mask_of(started.process.pid)
            if started.process.poll() is not None or not before.there:
                return
            if not before.caught and not before.ignored:
                self.apart = True
            self.late = self.late or (before.ignored and not self.sent)
            self.last = started.send(number)
            self.sent.append(number)
            after = mask_of(started.process.pid)
            self.due = self.due or (before.caught and after.caught and not after.pending)


def complaints(run: Run, struck: Struck, home: Path, seconds: float) -> Iterator[str]:
    """Say what is wrong with the end of a run, `seconds` after its last signal."""
    statuses = {128 + number for number in struck.sent}
    usual = () if struck.due else (0, 1)
    frames = re.search(r'File "[^"]*/trio_crawler/', run.err)
    if list(home.rglob("*.part")):
        yield f"left {[path.name for path in home.rglob('*.part')]}"
    if struck.apart:
        if frames:
            yield f"a traceback of ours: {run.err[-900:]}"
        return
    if run.status not in {*statuses, *usual}:
        yield f"status {run.status} after {struck.sent}"
    if "Traceback" in run.err or len(run.err.splitlines()) > 1:
        yield f"said {run.err[-900:]!r}"
    patience = AT_ONCE if len(struck.sent) > 1 or struck.mode in ("report", "help") else FIRST
    if seconds > patience + SLACK:
        yield f"took {seconds:.2f} s after {struck.sent}"


class Rig:
    """Run the command in all its modes, each with signals, and count what came of it."""

    def __init__(self, server: Served, other: Served, home: Path, seed: int) -> None:
        # The directory has a server of its own, whose log tells of its crawl alone.
        self.server, self.home = server, home
        self.random = Random(f"signals {seed}")
        self.counts: dict[str, Counter[str]] = {}
        self.slowest: Counter[str] = Counter()
        home.mkdir(parents=True, exist_ok=True)
        self.script = home / "trio-crawler"
        self.script.write_text(SCRIPT)
        first, self.whole = whole_crawl(server, home, 10)
        self.kept = first.directory
        other.begin(home / "loose.log")
        self.loose = Durable(other, home / "loose")
        self.lasting: Durable | None = None
        self.lives = {mode: self._life(mode) for mode in MODES}

    def _life(self, mode: str) -> float:
        """Measure a run that gets no signal."""
        lives = []
        for _ in range(2):
            started = self._start(mode, "-m")
            lives.append(started.ended().seconds)
            shutil.rmtree(self.home / "files", ignore_errors=True)
        self.lasting = None
        shutil.rmtree(self.home / "lasting", ignore_errors=True)
        return min(lives)

    def _start(self, mode: str, how: str) -> Started:
        files = self.home / "files"
        files.mkdir(exist_ok=True)
        begin = [sys.executable, *(["-m", "trio_crawler"] if how == "-m" else [str(self.script)])]
        crawl = self.loose
        if mode == "-o":
            if self.lasting is None:
                self.server.begin(self.home / "log")
                self.lasting = Durable(self.server, self.home / "lasting", warc=False)
            crawl = self.lasting
        number = next(crawl.numbers)
        if mode == "-o":
            words = [*crawl.command(number)[3:], "--csv", str(files / "lasting.csv")]
        elif mode == "report":
            words = ["report", str(self.kept), "--csv", str(files / "report.csv")]
        elif mode == "help":
            words = ["--help"]
        else:
            words = [crawl.served.url, "--per-host", "10", "--header", f"{RUN}: {number}"]
        if mode == "files":
            words += ["--jsonl", str(files / "a.jsonl"), "--sitemap-xml", str(files / "a.xml")]
            words += ["--csv", str(files / "a.csv"), "--links", str(files / "links.csv")]
        return Started(crawl, number, [*begin, *words], environment())

    def round(self) -> Iterator[str]:
        """Start the command once, strike it, and say what is wrong afterwards."""
        random = self.random
        mode = random.choices(list(MODES), list(MODES.values()))[0]
        how = random.choice(["-m", "script"])
        struck = Struck(mode)
        since = random.choice(list(SINCE))
        plan = list(self._plan(self.lives[mode], since))
        started = self._start(mode, how)
        crawl = started.crawl
        while not _has_come(started, since) and not started.is_over(0.001):
            pass
        struck.strike(started, plan)
        run = started.ended()
        seconds = started.begun + run.seconds - struck.last if struck.sent else 0.0
        found = list(complaints(run, struck, self.home, seconds)) if struck.sent else []
        asked = mode not in ("report", "help") and crawl.served.asked(run.number)
        if asked and ENDED not in run.out:
            found.append(f"no report of {len(asked)} requests: {run.err!r}")
        if crawl is self.lasting and run.whole:
            found += self._compared(crawl)
        for text in found:
            moments = ", ".join(f"{wait:.4f} {number.name}" for wait, number in plan)
            yield f"{mode} by {how}, since {since} {moments}, status {run.status}: {text}"
        self._count(mode, struck, run, seconds)
        if crawl is self.loose:
            crawl.runs.clear()
            crawl.served.begin(self.home / "loose.log")
        shutil.rmtree(self.home / "files", ignore_errors=True)

    def _plan(self, life: float, since: str) -> Iterator[tuple[float, signal.Signals]]:
        random = self.random
        yield random.uniform(0, life * SINCE[since]), random.choice(KINDS)
        for _ in range(random.choices([0, 1, 2], [2, 3, 2])[0]):
            most = random.choices([0, 0.002, 0.05, 0.5], [1, 2, 4, 1])[0]
            yield random.uniform(0, most), random.choice(KINDS)

    def _compared(self, crawl: Durable) -> list[str]:
        """Compare a directory whose crawl has come to its end, and begin another one."""
        told = crawl.complaints(self.whole)
        # What the runs said was judged run by run: the interpreter's tracebacks are no faults.
        del told["words"]
        found = [text for texts in told.values() for text in texts]
        self.lasting = None
        shutil.rmtree(self.home / "lasting")
        self.counts.setdefault("-o", Counter())["compared"] += 1
        return found

    def completed(self) -> list[str]:
        """Take up the last directory until it is whole, and compare it."""
        if self.lasting is None:
            return []
        until_whole(self.lasting)
        return self._compared(self.lasting)

    def _count(self, mode: str, struck: Struck, run: Run, seconds: float) -> None:
        counts = self.counts.setdefault(mode, Counter())
        counts["runs"] += 1
        counts["signals"] += len(struck.sent)
        counts["several"] += len(struck.sent) > 1
        counts["over"] += not struck.sent
        counts["apart"] += struck.apart
        counts["late"] += struck.late
        if struck.sent and not struck.apart:
            counts["ended" if run.status > 2 else "usual"] += 1
            counts["report"] += ENDED in run.out
            several = "second" if len(struck.sent) > 1 else "first"
            self.slowest[several] = max(self.slowest[several], seconds)

    def table(self) -> Iterator[str]:
        """Return the summary, line by line."""
        names = ("runs", "signals", "several", "over", "apart", "ended", "usual", "late", "report")
        yield f"{'mode':8}" + "".join(f"{name:>9}" for name in names) + f"{'compared':>10}"
        total: Counter[str] = Counter()
        for mode, counts in sorted(self.counts.items()):
            total.update(counts)
            yield _row(mode, counts, names)
        yield _row("all", total, names)
        slow = ", ".join(f"after a {name} signal {s:.2f} s" for name, s in self.slowest.items())
        yield f"slowest end: {slow}"

    @property
    def signals(self) -> int:
        """How many signals were sent."""
        return sum(counts["signals"] for counts in self.counts.values())


MODES = {"plain": 3, "files": 4, "-o": 5, "report": 2, "help": 1}
"""The forms of the command, and how often each is tried."""


SINCE = {"start": 1.05, "request": 0.6, "report": 0.1}
"""From when the moment of the first signal is drawn, and in which share of a run's life then."""


def _has_come(started: Started, since: str) -> bool:
    if since == "request" and started.command[-1] != "--help" and "report" not in started.command:
        return started.has_asked()
    return since != "report" or started.has_written()


def _row(name: str, counts: Counter[str], names: Sequence[str]) -> str:
    return (
        f"{name:8}" + "".join(f"{counts[each]:9}" for each in names) + f"{counts['compared']:10}"
    )


def struck(home: Path, signals: int, pages: int, seed: int) -> tuple[Rig, list[str]]:
    """Send so many signals; return the rig and what was wrong."""
    site = Site(pages, seed)
    for number in KINDS:
        if signal.getsignal(number) is signal.SIG_IGN:
            # A shell's background jobs and `nohup` ignore it, and so would the command.
            signal.signal(number, signal.SIG_DFL)
    with served(site, pages, seed) as server, served(site, pages, seed) as other:
        return _struck(Rig(server, other, home, seed), signals)


def _struck(rig: Rig, signals: int) -> tuple[Rig, list[str]]:
    found = []
    while rig.signals < signals:
        for text in rig.round():
            print("WRONG", text, flush=True)
            found.append(text)
    for text in rig.completed():
        print("WRONG the last directory:", text, flush=True)
        found.append(text)
    return rig, found


def main() -> int:
    """Run what is asked for; return 0 if nothing was found wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--signals", type=int, default=2000)
    parser.add_argument("--pages", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with TemporaryDirectory() as scratch:
        rig, found = struck(Path(scratch), options.signals, options.pages, options.seed)
    print(*rig.table(), sep="\n")
    print(f"{len(found)} complaints")
    return bool(found)


if __name__ == "__main__":
    raise SystemExit(main())
