"""Crawl a web of very many hosts over sockets, a part of them ill: speed, politeness and cost.

    python tests/bench/broad.py [--hosts 600] [--workers 200] [--dead 3] [--hanging 2] [--scale 1]
                                [--seconds 120] [--timeout 30] [--patience 360] [--seed 1]
                                [--files 1024] [--traps] [--scrapy]

Needs `pip install -e .`, trustme and Linux; `--scrapy` needs Scrapy. One process serves the web
that `tests/sites/broad.py` describes; the names are looked up in the client, where silent ones
block a thread for ten seconds. `--dead` and `--hanging` are percents of the hosts. `--scale` is a
factor of all latencies and crawl-delays. After `--seconds` a crawl is left. A client may open
`--files` descriptors; it is free to raise that. With `--traps` ours has its default traps, else
none. Scrapy is told to obey robots.txt, and to have four requests in flight at a host.

The bound is the least time of a crawl that obeys: the longer of what the slowest host takes, and
of all latencies shared among the workers. "violations" are requests that the server saw although
they were more than four at once to a host, disallowed, or more than 0.2 s too early for a
crawl-delay or a Retry-After. "again" are pages that were answered well more than once.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from measure import SERVER, load, output, started
from peers import CHECKOUT, HERE

sys.path.insert(0, str(HERE.parent))

from sites.broad import BroadWeb

SAMPLES = 0.5
"""Seconds between two looks at the open files of a client."""
EACH = 3
"""Seconds for each line of the pages per second; the server counts them."""
WIDE = 50
NEVER = 10**7


def main() -> None:
    """Crawl by each peer and print what was seen."""
    options = _options()
    _raise_descriptors()
    made = {
        "seed": options.seed,
        "hosts": options.hosts,
        "dead": options.dead / 100,
        "hanging": options.hanging / 100,
        "scale": options.scale,
    }
    web = BroadWeb(**made)
    bound = web.bound()
    pages = sum(host.pages for host in web.hosts if host.is_served)
    print(f"{options.hosts} hosts, {pages:,} pages that can be had, {len(web.seeds)} seeds")
    print(
        f"bound {bound.seconds(options.workers):.1f} s: slowest host {bound.slowest:.1f} s, "
        f"{bound.work:,.0f} worker-seconds, {options.workers} workers; {load()}"
    )
    with tempfile.TemporaryDirectory() as home:
        certificate, authority = _certificates(Path(home))
        for peer in ("ours", "scrapy") if options.scrapy else ("ours",):
            with _serving(made, certificate) as server:
                task = {
                    "peer": peer,
                    "web": {**made, "ports": server.ports},
                    "workers": options.workers,
                    "seconds": options.seconds or NEVER,
                    "timeout": options.timeout,
                    "patience": options.patience,
                    "traps": options.traps,
                    "files": options.files,
                    "authority": str(authority),
                }
                found, files = _crawled(task)
                _show(peer, pages, found, files, server.report())
    print(load())


class Server:
    """A running server of a web, and its ports."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self.ports: dict[str, int] = json.loads(output(process).readline())

    def report(self) -> dict[str, Any]:
        """Return what the server has seen."""
        assert self._process.stdin is not None
        self._process.stdin.write(b"report\n")
        found: dict[str, Any] = json.loads(output(self._process).readline())
        return found


@contextmanager
def _serving(made: Mapping[str, object], certificate: Path) -> Iterator[Server]:
    script = HERE / "broad_server.py"
    with started(SERVER, sys.executable, script, json.dumps(made), certificate) as process:
        yield Server(process)


