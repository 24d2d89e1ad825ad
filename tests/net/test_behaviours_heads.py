"""Servers whose status line and fields are as RFC 9112 has them, or not, or not HTTP at all."""

from __future__ import annotations

import pytest
from cases import for_each
from sites.exchange import meet, table

from trio_crawler.model import Phase, Reason, Response

OK = b"HTTP/1.1 200 OK\r\n"
PAGE = b"Content-Length: 4\r\n\r\npage"

STATUS_LINES = {
    "without a phrase": (b"HTTP/1.1 200 ", 200),
    "without a phrase and without a space": (b"HTTP/1.1 200", 200),
    "with spaces for a phrase": (b"HTTP/1.1 200    ", 200),
    "with a phrase of several words": (b"HTTP/1.1 404 It is not here, sorry", 404),
    "with a phrase in UTF-8": ("HTTP/1.1 404 Keine Gänse".encode(), 404),
    "with a phrase in Latin-1": (b"HTTP/1.1 404 Keine G\xe4nse", 404),
    "with a phrase that has an escape in it": (b"HTTP/1.1 404 \x1b[31mred", 404),
    "with a phrase like a field": (b"HTTP/1.1 200 Content-Length: 9", 200),
    "with the phrase of another status": (b"HTTP/1.1 200 Not Found", 200),
    "with a phrase of 60,000 bytes": (b"HTTP/1.1 200 " + b"O" * 60_000, 200),
    "with a status nobody knows": (b"HTTP/1.1 299 Odd", 299),
    "with the highest status": (b"HTTP/1.1 999 Denied", 999),
    "with a 418": (b"HTTP/1.1 418 I'm a teapot", 418),
}


@for_each("line, status", table(STATUS_LINES))
async def test_a_status_line_is_read(line: bytes, status: int) -> None:
    met = await meet(line + b"\r\n" + PAGE)
    assert (met.status, met.body) == (status, b"page")
    assert met.kept


NOT_HTTP = {
    "HTTP 2.0": b"HTTP/2.0 200 OK\r\n" + PAGE,
    "HTTP 2 in short": b"HTTP/2 200\r\n" + PAGE,
    "HTTP 2 by its settings": b"\0\0\x12\x04\0\0\0\0\0" + bytes(18),
    "HTTP 3.0": b"HTTP/3.0 200 OK\r\n" + PAGE,
    "HTTP 0.9 with a number": b"HTTP/0.9 200 OK\r\n" + PAGE,
    "HTTP 0.9, a bare page": b"<html>hello</html>",
    "a version of two digits": b"HTTP/1.10 200 OK\r\n" + PAGE,
    "a version of eleven": b"HTTP/11.1 200 OK\r\n" + PAGE,
    "a version without a point": b"HTTP/1 200 OK\r\n" + PAGE,
    "a version without a number": b"HTTP/x.y 200 OK\r\n" + PAGE,
    "a version with a comma": b"HTTP/1,1 200 OK\r\n" + PAGE,
    "HTTP in lower case": b"http/1.1 200 OK\r\n" + PAGE,
    "HTTPS": b"HTTPS/1.1 200 OK\r\n" + PAGE,
    "ICY, as Shoutcast does": b"ICY 200 OK\r\n" + PAGE,
    "RTSP": b"RTSP/1.0 200 OK\r\n" + PAGE,
    "SSH": b"SSH-2.0-OpenSSH_9.6\r\n",
    "SMTP": b"220 mail.test ESMTP\r\n",
    "FTP": b"220 welcome\r\n",
    "IRC": b":irc.test NOTICE * :hello\r\n",
    "a request": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    "an empty line first": b"\r\n" + OK + PAGE,
    "a space first": b" " + OK + PAGE,
    "a NUL first": b"\0" + OK + PAGE,
    "a byte order mark first": b"\xef\xbb\xbf" + OK + PAGE,
    "UTF-16": (OK + PAGE).decode().encode("utf-16"),
    "a field first": b"Content-Length: 4\r\n" + OK + b"\r\npage",
    "only NULs": bytes(100),
    "two spaces before the status": b"HTTP/1.1  200 OK\r\n" + PAGE,
    "a tab before the status": b"HTTP/1.1\t200 OK\r\n" + PAGE,
    "no space before the status": b"HTTP/1.1200 OK\r\n" + PAGE,
    "no space behind the status": b"HTTP/1.1 200OK\r\n" + PAGE,
    "a tab behind the status": b"HTTP/1.1 200\tOK\r\n" + PAGE,
    "no status": b"HTTP/1.1\r\n" + PAGE,
    "no status but a phrase": b"HTTP/1.1 OK\r\n" + PAGE,
    "a status in words": b"HTTP/1.1 two OK\r\n" + PAGE,
    "a status of two digits": b"HTTP/1.1 20 OK\r\n" + PAGE,
    "a status of four digits": b"HTTP/1.1 2000 OK\r\n" + PAGE,
    "a status below 100": b"HTTP/1.1 099 OK\r\n" + PAGE,
    "a negative status": b"HTTP/1.1 -20 OK\r\n" + PAGE,
    "a status with a plus": b"HTTP/1.1 +20 OK\r\n" + PAGE,
    "a status with a fraction": b"HTTP/1.1 200.1 OK\r\n" + PAGE,
    "a NUL in the phrase": b"HTTP/1.1 200 O\0K\r\n" + PAGE,
    "a bare CR in the phrase": b"HTTP/1.1 200 OK\rContent-Length: 4\r\n\r\npage",
}


