"""Requests that an HTTP proxy forwards to a site with plain HTTP (RFC 9112, 3.2.2)."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

from trio_crawler.model import Reason
from trio_crawler.net.dial.resolve import server_name
from trio_crawler.net.dial.stream import Stream
from trio_crawler.net.errors import FetchError
from trio_crawler.net.http1.connection import DEFAULT_PORTS, Connection, Origin
from trio_crawler.net.http1.head import Head
from trio_crawler.net.progress import Progress
from trio_crawler.net.proxy.choice import Proxy
from trio_crawler.net.proxy.refusal import is_of_proxy, not_http, refusal


class ForwardedConnection(Connection):
    """A connection to a proxy that is used for one origin.

    Requests are given in origin form, as to the site itself. Each is sent with the whole URL and
    with the credentials for the proxy. `known` has the proxies that have answered in HTTP before.
    """

    __slots__ = ("_authorization", "_known", "_proxy", "_server", "_site", "_target")

    def __init__(self, origin: Origin, stream: Stream, proxy: Proxy, known: set[Proxy]) -> None:
        super().__init__(origin, stream)
        self._proxy = proxy
        self._known = known
        scheme, host, port = origin
        self._site = server_name(host, port)
        # The client cannot know which of the two ends a connection.
        self._server = f"{self._site} through {proxy.label}"
        name = f"[{host}]" if ":" in host else host
        authority = name if port == DEFAULT_PORTS[scheme] else f"{name}:{port}"
        self._target = f"{scheme}://{authority}".encode()
        self._authorization = proxy.authorization()

    # Not `async`: ▶ each coroutine around another one takes 1 us.
    def ask(
        self, request: bytes, progress: Progress, max_bytes: int, *, bodiless: bool = False
    ) -> Coroutine[Any, Any, Head]:
        """Send a request and return the head of its response; see `Connection.ask`.

        Raises FetchError also for a response that the proxy has made instead of the site.
        """
        progress.server = self._server
        return super().ask(self._forwarded(request), progress, max_bytes, bodiless=bodiless)

    def _raw_head(self, max_bytes: int) -> Coroutine[Any, Any, bytes]:
        reading = super()._raw_head(max_bytes)
        return self._first_head(reading) if self.asked == 1 else reading

    async def _first_head(self, reading: Coroutine[Any, Any, bytes]) -> bytes:
        try:
            raw = await reading
        except FetchError as error:
            if error.fault.reason in (Reason.BAD_REPLY, Reason.TLS):
                self._check_http(self._buffer)
            raise
        self._check_http(raw)
        return raw

    def _check_http(self, begun: bytes) -> None:
        """Raise FetchError if the bytes are no HTTP, and the proxy has not answered in it before.

        A proxy that has may also pass on what a site says.
        """
        if self._proxy not in self._known and not b"HTTP/1.".startswith(begun[:7]):
            raise not_http(self._proxy)

    def _begin(self, head: Head) -> None:
        if self.asked == 1:
            self._known.add(self._proxy)
        if is_of_proxy(head):
            raise refusal(self._proxy, self._site, head)
        super()._begin(head)

    def _forwarded(self, request: bytes) -> bytes:
        method, _, rest = request.partition(b" ")
        if rest.startswith(b"/"):
            request = b"%b %b%b" % (method, self._target, rest)
        elif rest.startswith(b"* "):
            # RFC 9112, 3.2.4: for OPTIONS this is a URL without a path.
            request = b"%b %b%b" % (method, self._target, rest[1:])
        if self._authorization:
            request = request.replace(b"\r\n", b"\r\n" + self._authorization, 1)
        return request
