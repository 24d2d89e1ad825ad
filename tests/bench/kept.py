"""Measure what a crawl takes more for what it keeps: a directory, an archive, JSON Lines.

    python tests/bench/kept.py [--root /usr/share/doc/linux-doc-6.1/html] [--rounds 3]
                               [--cases plain jsonl directory links warc gz all]

Needs `pip install -e .` (or PYTHONPATH=.); nginx serves if it is installed, else Python does. Each
run is the command in a new process, with all defaults but `--per-host` and `--ignore-nofollow`;
the cases take turns. CPU is user and system time of the whole process. Files go to the directory
for temporary files.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from statistics import median

from measure import load, serving, taken_in_turns

ROOT = "/usr/share/doc/linux-doc-6.1/html"
CASES = {
    "plain": "",
    "jsonl": "--jsonl {0}/lines",
    "directory": "-o {0}/crawl",
    "links": "-o {0}/crawl --links {0}/links",
    "warc": "--warc {0}/archive.warc",
    "gz": "--warc {0}/archive.warc.gz",
    "all": "-o {0}/crawl --jsonl {0}/lines --warc {0}/archive.warc.gz",
}


def taken(case: str, *, url: str, urls: int, workers: int) -> float:
    """Return the seconds of CPU that 1,000 URLs take."""
    with tempfile.TemporaryDirectory() as directory:
        options = CASES[case].format(directory).split()
        limits = ("--max-tasks", str(workers), "--per-host", str(workers), "--ignore-nofollow")
        command = [sys.executable, "-m", "trio_crawler", "-q", *limits, *options, url]
        child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    # Documentation may have broken links, which are reported with 1.
    if child.returncode not in (0, 1):
        sys.exit(f"{case} ended with {child.returncode}")
    return 1_000 * (usage.ru_utime + usage.ru_stime) / urls


def admitted(url: str, workers: int) -> int:
    """Return how many URLs the crawl has."""
    limits = ("--max-tasks", str(workers), "--per-host", str(workers), "--ignore-nofollow")
    command = [sys.executable, "-m", "trio_crawler", "-q", *limits, "--jsonl", "-", url]
    return subprocess.run(command, capture_output=True, check=False).stdout.count(b"\n")


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=Path, default=Path(ROOT))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=10)
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    asked = parser.parse_args()
    with serving(asked.root) as (server, url):
        urls = admitted(url, asked.workers)
        print(f"{asked.root} by {server}, {urls:,} URLs, {asked.workers} workers, {load()}")
        once = partial(taken, url=url, urls=urls, workers=asked.workers)
        runs = taken_in_turns(asked.rounds, asked.cases, once)
    plain = median(runs["plain"]) if "plain" in runs else 0.0
    for case, each in runs.items():
        print(
            f"{case:10}{median(each):8.3f} s of CPU for 1,000 URLs, {median(each) - plain:+.3f}   "
            + " ".join(f"{cost:.3f}" for cost in each)
        )


if __name__ == "__main__":
    main()
