"""Hostile sitemaps: their cost grows with their size and no faster."""

from __future__ import annotations

import gzip
import tracemalloc
from collections.abc import Callable
from time import process_time

import pytest

from trio_crawler.page.sitemap.read import MAX_CHARACTERS, parse_sitemap

pytestmark = pytest.mark.slow

URL = "http://e.test/sitemap.xml"
KIB = 1024
SMALL, LARGE = 64 * KIB, 256 * KIB

START = b"<urlset>"
# What stands before, what is repeated, what stands behind.
SHAPES = {
    "records": (START, b"<url><loc>http://e.test/a</loc></url>", b"</urlset>"),
    "starts": (START, b"<", b""),
    "tags that mean nothing": (START, b"<a>", b""),
    "beginnings of tags": (START, b"<l", b""),
    "ends of tags": (START, b"</", b""),
    "open records": (START, b"<url>", b""),
    "open URLs": (START, b"<loc>", b""),
    "open URLs and text": (START, b"<loc>a", b""),
    "end tags": (START, b"</loc>", b""),
    "tags that end nowhere": (START, b"<loc ", b""),
    "quotes that end nowhere": (START, b'<loc a="', b""),
    "quotes": (START + b"<loc ", b'"', b""),
    "attributes": (START + b"<loc ", b"a='b' ", b">"),
    "references": (START + b"<loc>", b"&", b"</loc>"),
    "references in many": (START, b"<loc>&&&&&&&&&&</loc>", b""),
    "digits": (START + b"<loc>&#", b"9", b";</loc>"),
    "text": (START + b"<loc>", b"x", b"</loc>"),
    "blanks": (START + b"<loc>", b" ", b"</loc>"),
    "comments": (START, b"<!---->", b""),
    "comments in a value": (START + b"<loc>", b"<!---->a", b""),
    "an open comment": (START + b"<!--", b"-", b""),
    "open comments": (START, b"<!--", b""),
    "open CDATA": (START + b"<loc><![CDATA[", b"]", b""),
    "starts of CDATA": (START, b"<![CDATA[", b""),
    "CDATA": (START + b"<loc>", b"<![CDATA[a]]>", b""),
    "instructions": (START, b"<?>", b""),
    "an open instruction": (START + b"<?", b"?", b""),
    "document types": (b"", b"<!DOCTYPE a>", b""),
    "open document types": (b"", b"<!DOCTYPE a ", b""),
    "declarations": (b"<!DOCTYPE a [", b"<!ENTITY b 'c'>", b"]>"),
    "comments first": (b"", b"<!---->", START),
    "prefixes": (b"<", b"a:", b""),
    "other roots": (b"", b"<a:", b""),
    "an XML declaration": (b"<?xml ", b"encoding ", b""),
    "blanks first": (b"", b" ", START),
    "lines": (b"http://e.test/\n", b"a\n", b""),
    "ends of lines": (b"http://e.test/\n", b"\n", b""),
    "a line": (b"http://e.test/", b"a", b""),
    "blanks in a line": (b"http://e.test/", b" ", b"a"),
    "links of Atom": (b"<feed>", b"<entry><link href='a'/></entry>", b"</feed>"),
    "attributes of Atom": (b"<feed><entry><link ", b"href = ", b"/></entry></feed>"),
    "blanks of Atom": (b"<feed><entry><link href", b" ", b"/></entry></feed>"),
    "lone surrogates": ("\ufeff<urlset>".encode("utf-16le"), b"\0\xdc", b""),
    "bad bytes": (START, b"a\xff", b""),
    "bad bytes of one each": (b"<?xml encoding='windows-1255'?><urlset>", b"ab\xd9", b""),
}


def seconds(work: Callable[[], object]) -> float:
    """Return the CPU time of one run: the best of two series that are long enough to measure."""
    best = float("inf")
    for _ in range(2):
        begun, runs = process_time(), 0
        while (spent := process_time() - begun) < 0.003:
            work()
            runs += 1
        best = min(best, spent / runs)
    return best


@pytest.mark.parametrize(("before", "part", "behind"), SHAPES.values(), ids=SHAPES)
def test_a_file_costs_time_in_proportion_to_its_size_of(
    before: bytes, part: bytes, behind: bytes
) -> None:
    def work(size: int) -> Callable[[], object]:
        body = before + part * (size // len(part)) + behind
        return lambda: parse_sitemap(body, "", URL, max_entries=10_000)

    few, many = seconds(work(SMALL)), seconds(work(LARGE))
    # Four times the size: sixteen times the time would be quadratic, and 3 a doubling are 9.
    assert many / few < 9, (few, many)
    assert many < 2


def test_a_million_nested_elements_are_cheap() -> None:
    begun = process_time()
    nested = parse_sitemap(START + b"<url>" * 10**6 + b"</url>" * 10**6, "", URL, max_entries=10)
    assert not nested.entries
    assert process_time() - begun < 5


def peak(body: bytes) -> int:
    """Return the bytes of memory that parsing takes at most, its result included."""
    tracemalloc.start()
    try:
        parse_sitemap(body, "", URL)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("part", [b"<a>", b"x", b"\0", b"&#x41;", b"<![CDATA[xxxxxxxxx]]>"])
def test_a_decompressed_file_is_never_all_in_memory(part: bytes) -> None:
    packed = gzip.compress(START + b"<loc>" + part * (2_000 * KIB // len(part)), 1)
    assert peak(packed) < 1_000 * KIB


def test_the_characters_of_all_urls_are_bounded() -> None:
    base = f"http://e.test/{'b' * 2_000}/"
    body = START + b"".join(b"<loc>%x</loc>" % number for number in range(27_000))
    many = parse_sitemap(body, "", base)
    assert sum(len(entry.url) for entry in many.entries) < MAX_CHARACTERS + 2_048
    assert many.beyond > 0
    assert "too_large" in many.flaws
