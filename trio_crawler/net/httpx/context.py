"""Asking: what the sockets under httpcore have to know of the request they are opened for."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass

from trio_crawler.net.progress import Progress


@dataclass(slots=True, eq=False)
class Asking:
    """Hold a request's progress, and how many bytes of body it may bring.

    `connected` becomes true when a connection was made for it.
    """

    progress: Progress
    most: int
    connected: bool = False


# httpcore hands nothing of a request on to what connects for it, but stays in its task.
ASKING: ContextVar[Asking | None] = ContextVar("ASKING", default=None)


@dataclass(slots=True, eq=False)
class Meter:
    """Count connections and bytes, as WireStatistics has them."""

    open: int = 0
    made: int = 0
    reused: int = 0
    bytes_in: int = 0
    bytes_out: int = 0


class OneOnlyError(Exception):
    """Say that a server does not speak HTTP/2; nothing was asked of it."""
