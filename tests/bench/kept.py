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
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from statistics import median
from types import MappingProxyType

from measure import client, load, measured, output, serving, taken_in_turns
from peers import BROKEN_TOO, PEERS, Peer, command, said_by_command
from roots import ROOTS

CASES = {
    "plain": "",
    "jsonl": "--jsonl {0}/lines",
    "directory": "-o {0}/crawl",
    "links": "-o {0}/crawl --links {0}/links",
    "warc": "--warc {0}/archive.warc",
    "gz": "--warc {0}/archive.warc.gz",
    "all": "-o {0}/crawl --jsonl {0}/lines --warc {0}/archive.warc.gz",
}
NOTHING: Mapping[str, str] = MappingProxyType({})


def keeping(case: str, environment: Mapping[str, str]) -> Peer:
    """Return the command with the options of a case, its files in the directory of the run."""
    return Peer(
        case,
        lambda urls, workers, home, _: command(urls, workers, *CASES[case].format(home).split()),
        said_by_command,
        environment,
        BROKEN_TOO,
    )


def taken(
    case: str, environment: Mapping[str, str] = NOTHING, *, url: str, urls: int, workers: int
) -> float:
    """Return the seconds of CPU that 1,000 URLs take."""
    with (
        client(keeping(case, environment), [url], workers) as child,
        output(child.process) as pipe,
    ):
        return 1_000 * child.ended(pipe.read(), urls).per_url


def admitted(url: str, workers: int) -> int:
    """Return how many URLs the crawl has."""
    return measured(PEERS["command"], [url], workers, listed=True).urls


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=Path, default=ROOTS["linux-doc-6.1"])
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
