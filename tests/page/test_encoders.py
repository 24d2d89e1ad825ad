"""Queries: encoded in the encoding of their document, by the encoders of the Encoding Standard."""

from __future__ import annotations

import random
from hashlib import sha256
from time import process_time

import pytest
from cases import for_each
from hypothesis import given
from hypothesis import strategies as st

from trio_crawler.page import charset
from trio_crawler.page.encoders import encode_query
from trio_crawler.page.read import Facts, read
from trio_crawler.page.urls import normalise, normalise_in, resolve, without_fragments

# The rows of url/resources/percent-encoding.json of the web-platform tests.
PERCENT_ENCODING = [
    ("\u2020", {"windows-1252": "%86"}),
    ("\x0eA", {"iso-2022-jp": "%26%2365533%3BA", "big5": "%0EA", "shift_jis": "%0EA"}),
    ("\u203e\\", {"iso-2022-jp": "%1B(J~%1B(B\\"}),
    ("\ue5e5", {"gb18030": "%26%2358853%3B"}),
    ("\u2212", {"shift_jis": "%81|"}),
]
# The first 16 digits of SHA-256 over the queries of all characters of the BMP and of the second
# plane that may be encoded. They were computed once from the indexes of the Encoding Standard
# (commit a985b62a of whatwg/encoding) with its algorithms, and not with this package.
DIGESTS = {
    "big5": "863592144e89fa0e",
    "euc-jp": "cb326d776e9c45c2",
    "euc-kr": "093ac724690b2510",
    "gb18030": "efc75bd13fd66a6b",
    "gbk": "ff2695347d7e3a93",
    "ibm866": "fc9ed584b9581b07",
    "iso-2022-jp": "7384cee6bb77417e",
    "iso-8859-10": "5a98fbe9ec9e8bd8",
    "iso-8859-13": "d3c21b259b64b8ca",
    "iso-8859-14": "b4bc5f7c922b34aa",
    "iso-8859-15": "4116d606b2d2a70f",
    "iso-8859-16": "8a76c55137d947ab",
    "iso-8859-2": "1b00ed11d64d5894",
    "iso-8859-3": "603937c606ea40e2",
    "iso-8859-4": "ee7f5088ad2ef11d",
    "iso-8859-5": "3a037b390f5cccf6",
    "iso-8859-6": "48aea69caba8cc29",
    "iso-8859-7": "08bf03503a9569d2",
    "iso-8859-8": "9ce2ee1a1792c412",
    "iso-8859-8-i": "9ce2ee1a1792c412",
    "koi8-r": "ba80db30575d058b",
    "koi8-u": "c8d954639f16fc02",
    "macintosh": "1348eca9b6cb6eb8",
    "shift_jis": "bde14448ec5e4196",
    "windows-1250": "b098eab4fd7710a6",
    "windows-1251": "b53f751c9fa30737",
    "windows-1252": "a1be384635ef815a",
    "windows-1253": "c8cb5d792b068e2d",
    "windows-1254": "5c2badf378d67709",
    "windows-1255": "d16b8aa29856457b",
    "windows-1256": "a47e2865502a5a86",
    "windows-1257": "f9077250467f5686",
    "windows-1258": "1e0ceb424b2e91ef",
    "windows-874": "8c650cb916c20dae",
    "x-mac-cyrillic": "5bf5f3402aa5487f",
    "x-user-defined": "3387b62d1b64044c",
}
LEGACY = sorted(DIGESTS)
EVERY = [*range(0xD800), *range(0xE000, 0x10000), *range(0x20000, 0x2A700)]
PAGE = "http://e.org/a/b?q"


@for_each(
    "text, encoding, query",
    [(text, name, query) for text, found in PERCENT_ENCODING for name, query in found.items()],
)
def test_the_web_platform_tests_of_percent_encoding_pass(text, encoding, query):
    assert encode_query(text, encoding) == query


@pytest.mark.parametrize("encoding", LEGACY)
def test_every_character_is_encoded_as_by_the_index_of(encoding):
    queries = " ".join([encode_query(chr(number), encoding) for number in EVERY])
    assert sha256(queries.encode()).hexdigest()[:16] == DIGESTS[encoding]


def test_all_legacy_encodings_of_the_standard_are_tried():
    assert len(LEGACY) == 36


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
        ("euc-jp", bytes.fromhex("ada1a1c1a1ddcbdc")),
        ("shift_jis", bytes.fromhex("874081608140b1")),
        ("gbk", bytes.fromhex("a996b0a1a6d9fe59")),
        ("gb18030", bytes.fromhex("a8bca6d981308130")),
        ("big5", bytes.fromhex("a145a1e3a440")),
        ("euc-kr", bytes.fromhex("b0a1a2e6")),
        ("koi8-u", bytes.fromhex("aebe")),
        ("windows-1255", bytes.fromhex("cae0")),
        ("windows-1252", bytes.fromhex("80818d8f909d")),
        ("windows-874", bytes.fromhex("80a1")),
    ],
)
def test_the_bytes_of_a_query_are_sent_back_as_they_are_in_the_page(encoding, raw):
    facts = page(b'<a href="?x=%s">' % raw, encoding)
    query = "".join(chr(byte) if 0x20 < byte < 0x7F else f"%{byte:02X}" for byte in raw)
    assert facts.links == (f"http://e.org/a/b?x={query}",)
    assert facts.flaws == ()


def test_iso_2022_jp_ends_in_its_first_state():
    body = b"<a href='?x=\x1b$B-!!AK\\\x1b(B&y=1'>"
    facts = page(body, "iso-2022-jp")
    assert facts.links == (r"http://e.org/a/b?x=%1B$B-!!AK\%1B(B&y=1",)


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
    for _ in range(2_000):
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


# Encoded as the bytes of another character, or decoded by Python as another one.
TWICE = "\xa5\u203e\u2212\u2215\ufe68"


@for_each("encoding", sorted({*LEGACY} - {"iso-2022-jp", "x-user-defined"}))
def test_what_an_encoder_writes_its_decoder_reads(encoding):
    chance = random.Random(f"round {encoding}")
    for number in chance.sample(range(0x80, 0x9FFF), 2_000):
        query = encode_query(chr(number), encoding)
        if not query.startswith("%26%23") and chr(number) not in TWICE:
            raw = bytes.fromhex("".join(hexadecimal(query)))
            assert charset.decode(raw, encoding) == (chr(number), True)


def hexadecimal(query: str) -> list[str]:
    """Return the bytes of a query in hexadecimal digits."""
    digits = []
    while query:
        code, query = (query[1:3], query[3:]) if query[0] == "%" else (query[0], query[1:])
        digits.append(code if len(code) == 2 else f"{ord(code):02X}")
    return digits
