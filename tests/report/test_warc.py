"""A crawl's archive, read back by warcio and by fastwarc."""

from __future__ import annotations

import gzip
import subprocess
import sys
import threading
import time
from base64 import b32encode
from collections.abc import Callable
from hashlib import sha1
from io import BytesIO
from types import SimpleNamespace
from typing import Any, NamedTuple

import httpx
import pytest
import trio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sites.raw import chunked, raw_server, redirect, reply

from trio_crawler.crawler import Crawler
from trio_crawler.model import (
    Anchor,
    Failure,
    Fault,
    Job,
    Outcome,
    Page,
    Purpose,
    Reason,
    Redirect,
    Refused,
    Response,
    Skipped,
)
from trio_crawler.net.exchanges import LARGE, Exchange, Exchanges
from trio_crawler.net.fetch import ROBOTS_BYTES, HttpFetch
from trio_crawler.report import warc as warc_module
from trio_crawler.report.warc import Warc
from trio_crawler.testing import Web, html, robots

pytest.importorskip("warcio")
fastwarc = pytest.importorskip("fastwarc.warc")

URL = "http://site.test/"
SENT = b"GET / HTTP/1.1\r\nHost: site.test\r\nUser-Agent: me\r\n\r\n"
PROFILES = "http://netpreserve.org/warc/1.1/revisit/"


class Record(NamedTuple):
    """What fastwarc makes of a record."""

    kind: str
    fields: dict[str, str]
    status: int | None
    headers: list[tuple[str, str]]
    body: bytes

    @property
    def url(self) -> str:
        return self.fields.get("WARC-Target-URI", "")


def records(data: bytes) -> list[Record]:
    """Read an archive by fastwarc, which agrees with all its digests."""
    for record in fastwarc.ArchiveIterator(BytesIO(data), parse_http=False):
        assert record.verify_block_digest()
    found = []
    for record in fastwarc.ArchiveIterator(BytesIO(data), parse_http=True):
        if kind_of(record) == "response":
            assert record.verify_payload_digest()
        head = record.http_headers
        found.append(
            Record(
                kind_of(record),
                dict(record.headers),
                head.status_code if head is not None and kind_of(record) == "response" else None,
                [] if head is None else [*head.astuples()],
                record.reader.read(),
            )
        )
    return found


def kind_of(record: Any) -> str:
    kind: str = record.headers["WARC-Type"]
    return kind


def of_kind(kind: str, data: bytes) -> list[Record]:
    return [record for record in records(data) if record.kind == kind]


def only(kind: str, data: bytes) -> Record:
    (found,) = of_kind(kind, data)
    return found


def block(kind: str, data: bytes) -> bytes:
    """Return the whole block of the one record of a kind."""
    raw = fastwarc.ArchiveIterator(BytesIO(data), parse_http=False)
    (found,) = (record.reader.read() for record in raw if kind_of(record) == kind)
    return bytes(found)


def checks(data: bytes, tmp_path: Any) -> bool:
    """Tell whether `warcio check` finds no fault."""
    from warcio.checker import Checker

    path = tmp_path / "checked.warc.gz"
    path.write_bytes(data)
    verdict: int = Checker(SimpleNamespace(inputs=[str(path)], verbose=False)).process_all()
    return verdict == 0


def answer(
    status: int = 200,
    fields: list[tuple[bytes, bytes]] | None = None,
    body: bytes = b"",
    sent: bytes = SENT,
) -> Response:
    return Response(status, httpx.Headers(fields or []), body, sent)


async def asked(warc: Warc, response: Response | Fault, job: Job | None = None) -> None:
    """Let a fetch under the archive's eyes answer so."""

    async def fetch(job: Job) -> Response | Fault:
        await trio.lowlevel.checkpoint()
        return response

    await warc.recording(fetch)(job or Job(URL))


def page(response: Response, url: str = URL, **about: Any) -> Page:
    return Page(url, response.status, response.headers, response.body, **about)


async def archived(response: Response, warc: Warc | None = None, **about: Any) -> bytes:
    """Archive one page."""
    warc = warc or Warc()
    outcome = page(response, **about)
    await asked(warc, response, Job(outcome.url))
    return warc.records(outcome)


async def crawled(warc: Warc, fetch: Any, **options: Any) -> tuple[list[Outcome], bytes]:
    """Crawl, and archive all that comes."""
    outcomes, pieces = [], [warc.head()]
    async with Crawler([fetch.url], fetch=warc.recording(fetch), **options).outcomes() as found:
        async for outcome in found:
            outcomes.append(outcome)
            pieces.append(warc.records(outcome))
    return outcomes, b"".join([*pieces, warc.rest()])


