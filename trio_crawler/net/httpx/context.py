"""The facts about a request that the sockets of httpcore need."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass

from trio_crawler.net.progress import Progress


@dataclass(slots=True, eq=False)
class RequestContext:
    """The progress of a request, and the bound on the bytes of its response body.

    `connected` becomes true when a connection is made for the request.
    """

    progress: Progress
    max_bytes: int
    connected: bool = False


# A context variable, since httpcore passes nothing of a request to the code that connects, but
# runs that code in the same task.
REQUEST_CONTEXT: ContextVar[RequestContext | None] = ContextVar("REQUEST_CONTEXT", default=None)


@dataclass(slots=True, eq=False)
class ConnectionCounts:
    """Counts of connections and bytes, documented in `WireStatistics`."""

    open: int = 0
    made: int = 0
    reused: int = 0
    bytes_in: int = 0
    bytes_out: int = 0


class NoHttp2(Exception):
    """The server does not support HTTP/2; no request was sent to it."""
