"""The blocks of WARC records: the exact bytes that an archive stores of an exchange."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import cache
from http import HTTPStatus

from trio_crawler.model import Failure, Page, Purpose, Reason, Redirect
from trio_crawler.net.recorder import Exchange
from trio_crawler.policy.robots.parse import MAX_BYTES as ROBOTS_BYTES

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
        fields = [_renamed(name, value) for name, value in fields]
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
    return _warc_fields(_metadata(outcome))


def warcinfo_block(software: str, seeds: Iterable[str]) -> bytes:
    """Return the description of an archive, as lines of `application/warc-fields`."""
    standard = "https://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/"
    fields = [("software", software), ("format", "WARC File Format 1.1"), ("conformsTo", standard)]
    return _warc_fields([*fields, *(("seed", seed) for seed in seeds)])


def _metadata(outcome: Page | Redirect | Failure) -> Iterator[tuple[str, str]]:
    if outcome.referrer:
        yield "via", outcome.referrer
    if outcome.depth:
        yield "hopsFromSeed", "L" * outcome.depth
    yield "fetchTimeMs", str(round(outcome.seconds * 1000))
    if isinstance(outcome, Page):
        yield from _outlinks(outcome)
    elif outcome.target:
        yield "outlink", f"{outcome.target} R location"


def _outlinks(page: Page) -> Iterator[tuple[str, str]]:
    rejected = (link.url for link in page.rejected if link.url and not _has_space(link.url))
    for url in (*page.links, *rejected):
        anchor = page.anchors.get(url)
        if anchor is None:
            yield "outlink", f"{url} L"
        else:
            kind, text = anchor
            yield "outlink", f"{url} L {kind}/@href {text}" if text else f"{url} L {kind}/@href"


def _warc_fields(fields: Iterable[tuple[str, str]]) -> bytes:
    lines = [f"{name}: {value}" for name, value in fields]
    text = "\r\n".join([*lines, ""])
    if _has_control()(text) or text.count("\n") > len(lines) or text.count("\r") > len(lines):
        text = "\r\n".join([*(_CONTROL.sub(" ", line) for line in lines), ""])
    # A malformed link, or its text, may contain lone surrogates.
    return text.encode(errors="replace")


def _fits(status: int, fields: list[tuple[bytes, bytes]], size: int) -> bool:
    lengths = 0
    for name, value in fields:
        lower = name.lower()
        if lower in _CODINGS:
            return False
        if lower == b"content-length" and status not in _BODILESS:
            lengths += 1
            if _content_length(value) != size:
                return False
    return lengths == 1 or status in _BODILESS


def _renamed(name: bytes, value: bytes) -> tuple[bytes, bytes]:
    return (b"X-Crawl-" + name if name.lower() in _FRAMING else name), value


def _content_length(length: bytes) -> int | None:
    return int(length) if _is_number(length) else None


@cache
def _has_control() -> Callable[[str], object]:
    return re.compile("[^\r\n\x20-\x7e\xa0-\u2027\u202a-\U0010ffff]").search
