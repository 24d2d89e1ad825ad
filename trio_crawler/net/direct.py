"""Direct: URLs asked over the wire, with no httpx in between."""

from __future__ import annotations

from typing import NamedTuple

from trio_crawler.net.connection import PORTS, Connection, Origin
from trio_crawler.net.head import Fields, Head
from trio_crawler.net.progress import Progress
from trio_crawler.net.request import Requests, Target, is_target, merged
from trio_crawler.net.wire import Wire

_MOST_SITES = 10_000
_AFTER_SCHEME = len("https://")


class _Site(NamedTuple):
    """What all requests to one origin have in common."""

    origin: Origin
    peer: str
    fields: Fields
    lines: bytes


class Direct:
    """Ask for URLs over a wire. The head is given at once, the body by `read`, then `release`."""

    def __init__(self, requests: Requests, wire: Wire) -> None:
        self.wire = wire
        self._requests = requests
        self._sites: dict[str, _Site] = {}

    async def ask(
        self, url: str, progress: Progress, most: int, added: Fields | None = None
    ) -> tuple[Connection, Head, bytes]:
        """Ask for a URL with GET, with the `added` fields; tell what was sent. Raises Faulty."""
        cut = url.find("/", _AFTER_SCHEME)
        site, target = self._sites.get(url[:cut]), url[cut:]
        if site is None or not is_target(target):
            site, target = self._learned(Target.of(url))
        progress.peer = site.peer
        lines = self._lines(url, site, added)
        request = b"GET %b HTTP/1.1\r\n%b\r\n" % (target.encode(), lines)
        return *await self.wire.ask(site.origin, request, progress, most), request

    async def release(self, connection: Connection) -> None:
        """Keep the connection if its body was read, else close it."""
        self.wire.release(connection)

    def _lines(self, url: str, site: _Site, added: Fields | None) -> bytes:
        if self._requests.cookies is None and not added:
            return site.lines
        fields = self._requests.with_cookies(url, site.fields)
        return _lines(merged(fields, added) if added else fields)

    def _learned(self, target: Target) -> tuple[_Site, str]:
        if len(self._sites) >= _MOST_SITES:
            self._sites.clear()
        fields = self._requests.fields(target)
        site = _Site(origin_of(target), target.authority, fields, _lines(fields))
        self._sites[target.origin] = site
        return site, target.target


def origin_of(target: Target) -> Origin:
    """Say whom to connect to for a URL."""
    scheme, _, _ = target.origin.partition(":")
    host, port = _host_and_port(target.authority)
    return scheme, host, port or PORTS[scheme]


def _host_and_port(authority: str) -> tuple[str, int | None]:
    if authority.startswith("["):
        host, _, port = authority[1:].partition("]")
        return host, int(port[1:]) if port else None
    host, _, port = authority.partition(":")
    return host, int(port) if port else None


def _lines(fields: Fields) -> bytes:
    return b"".join(b"%b: %b\r\n" % field for field in fields)
