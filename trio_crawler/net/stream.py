"""Streams: a connected socket, plain or behind TLS, of which every byte is accounted for.

▶ Parked in `trio.SocketStream.receive_some` a task costs 46 us, in `wait_readable` and `recv`
29 us. `trio.SSLStream` keeps bytes that came behind an answer out of sight; here they are seen.
"""

from __future__ import annotations

import errno
import os
import select
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol, TypeVar

import trio
from trio.lowlevel import notify_closing, wait_readable, wait_writable

STEP = 64 * 1024
"""Bytes that are read at once, at most."""

_T = TypeVar("_T")

# So often a read may find bytes waiting before other tasks, and a deadline, get their turn.
_MOST_AT_ONCE = 16


class Stream(Protocol):
    """Send and receive; raises OSError, of which ssl.SSLError is one."""

    @property
    def received(self) -> int:
        """Count the bytes that came over the socket."""

    @property
    def sent(self) -> int:
        """Count the bytes that went over the socket."""

    async def send(self, data: bytes) -> None:
        """Send all of `data`."""

    async def receive(self) -> bytes:
        """Return the next bytes, 64 KiB at most, or none at the end."""

    def is_quiet(self) -> bool:
        """Tell whether nothing has come that was not received, and no end either."""

    def close(self) -> None:
        """Close the socket; nothing is sent."""


class PlainStream:
    """Speak over a connected, non-blocking socket, which it owns."""

    __slots__ = ("_poll", "_ready", "_socket", "received", "sent")

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected
        self._poll = select.poll()
        self._poll.register(connected, select.POLLIN)
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
                # The answer takes its time: it would be in vain to look at once.
                self._ready = _MOST_AT_ONCE
                return
            rest = rest[count:]
            try:
                await wait_writable(self._socket)
            except trio.ClosedResourceError as error:
                raise _closed() from error

    async def receive(self) -> bytes:
        """Return the next bytes, none at the end; a checkpoint unless they are there already."""
        while True:
            if self._ready >= _MOST_AT_ONCE:
                self._ready = 0
                try:
                    await wait_readable(self._socket)
                except trio.ClosedResourceError as error:
                    raise _closed() from error
            try:
                data = self._socket.recv(STEP)
            except BlockingIOError:
                self._ready = _MOST_AT_ONCE
                continue
            self._ready += 1
            self.received += len(data)
            return data

    def is_quiet(self) -> bool:
        """Tell whether nothing has come that was not received, and no end either."""
        # 0.5 us; a look by recv(MSG_PEEK) takes 2.7 us, most of it for the exception.
        return not self._poll.poll(0)

    def close(self) -> None:
        """Close the socket; whoever waits for it gets an OSError, and later callers as well."""
        if self._socket.fileno() >= 0:
            notify_closing(self._socket)
            # The descriptor is gone whatever close() says.
            with suppress(OSError):
                self._socket.close()
        # What is closed can be received from, in vain, but not waited for.
        self._ready = 0


class TlsStream:
    """Speak TLS over a plain stream, which it owns; call `handshake` first."""

    __slots__ = ("_incoming", "_machine", "_outgoing", "_plain")

    def __init__(self, plain: PlainStream, context: ssl.SSLContext, host: str) -> None:
        self._plain = plain
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._machine = context.wrap_bio(self._incoming, self._outgoing, server_hostname=host)

    @property
    def received(self) -> int:
        """Count the bytes that came over the socket."""
        return self._plain.received

    @property
    def sent(self) -> int:
        """Count the bytes that went over the socket."""
        return self._plain.sent

    async def handshake(self) -> None:
        """Agree with the server on the keys, and check its certificate."""
        await self._drive(self._machine.do_handshake)
        await self._flush()

    async def send(self, data: bytes) -> None:
        """Send all of `data`."""
        await self._drive(lambda: self._machine.write(data))
        await self._flush()

    async def receive(self) -> bytes:
        """Return the next bytes, or none at the end.

        Raises ssl.SSLEOFError when the connection ends without the server's word that this is
        the end (RFC 8446, 6.1): what it sent may have been cut.
        """
        try:
            return await self._drive(lambda: self._machine.read(STEP))
        except ssl.SSLZeroReturnError:
            return b""

    def is_quiet(self) -> bool:
        """Tell whether nothing has come that was not received, and no end either."""
        return (
            not self._machine.pending() and not self._incoming.pending and self._plain.is_quiet()
        )

    def close(self) -> None:
        """Close the socket; no closing word is sent, as nothing more is expected."""
        self._plain.close()

    async def _drive(self, step: Callable[[], _T]) -> _T:
        """Do a step of TLS, moving its bytes over the socket until it is done."""
        while True:
            try:
                return step()
            except ssl.SSLWantReadError:
                # Nothing is awaited here: what is raised then would seem to come of TLS.
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


def _closed() -> OSError:
    return OSError(errno.EBADF, os.strerror(errno.EBADF))
