"""WARC: a crawl as an archive (ISO 28500:2017, WARC 1.1)."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from trio_crawler._version import __version__
from trio_crawler.model import Failure, Fetch, Outcome, Page, Redirect, Skipped
from trio_crawler.net.recorder import Exchange, Exchanges, Recording
from trio_crawler.net.request import several
from trio_crawler.page.urls import without_userinfo
from trio_crawler.report.warc.blocks import (
    metadata_block,
    request_block,
    response_head,
    truncation,
    warcinfo_block,
)

SOFTWARE = f"trio_crawler/{__version__}"
LEVEL = 3
"""How hard zlib tries: ▶ 0.36 ms and 28 % of its bytes for a page of 46 KB, 0.83 and 25 at 6."""

MOST_REMEMBERED = 100_000
"""Payloads that are remembered at least, and half of the most that are."""

_PROFILE = "http://netpreserve.org/warc/1.1/revisit/"


class Warc:
    """Make the records of a crawl, of which each URL's stand together.

    ::

        crawler = Crawler(seeds, fetch=warc.recording(fetch))
        with open("site.warc.gz", "wb") as file:
            file.write(warc.head())
            async with crawler.outcomes() as outcomes:
                async for outcome in outcomes:
                    file.write(warc.records(outcome))
            file.write(warc.rest())

    Each outcome has to be given to `records` or `drop`: until then the head of what was answered
    is kept. Any number of pieces written one after the other are a WARC file; with `gzip` each
    record is compressed by itself, for readers that jump to one.

    A response is archived with its body as the crawl has it, content-decoded; a field that tells
    of another body is renamed (`X-Crawl-Content-Encoding`). Of a request only the fields stay that
    a crawl sends by itself: any other may be a credential.

    An identical payload that is among the last 100,000 (for sure) is a `revisit` of the first
    one, and so is the answer 304 to a conditional request.
    """

    def __init__(
        self, *, software: str = SOFTWARE, seeds: Iterable[str] = (), gzip: bool = True
    ) -> None:
        # It brings warcio, which only who writes an archive pays for.
        from trio_crawler.report.warc import records

        self._software = software
        self._seeds = tuple(map(without_userinfo, several(seeds, "seeds")))
        self._tools = records
        self._record = records.Records(gzip=gzip, level=LEVEL)
        self._exchanges = Exchanges(self._errand)
        self._archived = _Archived()

    def __repr__(self) -> str:
        return f"<Warc: {len(self._exchanges)} exchanges wait, {len(self._archived)} payloads>"

    def recording(self, fetch: Fetch) -> Recording:
        """Return a fetch that asks by `fetch` and keeps what is to be archived.

        It has the same `user_agent`. `fetch` stays the caller's to close.
        """
        return Recording(fetch, self._exchanges)

    def recall(self, bodies: Iterable[tuple[str, bytes, float]]) -> None:
        """Take the payloads archived in earlier runs: URL, SHA-1 (20 bytes), Unix time.

        They have to stand in the same archive, as nobody else knows where to find them.
        """
        for url, digest, began in bodies:
            self._archived.add(digest, url, began)

    def head(self) -> bytes:
        """Return the record with which a file begins."""
        block = warcinfo_block(self._software, self._seeds)
        fields = {"WARC-Record-ID": self._tools.new_id(), "WARC-Date": _now()}
        return self._record("warcinfo", fields, block)

    def records(self, outcome: Outcome) -> bytes:
        """Return the records of one outcome, after those of `rest`; call it in any thread.

        They are request, response or revisit, and metadata. There are none of what was not
        answered, nor of an outcome of an earlier run.
        """
        exchange = self._exchanges.take(outcome.url)
        rest = self.rest()
        if exchange is None or isinstance(outcome, Skipped):
            return rest
        return rest + self._capture(outcome, exchange)

    def rest(self) -> bytes:
        """Return the records of robots.txt files and sitemaps that came since the last call.

        What comes after the last outcome is only had by this.
        """
        return self._exchanges.errands()

    def drop(self, outcome: Outcome) -> None:
        """Forget what was kept for an outcome that is not to be archived."""
        self._exchanges.take(outcome.url)

    def _capture(self, outcome: Page | Redirect | Failure, exchange: Exchange) -> bytes:
        body = outcome.body if isinstance(outcome, Page) else exchange.body
        digest = self._tools.digest_of(body)
        truncated = truncation(exchange, len(body))
        first = self._archived.first(digest) if body else None
        if first is None:
            self._archived.add(digest, exchange.url, exchange.began)
        fields = _not_modified(exchange) or (_revisit(first) if first else {})
        if not fields and truncated:
            fields = {"WARC-Truncated": truncated}
        return self._records(exchange, body, digest, fields, metadata_block(outcome))

    def _errand(self, exchange: Exchange) -> bytes:
        body = exchange.body
        fields = _not_modified(exchange)
        if truncated := truncation(exchange, len(body)):
            fields = {"WARC-Truncated": truncated}
        return self._records(exchange, body, self._tools.digest_of(body), fields)

    def _records(
        self,
        exchange: Exchange,
        body: bytes,
        digest: bytes,
        fields: dict[str, str],
        metadata: bytes | None = None,
    ) -> bytes:
        """Write what belongs together; `fields` tell how the response differs from a plain one."""
        about = {"WARC-Target-URI": exchange.url, "WARC-Date": _date(exchange.began)}
        asked, answered = self._tools.new_id(), self._tools.new_id()
        with_answer = about | {"WARC-Concurrent-To": answered}
        with_request = about | ({"WARC-Concurrent-To": asked} if exchange.request else {})
        pieces = []
        if exchange.request:
            block = request_block(exchange.request)
            pieces.append(self._record("request", {"WARC-Record-ID": asked} | with_answer, block))
        kind = "revisit" if "WARC-Profile" in fields else "response"
        fields = {"WARC-Record-ID": answered} | with_request | fields
        if not fields.get("WARC-Profile", "").endswith("not-modified"):
            fields["WARC-Payload-Digest"] = self._tools.written(digest)
        head = response_head(exchange, len(body))
        pieces.append(self._record(kind, fields, head, body))
        if metadata is not None:
            named = {"WARC-Record-ID": self._tools.new_id()} | with_answer
            pieces.append(self._record("metadata", named, metadata))
        return b"".join(pieces)


class _Archived:
    """Remember where payloads stand, the last MOST_REMEMBERED of them for sure."""

    def __init__(self) -> None:
        # Two generations: a dict that loses its first entry again and again becomes slow.
        self._young: dict[bytes, tuple[str, float]] = {}
        self._old: dict[bytes, tuple[str, float]] = {}

    def __len__(self) -> int:
        return len(self._young) + len(self._old)

    def first(self, digest: bytes) -> tuple[str, float] | None:
        """Return the URL and the Unix time of the first payload with this digest."""
        return self._young.get(digest) or self._old.get(digest)

    def add(self, digest: bytes, url: str, began: float) -> None:
        """Remember a payload, unless it was met before."""
        if digest in self._old:
            return
        self._young.setdefault(digest, (url, began))
        if len(self._young) >= MOST_REMEMBERED:
            self._old, self._young = self._young, {}


def _revisit(first: tuple[str, float]) -> dict[str, str]:
    url, began = first
    return {
        "WARC-Profile": _PROFILE + "identical-payload-digest",
        "WARC-Refers-To-Target-URI": url,
        "WARC-Refers-To-Date": _date(began),
        # WARC 1.1, 6.7.2: so much is left out.
        "WARC-Truncated": "length",
    }


def _not_modified(exchange: Exchange) -> dict[str, str]:
    """Return the fields of an answer that stands for an earlier one, none for any other."""
    sent = exchange.request.lower()
    if exchange.status != 304 or (sent and b"\nif-" not in sent):
        return {}
    return {
        "WARC-Profile": _PROFILE + "server-not-modified",
        "WARC-Refers-To-Target-URI": exchange.url,
    }


def _now() -> str:
    return _date(datetime.now(UTC).timestamp())


def _date(moment: float) -> str:
    """Write a Unix time as WARC 1.1 has it, to the microsecond."""
    return f"{datetime.fromtimestamp(moment, UTC):%Y-%m-%dT%H:%M:%S.%fZ}"
