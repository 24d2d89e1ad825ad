"""What all benchmarks share: servers, processes bound to a core, and what a crawl cost.

With two cores or more the client has the first one and the server the second. A client is a
script `PEER_crawler.py URL... N` that says at its end what `tell` prints; nothing else in it is
there for our sake.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import IO, Any, TypeVar

HERE = Path(__file__).resolve().parent
CHECKOUT = HERE.parent.parent
_Case = TypeVar("_Case", bound=Hashable)
_Result = TypeVar("_Result")

PEERS = ("ours", "raw", "aiohttp", "httpx", "lasting")
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
    """Say what one client took: seconds, KiB for `peak`; `start_up` is CPU before the crawl."""

    urls: int
    cpu: float
    start_up: float
    wall: float
    peak: int
    found: Mapping[str, int] = field(default_factory=dict, repr=False)

    @property
    def per_url(self) -> float:
        """Return the CPU of one URL, start-up included."""
        return self.cpu / self.urls

    @property
    def per_url_without_start_up(self) -> float:
        """Return the CPU of one URL from the first request on."""
        return (self.cpu - self.start_up) / self.urls


def measured(peer: str, urls: Sequence[str], workers: int, *, listed: bool = False) -> Run:
    """Run one crawl to its end; with `listed` it says what it found, and costs more."""
    child = client(peer, urls, workers, listed=listed)
    with output(child) as pipe:
        said = pipe.read()
    return ended(peer, child, said)


def client(
    peer: str, urls: Sequence[str], workers: int, *, listed: bool = False
) -> subprocess.Popen[bytes]:
    """Start one crawl on the core of the clients."""
    found = {"BENCH_FOUND": "1"} if listed else {}
    return subprocess.Popen(
        [sys.executable, str(HERE / f"{peer}_crawler.py"), *urls, str(workers)],
        stdout=subprocess.PIPE,
        bufsize=0,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT), **found},
        preexec_fn=pinned(CLIENT),
    )


def ended(peer: str, child: subprocess.Popen[bytes], said: bytes) -> Run:
    """Wait for a client that said what it had to say."""
    # Not `child.wait`: only wait4 says what the process used.
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        sys.exit(f"{peer} ended with {child.returncode}")
    facts = json.loads(said)
    if facts["failed"]:
        print(f"{peer}: {facts['failed']} attempts got no answer", file=sys.stderr)
    cpu = usage.ru_utime + usage.ru_stime
    # KiB on Linux, bytes on macOS.
    peak = usage.ru_maxrss // (1024 if sys.platform == "darwin" else 1)
    return Run(facts["urls"], cpu, facts["start_up"], facts["wall"], peak, facts["found"])


def output(process: subprocess.Popen[bytes]) -> IO[bytes]:
    """Give what a process writes."""
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
    """Give the ratio of two medians, and between what the rounds had it."""
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
        # nginx takes over a listening socket named in NGINX, so nobody can steal the port.
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
