"""Fetch a real site in each way there is, and compare what that costs with aiohttp and httpx.

    python tests/bench/network.py [--root DIR] [--ways http tls http2 squid squid-tls squid-http2]
                                  [--peers ours aiohttp httpx] [--at-once 4] [--rounds 3]
                                  [--requests 1000]

Needs `pip install -e '.[bench,http2]'`, trustme, nginx, and squid for the ways through it. Nothing
is parsed: a list of URLs is fetched, so many at once. Every run is a new process, and the peers
take turns. CPU is user and system time from the first request to the last, for 1,000 URLs; the
figures are medians over the rounds. "conns" is the number of connections that the server or the
proxy has logged; "lost" are URLs without an answer in one try. `--requests` is the number of
requests after which nginx ends a connection.
"""

from __future__ import annotations

import argparse
import json
import resource
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import Any
from urllib.parse import quote

DOC = Path("/usr/share/doc/sqlite3")
PEERS = ("ours", "aiohttp", "httpx")
WAYS = ("http", "tls", "http2", "squid", "squid-tls", "squid-http2")
URLS = 1_000
NGINX = """
daemon off; worker_processes 1; pid {home}/nginx.pid; error_log {home}/error.log;
events {{ worker_connections 1024; }}
http {{
  include /etc/nginx/mime.types; log_format one $connection;
  access_log {home}/access.log one;
  client_body_temp_path {home}/a; proxy_temp_path {home}/b; fastcgi_temp_path {home}/c;
  uwsgi_temp_path {home}/d; scgi_temp_path {home}/e; keepalive_requests {requests};
  server {{ listen 127.0.0.1:{http}; root {root}; }}
  server {{ listen 127.0.0.1:{tls} ssl http2; root {root};
    ssl_certificate {home}/server.pem; ssl_certificate_key {home}/server.pem; }}
}}
"""
SQUID = """
http_port 127.0.0.1:{port}
pid_filename {home}/squid.pid
cache_log {home}/cache.log
access_log none
cache deny all
http_access allow all
coredump_dir {home}
shutdown_lifetime 0 seconds
max_filedescriptors 1024
pinger_enable off
"""


def main() -> None:
    """Print a table with a row for each way and peer."""
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(_one(json.loads(sys.argv[2]))))
        return
    options = _options()
    print(f"{'way':13}{'peer':9}{'CPU s/1,000':>12}{'wall s':>8}{'conns':>7}{'lost':>6}   rounds")
    with ExitStack() as stack:
        servers = stack.enter_context(_serving(options.root, options.requests))
        for way in options.ways:
            rows: dict[str, list[dict[str, Any]]] = {}
            for _ in range(options.rounds):
                for peer in options.peers:
                    if (found := servers.fetched(peer, way, options.at_once)) is not None:
                        rows.setdefault(peer, []).append(found)
            for peer, runs in rows.items():
                _show(way, peer, runs)


def _show(way: str, peer: str, runs: list[dict[str, Any]]) -> None:
    cpu = [run["cpu"] for run in runs]
    wall = median(run["wall"] for run in runs)
    connections = median(run["connections"] for run in runs)
    lost = max(run["lost"] for run in runs)
    print(f"{way:13}{peer:9}{median(cpu):12.3f}{wall:8.2f}{connections:7.0f}{lost:6}", end="   ")
    print(" ".join(f"{each:.3f}" for each in cpu), flush=True)


class Servers:
    """A running nginx, and a squid if it is installed."""

    def __init__(self, home: Path, root: Path, ports: dict[str, int]) -> None:
        self.home = home
        self.ports = ports
        files = (path for path in root.rglob("*") if path.is_file())
        self.paths = [quote(f"/{path.relative_to(root)}") for path in sorted(files)]

    def fetched(self, peer: str, way: str, at_once: int) -> dict[str, Any] | None:
        """Fetch every URL by a peer in a new process; None if the peer does not know the way."""
        http2 = way.endswith("http2")
        if peer == "aiohttp" and http2:
            return None
        if "squid" in way and "squid" not in self.ports:
            raise SystemExit("squid is not installed: leave its ways out")
        server = "http" if way in ("http", "squid") else "tls"
        base = f"{'http' if server == 'http' else 'https'}://127.0.0.1:{self.ports[server]}"
        task = {
            "peer": peer,
            "urls": [base + path for path in (self.paths * 2)[:URLS]],
            "at_once": at_once,
            "http2": http2,
            "ca": str(self.home / "ca.pem"),
            "proxy": f"http://127.0.0.1:{self.ports['squid']}" if "squid" in way else None,
        }
        log = self.home / "access.log"
        log.write_text("")
        run = subprocess.run(
            [sys.executable, __file__, "--one", json.dumps(task)],
            capture_output=True,
            text=True,
            check=True,
        )
        result: dict[str, Any] = json.loads(run.stdout)
        result["connections"] = len(set(log.read_text().split()))
        return result


