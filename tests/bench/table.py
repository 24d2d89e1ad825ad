"""Measure the figures of the page on cost, and record them in `recorded.json`.

    python tests/bench/table.py [--rows linux10 linux100 slow100 ...] [--rounds N] [--list]
    python -m pytest tests/docs/test_guide.py --update -k cost

Needs what `site.py` and `slow.py` need, and a quiet machine; `--list` says how long each row
takes. Rows that are not measured stay as they were recorded. Before each row `raw` crawls
linux-doc-6.1 with 10 workers, since absolute figures are scaled by its cost there. `--rounds` sets
the rounds of every row. The second command makes the page from the record.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from statistics import median

import growth
import kept
import slow
import start
from figures import ANCHOR, HOSTS, SITES, SIZES, SLOW
from measure import Run, measured, serving, taken_in_turns
from peers import CHECKOUT, PEERS, PURE, accelerated, present
from roots import ROOTS

RECORD = Path(__file__).with_name("recorded.json")
OURS = ("command", "command-pure", "ours", "ours-pure")
BESIDE = ("raw", "go", "fast", "chapter")
DEAR = ("httpx", "wget", "scrapy")
"""Crawlers that are measured in one round only."""

LIBRARIES = ("trio", "httptools", "selectolax", "aiohttp", "scrapy")

Figures = dict[str, dict[str, list[float]]]
"""For each case what was measured, a value for each round."""


@dataclass(frozen=True)
class Row:
    """One row of the record: how it is measured, in how many rounds and roughly seconds."""

    measure: Callable[[int], Figures]
    rounds: int
    seconds: int
    asked: bool = True
    """Whether it is measured if no rows are named."""


def crawls(name: str, peers: Sequence[str], rounds: int, once: Sequence[str] = ()) -> Figures:
    """Crawl a site by each peer, some of them only once."""
    root, workers = SITES[name]
    with serving(ROOTS[root]) as (_, url):

        def crawled(peer: str) -> Run:
            return measured(PEERS[peer], [url], workers)

        runs = taken_in_turns(rounds, present(peers), crawled)
        runs |= taken_in_turns(1, present(once), crawled)
    return {
        peer: {
            "cpu": [1000 * run.per_url for run in each],
            "rate": [run.urls / run.wall for run in each],
            "urls": [run.urls for run in each],
        }
        for peer, each in runs.items()
    }


def slowly(workers: int, rounds: int) -> Figures:
    """Crawl the server that answers after 200 ms."""
    once = partial(slow.crawled, workers=workers, most=20_000, delay=200)
    runs = taken_in_turns(rounds, ("command", "command-pure", "raw"), once)
    return {
        peer: {
            "cpu": [1000 * one.cpu for one in each],
            "rate": [one.run.urls / one.run.wall for one in each],
        }
        for peer, each in runs.items()
    }


def keeping(environment: Mapping[str, str], suffix: str, rounds: int) -> Figures:
    """Crawl with each thing that can be kept."""
    with serving(ROOTS["linux-doc-6.1"]) as (_, url):
        urls = kept.admitted(url, 10)

        def taken(case: str) -> float:
            return kept.taken(case, environment, url=url, urls=urls, workers=10)

        runs = taken_in_turns(rounds, ("plain", "jsonl", "directory", "warc", "gz", "all"), taken)
    return {f"{case}{suffix}": {"cpu": each} for case, each in runs.items()}


def starting(rounds: int) -> Figures:
    """Start and ask for one page, or for help; seconds of CPU, not for 1,000 of anything."""
    runs = taken_in_turns(rounds, [*start.ASKING, *start.ENDING], start.once)
    return {case: {"cpu": each} for case, each in runs.items()}


def sizes(name: str, peers: Sequence[str], rounds: int) -> Figures:
    """Crawl one host with few and with many URLs."""
    cases = [(size, peer) for size in SIZES[name] for peer in peers]
    runs = taken_in_turns(rounds, cases, lambda case: 1000 * growth.of_one_host(case[1], case[0]))
    return {f"{size} {peer}": {"cpu": each} for (size, peer), each in runs.items()}


def hosts(rounds: int) -> Figures:
    """Crawl many hosts without a network."""
    environments = {"ours": {}, "ours-pure": PURE}
    cases = [(count, peer) for count in HOSTS for peer in environments]
    runs = taken_in_turns(
        rounds, cases, lambda case: 1000 * growth.of_many_hosts(case[0], environments[case[1]])
    )
    return {f"{count} {peer}": {"cpu": each} for (count, peer), each in runs.items()}


SITE_PEERS = ("command", "command-pure", *BESIDE)
ROWS: Mapping[str, Row] = {
    "linux10": Row(lambda n: crawls("linux10", (*OURS, *BESIDE), n, DEAR), 3, 120),
    "linux100": Row(lambda n: crawls("linux100", (*OURS, *BESIDE), n), 3, 80),
    **{
        name: Row(partial(crawls, name, SITE_PEERS), 3, seconds)
        for name, seconds in {"postgresql": 25, "apache": 50, "python": 40}.items()
    },
    **{name: Row(partial(crawls, name, SITE_PEERS), 3, 90, False) for name in ("jdk", "rust")},
    **{f"slow{n}": Row(partial(slowly, n), 1, {100: 80, 1000: 35}.get(n, 60)) for n in SLOW},
    "kept": Row(partial(keeping, {}, ""), 3, 110),
    "kept-pure": Row(partial(keeping, PURE, "-pure"), 3, 130, False),
    "start": Row(starting, 9, 25),
    "urls": Row(partial(sizes, "urls", ("ours", "ours-pure", "raw")), 1, 60),
    "million": Row(partial(sizes, "million", ("ours", "raw")), 1, 600, False),
    "hosts": Row(hosts, 3, 60),
}


def main() -> None:
    """Measure the rows and write each to the record as soon as it is there."""
    options = _options()
    if options.list:
        for name, row in ROWS.items():
            asked = "" if row.asked else ", only if it is named"
            print(f"{name:12}{row.rounds} rounds, some {row.seconds} s{asked}")
        return
    for name in options.rows:
        if name in SITES and not ROOTS[SITES[name][0]].is_dir():
            print(f"{name} is left out: {SITES[name][0]} is not installed")
            continue
        began = time.perf_counter()
        rounds = options.rounds or ROWS[name].rounds
        how = circumstances(rounds)
        measured_now = ROWS[name].measure(rounds)
        if name == "linux10":
            # Raw took its turn with the others: no figure is nearer to theirs.
            how["raw"] = median(measured_now["raw"]["cpu"])
        record = json.loads(RECORD.read_text()) if RECORD.exists() else {}
        record[name] = {**how, "figures": measured_now}
        ordered = {each: record[each] for each in ROWS if each in record}
        RECORD.write_text(json.dumps(ordered, indent=1, sort_keys=False) + "\n")
        took = time.perf_counter() - began
        print(f"{name:12}{rounds} rounds, {took:.0f} s, raw {how['raw']:.3f}", flush=True)


def circumstances(rounds: int) -> dict[str, object]:
    """Return when, where and on what a row is measured, and what raw takes then."""
    load = os.getloadavg()[0]
    return {
        "date": time.strftime("%Y-%m-%d"),
        "rounds": rounds,
        "load": load,
        "raw": floor(rounds),
        "scanner": accelerated(),
        "commit": commit(),
        "on": ", ".join(
            [
                f"Python {platform.python_version()}",
                *(f"{name} {version(name)}" for name in LIBRARIES if find_spec(name)),
                "nginx" if shutil.which("nginx") else "a server in Python",
                f"{platform.system()} on {platform.machine()}",
                f"{os.cpu_count()} cores",
            ]
        ),
    }


def commit() -> str:
    """Return the commit that is measured, with a plus if files differ from it."""
    command = ["git", "describe", "--always", "--dirty=+", "--exclude=*"]
    said = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=False)
    return said.stdout.strip()


def floor(rounds: int) -> float:
    """Return the CPU seconds that raw takes for 1,000 URLs where the figures are anchored."""
    root = ROOTS["linux-doc-6.1"]
    if not root.is_dir():
        print(f"Nothing is scaled: {root} is not there")
        return ANCHOR
    with serving(root) as (_, url):
        runs = [measured(PEERS["raw"], [url], 10) for _ in range(min(rounds, 3))]
    return 1000 * median(run.per_url for run in runs)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure and record the figures on cost.")
    asked = [name for name, row in ROWS.items() if row.asked]
    parser.add_argument("--rows", nargs="+", choices=ROWS, default=asked)
    parser.add_argument("--rounds", type=int, default=0, help="of every row")
    parser.add_argument("--list", action="store_true", help="list the rows and stop")
    return parser.parse_args()


if __name__ == "__main__":
    main()
