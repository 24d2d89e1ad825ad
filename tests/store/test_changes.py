"""A refresh tells what somebody has edited, not what an application writes anew each time."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from cases import for_each
from msgspec.structs import replace

from trio_crawler import Crawler, History, Job, Page, Reason, Response, SqliteFrontier, StoreError
from trio_crawler.store import Change
from trio_crawler.testing import Web

HOME = "http://site.test/"
BODY = "<p>A text that stays.</p><a href='/a'>a</a>"


def page(
    body: str, head: str = "<title>Home</title>", kind: str = "text/html", **fields: str
) -> Response:
    text = f"<!doctype html><html><head>{head}</head><body>{body}</body></html>"
    return Response(
        200, httpx.Headers({"content-type": f"{kind}; charset=utf-8", **fields}), text.encode()
    )


async def walk(directory: Path, site: dict[str, Response]) -> None:
    async with SqliteFrontier(directory, refresh=True) as frontier:
        await Crawler([HOME], fetch=Web(site), frontier=frontier).crawl()


async def changes(directory: Path, *sites: dict[str, Response]) -> dict[str, Change]:
    """Walk through each site in turn, and return the changes of the last one by path."""
    for site in sites:
        await walk(directory, site)
    with History(directory) as history:
        return {change.url.removeprefix(HOME[:-1]): change for change in history.changes()}


# Each returns the part of a page that an application writes at its nth request.
NOISE: dict[str, Callable[[int], str]] = {
    "DokuWiki": lambda n: f"<img src='/taskrunner.php?id=start&amp;{1_700_000_000 + n}' alt=''>",
    "WordPress": lambda n: f"<img src='https://{n}.gravatar.com/avatar/f00?s=40' alt=face>",
    "Django": lambda n: f"<input type=hidden name=csrfmiddlewaretoken value={n:032x}>",
    "Trac": lambda n: f"<form><input type='hidden' name='__FORM_TOKEN' value='{n:024x}'/></form>",
    "MediaWiki": lambda n: (
        f"<script>RLCONF={{'wgPageParseReport':{{'walltime':'0.0{n}1'}}}}</script>"
    ),
    "MediaWiki, cache": lambda n: f"<!-- Saved in parser cache with timestamp 2026010{n} -->",
    "a time that it took": lambda n: f"<p>This page was generated in 0.01{n} s</p>",
    "views": lambda n: f"<p>Page last viewed {n} minutes ago / 1,23{n} views</p>",
    "a nonce": lambda n: f"<style nonce='{n:016x}'></style>",
    "a link with a time": lambda n: f"<a href='/a?at={1_700_000_000 + n}' rel=nofollow>a</a>",
    "a link with a token": lambda n: f"<a href='/a?_wpnonce=00f{n}a00e1b' rel=nofollow>a</a>",
}


@for_each("noise", NOISE.values(), ids=NOISE)
async def test_a_page_that_is_another_at_each_request_has_not_changed(
    noise: Callable[[int], str], tmp_path: Path
) -> None:
    before, after = ({"/": page(BODY + noise(n)), "/a": page("a")} for n in (1, 2))
    found = await changes(tmp_path, before, after)
    assert {change.kind for change in found.values()} == {"unchanged"}
    sizes = [len(site["/"].body) for site in (after, before)]
    assert found["/"].detail == "only its markup: {} bytes, before: {}".format(*sizes)
    assert found["/a"].detail == ""


EDITS: dict[str, tuple[Response, str]] = {
    "text": (page("<p>Another text.</p><a href='/a'>a</a>"), "text: 15 bytes, before: 20"),
    "title": (page(BODY, "<title>Start</title>"), 'title: "Start", before: "Home"'),
    "no title": (page(BODY, ""), 'title: "", before: "Home"'),
    "link": (page(BODY.replace("/a", "/b")), "links: +1 -1"),
    "link of another page": (page(BODY.replace("/a", "/a?id=2")), "links: +1 -1"),
    "canonical": (
        page(BODY, "<title>Home</title><link rel=canonical href=/a>"),
        f'canonical: "{HOME}a", before: ""',
    ),
    "robots": (
        page(BODY, "<title>Home</title><meta name=robots content=noindex>"),
        'robots: "noindex", before: ""',
    ),
    "all": (
        page("<p>No.", "<title>B</title>"),
        'text: 3 bytes, before: 20; title: "B", before: "Home"; links: +0 -1',
    ),
}


@for_each("edited, detail", EDITS.values(), ids=EDITS)
async def test_an_edited_page_is_the_only_one_that_has_changed_and_what_has_is_told(
    edited: Response, detail: str, tmp_path: Path
) -> None:
    others = {f"/{name}": page(name) for name in ("a", "b", "a?id=2")}
    links = "".join(f"<a href='{path}'>x</a>" for path in others)
    rest = {**others, "/map": page(links)}
    seeds = [HOME, HOME + "map"]
    for home in (page(BODY), edited):
        async with SqliteFrontier(tmp_path, refresh=True) as frontier:
            await Crawler(seeds, fetch=Web({**rest, "/": home}), frontier=frontier).crawl()
    with History(tmp_path) as history:
        found = {change for change in history.changes() if change.kind != "unchanged"}
    assert found == {Change(HOME, "changed", detail)}


async def test_what_is_no_html_is_compared_by_its_bytes(tmp_path: Path) -> None:
    before = {"/": page(BODY), "/a": page("<p>5 minutes ago", kind="text/plain")}
    after = {"/": page(BODY), "/a": page("<p>6 minutes ago", kind="text/plain")}
    found = await changes(tmp_path, before, after)
    size = len(before["/a"].body)
    assert found["/a"][1:] == ("changed", f"{size} bytes, before: {size}")


async def test_a_body_that_was_cut_is_compared_by_its_size(tmp_path: Path) -> None:
    one, two = (page(BODY + noise) for noise in ("<i x=1>", "<i x=22>"))
    before, after = ({"/": replace(each, flaw=Reason.TOO_LARGE)} for each in (one, two))
    found = await changes(tmp_path, before, after)
    size = len(one.body)
    assert found["/"][1:] == ("changed", f"{size + 1} bytes, before: {size}")


class Tagged(Web):
    """Answer 304 to a request with the tag of the page."""

    async def __call__(self, job: Job) -> Response:
        answer = await super().__call__(job)
        assert isinstance(answer, Response)
        tag = answer.headers.get("etag")
        return Response(304) if job.validator and job.validator.etag == tag else answer


async def test_the_text_of_a_page_that_was_answered_with_304_is_still_known(
    tmp_path: Path,
) -> None:
    one, two = (page(BODY + NOISE["Django"](n), etag=f'"{n}"') for n in (1, 2))
    edited = page(BODY + "More.", etag='"3"')
    found = []
    for home in (one, one, two, edited):
        async with SqliteFrontier(tmp_path, refresh=True) as frontier:
            await Crawler([HOME], fetch=Tagged({"/": home}), frontier=frontier).crawl()
        with History(tmp_path) as history:
            found.append({change.url: change[1:] for change in history.changes()})
    size = len(one.body)
    assert [each.get(HOME) for each in found[1:]] == [
        ("unchanged", ""),
        ("unchanged", f"only its markup: {size} bytes, before: {size}"),
        ("changed", "text: 26 bytes, before: 20"),
    ]


async def test_a_database_without_the_page_that_a_304_refers_to_is_damaged(tmp_path: Path) -> None:
    one, two = (page(BODY + NOISE["Django"](n), etag=f'"{n}"') for n in (1, 2))
    for home in (one, one, two):
        async with SqliteFrontier(tmp_path, refresh=True) as frontier:
            await Crawler([HOME], fetch=Tagged({"/": home}), frontier=frontier).crawl()
    with sqlite3.connect(tmp_path / "crawl.sqlite") as connection:
        connection.execute("DELETE FROM page_ WHERE number = 1")
    connection.close()
    with History(tmp_path) as history, pytest.raises(StoreError, match="content of page"):
        list(history.changes())


async def test_only_good_pages_of_html_have_a_text_in_the_view_of_pages(tmp_path: Path) -> None:
    missing = replace(page("<p>No such page."), status=404)
    site = {"/": page(BODY + "<a href=/b><a href=/c>"), "/a": missing, "/b": page("<p>\u00e4")}
    await walk(tmp_path, {**site, "/c": page("c", kind="text/plain")})
    with sqlite3.connect(tmp_path / "crawl.sqlite") as connection:
        sql = "SELECT substr(url, 17), length(text_digest), text_size FROM pages ORDER BY url"
        found = connection.execute(sql).fetchall()
    connection.close()
    assert found == [("/", 20, 20), ("/a", None, None), ("/b", 20, 2), ("/c", None, None)]


async def test_urls_that_a_walk_left_out_of_a_sample_are_neither_new_nor_gone(
    tmp_path: Path,
) -> None:
    words = [f"{first}{second}" for first in "abcdefghij" for second in "klmnopqrst"]
    paths = [f"/list?sort={word}&by={word[::-1]}" for word in words]

    def linked(paths: list[str]) -> Response:
        return page("".join(f"<p><a href='{path}'>x</a></p>" for path in paths))

    lists = dict.fromkeys(paths, page("the same list, ordered in another way"))
    fetched = []
    for order in (paths, paths[::-1]):
        await walk(tmp_path, {"/": linked(order), **lists})
        with History(tmp_path) as history:
            fetched.append({each.url for each in history.outcomes() if isinstance(each, Page)})
    assert fetched[0] - fetched[1]
    assert fetched[1] - fetched[0]
    found = await changes(tmp_path)
    assert {change.kind for change in found.values()} == {"unchanged"}
