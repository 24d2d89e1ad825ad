"""The other hosts that a site links to, for link checkers that must not reach the internet.

`inside` runs the program again in a network and a file system of its own, as a user who is root
there. `answering` has a server there that answers for every host in the files of a site, by http
and https. It invents the answers by a checksum of the URL, so that all who ask hear the same:

- one URL in 16 is 404, one leads to one that is, one is moved for good, one is 403;
- one in 16 refuses HEAD with 405, and one says 404 to HEAD, but both have a page for GET;
- the others are pages, which have seven of the eight places that links to them name.
"""

from __future__ import annotations

import os
import re
import ssl
import subprocess
import sys
import threading
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from html import escape, unescape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import unquote
from zlib import crc32

import trustme

ADDRESS = "127.{}.{}.2"
"""Each host has an address of its own: those with one address share its delay."""
READ = frozenset({".html", ".css", ".svg", ".js"})
_MARK = "BENCH_INSIDE"
_LABEL = r"[a-z\d](?:[a-z\d-]{0,61}[a-z\d])?"
_URL = re.compile(
    rf"(?:https?:)?//((?:{_LABEL}\.)+{_LABEL})(?::\d+)?(/[^\s\"'<>)]*)?", re.IGNORECASE | re.ASCII
)
_TABLE: Mapping[int, tuple[int, int]] = {
    0: (404, 404),
    1: (302, 302),
    2: (301, 301),
    3: (403, 403),
    4: (405, 200),
    5: (404, 200),
}
Places = dict[str, set[str]]


def inside() -> None:
    """Return in namespaces of this program's own; begin it again if it is not in them."""
    if _MARK in os.environ:
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        return
    command = ["unshare", "--net", "--mount", sys.executable, *sys.argv]
    os.execvpe("unshare", command, {**os.environ, _MARK: "1"})


def links_out(root: Path) -> Places:
    """Return what the files below a folder link to elsewhere: host and path, and the fragments."""
    found: Places = defaultdict(set)
    for path in root.rglob("*"):
        if path.suffix in READ and path.is_file():
            text = unescape(path.read_text("utf-8", "replace"))
            for host, rest in _URL.findall(text):
                url, _, fragment = rest.partition("#")
                found[host.lower() + (url or "/")].add(unquote(fragment))
    return found


def statuses(url: str) -> tuple[int, int]:
    """Return the statuses of HEAD and GET for a host and path."""
    if url.endswith(("/robots.txt", "/nothing-here")):
        return 404, 404
    return _TABLE.get(crc32(url.encode()) % 16, (200, 200))


def body(places: Places, url: str) -> bytes:
    """Return the page of a host and path."""
    names = sorted(places.get(url, set()) - {""})
    kept = (name for name in names if crc32(name.encode()) % 8)
    marks = "".join(f'<p id="{escape(name)}">' for name in kept)
    return f"<!doctype html><title>elsewhere</title><p>{marks}".encode()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = 1 << 16
    timeout = 600

    def __init__(self, places: Places, *about: object) -> None:
        self.places = places
        super().__init__(*about)  # type: ignore[arg-type]

    def _answer(self, number: int) -> None:
        host = self.headers.get("Host", "").partition(":")[0].lower()
        status = statuses(host + self.path)[number]
        content = body(self.places, host + self.path) if status == 200 else b""
        self.send_response(status)
        if status in (301, 302):
            end = "moved" if status == 301 else "nothing-here"
            self.send_header("Location", f"//{host}/{end}")
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if number:
            self.wfile.write(content)

    def do_HEAD(self) -> None:
        self._answer(0)

    def do_GET(self) -> None:
        self._answer(1)

    def log_message(self, format: str, *args: object) -> None:
        pass


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 1024

    def handle_error(self, request: object, client_address: object) -> None:
        """Leave out what a client did that hung up."""


@contextmanager
def answering(places: Places) -> Iterator[Path]:
    """Answer for these URLs' hosts until the block ends; yield the file of the authority."""
    hosts = sorted({url.partition("/")[0] for url in places})
    authority = trustme.CA()
    certificate = authority.issue_cert("elsewhere.test", *hosts)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate.configure_cert(context)
    with TemporaryDirectory() as home, ExitStack() as stack:
        table = Path(home, "hosts")
        table.write_text(
            "127.0.0.1 localhost\n"
            + "".join(
                f"{ADDRESS.format(1 + n // 256, n % 256)} {host}\n" for n, host in enumerate(hosts)
            )
        )
        subprocess.run(["mount", "--bind", table, "/etc/hosts"], check=True)
        stack.callback(subprocess.run, ["umount", "/etc/hosts"], check=True)
        for port in (80, 443):
            server = stack.enter_context(_Server(("", port), partial(_Handler, places)))
            if port == 443:
                server.socket = context.wrap_socket(
                    server.socket, server_side=True, do_handshake_on_connect=False
                )
            threading.Thread(target=server.serve_forever, daemon=True).start()
            stack.callback(server.shutdown)
        Path(home).chmod(0o755)
        known = Path(home, "authority.pem")
        authority.cert_pem.write_to_path(known)
        yield known
