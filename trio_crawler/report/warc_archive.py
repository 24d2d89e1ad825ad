"""The archive of a crawl as WARC 1.1 records (ISO 28500:2017)."""

from __future__ import annotations

import re
import zlib
from collections import OrderedDict
from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime
from hashlib import sha1
from http import HTTPStatus
from uuid import uuid4

import httpx

from trio_crawler._version import __version__
from trio_crawler.arguments import (
    check_flag,
    check_function,
    check_iterable,
    check_kind,
    check_whole,
    public,
)
from trio_crawler.model import (
    Checked,
    Failure,
    Fetch,
    Outcome,
    Page,
    Purpose,
    Reason,
    Redirect,
    Skipped,
)
from trio_crawler.net.wrapping import Exchange, Recorder, recording
from trio_crawler.page.urls import url_texts, without_userinfo
from trio_crawler.policy.robots import MAX_BYTES as ROBOTS_BYTES
from trio_crawler.reason import NOT_WHOLE

SOFTWARE = f"trio_crawler/{__version__}"
ZLIB_LEVEL = 3
"""▶ A page of 46 KB takes 0.36 ms and shrinks to 28 %; at level 6 it takes 0.83 ms, to 25 %."""

MAX_REMEMBERED = 100_000
"""The default of the payloads that an archive remembers."""

_PROFILE = "http://netpreserve.org/warc/1.1/revisit/"
_MEDIA = {
    "warcinfo": "application/warc-fields",
    "metadata": "application/warc-fields",
    "revisit": "application/http; msgtype=response",
}
_BASE32 = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
_PAIRS = [first + second for first in _BASE32 for second in _BASE32]


