"""Files that a crawl is exported to: CSV, links, a sitemap, WARC; and what becomes of them."""

from __future__ import annotations

import csv
import io
import os
from functools import partial
from pathlib import Path
from xml.etree import ElementTree

import pytest
from cli.asked import stopped_at_once
from cli.command import crawl
from sites.raw import html, redirect, reply, threaded_raw_server

from trio_crawler.cli.exports import SitemapFiles
from trio_crawler.report import sitemap_parts

pytestmark = pytest.mark.process

SITE = {
    "/": html("/a", "/old", "/gone", "/paper", "http://other.test/", title="Home"),
    "/a": html("/", title="=A"),
    "/old": redirect("/a"),
    "/paper": reply(headers={"Content-Type": "application/pdf"}, body=b"%PDF"),
}
SPACE = "{http://www.sitemaps.org/schemas/sitemap/0.9}"


def table(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline="")))


def located(path: Path) -> list[str]:
    """List the URLs in a sitemap or an index."""
    return [each.text or "" for each in ElementTree.parse(path).iter(f"{SPACE}loc")]


def test_the_sitemap_has_the_pages_that_are_well(tmp_path):
    path = tmp_path / "sitemap.xml"
    with threaded_raw_server(SITE) as server:
        crawl("--sitemap-xml", str(path), server.url)
    assert sorted(located(path)) == [server.url, f"{server.url}a"]
    assert [each.name for each in tmp_path.iterdir()] == ["sitemap.xml"]


@pytest.mark.parametrize("option", ["--csv", "--links"])
def test_a_dash_is_standard_output_and_the_report_goes_to_standard_error(option):
    with threaded_raw_server(SITE) as server:
        result = crawl(option, "-", server.url)
    assert len(table(result.stdout)) >= 5
    assert "admitted 5 = " in result.stderr
    assert "admitted 5 = " not in result.stdout


def test_a_file_that_is_there_stays_until_the_new_one_is_whole(tmp_path):
    path = tmp_path / "out.csv"
    seed = stopped_at_once("--csv", path)
    # What came before the end is whole in its way.
    assert [row["url"] for row in table(path.read_text())] == [seed]


def test_a_warc_file_holds_what_was_sent_and_received(tmp_path):
    path = tmp_path / "site.warc"
    with threaded_raw_server(SITE) as server:
        result = crawl("--warc", str(path), server.url)
    assert (result.returncode, result.stderr) == (1, "")
    archived = path.read_bytes()
    assert archived.startswith(b"WARC/1.1\r\n")
    assert archived.count(b"WARC-Type: request\r\n") == 6
    assert f"WARC-Target-URI: {server.url}robots.txt\r\n".encode() in archived
    assert b"<title>Home</title>" in archived


# Sitemaps of many pages.


def entries(count: int) -> bytes:
    return b"".join(b"<url><loc>https://a.test/%d</loc></url>\n" % each for each in range(count))


three_a_file = partial(sitemap_parts, max_urls=3)


def written(path: Path, count: int) -> None:
    """Write a sitemap of so many pages, three to a file."""
    sitemaps = SitemapFiles(str(path), split=three_a_file)
    with sitemaps.file:
        sitemaps.file.write(entries(count))
    sitemaps.keep()


def test_a_sitemap_of_many_pages_is_an_index_with_files_beside_it(tmp_path):
    path = tmp_path / "my map.xml"
    written(path, 7)
    names = ["my map-1.xml", "my map-2.xml", "my map-3.xml"]
    assert sorted(each.name for each in tmp_path.iterdir()) == sorted([*names, "my map.xml"])
    assert located(path) == [f"https://a.test/my%20map-{number}.xml" for number in (1, 2, 3)]
    found = [url for name in names for url in located(tmp_path / name)]
    assert found == [f"https://a.test/{number}" for number in range(7)]


def test_a_sitemap_of_as_many_pages_as_fit_is_one_file(tmp_path):
    written(tmp_path / "s.xml", 3)
    assert [each.name for each in tmp_path.iterdir()] == ["s.xml"]
    assert len(located(tmp_path / "s.xml")) == 3


def test_a_sitemap_that_cannot_be_finished_leaves_what_was_there(tmp_path, monkeypatch):
    path = tmp_path / "s.xml"
    path.write_text("old")
    sitemaps = SitemapFiles(str(path), split=three_a_file)
    with sitemaps.file:
        sitemaps.file.write(entries(7))

    def refused(source: str, target: str) -> None:
        if target == str(path):
            raise OSError("not the index")
        replace(source, target)

    replace = os.replace
    monkeypatch.setattr(os, "replace", refused)
    with pytest.raises(OSError, match="not the index"):
        sitemaps.keep()
    sitemaps.drop()
    assert path.read_text() == "old"
    assert not list(tmp_path.glob("*.part"))
