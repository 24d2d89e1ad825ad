"""Measure how the cost of a URL changes with the number of URLs and with the number of hosts.

    python tests/bench/growth.py [--urls 10000 100000] [--peers ours raw] [--hosts 1 100 1000]
                                 [--rounds 3]

Needs `pip install -e '.[bench]'` and Linux. First one host with so many URLs, over sockets, 10
workers, no traps, a server that answers at once; then 20,000 URLs of so many hosts, 100 workers,
and no network: a fetch answers at once, each page has twenty links to other hosts, and our crawler
reads it. Figures are microseconds of CPU for a URL without the start-up, medians of new processes
that take turns. A crawl of 1,000,000 URLs, which --urls may name, takes minutes.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from statistics import median
from types import MappingProxyType

from measure import CLIENT, compile_modules, load, measured, pinned, taken_in_turns
from peers import CHECKOUT, PEERS
from steady import answering_slowly

WORKERS = 10
ENDLESS = {"BENCH_TRAPS": "0"}
"""The environment in which our crawler takes more than 100,000 URLs that are so much alike."""

TOTAL, LINKS, AT_ONCE = 20_000, 20, 100
"""The URLs of all hosts, the links of a page, and the workers, where there is no network."""


def of_one_host(peer: str, urls: int) -> float:
    """Return the seconds of CPU that a URL takes, of so many of one host."""
    # Standing marks beyond the end: nothing is watched.
    with answering_slowly(urls, 0, 2 * urls, 2 * urls, "127.0.0.1") as (port, _):
        crawler = replace(PEERS[peer], environment={**PEERS[peer].environment, **ENDLESS})
        run = measured(crawler, [f"http://127.0.0.1:{port}/0"], WORKERS)
    if abs(run.urls - urls) > 1:
        sys.exit(f"{peer} had {run.urls} URLs of {urls}")
    cost = run.per_url_without_start_up
    assert cost is not None, f"{peer} does not say when its crawl begins"
    return cost


def of_many_hosts(hosts: int, environment: Mapping[str, str] = MappingProxyType({})) -> float:
    """Return the seconds of CPU that a URL takes, of so many hosts and without a network."""
    compile_modules()
    said = subprocess.check_output(
        [sys.executable, __file__, "--engine", str(hosts)],
        env={**os.environ, "PYTHONPATH": str(CHECKOUT), **environment},
        preexec_fn=pinned(CLIENT),
    )
    return float(said)


def engine(hosts: int) -> float:
    """Crawl so many hosts in this process; return the seconds of CPU that a URL takes."""
    from engine import HTML, Site

    from trio_crawler.model import Response

    def url(number: int) -> str:
        return f"https://docs-{number % hosts}.example.org/reference/chapter-{number:07}.html"

    def page(number: int) -> bytes:
        below = range(hosts + LINKS * number, hosts + LINKS * (number + 1))
        links = "".join(f'<a href="{url(child % TOTAL)}">{child}</a>' for child in below)
        return f"<!doctype html><title>{number}</title><p>{links}".encode()

    answers = {url(number): Response(200, HTML, page(number)) for number in range(TOTAL)}
    site = Site(f"{hosts} hosts", [url(number) for number in range(hosts)], answers)
    return site.crawl(AT_ONCE)[1] / TOTAL


def show(title: str, runs: Mapping[int, Sequence[float]]) -> None:
    """Print a line for each size, with its change against the least size."""
    print(title)
    least = median(runs[min(runs)])
    for size, each in runs.items():
        costs = " ".join(f"{1e6 * cost:.0f}" for cost in each)
        change = median(each) / least - 1
        print(f"{size:12,}{1e6 * median(each):8.0f} us{change:+8.0%}   {costs}", flush=True)


def main() -> None:
    """Print a table for each peer, and one for the hosts."""
    options = _options()
    print(f"{options.rounds} rounds, {load()}")
    for peer in options.peers:
        once = partial(of_one_host, peer)
        show(f"{peer}, URLs of one host", taken_in_turns(options.rounds, options.urls, once))
    hosts = taken_in_turns(options.rounds, options.hosts, of_many_hosts)
    show(f"ours without a network, {TOTAL:,} URLs, hosts", hosts)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure what the size of a crawl costs.")
    parser.add_argument("--urls", nargs="+", type=int, default=[10_000, 100_000])
    peers = ["ours", "ours-pure", "raw", "fast", "chapter"]
    parser.add_argument("--peers", nargs="+", choices=peers, default=["ours", "raw"])
    parser.add_argument("--hosts", nargs="+", type=int, default=[1, 100, 1000])
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    if min(options.rounds, *options.urls, *options.hosts) < 1 or max(options.hosts) > TOTAL:
        parser.error(f"every number must be 1 or more, and --hosts at most {TOTAL}")
    return options


if __name__ == "__main__":
    if sys.argv[1:2] == ["--engine"]:
        print(engine(int(sys.argv[2])))
    else:
        main()
