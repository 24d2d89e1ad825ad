"""What a crawl of the slow server costs while every worker has work."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from select import select
from statistics import median

from measure import SERVER, Run, client, output, port, started
from peers import HERE, Peer

HEAD = (
    f"{'':20}{'URLs':>7}{'overall':>9}{'pages/s':>9}{'CPU us/page':>13}{'client':>8}{'queued':>8}"
    f"{'server':>8}{'open':>7}{'made':>8}{'then':>7}{'peak MiB':>10}   CPU us/page, each round"
)


@dataclass(frozen=True)
class Mark:
    """Say where the slow server and its client were at one moment; the times are seconds.

    `client_queued` is how long the client had to wait for its core while others had it.
    """

    answers: int
    seconds: float
    server_cpu: float
    client_cpu: float
    client_queued: float
    open: int
    made: int


@dataclass(frozen=True)
class Steady:
    """Say what went on between two marks, while every worker had work."""

    run: Run
    begin: Mark
    end: Mark

    @property
    def rate(self) -> float:
        """Return the pages per second."""
        return (self.end.answers - self.begin.answers) / self._seconds

    @property
    def cpu(self) -> float:
        """Return the seconds of the client's CPU for one page."""
        cpu = self.end.client_cpu - self.begin.client_cpu
        return cpu / (self.end.answers - self.begin.answers)

    @property
    def client_busy(self) -> float:
        """Return how much of its core the client had, from 0 to 1."""
        return (self.end.client_cpu - self.begin.client_cpu) / self._seconds

    @property
    def client_queued(self) -> float:
        """Return how much of the time the client waited for its core, from 0 to 1."""
        return (self.end.client_queued - self.begin.client_queued) / self._seconds

    @property
    def server_busy(self) -> float:
        """Return how much of its core the server had, from 0 to 1."""
        return (self.end.server_cpu - self.begin.server_cpu) / self._seconds

    @property
    def _seconds(self) -> float:
        return self.end.seconds - self.begin.seconds


def watched(
    peer: Peer, urls: Sequence[str], workers: int, server: subprocess.Popen[bytes], pages: int
) -> Steady:
    """Run one crawl of a `slow_server.py`, which says when the steady part begins and ends."""
    marks = []
    news = output(server)
    with client(peer, urls, workers) as child, output(child.process) as pipe:
        while pipe not in select([pipe, news], [], [])[0]:
            cpu, queued = cpu_of(child.process.pid), _queued(child.process)
            news_of_server = json.loads(news.readline())
            marks.append(Mark(**news_of_server, client_cpu=cpu, client_queued=queued))
        run = child.ended(pipe.read(), pages)
    if len(marks) != 2:
        sys.exit(f"{peer.name} fetched {run.urls} URLs and never came to a steady state")
    return Steady(run, *marks)


@contextmanager
def answering_slowly(*arguments: object) -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
    """Run `slow_server.py`; give its port and the process."""
    with started(SERVER, sys.executable, HERE / "slow_server.py", *arguments) as server:
        yield port(server), server


def raise_descriptors() -> int:
    """Allow this process and its children all that the hard limit does; return how many."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


def steady_table(rows: Mapping[str, Sequence[Steady]]) -> str:
    """Lay out the medians of what was watched, a row for each name."""
    lines = [HEAD]
    for name, each in rows.items():
        costs = [1e6 * one.cpu for one in each]
        lines.append(
            f"{name:20}{_median(each, lambda one: one.run.urls):7.0f}"
            f"{_median(each, lambda one: one.run.urls / one.run.wall):9.0f}"
            f"{_median(each, lambda one: one.rate):9.0f}{median(costs):13.0f}"
            f"{_median(each, lambda one: one.client_busy):8.0%}"
            f"{_median(each, lambda one: one.client_queued):8.0%}"
            f"{_median(each, lambda one: one.server_busy):8.0%}"
            f"{_median(each, lambda one: one.end.open):7.0f}"
            f"{_median(each, lambda one: one.end.made):8.0f}"
            f"{_median(each, lambda one: one.end.made - one.begin.made):7.0f}"
            f"{_median(each, lambda one: one.run.peak / 1024):10.1f}   "
            + " ".join(f"{cost:.0f}" for cost in costs)
        )
    return "\n".join(lines)


def _median(each: Sequence[Steady], figure: Callable[[Steady], float]) -> float:
    return median(figure(one) for one in each)


def cpu_of(process: int) -> float:
    """Return the CPU seconds that a process had until now; Linux only."""
    # The number that clock_getcpuclockid(3) gives for a process; Python lacks the call.
    return time.clock_gettime(~process << 3 | 2)


def _queued(process: subprocess.Popen[bytes]) -> float:
    # Linux's sched-stats: nanoseconds on a core, nanoseconds in the queue, turns.
    return int(Path(f"/proc/{process.pid}/schedstat").read_text().split()[1]) / 1e9
