"""What the command reads of sitemaps, and what its report says of them."""

from __future__ import annotations

import re

import pytest
from cli.asked import pages
from sites.raw import Server, html, reply, threaded_raw_server

from trio_crawler.cli.main import command


@pytest.fixture
def crawl(capsys):
    """Run the command in this process; give its status and what it printed."""

    def run(*words: str) -> tuple[int, str, str]:
        status = command.main(list(words), standalone_mode=False)
        return status, *capsys.readouterr()

    return run


def listing(server: Server, *paths: str, end: str = "</urlset>") -> bytes:
    """Write a response with a sitemap of a server's own URLs."""
    urls = "".join(f"<url><loc>{server.url}{path[1:]}</loc></url>" for path in paths)
    text = f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{urls}{end}'
    return reply(200, {"Content-Type": "application/xml"}, text.encode())


def named(server: Server, path: str = "/map.xml") -> bytes:
    """Write a response with a robots.txt that names a sitemap."""
    return reply(body=f"Sitemap: {server.url}{path[1:]}\n".encode())


SITE = {
    "/": html("/a", "/b"),
    "/a": html(title="A"),
    "/b": html(title="B"),
    "/lone": html("/b"),
}


@pytest.mark.parametrize("word", ["/map.xml", "{url}map.xml", "{host}/map.xml"])
def test_a_sitemap_that_is_given_finds_what_no_page_links_to(word, crawl):
    site = dict(SITE)
    with threaded_raw_server(site) as server:
        site["/map.xml"] = listing(server, "/", "/a", "/lone")
        url, host = server.url, server.url.split("/")[2]
        status, out, _ = crawl("--sitemap", word.format(url=url, host=host), server.url)
    assert sorted(server.targets) == ["/", "/a", "/b", "/lone", "/map.xml", "/robots.txt"]
    told = f"""
Orphans (1)
  {server.url}lone

Unlisted (1)
  {server.url}b

"""
    # What is new depends on how soon the sitemap comes.
    before = re.escape("\nSitemaps: 1 sitemap, 3 entries, ") + "[12] of them new\n"
    assert re.search(before + re.escape(told), out)
    assert status == 0


def test_a_sitemap_that_robots_txt_names_is_read_unless_none_is_wanted(crawl):
    site = dict(SITE)
    with threaded_raw_server(site) as server:
        site |= {"/map.xml": listing(server, "/", "/lone"), "/robots.txt": named(server)}
        _, out, _ = crawl(server.url)
        assert sorted(pages(server)) == ["/", "/a", "/b", "/lone", "/map.xml"]
        assert f"\nOrphans (1)\n  {server.url}lone\n" in out
        assert f"\nUnlisted (2)\n  {server.url}a\n  {server.url}b\n" in out
        _, out, _ = crawl("--no-sitemaps", server.url)
    assert sorted(pages(server)[5:]) == ["/", "/a", "/b"]
    assert not any(word in out for word in ("itemap", "Orphans", "Unlisted"))


def test_the_path_of_a_sitemap_is_asked_for_on_each_host_that_was_given(crawl):
    with threaded_raw_server(SITE) as one, threaded_raw_server(SITE) as two:
        crawl("--sitemap", "/map.xml", one.url, f"{one.url}a", two.url)
    assert (one.targets.count("/map.xml"), two.targets.count("/map.xml")) == (1, 1)
