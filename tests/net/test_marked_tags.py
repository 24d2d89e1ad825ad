"""Entity tags that a server marks with the coding of a body, as Apache does, get their 304."""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import trio
from sites.raw import Request, raw_server, reply
from sites.servers import apache

from trio_crawler import Crawler, Page, Politeness, SqliteFrontier
from trio_crawler.net.fetch import HttpFetch

POLITE = Politeness(robots=False)


async def walk(directory: Path, url: str, *, refresh: bool = False) -> dict[str, Page]:
    """Crawl a site into a directory; return the pages by the last part of their URLs."""
    async with (
        SqliteFrontier(directory, refresh=refresh) as frontier,
        HttpFetch(seeds=[url]) as fetch,
    ):
        crawler = Crawler([url], frontier=frontier, fetch=fetch, politeness=POLITE)
        async with crawler.outcomes() as outcomes:
            pages = [each async for each in outcomes if isinstance(each, Page)]
    return {page.url.rpartition("/")[2]: page for page in pages}


def statuses(pages: dict[str, Page]) -> dict[str, int]:
    return {name: page.status for name, page in pages.items()}


class Marking:
    """A site as Apache has it: it compares tags before it encodes, and marks them after."""

    def __init__(self) -> None:
        self.version = {"/": 1, "/b": 1}
        self.mark = "-gzip"

    async def __call__(self, request: Request, stream: trio.abc.Stream) -> None:
        tag = f"v{self.version[request.target]}"
        told = request.headers.get("if-none-match", "").split(", ")
        if f'"{tag}"' in told:
            await stream.send_all(reply(304, {"ETag": f'"{tag}"'}))
            return
        text = f"<title>{tag}</title><a href=/b>b</a>".encode()
        headers = {"Content-Type": "text/html", "ETag": f'"{tag}{self.mark}"'}
        if self.mark:
            headers["Content-Encoding"] = "gzip"
            text = gzip.compress(text)
        await stream.send_all(reply(200, headers, text))


async def test_a_refresh_of_marked_tags_gets_its_304_and_each_change(tmp_path: Path) -> None:
    site = Marking()
    async with raw_server(site) as server:
        assert statuses(await walk(tmp_path, server.url)) == {"": 200, "b": 200}
        for _ in range(2):
            assert statuses(await walk(tmp_path, server.url, refresh=True)) == {"": 304, "b": 304}
        site.version["/b"] = 2
        pages = await walk(tmp_path, server.url, refresh=True)
        assert statuses(pages) == {"": 304, "b": 200}
        assert pages["b"].title == "v2"
        assert statuses(await walk(tmp_path, server.url, refresh=True)) == {"": 304, "b": 304}


async def test_a_server_that_begins_or_ceases_to_encode_is_still_understood(
    tmp_path: Path,
) -> None:
    site = Marking()
    async with raw_server(site) as server:
        for mark in ("", "-gzip", "", "-br"):
            site.mark = mark
            await walk(tmp_path, server.url, refresh=bool((tmp_path / "crawl.sqlite").exists()))
        site.version = {"/": 2, "/b": 2}
        pages = await walk(tmp_path, server.url, refresh=True)
    assert {page.title for page in pages.values()} == {"v2"}


# The server itself.


@pytest.fixture
def root() -> Iterator[Path]:
    """A directory for Apache, whose workers are another user and cannot read in `tmp_path`."""
    with TemporaryDirectory() as directory:
        Path(directory).chmod(0o755)
        yield Path(directory)


@pytest.mark.real
@pytest.mark.parametrize(("coding", "mark"), [("DEFLATE", "-gzip"), ("BROTLI_COMPRESS", "-br")])
async def test_apache_answers_a_refresh_with_304(
    coding: str, mark: str, root: Path, tmp_path: Path
) -> None:
    text = "<title>{}</title><a href=b.html>b</a>" + "<p>hello world</p>" * 200
    servers = f"Listen 127.0.0.1:@PORT@\nAddOutputFilterByType {coding} text/html"
    with apache(servers, root=root) as server:
        url = server.url()
        for name in ("index.html", "b.html"):
            (root / name).write_text(text.format(name))
        first = await walk(tmp_path / "crawl", url)
        assert statuses(first) == {"": 200, "b.html": 200}
        for page in first.values():
            assert page.headers["etag"].endswith(f'{mark}"')
        for _ in range(2):
            again = await walk(tmp_path / "crawl", url, refresh=True)
            assert statuses(again) == {"": 304, "b.html": 304}
        (root / "b.html").write_text(text.format("new"))
        changed = await walk(tmp_path / "crawl", url, refresh=True)
        assert statuses(changed) == {"": 304, "b.html": 200}
        assert changed["b.html"].title == "new"
        # A file of the same size that is older than the one it replaces.
        (root / "b.html").write_text(text.format("old"))
        os.utime(root / "b.html", (1, 1))
        restored = await walk(tmp_path / "crawl", url, refresh=True)
        assert statuses(restored) == {"": 304, "b.html": 200}