@public("trio_crawler.report")
class Warc:
    """An encoder for the WARC records of a crawl; the records of one URL are adjacent.

    ::

        crawler = Crawler(seeds, fetch=warc.recording(fetch))
        with open("site.warc.gz", "wb") as file:
            file.write(warc.head())
            async with crawler.outcomes() as outcomes:
                async for outcome in outcomes:
                    file.write(warc.records(outcome))
            file.write(warc.rest())

    `software` is the name in the record about the archive. Pass each outcome to `records`: until
    then the head of its response is kept in memory. The returned pieces, concatenated, are a WARC
    file; with `gzip` each record is compressed separately, so that a reader can seek to it.

    A response is archived with its content-decoded body; headers that do not match that body are
    renamed (`X-Crawl-Content-Encoding`). A request is archived only with the headers that a crawl
    sends by itself, since any other may be a credential.

    A payload that is identical to an earlier one becomes a `revisit` of that one; the last
    `max_remembered` payloads are compared. A 304 response to a conditional request becomes a
    `revisit` too, without the head of that response: so archives replay the page that was found
    unchanged. It has the digest and the date of the validator.

    >>> web, warc = Web({"/": html()}), Warc(gzip=False)
    >>> async def archive() -> bytes:
    ...     async with Crawler([web.url], fetch=warc.recording(web)).outcomes() as outcomes:
    ...         records = b"".join([warc.records(outcome) async for outcome in outcomes])
    ...     return warc.head() + records + warc.rest()
    >>> trio.run(archive).count(b"WARC-Type: response")  # that of robots.txt, too
    2
    """

    def __init__(
        self,
        *,
        software: str = SOFTWARE,
        seeds: Iterable[str | httpx.URL] = (),
        gzip: bool = True,
        max_remembered: int = MAX_REMEMBERED,
    ) -> None:
        check_kind("software", software, str, "a name and version as a str")
        check_flag("gzip", gzip)
        check_whole("max_remembered", max_remembered, least=1)
        self._software = software
        self._seeds = tuple(map(without_userinfo, url_texts("seeds", seeds)))
        self._gzip = gzip
        self._exchanges = Recorder(self._capture)
        # By the digest of a payload the first URL and time.
        self._payloads: OrderedDict[bytes, tuple[str, float]] = OrderedDict()
        self._max_remembered = max_remembered

    def __repr__(self) -> str:
        return f"<Warc: {len(self._exchanges)} exchanges wait, {len(self._payloads)} payloads>"

    def recording(self, fetch: Fetch) -> Fetch:
        """Return a fetch that calls `fetch` and records its exchanges for the archive.

        It has the same `user_agent`, `random`, `cookies_for`, `sends_credentials`, and `lookup`.
        The caller closes `fetch`.
        """
        check_function("fetch", fetch, "an async function from a Job to a Response or Fault")
        return recording(fetch, self._exchanges)

    def restore(self, bodies: Iterable[tuple[str, bytes, float]]) -> None:
        """Record the `bodies` archived by earlier runs: URL, SHA-1 (20 bytes), Unix time.

        They must be in the same archive: a revisit record does not name another one.
        """
        check_iterable("bodies", bodies, "(URL, SHA-1, time)")
        for url, digest, began in bodies:
            self._remember(digest, url, began)

    def head(self) -> bytes:
        """Return the warcinfo record, with which a file begins."""
        block = warcinfo_block(self._software, self._seeds)
        fields = {"WARC-Record-ID": _new_id(), "WARC-Date": _date(datetime.now(UTC).timestamp())}
        return self._record("warcinfo", fields, block)

    def records(self, outcome: Outcome) -> bytes:
        """Return the records of one outcome, after those of `rest`; any thread may call it.

        These are a request, a response or revisit, and metadata. There are none for a URL without
        a response or that was only checked, and none for an outcome of an earlier run.
        """
        check_kind("outcome", outcome, Outcome, "an outcome")
        exchange = self._exchanges.pop(outcome.url, outcome.again)
        rest = self.rest()
        if exchange is None or isinstance(outcome, Skipped | Checked):
            return rest
        return rest + self._capture(exchange, outcome)

    def rest(self) -> bytes:
        """Return the records of robots.txt files and sitemaps fetched since the last call.

        Call it after the last outcome, too: `records` returns only those fetched before.
        """
        return self._exchanges.pop_encoded()

    def _remember(self, digest: bytes, url: str, began: float) -> None:
        """Record a payload, unless it is known already; the oldest one is forgotten."""
        self._payloads.setdefault(digest, (url, began))
        if len(self._payloads) > self._max_remembered:
            self._payloads.popitem(last=False)

    def _capture(
        self, exchange: Exchange, outcome: Page | Redirect | Failure | None = None
    ) -> bytes:
        """Encode an exchange; only one with an outcome, a page's, may repeat a payload."""
        page = outcome if isinstance(outcome, Page) else None
        body, flaws = (exchange.body, ()) if page is None else (page.body, page.flaws)
        digest = sha1(body, usedforsecurity=False).digest()
        truncated = truncation(exchange, len(body), flaws)
        whole = outcome is not None and NOT_WHOLE.isdisjoint(flaws)
        first = self._payloads.get(digest) if body and whole else None
        if first is None and whole:
            self._remember(digest, exchange.url, exchange.began)
        fields = _not_modified(exchange)
        if not fields and first:
            url, began = first
            fields = {
                "WARC-Profile": _PROFILE + "identical-payload-digest",
                "WARC-Refers-To-Target-URI": url,
                "WARC-Refers-To-Date": _date(began),
                # WARC 1.1, 6.7.2: the body is left out.
                "WARC-Truncated": "length",
            }
        elif not fields and truncated:
            fields = {"WARC-Truncated": truncated}
        about = {"WARC-Target-URI": exchange.url, "WARC-Date": _date(exchange.began)}
        request_id, response_id = _new_id(), _new_id()
        with_response = about | {"WARC-Concurrent-To": response_id}
        with_request = about | ({"WARC-Concurrent-To": request_id} if exchange.request else {})
        pieces = []
        if exchange.request:
            block = request_block(exchange.request)
            pieces.append(
                self._record("request", {"WARC-Record-ID": request_id} | with_response, block)
            )
        kind = "revisit" if "WARC-Profile" in fields else "response"
        fields = {"WARC-Record-ID": response_id} | with_request | fields
        if fields.get("WARC-Profile", "").endswith("not-modified"):
            # ▶ With the head of the 304 in it, pywb replays a 304 without a body, not the page.
            head, digest = b"", (exchange.validator and exchange.validator.digest) or b""
        else:
            head = response_head(exchange, len(body))
        if digest:
            fields["WARC-Payload-Digest"] = _named(digest)
        pieces.append(self._record(kind, fields, head, body))
        if outcome is not None:
            named = {"WARC-Record-ID": _new_id()} | with_response
            pieces.append(self._record("metadata", named, metadata_block(outcome)))
        return b"".join(pieces)

    def _record(
        self, kind: str, fields: Mapping[str, str], head: bytes, payload: bytes = b""
    ) -> bytes:
        """Return a record whose block is `head` and `payload`; a revisit omits the payload.

        `fields` has all fields but the type, the length, the media type and the block digest.
        """
        if kind == "revisit":
            payload = b""
        digest = sha1(head, usedforsecurity=False)
        digest.update(payload)
        named = {
            "WARC-Type": kind,
            **fields,
            "WARC-Block-Digest": _named(digest.digest()),
            "Content-Type": _MEDIA.get(kind, f"application/http; msgtype={kind}"),
            "Content-Length": str(len(head) + len(payload)),
        }
        lines = ["WARC/1.1", *(f"{name}: {value}" for name, value in named.items()), "", ""]
        record = b"".join(["\r\n".join(lines).encode(), head, payload, b"\r\n\r\n"])
        if not self._gzip:
            return record
        # ▶ A window of 32 KiB takes 60 us to set up; one of 2 KiB, enough for a small record, 5.
        window = min(15, len(record).bit_length() + 1)
        member = zlib.compressobj(ZLIB_LEVEL, zlib.DEFLATED, 16 + window, window - 7)
        return member.compress(record) + member.flush()


