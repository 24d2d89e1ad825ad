"""A crawl with a lasting frontier: where it is ended, the next run goes on."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections import Counter
from contextlib import closing
from pathlib import Path

import httpx
import pytest
import trio
from cases import for_each

from trio_crawler import (
    Crawler,
    Failure,
    History,
    Limits,
    Outcome,
    Page,
    Politeness,
    Reason,
    Redirect,
    Response,
    SqliteFrontier,
    Statistics,
)
from trio_crawler.report import to_jsonl
from trio_crawler.store import DifferentCrawl, End, InUse
from trio_crawler.store.store import Store
from trio_crawler.store.writer import Batch
from trio_crawler.testing import Web, fault, html, redirect, robots

HOME = "http://site.test/"
SITE = {
    "/": html("/a", "/b", "/c", "/moved", "/gone", title="home"),
    "/a": html("/a/1", "/a/2", "/", title="a"),
    "/a/1": html("/b", "/a/1/x"),
    "/a/1/x": html(),
    "/a/2": html("/a/1", "http://elsewhere.test/"),
    "/b": html("/b/1", "/b/2", "/b/3"),
    "/b/1": html("/down"),
    "/b/2": html(),
    "/b/3": redirect("/b/1"),
    "/c": html("/a", "/moved"),
    "/moved": redirect("/b/2"),
    "/down": fault(Reason.TLS),
}
PATHS = sorted([*SITE, "/gone"])


def brief(outcome: Outcome) -> tuple[object, ...]:
    """Say what of an outcome does not depend on the order of the crawl."""
    match outcome:
        case Page():
            links = sorted(outcome.links), sorted(outcome.rejected)
            return "page", outcome.url, outcome.status, outcome.title, *links
        case Redirect():
            return "redirect", outcome.url, outcome.status, outcome.target, outcome.rejected
        case Failure():
            return "failure", outcome.url, outcome.reason
        case _:
            return "skipped", outcome.url, outcome.reason


async def crawl(
    directory: Path, web: Web, most: float = float("inf"), **more: object
) -> tuple[list[Outcome], Statistics]:
    """Crawl until so many outcomes have come, or to the end."""
    found = []
    with trio.fail_after(20):
        async with SqliteFrontier(directory) as frontier:
            lines = frontier.stream(directory.with_suffix(".jsonl"), to_jsonl)
            crawler = Crawler([HOME], fetch=web, frontier=frontier, **more)
            async with crawler.outcomes() as outcomes:
                async for outcome in outcomes:
                    lines.add(outcome)
                    found.append(outcome)
                    if len(found) >= most:
                        break
            return found, crawler.statistics()


def stored(directory: Path) -> list[tuple[object, ...]]:
    with History(directory) as history:
        return sorted(map(brief, history.outcomes()), key=repr)


def lines_of(directory: Path) -> list[str]:
    text = (directory.with_suffix(".jsonl")).read_text()
    return [json.loads(each)["url"] for each in text.splitlines()]


async def test_a_crawl_in_a_directory_has_the_outcomes_of_one_in_memory(tmp_path):
    async with Crawler([HOME], fetch=Web(SITE)).outcomes() as outcomes:
        expected = sorted([brief(each) async for each in outcomes], key=repr)
    found, totals = await crawl(tmp_path / "crawl", Web(SITE))
    assert sorted(map(brief, found), key=repr) == expected
    assert stored(tmp_path / "crawl") == expected
    assert totals.admitted == len(expected) == len(PATHS)
    assert sorted(lines_of(tmp_path / "crawl")) == sorted(HOME[:-1] + path for path in PATHS)


@pytest.mark.parametrize("workers", [1, 2, 10])
async def test_a_crawl_that_was_left_again_and_again_loses_nothing_and_doubles_nothing(
    tmp_path, workers
):
    directory, web = tmp_path / "crawl", Web(SITE)
    runs = 0
    while True:
        runs += 1
        found, totals = await crawl(directory, web, 2, workers=workers)
        if len(found) < 2:
            break
    await crawl(tmp_path / "whole", Web(SITE))
    assert stored(directory) == stored(tmp_path / "whole")
    assert Counter(lines_of(directory))[HOME] >= 1
    assert totals.admitted == len(PATHS)
    assert totals.pages + totals.redirects + totals.failures == len(PATHS)
    # What was under way when a run was left is asked for again: twice what the workers had.
    again = sum(web.hits.values()) - len(PATHS)
    assert again <= runs * 2 * workers
    assert max(web.hits.values()) <= runs


def stop_and_leave(crawler: Crawler) -> bool:
    crawler.stop()
    return True


def stop_at_the_end(crawler: Crawler) -> None:
    totals = crawler.statistics()
    if not totals.waiting and totals.admitted == len(PATHS) and totals.in_flight == 1:
        crawler.stop()


@for_each(
    "leave, limits, how, reason",
    [
        (lambda crawler: True, {}, End.CUT_SHORT, None),
        (stop_and_leave, {}, End.CUT_SHORT, Reason.STOPPED),
        (lambda crawler: crawler.stop(), {}, End.STOPPED, Reason.STOPPED),
        (lambda crawler: crawler.stop(Reason.TOO_LARGE), {}, End.STOPPED, Reason.TOO_LARGE),
        (lambda crawler: None, {"max_seconds": 2.5}, End.STOPPED, Reason.TIME_BUDGET),
        (lambda crawler: None, {"max_pages": 3}, End.SPENT, Reason.PAGE_BUDGET),
        (stop_at_the_end, {}, End.FINISHED, None),
        (lambda crawler: None, {}, End.FINISHED, None),
    ],
)
async def test_the_history_says_how_and_why_a_run_ended(
    tmp_path, autojump_clock, leave, limits, how, reason
):
    async with SqliteFrontier(tmp_path) as frontier:
        web = Web(SITE, delay=1)
        crawler = Crawler([HOME], fetch=web, limits=Limits(**limits), frontier=frontier)
        async with crawler.outcomes() as outcomes:
            async for _ in outcomes:
                if leave(crawler):
                    break
    with History(tmp_path) as history:
        assert [(run.how, run.reason) for run in history.runs] == [(how, reason)]


async def test_a_run_ends_for_the_first_of_several_reasons(tmp_path):
    async with SqliteFrontier(tmp_path) as frontier:
        crawler = Crawler([HOME], fetch=Web(SITE), frontier=frontier)
        async with crawler.outcomes() as outcomes:
            async for _ in outcomes:
                crawler.stop(Reason.TIME_BUDGET)
                crawler.stop(Reason.STOPPED)
    with History(tmp_path) as history:
        assert [run.reason for run in history.runs] == [Reason.TIME_BUDGET]


async def test_a_directory_and_a_stream_may_be_any_kind_of_path(tmp_path):
    class Place:
        def __init__(self, path: Path) -> None:
            self.path = path

        def __fspath__(self) -> str:
            return str(self.path)

    async with SqliteFrontier(Place(tmp_path / "crawl")) as frontier:
        stream = frontier.stream(Place(tmp_path / "lines"), to_jsonl)
        assert stream.path == tmp_path / "lines"
        await Crawler([], frontier=frontier).crawl()
    with History(Place(tmp_path / "crawl")) as history:
        assert history.owns(Place(tmp_path / "lines"))


async def test_each_record_is_in_a_stream_once_however_often_the_crawl_is_left(tmp_path):
    directory, web = tmp_path / "crawl", Web(SITE)
    while len((await crawl(directory, web, 3))[0]) == 3:
        pass
    assert sorted(lines_of(directory)) == sorted(HOME[:-1] + path for path in PATHS)


async def test_pages_are_asked_for_while_the_one_before_is_written(tmp_path):
    web, asked, in_time = Web(SITE), threading.Event(), []

    async def fetch(job):
        answer = await web(job)
        if web.hits.total() > 2:
            asked.set()
        return answer

    async with SqliteFrontier(tmp_path / "crawl") as frontier:
        # Called in the thread that writes.
        lines = frontier.stream(tmp_path / "lines", lambda _: in_time.append(asked.wait(5)) or b"")
        crawler = Crawler([HOME], fetch=fetch, frontier=frontier, workers=2)
        async with crawler.outcomes() as outcomes:
            async for outcome in outcomes:
                lines.add(outcome)
    assert all(in_time)


async def test_a_crawl_that_has_ended_asks_for_nothing_when_it_is_run_again(tmp_path):
    await crawl(tmp_path / "crawl", Web(SITE))
    web = Web(SITE)
    found, totals = await crawl(tmp_path / "crawl", web)
    assert not found
    assert not web.hits
    assert totals.admitted == len(PATHS)
    assert totals.waiting == totals.in_flight == 0


async def test_what_waits_when_a_crawl_is_stopped_is_not_skipped_but_stays(tmp_path):
    directory = tmp_path / "crawl"
    async with SqliteFrontier(directory) as frontier:
        crawler = Crawler([HOME], fetch=Web(SITE), frontier=frontier, workers=2)
        found = []
        async with crawler.outcomes() as outcomes:
            async for outcome in outcomes:
                found.append(outcome)
                crawler.stop()
        totals = crawler.statistics()
    assert totals.waiting == totals.admitted - len(found) > 0
    assert totals.skipped == totals.in_flight == 0
    await crawl(directory, Web(SITE))
    await crawl(tmp_path / "whole", Web(SITE))
    assert stored(directory) == stored(tmp_path / "whole")


async def test_a_page_budget_counts_all_runs_and_a_greater_one_goes_on(tmp_path):
    directory = tmp_path / "crawl"

    async def pages(most: float) -> Statistics:
        limits = Limits(max_pages=most)
        async with SqliteFrontier(directory) as frontier:
            crawler = Crawler([HOME], fetch=Web(SITE), frontier=frontier, limits=limits)
            return await crawler.crawl()

    for most, expected in [(4, 4), (4, 4), (6, 6), (100, len(PATHS) - 2)]:
        totals = await pages(most)
        assert totals.pages + totals.failures == expected
    await crawl(tmp_path / "whole", Web(SITE))
    assert stored(directory) == stored(tmp_path / "whole")


async def test_a_url_that_waits_to_be_tried_again_keeps_its_tries(tmp_path):
    directory = tmp_path / "crawl"
    web = Web({"/": html("/bad", "/good"), "/bad": Response(503), "/good": html()})
    async with SqliteFrontier(directory) as frontier:
        crawler = Crawler([HOME], fetch=web, frontier=frontier)
        async with crawler.outcomes() as outcomes:
            async for _ in outcomes:
                if web.hits[HOME + "bad"] and web.hits[HOME + "good"]:
                    crawler.stop()
    assert web.hits[HOME + "bad"] == 1
    assert crawler.statistics().waiting == 1
    with closing(sqlite3.connect(directory / "crawl.sqlite")) as database, database:
        rows = database.execute("SELECT url, tries FROM waiting").fetchall()
    database.close()
    assert rows == [(HOME + "bad", 1)]


async def test_robots_txt_is_not_asked_for_again_while_it_is_fresh(tmp_path):
    file = robots("User-agent: *", "Disallow: /b")
    web = Web({**SITE, "/robots.txt": file})
    await crawl(tmp_path / "crawl", web, 2)
    await crawl(tmp_path / "crawl", web)
    assert web.hits[HOME + "robots.txt"] == 1
    assert not any(hit.startswith(HOME + "b") for hit in web.hits)


async def test_a_sitemap_is_read_once_and_what_it_said_is_known_in_the_next_run(tmp_path):
    listed = "".join(f"<url><loc>{HOME}{name}</loc></url>" for name in ("only", "a"))
    text = f"<?xml version='1.0'?><urlset xmlns='x'>{listed}</urlset>"
    sitemap = Response(200, httpx.Headers({"content-type": "text/xml"}), text.encode())
    file = robots(f"Sitemap: {HOME}map.xml")
    web = Web({**SITE, "/robots.txt": file, "/map.xml": sitemap, "/only": html()})
    async with SqliteFrontier(tmp_path / "crawl") as frontier:
        crawler = Crawler([HOME], fetch=web, frontier=frontier)
        async with crawler.outcomes() as outcomes:
            async for _ in outcomes:
                if crawler.sitemaps():
                    crawler.stop()
    async with SqliteFrontier(tmp_path / "crawl") as frontier:
        crawler = Crawler([HOME], fetch=web, frontier=frontier)
        await crawler.crawl()
        assert [each.url for each in crawler.sitemaps()] == [HOME + "map.xml"]
        assert crawler.listing(HOME + "only").sitemap == HOME + "map.xml"
    assert web.hits[HOME + "map.xml"] == 1
    assert web.hits[HOME + "only"] == 1


async def test_a_copy_of_a_page_of_an_earlier_run_is_known_as_one(tmp_path):
    web = Web(
        {
            "/": html("/x"),
            "/x": html("/one", "/two"),
            "/one": html(title="1"),
            "/two": html(title="1"),
        }
    )
    directory = tmp_path / "crawl"
    while len((await crawl(directory, web, 2, workers=1))[0]) == 2:
        pass
    with History(directory) as history:
        copies = {page.url: page.duplicate_of for page in history.outcomes() if page.duplicate_of}
    assert copies == {HOME + "two": HOME + "one"}


async def test_a_directory_is_for_one_crawl_at_a_time(tmp_path):
    async with SqliteFrontier(tmp_path / "crawl"):
        with pytest.raises(InUse, match="another crawl"):
            async with SqliteFrontier(tmp_path / "crawl"):
                pass


async def test_another_meaning_is_refused_and_named(tmp_path):
    async with SqliteFrontier(tmp_path / "crawl", meaning={"strict": True}):
        pass
    with pytest.raises(DifferentCrawl, match="strict"):
        async with SqliteFrontier(tmp_path / "crawl", meaning={"strict": False}):
            pass


def versioned(tag: str, *links: str) -> Response:
    page = html(*links, title=tag)
    return Response(200, httpx.Headers([*page.headers.raw, (b"etag", tag.encode())]), page.body)


class Versions(Web):
    """Answer 304 to whoever has the version."""

    async def __call__(self, job):
        answer = await super().__call__(job)
        tag = answer.headers.get("etag") if isinstance(answer, Response) else None
        return Response(304) if tag and job.validator and job.validator.etag == tag else answer


async def walk(directory: Path, web: Web) -> list[Outcome]:
    async with (
        SqliteFrontier(directory, refresh=True) as frontier,
        Crawler([HOME], fetch=web, frontier=frontier).outcomes() as outcomes,
    ):
        return [outcome async for outcome in outcomes]


async def test_a_refresh_walks_again_and_says_what_is_new_changed_gone_and_unchanged(tmp_path):
    before = {
        "/": versioned('"1"', "/same", "/other", "/leaves"),
        "/same": versioned('"s"', "/deep"),
        "/deep": html(title="deep"),
        "/other": versioned('"o1"'),
        "/leaves": html(title="leaves"),
    }
    after = {
        **before,
        "/": versioned('"2"', "/same", "/other", "/new"),
        "/other": versioned('"o2"'),
        "/new": html(title="new"),
    }
    await walk(tmp_path, Versions(before))
    found = {outcome.url: outcome for outcome in await walk(tmp_path, Versions(after))}
    assert found[HOME + "same"].status == 304
    # What it has said is known without its body: the walk goes on.
    assert found[HOME + "same"].links == (HOME + "deep",)
    assert found[HOME + "other"].status == 200
    with History(tmp_path) as history:
        changes = {change.url.removeprefix(HOME): change.kind for change in history.changes()}
    assert changes == {
        "": "changed",
        "same": "unchanged",
        "deep": "unchanged",
        "other": "changed",
        "leaves": "gone",
        "new": "new",
    }


async def test_a_refresh_knows_copies_also_of_what_has_not_changed(tmp_path):
    text = html("/a", title="same")

    def tagged(tag: str) -> Response:
        return Response(
            200, httpx.Headers([*text.headers.raw, (b"etag", tag.encode())]), text.body
        )

    site = {
        "/": versioned('"1"', "/one", "/two"),
        "/one": tagged('"one"'),
        "/two": tagged('"two"'),
        "/a": html("/new"),
    }
    await walk(tmp_path, Versions(site))
    found = {o.url: o for o in await walk(tmp_path, Versions({**site, "/new": text}))}
    copies = {HOME + "one", HOME + "two", HOME + "new"}
    named = {url: found[url].duplicate_of for url in copies if found[url].duplicate_of}
    assert len(named) == 2
    assert set(named.values()) == copies - set(named)
    assert found[HOME + "one"].status == found[HOME + "two"].status == 304


@pytest.mark.parametrize("named", [False, True])
async def test_a_later_run_asks_before_it_knows_all_that_was_seen_and_doubles_nothing(
    tmp_path, named
):
    known = [f"{HOME}{number}" for number in range(6_000)]
    headers = httpx.Headers({"content-type": "text/html"})
    with Store.open(tmp_path) as store:
        batch = Batch()
        for number, url in enumerate(known, 1):
            batch.admitted.append((number, url, "page", 1, 10, HOME, None))
            if number > 2:
                page = Page(url, 200, headers, b"%d" % number, 1, HOME, content_type="text/html")
                batch.settled.append((number, 0.0, page))
        store.write(batch)
    asked: dict[str, bool] = {}

    async with SqliteFrontier(tmp_path) as frontier:

        async def ask(job):
            asked[job.url] = known[-1] in frontier.known(known)
            # A copy of a page of the earlier run, too.
            return Response(200, headers, b"3") if job.url == known[0] else html(*known, "/new")

        class Named:
            async def __call__(self, job):
                return await ask(job)

            async def lookup(self, url):
                await trio.lowlevel.checkpoint()
                return 60.0

        fetch = Named() if named else ask
        politeness = Politeness(robots=False)
        crawler = Crawler([HOME], fetch=fetch, frontier=frontier, politeness=politeness)
        async with crawler.outcomes() as outcomes:
            found = {outcome.url: outcome async for outcome in outcomes}
    # The seed comes last: whether it is new can be told only then.
    assert asked == {known[0]: False, known[1]: False, f"{HOME}new": True, HOME: True}
    assert found[known[0]].duplicate_of == known[2]
    totals = crawler.statistics()
    assert totals.admitted == len(known) + 2 == totals.pages
    assert totals.waiting == totals.in_flight == 0
