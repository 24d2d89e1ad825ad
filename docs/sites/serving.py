"""Serve a site on loopback from threads, and count what it was asked.

Each module beside this one is a site: a function `answer(path)` that returns an `Answer`.
Serve one by hand with `python docs/serve.py NAME`, or run a program against it with
`python docs/run.py NAME PROGRAM`.

Only the standard library, and no event loop: the server belongs to no side of the comparison.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from socket import create_connection
from threading import Condition, Thread
from typing import Any


@dataclass(frozen=True)
class Answer:
    """Say what a server does when it is asked for a path; times are in seconds."""

    body: bytes | str = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    wait: float = 0.01  # before the first byte, as a network would
    drip: float = 0.0  # between two bytes of the body
    hang_up: bool = False  # close the connection without a byte
    promise: int | None = None  # the Content-Length, if it is a lie


Answerer = Callable[[str], Answer]


def page(*links: str, text: str = "") -> Answer:
    """Return a page of HTML that links to these paths."""
    anchors = "".join(f'<a href="{link}">{link}</a>\n' for link in links)
    return Answer(f"<title>{text or 'A page'}</title>\n{anchors}")


NOT_THERE = Answer("<title>Not there</title>", status=404)


class Site:
    """Hold what one site was asked: `hits` counts the requests of each path.

    A connection is `coming` from its start until it has asked, or is closed: a
    reader of the count waits for those first.
    """

    def __init__(self, answer: Answerer) -> None:
        self.answer = answer
        self.hits: Counter[str] = Counter()
        self.times: list[float] = []  # when each request came, by time.monotonic
        self.url = ""
        self._coming: set[object] = set()
        self._changed = Condition()

    def come(self, visitor: object) -> None:
        with self._changed:
            self._coming.add(visitor)

    def hit(self, path: str, visitor: object = None) -> None:
        with self._changed:
            self.hits[path] += 1
            self.times.append(time.monotonic())
            self._coming.discard(visitor)
            self._changed.notify_all()

    def gone(self, visitor: object) -> None:
        with self._changed:
            self._coming.discard(visitor)
            self._changed.notify_all()

    def total(self) -> int:
        """Return the count when all who came before have asked; a second is enough."""
        with self._changed:
            coming = set(self._coming)
            self._changed.wait_for(lambda: not coming & self._coming, timeout=1)
            return self.hits.total()


class Handler(BaseHTTPRequestHandler):
    """Answer GET, one request a connection, as the servers of the chapter's time did."""

    site: Site

    def do_GET(self) -> None:
        if self.path == "/~hits":  # how a program asks the witness, uncounted
            self.site.gone(self.client_address)
            self.reply(Answer(str(self.site.total()), wait=0))
            return
        self.site.hit(self.path, self.client_address)
        answer = self.site.answer(self.path)
        time.sleep(answer.wait)
        if not answer.hang_up:
            self.reply(answer)

    def finish(self) -> None:
        self.site.gone(self.client_address)
        super().finish()

    def reply(self, answer: Answer) -> None:
        body = answer.body.encode() if isinstance(answer.body, str) else answer.body
        self.send_response_only(answer.status)
        headers = {"Content-Type": "text/html; charset=utf-8", **answer.headers}
        length = len(body) if answer.promise is None else answer.promise
        for name, value in {**headers, "Content-Length": str(length)}.items():
            self.send_header(name, value)
        self.end_headers()
        self.send_body(body, answer.drip)

    def send_body(self, body: bytes, drip: float) -> None:
        if not drip:
            self.wfile.write(body)
        for byte in body if drip else b"":
            self.wfile.write(bytes([byte]))
            time.sleep(drip)


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128
    site: Site

    def process_request(self, request: Any, client_address: Any) -> None:
        self.site.come(client_address)
        super().process_request(request, client_address)

    def handle_error(self, request: object, client_address: object) -> None:
        """Stay silent when a client leaves in the middle: many programs here do."""


@contextmanager
def serving(answer: Answerer) -> Iterator[Site]:
    """Serve on a free port of loopback; the site's `url` ends in a slash."""
    site = Site(answer)
    handler = type("Handler", (Handler,), {"site": site})
    with Server(("127.0.0.1", 0), handler) as server:
        server.site = site
        site.url = f"http://127.0.0.1:{server.server_address[1]}/"
        thread = Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield site
        finally:
            # Every visitor before this is counted; without it, that would be chance.
            with create_connection(server.server_address[:2]) as last:
                last.sendall(b"GET /~hits HTTP/1.0\r\n\r\n")
                last.recv(1)
            server.shutdown()
            thread.join()


def named(name: str) -> Answerer:
    """Return the site of this name, a module beside this one."""
    answer: Answerer = import_module(f"sites.{name}").answer
    return answer
