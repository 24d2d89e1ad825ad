"""Crawls with a lasting frontier that went wrong once: resumed, refreshed, or out of room."""

from __future__ import annotations

import errno
import io
import os
import sqlite3
from collections.abc import Callable, Iterable
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import httpx
import pytest
import trio

from trio_crawler import (
    Crawler,
    History,
    Limits,
    Outcome,
    Page,
    Response,
    SqliteFrontier,
    Statistics,
    StoreError,
    same_site,
)
from trio_crawler.store import compact
from trio_crawler.testing import Web, html, redirect, robots

HOME = "http://site.test/"
XML = httpx.Headers({"content-type": "text/xml"})


async def crawl(
    directory: Path,
    web: Web,
    most: float = float("inf"),
    *,
    limits: Limits | None = None,
    refresh: bool = False,
    **more: object,
) -> tuple[list[Outcome], Statistics]:
    """Crawl until so many outcomes have come, or to the end."""
    found: list[Outcome] = []
    with trio.fail_after(20):
        async with SqliteFrontier(directory, refresh=refresh) as frontier:
            crawler = Crawler([HOME], fetch=web, frontier=frontier, limits=limits, **more)
            async with crawler.outcomes() as outcomes:
                async for outcome in outcomes:
                    found.append(outcome)
                    if len(found) >= most:
                        break
            return found, crawler.statistics()


async def crawl_until(
    directory: Path, web: Web, enough: Callable[[Outcome], bool], **more: object
) -> None:
    """Crawl with one worker, and leave with what is enough; that one is not settled."""
    async with SqliteFrontier(directory) as frontier:
        crawler = Crawler([HOME], fetch=web, frontier=frontier, workers=1, **more)
        async with crawler.outcomes() as outcomes:
            async for outcome in outcomes:
                if enough(outcome):
                    break


def versioned(tag: str, *links: str, head: str = "") -> Response:
    page = html(*links, title=tag)
    headers = httpx.Headers([*page.headers.raw, (b"etag", tag.encode())])
    return Response(200, headers, page.body.replace(b"<title>", head.encode() + b"<title>"))


class Versions(Web):
    """Answer 304 to whoever has the version."""

    async def __call__(self, job):
        answer = await super().__call__(job)
        tag = answer.headers.get("etag") if isinstance(answer, Response) else None
        return Response(304) if tag and job.validator and job.validator.etag == tag else answer


def urlset(*paths: str) -> Response:
    listed = "".join(f"<url><loc>{HOME}{path}</loc></url>" for path in paths)
    return Response(200, XML, f"<?xml version='1.0'?><urlset xmlns='x'>{listed}</urlset>".encode())


def is_at(path: str) -> Callable[[Outcome], bool]:
    return lambda outcome: outcome.url == HOME + path


async def test_where_a_refused_redirect_led_is_not_asked_for_by_a_fuller_path_of_a_later_run(
    tmp_path,
):
    # With one redirect allowed "/there" has none left; then a link leads to it.
    web = Web(
        {
            "/": html("/moved", "/last"),
            "/moved": redirect("/there"),
            "/there": redirect("http://elsewhere.test/"),
            "/last": html("/x"),
            "/x": html("/there"),
        }
    )
    limits = Limits(max_redirects=1)
    await crawl_until(tmp_path, web, is_at("x"), limits=limits)
    assert web.hits[HOME + "there"] == 1
    await crawl(tmp_path, web, limits=limits)
    assert "http://elsewhere.test/" not in web.hits


async def test_a_level_is_done_before_the_next_one_begins_in_a_later_run_too(tmp_path):
    # "/a" redirects to "/a2", which has the depth of "/a": but comes after the links of "/b".
    site = {
        "/": html("/b", "/a"),
        "/b": html("/b/1"),
        "/a": redirect("/a2"),
        "/a2": html("/x"),
        "/b/1": html("/b/2"),
        "/b/2": html("/x"),
        "/x": html("/x/1"),
        "/x/1": html("/x/2"),
        "/x/2": html(),
    }
    limits = Limits(max_depth=4)
    whole = {each.url: each.depth for each in (await crawl(tmp_path / "1", Web(site)))[0]}
    web = Web(site)
    await crawl_until(tmp_path / "2", web, is_at("a2"), limits=limits)
    order: list[str] = []

    class Noted(Web):
        async def __call__(self, job):
            order.append(job.url.removeprefix(HOME))
            return await super().__call__(job)

    await crawl(tmp_path / "2", Noted(site), limits=limits, workers=1)
    with History(tmp_path / "2") as history:
        assert {each.url: each.depth for each in history.outcomes()} == whole
    assert order.index("a2") < order.index("b/1")


