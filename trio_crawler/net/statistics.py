"""Statistics: the counts of a fetch, of its connections and of its cookies at one moment."""

from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class WireStatistics:
    """The connections and bytes of a wire.

    `open` connections now, `idle` ones of these, connections ever `made`, requests that `reused`
    one, requests `retried` because the reused connection was dead. `bytes_in` and `bytes_out` are
    counted at the sockets.
    """

    __module__ = "trio_crawler.net"

    open: int = 0
    idle: int = 0
    made: int = 0
    reused: int = 0
    retried: int = 0
    bytes_in: int = 0
    bytes_out: int = 0


@dataclass(frozen=True, slots=True)
class FetchStatistics:
    """The requests of a fetch, and the `bytes` of response bodies, counted as they were sent.

    `wire` counts the connections of an `HttpFetch`. It is None for an `HttpxFetch`, whose
    connections belong to the client or transport of the caller.
    """

    __module__ = "trio_crawler.net"

    requests: int = 0
    bytes: int = 0
    wire: WireStatistics | None = None


class CookieStatistics(NamedTuple):
    """The number of hosts that have cookies, and of cookies."""

    hosts: int
    cookies: int


CookieStatistics.__module__ = "trio_crawler.net"
