"""Streams: a connected socket, plain or with TLS, that counts every byte.

Every method but `close` may raise OSError, such as ssl.SSLError. HTTP/1.1 uses `send` and
`receive`. HTTP/2 uses `put`, `flush` and `take`, which never wait: a request that is cancelled
then leaves no part of a frame behind that others would miss.

▶ A wait in `trio.SocketStream.receive_some` takes 46 us, one in `wait_readable` and `recv` 29 us.
`trio.SSLStream` hides bytes that follow a response; here they can be detected.
"""

from __future__ import annotations

import errno
import os
import select
import socket
import ssl
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeAlias, TypeVar

import trio
from trio.lowlevel import notify_closing, wait_readable, wait_writable

STEP = 64 * 1024
"""The most bytes of one read."""

_T = TypeVar("_T")
# Reads without a checkpoint, after which other tasks can run and a deadline can end the fetch.
_MAX_READS = 16


class PlainStream:
    """A stream over a connected, non-blocking socket, which it owns."""

    protocol = None

    __slots__ = ("_poll", "_ready", "_socket", "_unsent", "received", "sent")

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected
        poll = select.poll()
        poll.register(connected, select.POLLIN)
        self._poll = poll.poll
        self._ready = 0
        self._unsent = b""
        self.received = 0
        self.sent = 0

    async def send(self, data: bytes) -> None:
        """Send all of `data`; a checkpoint only if it must wait."""
        rest = data
        while True:
            try:
                count = self._socket.send(rest)
            except BlockingIOError:
                count = 0
            self.sent += count
            if count == len(rest):
                # The response takes some time, so the next read waits first.
                self._ready = _MAX_READS
                return
            rest = rest[count:]
            await self.wait_writable()

    async def receive(self) -> bytes:
        """Return the next bytes, none at the end; a checkpoint unless bytes have arrived."""
        while True:
            if self._ready >= _MAX_READS:
                self._ready = 0
                await _waited(wait_readable, self._socket)
            try:
                data = self._socket.recv(STEP)
            except BlockingIOError:
                self._ready = _MAX_READS
                continue
            self._ready += 1
            self.received += len(data)
            return data

    def put(self, data: bytes) -> None:
        """Store `data` until it is flushed."""
        self._unsent += data

    def flush(self) -> bool:
        """Send stored data without waiting. Returns whether all of it was sent."""
        while self._unsent:
            try:
                count = self._socket.send(self._unsent)
            except BlockingIOError:
                return False
            self.sent += count
            self._unsent = self._unsent[count:]
        return True

    def take(self) -> bytes | None:
        """Return bytes that have arrived, at most 64 KiB, none at the end; else None."""
        try:
            data = self._socket.recv(STEP)
        except BlockingIOError:
            return None
        self.received += len(data)
        return data

    async def wait_readable(self) -> None:
        """Wait until `take` may return something else than None."""
        await _waited(wait_readable, self._socket)

    async def wait_writable(self) -> None:
        """Wait until `flush` may send more."""
        await _waited(wait_writable, self._socket)

    def is_quiet(self) -> bool:
        """Whether a `receive` would have to wait: neither bytes nor the end have arrived."""
        # 0.5 us; recv(MSG_PEEK) takes 2.7 us, most of it for the exception.
        return not self._poll(0)

    def close(self) -> None:
        """Close the socket; tasks that wait for it, and later calls, raise OSError."""
        if self._socket.fileno() >= 0:
            notify_closing(self._socket)
            # The descriptor is closed even if close() fails.
            with suppress(OSError):
                self._socket.close()
        # The next receive must fail at once: a closed socket cannot be waited for.
        self._ready = 0


