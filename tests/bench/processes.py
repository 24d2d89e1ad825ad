"""Crawl a server that takes its time by one process, and by several: `--processes`.

    python tests/bench/processes.py [--processes 2] [--hosts 20] [--pages 3000] [--delay 50]
                                    [--tasks 40] [--rounds 3] [--mine]

Each crawl is the command with `-o DIR`, and the cases take turns. Each process has TASKS tasks.
HOSTS addresses of loopback have PAGES pages each, and answer after DELAY ms; with `--mine` one
host has them all. Pages a second are those of the whole command, with start-up, merge and report;
so are the CPU seconds, in which the server of the shared crawl counts too. Needs Linux.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import NamedTuple

from measure import load, ratio, taken_in_turns
from peers import CHECKOUT
from steady import answering_slowly


class Figures(NamedTuple):
    """What one crawl took."""

    rate: float
    for_a_cpu_second: float


def main() -> None:
    """Measure and print the figures of both, and their ratios."""
    options = _options()
    hosts = 1 if options.mine else options.hosts
    pages = options.hosts * options.pages // hosts
    print(f"{hosts} hosts x {pages} pages, answers after {options.delay} ms, {load()}")
    cases = (1, options.processes)
    runs = taken_in_turns(options.rounds, cases, partial(crawled, options, hosts, pages))
    for number, each in runs.items():
        rate, paid = (median(figure) for figure in zip(*each, strict=True))
        print(f"{number} processes: {rate:,.0f} pages/s, {paid:,.0f} pages a CPU second")
    for place, name in enumerate(Figures._fields):
        one, several = ([each[place] for each in runs[number]] for number in cases)
        print(f"{name}: {ratio(several, one)} times")


def crawled(options: argparse.Namespace, hosts: int, pages: int, processes: int) -> Figures:
    """Crawl once by so many processes."""
    addresses = [f"127.0.0.{each + 2}" for each in range(hosts)]
    with (
        TemporaryDirectory() as home,
        answering_slowly(pages, options.delay, 10**9, 10**9, *addresses) as (port, _),
    ):
        urls = [f"http://{address}:{port}/0" for address in addresses]
        words = ["-q", "-o", str(Path(home, "site")), "--max-tasks", str(options.tasks)]
        words += ["--mine"] if options.mine else ["--ignore-robots", "--per-host", "100"]
        words += ["--no-traps", "--processes", str(processes), *urls]
        began = time.monotonic()
        child = subprocess.Popen(
            [sys.executable, "-m", "trio_crawler", *words],
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
        )
        assert child.stdout is not None
        said = child.stdout.read().decode()
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.monotonic() - began
    if child.returncode or f"{hosts * pages:,} pages" not in said:
        sys.exit(f"not all pages were found:\n{said}")
    return Figures(hosts * pages / seconds, hosts * pages / (usage.ru_utime + usage.ru_stime))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Crawl by one process and by several.")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--hosts", type=int, default=20)
    parser.add_argument("--pages", type=int, default=3_000)
    parser.add_argument("--delay", type=int, default=50, help="milliseconds")
    parser.add_argument("--tasks", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--mine", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    main()
