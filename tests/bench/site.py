"""Crawl real documentation with our crawler and with others, and compare what it costs.

    python tests/bench/site.py [--root linux-doc-6.1 postgresql-doc-15] [--workers 10 100]
                               [--peers ours raw aiohttp httpx] [--rounds 3]

Needs `pip install -e '.[bench]'`; nginx serves if it is installed, else Python does. A root is a
Debian package of documentation or a directory of HTML. Every crawl is a new process, the peers
take turns, and the figures are medians over the rounds. CPU is user and system time of the whole
process; "crawl" leaves out what passed before the first request: the interpreter and the imports.
A ratio is that of the medians, with the least and the most that one round gave.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from statistics import median

from measure import PEERS, Run, load, measured, ratio, serving, taken_in_turns

DOC = Path("/usr/share/doc")
ROOTS = {
    "linux-doc-6.1": DOC / "linux-doc-6.1/html",
    "postgresql-doc-15": DOC / "postgresql-doc-15/html",
    "python3-doc": DOC / "python3/html",
    "sqlite3-doc": DOC / "sqlite3",
}
EXAMPLES = 5
HEAD = (
    f"{'':9}{'URLs':>7}{'CPU s/1,000':>13}{'crawl':>8}{'start-up s':>12}{'pages/s':>9}"
    f"{'peak MiB':>10}   CPU s/1,000, each round"
)


def main() -> None:
    """Measure and print a table for each root and number of workers."""
    options = _options()
    for root in options.root:
        with serving(root) as (server, url):
            for workers in options.workers:
                print(f"{root} by {server}, {workers} workers, {options.rounds} rounds, {load()}")
                once = partial(_once, url=url, workers=workers)
                runs = taken_in_turns(options.rounds, options.peers, once)
                show(runs)
                if len({run.urls for rows in runs.values() for run in rows}) > 1:
                    explain(options.peers, url, workers)
                print()


def show(runs: dict[str, list[Run]]) -> None:
    """Print the medians, and the ratios of our cost to that of the others."""
    print(HEAD)
    for peer, rows in runs.items():
        each = [1000 * run.per_url for run in rows]
        crawl = median(1000 * run.per_url_without_start_up for run in rows)
        print(f"{peer:9}{median(run.urls for run in rows):7.0f}{median(each):13.3f}", end="")
        print(f"{crawl:8.3f}{median(run.start_up for run in rows):12.2f}", end="")
        print(f"{median(run.urls / run.wall for run in rows):9.0f}", end="")
        print(f"{median(run.peak for run in rows) / 1024:10.1f}", end="   ")
        print(" ".join(f"{cost:.3f}" for cost in each))
    for peer in runs:
        if "ours" in runs and peer != "ours":
            compare(peer, runs["ours"], runs[peer])


def compare(peer: str, ours: Sequence[Run], theirs: Sequence[Run]) -> None:
    """Print how our cost stands to that of a peer."""
    whole = ratio([run.per_url for run in ours], [run.per_url for run in theirs])
    crawl = ratio(
        [run.per_url_without_start_up for run in ours],
        [run.per_url_without_start_up for run in theirs],
    )
    print(f"CPU per URL, ours/{peer}: {whole}; crawl: {crawl}")


def explain(peers: Sequence[str], url: str, workers: int) -> None:
    """Crawl once more without measuring, and print what some found and others did not."""
    print("Not all found the same URLs:")
    found = {peer: measured(peer, [url], workers, listed=True).found for peer in peers}
    everywhere = set.intersection(*map(set, found.values()))
    for peer, statuses in found.items():
        beyond = sorted(set(statuses) - everywhere)
        print(f"  {peer}: {len(statuses)}, {len(beyond)} of which not all others have")
        for name in beyond[:EXAMPLES]:
            print(f"    {statuses[name]} {name}")


def _once(peer: str, *, url: str, workers: int) -> Run:
    return measured(peer, [url], workers)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Compare our crawler with others.")
    names = ", ".join(ROOTS)
    parser.add_argument("--root", nargs="+", help=f"directories to serve, or: {names}")
    parser.add_argument("--peers", nargs="+", choices=PEERS, default=PEERS)
    parser.add_argument("--workers", nargs="+", type=int, default=[10, 100])
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    wanted = options.root or [name for name in list(ROOTS)[:2] if ROOTS[name].is_dir()]
    options.root = [ROOTS.get(name, Path(name)).resolve() for name in wanted]
    missing = [root for root in options.root if not root.is_dir()]
    if missing or not options.root:
        parser.error(f"no documentation in {missing[0] if missing else DOC}: name it with --root")
    if min(options.rounds, *options.workers) < 1:
        parser.error("--rounds and --workers must be 1 or more")
    return options


if __name__ == "__main__":
    main()
