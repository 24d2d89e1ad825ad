"""Pool: idle connections, kept while they can be trusted. Nothing queues here.

httpx's own pool looks at every connection for every request, and a request cancelled while it
queues there takes its place away for good (encode/httpcore#1093).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import trio

from trio_crawler.net.connection import Connection, Origin


class Pool:
    """Keep at most `most` idle connections; they are not used after `seconds`.

    Those, whatever their origin, are closed when a connection is taken or put. Of an origin's
    connections the one used last goes out first, as the likeliest to be alive. `close` is what
    closes the others. Sync throughout.
    """

    def __init__(self, most: int, seconds: float, close: Callable[[Connection], None]) -> None:
        self._most = most
        self._seconds = seconds
        self._close = close
        self._stacks: dict[Origin, list[Connection]] = {}
        # The same connections, the one idle for longest first (a dict used as an ordered set).
        self._ages: dict[Connection, None] = {}

    def __len__(self) -> int:
        return len(self._ages)

    def __iter__(self) -> Iterator[Connection]:
        return iter(self._ages)

    def take(self, origin: Origin) -> Connection | None:
        """Take a connection that was quiet until now, if there is one."""
        self._drop_late()
        while stack := self._stacks.get(origin):
            connection = stack.pop()
            del self._ages[connection]
            if not stack:
                del self._stacks[origin]
            if not connection.is_spoilt():
                return connection
            self._close(connection)
        return None

    def put(self, connection: Connection) -> None:
        """Keep a connection; those that are too old, or too many, are closed."""
        connection.since = trio.current_time()
        self._ages[connection] = None
        self._stacks.setdefault(connection.origin, []).append(connection)
        self._drop_late()
        while len(self._ages) > self._most:
            self.drop_oldest()

    def drop_oldest(self) -> bool:
        """Close the connection that is idle for longest; tell whether there was one."""
        connection = next(iter(self._ages), None)
        if connection is None:
            return False
        del self._ages[connection]
        stack = self._stacks[connection.origin]
        # It is the first of its stack, as all are in the order of their age.
        stack.remove(connection)
        if not stack:
            del self._stacks[connection.origin]
        self._close(connection)
        return True

    def _drop_late(self) -> None:
        began = trio.current_time() - self._seconds
        while self._ages and next(iter(self._ages)).since < began:
            self.drop_oldest()
