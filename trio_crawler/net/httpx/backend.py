"""The sockets of httpcore: connected like those of the wire, with counts and bounds."""

from __future__ import annotations

import ssl
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from math import inf
from typing import Any, TypeAlias

import httpcore
import httpx
import trio

from trio_crawler.model import Phase, Reason
from trio_crawler.net.dial import Dialer
from trio_crawler.net.errors import FetchError
from trio_crawler.net.httpx.adapter import CLOSE_TIMEOUT
from trio_crawler.net.httpx.context import (
    REQUEST_CONTEXT,
    ConnectionCounts,
    NoHttp2,
    RequestContext,
)
from trio_crawler.net.httpx.errors import fault_of
from trio_crawler.net.progress import Progress
from trio_crawler.net.resolve import server_name
from trio_crawler.net.tls import uncertifiable
from trio_crawler.net.wire import FRAMING_BYTES, MAX_BYTES

_WRITE_TIMEOUT = 1.0
_ALPN = ["http/1.1"]

_Tls: TypeAlias = trio.SSLStream[trio.abc.Stream]


class Backend(httpcore.AsyncNetworkBackend):
    """Connect by `dial`, to `proxy` if there is one, and count connections and bytes.

    A connection for HTTP/1.1 is used for one response, with the same bound on its bytes as on the
    wire. A connection without a proxy is for HTTP/2 only. Raises FetchError, and NoHttp2 if the
    server does not support HTTP/2.
    """

    def __init__(self, dial: Dialer, counts: ConnectionCounts, proxy: httpx.URL | None) -> None:
        self._dial = dial
        self._counts = counts
        self._proxy = proxy

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore has it so
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        name = server_name(host, port)
        context = REQUEST_CONTEXT.get() or RequestContext(Progress(name), MAX_BYTES)
        progress = context.progress
        if self._proxy is None:
            connected = await self._dial(host, port, progress)
        else:
            server, progress.server = progress.server, f"the proxy {name}"
            with _naming_the_proxy(name):
                connected = await self._dial(host, port, progress)
            progress.server = server
        context.connected = True
        socket = trio.socket.from_stdlib_socket(connected)
        plain = _CountedStream(trio.SocketStream(socket), self._counts)
        plain.count_for(context)
        tls_to_proxy = self._proxy is not None and self._proxy.scheme == "https"
        certified = f"the proxy {name}" if tls_to_proxy else None
        http1 = self._proxy is not None
        return _NetworkStream(plain, plain, context, http1=http1, certified=certified)

    async def sleep(self, seconds: float) -> None:
        await trio.sleep(seconds)


class _CountedStream(trio.abc.Stream):
    """A stream that counts its bytes, and raises FetchError beyond a bound."""

    def __init__(self, inner: trio.SocketStream, counts: ConnectionCounts) -> None:
        self._inner = inner
        self._counts = counts
        self._is_open = True
        self._received = 0
        self._max_bytes = inf
        self._progress = Progress("")
        counts.made += 1
        counts.open += 1

    def count_for(self, context: RequestContext | None) -> None:
        """Bound the bytes of the response to a request, from now on; None removes the bound."""
        self._received = 0
        self._max_bytes = inf if context is None else context.max_bytes + FRAMING_BYTES
        self._progress = self._progress if context is None else context.progress

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        await self._inner.send_all(data)
        self._counts.bytes_out += len(data)

    async def wait_send_all_might_not_block(self) -> None:
        await self._inner.wait_send_all_might_not_block()

    async def receive_some(self, max_bytes: int | None = None) -> bytes | bytearray:
        data = await self._inner.receive_some(max_bytes)
        self._counts.bytes_in += len(data)
        self._received += len(data)
        if self._received > self._max_bytes:
            detail = f"more than {self._max_bytes} bytes were sent for one answer"
            raise FetchError(Reason.TOO_LARGE, detail, self._progress.phase)
        return data

    async def aclose(self) -> None:
        self._counts.open -= self._is_open
        self._is_open = False
        await self._inner.aclose()


