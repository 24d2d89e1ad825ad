"""The counts of a fetch and of its connections at one moment."""

import msgspec

from trio_crawler.arguments import public


@public("trio_crawler.net")
class WireStatistics(msgspec.Struct, frozen=True):
    """The connections and bytes of a wire.

    `open` is the number of open connections, `idle` the number of idle ones among them, `made` the
    number of connections that were ever made. `reused` counts requests on a reused connection,
    `retried` the requests that were sent again at once, since the server had closed that
    connection or did not process them. `bytes_in` and `bytes_out` are counted at the sockets.

    >>> async def counts() -> WireStatistics:
    ...     async with HttpFetch(seeds=["http://127.0.0.1:1/"]) as fetch:
    ...         await fetch(Job("http://127.0.0.1:1/"))  # refuses
    ...         return fetch.statistics().wire
    >>> counted = trio.run(counts)
    >>> counted.open, counted.made, counted.bytes_in
    (0, 0, 0)
    """

    open: int = 0
    idle: int = 0
    made: int = 0
    reused: int = 0
    retried: int = 0
    bytes_in: int = 0
    bytes_out: int = 0


@public("trio_crawler.net")
class FetchStatistics(msgspec.Struct, frozen=True):
    """The number of requests, and the `bytes` of response bodies as sent (encoded).

    `wire` has the counts of the connections of an `HttpFetch`. It is None for an `HttpxFetch`: its
    connections belong to the client or transport of the caller.

    >>> async def counts() -> FetchStatistics:
    ...     async with HttpFetch() as fetch:
    ...         await fetch(Job("http://127.0.0.1:1/"))
    ...         return fetch.statistics()
    >>> trio.run(counts).requests
    1
    """

    requests: int = 0
    bytes: int = 0
    wire: WireStatistics | None = None
