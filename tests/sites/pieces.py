"""Pieces: an answer that comes over no socket, cut where a test wants it cut.

    heard = hear([b"HTTP/1.1 200 OK\\r\\nContent-Le", b"ngth: 4\\r\\n\\r\\npage"])
    assert heard.told == (200, [(b"Content-Length", b"4")], b"page")

Nothing here waits, so no event loop is needed, and a hundred thousand answers take seconds.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Coroutine, Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from trio_crawler.model import Fault
from trio_crawler.net.decode import Body
from trio_crawler.net.errors import FetchError
from trio_crawler.net.http1.connection import Connection
from trio_crawler.net.http1.message import Fields, content_codings
from trio_crawler.net.http1.wire import FRAMING_BYTES
from trio_crawler.net.turn import Progress

Told: TypeAlias = tuple[int, Fields, bytes] | Fault

_T = TypeVar("_T")


class Pieces:
    """Be a `Stream` that gives these pieces, one at each `receive`, and then its end."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        # No bytes would be the end.
        self._pieces = deque(piece for piece in pieces if piece)
        self.received = 0
        self.sent = 0
        self.closed = False

    async def send(self, data: bytes) -> None:
        """Take a request."""
        self.sent += len(data)

    async def receive(self) -> bytes:
        """Return the next piece, or none at the end."""
        data = self._pieces.popleft() if self._pieces else b""
        self.received += len(data)
        return data

    def is_quiet(self) -> bool:
        """Tell whether all was received; the end itself is not told before it is received."""
        return not self._pieces

    def close(self) -> None:
        """Note that it was closed."""
        self.closed = True


@dataclass(frozen=True)
class Heard:
    """Say what came of an answer: status, fields and body, or a fault.

    `kept`: the connection may be used again; `received` counts the bytes taken.
    """

    told: Told
    kept: bool
    received: int


def hear(pieces: Iterable[bytes], limit: int = 64 * 1024) -> Heard:
    """Ask over a stream that answers with these pieces; `limit` is that of the body."""
    stream = Pieces(pieces)
    connection = Connection(("http", "h.test", 80), stream)
    told = _told(connection, limit)
    kept = connection.reusable and not connection.is_stale()
    return Heard(told, kept, stream.received)


def at_once(work: Coroutine[Any, Any, _T]) -> _T:
    """Run what never waits to its end."""
    try:
        work.send(None)
    except StopIteration as end:
        result: _T = end.value
        return result
    raise AssertionError("it waits, and there is nothing to wait for")


def _told(connection: Connection, limit: int) -> Told:
    most = limit + FRAMING_BYTES
    try:
        head = at_once(connection.ask(b"GET / HTTP/1.1\r\n\r\n", Progress("h.test"), most))
    except FetchError as error:
        connection.close()
        return error.fault
    try:
        # As the fetch does it.
        if not head.encoding and head.length is not None and head.length <= limit:
            whole = connection.take_whole()
            if whole is not None:
                return head.status, head.fields, whole
        body = Body(limit, content_codings(head.encoding) if head.length != 0 else ())
        while piece := at_once(connection.read()):
            body.feed(piece)
        return head.status, head.fields, body.finish()
    except FetchError as error:
        # As the wire does it: what is left is here already, or the connection is of no use.
        connection.drain()
        return error.fault
