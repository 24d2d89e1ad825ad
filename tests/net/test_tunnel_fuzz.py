"""The answers of proxies in every spelling and every split: a connection, or a fault, in time."""

from __future__ import annotations

import errno
import random
from collections.abc import Awaitable, Callable, Iterable
from itertools import product

import pytest
from cases import for_each

from trio_crawler.model import Phase, Reason
from trio_crawler.net.dial.stream import Stream
from trio_crawler.net.errors import FetchError
from trio_crawler.net.http1.message import MAX_HEAD_BYTES
from trio_crawler.net.proxy import Proxy, socks_tunnel, tunnel

HTTP = Proxy("http", "p.test", 3128, "me", "secret")
SOCKS = Proxy("socks5", "p.test", 1080, "me", "secret")
OPEN = Proxy("socks5", "p.test", 1080)
CULPRIT = (Reason.PROXY, Reason.RESET, Reason.UNREACHABLE, Reason.CONNECTION_REFUSED, Reason.DNS)
Connect = Callable[[Stream, Proxy, str, int], Awaitable[None]]


class Script:
    """A stream that receives given pieces, then ends, or fails; it records what is sent."""

    protocol = None

    def __init__(self, pieces: Iterable[bytes], fails: bool = False) -> None:
        self.pieces = list(pieces)
        self.fails = fails
        self.sent_bytes = b""
        self.received = self.sent = 0

    async def send(self, data: bytes) -> None:
        self.sent_bytes += data

    async def receive(self) -> bytes:
        if self.pieces:
            return self.pieces.pop(0)
        if self.fails:
            raise OSError(errno.ECONNRESET, "reset")
        return b""

    def is_quiet(self) -> bool:
        return not self.pieces

    def close(self) -> None:
        self.pieces = []


async def tried(
    connect: Connect, proxy: Proxy, pieces: Iterable[bytes], fails: bool = False
) -> FetchError | None:
    """Return the error of a connection over a script, None if it is made."""
    try:
        await connect(Script(pieces, fails), proxy, "h.test", 443)
    except FetchError as error:
        fault = error.fault
        assert fault.reason in CULPRIT, fault
        assert fault.phase is Phase.CONNECT
        assert "the proxy p.test:" in fault.detail
        assert fault.detail.isprintable()
        assert "secret" not in fault.detail
        assert len(fault.detail) < 400
        return error
    return None


def splits(data: bytes) -> Iterable[list[bytes]]:
    """Return the data in one piece, in two at each byte, and byte by byte."""
    return [
        [data],
        *([data[:at], data[at:]] for at in range(1, len(data))),
        [data[at : at + 1] for at in range(len(data))],
    ]


ANSWER = b"HTTP/1.1 103 Early\r\nA: b\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n"
REFUSED = b"HTTP/1.1 407 No\r\nProxy-Authenticate: Basic\r\nContent-Length: 3\r\n\r\n"
REPLIES = {
    "name": b"\x05\x02\x01\x00\x05\x00\x00\x03\x03abc\x00\x50",
    "v4": b"\x05\x02\x01\x00\x05\x00\x00\x01\x00\x00\x00\x00\x00\x50",
    "v6": b"\x05\x02\x01\x00\x05\x00\x00\x04" + bytes(18),
    "no login": b"\x05\x00\x05\x00\x00\x01" + bytes(6),
}


async def test_the_answer_to_connect_may_be_split_anywhere() -> None:
    for pieces in splits(ANSWER):
        assert await tried(tunnel, HTTP, pieces) is None
    for pieces in splits(REFUSED):
        error = await tried(tunnel, HTTP, pieces)
        assert error is not None
        assert error.fault.reason is Reason.PROXY


@pytest.mark.parametrize("reply", REPLIES.values(), ids=REPLIES)
async def test_the_replies_of_socks_may_be_split_anywhere(reply: bytes) -> None:
    for pieces in splits(reply):
        assert await tried(socks_tunnel, SOCKS, pieces) is None


async def test_what_is_sent_is_exactly_this() -> None:
    script = Script([ANSWER])
    await tunnel(script, HTTP, "::1", 81)
    assert script.sent_bytes == (
        b"CONNECT [::1]:81 HTTP/1.1\r\nHost: [::1]:81\r\n"
        b"Proxy-Authorization: Basic bWU6c2VjcmV0\r\n\r\n"
    )
    script = Script([REPLIES["v4"]])
    await socks_tunnel(script, SOCKS, "h.test", 80)
    login = b"\x05\x02\x00\x02" + b"\x01\x02me\x06secret"
    assert script.sent_bytes == login + b"\x05\x01\x00\x03\x06h.test\x00\x50"
    script = Script([REPLIES["no login"]])
    await socks_tunnel(script, OPEN, "127.0.0.1", 65535)
    assert script.sent_bytes == b"\x05\x01\x00" + b"\x05\x01\x00\x01\x7f\x00\x00\x01\xff\xff"


