"""The pool of idle connections; no request queues in it.

httpx's own pool looks at every connection for every request, and a request that is cancelled in
the queue of that pool occupies its place for ever (encode/httpcore#1093).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, Protocol, TypeVar

import trio

from trio_crawler.net.http1.connection import Origin


class Reusable(Protocol):
    """A connection to an origin; a pool sets `since`, the time at which it became idle."""

    origin: Origin
    since: float

    def is_stale(self) -> bool:
        """Whether an idle connection cannot be used any more."""


_C = TypeVar("_C", bound=Reusable)


class Pool(Generic[_C]):
    """At most `max_idle` idle connections, which are not reused after `keepalive` seconds.

    Expired connections of all origins are closed, by `close`, when a connection is popped or
    pushed. The most recent connection of an origin is popped first, since it is the likeliest to
    be alive. No method waits.
    """

    def __init__(self, max_idle: int, keepalive: float, close: Callable[[_C], None]) -> None:
        self._max_idle = max_idle
        self._keepalive = keepalive
        self._close = close
        self._stacks: dict[Origin, list[_C]] = {}
        # The same connections, the one idle for longest first (a dict used as an ordered set).
        self._ages: dict[_C, None] = {}

    def __len__(self) -> int:
        return len(self._ages)

    def __iter__(self) -> Iterator[_C]:
        return iter(self._ages)

    def __contains__(self, origin: Origin) -> bool:
        return origin in self._stacks

    def pop(self, origin: Origin) -> _C | None:
        """Return an idle connection that is not stale, or None."""
        self._drop_expired(trio.current_time())
        while stack := self._stacks.get(origin):
            connection = stack.pop()
            del self._ages[connection]
            if not stack:
                del self._stacks[origin]
            if not connection.is_stale():
                return connection
            self._close(connection)
        return None

    def push(self, connection: _C) -> None:
        """Store a connection; expired connections are closed, and the oldest beyond `max_idle`."""
        now = connection.since = trio.current_time()
        self._ages[connection] = None
        self._stacks.setdefault(connection.origin, []).append(connection)
        self._drop_expired(now)
        while len(self._ages) > self._max_idle:
            self.drop_oldest()

    def drop_oldest(self) -> bool:
        """Close the connection that has been idle for longest. Returns False if there is none."""
        connection = next(iter(self._ages), None)
        if connection is None:
            return False
        del self._ages[connection]
        stack = self._stacks[connection.origin]
        # It is the first of its stack, as each stack is in the order of age.
        stack.remove(connection)
        if not stack:
            del self._stacks[connection.origin]
        self._close(connection)
        return True

    def _drop_expired(self, now: float) -> None:
        oldest = now - self._keepalive
        while self._ages and next(iter(self._ages)).since < oldest:
            self.drop_oldest()
