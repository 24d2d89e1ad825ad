"""A crawl's archive: which exchanges are in it, and that it is a whole file."""

from __future__ import annotations

import gzip
import threading
from typing import Any

import trio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from report.archives import (
    URL,
    answer,
    archived,
    asked,
    block,
    checks,
    crawled,
    of_kind,
    only,
    page,
    records,
)
from sites.raw import chunked, raw_server, redirect, reply

from trio_crawler.crawler import Crawler
from trio_crawler.model import (
    Anchor,
    Failure,
    Fault,
    Job,
    Page,
    Purpose,
    Reason,
    RejectedLink,
    Skipped,
)
from trio_crawler.net.fetch import HttpFetch
from trio_crawler.net.wrapping import LARGE, Exchange, Recorder
from trio_crawler.report.warc_archive import Warc
from trio_crawler.testing import Web, html, robots

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


def test_an_outcome_of_an_earlier_run_has_no_records() -> None:
    warc = Warc()
    assert warc.records(page(answer(body=b"x"))) == b""
    assert warc.records(Skipped(URL, Reason.STOPPED)) == b""


async def test_robots_txt_and_sitemaps_are_archived_once_with_the_next_outcome() -> None:
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

    exchanges = Recorder(encode)
    for letter, size in ((b"a", LARGE - 1), (b"b", LARGE)):
        sitemap = Job(URL + "map.xml", purpose=Purpose.SITEMAP)
        await exchanges.record(sitemap, answer(body=letter * size), 0.0)
    assert exchanges.pop_encoded() == b"ab"
    assert [thread is threading.main_thread() for thread in threads] == [True, False]


# The file.


async def test_a_recording_fetch_has_the_name_of_its_own() -> None:
    async with HttpFetch(user_agent="Named/1.0") as fetch:
        assert Warc().recording(fetch).user_agent == "Named/1.0"
    assert not hasattr(Warc().recording(Web({})), "user_agent")


async def test_an_archive_leaves_the_lookup_of_names_to_the_fetch():
    async with HttpFetch() as fetch:
        assert Warc().recording(fetch).lookup == fetch.lookup
    assert not hasattr(Warc().recording(Web({})), "lookup")


def test_a_recording_fetch_has_the_random_numbers_of_the_other() -> None:
    web = Web({})
    assert Warc().recording(web).random is web.random
    assert not hasattr(Warc().recording(web.__call__), "random")


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
    b"gzip": reply(200, {"Content-Encoding": "gzip"}, gzip.compress(b"zipped", mtime=0)),
    b"chunked": reply(200, {"Transfer-Encoding": "chunked"}, chunked(b"a", b"bc")),
    b"empty": reply(200),
    b"bytes": reply(200, {"Content-Type": "image/x"}, bytes(range(256)) * 40),
    b"twin": reply(200, {"Content-Type": "image/x"}, bytes(range(256)) * 40),
    b"error": reply(404, {"Content-Encoding": "gzip"}, gzip.compress(b"gone", mtime=0)),
    b"odd": b"HTTP/1.1 200 Fine\r\nX-Odd: \xff\xe9\r\nContent-Length: 3\r\n\r\nodd",
    b"none": reply(204),
    b"away": redirect("/gzip"),
    b"nowhere": reply(302, {}, b"where to?"),
}


_TEXT = st.text(st.characters(exclude_categories=()), max_size=20)
_VALUE = st.binary(max_size=30)
_NAME = st.sampled_from(
    [b"Content-Length", b"content-encoding", b"Transfer-Encoding", b"X-A", b"Set-Cookie", b"!#"]
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
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
    refused = tuple(RejectedLink(link, Reason.BAD_URL) for link in links[1:])

    async def archive() -> bytes:
        about = {"links": tuple(links[:1]), "rejected": refused, "anchors": anchors}
        return await archived(answer(status, fields, body, sent), referrer=referrer, **about)

    data = trio.run(archive)
    assert checks(data, tmp_path)
    found = records(data)
    assert [record.kind for record in found][::2] == ["request", "metadata"]
    if found[1].kind == "response":
        assert found[1].body == body
    lines = block("metadata", data).decode().split("\r\n")
    assert {line.partition(":")[0] for line in lines} <= {"via", "fetchTimeMs", "outlink", ""}
