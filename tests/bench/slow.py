"""Crawl a server that answers after 200 ms, with 10, 100 and 1,000 workers.

    python tests/bench/slow.py [--peers ours aiohttp] [--workers 10 100 1000] [--rounds 3]
                               [--pages 20000] [--delay 200]

Needs `pip install -e '.[bench]'` and Linux. N workers can have 1000 N / DELAY pages a second and
no more, until the client's core is full; N of them get 100 N pages, at most PAGES. The figures
are those of the steady part, from the moment when a quarter of the pages were answered to the one
when as many are left as there are workers: `client` and `server` say how much of its core each
had then and `queued` how much of the time others kept the client from it (client and queued at
100 % together: it is limited by CPU alone); `open` are the connections that the server had at
the end of it, `made` those it ever had, `then` those made in between.
"""

from __future__ import annotations

import argparse
from functools import partial

from measure import PEERS, load, ratio, taken_in_turns
from steady import Steady, answering_slowly, steady_table, watched

LEAST = 1000


def main() -> None:
    """Measure and print a table for each number of workers."""
    options = _options()
    print(f"Answers after {options.delay} ms, {options.rounds} rounds, {load()}")
    for workers in options.workers:
        pages = max(LEAST, min(options.pages, 100 * workers))
        once = partial(_once, workers=workers, pages=pages, delay=options.delay)
        runs = taken_in_turns(options.rounds, options.peers, once)
        print(f"\n{workers} workers: {1000 * workers / options.delay:,.0f} pages/s are possible")
        print(steady_table(runs))
        for peer in runs:
            if "ours" in runs and peer != "ours":
                costs = [[one.cpu for one in runs[name]] for name in ("ours", peer)]
                print(f"CPU per page, ours/{peer}: {ratio(*costs)}")


def _once(peer: str, *, workers: int, pages: int, delay: int) -> Steady:
    begin, end = max(pages // 4, 2 * workers), pages - workers
    with answering_slowly(pages, delay, begin, end, "127.0.0.1") as (port, server):
        return watched(peer, [f"http://127.0.0.1:{port}/0"], workers, server)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Crawl a server that takes its time.")
    parser.add_argument("--peers", nargs="+", choices=PEERS, default=["ours", "aiohttp"])
    parser.add_argument("--workers", nargs="+", type=int, default=[10, 100, 1000])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--pages", type=int, default=20_000)
    parser.add_argument("--delay", type=int, default=200, help="milliseconds")
    options = parser.parse_args()
    if min(options.rounds, options.delay, *options.workers) < 1:
        parser.error("--rounds, --delay and --workers must be 1 or more")
    if options.pages < 4 * max(options.workers):
        parser.error("--pages must be four times the workers or more, or nothing is ever steady")
    return options


if __name__ == "__main__":
    main()
