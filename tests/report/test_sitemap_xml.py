from __future__ import annotations

from collections.abc import Iterable
from xml.etree import ElementTree

import httpx
import pytest
from cases import for_each
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from trio_crawler.model import Failure, Outcome, Page, Reason, Redirect, Skipped
from trio_crawler.page.sitemap.read import parse_sitemap
from trio_crawler.report.sitemap_xml import (
    sitemap_entry,
    sitemap_home,
    sitemap_index,
    sitemap_parts,
)

URL = "https://a.test/a"
PAGE = Page(URL, 200, httpx.Headers(), b"", content_type="text/html; charset=utf-8")
SPACE = "{http://www.sitemaps.org/schemas/sitemap/0.9}"


def listed(lines: Iterable[bytes]) -> list[str]:
    """Read a sitemap by an XML parser, and give what it lists."""
    root = ElementTree.fromstring(b"".join(lines))
    assert root.tag == f"{SPACE}urlset"
    return [each.text or "" for each in root.iterfind(f"{SPACE}url/{SPACE}loc")]


def files(lines: Iterable[bytes], **bounds: int) -> list[bytes]:
    return [b"".join(part) for part in sitemap_parts(lines, **bounds)]


def test_a_page_that_is_well_is_an_entry() -> None:
    assert sitemap_entry(PAGE) == b"<url><loc>https://a.test/a</loc></url>\n"
    assert sitemap_entry(replace(PAGE, status=204))
    assert sitemap_entry(replace(PAGE, content_type="application/xhtml+xml"))
    assert sitemap_entry(replace(PAGE, canonical=URL))
    assert sitemap_entry(replace(PAGE, robots=("nofollow", "noarchive")))


def test_a_page_that_was_not_modified_is_an_entry() -> None:
    assert sitemap_entry(replace(PAGE, status=304))


@for_each(
    "outcome",
    [
        replace(PAGE, status=404),
        replace(PAGE, status=500),
        replace(PAGE, content_type="application/pdf"),
        replace(PAGE, content_type=""),
        replace(PAGE, robots=("noindex",)),
        replace(PAGE, canonical="https://a.test/b"),
        replace(PAGE, duplicate_of="https://a.test/b"),
        replace(PAGE, url="https://a.test/" + "x" * 2033),
        replace(PAGE, url="https://a.test/\x0b"),
        Redirect(URL, 301, "https://a.test/b"),
        Failure(URL, Reason.TIMEOUT),
        Skipped(URL, Reason.STOPPED),
    ],
)
def test_nothing_else_is_an_entry(outcome: Outcome) -> None:
    assert sitemap_entry(outcome) == b""


def test_the_longest_url_is_of_2047_characters() -> None:
    assert sitemap_entry(replace(PAGE, url="https://a.test/" + "x" * 2032))


@pytest.mark.parametrize(
    "header",
    [
        "Sun, 06 Nov 1994 08:49:37 GMT",
        "Sunday, 06-Nov-94 08:49:37 GMT",
        "Sun Nov  6 08:49:37 1994",
    ],
)
def test_last_modified_is_a_date_in_the_format_of_w3c(header: str) -> None:
    line = sitemap_entry(replace(PAGE, headers=httpx.Headers({"Last-Modified": header})))
    assert b"</loc><lastmod>1994-11-06T08:49:37Z</lastmod></url>" in line


def test_a_date_that_is_none_is_left_out() -> None:
    assert b"lastmod" not in sitemap_entry(
        replace(PAGE, headers=httpx.Headers({"Last-Modified": "0"}))
    )


def test_what_xml_has_a_meaning_for_is_escaped() -> None:
    url = "https://a.test/?a=1&b='2'&c=<\"3\">"
    line = sitemap_entry(replace(PAGE, url=url))
    assert b"?a=1&amp;b=&#x27;2&#x27;&amp;c=&lt;&quot;3&quot;&gt;" in line
    assert [listed(part) for part in sitemap_parts([line])] == [[url]]


def test_few_pages_make_one_file_and_none_an_empty_one() -> None:
    urls = [f"https://a.test/{number}" for number in range(3)]
    lines = [sitemap_entry(replace(PAGE, url=url)) for url in urls]
    assert [listed([file]) for file in files([b"", *lines, b""])] == [urls]
    assert [listed([file]) for file in files([])] == [[]]


def test_our_own_reader_finds_in_it_what_was_written() -> None:
    (file,) = files([sitemap_entry(PAGE), sitemap_entry(replace(PAGE, url="https://a.test/?a&b"))])
    found = parse_sitemap(file, "application/xml", "https://a.test/sitemap.xml")
    assert [each.url for each in found.entries] == [URL, "https://a.test/?a&b"]


def test_a_file_has_50_000_urls_at_most() -> None:
    line = sitemap_entry(PAGE)
    counts = [file.count(b"<loc>") for file in files([line] * 100_001)]
    assert counts == [50_000, 50_000, 1]
    assert [file.count(b"<loc>") for file in files([line] * 50_000)] == [50_000]


def test_a_file_has_50_mib_at_most() -> None:
    lines = [sitemap_entry(replace(PAGE, url="https://a.test/" + "x" * 2000))] * 49_999
    found = files(lines)
    assert all(len(file) <= 50 * 1024 * 1024 for file in found)
    assert len(found) == 2
    assert len(found[0]) > 50 * 1024 * 1024 - 2100
    assert sum(file.count(b"<loc>") for file in found) == 49_999


@given(st.lists(st.integers(0, 60)), st.integers(1, 4))
def test_every_entry_stands_once_and_in_order_wherever_files_end(
    sizes: list[int], most: int
) -> None:
    lines = [b"<url>%d:%b</url>\n" % (number, b"x" * size) for number, size in enumerate(sizes)]
    found = files(lines, max_urls=most, max_bytes=300)
    inner = [file.split(b"\n", 2)[2].removesuffix(b"</urlset>\n") for file in found]
    assert b"".join(inner) == b"".join(lines)
    assert all(len(file) <= 300 and file.count(b"<url>") <= most for file in found)


def test_an_entry_that_fits_into_no_file_is_refused() -> None:
    with pytest.raises(ValueError, match="max_bytes leaves 90 bytes for an entry, and one has 91"):
        files([b"x" * 91], max_bytes=200)


def test_an_index_names_the_files() -> None:
    root = ElementTree.fromstring(
        sitemap_index(["https://a.test/s-1.xml", "https://a.test/s&2.xml"])
    )
    assert root.tag == f"{SPACE}sitemapindex"
    named = [each.text for each in root.iterfind(f"{SPACE}sitemap/{SPACE}loc")]
    assert named == ["https://a.test/s-1.xml", "https://a.test/s&2.xml"]


def test_the_home_of_an_entry_is_the_root_of_its_site() -> None:
    assert sitemap_home(sitemap_entry(PAGE)) == "https://a.test/"
    assert (
        sitemap_home(sitemap_entry(replace(PAGE, url="http://[::1]:8080/a/b?c/d")))
        == "http://[::1]:8080/"
    )
    assert sitemap_home(b"") == ""
