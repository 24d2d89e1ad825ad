"""What a URL that waits takes, in memory and in time: all in memory, and as keys and on disk.

Each row is a process of its own. "resident" is what the process has grown by for each URL, with
the set of seen URLs, the hosts, and what is held of their jobs; "peak" is the whole process.
"admit" and "take" are microseconds of CPU for a URL: to decide that it is new and let it wait, and
to have it out again when its host may be asked; to make the URL and its job is not counted.
"held" is the longest time for which 100 admissions in a row held the event loop. 10,000,000 URLs
are too many to have all in memory: they run with `--urls 10000000`, on disk only, and take
some minutes and 2.5 GB in `--directory`.
"""

from __future__ import annotations

import argparse
import gc
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from itertools import islice
from pathlib import Path

from trio_crawler.frontier.lasting import StoredJob
from trio_crawler.frontier.memory import Seen
from trio_crawler.model import Job
from trio_crawler.policy.plan import Plan
from trio_crawler.policy.settings import Politeness
from trio_crawler.schedule.host_scheduler import HostScheduler
from trio_crawler.store.compact import DiskQueue, DiskQueueFile, UrlSet

LINKS = 50
TAKEN = 300_000
ALL_IN_MEMORY = 2_000_000
HEAD = (
    f"{'URLs':>11}{'hosts':>9}  {'how':9}{'resident':>9}{'peak MiB':>9}{'on disk':>9}"
    f"{'admit us':>9}{'take us':>9}{'held ms':>9}"
)
EAGER = Plan([], politeness=Politeness(delay=0.0, per_host=10**9, adaptive=False, robots=False))


def url_of(number: int, hosts: int) -> str:
    """Make a URL of a usual length."""
    site, page = number % hosts, number // hosts
    return f"https://www.site{site}.example/documentation/reference/page-{page:08}.html"


def jobs(count: int, hosts: int) -> Iterator[StoredJob]:
    """Make jobs as they are found, 50 on a page of their own host, or of others."""
    for number in range(count):
        if number % LINKS == 0:
            referrer = url_of(number // LINKS, hosts)
        yield StoredJob(url_of(number, hosts), 1, 10, referrer, number=number)


def admitted(
    waiting: Iterator[StoredJob], seen: Seen, scheduler: HostScheduler, disk: bool
) -> tuple[float, float]:
    """Let jobs wait; return the seconds of CPU in all, and of the slowest hundred."""
    spent = slowest = 0.0
    while some := list(islice(waiting, 100)):
        # A frontier in memory has jobs without a number.
        each = some if disk else [Job(one.url, 1, 10, one.referrer) for one in some]
        begun = time.process_time()
        for job in each:
            fresh = seen.admit(job)
            if fresh is not None:
                scheduler.put(fresh, 0.0)
        took = time.process_time() - begun
        spent, slowest = spent + took, max(slowest, took)
    return spent, slowest


def taken(scheduler: HostScheduler, count: int) -> float:
    """Take so many jobs; return the seconds of CPU."""
    begun = time.process_time()
    for _ in range(count):
        if scheduler.next(0.0) is None:
            sys.exit("a job is missing")
    return time.process_time() - begun


def resident() -> int:
    """Return the bytes that the process has in memory."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def measure(count: int, hosts: int, how: str, directory: str) -> None:
    """Print one row."""
    disk = how == "on disk"
    before = resident()
    file = DiskQueueFile(directory, kind=StoredJob)
    seen = Seen(10, UrlSet() if disk else None)
    scheduler = HostScheduler(EAGER, partial(DiskQueue, file) if disk else None)
    admit, slowest = admitted(jobs(count, hosts), seen, scheduler, disk)
    grown, written = resident() - before, len(file)
    take = taken(scheduler, some := min(count, TAKEN))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    file.close()
    print(
        f"{count:11,}{hosts:9,}  {how:9}{grown / count:9.0f}{peak:9,}{written / count:9.0f}"
        f"{admit / count * 1e6:9.2f}{take / some * 1e6:9.2f}{slowest * 1e3:9.1f}",
        flush=True,
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Measure what URLs that wait take.")
    parser.add_argument("--urls", type=int, default=1_000_000)
    parser.add_argument("--hosts", type=int, nargs="*", default=[1, 100, 100_000])
    parser.add_argument("--directory", default=tempfile.gettempdir())
    options = parser.parse_args()
    print(HEAD)
    for hosts in options.hosts:
        for how in ("in memory", "on disk"):
            if how == "on disk" or options.urls <= ALL_IN_MEMORY:
                row = ["--row", str(options.urls), str(hosts), how, options.directory]
                subprocess.run([sys.executable, __file__, *row], check=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--row"]:
        measure(int(sys.argv[2]), int(sys.argv[3]), sys.argv[4], sys.argv[5])
    else:
        main()
