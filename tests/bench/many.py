"""Crawl 100 hosts over 10,000 connections, and compare with 100 workers on the same site.

    python tests/bench/many.py [--workers 100 10000] [--hosts 100] [--pages 600] [--rounds 3]
                               [--rate 1000]

Needs `pip install -e .` and Linux. One server answers for 127.0.1.1 and the addresses that follow,
each a host with PAGES pages; the seeds are all of them. It answers so late that RATE pages a
second are possible whatever the number of workers: N of them wait N / RATE seconds for an answer
and are, as long as the client's core is not full, all but a few connected. (With answers after
200 ms the core would be full long before: the workers would wait for it, and not at a socket.)

The figures are those of the steady part, from the moment when twice as many pages were answered as
there are workers, at least a quarter, to the one when as many are left; `slow.py` says what the
columns are. The last line says how much more a page costs with the most workers than with the
fewest.
"""

from __future__ import annotations

import argparse
from functools import partial

from measure import load, ratio, taken_in_turns
from peers import PEERS
from steady import Steady, answering_slowly, raise_descriptors, steady_table, watched

LATEST = 25
"""Seconds after which an answer might be too late for the crawler's time-out of 30."""

SPARE = 200
"""File descriptors for what is no connection of a worker."""


def main() -> None:
    """Measure and print one table."""
    options = _options()
    print(f"{options.hosts} hosts, {options.rate} pages/s are possible, {options.rounds} rounds")
    print(f"{raise_descriptors():,} file descriptors for each process, {load()}")
    once = partial(_once, hosts=options.hosts, pages=options.pages, rate=options.rate)
    runs = taken_in_turns(options.rounds, options.workers, once)
    print(steady_table({f"{workers} workers": runs[workers] for workers in runs}))
    fewest, most = min(runs), max(runs)
    costs = [[one.cpu for one in runs[workers]] for workers in (most, fewest)]
    print(f"CPU per page, {most} workers/{fewest} workers: {ratio(*costs)}")


def _once(workers: int, *, hosts: int, pages: int, rate: int) -> Steady:
    delay = round(1000 * workers / rate)
    total = hosts * pages
    begin, end = max(total // 4, 2 * workers), total - workers
    addresses = [f"127.0.1.{number}" for number in range(1, hosts + 1)]
    with answering_slowly(pages, delay, begin, end, *addresses) as (port, server):
        urls = [f"http://{address}:{port}/0" for address in addresses]
        return watched(PEERS["ours"], urls, workers, server, total)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Crawl over very many connections.")
    parser.add_argument("--workers", nargs="+", type=int, default=[100, 10_000])
    parser.add_argument("--hosts", type=int, default=100, help="at most 254")
    parser.add_argument("--pages", type=int, default=600, help="of each host")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rate", type=int, default=1000, help="pages a second")
    options = parser.parse_args()
    if min(options.rounds, options.rate, *options.workers) < 1 or not 0 < options.hosts < 255:
        parser.error("--rounds, --rate and --workers must be 1 or more, --hosts 1 to 254")
    if max(options.workers) / options.rate > LATEST:
        parser.error(f"answers would come after more than {LATEST} seconds: a higher --rate")
    if options.hosts * options.pages < 4 * max(options.workers):
        parser.error("all pages must be four times the workers or more, or nothing is ever steady")
    if raise_descriptors() < max(options.workers) + SPARE:
        parser.error(f"only {raise_descriptors()} file descriptors are allowed: fewer --workers")
    return options


if __name__ == "__main__":
    main()
