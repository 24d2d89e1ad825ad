"""Connection: one connection to one origin, and whether it can still be trusted."""

from __future__ import annotations

import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import httpx
import trio

if TYPE_CHECKING:
    import h11

Origin: TypeAlias = tuple[str, str, int | None]
"""Scheme, host as sent, and the port if it is not the scheme's own."""

CLOSING = 1.0
"""Seconds that closing may take; it sends nothing, so it takes none."""

_MOST_LEFT = 100_000


class Connection:
    """Hold one connection by httpx's transport, whose pool is reduced to this one.

    `origin` and `since` (the Trio time it became idle) are for its owner, who closes it. Raises
    from `send` what httpx transports raise.
    """

    def __init__(self, origin: Origin, context: ssl.SSLContext) -> None:
        self.origin = origin
        self.since = 0.0
        # Nothing expires in there: the age of a connection is its owner's to judge.
        limits = httpx.Limits(
            max_connections=1, max_keepalive_connections=1, keepalive_expiry=None
        )
        self._transport = httpx.AsyncHTTPTransport(
            verify=context, http1=True, http2=False, retries=0, trust_env=False, limits=limits
        )
        self._network: Any = None
        self._machine: h11.Connection | None = None
        self._doubtful = False

    async def send(self, request: httpx.Request) -> httpx.Response:
        """Send a request, connecting for the first one; the body is still to be read."""
        if self._machine is not None:
            response = await self._transport.handle_async_request(request)
        else:
            response = await self._send_first(request)
        framings = ("transfer-encoding", "content-length")
        self._doubtful = all(name in response.headers for name in framings)
        return response

    def is_clean(self) -> bool:
        """Tell whether the last answer ended where it should, so that another may follow.

        False if bytes came behind it (they would be read as the next answer), if its length was
        said twice over (RFC 9112, 6.3), if the server ends the connection, and in any doubt.
        """
        inner = self._transport._pool.connections
        machine = self._machine
        if machine is None or self._doubtful or not inner or not inner[0].is_idle():
            return False
        return not machine.trailing_data[0]

    def is_spoilt(self) -> bool:
        """Tell whether an idle connection was closed by the server, or sent to unasked."""
        inner = self._transport._pool.connections
        return not inner or inner[0].has_expired()

    def was_stale(self, error: httpx.TransportError) -> bool:
        """Tell whether `send` failed because the server had closed before the request came."""
        if self._machine is None or self._machine.trailing_data[0]:
            return False
        return isinstance(error, httpx.NetworkError) or "disconnected" in str(error)

    async def aclose(self) -> None:
        """Close the connection; nothing is sent, so this does not wait for the server."""
        with trio.move_on_after(CLOSING, shield=True):
            await self._transport.aclose()
            if self._network is not None:
                await self._network.aclose()

    async def _send_first(self, request: httpx.Request) -> httpx.Response:
        extensions = request.extensions
        trace = self._watching(extensions.get("trace"))
        request.extensions = {**extensions, "trace": trace}
        try:
            response = await self._transport.handle_async_request(request)
        finally:
            request.extensions = extensions
        # Not public, and the only sight of bytes behind an answer: without it nothing is reused.
        for inner in self._transport._pool.connections:
            self._machine = getattr(getattr(inner, "_connection", None), "_h11_state", None)
        return response

    def _watching(
        self, then: Callable[[str, Any], Awaitable[None]] | None
    ) -> Callable[[str, Any], Awaitable[None]]:
        """Keep the network stream: httpcore drops it open when TLS is cancelled half-way."""

        async def trace(event: str, details: Any) -> None:
            if event in ("connection.connect_tcp.complete", "connection.start_tls.complete"):
                self._network = details["return_value"]
            if then is not None:
                await then(event, details)

        return trace


async def abandon(parts: AsyncIterator[bytes]) -> None:
    """End an iterator over a body before its end.

    httpx and httpcore iterate by generators inside generators: closing the outer one leaves the
    inner ones to the garbage collector. A cancellation from within ends them all.
    """
    with trio.CancelScope(shield=True) as scope:
        scope.cancel()
        try:
            for _ in range(_MOST_LEFT):
                await anext(parts)
        except (StopAsyncIteration, httpx.TransportError):
            return
    if isinstance(parts, AsyncGenerator):
        await parts.aclose()
