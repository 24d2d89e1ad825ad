"""Crawl a real documentation site with our crawler and with plain aiohttp, and compare.

    python tests/bench/site.py [--root DIR] [--rounds 3] [--workers 10]

Needs `pip install -e '.[bench]'`; nginx serves if it is installed, else Python does. Every crawl
is a new process, the two crawlers take turns, and the figures are medians over the rounds. CPU
is user and system time of the whole process, start-up included. With two cores the server has
one of them and the crawler the other.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

HERE = Path(__file__).resolve().parent
CHECKOUT = HERE.parent.parent
ROOTS = (
    Path("/usr/share/doc/python3/html"),
    Path("/usr/share/doc/sqlite3"),
    Path("/usr/share/doc/postgresql-doc-15/html"),
)
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
    """Measure one process: seconds, KiB for `peak`; `start_up` is CPU before the crawl."""

    urls: int
    cpu: float
    start_up: float
    wall: float
    peak: int


def main() -> None:
    """Measure and print a table."""
    options = _options()
    clients = {
        "trio_crawler": [str(HERE / "site.py"), "--client"],
        "aiohttp": [str(HERE / "aiohttp_crawler.py")],
    }
    runs: dict[str, list[Run]] = {name: [] for name in clients}
    server = served_by_nginx if shutil.which("nginx") else served_by_python
    with server(options.root) as url:
        print(f"{options.root} by {server.__name__.rpartition('_')[2]}, ", end="")
        print(f"{options.workers} workers, {options.rounds} rounds")
        for _ in range(options.rounds):
            for name, command in clients.items():
                runs[name].append(measured([*command, url, str(options.workers)]))
    show(runs)


def show(runs: dict[str, list[Run]]) -> None:
    """Print the medians and the ratio of CPU between the first and the last."""
    print(f"{'':14}{'URLs':>7}{'CPU s/1,000':>13}{'start-up s':>12}", end="")
    print(f"{'pages/s':>9}{'peak MiB':>10}   CPU s/1,000, each round")
    costs = {}
    for name, rows in runs.items():
        each = [1000 * run.cpu / run.urls for run in rows]
        costs[name] = median(each)
        print(f"{name:14}{median(run.urls for run in rows):7.0f}{costs[name]:13.3f}", end="")
        print(f"{median(run.start_up for run in rows):12.2f}", end="")
        print(f"{median(run.urls / run.wall for run in rows):9.0f}", end="")
        print(f"{median(run.peak for run in rows) / 1024:10.1f}", end="   ")
        print(" ".join(f"{cost:.3f}" for cost in each))
    ours, theirs = costs.values()
    print(f"CPU per URL, trio_crawler / aiohttp: {ours / theirs:.2f}")


def measured(command: Sequence[str]) -> Run:
    """Run one crawler to its end on the first core."""
    child = subprocess.Popen(
        [sys.executable, *command],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
        preexec_fn=_pin(0),
    )
    assert child.stdout is not None
    with child.stdout as output:
        said = output.read()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        sys.exit(f"{' '.join(command)} ended with {child.returncode}")
    facts = json.loads(said)
    cpu = usage.ru_utime + usage.ru_stime
    # KiB on Linux, bytes on macOS.
    peak = usage.ru_maxrss // (1024 if sys.platform == "darwin" else 1)
    return Run(facts["urls"], cpu, facts["start_up"], facts["wall"], peak)


def client(url: str, workers: int) -> None:
    """Crawl with our crawler, all else as it comes, and print what `measured` reads."""
    import trio

    from trio_crawler import Crawler

    crawler = Crawler([url], workers=workers)
    cpu, wall = time.process_time(), time.perf_counter()
    totals = trio.run(crawler.crawl)
    seconds = time.perf_counter() - wall
    print(json.dumps({"urls": totals.admitted, "wall": seconds, "start_up": cpu}))


@contextmanager
def served_by_nginx(root: Path) -> Iterator[str]:
    """Serve `root` by one nginx worker on a port that the kernel chose."""
    with TemporaryDirectory() as home, socket.create_server(("127.0.0.1", 0)) as listener:
        # nginx takes over a listening socket named in NGINX, so nobody can steal the port.
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        config = Path(home, "nginx.conf")
        config.write_text(NGINX.format(home=home, address=address, root=root))
        server = subprocess.Popen(
            ["nginx", "-p", home, "-e", f"{home}/error.log", "-c", str(config)],
            env={**os.environ, "NGINX": f"{listener.fileno()};"},
            pass_fds=[listener.fileno()],
            stderr=subprocess.DEVNULL,
            preexec_fn=_pin(1),
        )
        with _ending(server):
            yield f"http://{address}/"


@contextmanager
def served_by_python(root: Path) -> Iterator[str]:
    """Serve `root` by the test suite's own static server."""
    server = subprocess.Popen(
        [sys.executable, str(HERE.parent / "sites" / "static.py"), str(root), os.devnull],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        preexec_fn=_pin(1),
    )
    assert server.stdout is not None
    with _ending(server):
        yield f"http://127.0.0.1:{int(server.stdout.readline())}/"


@contextmanager
def _ending(process: subprocess.Popen[bytes]) -> Iterator[None]:
    try:
        yield
    finally:
        process.terminate()
        process.wait()


def _pin(place: int) -> Callable[[], None] | None:
    """Return what binds a new process to one core, if there are cores to choose from."""
    if not hasattr(os, "sched_setaffinity"):
        return None
    cores = sorted(os.sched_getaffinity(0))
    return (lambda: os.sched_setaffinity(0, {cores[place]})) if len(cores) > 1 else None


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Compare our crawler with plain aiohttp.")
    parser.add_argument("--root", type=Path, help="the directory to serve")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=10)
    options = parser.parse_args()
    options.root = options.root or next((root for root in ROOTS if root.is_dir()), None)
    if options.root is None or not options.root.is_dir():
        parser.error("no documentation found: name a directory of HTML with --root")
    if options.rounds < 1 or options.workers < 1:
        parser.error("--rounds and --workers must be 1 or more")
    options.root = options.root.resolve()
    return options


if __name__ == "__main__":
    if sys.argv[1:2] == ["--client"]:
        client(sys.argv[2], int(sys.argv[3]))
    else:
        main()