def _not_modified(exchange: Exchange) -> dict[str, str]:
    """Return the fields of a revisit for a 304 to a conditional request, else none."""
    sent = exchange.request.lower()
    if exchange.status != 304 or (sent and b"\nif-" not in sent):
        return {}
    fields = {
        "WARC-Profile": _PROFILE + "server-not-modified",
        "WARC-Refers-To-Target-URI": exchange.url,
    }
    if exchange.validator and exchange.validator.began:
        fields["WARC-Refers-To-Date"] = _date(exchange.validator.began)
    return fields


def _new_id() -> str:
    return f"<urn:uuid:{uuid4()}>"


def _named(digest: bytes) -> str:
    """Return a SHA-1 in the form of the WARC fields: "sha1:" and Base32.

    ▶ `base64.b32encode` takes 7 us, this 2.
    """
    bits = int.from_bytes(digest)
    return "sha1:" + "".join([_PAIRS[bits >> place & 1023] for place in range(150, -1, -10)])


def _date(moment: float) -> str:
    """Return a Unix time in the format of WARC 1.1, to the microsecond."""
    return f"{datetime.fromtimestamp(moment, UTC):%Y-%m-%dT%H:%M:%S.%fZ}"


# The headers that a crawl sends by itself. Any other may be a credential, since a server can
# expect one in a header of any name.
_SAFE_HEADERS = frozenset(
    b"accept accept-charset accept-encoding accept-language cache-control connection from host "
    b"if-modified-since if-none-match pragma range upgrade-insecure-requests user-agent".split()
)
_CODINGS = frozenset((b"content-encoding", b"transfer-encoding"))
_FRAMING = _CODINGS | {b"content-length"}
_BODILESS = frozenset((204, 304))
_PHRASES = {int(status): status.phrase.encode() for status in HTTPStatus}
_LINE_ENDS = bytes.maketrans(b"\r\n\0", b"   ")
_is_number = re.compile(rb"[0-9]{1,19}").fullmatch
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
_has_space = re.compile("[\x00-\x20\x7f]").search


def request_block(sent: bytes) -> bytes:
    """Return the head of a request without headers that may be a credential.

    Only the headers that a crawl sends by itself are kept. Authorization, Cookie,
    Proxy-Authorization and all headers that a user has added are removed.
    """
    start, *lines = sent.split(b"\r\n")
    safe = [line for line in lines if line.partition(b":")[0].lower() in _SAFE_HEADERS]
    return b"\r\n".join([start, *safe, b"", b""])


