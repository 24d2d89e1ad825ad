"""Crawl real documentation with our crawler and with others, and compare what it costs.

    python tests/bench/site.py [--root linux-doc-6.1 postgresql-doc-15] [--workers 10 100]
                               [--peers command ours raw go | all] [--rounds 3]

Needs `pip install -e '.[bench]'`; nginx serves if it is installed, else Python does. A root is a
Debian package of documentation or a directory of HTML. Every crawl is a new process, the peers
take turns, and the figures are medians over the rounds. CPU is user and system time of the whole
process; "crawl" leaves out what passed before the first request, the interpreter and the imports,
where a peer says what that was. A ratio is that of the medians, with the least and the most that
one round gave. `README.md` says what each peer is; one that is not installed is left out.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from statistics import median

from measure import Run, load, measured, ratio, serving, taken_in_turns
from peers import PEERS, accelerated, present
from roots import DOC, ROOTS

QUICK = ("command", "ours", "raw", "go", "fast", "chapter")
EXAMPLES = 5
HEAD = (
    f"{'':13}{'URLs':>7}{'CPU s/1,000':>13}{'crawl':>8}{'start-up s':>12}{'pages/s':>9}"
    f"{'peak MiB':>10}   CPU s/1,000, each round"
)


def main() -> None:
    """Measure and print a table for each root and number of workers."""
    options = _options()
    peers = present(list(PEERS) if "all" in options.peers else options.peers)
    print(f"The compiled scanner of links is {'' if accelerated() else 'not '}here.")
    for root in options.root:
        with serving(root) as (server, url):
            for workers in options.workers:
                print(f"{root} by {server}, {workers} workers, {options.rounds} rounds, {load()}")
                once = partial(_once, url=url, workers=workers)
                runs = taken_in_turns(options.rounds, peers, once)
                show(runs)
                if len({run.urls for rows in runs.values() for run in rows}) > 1:
                    explain(peers, url, workers)
                print()


def show(runs: dict[str, list[Run]]) -> None:
    """Print the medians, and the ratios of our cost to that of the others."""
    print(HEAD)
    for peer, rows in runs.items():
        each = [1000 * run.per_url for run in rows]
        crawls = [1000 * cost for run in rows if (cost := run.per_url_without_start_up)]
        start_ups = [run.start_up for run in rows if run.start_up is not None]
        print(f"{peer:13}{median(run.urls for run in rows):7.0f}{median(each):13.3f}", end="")
        print(f"{median(crawls):8.3f}" if crawls else f"{'-':>8}", end="")
        print(f"{median(start_ups):12.2f}" if start_ups else f"{'-':>12}", end="")
        print(f"{median(run.urls / run.wall for run in rows):9.0f}", end="")
        print(f"{median(run.peak for run in rows) / 1024:10.1f}", end="   ")
        print(" ".join(f"{cost:.3f}" for cost in each))
    ours = next((peer for peer in runs if peer in ("command", "ours")), "")
    for peer in runs:
        if ours and peer != ours:
            each = [[run.per_url for run in runs[name]] for name in (ours, peer)]
            print(f"CPU per URL, {ours}/{peer}: {ratio(*each)}")


def explain(peers: Sequence[str], url: str, workers: int) -> None:
    """Crawl once more without measuring, and print what some found and others did not."""
    print("Not all found the same URLs:")
    every = {peer: measured(PEERS[peer], [url], workers, listed=True).found for peer in peers}
    # `lasting` keeps its URLs in a directory and lists none.
    found = {peer: statuses for peer, statuses in every.items() if statuses}
    everywhere = set.intersection(*map(set, found.values()))
    for peer, statuses in found.items():
        beyond = sorted(set(statuses) - everywhere)
        print(f"  {peer}: {len(statuses)}, {len(beyond)} of which not all others have")
        for name in beyond[:EXAMPLES]:
            print(f"    {statuses[name]} {name}")


def _once(peer: str, *, url: str, workers: int) -> Run:
    return measured(PEERS[peer], [url], workers)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Compare our crawler with others.")
    names = ", ".join(ROOTS)
    parser.add_argument("--root", nargs="+", help=f"directories to serve, or: {names}")
    parser.add_argument("--peers", nargs="+", choices=[*PEERS, "all"], default=QUICK)
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
