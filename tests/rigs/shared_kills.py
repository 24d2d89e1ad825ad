"""Kill and freeze what a shared crawl is made of, and count what is lost.

    python tests/rigs/shared_kills.py [--mode kill|stop|store|freeze|lose] [--runs N] [--seed N]

Three workers with directories crawl 2,000 URLs of 40 hosts, two at once of each host and 20 ms
each, with a lease of 4 s. By its mode a run

- kills a worker, three times, and starts another one in its directory;
- stops a worker for longer than its lease, and lets it go on;
- kills the server, twice, for 2 s;
- freezes the server for 6 s;
- loses each tenth reply of the server.

Then the directories are merged: each URL must be there once, and each outcome in the stream of
some worker. A host never has more than two requests in flight, but for those of a worker that is
stopped: it counts its own until it wakes. Without a mode the modes take turns.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import trio
from sites import valkey

from trio_crawler import Crawler, History, Job, Politeness, Response, StoreError, Traps
from trio_crawler.shared import SharedFrontier, opened_store
from trio_crawler.shared.frontier import MOST_AT_RISK
from trio_crawler.store import merge
from trio_crawler.testing import html

MODES = ("kill", "stop", "store", "freeze", "lose")
HOSTS, PAGES, PER_HOST, LEASE, TASKS = 40, 50, 2, 4.0, 24
ALL = HOSTS * PAGES
SEEDS = [f"http://h{host}.test/0" for host in range(HOSTS)]
PATIENCE = 120.0


class Losing:
    """A store whose replies get lost at random; a lost one is asked for again."""

    def __init__(self, store: Any, share: float) -> None:
        self._store, self._share = store, share

    async def call(self, command: str, message: bytes) -> bytes:
        reply: bytes = await self._store.call(command, message)
        while command == "work" and random.random() < self._share:
            reply = await self._store.call(command, message)
        return reply


async def work(url: str, home: Path, share: float) -> None:
    """Crawl as one worker; write when each request began and ended."""
    with (home / "hits").open("a", buffering=1) as hits:

        async def fetch(job: Job) -> Response:
            began = time.monotonic()
            await trio.sleep(0.02)
            hits.write(f"{job.url} {began} {time.monotonic()}\n")
            page = int(job.url.rpartition("/")[2])
            below = [each for each in range(4 * page + 1, 4 * page + 5) if each < PAGES]
            return html(*(f"/{each}" for each in below))

        async with opened_store(url, "rig") as store:
            losing = Losing(store, share)
            async with SharedFrontier(losing, meaning={}, ttl=LEASE, directory=home) as frontier:
                stream = frontier.kept.stream(home / "urls", lambda each: f"{each.url}\n".encode())
                crawler = Crawler(
                    SEEDS,
                    frontier=frontier,
                    fetch=fetch,
                    workers=TASKS,
                    politeness=Politeness(per_host=PER_HOST, robots=False),
                    traps=Traps.off(),
                )
                async with crawler.outcomes() as outcomes:
                    async for outcome in outcomes:
                        stream.add(outcome)


class Rig:
    """The server and the workers of one run."""

    def __init__(self, home: Path, mode: str, stack: ExitStack) -> None:
        self._home, self._mode, self._stack = home, mode, stack
        self.workers: dict[Path, subprocess.Popen[bytes]] = {}
        (home / "store").mkdir()
        self.url = ""
        self._server: Any = None
        self.start_server()

    def start_server(self) -> None:
        self._server = valkey.server(self._home / "store")
        self.url = self._server.__enter__()
        self._stack.callback(self._server.__exit__, None, None, None)

    def pids_of_server(self) -> list[int]:
        found = subprocess.run(
            ["pgrep", "-f", f"unixsocket.*{self._home}/store/s$"],
            capture_output=True,
            text=True,
            check=False,
        )
        return [int(each) for each in found.stdout.split()]

    def start(self, name: str) -> Path:
        home = self._home / name
        home.mkdir(exist_ok=True)
        words = [sys.executable, __file__, "--worker", self.url, str(home)]
        words += ["--share", "0.1" if self._mode == "lose" else "0"]
        with (home / "said").open("ab") as said:
            self.workers[home] = subprocess.Popen(words, stdout=said, stderr=said)
        self._stack.callback(self.workers[home].kill)
        return home

    def done(self) -> int:
        async def counted() -> int:
            with trio.move_on_after(2):
                async with opened_store(self.url, "rig") as store:
                    counts = await store.counts()
                    return 0 if counts is None else counts.done
            return 0

        try:
            return trio.run(counted)
        except StoreError:
            return 0

    def wait_for(self, urls: int) -> None:
        end = time.monotonic() + PATIENCE
        while self.done() < urls and time.monotonic() < end:
            time.sleep(0.05)

    def finish(self) -> None:
        end = time.monotonic() + PATIENCE
        for process in self.workers.values():
            try:
                process.wait(max(0.0, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                raise AssertionError("a worker does not end") from None


def spans_of(worker: Path) -> list[tuple[str, float, float]]:
    """Return the host of each request of a worker, and when it began and ended."""
    lines = [line.split() for line in (worker / "hits").read_text().splitlines()]
    return [(url.split("/")[2], float(began), float(ended)) for url, began, ended in lines]


def taken_over(workers: Iterable[Path], kills: list[tuple[Path, float]]) -> list[float]:
    """Return after how many seconds hosts of killed workers were asked again: the longest."""
    every = [span for worker in workers for span in spans_of(worker)]
    return [
        max(
            (
                min(began for at, began, _ in every if at == host and began > killed) - killed
                for host in {at for at, began, _ in spans_of(worker) if -0.2 < began - killed < 0}
                if any(at == host and began > killed for at, began, _ in every)
            ),
            default=0.0,
        )
        for worker, killed in kills
    ]


def strike(rig: Rig, mode: str, rnd: random.Random) -> list[tuple[Path, float]]:
    """Do the harm of a mode, at random moments; return the workers that were killed, and when."""
    kills = []
    names = list(rig.workers)
    moments = sorted(rnd.sample(range(100, ALL - 300), 3))
    if mode == "kill":
        for moment, home in zip(moments, names, strict=True):
            rig.wait_for(moment)
            rig.workers[home].kill()
            kills.append((home, time.monotonic()))
            rig.workers[home].wait()
            rig.start(home.name)
    elif mode == "stop":
        rig.wait_for(moments[0])
        rig.workers[names[0]].send_signal(signal.SIGSTOP)
        time.sleep(LEASE + 3)
        rig.workers[names[0]].send_signal(signal.SIGCONT)
    elif mode == "store":
        for moment in moments[:2]:
            rig.wait_for(moment)
            for pid in rig.pids_of_server():
                os.kill(pid, signal.SIGKILL)
            time.sleep(2)
            rig.start_server()
    elif mode == "freeze":
        rig.wait_for(moments[0])
        pids = rig.pids_of_server()
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        time.sleep(LEASE + 2)
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
    return kills


def most_in_flight(spans: dict[str, list[tuple[float, float]]]) -> int:
    worst = 0
    for each in spans.values():
        flying = 0
        for _, change in sorted(
            [(began, 1) for began, _ in each] + [(end, -1) for _, end in each]
        ):
            flying += change
            worst = max(worst, flying)
    return worst


@contextmanager
def scratch() -> Iterator[Path]:
    with TemporaryDirectory(prefix="r", dir=os.environ.get("TMPDIR")) as name:
        yield Path(name)


def run(mode: str, seed: int) -> None:
    """Make one run, and check what it left."""
    rnd = random.Random(seed)
    with scratch() as home, ExitStack() as stack:
        rig = Rig(home, mode, stack)
        for name in ("a", "b", "c"):
            rig.start(name)
        kills = strike(rig, mode, rnd)
        rig.finish()
        hits, spans = Counter[str](), defaultdict[str, list[tuple[float, float]]](list)
        written = Counter[str]()
        # One that the server did not answer at its start has ended, and has no stream.
        begun = [worker for worker in rig.workers if (worker / "urls").exists()]
        for worker in begun:
            for line in (worker / "hits").read_text().splitlines():
                url, began, ended = line.split()
                hits[url] += 1
                spans[url.split("/")[2]].append((float(began), float(ended)))
            written.update((worker / "urls").read_text().splitlines())
        merged = merge(home / "all", begun)
        with History(home / "all") as history:
            found = Counter(outcome.url for outcome in history.outcomes())
        wanted = {f"http://h{host}.test/{page}" for host in range(HOSTS) for page in range(PAGES)}
        told = {
            "mode": mode,
            "seed": seed,
            "missing": len(wanted - found.keys()),
            "double": sum(found.values()) - len(found),
            "fetched twice": sum(hits.values()) - len(hits),
            "in two directories": merged.twice,
            "most in flight": most_in_flight(spans),
            "asked again after": [f"{each:.1f} s" for each in taken_over(begun, kills)],
        }
        print(json.dumps(told), flush=True)
        said = "".join((worker / "said").read_text() for worker in rig.workers)
        assert found.keys() == wanted, said
        assert set(found.values()) == {1}
        assert set(written) == wanted
        # What one worker has at risk, three times.
        assert sum(hits.values()) - len(hits) <= 3 * max(MOST_AT_RISK, 4 * TASKS)
        assert most_in_flight(spans) <= PER_HOST * (2 if mode == "stop" else 1)


def main() -> None:
    """Run by the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--mode", choices=MODES)
    parser.add_argument("--runs", type=int, default=len(MODES))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--worker", nargs=2, metavar=("URL", "DIR"), help=argparse.SUPPRESS)
    parser.add_argument("--share", type=float, default=0.0, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.worker is not None:
        trio.run(work, given.worker[0], Path(given.worker[1]), given.share)
        return
    for each in range(given.runs):
        run(given.mode or MODES[each % len(MODES)], given.seed + each)


if __name__ == "__main__":
    main()