class _NetworkStream(httpcore.AsyncNetworkStream):
    """A stream with the interface of httpcore, which may upgrade it to TLS.

    `http1` is whether HTTP/1.1 is allowed, `http2` whether HTTP/2 was negotiated. `certified` is
    the name of the server that sends the next certificate, if it is not the server of the request.
    """

    def __init__(
        self,
        stream: trio.abc.Stream,
        plain: _CountedStream,
        context: RequestContext,
        *,
        http1: bool,
        http2: bool = False,
        certified: str | None = None,
    ) -> None:
        self._stream = stream
        self._plain = plain
        self._context = context
        self._http1 = http1
        self._http2 = http2
        self._certified = certified

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109
        with _translated(httpcore.ReadTimeout, httpcore.ReadError, timeout):
            return bytes(await self._stream.receive_some(max_bytes))

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109
        if not buffer:
            # No checkpoint: a cancellation here would leave httpcore's iterators unfinished.
            return
        if self._http2:
            # Shielded: httpcore counts these bytes as sent, so all of them must be sent, or the
            # other requests on the connection would fail.
            late = lost = httpcore.WriteError
            with _translated(late, lost, _WRITE_TIMEOUT, shield=True):
                await self._stream.send_all(buffer)
            return
        with _translated(httpcore.WriteTimeout, httpcore.WriteError, timeout):
            await self._stream.send_all(buffer)

    async def aclose(self) -> None:
        # Without the closing alert of TLS, which would have to wait.
        await self._plain.aclose()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore has it so
    ) -> httpcore.AsyncNetworkStream:
        try:
            stream = self._wrapped(ssl_context, server_hostname or "")
            with _translated(httpcore.ConnectTimeout, httpcore.ConnectError, timeout):
                await self._shake_hands(stream)
            return self._secured(stream)
        except BaseException:
            # httpcore does not close the stream when TLS fails or is cancelled.
            with trio.move_on_after(CLOSE_TIMEOUT, shield=True):
                await self._plain.aclose()
            raise

    def get_extra_info(self, info: str) -> Any:
        if info == "ssl_object" and isinstance(self._stream, trio.SSLStream):
            return self._stream
        return None

    def _wrapped(self, tls: ssl.SSLContext, host: str) -> _Tls:
        try:
            # The name is sent, and certified, without the dot at its end (RFC 6066, 3).
            name = host.removesuffix(".")
            return trio.SSLStream(self._stream, tls, server_hostname=name, https_compatible=True)
        except ValueError:
            raise uncertifiable(host) from None
        finally:
            # httpcore has set the context to offer HTTP/2, but the wire uses the same context.
            tls.set_alpn_protocols(_ALPN)

    async def _shake_hands(self, stream: _Tls) -> None:
        try:
            await stream.do_handshake()
        except trio.BrokenResourceError as error:
            lost = httpx.ConnectError(str(error))
            lost.__cause__ = error
            fault = fault_of(lost, self._certified or self._context.progress.server, None)
            raise FetchError(fault.reason, fault.detail, Phase.TLS) from error

    def _secured(self, stream: _Tls) -> _NetworkStream:
        http2 = stream.selected_alpn_protocol() == "h2"
        if not http2 and not self._http1:
            raise NoHttp2
        self._plain.count_for(None if http2 else self._context)
        return _NetworkStream(stream, self._plain, self._context, http1=self._http1, http2=http2)


@contextmanager
def _translated(
    late: type[Exception], lost: type[Exception], seconds: float | None, *, shield: bool = False
) -> Iterator[None]:
    """Raise httpcore's exceptions for a timeout and for a lost connection."""
    try:
        with trio.fail_after(inf if seconds is None else seconds, shield=shield):
            yield
    except trio.TooSlowError as error:
        raise late(str(error)) from error
    except (trio.BrokenResourceError, trio.ClosedResourceError) as error:
        raise lost(str(error)) from error


@contextmanager
def _naming_the_proxy(name: str) -> Iterator[None]:
    """Add "the proxy" before its name in the detail of a FetchError of the block."""
    try:
        yield
    except FetchError as error:
        fault = error.fault
        detail = fault.detail.replace(name, f"the proxy {name}", 1)
        raise FetchError(fault.reason, detail, fault.phase) from error
