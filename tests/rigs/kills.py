"""Prove that a crawl survives: kill it with -9 again and again, resume, compare with a whole one.

    python tests/rigs/kills.py --kills 50 --pages 1500 --seed 1
    python tests/rigs/kills.py --every-call --pages 40 [--resumed]

The first kills at random instants; when a crawl is over before there were enough kills, another
one begins. The second kills before every single call by which the process touches its files,
SQLite's own included, and in the middle of every write; then it lets each of them fail: an I/O
error once, and a disk that is full from then on (needs a C compiler and LD_PRELOAD). With
--resumed what is struck is not the first run, but the one that goes on after a kill halfway.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

HERE = Path(__file__).resolve()
sys.path[:0] = [str(HERE.parents[1]), str(HERE.parents[2])]

from durable import compare, strike  # noqa: E402
from durable.crawls import Durable, kill_again_and_again, until_whole, whole_crawl  # noqa: E402
from durable.server import Served, served  # noqa: E402
from durable.site import Site  # noqa: E402

from trio_crawler import Outcome  # noqa: E402


def main() -> int:
    """Run what is asked for; return 0 if nothing was found wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--pages", type=int, default=1500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=10)
    parser.add_argument("--every-call", action="store_true")
    parser.add_argument("--resumed", action="store_true", help="strike the second run of a crawl")
    parser.add_argument("--step", type=int, default=1, help="strike at every n-th call only")
    parser.add_argument("--keep", type=Path, help="keep all files in this directory")
    options = parser.parse_args()
    site = Site(options.pages, options.seed)
    with TemporaryDirectory() as scratch, served(site, options.pages, options.seed) as server:
        home = options.keep or Path(scratch)
        prove = _calls if options.every_call else _kills
        complaints = 0
        for text in prove(server, home, options):
            print("WRONG", text, flush=True)
            complaints += 1
    print(f"{complaints} complaints")
    return bool(complaints)


def _kills(server: Served, home: Path, options: argparse.Namespace) -> Iterator[str]:
    home.mkdir(parents=True, exist_ok=True)
    first, whole = whole_crawl(server, home, options.workers)
    yield from _said("whole", first, whole)
    startup = server.asked(1)[0].seconds - first.runs[0].begun
    seconds = first.runs[0].seconds - startup
    print(f"{len(whole)} URLs; without a stop {seconds:.1f} s after {startup:.2f} s of start-up")
    print("crawl kills  runs  asked again: all  most at one kill   robots.txt   seconds")
    random = Random(f"kills {options.seed}")
    kills = number = 0
    while kills < options.kills:
        number += 1
        crawl = Durable(server, home / f"killed{number}", options.workers)
        server.begin(home / f"killed{number}.log")
        begun = time.monotonic()
        left = options.kills - kills
        kills += kill_again_and_again(crawl, random, left, startup, seconds)
        until_whole(crawl)
        _show(crawl, number, time.monotonic() - begun)
        yield from _said(f"crawl {number}", crawl, whole)
        yield from _nothing_more(crawl)
    print(f"{kills} kills in {number} crawls, {options.workers} workers")


def _said(name: str, crawl: Durable, whole: Sequence[Outcome]) -> Iterator[str]:
    for place, complaints in crawl.complaints(whole).items():
        yield from (f"{name}: {place}: {text}" for text in complaints)


def _show(crawl: Durable, number: int, seconds: float) -> None:
    asked = crawl.served.asked()
    runs: dict[str, list[int]] = {}
    for request in asked:
        runs.setdefault(request.path, []).append(request.run)
    robots = len(runs.get("/robots.txt", ()))
    pages = {path: numbers for path, numbers in runs.items() if path in crawl.served.site.urls}
    again = [len(paths) for paths in compare.lost_at(pages, crawl.served.site).values()]
    kills = sum(run.status < 0 for run in crawl.runs)
    print(
        f"{number:5} {kills:5} {len(crawl.runs):5} {sum(again):17} {max(again, default=0):17} "
        f"{robots:12} {seconds:9.1f}",
        flush=True,
    )


def _nothing_more(crawl: Durable) -> Iterator[str]:
    """Run a whole crawl once more: it must ask for nothing and write nothing."""
    before = crawl.lines.read_bytes(), crawl.archive.read_bytes()
    run = crawl.run()
    if asked := crawl.served.asked(run.number):
        yield f"a crawl that was whole asked for {[request.path for request in asked][:5]}"
    if (crawl.lines.read_bytes(), crawl.archive.read_bytes()) != before:
        yield "a crawl that was whole wrote to its files"


def _calls(server: Served, home: Path, options: argparse.Namespace) -> Iterator[str]:
    home.mkdir(parents=True, exist_ok=True)
    _, whole = whole_crawl(server, home, options.workers)
    library = strike.built(home)
    for blow in strike.BLOWS:
        calls = _counted(server, home, options, library)
        begun, stopped = time.monotonic(), 0
        # A crawl does not make as many calls each time.
        places = range(1, calls + calls // 10, options.step)
        for at in places:
            crawl = _fresh(server, home / "struck", options)
            run = crawl.run(**strike.environment(library, crawl.home, at, blow))
            stopped += not run.whole
            complaints = [] if run.whole else list(strike.told(run, blow))
            until_whole(crawl)
            complaints += _said("after", crawl, whole)
            yield from (f"{blow.name} at call {at}: {text}" for text in complaints)
        took = time.monotonic() - begun
        told = f"{blow.name:18} at {len(places):5} calls, {stopped:5} stopped by it: {took:.0f} s"
        print(told, flush=True)


def _fresh(server: Served, home: Path, options: argparse.Namespace) -> Durable:
    shutil.rmtree(home, ignore_errors=True)
    server.begin(home.with_suffix(".log"))
    crawl = Durable(server, home, options.workers)
    if options.resumed:
        _kill_halfway(crawl, options.pages // 2)
    return crawl


def _kill_halfway(crawl: Durable, requests: int) -> None:
    started = crawl.start()
    while not started.is_over(0.002) and len(crawl.served.asked(started.number)) < requests:
        pass
    started.killed()


def _counted(server: Served, home: Path, options: argparse.Namespace, library: Path) -> int:
    crawl, log = _fresh(server, home / "struck", options), home / "calls"
    log.unlink(missing_ok=True)
    env = strike.environment(library, crawl.home, 0, strike.BLOWS[0])
    assert crawl.run(**env, STRIKE_LOG=str(log)).whole
    return len(log.read_text().splitlines())


if __name__ == "__main__":
    raise SystemExit(main())
