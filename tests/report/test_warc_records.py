"""What the records of a crawl hold, read back by warcio and by fastwarc."""

from __future__ import annotations

import time
from hashlib import sha1
from typing import Any

import pytest
from cases import for_each
from report.archives import (
    URL,
    answer,
    archived,
    asked,
    block,
    checks,
    date,
    of_kind,
    only,
    records,
    written,
)

from trio_crawler.model import Anchor, Job, Page, Purpose, Reason, Redirect, RejectedLink
from trio_crawler.policy.robots import MAX_BYTES as ROBOTS_BYTES
from trio_crawler.report.warc_archive import Warc

# The block of a response.


@for_each(
    "body",
    [
        b"hello",
        b"\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
        b"WARC/1.1\r\nWARC-Type: response\r\n\r\n",
        b"a\0b\r\n\0",
        bytes(range(256)) * 9,
    ],
)
async def test_a_body_is_read_back_as_it_was(body: bytes, tmp_path: Any) -> None:
    data = await archived(answer(body=body))
    response = only("response", data)
    assert (response.status, response.body, response.url) == (200, body, URL)
    assert response.fields["WARC-Payload-Digest"] == written(body)
    assert checks(data, tmp_path)


async def test_a_body_of_10_mib_is_read_back_as_it_was(tmp_path: Any) -> None:
    body = b"".join(sha1(b"%d" % number).digest() for number in range(10 * 1024 * 1024 // 20))
    data = await archived(answer(body=body))
    assert only("response", data).body == body
    assert checks(data, tmp_path)


async def test_an_empty_body_is_a_response_each_time() -> None:
    warc = Warc()
    data = await archived(answer(), warc) + await archived(answer(), warc, url=URL + "b")
    found = of_kind("response", data)
    assert [record.body for record in found] == [b"", b""]
    assert [record.fields.get("WARC-Truncated") for record in found] == [None, None]


async def test_fields_stand_as_they_came_if_they_fit_the_body() -> None:
    fields = [
        (b"Server", b"x"),
        (b"X-Odd", b"caf\xe9 \xff"),
        (b"set-cookie", b"a=1"),
        (b"Content-Length", b"4"),
        (b"Set-Cookie", b"b=2"),
    ]
    data = block("response", await archived(answer(203, fields, b"body")))
    lines = b"".join(b"%s: %s\r\n" % field for field in fields)
    assert data == b"HTTP/1.1 203 Non-Authoritative Information\r\n" + lines + b"\r\nbody"


async def test_fields_that_do_not_fit_the_decoded_body_are_renamed(tmp_path: Any) -> None:
    fields = [
        (b"content-encoding", b"gzip"),
        (b"A", b"1"),
        (b"Transfer-Encoding", b"chunked"),
        (b"Content-Length", b"999"),
    ]
    data = await archived(answer(200, fields, b"decoded"))
    assert block("response", data) == (
        b"HTTP/1.1 200 OK\r\nX-Crawl-content-encoding: gzip\r\nA: 1\r\n"
        b"X-Crawl-Transfer-Encoding: chunked\r\nX-Crawl-Content-Length: 999\r\n"
        b"Content-Length: 7\r\n\r\ndecoded"
    )
    assert checks(data, tmp_path)


@for_each("length", [b"5", b"4, 4", b"-4", b"four", b"4" * 30])
async def test_a_length_that_is_not_that_of_the_body_is_renamed(length: bytes) -> None:
    data = block("response", await archived(answer(200, [(b"Content-Length", length)], b"body")))
    assert b"\r\nX-Crawl-Content-Length: %s\r\nContent-Length: 4\r\n" % length in data


@pytest.mark.parametrize(
    "fields",
    [
        [(b"Content-Encoding", b"gzip"), (b"Content-Length", b"4")],
        [(b"Content-Length", b"4"), (b"Transfer-Encoding", b"chunked")],
        [(b"Content-Length", b"4"), (b"content-length", b"4")],
    ],
)
async def test_a_length_does_not_stand_beside_what_contradicts_it(
    fields: list[tuple[bytes, bytes]],
) -> None:
    data = block("response", await archived(answer(200, fields, b"body")))
    lines = b"".join(b"X-Crawl-%s: %s\r\n" % field for field in fields)
    assert data == b"HTTP/1.1 200 OK\r\n" + lines + b"Content-Length: 4\r\n\r\nbody"


async def test_a_body_of_no_stated_length_gets_one() -> None:
    data = block("response", await archived(answer(200, [], b"body")))
    assert data == b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody"


async def test_a_field_from_a_fetch_of_the_user_cannot_end_the_head() -> None:
    data = await archived(answer(200, [(b"X-A", b"1\r\n\r\nX-B: 2\0")], b"body"))
    assert only("response", data).body == b"body"


@pytest.mark.parametrize("status", [299, 418, 599, 999])
async def test_a_status_of_any_number_is_read_back(status: int, tmp_path: Any) -> None:
    data = await archived(answer(status, [], b"body"))
    response = only("response", data)
    assert (response.status, response.body) == (status, b"body")
    assert checks(data, tmp_path)


# What is not all there.


async def test_the_body_of_a_redirect_that_was_not_read_is_marked_as_truncated() -> None:
    warc = Warc()
    await asked(warc, answer(302, [(b"Location", b"/b"), (b"Content-Length", b"154")]))
    data = warc.records(Redirect(URL, 302, URL + "b"))
    assert only("response", data).fields["WARC-Truncated"] == "unspecified"
    assert b"X-Crawl-Content-Length: 154\r\nContent-Length: 0\r\n" in block("response", data)


async def test_a_redirect_without_a_body_is_whole() -> None:
    warc = Warc()
    await asked(warc, answer(302, [(b"Location", b"/b"), (b"Content-Length", b"0")]))
    data = warc.records(Redirect(URL, 302, URL + "b"))
    assert "WARC-Truncated" not in only("response", data).fields


async def test_the_body_of_an_error_that_was_not_decoded_is_marked_as_truncated() -> None:
    data = await archived(answer(404, [(b"Content-Encoding", b"gzip")]))
    assert only("response", data).fields["WARC-Truncated"] == "unspecified"


async def test_a_page_that_lost_its_body_at_the_end_of_the_crawl_is_marked_as_truncated() -> None:
    warc = Warc()
    response = answer(503, [], b"busy")
    await asked(warc, response)
    data = warc.records(Page(URL, 503, response.headers, b""))
    assert only("response", data).fields["WARC-Truncated"] == "unspecified"


@pytest.mark.parametrize(
    ("stated", "truncated"),
    [(None, "length"), (ROBOTS_BYTES + 9, "length"), (ROBOTS_BYTES, None)],
)
async def test_a_robots_txt_that_was_cut_says_so(
    stated: int | None, truncated: str | None
) -> None:
    fields = [] if stated is None else [(b"Content-Length", b"%d" % stated)]
    warc = Warc()
    job = Job(URL + "robots.txt", purpose=Purpose.ROBOTS)
    await asked(warc, answer(200, fields, b"#" * ROBOTS_BYTES), job)
    assert only("response", warc.rest()).fields.get("WARC-Truncated") == truncated


async def test_a_page_as_long_as_a_robots_txt_may_be_is_whole() -> None:
    response = only("response", await archived(answer(body=b"x" * ROBOTS_BYTES)))
    assert "WARC-Truncated" not in response.fields


@pytest.mark.parametrize(
    ("status", "field"),
    [
        (200, (b"Transfer-Encoding", b"chunked")),
        (304, (b"Content-Length", b"9")),
        (204, (b"Content-Encoding", b"gzip")),
    ],
)
async def test_a_page_that_has_no_body_is_whole(status: int, field: tuple[bytes, bytes]) -> None:
    response = only("response", await archived(answer(status, [field])))
    assert "WARC-Truncated" not in response.fields


# Requests.


async def test_a_request_is_read_back_without_credentials() -> None:
    sent = (
        b"GET /a HTTP/1.1\r\nHost: site.test\r\nUser-Agent: me\r\nauthorization: Basic c2Vj\r\n"
        b"COOKIE: id=secret\r\nProxy-Authorization: secret\r\nX-Api-Key: secret\r\n"
        b'If-None-Match: "tag"\r\nAccept: */*\r\n\r\n'
    )
    data = await archived(answer(body=b"x", sent=sent))
    assert block("request", data) == (
        b"GET /a HTTP/1.1\r\nHost: site.test\r\nUser-Agent: me\r\n"
        b'If-None-Match: "tag"\r\nAccept: */*\r\n\r\n'
    )


async def test_a_request_that_is_not_known_is_left_out() -> None:
    data = await archived(answer(sent=b""))
    assert [record.kind for record in records(data)] == ["response", "metadata"]


async def test_the_records_of_an_exchange_name_each_other_and_the_time_it_began() -> None:
    before = time.time()
    data = await archived(answer(body=b"x"))
    request, response, metadata = (record.fields for record in records(data))
    assert request["WARC-Concurrent-To"] == response["WARC-Record-ID"]
    assert metadata["WARC-Concurrent-To"] == response["WARC-Record-ID"]
    assert response["WARC-Concurrent-To"] == request["WARC-Record-ID"]
    assert len({fields["WARC-Date"] for fields in (request, response, metadata)}) == 1
    assert len({fields["WARC-Record-ID"] for fields in (request, response, metadata)}) == 3
    assert date(before) <= response["WARC-Date"] <= date(time.time())


# Metadata.


async def test_metadata_of_a_page_has_its_referrer_depth_and_links() -> None:
    links = (URL + "a", URL + "b", URL + "c")
    refused = (
        RejectedLink("https://other.test/", Reason.OTHER_SITE),
        RejectedLink("http://[ bad", Reason.BAD_URL),
    )
    anchors = {
        URL + "a": Anchor("a", "Über\r\noutlink: x \ud800"),
        URL + "b": Anchor("area"),
    }
    about = {"depth": 2, "referrer": URL + "from", "seconds": 0.1234}
    data = await archived(answer(), links=links, rejected=refused, anchors=anchors, **about)
    assert block("metadata", data).decode().split("\r\n") == [
        f"via: {URL}from",
        "hopsFromSeed: LL",
        "fetchTimeMs: 123",
        f"outlink: {URL}a L a/@href Über outlink: x ?",
        f"outlink: {URL}b L area/@href",
        f"outlink: {URL}c L",
        "outlink: https://other.test/ L",
        "",
    ]


@for_each("odd", ["\n", "\r", "\r\n", "\0", "\t", "\x85", "\u2028", "\x7f"])
async def test_no_text_of_a_link_makes_a_line_of_its_own(odd: str) -> None:
    anchors = {URL: Anchor("a", f"a{odd}via: b")}
    data = block("metadata", await archived(answer(), links=(URL,), anchors=anchors))
    assert data == f"fetchTimeMs: 0\r\noutlink: {URL} L a/@href a via: b\r\n".encode()


async def test_metadata_of_a_redirect_has_its_target() -> None:
    warc = Warc()
    await asked(warc, answer(302, [(b"Location", b"/b")]))
    data = warc.records(Redirect(URL, 302, URL + "b", seconds=1.0))
    expected = f"fetchTimeMs: 1000\r\noutlink: {URL}b R location\r\n"
    assert block("metadata", data).decode() == expected