# The block of a response.


@pytest.mark.parametrize(
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
    assert response.fields["WARC-Payload-Digest"] == _written(body)
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


@pytest.mark.parametrize("length", [b"5", b"4, 4", b"-4", b"four", b"4" * 30])
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


async def test_the_body_of_a_redirect_that_was_not_read_is_said_to_be_cut() -> None:
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


async def test_the_body_of_an_error_that_was_not_decoded_is_said_to_be_cut() -> None:
    data = await archived(answer(404, [(b"Content-Encoding", b"gzip")]))
    assert only("response", data).fields["WARC-Truncated"] == "unspecified"


async def test_a_page_that_lost_its_body_at_the_end_of_the_crawl_is_said_to_be_cut() -> None:
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
    assert _date(before) <= response["WARC-Date"] <= _date(time.time())


# Payloads that were archived before.


async def test_an_identical_payload_is_a_revisit_of_the_first(tmp_path: Any) -> None:
    warc = Warc()
    first = await archived(answer(body=b"same"), warc)
    second = await archived(answer(404, [(b"X", b"2")], b"same"), warc, url=URL + "b")
    third = await archived(answer(body=b"same"), warc, url=URL + "c")
    original, revisit = only("response", first), only("revisit", second)
    assert revisit.url == URL + "b"
    assert revisit.fields["WARC-Profile"] == PROFILES + "identical-payload-digest"
    assert revisit.fields["WARC-Refers-To-Target-URI"] == URL
    assert revisit.fields["WARC-Refers-To-Date"] == original.fields["WARC-Date"]
    assert revisit.fields["WARC-Truncated"] == "length"
    assert revisit.fields["WARC-Payload-Digest"] == original.fields["WARC-Payload-Digest"]
    assert block("revisit", second) == (
        b"HTTP/1.1 404 Not Found\r\nX: 2\r\nContent-Length: 4\r\n\r\n"
    )
    assert only("revisit", third).fields["WARC-Refers-To-Target-URI"] == URL
    assert checks(first + second + third, tmp_path)


async def test_a_payload_of_an_earlier_run_is_revisited() -> None:
    warc = Warc()
    warc.recall([(URL + "old", sha1(b"same").digest(), 1_700_000_000.25)])
    fields = only("revisit", await archived(answer(body=b"same"), warc)).fields
    assert fields["WARC-Refers-To-Target-URI"] == URL + "old"
    assert fields["WARC-Refers-To-Date"] == "2023-11-14T22:13:20.250000Z"


async def test_an_empty_payload_of_an_earlier_run_is_not_revisited() -> None:
    warc = Warc()
    warc.recall([(URL + "old", sha1(b"").digest(), 1_700_000_000.0)])
    assert only("response", await archived(answer(), warc)).body == b""


async def test_the_first_of_the_payloads_of_earlier_runs_counts(monkeypatch: Any) -> None:
    monkeypatch.setattr(warc_module, "MOST_REMEMBERED", 2)
    warc = Warc()
    same, other = sha1(b"same").digest(), sha1(b"other").digest()
    warc.recall([(URL + "1", same, 1.0), (URL + "2", other, 2.0), (URL + "3", same, 3.0)])
    fields = only("revisit", await archived(answer(body=b"same"), warc)).fields
    assert fields["WARC-Refers-To-Target-URI"] == URL + "1"


async def test_a_payload_that_was_cut_is_nobodys_original() -> None:
    warc = Warc()
    response = answer(503, [], b"busy")
    await asked(warc, response)
    warc.records(Page(URL, 503, response.headers, b""))
    data = await archived(response, warc, url=URL + "b")
    assert only("response", data).body == b"busy"


async def test_as_many_payloads_are_remembered_as_is_said(monkeypatch: Any) -> None:
    monkeypatch.setattr(warc_module, "MOST_REMEMBERED", 3)
    warc = Warc()
    for number in range(7):
        await archived(answer(body=b"%d" % number), warc, url=f"{URL}{number}")
    for number in (4, 5, 6):
        data = await archived(answer(body=b"%d" % number), warc, url=f"{URL}again{number}")
        assert of_kind("revisit", data), number
    assert of_kind("response", await archived(answer(body=b"0"), warc, url=URL + "again0"))
    assert "payloads>" in repr(warc)
    assert int(repr(warc).split()[-2]) <= 6


async def test_a_304_to_a_conditional_request_is_a_revisit(tmp_path: Any) -> None:
    sent = SENT[:-2] + b'If-None-Match: "a"\r\n\r\n'
    data = await archived(answer(304, [(b"ETag", b'"a"'), (b"Content-Length", b"9")], sent=sent))
    revisit = only("revisit", data)
    assert revisit.fields["WARC-Profile"] == PROFILES + "server-not-modified"
    assert revisit.fields["WARC-Refers-To-Target-URI"] == URL
    assert "WARC-Payload-Digest" not in revisit.fields
    assert block("revisit", data) == (
        b'HTTP/1.1 304 Not Modified\r\nETag: "a"\r\nContent-Length: 9\r\n\r\n'
    )
    assert checks(data, tmp_path)


async def test_a_304_that_nobody_asked_for_is_a_response() -> None:
    assert only("response", await archived(answer(304))).status == 304


# Metadata.


async def test_metadata_tells_what_the_crawl_knows_of_a_page() -> None:
    links = (URL + "a", URL + "b", URL + "c")
    refused = (
        Refused("https://other.test/", Reason.OTHER_SITE),
        Refused("http://[ bad", Reason.BAD_URL),
    )
    anchors = {
        URL + "a": Anchor("a", "Über\r\noutlink: x \ud800"),
        URL + "b": Anchor("area"),
    }
    about = {"depth": 2, "referrer": URL + "from", "seconds": 0.1234}
    data = await archived(answer(), links=links, refused=refused, anchors=anchors, **about)
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


@pytest.mark.parametrize("odd", ["\n", "\r", "\r\n", "\0", "\t", "\x85", "\u2028", "\x7f"])
async def test_no_text_of_a_link_makes_a_line_of_its_own(odd: str) -> None:
    anchors = {URL: Anchor("a", f"a{odd}via: b")}
    data = block("metadata", await archived(answer(), links=(URL,), anchors=anchors))
    assert data == f"fetchTimeMs: 0\r\noutlink: {URL} L a/@href a via: b\r\n".encode()


async def test_metadata_of_a_redirect_tells_where_it_leads() -> None:
    warc = Warc()
    await asked(warc, answer(302, [(b"Location", b"/b")]))
    data = warc.records(Redirect(URL, 302, URL + "b", seconds=1.0))
    expected = f"fetchTimeMs: 1000\r\noutlink: {URL}b R location\r\n"
    assert block("metadata", data).decode() == expected


# Which exchange it is.


async def test_of_several_tries_the_last_is_archived() -> None:
    warc = Warc()
    await asked(warc, answer(503, [], b"busy"))
    last = answer(200, [], b"here")
    await asked(warc, last)
    assert only("response", warc.records(page(last))).body == b"here"


async def test_a_url_that_failed_at_last_leaves_nothing() -> None:
    warc = Warc()
    await asked(warc, answer(503, [], b"busy"))
    await asked(warc, Fault(Reason.RESET))
    assert warc.records(Failure(URL, Reason.RESET)) == b""
    assert repr(warc).startswith("<Warc: 0 exchanges")


async def test_a_redirect_that_leads_nowhere_is_archived_with_its_body() -> None:
    warc = Warc()
    await asked(warc, answer(302, [], b"where to?"))
    data = warc.records(Failure(URL, Reason.BAD_LOCATION))
    assert only("response", data).body == b"where to?"


async def test_nothing_is_kept_of_an_outcome_that_is_dropped() -> None:
    warc = Warc()
    response = answer(body=b"x")
    await asked(warc, response)
    warc.drop(page(response))
    assert warc.records(page(response)) == b""


def test_an_outcome_of_an_earlier_run_has_no_records() -> None:
    warc = Warc()
    assert warc.records(page(answer(body=b"x"))) == b""
    assert warc.records(Skipped(URL, Reason.STOPPED)) == b""


async def test_what_is_asked_besides_pages_comes_once_with_the_next_outcome() -> None:
    warc = Warc()
    for path, purpose in (("robots.txt", Purpose.ROBOTS), ("map.xml", Purpose.SITEMAP)):
        await asked(warc, answer(body=path.encode()), Job(URL + path, purpose=purpose))
    await asked(warc, answer(body=b"probe"), Job(URL + "probe", purpose=Purpose.PROBE))
    data = await archived(answer(body=b"page"), warc)
    expected = [(URL + "robots.txt", b"robots.txt"), (URL + "map.xml", b"map.xml")]
    found = [(record.url, record.body) for record in of_kind("response", data)]
    assert found == [*expected, (URL, b"page")]
    assert len(of_kind("request", data)) == 3
    assert warc.rest() == b""


async def test_a_large_sitemap_waits_for_the_next_outcome_compressed() -> None:
    warc = Warc()
    body = b"<loc>http://site.test/page</loc>" * 100_000
    await asked(warc, answer(body=body), Job(URL + "map.xml", purpose=Purpose.SITEMAP))
    data = warc.rest()
    assert len(data) < len(body) / 20
    assert only("response", data).body == body


async def test_only_a_large_errand_is_encoded_in_a_thread() -> None:
    threads = []

    def encode(exchange: Exchange) -> bytes:
        threads.append(threading.current_thread())
        return exchange.body[:1]

    exchanges = Exchanges(encode)
    for letter, size in ((b"a", LARGE - 1), (b"b", LARGE)):
        sitemap = Job(URL + "map.xml", purpose=Purpose.SITEMAP)
        await exchanges.keep(sitemap, answer(body=letter * size), 0.0)
    assert exchanges.errands() == b"ab"
    assert [thread is threading.main_thread() for thread in threads] == [True, False]


# The file.


async def test_a_recording_fetch_has_the_name_of_its_own() -> None:
    async with HttpFetch(user_agent="Named/1.0") as fetch:
        assert Warc().recording(fetch).user_agent == "Named/1.0"
    assert not hasattr(Warc().recording(Web({})), "user_agent")


def test_the_file_begins_by_saying_what_made_it() -> None:
    warc = Warc(software="mine/1", seeds=["http://me:pw@a.test/", "http://b.test/"])
    lines = block("warcinfo", warc.head()).decode().split("\r\n")
    assert lines[:2] == ["software: mine/1", "format: WARC File Format 1.1"]
    assert lines[3:] == ["seed: http://a.test/", "seed: http://b.test/", ""]


async def test_each_record_is_a_gzip_member_of_its_own() -> None:
    data = await archived(answer(body=b"x" * 5_000))
    assert data.count(b"\x1f\x8b\x08") == 3
    for start in (0, data.index(b"\x1f\x8b\x08", 1)):
        assert gzip.decompress(data[start:]).startswith(b"WARC/1.1\r\n")


async def test_a_plain_file_is_read_as_well(tmp_path: Any) -> None:
    data = await archived(answer(body=b"plain"), Warc(gzip=False))
    assert data.startswith(b"WARC/1.1\r\nWARC-Type: request\r\n")
    assert only("response", data).body == b"plain"
    assert checks(data, tmp_path)


async def test_every_piece_after_another_leaves_a_whole_file(tmp_path: Any) -> None:
    site = {f"/{number}": html(f"/{number + 1}") for number in range(12)}
    web = Web({"/": html("/0"), "/robots.txt": robots("User-agent: *"), **site})
    warc = Warc()
    pieces = [warc.head()]
    async with Crawler([web.url], fetch=warc.recording(web)).outcomes() as outcomes:
        async for outcome in outcomes:
            pieces.append(warc.records(outcome))
    for number in range(1, len(pieces) + 1):
        data = b"".join(pieces[:number])
        assert checks(data, tmp_path)
        # Of each outcome a response and metadata, of robots.txt one, and what begins the file.
        assert len(records(data)) == 2 * number - (number == 1)


async def test_a_crawl_over_sockets_is_archived_whole(tmp_path: Any) -> None:
    home = b"".join(b'<a href="/%s">x</a>' % name for name in SITE)
    site: dict[str, bytes] = {
        "/robots.txt": reply(200, {"Content-Type": "text/plain"}, b"User-agent: *\n"),
        "/": reply(200, {"Content-Type": "text/html"}, home),
        **{f"/{name.decode()}": answered for name, answered in SITE.items()},
    }
    async with raw_server(site) as server:
        own = {"headers": {"X-Key": "opensesame"}, "auth": ("me", "opensesame")}
        async with HttpFetch(seeds=[server.url], **own) as fetch:
            warc = Warc(seeds=[server.url])
            fetch.url = server.url  # type: ignore[attr-defined]
            outcomes, data = await crawled(warc, fetch)
    assert checks(data, tmp_path)
    answered = of_kind("response", data) + of_kind("revisit", data)
    assert sorted(record.url for record in answered) == sorted(
        server.url.rstrip("/") + target for target in server.targets
    )
    bodies = {record.url: record.body for record in of_kind("response", data)}
    pages = [outcome for outcome in outcomes if isinstance(outcome, Page)]
    assert len(pages) == 9
    same = only("revisit", data).url
    for outcome in pages:
        assert outcome.url == same or bodies[outcome.url] == outcome.body, outcome.url
    assert b"opensesame" not in b"".join(record.body for record in records(data))
    for record in of_kind("request", data):
        assert {name for name, _ in record.headers} <= {
            *("Host", "User-Agent", "Accept", "Accept-Encoding")
        }
    assert repr(warc).startswith("<Warc: 0 exchanges")


SITE = {
    b"gzip": reply(200, {"Content-Encoding": "gzip"}, gzip.compress(b"zipped")),
    b"chunked": reply(200, {"Transfer-Encoding": "chunked"}, chunked(b"a", b"bc")),
    b"empty": reply(200),
    b"bytes": reply(200, {"Content-Type": "image/x"}, bytes(range(256)) * 40),
    b"twin": reply(200, {"Content-Type": "image/x"}, bytes(range(256)) * 40),
    b"error": reply(404, {"Content-Encoding": "gzip"}, gzip.compress(b"gone")),
    b"odd": b"HTTP/1.1 200 Fine\r\nX-Odd: \xff\xe9\r\nContent-Length: 3\r\n\r\nodd",
    b"none": reply(204),
    b"away": redirect("/gzip"),
    b"nowhere": reply(302, {}, b"where to?"),
}


def test_warcio_itself_is_not_imported_before_it_is_needed() -> None:
    code = (
        "import sys, trio_crawler, trio_crawler.report.warc as warc\n"
        "assert 'warcio' not in sys.modules\n"
        "warc.Warc()\n"
        "assert 'warcio' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_file_passes_warcio_check(tmp_path: Any) -> None:
    path = tmp_path / "site.warc.gz"

    async def write() -> None:
        warc = Warc()
        path.write_bytes(warc.head() + await archived(answer(body=b"x" * 9_000), warc))

    trio.run(write)
    code = "import sys; from warcio.cli import main; sys.exit(main(sys.argv[1:]))"
    check = [sys.executable, "-c", code, "check", "-v", str(path)]
    run = subprocess.run(check, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stdout.count("digest pass") == 4


def test_a_missing_package_is_named_with_a_remedy(monkeypatch: Any) -> None:
    def find_spec(name: str, found: Callable[[str], Any] | None = None) -> None:
        return None

    monkeypatch.setattr("trio_crawler.net.proxies.find_spec", find_spec)
    with pytest.raises(ValueError, match=r"pip install 'trio-crawler\[warc\]'"):
        Warc()


_TEXT = st.text(st.characters(exclude_categories=()), max_size=20)
_VALUE = st.binary(max_size=30)
_NAME = st.sampled_from(
    [b"Content-Length", b"content-encoding", b"Transfer-Encoding", b"X-A", b"Set-Cookie", b"!#"]
)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    status=st.integers(200, 999),
    fields=st.lists(st.tuples(_NAME, _VALUE | st.sampled_from([b"0", b"3", b"gzip"])), max_size=6),
    body=st.binary(max_size=100),
    sent=st.binary(max_size=50),
    links=st.lists(_TEXT, max_size=4),
    text=_TEXT,
    referrer=_TEXT,
)
def test_whatever_comes_is_archived_and_read_back(
    tmp_path: Any,
    status: int,
    fields: list[tuple[bytes, bytes]],
    body: bytes,
    sent: bytes,
    links: list[str],
    text: str,
    referrer: str,
) -> None:
    sent = b"GET / HTTP/1.1\r\n" + sent
    anchors = {link: Anchor("a", text) for link in links[::2]}
    refused = tuple(Refused(link, Reason.BAD_URL) for link in links[1:])

    async def archive() -> bytes:
        about = {"links": tuple(links[:1]), "refused": refused, "anchors": anchors}
        return await archived(answer(status, fields, body, sent), referrer=referrer, **about)

    data = trio.run(archive)
    assert checks(data, tmp_path)
    found = records(data)
    assert [record.kind for record in found][::2] == ["request", "metadata"]
    if found[1].kind == "response":
        assert found[1].body == body
    lines = block("metadata", data).decode().split("\r\n")
    assert {line.partition(":")[0] for line in lines} <= {"via", "fetchTimeMs", "outlink", ""}


def _written(body: bytes) -> str:
    return "sha1:" + b32encode(sha1(body).digest()).decode()


def _date(moment: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(moment)) + f".{moment % 1:.6f}"[2:]
