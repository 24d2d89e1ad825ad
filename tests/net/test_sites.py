from __future__ import annotations

import socket
import urllib.request
from pathlib import Path
from urllib.error import HTTPError

import pytest
import trio
from sites.docs import serve_directory
from sites.raw import html, raw_server, reply, threaded_raw_server
from sites.steps import cancelled_at, until


async def test_the_raw_server_says_exactly_the_bytes_it_was_given() -> None:
    page = b"HTTP/1.1 299 Odd\r\nX: \xff\r\nConnection: close\r\n\r\nanything"
    async with raw_server({"/a": page}) as server:
        stream = await trio.open_tcp_stream("127.0.0.1", server.port)
        async with stream:
            await stream.send_all(b"GET /a HTTP/1.1\r\nHost: h\r\nX-Two:  words\r\n\r\n")
            assert b"".join([data async for data in stream]) == page
        await until(lambda: server.open == 0)
    assert server.targets == ["/a"]
    assert server.requests[0].headers == {"host": "h", "x-two": "words"}
    assert (server.connections, server.sent) == (1, len(page))


async def test_requests_sent_in_one_packet_are_answered_in_turn() -> None:
    async with raw_server({"/": reply(body=b"a"), "/b": html("/c")}) as server:
        stream = await trio.open_tcp_stream("127.0.0.1", server.port)
        async with stream:
            await stream.send_all(b"GET / HTTP/1.1\r\n\r\nGET /b HTTP/1.1\r\n\r\n")
            await stream.send_eof()
            assert b"".join([data async for data in stream]) == reply(body=b"a") + html("/c")


def test_the_threaded_server_serves_plain_functions_and_ends_with_its_block() -> None:
    with threaded_raw_server({"/": html("/a", title="t")}) as server:
        with urllib.request.urlopen(server.url) as answer:
            assert b'<a href="/a">' in answer.read()
        with pytest.raises(HTTPError, match="404") as caught:
            urllib.request.urlopen(server.url + "none")
        caught.value.close()
    assert server.targets == ["/", "/none"]
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", server.port))


def test_the_threaded_server_ends_when_its_block_fails() -> None:
    with pytest.raises(KeyError), threaded_raw_server({}) as server:
        raise KeyError
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", server.port))


def test_a_bug_in_a_handler_comes_out_of_the_threaded_server() -> None:
    async def bug(request: object, stream: trio.abc.Stream) -> None:
        raise ZeroDivisionError

    with (
        pytest.raises(BaseExceptionGroup) as caught,
        threaded_raw_server(bug) as server,
        pytest.raises(OSError, match=r"."),
    ):
        urllib.request.urlopen(server.url, timeout=5)
    assert caught.group_contains(ZeroDivisionError)


def test_a_directory_is_served_with_its_indexes_and_logged(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "index.html").write_text("inside")
    with serve_directory(tmp_path) as docs:
        with urllib.request.urlopen(docs.url + "sub") as answer:
            assert (answer.url, answer.read()) == (docs.url + "sub/", b"inside")
        with pytest.raises(HTTPError) as caught:
            urllib.request.urlopen(docs.url + "none?a=b")
        caught.value.close()
        assert docs.log() == [("/sub", 301), ("/sub/", 200), ("/none?a=b", 404)]
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", int(docs.url.split(":")[2].rstrip("/"))))


async def test_work_is_cancelled_at_the_checkpoint_that_was_named() -> None:
    passed = 0

    async def work() -> None:
        nonlocal passed
        passed = 0
        for _ in range(5):
            await trio.lowlevel.checkpoint()
            passed += 1

    ended = []
    for checkpoint in range(1, 8):
        ended.append((await cancelled_at(checkpoint, work), passed))
    assert ended == [(True, 0), (True, 1), (True, 2), (True, 3), (True, 4), (False, 5), (False, 5)]
