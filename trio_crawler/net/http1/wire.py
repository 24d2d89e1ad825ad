"""HTTP/1.1 over Trio, with one request at a time on a connection, as an httpx transport.

▶ CPU seconds for 1,000 pages of a real site: stock httpx 3.9, this wire with httpx's Request and
Response 0.65, the wire alone 0.52. So `HttpFetch` calls `ask`; other callers may pass the wire to
an httpx.AsyncClient.
"""

import re
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from math import inf
from typing import Any

import httpx
import trio

from trio_crawler.arguments import (
    check_flag,
    check_function,
    check_kind,
    check_number,
    check_whole,
    several_strings,
)
from trio_crawler.in_trio import check_in_trio
from trio_crawler.model import Phase, Reason
from trio_crawler.net.dial.addresses import AddressPolicy
from trio_crawler.net.dial.connector import Connector, Dialer
from trio_crawler.net.dial.resolve import Resolve, Resolver, descriptors
from trio_crawler.net.dial.stream import Stream
from trio_crawler.net.errors import FetchError
from trio_crawler.net.http1.connection import (
    DEFAULT_PORTS,
    Connection,
    Origin,
    Pool,
    Reusable,
)
from trio_crawler.net.http1.message import Head
from trio_crawler.net.proxy.choice import Proxies
from trio_crawler.net.request import has_control, is_token
from trio_crawler.net.statistics import WireStatistics
from trio_crawler.net.tls import HTTP1, Security
from trio_crawler.net.turn import Deadlines, Progress
from trio_crawler.page.urls import web_urls

MAX_BYTES = 10 * 1024 * 1024
"""The default bound on the bytes of a body."""

MAX_IDLE = 4_000
"""The default bound on idle connections, if the process may have twice as many descriptors.

▶ An idle connection takes 8 KiB, with TLS 43: that is 170 MiB at most.
"""

FRAMING_BYTES = 128 * 1024
"""The most bytes of a response besides its body: heads, and the framing of chunks."""

_EVERYWHERE = ("0.0.0.0/0", "::/0")
_ERRORS: dict[Reason, type[httpx.TransportError]] = {
    Reason.CONNECT_TIMEOUT: httpx.ConnectTimeout,
    Reason.PROXY: httpx.ProxyError,
    Reason.RESET: httpx.ReadError,
    Reason.TOO_LARGE: httpx.ReadError,
    Reason.BAD_REPLY: httpx.RemoteProtocolError,
    Reason.INCOMPLETE: httpx.RemoteProtocolError,
}
# The characters that may be in a request target (RFC 9112, 3.2).
_is_target = re.compile(rb"[\x21-\x7e]+").fullmatch
_CONNECTING = (Phase.RESOLVE, Phase.CONNECT, Phase.TLS)


