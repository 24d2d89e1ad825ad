"""Bodies that are not read whole: cut at the limit, or left after the head because of a type."""

from __future__ import annotations

import gzip
from typing import Any

import httpx
import pytest
import trio
from cases import for_each
from sites.raw import Handler, Request, chunked, raw_server, reply

from trio_crawler.model import Fault, Job, Purpose, Reason, Response
from trio_crawler.net.fetch import HttpFetch
from trio_crawler.net.fetcher import SMALL_BYTES, Fetcher
from trio_crawler.net.httpx_fetch import HttpxFetch

KIB, MIB = 1024, 1024 * 1024
IMAGE = b"HTTP/1.1 200 OK\r\nContent-Type: image/png\r\n"


class Sent:
    """A server of one body without end, which counts the bytes that it could send."""

    def __init__(self, head: bytes) -> None:
        self.head = head
        self.bytes = 0
        self.ended = trio.Event()

    async def __call__(self, request: Request, stream: trio.abc.Stream) -> None:
        piece = bytes(16 * KIB)
        try:
            await stream.send_all(self.head)
            while True:
                await stream.send_all(piece)
                self.bytes += len(piece)
        finally:
            self.ended.set()


async def fetched(site: Any, kind: str = "wire", **given: Any) -> Response:
    async with raw_server(site) as server, httpx.AsyncClient(trust_env=False) as client:
        parts = {"bodies": False, "timeout": 20, **given}
        fetch: Fetcher = HttpxFetch(client, **parts)
        if kind == "wire":
            fetch = HttpFetch(seeds=[server.url], **parts)
        async with fetch:
            answer = await fetch(Job(server.url + "x"))
            if isinstance(site, Sent):
                await site.ended.wait()
    assert isinstance(answer, Response), answer
    return answer


ENDLESS = {
    "without a length": IMAGE + b"\r\n",
    "with a length": IMAGE + b"Content-Length: 1000000000000\r\n\r\n",
    "in gzip": IMAGE + b"Content-Encoding: gzip\r\n\r\n",
    "of an error": IMAGE.replace(b"200", b"404") + b"\r\n",
}


@for_each("head", ENDLESS.values(), ids=ENDLESS)
@for_each("kind", ["wire", "client"])
async def test_a_body_that_nothing_reads_is_left_after_the_head(kind: str, head: bytes) -> None:
    site = Sent(head)
    answer = await fetched(site, kind)
    assert (answer.body, answer.flaw) == (b"", Reason.NOT_READ)
    # What the buffers of two sockets hold, although nobody reads it.
    assert site.bytes <= 8 * MIB


async def test_of_a_body_that_nothing_reads_at_most_64_kib_are_received() -> None:
    site = Sent(IMAGE + b"\r\n")
    async with (
        raw_server(site) as server,
        HttpFetch(seeds=[server.url], bodies=False) as fetch,
    ):
        await fetch(Job(server.url))
        wire = fetch.statistics().wire
        await site.ended.wait()
    assert wire is not None
    assert (wire.open, wire.bytes_in <= 64 * KIB) == (0, True)
    assert fetch.statistics().bytes == 0


@pytest.mark.parametrize(
    ("size", "kept"), [(0, True), (SMALL_BYTES, True), (SMALL_BYTES + 1, False)]
)
async def test_a_body_of_64_kib_is_read_to_keep_the_connection(size: int, kept: bool) -> None:
    site = {"/a": reply(200, {"Content-Type": "image/png"}, bytes(size)), "/b": reply()}
    async with (
        raw_server(site) as server,
        HttpFetch(seeds=[server.url], bodies=False) as fetch,
    ):
        answer = await fetch(Job(server.url + "a"))
        await fetch(Job(server.url + "b"))
    assert isinstance(answer, Response)
    assert (len(answer.body), answer.flaw) == ((size, None) if kept else (0, Reason.NOT_READ))
    # A longer body that came with its head is drained, and the connection kept all the same.
    assert server.connections in ((1,) if kept else (1, 2))


READ = ["text/html", "application/xhtml+xml", "text/plain", "application/rss+xml", "text/css"]
READ += ["image/svg+xml", "application/json", "application/xml; a=b", "", "unknown/unknown"]
READ += ["TEXT/HTML", "no type", "text/html, image/png"]


