"""Measure what the checks of links cost beside the plain crawl of the same site.

    python tests/bench/checks.py [--root python3-doc sqlite3-doc apache2-doc postgresql-doc-15]
                                 [--kinds assets fragments assets,fragments] [--rounds 3]
                                 [--instructions]

Each crawl is the command in a process of its own, bound to a core; nginx serves if it is
installed, else Python does. The plain crawl, those with checks and the checks of the same files as
a folder take turns. The figures are medians over the rounds: seconds of CPU of the whole process,
and their ratio to the plain crawl with the least and the most that one round had. With
`--instructions` valgrind counts what the process executes, which a busy machine does not change:
one round is enough, of a minute a crawl.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import NamedTemporaryFile

from measure import CLIENT, compile_modules, load, pinned, ratio, serving, taken_in_turns, usual
from roots import ROOTS

USUAL = ["python3-doc", "sqlite3-doc", "apache2-doc", "postgresql-doc-15"]
KINDS = ("assets", "fragments", "assets,fragments")
PLAIN, FOLDER = "plain", "folder, "
COMMAND = (sys.executable, "-m", "trio_crawler")
OPTIONS = ("--ignore-robots", "--per-host", "10")


def main() -> None:
    """Measure and print a table for each root."""
    options = _options()
    unit = "M instructions" if options.instructions else "s of CPU"
    compile_modules()
    for root in options.root:
        folder = ROOTS.get(root, Path(root))
        with serving(folder) as (server, url):
            print(f"{root} by {server}, {options.rounds} rounds, {load()}")
            once = partial(crawled, url=url, folder=folder, counted=options.instructions)
            ways = [f"{place}{kinds}" for kinds in options.kinds for place in ("", FOLDER)]
            runs = taken_in_turns(options.rounds, (PLAIN, *ways), once)
            for kinds, seconds in runs.items():
                times = ratio(seconds, runs[PLAIN])
                print(f"  {kinds:26}{median(seconds):9.2f} {unit}, {times} times", flush=True)


def crawled(kinds: str, url: str, folder: Path, *, counted: bool) -> float:
    """Crawl once by the command; return the seconds of CPU, or the millions of instructions."""
    words = ["check", str(folder)] if kinds.startswith(FOLDER) else [url, *OPTIONS]
    words += () if kinds == PLAIN else ("--check", kinds.removeprefix(FOLDER))
    with NamedTemporaryFile() as file:
        counting = ("valgrind", "--tool=callgrind", f"--callgrind-out-file={file.name}")
        child = subprocess.Popen(
            [*(counting if counted else ()), *COMMAND, *words],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**usual(), "PYTHONHASHSEED": "0"},
            preexec_fn=pinned(CLIENT),
        )
        # Only wait4 says what the process used.
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode not in (0, 1):
            sys.exit(f"the crawl with {kinds} ended with {child.returncode}")
        if counted:
            return (
                int(re.findall(rb"^summary: (\d+)", Path(file.name).read_bytes(), re.M)[0]) / 1e6
            )
    return usage.ru_utime + usage.ru_stime


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure what the checks of links cost.")
    parser.add_argument("--root", nargs="+", default=USUAL, metavar="ROOT")
    parser.add_argument("--kinds", nargs="+", default=list(KINDS), metavar="KINDS")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--instructions", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    main()
