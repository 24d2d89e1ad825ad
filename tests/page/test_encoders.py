"""Queries: encoded in the encoding of their document."""

from __future__ import annotations

import random
from time import process_time

import pytest
from cases import for_each
from hypothesis import given
from hypothesis import strategies as st

from trio_crawler.page.charset import encode_query
from trio_crawler.page.read import Facts, read
from trio_crawler.page.urls import normalise, normalise_in, resolve, without_fragments

LEGACY = """
big5 euc-jp euc-kr gb18030 gbk ibm866 iso-2022-jp iso-8859-2 iso-8859-6 iso-8859-8-i koi8-r
koi8-u macintosh shift_jis windows-1250 windows-1251 windows-1252 windows-874
x-mac-cyrillic x-user-defined
""".split()
PAGE = "http://e.org/a/b?q"


@for_each(
    "text, encoding, query",
    [
        ("\u2020", "windows-1252", "%86"),
        ("\x81", "windows-1252", "%81"),
        ("\ufffd\ud800", "windows-1252", "%26%2365533%3B%26%2365533%3B"),
        ("\u2603", "big5", "%26%239731%3B"),
        ("\u65e5&", "iso-2022-jp", "%1B$BF|%1B(B&"),
    ],
)
def test_a_character_is_encoded_or_becomes_a_reference(text, encoding, query):
    assert encode_query(text, encoding) == query


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["euc-jp", "big5", "gbk", "iso-2022-jp", "shift_jis"])
@pytest.mark.parametrize("raw", [b"\xad\xa1", b"\xff", b"\x80", b"\xa3\xc0", b"\x1b"])
def test_ten_mib_of_bytes_that_a_codec_does_not_know_take_at_most_two_seconds(encoding, raw):
    body = b"<a href='?x'>" + raw * (10_000_000 // len(raw))
    began = process_time()
    page(body, encoding)
    assert process_time() - began < 2


@for_each(
    "encoding, raw",
    [
        ("euc-jp", bytes.fromhex("ada1cbdcbbfa")),
        ("shift_jis", bytes.fromhex("87408160b1")),
        ("gbk", bytes.fromhex("a996b0a1a6d9fe59")),
        ("gb18030", bytes.fromhex("a8bca6d981308130")),
        ("big5", bytes.fromhex("a440a4e5")),
        ("euc-kr", bytes.fromhex("b0a1a2e6")),
        ("koi8-u", bytes.fromhex("a6c1")),
        ("windows-1255", bytes.fromhex("e0e1")),
        ("windows-1252", bytes.fromhex("80818d8f909d")),
        ("windows-874", bytes.fromhex("80a1")),
    ],
)
def test_the_bytes_of_a_query_are_sent_back_as_they_are_in_the_page(encoding, raw):
    facts = page(b'<a href="?x=%s">' % raw, encoding)
    query = "".join(chr(byte) if 0x20 < byte < 0x7F else f"%{byte:02X}" for byte in raw)
    assert facts.links == (f"http://e.org/a/b?x={query}",)
    assert facts.flaws == ()


def page(body: bytes, encoding: str) -> Facts:
    return read(body, f"text/html; charset={encoding}", PAGE)


@for_each(
    "href, url",
    [
        ("?x=€", "http://e.org/a/b?x=%80"),
        ("?x=☃", "http://e.org/a/b?x=%26%239731%3B"),
        ("ü?x=ü#ü", "http://e.org/a/%C3%BC?x=%FC"),
        ("//ü.org/ü?ü", "http://xn--tda.org/%C3%BC?%FC"),
        ("HTTPS://e.org/?ü", "https://e.org/?%FC"),
        ("  ?ü  ", "http://e.org/a/b?%FC"),
        ("?ü  #a", "http://e.org/a/b?%FC%20%20"),
        ("?\tü\r\nü", "http://e.org/a/b?%FC%FC"),
        ("?%e9é'\"<>`{|}", "http://e.org/a/b?%e9%E9%27%22%3C%3E`{|}"),
        ("?a?ü", "http://e.org/a/b?a?%FC"),
        ("#?ü", "http://e.org/a/b?q"),
        ("ftp://e.org/?ü", "ftp://e.org/?%FC"),
        ("file:///?ü", "file:///?%FC"),
        ("ws://e.org/?ü", "ws://e.org/?%C3%BC"),
        ("mailto:a@e.org?subject=ü", "mailto:a@e.org?subject=%C3%BC"),
        ("http:?ü", "http://e.org/a/b?%FC"),
        ("\\\\f.org\\?ü", "http://f.org/?%FC"),
        ("http://ü:ü@f.org?ü", "http://f.org/?%FC"),
    ],
)
def test_a_link_of_a_windows_1252_page(href, url):
    assert normalise_in("windows-1252", href, PAGE) == url
    source = href.replace("'", "&#39;")
    body = f"<a href='{source}'>".encode("cp1252", "xmlcharrefreplace")
    assert page(body, "windows-1252").links == (url,)


def test_a_base_with_a_query_is_encoded_too():
    facts = page("<base href='/c/?ü'><a href=''><a href='d?é'>".encode("latin-1"), "latin1")
    assert facts.links == ("http://e.org/c/?%FC", "http://e.org/c/d?%E9")


def test_a_canonical_url_is_encoded_too():
    facts = page("<link rel=canonical href='?ü'><body>".encode("latin-1"), "latin1")
    assert facts.canonical == "http://e.org/a/b?%FC"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16le", "utf-16be"])
def test_unicode_documents_have_queries_in_utf_8(encoding):
    body = "<a href='?x=€'>".encode(encoding)
    assert page(body, encoding).links == ("http://e.org/a/b?x=%E2%82%AC",)


def test_a_legacy_page_leaves_nothing_for_a_page_in_utf_8_of_the_same_directory():
    body = "<a href='c?x=ü'>"
    for _ in range(2):
        assert page(body.encode(), "utf-8").links == ("http://e.org/a/c?x=%C3%BC",)
        assert page(body.encode("latin-1"), "latin1").links == ("http://e.org/a/c?x=%FC",)


PIECES = ["a", "ü", "€", "☃", "?", "?x=", "&", "#", "/", "../", "%", "%C3", " ", "\t", "\\", ":"]
PIECES += ["http://f.org", "//", "mailto:", "ftp:", "@", "\x00", "\ud800", "本", "\u203e", "\x1b"]
NO_URL = "not a URL"


@pytest.mark.parametrize("encoding", ["windows-1252", "iso-2022-jp", "gbk", "utf-8"])
def test_the_links_of_a_page_equal_those_that_are_resolved_alone(encoding):
    chance = random.Random(f"query {encoding}")
    for _ in range(500):
        base = normalise_in(encoding, "".join(chance.choices(PIECES[:8], k=3)), "http://e.org/x/")
        hrefs = ["".join(chance.choices(PIECES, k=chance.randint(0, 6))) for _ in range(8)]
        found, malformed = resolve(without_fragments(hrefs, base), base, encoding)
        alone = dict.fromkeys(one(encoding, href, base) for href in hrefs)
        assert [url for url in alone if url != NO_URL] == list(dict.fromkeys(found.values()))
        assert (NO_URL in alone) == bool(malformed)


def one(encoding: str, href: str, base: str) -> str:
    try:
        return normalise_in(encoding, href, base)
    except ValueError:
        return NO_URL


@given(st.text(max_size=20), st.sampled_from(LEGACY))
def test_an_encoded_url_is_normalised(text, encoding):
    url = one(encoding, "?" + text, PAGE)
    assert url.isascii()
    assert normalise(url) == url