class Wire(httpx.AsyncBaseTransport):
    """An httpx transport for HTTP/1.1, with one connection for each request in flight.

    At most `max_idle` idle connections are kept (default: 4,000, or half of the file
    descriptors that the process may have). They are not reused after `keepalive` seconds; expired
    ones are closed when another request begins or ends.

    The wire connects to public addresses; `seeds`, `allow_private` and `public_only` are as in
    `HttpFetch`, and so are `proxy` and `trust_env`. `security` verifies certificates, `resolve`
    looks up names, except those that a proxy looks up itself. A body may have
    `max_bytes` bytes as sent. Of httpx's timeouts, the sum of connect and read bounds the seconds
    until the head is received, and read bounds each wait for more of the body.

    The stream of a response must be read to its end or closed. The caller closes the wire, by
    `async with` or `aclose`; that also ends the requests in flight.

    Raises the exceptions of httpx transports, and RuntimeError after `aclose`. The constructor
    raises TypeError or ValueError, naming the argument, for an invalid value.

    >>> async def ask(url: str) -> int:
    ...     async with Wire(seeds=[url]) as wire, httpx.AsyncClient(transport=wire) as client:
    ...         try:
    ...             return (await client.get(url)).status_code
    ...         except httpx.ConnectError:
    ...             return wire.statistics().open
    >>> trio.run(ask, "http://127.0.0.1:1/")
    0
    """

    __module__ = "trio_crawler.net"

    def __init__(
        self,
        *,
        seeds: Iterable[str | httpx.URL] = (),
        allow_private: Iterable[str] = (),
        public_only: bool = False,
        security: Security | None = None,
        resolve: Resolve | None = None,
        max_idle: int | None = None,
        keepalive: float = 30.0,
        max_bytes: int = MAX_BYTES,
        proxy: str | httpx.URL | None = None,
        trust_env: bool = False,
    ) -> None:
        if security is not None:
            check_kind("security", security, Security, "a Security")
        if resolve is not None:
            check_function("resolve", resolve, "an async function of a host and a port")
        if max_idle is not None:
            check_whole("max_idle", max_idle)
        check_number("keepalive", keepalive)
        check_whole("max_bytes", max_bytes, least=1)
        seeds = web_urls("seeds", seeds)
        allowed = several_strings("allow_private", allow_private)
        check_flag("public_only", public_only)
        policy = AddressPolicy(seeds, allowed, public_only=public_only)
        check_flag("trust_env", trust_env)
        proxies = Proxies(proxy, trust_env=trust_env)
        resolve = resolve or Resolver()
        # The user has named the proxies, so they may have any address.
        anywhere = Dialer(AddressPolicy((), _EVERYWHERE), resolve, kind="the proxy ")
        dial = Dialer(policy, resolve)
        self.connector = Connector(dial, security or Security(), proxies, anywhere)
        # The other descriptors are for the connections in use and for lookups.
        idle = max(1, descriptors(2 * MAX_IDLE) // 2) if max_idle is None else max_idle
        self._pool: Pool[Connection] = Pool(idle, keepalive, self.close)
        # The connections in use, and what keeps the deadline of each, if not a cancel scope.
        self._busy: dict[Connection, Deadlines | None] = {}
        self._max_bytes = max_bytes
        self._made = self._reused = self._retried = 0
        self._bytes_in = self._bytes_out = 0
        self._closed = False

    def __repr__(self) -> str:
        return f"<Wire: {len(self._busy)} connections busy, {len(self._pool)} idle>"

    def statistics(self) -> WireStatistics:
        """Return the counts at this moment."""
        alive = [*self._busy, *self._pool]
        return WireStatistics(
            open=len(alive),
            idle=len(self._pool),
            made=self._made,
            reused=self._reused,
            retried=self._retried,
            bytes_in=self._bytes_in + sum(one.stream.received for one in alive),
            bytes_out=self._bytes_out + sum(one.stream.sent for one in alive),
        )

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request; return its response with an unread body."""
        check_in_trio("Wire")
        url = request.url
        if url.scheme not in DEFAULT_PORTS:
            told = f"the wire supports http and https, not {url.scheme!r}"
            raise httpx.UnsupportedProtocol(told)
        port = DEFAULT_PORTS[url.scheme] if url.port is None else url.port
        origin = url.scheme, url.raw_host.decode("ascii"), port
        sent, progress = await _serialised(request), Progress(origin[1])
        given = request.extensions.get("timeout", {})
        connect, read = (given.get(name) for name in ("connect", "read"))
        wait = inf if read is None else float(read)
        with translated(progress, inf if connect is None else connect + wait):
            connection, head, _ = await self.ask(
                origin,
                sent,
                progress,
                self._max_bytes,
                bodiless=request.method == "HEAD",
                retry=request.method in ("GET", "HEAD"),
            )
        version = {"http_version": b"HTTP/1.%d" % head.minor, "reason_phrase": head.phrase}
        body = BodyStream(connection, self.release, progress, wait)
        return httpx.Response(head.status, headers=head.fields, stream=body, extensions=version)

    async def ask(
        self,
        origin: Origin,
        request: bytes,
        progress: Progress,
        max_bytes: int,
        *,
        bodiless: bool = False,
        retry: bool = True,
        stream: Stream | None = None,
    ) -> tuple[Connection, Head, bytes]:
        """Send a `request` to an `origin`; return its connection, the head of the answer, and it.

        `progress` is told how far it is, and `bodiless` says that no body will come. The caller
        reads the body from the connection, then calls `release`. With `retry`, if the server had
        closed the connection that was reused, the request is sent again on a new connection (RFC
        9112, 9.3.1): at once, or when the delay of its host has passed. Raises FetchError, and
        RuntimeError after `aclose`. With `stream`, which was opened for it, the request is sent
        over that.
        """
        if self._closed:
            raise RuntimeError("this Wire is closed: make another one")
        limit = max_bytes + FRAMING_BYTES
        connection = self._pool.pop(origin) if stream is None else None
        reused = connection is not None
        self._reused += reused
        while True:
            if connection is None:
                connection = await self._opened(origin, progress, stream)
            deadlines = self._busy[connection] = progress.deadlines
            if deadlines is not None:
                deadlines.add(connection, progress.deadline, self._drop)
            try:
                head = await connection.ask(request, progress, limit, bodiless=bodiless)
                return connection, head, request
            except FetchError as error:
                # Else `aclose` or a deadline has closed it.
                lost = self._drop(connection) and connection.unanswered
                if not (lost and retry and reused and error.fault.reason is Reason.RESET):
                    raise
            except BaseException:
                self._drop(connection)
                raise
            connection, reused = None, False
            self._retried += 1
            await progress.wait_for_turn()

    def release(self, connection: Connection) -> None:
        """Keep a connection if its response was read to its end, else close it."""
        if not self._take_back(connection):
            # `aclose` or a deadline has closed it already.
            return
        if not connection.reusable:
            connection.drain()
        if connection.reusable and not self._closed:
            self._pool.push(connection)
        else:
            self.close(connection)

    async def aclose(self) -> None:
        """Close every connection, also those of requests in flight."""
        self._closed = True
        for connection in list(self._busy):
            self._drop(connection)
        while self._pool.drop_oldest():
            pass

    def _take_back(self, connection: Connection) -> bool:
        """Record that a connection is not in use; return False if it was not before."""
        if connection not in self._busy:
            return False
        if (deadlines := self._busy.pop(connection)) is not None:
            deadlines.remove(connection)
        return True

    def _drop(self, connection: Connection) -> bool:
        """Close a connection that is in use. Returns False if it is not."""
        found = self._take_back(connection)
        if found:
            self.close(connection)
        return found

    async def _opened(
        self, origin: Origin, progress: Progress, stream: Stream | None
    ) -> Connection:
        """Return a new connection, over a given stream to the origin if there is one."""
        if stream is None:
            with trio.CancelScope(deadline=progress.deadline):
                stream = await self.open(origin, progress)
            if stream is None:
                raise FetchError(Reason.TIMEOUT, "the deadline has passed", progress.phase)
        self._made += 1
        if self._closed:
            stream.close()
        return self.connector.connection(origin, stream)

    async def open(
        self,
        origin: Origin,
        progress: Progress,
        protocols: Sequence[str] = HTTP1,
        *pools: Pool[Any],
    ) -> Stream:
        """Return a new stream to an `origin`, by one of `protocols`; the caller owns it.

        `progress` is told how far it is; see `Connector`.

        Without a file descriptor an idle connection is closed, of the wire or of other `pools`.
        """
        while True:
            try:
                return await self.connector(origin, progress, protocols)
            except FetchError as error:
                out_of_sockets = error.fault.reason is Reason.NO_SOCKETS
                if not (
                    out_of_sockets and any(each.drop_oldest() for each in (self._pool, *pools))
                ):
                    raise

    def close(self, connection: Reusable) -> None:
        """Close a connection, and keep the counts of its bytes."""
        self._bytes_in += connection.stream.received
        self._bytes_out += connection.stream.sent
        connection.close()


class BodyStream(httpx.AsyncByteStream):
    """The body of a response; its connection is released at the end, or by `aclose`."""

    def __init__(
        self,
        connection: Connection,
        release: Callable[[Connection], None],
        progress: Progress,
        timeout: float,
    ) -> None:
        self._connection: Connection | None = connection
        self._release = release
        self._progress = progress
        self._timeout = timeout

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        if self._connection is None:
            raise StopAsyncIteration
        piece = b""
        try:
            with translated(self._progress, self._timeout):
                piece = await self._connection.read()
        finally:
            if not piece:
                self._end()
        if not piece:
            raise StopAsyncIteration
        return piece

    async def aclose(self) -> None:
        """Release the connection; it is closed if the body was not read to its end."""
        self._end()

    def _end(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            self._release(connection)


@contextmanager
def translated(progress: Progress, seconds: float = inf) -> Iterator[None]:
    """Raise httpx's exceptions for a FetchError, and for a timeout after `seconds`."""
    try:
        with trio.fail_after(seconds):
            yield
    except FetchError as error:
        fault = error.fault
        kind = _ERRORS.get(fault.reason, httpx.ConnectError)
        if fault.phase in _CONNECTING and fault.reason is Reason.RESET:
            kind = httpx.ConnectError
        raise kind(str(error)) from error
    except trio.TooSlowError as error:
        late = httpx.ConnectTimeout if progress.phase in _CONNECTING else httpx.ReadTimeout
        raise late(f"the limit of {seconds:g} seconds was over while {progress}") from error


async def _serialised(request: httpx.Request) -> bytes:
    """Return the bytes of a request, its body included.

    Raises httpx.LocalProtocolError for a method, target or header that would break the message.
    """
    # httpx does not check these. A value may be a credential, so the messages show names only.
    if not is_token(request.method):
        raise httpx.LocalProtocolError(f"not a method: {request.method!r}")
    if not _is_target(target := _target(request)):
        raise httpx.LocalProtocolError(f"not the target of a request: {target!r}")
    for raw_name, value in request.headers.raw:
        name = raw_name.decode("latin-1")
        if not is_token(name):
            raise httpx.LocalProtocolError(f"not a header name: {name!r}")
        if has_control(value.decode("latin-1")):
            subject = f"the value of the header {name}"
            raise httpx.LocalProtocolError(f"{subject} has control characters in it")
    if not isinstance(request.stream, httpx.AsyncByteStream):
        raise TypeError("the request has a body that is not asynchronous")
    pieces = [piece async for piece in request.stream]
    if "transfer-encoding" in request.headers:
        pieces = [b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces if piece]
        pieces.append(b"0\r\n\r\n")
    return b"".join([head_of(request), *pieces])


def head_of(request: httpx.Request) -> bytes:
    """Return the head of a request in HTTP/1.1, from its first line to the empty one."""
    lines = [b"%s %s HTTP/1.1\r\n" % (request.method.encode(), _target(request))]
    lines += [b"%s: %s\r\n" % field for field in request.headers.raw]
    return b"".join([*lines, b"\r\n"])


def _target(request: httpx.Request) -> bytes:
    target: bytes = request.extensions.get("target", request.url.raw_path)
    return target
