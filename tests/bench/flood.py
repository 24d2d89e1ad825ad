"""Measure a crawl of pages with thousands of long links, which are small on the wire.

    python tests/bench/flood.py [KIND ...] [--pages 40] [-o]

Needs `pip install -e .` (or PYTHONPATH=.). Each page has 4,500 links of 1.9 KB, which take 43 KB
with gzip. The command crawls them until so many pages were answered, then gets SIGTERM. Shown are
the peak of its resident memory, its CPU seconds for a page, and with `-o` the bytes on disk for a
URL that was admitted. The kinds of links: `relative`, `absolute`, `ports` (spread over 200 ports
of the host), `blocked` (the same, but not opened), `newports` (60,000 that do not answer), `same`
(all pages have the same links), `query` (in a parameter).
"""

from __future__ import annotations

import argparse
import gzip
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

LINKS, LENGTH, PORTS = 4_500, 1_900, 200
KINDS = ("relative", "absolute", "ports", "blocked", "newports", "same", "query")
MIB = 2**20
FILL = "q" * (LENGTH - 60)


def word(number: int) -> str:
    """Return a word without digits, so that no two links have one pattern."""
    letters = ""
    for _ in range(7):
        number, letter = divmod(number, 26)
        letters = chr(97 + letter) + letters
    return letters


class Flood:
    """A server of such pages, in threads; after `pages` of them it sets `done`."""

    def __init__(self, kind: str, pages: int) -> None:
        self.done = threading.Event()
        self._kind, self._pages, self._answered = kind, pages, 0
        self._lock = threading.Lock()
        self._sockets = []
        for _ in range(PORTS if kind in ("ports", "blocked") else 1):
            listener = socket.create_server(("127.0.0.1", 0), backlog=100)
            self._sockets.append(listener)
            threading.Thread(target=self._accept, args=(listener,), daemon=True).start()
        self._ports = [listener.getsockname()[1] for listener in self._sockets]
        self.url = f"http://127.0.0.1:{self._ports[0]}/"

    def close(self) -> None:
        """Accept no more connections."""
        for listener in self._sockets:
            listener.close()

    def _accept(self, listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with suppress(OSError), connection, connection.makefile("rb") as lines:
            while request := lines.readline():
                while lines.readline().strip():
                    pass
                connection.sendall(self._answer(request.split(b" ")[1]))

    def _answer(self, path: bytes) -> bytes:
        if path == b"/robots.txt":
            return b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
        with self._lock:
            number, self._answered = self._answered, self._answered + 1
        body = gzip.compress(self._page(number).encode(), 6)
        if number >= self._pages:
            self.done.set()
        head = f"Content-Type: text/html\r\nContent-Encoding: gzip\r\nContent-Length: {len(body)}"
        return f"HTTP/1.1 200 OK\r\n{head}\r\n\r\n".encode() + body

    def _page(self, number: int) -> str:
        if number >= self._pages:
            return f"<p>the end {number}"
        links = (self._link(number, number * LINKS + each) for each in range(LINKS))
        return f"<title>{number}</title>" + "\n".join(f'<a href="{url}">l</a>' for url in links)

    def _link(self, page: int, number: int) -> str:
        name = word(number)
        match self._kind:
            case "absolute":
                return f"{self.url}{name}/{FILL}"
            case "ports" | "blocked":
                return f"http://127.0.0.1:{self._ports[number % PORTS]}/{name}/{FILL}"
            case "newports":
                return f"http://127.0.0.1:{2_000 + number % 60_000}/{name}/{FILL}"
            case "same":
                return f"/{word(number - page * LINKS)}/{FILL}"
            case "query":
                return f"/{name}?{name}=1&amp;b={FILL}"
            case _:
                return f"/{name}/{FILL}"


class Cost(NamedTuple):
    """The cost of one crawl: peak and disk in bytes, and CPU seconds until the signal."""

    pages: int
    admitted: int
    peak: int
    cpu: float
    disk: int
    report: str


def measured(kind: str, pages: int, *options: str, lasting: bool = False) -> Cost:
    """Crawl a flood in a process of its own."""
    flood = Flood(kind, pages)
    with TemporaryDirectory() as home:
        kept = Path(home, "crawl")
        command = [sys.executable, "-m", "trio_crawler", flood.url, *options]
        command += ["-o", str(kept)] if lasting else []
        # The URL that it starts at opens its own port alone.
        command += ["--allow-private", "127.0.0.1"] if kind != "blocked" else []
        with Path(home, "report").open("w+") as report:
            crawl = subprocess.Popen(command, stdout=report, stderr=subprocess.DEVNULL)
            peak = disk = 0
            cpu, told = 0.0, False
            while crawl.poll() is None:
                peak = max(peak, _peak(crawl.pid))
                disk = max(disk, _size(kept))
                if flood.done.is_set() and not told:
                    told, cpu = True, _cpu(crawl.pid)
                    crawl.send_signal(signal.SIGTERM)
                time.sleep(0.05)
            report.seek(0)
            text = report.read()
    flood.close()
    found = re.search(r"admitted ([\d,]+) =", text)
    admitted = int(found[1].replace(",", "")) if found else 0
    return Cost(pages, admitted, peak, cpu, disk, text)


def _peak(process: int) -> int:
    with suppress(OSError, IndexError):
        status = Path(f"/proc/{process}/status").read_text()
        return int(status.split("VmHWM:")[1].split()[0]) * 1024
    return 0


def _cpu(process: int) -> float:
    with suppress(OSError):
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return 0.0


def _size(directory: Path) -> int:
    size = 0
    for file in directory.glob("*"):
        with suppress(OSError):
            size += file.stat().st_size
    return size


def main() -> None:
    """Print a row for each kind of flood."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kinds", nargs="*", default=KINDS[:3])
    parser.add_argument("--pages", type=int, default=40)
    parser.add_argument("-o", action="store_true", dest="lasting")
    given = parser.parse_args()
    print(f"{'':10}{'peak MiB':>10}{'CPU s/page':>12}{'admitted':>10}{'bytes/URL on disk':>19}")
    for kind in given.kinds:
        cost = measured(kind, given.pages, lasting=given.lasting)
        each = cost.disk / max(cost.admitted, 1)
        row = f"{cost.peak / MIB:>10.0f}{cost.cpu / cost.pages:>12.2f}{cost.admitted:>10,}"
        print(f"{kind:10}{row}{each:>19,.0f}", flush=True)


if __name__ == "__main__":
    main()
