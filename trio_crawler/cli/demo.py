"""The demo: a small site on loopback that hides faults, and a check that must find them all."""

from __future__ import annotations

import json
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO
from urllib.parse import urlsplit

from trio_crawler.cli.exit import FAULT, complain, discard_output
from trio_crawler.cli.files import refusing
from trio_crawler.cli.signals import SIGNALS

SITE = Path(__file__).with_name("demo_site")
PORT = 8000
"""The port of `demo --serve`, unless the command line names another."""

_HTML = "text/html; charset=utf-8"
_MONTH = re.compile(r"/calendar/([1-9]\d{3})-(0[1-9]|1[0-2])\.html")
_NEXT = """\
Next:
  {command} check URL
      checks a site of yours
  {command} -o DIR URL
      crawls it into a directory; after Ctrl-C, the same command goes on where it stopped"""


class _Handler(SimpleHTTPRequestHandler):
    """Answer with the files of the site; some paths have troubles of their own."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def __init__(self, *args: Any) -> None:
        super().__init__(*args, directory=str(SITE))

    def send_head(self) -> BytesIO | BinaryIO | None:
        """Send the head of an answer; return its body, None if it has none."""
        path = urlsplit(self.path).path
        # So that people can watch.
        time.sleep(0.02)
        if (target := _pairs("_redirects").get(path)) is not None:
            return self._send("", HTTPStatus.MOVED_PERMANENTLY, Location=target)
        if month := _MONTH.fullmatch(path):
            return self._send(_month(int(month[1]), int(month[2])))
        match path:
            case "/robots.txt" | "/sitemap.xml":
                here = f"http://{self.headers['Host']}"
                return self._send(_text(path).replace("{here}", here), type=self.guess_type(path))
            case "/tide.html":
                time.sleep(1.2)
            case "/panorama.html":
                self.close_connection = True
                return self._send(_text(path), missing=1000)
        return super().send_head()

    def handle(self) -> None:
        """Answer a client; one that leaves is no event."""
        with suppress(ConnectionError):
            super().handle()

    def list_directory(self, path: object) -> None:
        """Answer a folder without an index.html."""
        self.send_error(HTTPStatus.NOT_FOUND)

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing."""

    def _send(
        self,
        text: str,
        status: HTTPStatus = HTTPStatus.OK,
        *,
        type: str = _HTML,
        missing: int = 0,
        **headers: str,
    ) -> BytesIO:
        body = text.encode()
        self.send_response(status)
        headers |= {"Content-Type": type, "Content-Length": str(len(body) + missing)}
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        return BytesIO(body)


def run(*, serve: bool, port: int | None, check: Callable[[list[str]], int]) -> int:
    """Check the site of the demo, or only serve it until a signal; return the exit status.

    `check` is the command "check", called with its words. Raises click.UsageError if the port is
    taken.
    """
    try:
        with served((PORT if serve else 0) if port is None else port) as url:
            return _serve(url) if serve else _check(url, check)
    except BrokenPipeError:
        raise
    except OSError as error:
        complain(f"cannot write the text: {error.strerror}")
        discard_output()
        return FAULT


def _serve(url: str) -> int:
    SIGNALS.note()
    ended = threading.Event()
    print(f"The site of the demo is at {url} until Ctrl-C", flush=True)
    with SIGNALS.waking(ended.set):
        if not SIGNALS.received:
            ended.wait()
    return 0


def _check(url: str, check: Callable[[list[str]], int]) -> int:
    hidden = set(_pairs("_faults").items())
    print(f"A site at {url} hides {len(hidden)} faults, and has a calendar without an end.")
    print(f"$ {_command()} check {url}\n", flush=True)
    with TemporaryDirectory() as folder:
        found = Path(folder) / "found.json"
        status = check([url, "--json", str(found)])
        if SIGNALS.received or status not in (0, FAULT):
            return status
        findings = json.loads(found.read_bytes())["findings"]
    faults = [each for each in findings if each["verdict"] == "fault"]
    told = {(urlsplit(each["url"]).path, each["code"]) for each in faults}
    if told != hidden:
        for each in sorted(hidden ^ told):
            complain(f"{'not found' if each in hidden else 'not hidden'}: {' '.join(each)}")
        return FAULT
    print(f"\nThat is all: {len(hidden)} faults were hidden, and {len(told)} are found.\n")
    print(_NEXT.format(command=_command()))
    return 0


def _command() -> str:
    """Return the command as it can be typed here."""
    name = sys.argv[0]
    if os.path.basename(name) == "__main__.py":
        name = f"{sys.executable} -m trio_crawler"
    return name.removeprefix(os.getcwd() + os.sep)


@contextmanager
def served(port: int) -> Iterator[str]:
    """Serve the site on loopback in a thread; the value is its URL. Port 0 is any free one."""
    with refusing(f"cannot serve at --port {port}"):
        server = ThreadingHTTPServer(("127.0.0.1", port), _Handler)
    with server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()


def _text(path: str) -> str:
    return (SITE / path.lstrip("/")).read_text("utf-8")


def _pairs(name: str) -> dict[str, str]:
    """Return the lines of a file: a path, and what is there."""
    return dict(line.split() for line in _text(name).splitlines())


def _month(year: int, month: int) -> str:
    """Return a page of the calendar; each leads to the month before and to the one after."""
    first = 12 * year + month - 2
    months = (f"{at // 12:04}-{at % 12 + 1:02}" for at in range(first, first + 3))
    names = dict(zip(("2026-10", "2026-11", "2026-12"), months, strict=True))
    text = _text("calendar/2026-11.html")
    return re.sub(r"2026-1[012]", lambda found: names[found[0]], text)
