"""Measure the crawl of a folder beside the crawl of the same files by nginx on this machine.

    python tests/bench/folder.py /usr/share/doc/python3-doc/html

Each line is the median of five processes of their own: the pages, the CPU milliseconds of a page
and the seconds of the crawl, and the seconds of the whole process with its imports.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

ROUNDS = 5
SERVER = "server { listen 127.0.0.1:@PORT@; root @ROOT@; }"


def crawl(way: str, place: str) -> None:
    """Crawl a folder, or what is below a URL; print the pages and the seconds, CPU and wall."""
    import trio

    from trio_crawler import Crawler, HttpFetch, Politeness
    from trio_crawler.net import FolderFetch

    async def main() -> int:
        seed = FolderFetch(place).base_url if way == "folder" else place
        made = FolderFetch if way == "folder" else HttpFetch
        given = {"folder": place} if way == "folder" else {"seeds": [seed]}
        async with made(**given, bodies=False) as fetch:
            politeness = Politeness(per_host=10, robots=False)
            totals = await Crawler([seed], fetch=fetch, politeness=politeness).crawl()
        return totals.pages

    cpu, wall = time.process_time(), time.perf_counter()
    pages = trio.run(main)
    print(json.dumps([pages, time.process_time() - cpu, time.perf_counter() - wall]))


def measured(way: str, place: str) -> str:
    """Crawl in several processes; return a line of the medians."""
    found = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        command = [sys.executable, __file__, way, place]
        run = subprocess.run(command, capture_output=True, text=True, check=True)
        found.append((*json.loads(run.stdout), time.perf_counter() - began))
    pages, cpu, wall, whole = map(median, zip(*found, strict=True))
    return f"{way:8}{pages:8.0f}{cpu / pages * 1000:10.2f}{wall:8.2f}{whole:8.2f}"


def main(folder: str) -> None:
    """Measure both ways."""
    from sites.servers import nginx

    print("            pages    ms CPU       s   whole")
    print(measured("folder", folder))
    with nginx(SERVER.replace("@ROOT@", folder)) as server:
        print(measured("nginx", server.url()))


if __name__ == "__main__":
    crawl(*sys.argv[1:]) if len(sys.argv) == 3 else main(sys.argv[1])