class TlsStream:
    """A TLS stream over another one, which it owns; call `handshake` first."""

    __slots__ = (
        *("_incoming", "_machine", "_outgoing", "_plain"),
        *("close", "wait_readable", "wait_writable"),
    )

    def __init__(self, plain: Stream, context: ssl.SSLContext, host: str) -> None:
        self._plain = plain
        # Without a closing alert, since no more data is expected.
        self.close: Callable[[], None] = plain.close
        self.wait_readable: Callable[[], Awaitable[None]] = plain.wait_readable
        self.wait_writable: Callable[[], Awaitable[None]] = plain.wait_writable
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._machine = context.wrap_bio(self._incoming, self._outgoing, server_hostname=host)

    @property
    def protocol(self) -> str | None:
        """The protocol that the server chose in the handshake, if any."""
        return self._machine.selected_alpn_protocol()

    @property
    def received(self) -> int:
        """The number of bytes received over the socket."""
        return self._plain.received

    @property
    def sent(self) -> int:
        """The number of bytes sent over the socket."""
        return self._plain.sent

    async def handshake(self) -> None:
        """Do the handshake, which verifies the certificate of the server."""
        await self._drive(self._machine.do_handshake)
        await self._flush()

    async def send(self, data: bytes) -> None:
        """Send all of `data`.

        Raises ssl.SSLError for an alert that the server has sent before it closed: with TLS 1.3 it
        refuses the certificate of the client only when the client's handshake is over.
        """
        try:
            await self._drive(lambda: self._machine.write(data))
            await self._flush()
            return
        except ConnectionError as error:
            lost = error
        with suppress(ssl.SSLWantReadError, ssl.SSLEOFError, ConnectionError):
            if not self._plain.is_quiet():
                self._incoming.write(await self._plain.receive())
                self._machine.read(1)
        raise lost

    async def receive(self) -> bytes:
        """Return the next bytes, or none at the end.

        Raises ssl.SSLEOFError if the connection ends without the closing alert of the server
        (RFC 8446, 6.1): its data may be incomplete.
        """
        try:
            return await self._drive(lambda: self._machine.read(STEP))
        except ssl.SSLZeroReturnError:
            return b""

    def put(self, data: bytes) -> None:
        """Encrypt `data`, and store it until it is flushed."""
        self._machine.write(data)

    def flush(self) -> bool:
        """Send stored data without waiting. Returns whether all of it was sent."""
        if data := self._outgoing.read():
            self._plain.put(data)
        return self._plain.flush()

    def take(self) -> bytes | None:
        """Return bytes that have arrived, at most 64 KiB, none at the end; else None."""
        # Records of TLS may have no data: other tasks can run before too many of them.
        for _ in range(_MAX_READS):
            try:
                return self._machine.read(STEP)
            except ssl.SSLWantReadError:
                pass
            except ssl.SSLZeroReturnError:
                return b""
            # An answer of TLS itself (a key update) is sent with the next bytes.
            data = self._plain.take()
            if data is None:
                break
            self._fill(data)
        return None

    def is_quiet(self) -> bool:
        """Whether a `receive` would have to wait: neither bytes nor the end have arrived."""
        return (
            not self._machine.pending() and not self._incoming.pending and self._plain.is_quiet()
        )

    async def _drive(self, step: Callable[[], _T]) -> _T:
        """Return the result of a step of TLS; send and receive its bytes until it is done."""
        while True:
            try:
                return step()
            except ssl.SSLWantReadError:
                # Not awaited here: an exception then would have this one as its context.
                pass
            await self._flush()
            self._fill(await self._plain.receive())

    async def _flush(self) -> None:
        if data := self._outgoing.read():
            await self._plain.send(data)

    def _fill(self, data: bytes) -> None:
        if data:
            self._incoming.write(data)
        elif self._incoming.eof:
            raise ssl.SSLEOFError(ssl.SSL_ERROR_EOF, "the connection has ended")
        else:
            self._incoming.write_eof()


Stream: TypeAlias = PlainStream | TlsStream


async def _waited(wait: Callable[[socket.socket], Awaitable[None]], its: socket.socket) -> None:
    try:
        await wait(its)
    except trio.ClosedResourceError as error:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF)) from error
