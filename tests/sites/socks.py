"""A SOCKS5 proxy that connects to one port of this machine, whatever it is asked for."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import trio
from sites.raw import pump


@dataclass
class Socks:
    """Where the proxy listens, and what it was asked for: kind, address and port."""

    port: int = 0
    asked: list[tuple[int, bytes, int]] = field(default_factory=list)
    open: int = 0


@asynccontextmanager
async def socks_server(to: int, login: tuple[bytes, bytes] | None = None) -> AsyncIterator[Socks]:
    """Serve until the block ends; with `login` only this user and password are let in."""
    socks = Socks()

    async def talk(stream: trio.SocketStream) -> None:
        socks.open += 1
        try:
            await _talk(stream, socks, to, login)
        except (trio.BrokenResourceError, trio.ClosedResourceError, EOFError):
            pass
        finally:
            socks.open -= 1

    async with trio.open_nursery() as nursery:
        (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        socks.port = listener.socket.getsockname()[1]
        nursery.start_soon(trio.serve_listeners, talk, [listener])
        yield socks
        nursery.cancel_scope.cancel()


async def _talk(
    stream: trio.SocketStream, socks: Socks, to: int, login: tuple[bytes, bytes] | None
) -> None:
    async def exactly(count: int) -> bytes:
        data = b""
        while len(data) < count:
            more = await stream.receive_some(count - len(data))
            if not more:
                raise EOFError
            data += more
        return data

    _, count = await exactly(2)
    method = 0 if login is None else 2
    if method not in await exactly(count):
        await stream.send_all(b"\x05\xff")
        return
    await stream.send_all(bytes([5, method]))
    if login is not None:
        user = await exactly((await exactly(2))[1])
        password = await exactly((await exactly(1))[0])
        await stream.send_all(b"\x01" + bytes([(user, password) != login]))
        if (user, password) != login:
            return
    *_, kind = await exactly(4)
    length = (await exactly(1))[0] if kind == 3 else {1: 4, 4: 16}[kind]
    address = await exactly(length)
    socks.asked.append((kind, address, int.from_bytes(await exactly(2), "big")))
    async with await trio.open_tcp_stream("127.0.0.1", to) as onward:
        await stream.send_all(b"\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(pump, stream, onward, nursery.cancel_scope)
            nursery.start_soon(pump, onward, stream, nursery.cancel_scope)