def response_head(exchange: Exchange, size: int) -> bytes:
    """Return the head of a response for a body of `size` bytes without any coding.

    The headers are unchanged and in their order. If they do not match the stored body,
    Content-Encoding, Transfer-Encoding and Content-Length are renamed to
    `X-Crawl-Content-Encoding` and so on, and a correct Content-Length is added. The first line is
    HTTP/1.1 with the usual phrase.
    """
    status, fields = exchange.status, exchange.headers.raw
    if not _fits(status, fields, size):
        fields = [
            (b"X-Crawl-" + name if name.lower() in _FRAMING else name, value)
            for name, value in fields
        ]
        fields.append((b"Content-Length", b"%d" % size))
    lines = [b"%s: %s\r\n" % (name, value.translate(_LINE_ENDS)) for name, value in fields]
    start = b"HTTP/1.1 %d %s\r\n" % (status, _PHRASES.get(status, b""))
    return b"".join([start, *lines, b"\r\n"])


def truncation(exchange: Exchange, size: int, flaws: Collection[Reason] = ()) -> str | None:
    """Return why a body of `size` bytes is not complete (WARC-Truncated); None if it is.

    `flaws` are those of its page.
    """
    if Reason.TOO_LARGE in flaws:
        return "length"
    if Reason.NOT_READ in flaws:
        return "unspecified"
    if exchange.status in _BODILESS:
        return None
    if size < exchange.size:
        return "unspecified"
    named = {name.lower(): value for name, value in exchange.headers.raw}
    coded = not _CODINGS.isdisjoint(named)
    stated = _content_length(named.get(b"content-length", b""))
    if exchange.status >= 300 and not size and (coded or stated):
        # The body of a redirect or an error is not always read.
        return "unspecified"
    if exchange.purpose is Purpose.ROBOTS and size >= ROBOTS_BYTES:
        return "length" if coded or stated != size else None
    return None


def metadata_block(outcome: Page | Redirect | Failure) -> bytes:
    """Return metadata about an outcome, as lines of `application/warc-fields`.

    `via` is the referrer, `hopsFromSeed` has one "L" for each link from a seed, `fetchTimeMs` is
    the time of the last try. Each `outlink` has a URL, "L" and, if the crawl keeps anchors, the
    place of the URL ("a/@href") and the link's text; that of a redirect has "R" and "location".
    Rejected links are included, except those with white space.
    """
    fields = [f"via: {outcome.referrer}"] if outcome.referrer else []
    fields += [f"hopsFromSeed: {'L' * outcome.depth}"] if outcome.depth else []
    fields.append(f"fetchTimeMs: {round(outcome.seconds * 1000)}")
    if isinstance(outcome, Page):
        rejected = (each.url for each in outcome.rejected if each.url and not _has_space(each.url))
        for url in (*outcome.links, *rejected):
            anchor = outcome.anchors.get(url)
            where = (
                "" if anchor is None else f" {anchor.kind}/@href{anchor.text and ' '}{anchor.text}"
            )
            fields.append(f"outlink: {url} L{where}")
    elif outcome.target:
        fields.append(f"outlink: {outcome.target} R location")
    return _warc_fields(fields)


def warcinfo_block(software: str, seeds: Iterable[str]) -> bytes:
    """Return the description of an archive, as lines of `application/warc-fields`."""
    standard = "https://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/"
    fields = f"software: {software}", "format: WARC File Format 1.1", f"conformsTo: {standard}"
    return _warc_fields([*fields, *(f"seed: {seed}" for seed in seeds)])


def _warc_fields(fields: Iterable[str]) -> bytes:
    lines = list(fields)
    # ▶ Seldom is a character not printable, and to search each line would take 4 times as long.
    if not "".join(lines).isprintable():
        lines = [_CONTROL.sub(" ", line) for line in lines]
    text = "\r\n".join([*lines, ""])
    # A malformed link, or its text, may contain lone surrogates.
    return text.encode(errors="replace")


def _fits(status: int, fields: list[tuple[bytes, bytes]], size: int) -> bool:
    named = [(name.lower(), value) for name, value in fields]
    lengths = [_content_length(value) for name, value in named if name == b"content-length"]
    coded = any(name in _CODINGS for name, _ in named)
    return not coded and (status in _BODILESS or lengths == [size])


def _content_length(length: bytes) -> int | None:
    return int(length) if _is_number(length) else None