@for_each("answer", table(NOT_HTTP))
async def test_it_is_not_http_to_send(answer: bytes) -> None:
    met = await meet(answer)
    assert met.fault == (Reason.BAD_REPLY, Phase.WAIT)
    assert "not HTTP/1.1" in met.detail
    assert (met.kept, met.asked, met.made) == (False, 1, 2)
    assert met.bytes_in == len(answer)


@pytest.mark.parametrize("begun", [2, 7])
async def test_an_alert_of_tls_is_the_answer_of_a_server_that_wants_https(begun: int) -> None:
    met = await meet(b"\x15\x03\x03\x00\x02\x02\x50"[:begun])
    assert met.fault == (Reason.TLS, Phase.TLS)
    assert met.detail.endswith(" speaks TLS on this port: use https://")
    assert met.kept is False


FIELDS = {
    "in lower case": (b"x-name: value", "x-name", "value"),
    "in capitals": (b"X-NAME: value", "x-name", "value"),
    "in absurd case": (b"x-NaMe: value", "x-name", "value"),
    "without a space": (b"X-Name:value", "x-name", "value"),
    "with many spaces and tabs": (b"X-Name: \t  value \t ", "x-name", "value"),
    "without a value": (b"X-Name:", "x-name", ""),
    "with a value of spaces": (b"X-Name:    ", "x-name", ""),
    "with colons in the value": (b"X-Name: a:b::c:", "x-name", "a:b::c:"),
    "with a colon first in the value": (b"X-Name:: a", "x-name", ": a"),
    "with tabs inside the value": (b"X-Name: a\t\tb", "x-name", "a\t\tb"),
    "in Latin-1": (b"X-Name: G\xe4nse", "x-name", "Gänse"),
    "in UTF-8": ("X-Name: Gänse 鵝".encode(), "x-name", "Gänse 鵝"),
    "with an escape in the value": (b"X-Name: \x1b[31mred", "x-name", "\x1b[31mred"),
    "with a DEL in the value": (b"X-Name: a\x7fb", "x-name", "a\x7fb"),
    "with every character a name may have": (
        b"!#$%&'*+-.^_`|~09azAZ: value",
        "!#$%&'*+-.^_`|~09azaz",
        "value",
    ),
    "of one letter": (b"x: value", "x", "value"),
    "said twice": (b"X-Name: a\r\nx-name: b", "x-name", "a, b"),
    "of 60,000 bytes": (b"X-Name: " + b"v" * 60_000, "x-name", "v" * 60_000),
    "with a name of 60,000 bytes": (b"n" * 60_000 + b": v", "n" * 60_000, "v"),
    "like a status line": (b"HTTP/1.1 200 OK: v", None, None),
}


@for_each("line, name, value", table(FIELDS))
async def test_a_field_is_read(line: bytes, name: str | None, value: str | None) -> None:
    met = await meet(OK + line + b"\r\n" + PAGE)
    assert met.body == b"page"
    assert isinstance(met.answer, Response)
    if name is None:
        assert list(met.answer.headers) == ["content-length"]
    else:
        assert met.answer.headers[name] == value
        assert met.kept


LOOSE = {
    "folded by a space": (b"X-Name: one\r\n two", "one two"),
    "folded by a tab": (b"X-Name: one\r\n\ttwo", "one two"),
    "folded by many spaces": (b"X-Name: one  \r\n      two", "one two"),
    "folded twice": (b"X-Name: one\r\n two\r\n three", "one two three"),
    "folded at once": (b"X-Name:\r\n one", " one"),
    "folded to something like a field": (b"X-Name: one\r\n Content-Length: 9", None),
    "folded to a line of spaces": (b"X-Name: one\r\n   ", "one "),
    "folded behind a bare LF": (b"X-Name: one\n two", "one two"),
    "with a space before the colon": (b"X-Name : one", "one"),
    "with tabs before the colon": (b"X-Name\t\t: one", "one"),
    "that ends with a bare LF": (b"X-Name: one\nX-Other: two", "one"),
    "behind a line without a colon": (b"no colon\r\nX-Name: one", "one"),
    "behind a line with a strange name": (b"X@Name: two\r\nX-Name: one", "one"),
    "behind a name in UTF-8": ("Näme: two\r\nX-Name: one".encode(), "one"),
    "behind a nameless one": (b": two\r\nX-Name: one", "one"),
    "behind a fold of nothing": (b" two\r\nX-Name: one", "one"),
}


@for_each("lines, value", table(LOOSE))
async def test_a_field_is_read_as_browsers_do_and_the_connection_closed(
    lines: bytes, value: str | None
) -> None:
    met = await meet(OK + lines + b"\r\n" + PAGE)
    assert met.body == b"page"
    assert isinstance(met.answer, Response)
    expected = "one Content-Length: 9" if value is None else value
    assert met.answer.headers["x-name"] == expected
    assert (met.kept, met.asked) == (False, 1)


CONTROLS = {
    "a NUL in a value": b"X-Name: a\0b",
    "a NUL in a name": b"X-Na\0me: a",
    "a NUL for a line": b"\0",
    "a bare CR in a value": b"X-Name: a\rb",
    "a bare CR that hides a field": b"X-Name: a\rContent-Length: 0",
    "a bare CR in a name": b"X-Na\rme: a",
    "a NUL in a folded line": b"X-Name: a\r\n b\0c",
}


@for_each("line", table(CONTROLS))
async def test_a_head_is_refused_for(line: bytes) -> None:
    met = await meet(OK + line + b"\r\n" + PAGE)
    assert met.fault == (Reason.BAD_REPLY, Phase.WAIT)
    assert "control character" in met.detail
    assert (met.kept, met.asked, met.made) == (False, 1, 2)
