"""Whatever bytes a server sends by HTTP/2, each request ends in a response or a FetchError."""

from __future__ import annotations

import errno
import os
from random import Random

import pytest
import trio
from cases import for_each

from trio_crawler.net.errors import FetchError
from trio_crawler.net.turn import Progress

pytest.importorskip("h2")
two = pytest.importorskip("sites.two")

import h2.config  # noqa: E402
import h2.connection  # noqa: E402
import h2.events  # noqa: E402

from trio_crawler.net.http2.connection import Http2Connection  # noqa: E402
from trio_crawler.net.http2.stream import block_of  # noqa: E402

ORIGIN = ("https", "h.test", 443)
REQUEST = b"GET / HTTP/1.1\r\nHost: h.test\r\n\r\n"
STREAMS = 4
BODY = bytes(range(256)) * 50


class Memory:
    """A Stream without a socket: what arrives is known, and so are the calls that fail."""

    protocol = "h2"

    def __init__(self, pieces: list[bytes], fail_at: tuple[str, int] = ("", 0)) -> None:
        self.pieces = pieces
        self.written = b""
        self.received = self.sent = 0
        self.closed = False
        self.calls: list[str] = []
        self.fail_at = fail_at

    def _go(self, call: str) -> None:
        self.calls.append(call)
        if self.closed or (call, self.calls.count(call)) == self.fail_at:
            raise OSError(errno.ECONNRESET, os.strerror(errno.ECONNRESET))

    def put(self, data: bytes) -> None:
        self._go("put")
        self.written += data

    def flush(self) -> bool:
        self._go("flush")
        # Every third call has to wait.
        return self.calls.count("flush") % 3 > 0

    def take(self) -> bytes | None:
        self._go("take")
        if self.calls.count("take") % 2:
            return None
        return self.pieces.pop(0) if self.pieces else b""

    async def wait_readable(self) -> None:
        await trio.lowlevel.checkpoint()
        self._go("wait_readable")

    async def wait_writable(self) -> None:
        await trio.lowlevel.checkpoint()
        self._go("wait_writable")

    async def send(self, data: bytes) -> None:
        raise AssertionError

    async def receive(self) -> bytes:
        raise AssertionError

    def is_quiet(self) -> bool:
        return True

    def close(self) -> None:
        self.closed = True


def frames(data: bytes) -> list[bytes]:
    """Split what a server has sent."""
    found = []
    while data:
        size = 9 + int.from_bytes(data[:3])
        found.append(data[:size])
        data = data[size:]
    return found


def written() -> list[bytes]:
    """Return the frames by which a server answers so many requests."""
    client = h2.connection.H2Connection()
    client.initiate_connection()
    server = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
    server.initiate_connection()
    for number in range(1, 2 * STREAMS, 2):
        head = [(":method", "GET"), (":path", "/"), (":scheme", "https"), (":authority", "h.test")]
        client.send_headers(number, head, end_stream=True)
    server.receive_data(client.data_to_send())
    for number in range(1, 2 * STREAMS, 2):
        length = [("content-length", str(len(BODY)))] if number % 4 == 1 else []
        server.send_headers(number, [(":status", "103"), ("link", "</a>")])
        server.send_headers(number, [(":status", "200"), ("content-type", "text/html"), *length])
    for start in range(0, len(BODY), 3_000):
        for number in range(1, 2 * STREAMS, 2):
            if server.local_flow_control_window(number) >= 3_000:
                server.send_data(number, BODY[start : start + 3_000])
    for number in range(1, 2 * STREAMS, 2):
        if number % 4 == 3:
            server.send_headers(number, [("x-trailer", "1")], end_stream=True)
        else:
            server.end_stream(number)
    return frames(server.data_to_send())