def _crawled(task: Mapping[str, object]) -> tuple[dict[str, Any], int]:
    """Crawl in a new process; return what it said, and the most files that it had open."""
    child = subprocess.Popen(
        [sys.executable, str(HERE / "broad_client.py"), json.dumps(task)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
    )
    most = 0
    while child.poll() is None:
        time.sleep(SAMPLES)
        most = max(most, _open_files(child.pid))
    said = output(child).read()
    if child.returncode:
        sys.exit(f"{task['peer']} ended with {child.returncode}")
    found: dict[str, Any] = json.loads(said)
    return found, most


def _open_files(pid: int) -> int:
    try:
        return len(os.listdir(f"/proc/{pid}/fd"))
    except OSError:
        # It has just ended.
        return 0


def _show(
    peer: str, wanted: int, found: Mapping[str, Any], files: int, seen: Mapping[str, Any]
) -> None:
    marks, first = seen["marks"], seen["first"]
    requests = max(1, seen["requests"])
    ended = "ended by itself" if found["ended"] else "left"
    print(f"\n{peer}: {ended} after {found['wall']:.1f} s, {seen['pages']:,} of {wanted:,} pages")
    rows = {
        "50/90/99/100 % of its pages at": " / ".join(f"{at:.1f} s" for at in marks.values()),
        "first request to hosts, 50/99/100 %": " / ".join(f"{at:.1f} s" for at in first.values()),
        "requests": f"{requests:,}, {seen['robots']:,} of them for robots.txt",
        "pages lost, again": f"{found['lost']:,}, {seen['again']:,}",
        "CPU": f"{found['cpu']:.1f} s, {1e6 * found['cpu'] / requests:.0f} us a request",
        "connections made": f"{seen['made']:,}",
        "requests a connection": f"{requests / max(1, seen['made']):.1f}",
        "open at most": f"{seen['most_open']:,} connections, {files:,} files of the client",
        "in flight at most": f"{seen['peak']:,}",
        "peak memory": f"{found['peak_kib'] / 1024:.0f} MiB",
        "violations": json.dumps(seen["violations"]),
    }
    if "account" in found:
        rows["account"] = "adds up" if found["account"] else "DOES NOT ADD UP"
    for name, value in rows.items():
        print(f"  {name:36} {value}")
    for what, url, moment, amount in seen["examples"]:
        print(f"    {what} at {moment:.1f} s by {amount:.2f}: {url}")
    highest = max(seen["rates"], default=0) or 1
    for number, rate in enumerate(seen["rates"]):
        print(f"  {EACH * number:4} s {rate:6.0f} pages/s {'#' * round(WIDE * rate / highest)}")


def _certificates(home: Path) -> tuple[Path, Path]:
    """Write a certificate with its key, and its authority; return their files."""
    import trustme

    authority = trustme.CA()
    certificate = authority.issue_cert("*.broad.test")
    certificate.private_key_and_cert_chain_pem.write_to_path(home / "server.pem")
    authority.cert_pem.write_to_path(home / "authority.pem")
    return home / "server.pem", home / "authority.pem"


def _raise_descriptors() -> int:
    """Allow the server a file descriptor for each connection; return how many there may be."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Crawl very many hosts over sockets.")
    parser.add_argument("--hosts", type=int, default=600)
    parser.add_argument("--workers", type=int, default=200)
    parser.add_argument("--dead", type=float, default=3, metavar="PERCENT")
    parser.add_argument("--hanging", type=float, default=2, metavar="PERCENT")
    parser.add_argument("--scale", type=float, default=1, help="a factor of the latencies")
    parser.add_argument("--seconds", type=float, default=0, help="leave a crawl after so many")
    parser.add_argument("--timeout", type=float, default=30, help="of one request, in seconds")
    parser.add_argument("--patience", type=float, default=360, help="with a host, in seconds")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--files", type=int, default=0, help="descriptors of a client")
    parser.add_argument("--traps", action="store_true", help="with the default traps of ours")
    parser.add_argument("--scrapy", action="store_true", help="crawl by Scrapy, too")
    options = parser.parse_args()
    if options.hosts < 20 or options.workers < 1:
        parser.error("--hosts must be 20 or more, --workers 1 or more")
    if options.dead < 0 or options.hanging < 0 or options.dead + options.hanging > 60:
        parser.error("--dead and --hanging must be 0 or more, 60 percent together at most")
    if options.scale <= 0 or options.seconds < 0 or options.timeout <= 0 or options.patience < 0:
        parser.error("--scale and --timeout must be above 0, --seconds and --patience 0 or more")
    if options.files and not options.workers < options.files <= _raise_descriptors():
        parser.error(f"--files must be more than --workers, and at most {_raise_descriptors():,}")
    if options.scrapy and find_spec("scrapy") is None:
        parser.error("Scrapy is not installed: pip install scrapy")
    return options


if __name__ == "__main__":
    main()
