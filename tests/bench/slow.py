"""Crawl a server that answers after 200 ms, with 10, 100 and 1,000 workers.

    python tests/bench/slow.py [--peers command ours raw fast] [--workers 10 100 1000] [--rounds 3]
                               [--pages 20000] [--delay 200]

Needs `pip install -e '.[bench]'` and Linux. N workers can have 1000 N / DELAY pages a second and
no more, until the client's core is full; N of them get 120 N pages, at most PAGES or 4 N.
`overall` are the pages a second of the whole process, start-up included. The other figures are
those of the steady part, from the moment when a quarter of the pages were answered to the one when
as many are left as there are workers: `client` and `server` say how much of its core each
had then and `queued` how much of the time others kept the client from it (client and queued at
100 % together: it is limited by CPU alone); `open` are the connections that the server had at
the end of it, `made` those it ever had, `then` those made in between.
"""

from __future__ import annotations

import argparse
from functools import partial

from measure import load, ratio, taken_in_turns
from peers import PEERS, present
from steady import Steady, answering_slowly, raise_descriptors, steady_table, watched

LEAST = 1000


def main() -> None:
    """Measure and print a table for each number of workers."""
    options = _options()
    print(f"Answers after {options.delay} ms, {options.rounds} rounds, {load()}")
    for workers in options.workers:
        once = partial(crawled, workers=workers, most=options.pages, delay=options.delay)
        runs = taken_in_turns(options.rounds, present(options.peers), once)
        print(f"\n{workers} workers: {1000 * workers / options.delay:,.0f} pages/s are possible")
        print(steady_table(runs))
        for peer in runs:
            if "ours" in runs and peer != "ours":
                costs = [[one.cpu for one in runs[name]] for name in ("ours", peer)]
                print(f"CPU per page, ours/{peer}: {ratio(*costs)}")


def crawled(peer: str, *, workers: int, most: int, delay: int) -> Steady:
    """Crawl once; the pages are 120 for each worker, at most `most` or four times the workers."""
    pages = max(LEAST, 4 * workers, min(most, 120 * workers))
    raise_descriptors()
    begin, end = max(pages // 4, 2 * workers), pages - workers
    with answering_slowly(pages, delay, begin, end, "127.0.0.1") as (port, server):
        return watched(PEERS[peer], [f"http://127.0.0.1:{port}/0"], workers, server, pages)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Crawl a server that takes its time.")
    parser.add_argument(
        "--peers", nargs="+", choices=PEERS, default=["command", "ours", "raw", "fast"]
    )
    parser.add_argument("--workers", nargs="+", type=int, default=[10, 100, 1000])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--pages", type=int, default=20_000)
    parser.add_argument("--delay", type=int, default=200, help="milliseconds")
    options = parser.parse_args()
    if min(options.rounds, options.delay, *options.workers) < 1:
        parser.error("--rounds, --delay and --workers must be 1 or more")
    return options


if __name__ == "__main__":
    main()
