"""What all benchmarks share: servers, processes bound to a core, and what a crawl cost.

With two cores or more the client has the first one and the server the second. `peers.py` says
which crawlers there are.
"""

from __future__ import annotations

import compileall
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import IO, Any, TypeVar

from peers import CHECKOUT, HERE, Peer

_Case = TypeVar("_Case", bound=Hashable)
_Result = TypeVar("_Result")

CLIENT, SERVER = 0, 1
NGINX = """
daemon off;
worker_processes 1;
pid {home}/pid;
error_log {home}/error.log;
events {{ worker_connections 4096; }}
http {{
    include /etc/nginx/mime.types;
    access_log off;
    sendfile on;
    keepalive_requests 1000000;
    client_body_temp_path {home}/body;
    proxy_temp_path {home}/proxy;
    fastcgi_temp_path {home}/fastcgi;
    uwsgi_temp_path {home}/uwsgi;
    scgi_temp_path {home}/scgi;
    server {{ listen {address}; root {root}; index index.html; }}
}}
"""


@dataclass(frozen=True)
class Run:
    """Say what one client took, start-up included: seconds, KiB for `peak`.

    `start_up` is the CPU before the crawl, if the client says so.
    """

    urls: int
    cpu: float
    start_up: float | None
    wall: float
    peak: int
    found: Mapping[str, int] = field(default_factory=dict, repr=False)

    @property
    def per_url(self) -> float:
        """Return the CPU of one URL, start-up included."""
        return self.cpu / self.urls

    @property
    def per_url_without_start_up(self) -> float | None:
        """Return the CPU of one URL from the first request on, if the client says when that is."""
        return None if self.start_up is None else (self.cpu - self.start_up) / self.urls


@dataclass(frozen=True)
class Client:
    """A crawl that runs: its process, its own directory, and when it began."""

    peer: Peer
    process: subprocess.Popen[bytes]
    home: Path
    began: float

    def ended(self, said: bytes, urls: int = 0) -> Run:
        """Wait for its end; `urls` counts for a client that does not count them."""
        # Not `wait`: only wait4 says what the process used.
        _, status, usage = os.wait4(self.process.pid, 0)
        wall = time.perf_counter() - self.began
        self.process.returncode = os.waitstatus_to_exitcode(status)
        if self.process.returncode not in self.peer.statuses:
            sys.exit(f"{self.peer.name} ended with {self.process.returncode}")
        facts = self.peer.said(said, self.home)
        if facts.failed:
            print(f"{self.peer.name}: {facts.failed} attempts got no answer", file=sys.stderr)
        cpu = usage.ru_utime + usage.ru_stime
        # KiB on Linux, bytes on macOS.
        peak = usage.ru_maxrss // (1024 if sys.platform == "darwin" else 1)
        count = urls if facts.urls is None else facts.urls
        return Run(count, cpu, facts.start_up, wall, peak, facts.found)


def measured(peer: Peer, urls: Sequence[str], workers: int, *, listed: bool = False) -> Run:
    """Run one crawl to its end; with `listed` it says what it found, and costs more."""
    with client(peer, urls, workers, listed=listed) as child, output(child.process) as pipe:
        run = child.ended(pipe.read())
    if not run.urls:
        return replace(run, urls=_counted(peer, tuple(urls), workers))
    return run


@cache
def _counted(peer: Peer, urls: tuple[str, ...], workers: int) -> int:
    return measured(peer, urls, workers, listed=True).urls


@contextmanager
def client(
    peer: Peer, urls: Sequence[str], workers: int, *, listed: bool = False
) -> Iterator[Client]:
    """Start one crawl on the core of the clients, in a directory that is gone with the block."""
    compile_modules()
    found = {"BENCH_FOUND": "1"} if listed else {}
    environment = {**usual(), **peer.environment, **found}
    with TemporaryDirectory() as home:
        command = peer.start(urls, workers, Path(home), listed)
        began = time.perf_counter()
        process = subprocess.Popen(
            [str(part) for part in command],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL if listed else None,
            bufsize=0,
            cwd=home,
            env=environment,
            preexec_fn=pinned(CLIENT),
        )
        yield Client(peer, process, Path(home), began)


