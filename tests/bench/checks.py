"""Measure what the checks of links cost beside the plain crawl of the same site.

    python tests/bench/checks.py [--root python3-doc sqlite3-doc apache2-doc postgresql-doc-15]
                                 [--kinds assets fragments assets,fragments] [--rounds 3]

Each crawl is the command in a process of its own, bound to a core; nginx serves if it is
installed, else Python does. The plain crawl and those with checks take turns, and the figures are
medians over the rounds: seconds of CPU of the whole process, and their ratio to the plain crawl
with the least and the most that one round had. The first crawl is not counted, since it may
compile the modules.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from functools import partial
from pathlib import Path
from statistics import median

from measure import CLIENT, load, pinned, ratio, serving, taken_in_turns
from peers import CHECKOUT
from roots import ROOTS

USUAL = ["python3-doc", "sqlite3-doc", "apache2-doc", "postgresql-doc-15"]
KINDS = ("assets", "fragments", "assets,fragments")
PLAIN = "plain"
OPTIONS = ("--ignore-robots", "--per-host", "10")


def main() -> None:
    """Measure and print a table for each root."""
    options = _options()
    for root in options.root:
        with serving(ROOTS.get(root, Path(root))) as (server, url):
            print(f"{root} by {server}, {options.rounds} rounds, {load()}")
            crawled(PLAIN, url)
            once = partial(crawled, url=url)
            runs = taken_in_turns(options.rounds, (PLAIN, *options.kinds), once)
            for kinds, seconds in runs.items():
                times = ratio(seconds, runs[PLAIN])
                print(f"  {kinds:18}{median(seconds):7.2f} s of CPU, {times} times", flush=True)


def crawled(kinds: str, url: str) -> float:
    """Crawl once by the command; return the seconds of CPU."""
    checks = () if kinds == PLAIN else ("--check", kinds)
    child = subprocess.Popen(
        [sys.executable, "-m", "trio_crawler", url, *OPTIONS, *checks],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
        preexec_fn=pinned(CLIENT),
    )
    # Only wait4 says what the process used.
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode not in (0, 1):
        sys.exit(f"the crawl with {kinds} ended with {child.returncode}")
    return usage.ru_utime + usage.ru_stime


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure what the checks of links cost.")
    parser.add_argument("--root", nargs="+", default=USUAL, metavar="ROOT")
    parser.add_argument("--kinds", nargs="+", default=list(KINDS), metavar="KINDS")
    parser.add_argument("--rounds", type=int, default=3)
    return parser.parse_args()


if __name__ == "__main__":
    main()
