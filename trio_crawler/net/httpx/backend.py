"""Backend: the sockets under httpcore, dialled as the wire's are, counted and bounded."""

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
from trio_crawler.net.errors import Faulty, fault_of
from trio_crawler.net.httpx.adapter import CLOSING
from trio_crawler.net.httpx.context import ASKING, Asking, Meter, OneOnlyError
from trio_crawler.net.progress import Progress
from trio_crawler.net.resolve import peer
from trio_crawler.net.wire import AROUND
from trio_crawler.policy.limits import MAX_BYTES

_WRITING = 1.0
_ALPN = ["http/1.1"]

_Tls: TypeAlias = trio.SSLStream[trio.abc.Stream]


class Backend(httpcore.AsyncNetworkBackend):
    """Connect by `dial`, to `proxy` if there is one, and count in `meter`.

    A connection for HTTP/1.1 has to be for one answer: it may bring no more bytes than the wire
    takes for one. Without a proxy it is for HTTP/2 only. Raises Faulty, and OneOnlyError where
    the server does not speak HTTP/2.
    """

    def __init__(self, dial: Dialer, meter: Meter, proxy: httpx.URL | None) -> None:
        self._dial = dial
        self._meter = meter
        self._proxy = proxy

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore has it so
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        asking = ASKING.get() or Asking(Progress(peer(host, port)), MAX_BYTES)
        whom = peer(host, port)
        if self._proxy is None:
            connected = await self._dial(host, port, asking.progress)
        else:
            asked, asking.progress.peer = asking.progress.peer, f"the proxy {whom}"
            with _blaming_the_proxy(whom):
                connected = await self._dial(host, port, asking.progress)
            asking.progress.peer = asked
        asking.connected = True
        plain = _Counted(trio.SocketStream(trio.socket.from_stdlib_socket(connected)), self._meter)
        plain.bound(asking)
        first = self._proxy is not None and self._proxy.scheme == "https"
        blamed = f"the proxy {whom}" if first else None
        return _Network(plain, plain, asking, one=self._proxy is not None, blamed=blamed)

    async def sleep(self, seconds: float) -> None:
        await trio.sleep(seconds)


class _Counted(trio.abc.Stream):
    """Pass bytes on, count them, and refuse those beyond a bound."""

    def __init__(self, inner: trio.SocketStream, meter: Meter) -> None:
        self._inner = inner
        self._meter = meter
        self._is_open = True
        self._received = 0
        self._most = inf
        self._progress = Progress("")
        meter.made += 1
        meter.open += 1

    def bound(self, asking: Asking | None) -> None:
        """Count from here on for the answer to a request, or for no one's."""
        self._received = 0
        self._most = inf if asking is None else asking.most + AROUND
        self._progress = self._progress if asking is None else asking.progress

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        await self._inner.send_all(data)
        self._meter.bytes_out += len(data)

    async def wait_send_all_might_not_block(self) -> None:
        await self._inner.wait_send_all_might_not_block()

    async def receive_some(self, max_bytes: int | None = None) -> bytes | bytearray:
        data = await self._inner.receive_some(max_bytes)
        self._meter.bytes_in += len(data)
        self._received += len(data)
        if self._received > self._most:
            detail = f"more than {self._most} bytes were sent for one answer"
            raise Faulty(Reason.TOO_LARGE, detail, self._progress.phase)
        return data

    async def aclose(self) -> None:
        self._meter.open -= self._is_open
        self._is_open = False
        await self._inner.aclose()


class _Network(httpcore.AsyncNetworkStream):
    """Speak over a stream as httpcore wants it, and by TLS when it says so."""

    def __init__(
        self,
        stream: trio.abc.Stream,
        plain: _Counted,
        asking: Asking,
        *,
        one: bool,
        two: bool = False,
        blamed: str | None = None,
    ) -> None:
        self._stream = stream
        self._plain = plain
        self._asking = asking
        # Whether HTTP/1.1 will do, and whether HTTP/2 is spoken.
        self._one = one
        self._two = two
        # Whose certificate is looked at next, if not that of the server which is asked.
        self._blamed = blamed

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109
        with _translated(httpcore.ReadTimeout, httpcore.ReadError, timeout):
            return bytes(await self._stream.receive_some(max_bytes))

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109
        if not buffer:
            # A cancellation here would leave httpcore's iterators unfinished.
            return
        if self._two:
            # What is not sent is lost to the requests of others: the state behind it has moved on.
            with _translated(httpcore.WriteError, httpcore.WriteError, _WRITING, shield=True):
                await self._stream.send_all(buffer)
            return
        with _translated(httpcore.WriteTimeout, httpcore.WriteError, timeout):
            await self._stream.send_all(buffer)

    async def aclose(self) -> None:
        # What TLS has to say at the end is not waited for.
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
            # httpcore forgets it when TLS fails or is cancelled.
            with trio.move_on_after(CLOSING, shield=True):
                await self._plain.aclose()
            raise

    def get_extra_info(self, info: str) -> Any:
        if info == "ssl_object" and isinstance(self._stream, trio.SSLStream):
            return self._stream
        return None

    def _wrapped(self, context: ssl.SSLContext, host: str) -> _Tls:
        try:
            # RFC 6066, 3: the name is sent, and certified, without the dot at its end.
            name = host.removesuffix(".")
            return trio.SSLStream(
                self._stream, context, server_hostname=name, https_compatible=True
            )
        except ValueError:
            detail = f"no certificate can be made out for {host}"
            raise Faulty(Reason.TLS, detail, Phase.TLS) from None
        finally:
            # The context is the wire's too, and httpcore has just made it offer HTTP/2.
            context.set_alpn_protocols(_ALPN)

    async def _shake_hands(self, stream: _Tls) -> None:
        try:
            await stream.do_handshake()
        except trio.BrokenResourceError as error:
            lost = httpx.ConnectError(str(error))
            lost.__cause__ = error
            fault = fault_of(lost, self._blamed or self._asking.progress.peer, None)
            raise Faulty(fault.reason, fault.detail, Phase.TLS) from error

    def _secured(self, stream: _Tls) -> _Network:
        two = stream.selected_alpn_protocol() == "h2"
        if not two and not self._one:
            raise OneOnlyError
        self._plain.bound(None if two else self._asking)
        return _Network(stream, self._plain, self._asking, one=self._one, two=two)


@contextmanager
def _translated(
    late: type[Exception], broken: type[Exception], seconds: float | None, *, shield: bool = False
) -> Iterator[None]:
    try:
        with trio.fail_after(inf if seconds is None else seconds, shield=shield):
            yield
    except trio.TooSlowError as error:
        raise late(str(error)) from error
    except (trio.BrokenResourceError, trio.ClosedResourceError) as error:
        raise broken(str(error)) from error


@contextmanager
def _blaming_the_proxy(whom: str) -> Iterator[None]:
    try:
        yield
    except Faulty as error:
        fault = error.fault
        detail = fault.detail.replace(whom, f"the proxy {whom}", 1)
        raise Faulty(fault.reason, detail, fault.phase) from error