@contextmanager
def _serving(root: Path, requests: int) -> Iterator[Servers]:
    import socket
    from shutil import which

    import trustme

    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        home = Path(name)
        home.chmod(0o777)
        authority = trustme.CA()
        authority.cert_pem.write_to_path(home / "ca.pem")
        certificate = authority.issue_cert("127.0.0.1", "localhost")
        certificate.private_key_and_cert_chain_pem.write_to_path(home / "server.pem")
        ports = {}
        for each in ("http", "tls", "squid"):
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", 0))
                ports[each] = probe.getsockname()[1]
        config = NGINX.format(home=home, root=root, requests=requests, **ports)
        (home / "nginx.conf").write_text(config)
        commands = [["/usr/sbin/nginx", "-c", f"{home}/nginx.conf", "-p", str(home)]]
        if squid := which("squid", path="/usr/sbin:/usr/bin"):
            (home / "squid.conf").write_text(SQUID.format(home=home, port=ports["squid"]))
            commands.append([squid, "-N", "-f", f"{home}/squid.conf"])
        else:
            del ports["squid"]
        for command in commands:
            process = stack.enter_context(subprocess.Popen(command))
            stack.callback(process.terminate)
        for port in ports.values():
            _await(port)
        yield Servers(home, root, ports)


def _await(port: int) -> None:
    import socket

    until = time.monotonic() + 20
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.05)
        else:
            return


def _one(task: dict[str, Any]) -> dict[str, Any]:
    """Fetch the URLs of a task, in this process."""
    import trio

    runs: dict[str, Callable[[dict[str, Any]], Any]] = {
        "ours": lambda task: trio.run(_ours, task),
        "httpx": lambda task: trio.run(_httpx, task),
        "aiohttp": _aiohttp,
    }
    result: dict[str, Any] = runs[task["peer"]](task)
    return result


class Clock:
    """CPU and wall time from a moment on."""

    def __init__(self) -> None:
        self._wall, self._cpu = time.perf_counter(), self._used()

    def result(self, lost: int, count: int) -> dict[str, Any]:
        """Return the figures of this moment."""
        cpu = (self._used() - self._cpu) * 1000 / count
        return {"cpu": cpu, "wall": time.perf_counter() - self._wall, "lost": lost}

    @staticmethod
    def _used() -> float:
        usage = resource.getrusage(resource.RUSAGE_SELF)
        return usage.ru_utime + usage.ru_stime


async def _on_trio(task: dict[str, Any], fetch: Callable[[str], Awaitable[bool]]) -> Any:
    import trio

    left, lost = iter(task["urls"]), 0

    async def work() -> None:
        nonlocal lost
        for url in left:
            lost += not await fetch(url)

    clock = Clock()
    async with trio.open_nursery() as nursery:
        for _ in range(task["at_once"]):
            nursery.start_soon(work)
    return clock.result(lost, len(task["urls"]))


async def _ours(task: dict[str, Any]) -> Any:
    from trio_crawler import HttpFetch
    from trio_crawler.model import Job, Response

    options = {"http2": task["http2"], "proxy": task["proxy"]}
    private = ["127.0.0.1"]
    async with HttpFetch(cacert=task["ca"], allow_private=private, **options) as fetch:

        async def one(url: str) -> bool:
            return isinstance(await fetch(Job(url)), Response)

        return await _on_trio(task, one)


async def _httpx(task: dict[str, Any]) -> Any:
    import httpx

    tls = ssl.create_default_context(cafile=task["ca"])
    options = {"http2": task["http2"], "proxy": task["proxy"], "trust_env": False}
    async with httpx.AsyncClient(verify=tls, timeout=30, **options) as client:

        async def one(url: str) -> bool:
            try:
                await client.get(url)
            except httpx.TransportError:
                return False
            return True

        return await _on_trio(task, one)


def _aiohttp(task: dict[str, Any]) -> Any:
    import asyncio

    import aiohttp

    async def run() -> Any:
        left, lost = iter(task["urls"]), 0
        tls = ssl.create_default_context(cafile=task["ca"])
        connector = aiohttp.TCPConnector(ssl=tls)

        async def work() -> None:
            nonlocal lost
            for url in left:
                try:
                    async with client.get(url, proxy=task["proxy"]) as response:
                        await response.read()
                except aiohttp.ClientError:
                    lost += 1

        async with aiohttp.ClientSession(connector=connector) as client:
            clock = Clock()
            await asyncio.gather(*(work() for _ in range(task["at_once"])))
            return clock.result(lost, len(task["urls"]))

    return asyncio.run(run())


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Compare what each way of fetching costs.")
    parser.add_argument("--root", type=Path, default=DOC, help="a directory of files to serve")
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=WAYS)
    parser.add_argument("--peers", nargs="+", choices=PEERS, default=PEERS)
    parser.add_argument("--at-once", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--requests", type=int, default=1000)
    options = parser.parse_args()
    options.root = options.root.resolve()
    if not options.root.is_dir():
        parser.error(f"{options.root} is not a directory: name one with --root")
    return options


if __name__ == "__main__":
    main()