@for_each("kind", READ)
async def test_a_body_that_may_be_read_comes_whole(kind: str) -> None:
    body = b"<p>" + bytes(100_000)
    fields = {"Content-Type": kind} if kind else {}
    answer = await fetched({"/x": reply(200, fields, body)})
    assert (answer.body, answer.flaw) == (body, None)


@for_each(
    "kind, disposition, flaw",
    [
        ("text/csv", "attachment", Reason.NOT_READ),
        ("text/csv", 'ATTACHMENT ; filename="a.csv"', Reason.NOT_READ),
        ("", "attachment", Reason.NOT_READ),
        ("application/xml", "attachment;filename=a", Reason.NOT_READ),
        ("text/csv", "inline; filename=attachment", None),
        ("text/csv", "", None),
        ("text/html", "attachment", None),
        ("application/xhtml+xml", "attachment", None),
    ],
)
async def test_a_download_that_is_not_html_is_left_after_the_head(
    kind: str, disposition: str, flaw: Reason | None
) -> None:
    fields = {"Content-Type": kind} if kind else {}
    answer = reply(200, {**fields, "Content-Disposition": disposition}, bytes(100_000))
    assert (await fetched({"/x": answer})).flaw is flaw
    assert (await fetched({"/x": answer}, bodies=True)).flaw is None


@for_each("purpose", [Purpose.ROBOTS, Purpose.SITEMAP])
@for_each("kind", ["application/octet-stream", "application/gzip", "image/png"])
async def test_a_robots_file_or_sitemap_of_any_type_comes_whole(
    purpose: Purpose, kind: str
) -> None:
    body = b"# " + b"x" * 100_000
    site = {"/x": reply(200, {"Content-Type": kind}, body)}
    async with (
        raw_server(site) as server,
        HttpFetch(seeds=[server.url], bodies=False) as fetch,
    ):
        answer = await fetch(Job(server.url + "x", purpose=purpose))
    assert isinstance(answer, Response)
    assert (answer.body, answer.flaw) == (body, None)


@pytest.mark.parametrize("kind", ["wire", "client"])
async def test_a_redirect_of_any_type_stays_a_redirect(kind: str) -> None:
    fields = {"Content-Type": "image/png", "Location": "/y", "Content-Length": "100000000"}
    answer = await fetched({"/x": reply(302, fields)}, kind)
    assert (answer.status, answer.body, answer.flaw) == (302, b"", None)


SIZES = [(999, None), (1000, None), (1001, Reason.TOO_LARGE), (300_000, Reason.TOO_LARGE)]


@pytest.mark.parametrize(("size", "flaw"), SIZES)
@pytest.mark.parametrize("coding", ["identity", "gzip", "chunked"])
@pytest.mark.parametrize("kind", ["wire", "client"])
async def test_a_body_is_cut_at_the_limit_to_the_byte(
    kind: str, coding: str, size: int, flaw: Reason | None
) -> None:
    body = bytes(number % 251 for number in range(size))
    fields, sent = {"Content-Type": "text/html"}, body
    if coding == "gzip":
        fields["Content-Encoding"], sent = "gzip", gzip.compress(body, mtime=0)
    if coding == "chunked":
        fields["Transfer-Encoding"], sent = "chunked", chunked(body[:500], body[500:])
    answer = await fetched({"/x": reply(200, fields, sent)}, kind, max_bytes=1000, bodies=True)
    assert (answer.body, answer.flaw) == (body[:1000], flaw)


async def test_a_body_that_ends_too_early_is_incomplete_even_at_the_limit() -> None:
    async def site(request: Request, stream: trio.abc.Stream) -> None:
        await stream.send_all(reply(200, {"Content-Length": "1001"}) + bytes(1000))
        await stream.aclose()

    handler: Handler = site
    async with (
        raw_server(handler) as server,
        HttpFetch(seeds=[server.url], max_bytes=1000) as fetch,
    ):
        answer = await fetch(Job(server.url))
    assert isinstance(answer, Fault)
    assert answer.reason is Reason.INCOMPLETE