def mutated(good: list[bytes], random: Random) -> list[bytes]:
    """Return the frames with a few faults."""
    every = list(good)
    for _ in range(random.randrange(4)):
        place = random.randrange(len(every))
        match random.randrange(7):
            case 0 if len(every) > 1:
                del every[place]
            case 1:
                every.insert(place, random.choice(every))
            case 2:
                odd = bytearray(every[place])
                odd[random.randrange(len(odd))] = random.randrange(256)
                every[place] = bytes(odd)
            case 3:
                payload = random.randbytes(random.choice((0, 4, 5, 8, 30)))
                stream = random.choice((0, 1, 3, 5, 7, 9, 2))
                kind, flags = random.randrange(12), random.choice((0, 1, 4, 5, 8, 0x2D))
                every.insert(place, two.frame(kind, payload, flags, stream))
            case 4:
                random.shuffle(every)
            case 5:
                del every[place + 1 :]
            case _:
                last = random.choice((0, 1, 3, 7, 2**31 - 1)).to_bytes(4)
                code = random.randrange(16).to_bytes(4)
                every.insert(place, two.frame(7, last + code))
    return every


def split(data: bytes, random: Random) -> list[bytes]:
    pieces = []
    while data:
        size = random.choice((1, 9, 100, 5_000, 65_536))
        pieces.append(data[:size])
        data = data[size:]
    return pieces


async def exchanged(memory: Memory, random: Random) -> list[bytes | FetchError]:
    """Ask for a few things on one connection, cancel one at random, and return what came."""
    connection = Http2Connection(ORIGIN, memory, "h.test")
    results: list[bytes | FetchError] = []

    async def ask(scope: trio.CancelScope) -> None:
        stream = connection.begin(block_of(REQUEST), Progress("h.test"), 100_000)
        with scope:
            try:
                await stream.answer()
                body = b""
                while piece := await stream.read():
                    body += piece
                results.append(body)
            except FetchError as error:
                results.append(error)
            finally:
                connection.end(stream)

    with trio.fail_after(20):
        async with trio.open_nursery() as nursery:
            scopes = [trio.CancelScope() for _ in range(STREAMS)]
            for scope in scopes:
                nursery.start_soon(ask, scope)
            if random.random() < 0.3:
                for _ in range(random.randrange(20)):
                    await trio.lowlevel.checkpoint()
                scopes[random.randrange(STREAMS)].cancel()
    assert connection.in_flight == 0
    connection.close()
    return results


async def test_what_was_not_changed_arrives() -> None:
    for seed in range(20):
        random = Random(seed)
        memory = Memory(split(b"".join(written()), random))
        results = await exchanged(memory, Random(99))
        assert results == [BODY] * len(results)


@pytest.mark.parametrize("start", range(0, 400, 100))
async def test_any_change_ends_in_a_body_or_an_error(start: int) -> None:
    good = written()
    for seed in range(start, start + 100):
        random = Random(seed)
        memory = Memory(split(b"".join(mutated(good, random)), random))
        for result in await exchanged(memory, random):
            assert isinstance(result, bytes | FetchError)
            if isinstance(result, FetchError):
                assert result.fault.detail.isprintable()


@pytest.mark.slow
async def test_three_thousand_changes_end_in_a_body_or_an_error() -> None:
    good = written()
    for seed in range(10_000, 13_000):
        random = Random(seed)
        memory = Memory(split(b"".join(mutated(good, random)), random))
        await exchanged(memory, random)


async def test_random_bytes_end_in_an_error() -> None:
    for seed in range(300):
        random = Random(seed)
        memory = Memory(split(random.randbytes(random.randrange(500)), random))
        results = await exchanged(memory, Random(99))
        assert all(isinstance(result, FetchError) for result in results)


@for_each("call", ["put", "flush", "take", "wait_readable", "wait_writable"])
async def test_each_call_on_the_socket_may_fail_once(call: str) -> None:
    good = b"".join(written())
    failures = 0
    for place in range(1, 200):
        random = Random(place)
        memory = Memory(split(good, random), (call, place))
        results = await exchanged(memory, Random(99))
        assert len(results) == STREAMS
        if memory.calls.count(call) < place:
            break
        failures += 1
    assert failures