def usual() -> dict[str, str]:
    """Return the environment of a user who names no certificates: these are read at the start."""
    named = ("SSL_CERT_FILE", "SSL_CERT_DIR")
    own = {name: value for name, value in os.environ.items() if name not in named}
    return {**own, "PYTHONPATH": str(CHECKOUT)}


@cache
def compile_modules() -> None:
    """Compile all modules, so that no run does it, not even where Python may not write them."""
    for place in (HERE, CHECKOUT / "trio_crawler"):
        compileall.compile_dir(place, quiet=2)


def output(process: subprocess.Popen[bytes]) -> IO[bytes]:
    """Return what a process writes."""
    assert process.stdout is not None
    return process.stdout


def port(server: subprocess.Popen[bytes]) -> int:
    """Read the port that a server of ours prints first."""
    return int(output(server).readline())


def taken_in_turns(
    rounds: int, cases: Sequence[_Case], once: Callable[[_Case], _Result]
) -> dict[_Case, list[_Result]]:
    """Measure each case once a round, so that what else the machine does hits them alike."""
    results: dict[_Case, list[_Result]] = {case: [] for case in cases}
    for _ in range(rounds):
        for case in cases:
            results[case].append(once(case))
    return results


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> str:
    """Return the ratio of two medians, with the least and the most of the rounds."""
    each = [one / other for one, other in zip(ours, theirs, strict=True)]
    return f"{median(ours) / median(theirs):.2f} ({min(each):.2f} to {max(each):.2f})"


def load() -> str:
    """Say how busy the machine is with whatever else."""
    return "load average " + " ".join(f"{figure:.2f}" for figure in os.getloadavg())


@contextmanager
def serving(root: Path) -> Iterator[tuple[str, str]]:
    """Serve a directory by nginx if there is one, else by Python; give its name and the URL."""
    if shutil.which("nginx"):
        with _nginx(root) as url:
            yield "nginx", url
        return
    script = HERE.parent / "sites" / "static.py"
    with started(SERVER, sys.executable, script, root, os.devnull) as server:
        yield "Python", f"http://127.0.0.1:{port(server)}/"


@contextmanager
def started(core: int, *command: object, **how: Any) -> Iterator[subprocess.Popen[bytes]]:
    """Run a server on a core, until the end of the block."""
    server = subprocess.Popen(
        [str(part) for part in command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        bufsize=0,
        preexec_fn=pinned(core),
        **how,
    )
    try:
        yield server
    finally:
        server.terminate()
        server.communicate()


@contextmanager
def _nginx(root: Path) -> Iterator[str]:
    with TemporaryDirectory() as home, socket.create_server(("127.0.0.1", 0)) as listener:
        # nginx takes over a listening socket named in NGINX: no other process gets the port.
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        config = Path(home, "nginx.conf")
        config.write_text(NGINX.format(home=home, address=address, root=root))
        number = listener.fileno()
        environment = {**os.environ, "NGINX": f"{number};"}
        command = ["nginx", "-p", home, "-e", f"{home}/error.log", "-c", config]
        how = {"env": environment, "pass_fds": [number], "stderr": subprocess.DEVNULL}
        with started(SERVER, *command, **how):
            yield f"http://{address}/"


def pinned(core: int) -> Callable[[], None] | None:
    """Return what binds a new process to a core, if there are cores to choose from."""
    if not hasattr(os, "sched_setaffinity"):
        return None
    cores = sorted(os.sched_getaffinity(0))
    return (lambda: os.sched_setaffinity(0, {cores[core]})) if len(cores) > 1 else None