@pytest.mark.parametrize("fails", [False, True])
async def test_an_answer_that_ends_early_or_breaks_is_a_lost_connection(fails: bool) -> None:
    for at in range(len(ANSWER)):
        error = await tried(tunnel, HTTP, [ANSWER[:at]] if at else [], fails)
        assert error is not None
        assert error.fault.reason is Reason.RESET
    for reply in REPLIES.values():
        for at in range(len(reply)):
            error = await tried(socks_tunnel, SOCKS, [reply[:at]] if at else [], fails)
            assert error is not None
            assert error.fault.reason is Reason.RESET
            detail = "the proxy p.test:1080 closed the connection before it had connected to"
            assert error.fault.detail == f"{detail} h.test"


@pytest.mark.parametrize("more", [b"\0", b"HTTP/1.1 200 OK\r\n\r\n", b"x" * 100_000])
async def test_bytes_behind_the_reply_make_no_connection(more: bytes) -> None:
    cases = [(tunnel, HTTP, ANSWER), (socks_tunnel, SOCKS, REPLIES["v4"])]
    for connect, proxy, answer in cases:
        error = await tried(connect, proxy, [answer + more])
        assert error is not None
        assert error.fault.reason is Reason.PROXY


async def test_every_reply_code_of_socks_has_a_sentence() -> None:
    expected = {
        2: Reason.PROXY,
        5: Reason.CONNECTION_REFUSED,
        7: Reason.PROXY,
        8: Reason.PROXY,
    }
    sentences = set()
    for code in range(1, 256):
        # Also of a proxy that sends nothing more.
        for rest in (b"", b"\x00\x01" + bytes(6)):
            error = await tried(socks_tunnel, OPEN, [b"\x05\x00\x05" + bytes([code]) + rest])
            assert error is not None
            assert error.fault.reason is expected.get(code, Reason.UNREACHABLE)
            sentences.add(error.fault.detail)
    assert len(sentences) == 255


async def test_each_method_and_version_that_was_not_asked_for_is_no_socks5() -> None:
    for method in range(256):
        error = await tried(socks_tunnel, OPEN, [bytes([5, method])])
        assert error is not None
        lost = method == 0
        assert error.fault.reason is (Reason.RESET if lost else Reason.PROXY)
    for version in {*range(256)} - {5}:
        error = await tried(socks_tunnel, OPEN, [bytes([version, 0])])
        assert error is not None
        detail = "the proxy p.test:1080 does not speak SOCKS5 on this port"
        assert error.fault.detail == detail


@for_each("seed", range(20))
async def test_random_bytes_make_no_connection_and_no_exception(seed: int) -> None:
    chance = random.Random(seed)
    for connect, proxy in product([tunnel, socks_tunnel], [HTTP, SOCKS]):
        if proxy.is_socks is not (connect is socks_tunnel):
            continue
        for _ in range(300):
            pieces = [chance.randbytes(chance.randint(1, 40)) for _ in range(chance.randint(1, 5))]
            assert await tried(connect, proxy, pieces) is not None


@for_each("seed", range(20))
async def test_a_damaged_answer_is_a_connection_or_a_fault(seed: int) -> None:
    chance = random.Random(seed)
    cases = [
        (tunnel, HTTP, ANSWER),
        (tunnel, HTTP, REFUSED),
        *((socks_tunnel, SOCKS, reply) for reply in REPLIES.values()),
    ]
    for connect, proxy, whole in cases:
        for _ in range(100):
            damaged = bytearray(whole)
            for _ in range(chance.randint(1, 4)):
                at = chance.randrange(len(damaged))
                damaged[at : at + chance.randint(0, 2)] = chance.randbytes(chance.randint(0, 2))
            cut = chance.randrange(len(damaged) + 1)
            pieces = [piece for piece in (bytes(damaged[:cut]), bytes(damaged[cut:])) if piece]
            await tried(connect, proxy, pieces)


async def test_a_head_beyond_the_bound_is_refused_before_it_is_read_on() -> None:
    for line in (b"A: b\r\n", b"A" * 1000, b"HTTP/1.1 103 Early\r\n\r\n"):
        script = Script([b"HTTP/1.1 200 OK\r\n"] + [line] * 100_000)
        if line.startswith(b"HTTP"):
            script.pieces.pop(0)
        with pytest.raises(FetchError, match="does not answer in valid HTTP") as caught:
            await tunnel(script, HTTP, "h.test", 443)
        assert caught.value.fault.reason is Reason.PROXY
        assert (100_000 - len(script.pieces)) * len(line) <= MAX_HEAD_BYTES + 2 * len(line)


async def test_a_name_that_is_too_long_for_socks_is_told() -> None:
    with pytest.raises(FetchError, match="cannot be asked for a name of 300 characters"):
        await socks_tunnel(Script([]), OPEN, "a" * 300, 80)
