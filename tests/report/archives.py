"""Archives to look at, read back by fastwarc and checked by warcio."""

from __future__ import annotations

import time
from base64 import b32encode
from hashlib import sha1
from io import BytesIO
from types import SimpleNamespace
from typing import Any, NamedTuple

import httpx
import pytest
import trio

from trio_crawler.crawler import Crawler
from trio_crawler.model import Fault, Job, Outcome, Page, Response
from trio_crawler.report.warc_archive import Warc

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
    """Whether `warcio check` finds no fault."""
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
    """Make one request through the archive, with this response."""

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


def written(body: bytes) -> str:
    return "sha1:" + b32encode(sha1(body).digest()).decode()


def date(moment: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(moment)) + f".{moment % 1:.6f}"[2:]