async def test_what_waits_in_portions_does_not_open_a_level_early(tmp_path):
    # 600 links of the second level are more than what is taken over at once.
    links = [f"/b/{number}" for number in range(600)]
    site = {
        "/": html("/b", "/a"),
        "/b": html(*links),
        "/a": redirect("/a2"),
        "/a2": html("/x"),
        "/x": html(),
        **{link: html("/x/1") for link in links},
        "/x/1": html(),
    }
    limits = Limits(max_depth=5)
    await crawl_until(tmp_path, Web(site), is_at("a2"), limits=limits)
    order: list[str] = []

    class Noted(Web):
        async def __call__(self, job):
            order.append(job.url.removeprefix(HOME))
            return await super().__call__(job)

    await crawl(tmp_path, Noted(site), 5, limits=limits, workers=1)
    assert next(each for each in order if each != "robots.txt") == "a2"


async def test_a_refresh_reads_the_sitemaps_of_a_robots_txt_that_is_still_fresh(tmp_path):
    site = {
        "/robots.txt": robots(f"Sitemap: {HOME}map.xml"),
        "/map.xml": urlset("only"),
        "/": html("/a"),
        "/a": html(),
        "/only": html(),
    }
    await crawl(tmp_path, Web(site))
    web = Web(site)
    await crawl(tmp_path, web, refresh=True)
    assert web.hits[HOME + "map.xml"] == 1
    with History(tmp_path) as history:
        kinds = {change.url.removeprefix(HOME): change.kind for change in history.changes()}
    assert kinds["only"] == "unchanged"


async def test_what_a_robots_txt_forbade_in_an_earlier_walk_is_asked_for_when_it_no_longer_does(
    tmp_path,
):
    other = "http://other.test/"
    site = {
        "/": html(f"{other}b", f"{other}a"),
        f"{other}a": html(),
        f"{other}b": html(),
        f"{other}robots.txt": robots("User-agent: *", "Disallow: /b"),
    }
    both = same_site([HOME, other])
    await crawl(tmp_path, Web(site), scope=both)
    web = Web({**site, f"{other}robots.txt": robots("User-agent: *")})
    await crawl(tmp_path, web, refresh=True, scope=both)
    assert web.hits[f"{other}b"] == 1


async def test_a_run_between_two_of_a_refresh_asks_for_robots_txt_once_in_the_walk(tmp_path):
    site = {"/robots.txt": robots("User-agent: *"), "/": html("/a", "/b"), "/a": html()}
    await crawl(tmp_path, Web(site))
    web = Web(site)
    while len((await crawl(tmp_path, web, 2, refresh=True))[0]) == 2:
        pass
    with History(tmp_path) as history:
        assert history.walks == 2
    assert web.hits[HOME + "robots.txt"] == 1


async def test_a_sitemap_that_is_refused_is_told_of_once_in_all_runs(tmp_path, monkeypatch):
    file = robots("Sitemap: http://elsewhere.test/map.xml")
    web = Web({"/robots.txt": file, "/": html("/a", "/b"), "/a": html(), "/b": html()})
    await crawl(tmp_path, web, 2, workers=1)
    # As if more than a day had passed, or the run had been killed before the file was kept.
    with closing(sqlite3.connect(tmp_path / "crawl.sqlite")) as database, database:
        database.execute("DELETE FROM robots")
    database.close()
    await crawl(tmp_path, web)
    assert web.hits[HOME + "robots.txt"] == 2
    with History(tmp_path) as history:
        assert [each.url for each in history.sitemaps()] == ["http://elsewhere.test/map.xml"]


async def test_a_page_is_folded_into_a_canonical_one_that_has_not_changed(tmp_path):
    canonical = '<link rel="canonical" href="/first">'
    site = {
        "/": html("/first", "/copy"),
        "/first": versioned('"f"', "/a", head=canonical),
        "/copy": versioned('"c"', "/a", "/copy/only", head=canonical),
        "/a": html(),
        "/copy/only": html(title="only"),
    }
    found, _ = await crawl(tmp_path, Versions(site), fold_canonical=True)
    before = folded(found)
    assert before[HOME + "copy"] == HOME + "first"
    found, _ = await crawl(tmp_path, Versions(site), refresh=True, fold_canonical=True)
    assert folded(found) == before


async def test_a_page_is_folded_into_a_canonical_one_that_has_not_changed_in_an_earlier_run(
    tmp_path,
):
    canonical = '<link rel="canonical" href="/first">'
    site = {
        "/": html("/first", "/z"),
        "/first": versioned('"f"', "/a", head=canonical),
        "/z": html("/copy"),
        "/a": html(),
        "/copy": versioned('"c"', "/copy/only", head=canonical),
        "/copy/only": html(),
    }
    await crawl(tmp_path, Versions(site), fold_canonical=True)
    await crawl(tmp_path, Versions(site), 3, refresh=True, fold_canonical=True, workers=1)
    await crawl(tmp_path, Versions(site), refresh=True, fold_canonical=True)
    with History(tmp_path) as history:
        found = folded(history.outcomes())
    assert {url for url, into in found.items() if into} == {HOME + "copy"}
    assert HOME + "copy/only" in found


