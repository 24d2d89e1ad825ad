"""Streams: a connected socket, plain or with TLS, that counts every byte.

▶ Parked in `trio.SocketStream.receive_some` a task costs 46 us, in `wait_readable` and `recv`
29 us. `trio.SSLStream` hides bytes that came behind a response; here they can be detected.
"""

from __future__ import annotations

import errno
import os
import select
import socket
import ssl
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Protocol, TypeVar

import trio
from trio.lowlevel import notify_closing, wait_readable, wait_writable

STEP = 64 * 1024
"""The most bytes of one read."""

_T = TypeVar("_T")

# Reads that may find bytes waiting before other tasks run and a deadline can end the fetch.
_MAX_READS = 16


class Stream(Protocol):
    """A connected socket. `send` and `receive` raise OSError, such as ssl.SSLError."""

    @property
    def received(self) -> int:
        """The number of bytes that came over the socket."""

    @property
    def sent(self) -> int:
        """The number of bytes that went over the socket."""

    async def send(self, data: bytes) -> None:
        """Send all of `data`."""

    async def receive(self) -> bytes:
        """Return the next bytes, 64 KiB at most, or none at the end."""

    def is_quiet(self) -> bool:
        """Whether neither bytes nor an end have come that were not received yet."""

    def close(self) -> None:
        """Close the socket without sending anything."""


class PlainStream:
    """A stream over a connected, non-blocking socket, which it owns."""

    __slots__ = ("_poll", "_ready", "_socket", "received", "sent")

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected
        self._poll = _poll(connected)
        self._ready = 0
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
                # The response takes some time: a read at once would find nothing.
                self._ready = _MAX_READS
                return
            rest = rest[count:]
            try:
                await wait_writable(self._socket)
            except trio.ClosedResourceError as error:
                raise _closed() from error

    async def receive(self) -> bytes:
        """Return the next bytes, none at the end; a checkpoint unless they have come already."""
        while True:
            if self._ready >= _MAX_READS:
                self._ready = 0
                try:
                    await wait_readable(self._socket)
                except trio.ClosedResourceError as error:
                    raise _closed() from error
            try:
                data = self._socket.recv(STEP)
            except BlockingIOError:
                self._ready = _MAX_READS
                continue
            self._ready += 1
            self.received += len(data)
            return data

    def is_quiet(self) -> bool:
        """Whether neither bytes nor an end have come that were not received yet."""
        # 0.5 us; a look by recv(MSG_PEEK) takes 2.7 us, most of it for the exception.
        return not self._poll(0)

    def close(self) -> None:
        """Close the socket; tasks that wait for it, and later calls, get an OSError."""
        if self._socket.fileno() >= 0:
            notify_closing(self._socket)
            # The descriptor is closed even if close() fails.
            with suppress(OSError):
                self._socket.close()
        # The next receive must fail at once: a closed socket cannot be waited for.
        self._ready = 0


class TlsStream:
    """A TLS stream over a plain one, which it owns; call `handshake` first."""

    __slots__ = ("_incoming", "_machine", "_outgoing", "_plain")

    def __init__(self, plain: PlainStream, context: ssl.SSLContext, host: str) -> None:
        self._plain = plain
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._machine = context.wrap_bio(self._incoming, self._outgoing, server_hostname=host)

    @property
    def received(self) -> int:
        """The number of bytes that came over the socket."""
        return self._plain.received

    @property
    def sent(self) -> int:
        """The number of bytes that went over the socket."""
        return self._plain.sent

    async def handshake(self) -> None:
        """Do the handshake, which verifies the certificate of the server."""
        await self._drive(self._machine.do_handshake)
        await self._flush()

    async def send(self, data: bytes) -> None:
        """Send all of `data`."""
        await self._drive(lambda: self._machine.write(data))
        await self._flush()

    async def receive(self) -> bytes:
        """Return the next bytes, or none at the end.

        Raises ssl.SSLEOFError if the connection ends without the closing alert of the server
        (RFC 8446, 6.1): its data may be incomplete.
        """
        try:
            return await self._drive(lambda: self._machine.read(STEP))
        except ssl.SSLZeroReturnError:
            return b""

    def is_quiet(self) -> bool:
        """Whether neither bytes nor an end have come that were not received yet."""
        return (
            not self._machine.pending() and not self._incoming.pending and self._plain.is_quiet()
        )

    def close(self) -> None:
        """Close the socket without a closing alert, as no more data is expected."""
        self._plain.close()

    async def _drive(self, step: Callable[[], _T]) -> _T:
        """Do a step of TLS, moving its bytes over the socket until it is done."""
        while True:
            try:
                return step()
            except ssl.SSLWantReadError:
                # Not awaited here: an exception then would have this one as its context.
                pass
            await self._flush()
            await self._more()

    async def _flush(self) -> None:
        if data := self._outgoing.read():
            await self._plain.send(data)

    async def _more(self) -> None:
        if data := await self._plain.receive():
            self._incoming.write(data)
        elif self._incoming.eof:
            raise ssl.SSLEOFError(ssl.SSL_ERROR_EOF, "the connection has ended")
        else:
            self._incoming.write_eof()


def _poll(connected: socket.socket) -> Callable[[float], Iterable[object]]:
    """Return a function that waits so long for something to read, and returns it if there is."""
    if not hasattr(select, "poll"):
        # Windows.
        return lambda seconds: select.select([connected], [], [], seconds)[0]
    poll = select.poll()
    poll.register(connected, select.POLLIN)
    return poll.poll


def _closed() -> OSError:
    return OSError(errno.EBADF, os.strerror(errno.EBADF))