@pytest.mark.parametrize("answer", [Response(404), html()], ids=["404", "page"])
async def test_a_page_is_not_folded_into_one_that_failed_in_an_earlier_run(tmp_path, answer):
    alias = versioned('"c"', head='<link rel="canonical" href="/first">')
    site = {"/": html("/first", "/z"), "/first": answer, "/z": html("/copy"), "/copy": alias}
    await crawl(tmp_path, Web(site), 3, fold_canonical=True, workers=1)
    found, _ = await crawl(tmp_path, Web(site), fold_canonical=True)
    expected = None if answer.status == 404 else HOME + "first"
    assert folded(found)[HOME + "copy"] == expected


def folded(outcomes: Iterable[Outcome]) -> dict[str, str | None]:
    """Say what each page was folded into."""
    return {o.url: o.folded_into for o in outcomes if isinstance(o, Page)}


async def test_a_page_budget_holds_for_all_runs(tmp_path):
    web = Web({"/": html(*(f"/{number}" for number in range(20)))})
    for _ in range(3):
        await crawl(tmp_path, web, limits=Limits(max_pages=4))
    assert sum(web.hits.values()) == 4


async def test_a_frontier_serves_one_crawl(tmp_path):
    web = Web({"/": html("/a", "/b"), "/a": html(), "/b": html()})
    async with SqliteFrontier(tmp_path) as frontier:
        crawler = Crawler([HOME], fetch=web, frontier=frontier, workers=1)
        async with crawler.outcomes() as outcomes:
            async for _ in outcomes:
                crawler.stop()
        with pytest.raises(RuntimeError, match="one crawl"):
            await Crawler([HOME], fetch=web, frontier=frontier).crawl()


async def test_the_sum_holds_while_a_crawl_takes_over_what_earlier_runs_have_left(tmp_path):
    web = Web({"/": html(*(f"/{number}" for number in range(50)))})
    await crawl(tmp_path, web, 20)
    seen: list[Statistics] = []
    async with SqliteFrontier(tmp_path) as frontier:
        crawler = Crawler([HOME], fetch=web, frontier=frontier)

        class Watching(trio.abc.Instrument):
            def after_task_step(self, task):
                seen.append(crawler.statistics())

        watching = Watching()
        trio.lowlevel.add_instrument(watching)
        try:
            await crawler.crawl()
        finally:
            trio.lowlevel.remove_instrument(watching)
    assert min(each.waiting for each in seen) >= 0


async def test_a_crawl_delay_holds_in_a_later_run_that_does_not_ask_for_it_again(
    tmp_path, autojump_clock
):
    file = robots("User-agent: *", "Crawl-delay: 5")
    web = Web({"/robots.txt": file, "/": html(*(f"/{number}" for number in range(6)))})
    await crawl_until(tmp_path, web, is_at("1"))
    starts: list[float] = []

    class Timed(Web):
        async def __call__(self, job):
            starts.append(trio.current_time())
            return await super().__call__(job)

    async with SqliteFrontier(tmp_path) as frontier:
        await Crawler([HOME], fetch=Timed({}), frontier=frontier).crawl()
    assert len(starts) == 5
    assert all(later - earlier >= 5 for earlier, later in pairwise(starts))


async def test_a_host_that_answered_in_an_earlier_run_has_its_time_to_come_back(
    tmp_path, autojump_clock
):
    file = robots("User-agent: *")
    pages = {f"/{number}": html() for number in range(30)}
    site = {"/robots.txt": file, "/": html(*pages), **pages}
    await crawl_until(tmp_path, Web(site), is_at("1"))
    began = trio.current_time()

    class Restarted(Web):
        async def __call__(self, job):
            answer = await super().__call__(job)
            away = trio.current_time() - began < 60
            return Response(503) if away else answer

    async with SqliteFrontier(tmp_path) as frontier:
        totals = await Crawler([HOME], fetch=Restarted(site), frontier=frontier).crawl()
    assert totals.skipped == totals.failures == 0
    with History(tmp_path) as history:
        assert {page.status for page in history.outcomes() if isinstance(page, Page)} == {200}


class Full(io.FileIO):
    """A file on a disk without any space left."""

    def write(self, data: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


async def test_a_disk_that_is_full_for_what_waits_is_told_as_for_all_else(tmp_path, monkeypatch):
    # More than is kept in memory.
    web = Web({"/": html(*(f"/{n}" for n in range(5))), **{
        f"/{n}": html(*(f"/{n}x{m}{'q' * 1_900}" for m in range(2_000))) for n in range(5)
    }})  # fmt: skip
    monkeypatch.setattr(compact, "TemporaryFile", lambda **_: Full(tmp_path / "full", "w+"))
    with pytest.raises(StoreError, match="free some space") as told:
        await crawl(tmp_path, web)
    assert str(tmp_path) in str(told.value)
    monkeypatch.undo()
    _, totals = await crawl(tmp_path, web, 100)
    assert totals.admitted == 10_006
    assert web.hits[HOME] == 1
