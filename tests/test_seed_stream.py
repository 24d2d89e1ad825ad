"""Streams of seeds: read as there is room, and counted until their end; and sitemaps alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Iterable
from contextlib import aclosing
from typing import Any

import pytest
import trio
from sites.frontiers import EVERY, Opened
from trio.testing import wait_all_tasks_blocked

from trio_crawler import (
    Crawler,
    Job,
    Limits,
    Page,
    Politeness,
    Reason,
    Redirect,
    Response,
    Sitemaps,
    Skipped,
    SqliteFrontier,
    including,
)
from trio_crawler.engine.build import MAX_WAITING
from trio_crawler.shared.frontier import SharedFrontier
from trio_crawler.testing import Web, html, redirect, robots

HOME = "http://site.test/"
OTHER = "http://other.test/"
EAGER = Politeness(per_host=1_000, robots=False)


@pytest.fixture(params=EVERY, ids=lambda make: make.__name__)
def opened(request: Any, tmp_path: Any) -> Opened:
    return lambda: request.param(tmp_path)


async def stream(urls: Iterable[str]) -> AsyncIterator[str]:
    for url in urls:
        yield url


async def ok(job: Job) -> Response:
    await trio.lowlevel.checkpoint()
    return Response(200)


def pages(count: int, first: int = 0) -> list[str]:
    return [f"http://h{number % 10}.test/{number}" for number in range(first, first + count)]


async def test_each_url_of_a_stream_is_fetched_once_in_every_frontier(autojump_clock, opened):
    asked = Counter[str]()

    async def fetch(job: Job) -> Response:
        asked[job.url] += 1
        return await ok(job)

    urls = pages(300)
    async with opened() as frontier:
        crawler = Crawler(
            urls[:5],
            seed_stream=stream([*urls, *urls]),
            fetch=fetch,
            frontier=frontier,
            politeness=EAGER,
        )
        totals = await crawler.crawl()
    assert asked == Counter(urls)
    assert (totals.admitted, totals.pages, totals.waiting) == (300, 300, 0)


async def test_a_crawl_does_not_end_while_its_stream_may_yield_more(autojump_clock, opened):
    send, receive = trio.open_memory_channel[str](0)
    seen: list[str] = []

    async def consume(crawler: Crawler) -> None:
        async with crawler.outcomes() as outcomes:
            async for outcome in outcomes:
                seen.append(outcome.url)

    async with opened() as frontier, trio.open_nursery() as nursery:
        crawler = Crawler([], seed_stream=receive, fetch=ok, frontier=frontier, politeness=EAGER)
        nursery.start_soon(consume, crawler)
        for number, url in enumerate(pages(3)):
            # Nothing is unsettled but the stream, for six leases of a worker each time.
            await trio.sleep(60)
            assert crawler.statistics().admitted == len(seen) == number
            await send.send(url)
        # Nor is anything but the end of the stream left that could end the crawl.
        await trio.sleep(60)
        await send.aclose()
        nursery.cancel_scope.deadline = trio.current_time() + 60
    assert not nursery.cancel_scope.cancelled_caught
    assert seen == pages(3)


@pytest.mark.parametrize("count", [0, 1, MAX_WAITING + 1])
async def test_the_crawl_ends_with_its_stream_however_short_that_is(count):
    crawler = Crawler([], seed_stream=stream(pages(count)), fetch=ok, politeness=EAGER)
    assert (await crawler.crawl()).pages == count


@pytest.mark.parametrize("count", [12_000, pytest.param(100_000, marks=pytest.mark.slow)])
async def test_however_many_urls_a_stream_has_at_most_ten_thousand_wait(count):
    most = 0

    async def watched() -> AsyncIterator[str]:
        nonlocal most
        for url in pages(count):
            yield url
            most = max(most, crawler.statistics().waiting)

    async def slow(job: Job) -> Response:
        if job.url.endswith("000"):
            # The stream is read as far as there is room before this one is answered.
            await wait_all_tasks_blocked()
        return Response(404)

    crawler = Crawler([], seed_stream=watched(), fetch=slow, workers=1, politeness=EAGER)
    assert (await crawler.crawl()).admitted == count
    assert most == MAX_WAITING


async def test_a_slow_caller_slows_the_reading_of_the_stream(autojump_clock):
    read = 0

    async def counted() -> AsyncIterator[str]:
        nonlocal read
        for url in pages(3 * MAX_WAITING):
            read += 1
            yield url

    crawler = Crawler([], seed_stream=counted(), fetch=ok, politeness=EAGER)
    async with crawler.outcomes() as outcomes:
        async for _ in outcomes:
            await trio.sleep(3_600)
            break
    # Beside those that wait, each worker has one, the outbox one for each, and one was read.
    assert MAX_WAITING < read <= MAX_WAITING + 2 * 10 + 2


async def test_the_stream_waits_for_memory_too(autojump_clock):
    most = 0

    async def fetch(job: Job) -> Response:
        nonlocal most
        most = max(most, crawler.frontier.hosts.waiting_bytes)
        await trio.sleep(1)
        return Response(200)

    urls = [f"{HOME}{number}{'x' * 1_000}" for number in range(1_000)]
    limits = Limits(max_waiting=200_000)
    crawler = Crawler([], seed_stream=stream(urls), fetch=fetch, limits=limits, politeness=EAGER)
    assert (await crawler.crawl()).pages == 1_000
    assert 50_000 < most < 110_000


async def test_a_stream_that_is_stopped_in_the_middle_admits_no_more(autojump_clock, opened):
    never = trio.Event()
    closed = False

    async def silent() -> AsyncIterator[str]:
        nonlocal closed
        try:
            for url in pages(40):
                yield url
            await never.wait()
        finally:
            closed = True

    async def fetch(job: Job) -> Response:
        await trio.sleep(1)
        return Response(200)

    async with opened() as frontier:
        crawler = Crawler(
            [], seed_stream=silent(), fetch=fetch, frontier=frontier, politeness=EAGER
        )
        async with crawler.outcomes() as outcomes:
            with trio.fail_after(60):
                async for _ in outcomes:
                    crawler.stop()
        totals = crawler.statistics()
        assert closed
        assert totals.admitted == totals.pages + totals.skipped + totals.waiting
        # A store has what it has not granted.
        if not isinstance(frontier, SharedFrontier):
            assert totals.admitted == 40
            assert isinstance(frontier, SqliteFrontier) == bool(totals.waiting)


async def test_a_crawl_that_is_stopped_before_it_begins_reads_nothing():
    read: list[str] = []

    async def told() -> AsyncIterator[str]:
        read.append("begun")
        yield HOME

    crawler = Crawler([], seed_stream=told(), fetch=ok)
    crawler.stop()
    assert (await crawler.crawl()).admitted == 0
    assert read == []


async def test_a_page_budget_ends_the_stream():
    crawler = Crawler(
        [],
        seed_stream=stream(pages(500)),
        fetch=ok,
        limits=Limits(max_pages=30),
        politeness=EAGER,
    )
    totals = await crawler.crawl()
    assert totals.pages == 30
    assert totals.admitted == totals.pages + totals.skipped < 500


async def test_a_caller_that_leaves_or_is_cancelled_leaves_no_task_that_reads(autojump_clock):
    async def endless() -> AsyncIterator[str]:
        number = 0
        while True:
            number += 1
            await trio.sleep(0.01)
            yield f"{HOME}{number}"

    before = trio.lowlevel.current_statistics().tasks_living
    crawler = Crawler([], seed_stream=endless(), fetch=ok, politeness=EAGER)
    async with crawler.outcomes() as outcomes:
        async for _ in outcomes:
            break
    with trio.move_on_after(5) as scope:
        await Crawler([], seed_stream=endless(), fetch=ok, politeness=EAGER).crawl()
    assert scope.cancelled_caught
    assert trio.lowlevel.current_statistics().tasks_living == before


async def test_an_exception_of_the_stream_leaves_the_crawl_with_a_note_of_where_it_was():
    async def broken() -> AsyncIterator[str]:
        yield HOME
        yield OTHER
        raise OSError("the queue is gone")

    crawler = Crawler([], seed_stream=broken(), fetch=ok)
    with pytest.raises(ExceptionGroup) as caught:
        await crawler.crawl()
    (error,) = caught.value.exceptions
    assert error.__notes__ == ["while reading seed_stream, after 2 URLs"]


@pytest.mark.parametrize("wrong", ["ftp://site.test/", "no URL", 7])
async def test_what_is_no_url_is_a_bug_of_the_caller(wrong):
    crawler = Crawler([], seed_stream=stream([wrong]), fetch=ok)
    with pytest.raises(ExceptionGroup) as caught:
        await crawler.crawl()
    (error,) = caught.value.exceptions
    assert "each of seed_stream" in str(error)


@pytest.mark.parametrize("wrong", [[HOME], iter([HOME]), HOME, stream])
def test_a_stream_must_be_an_async_iterable(wrong):
    with pytest.raises(TypeError, match="seed_stream must be an async iterable of URLs"):
        Crawler([], seed_stream=wrong)


WEB = {
    HOME: html("/a", OTHER),
    HOME + "a": html("/b"),
    OTHER: html("/c"),
    OTHER + "moved": redirect("http://third.test/here"),
    "http://third.test/here": html("/on"),
}


async def fetched(seeds: list[str], urls: list[str], **more: Any) -> set[str]:
    web = Web(WEB)
    await Crawler(seeds, seed_stream=stream(urls), fetch=web, **more).crawl()
    return {url for url in web.hits if not url.endswith("robots.txt")}


async def test_of_a_stream_alone_no_link_is_followed_but_each_redirect(autojump_clock):
    urls = [HOME, OTHER + "moved"]
    assert await fetched([], urls) == {*urls, "http://third.test/here"}


async def test_with_seeds_beside_a_stream_links_to_the_hosts_of_the_seeds_are_followed(
    autojump_clock,
):
    found = await fetched([HOME], [OTHER])
    assert found == {HOME, HOME + "a", HOME + "b", OTHER}


async def test_a_scope_says_which_links_of_a_stream_are_followed(autojump_clock):
    found = await fetched([], [HOME], scope=including(r"site\.test/a"))
    assert found == {HOME, HOME + "a"}


@pytest.mark.parametrize("more", [{}, {"max_pages": 100, "max_depth": 2}])
async def test_hosts_beyond_the_limit_are_skipped_and_told(autojump_clock, more):
    urls = [f"http://h{number}.test/{path}" for number in range(5) for path in "ab"]
    deep = "http://h0.test/deep"

    async def fetch(job: Job) -> Response:
        # The others have their outcomes, and the skipped ones too, when its link is found.
        await trio.sleep(10 if job.url == urls[0] else 1)
        return html("/deep") if job.url == urls[0] else Response(200)

    limits = Limits(max_hosts=3, **more)
    crawler = Crawler(
        urls[:1], seed_stream=stream(urls), fetch=fetch, limits=limits, politeness=EAGER
    )
    # The pages of the next level start although some of this one were never fetched.
    with trio.fail_after(60):
        async with crawler.outcomes() as outcomes:
            found = [outcome async for outcome in outcomes]
    assert {each.url for each in found if isinstance(each, Page)} == {*urls[:6], deep}
    skipped = {each.url: each.reason for each in found if isinstance(each, Skipped)}
    assert skipped == dict.fromkeys(urls[6:], Reason.TOO_MANY_HOSTS)


async def test_seeds_that_are_skipped_change_nothing_of_the_page_budget(autojump_clock):
    urls = [f"http://h{number}.test/{path}" for number in range(5) for path in "ab"]

    asked: list[str] = []

    async def fetch(job: Job) -> Response:
        # One after the other: in between more could start, if the budget allowed it.
        asked.append(job.url)
        await trio.sleep(len(asked))
        return Response(200)

    limits = Limits(max_hosts=3, max_pages=3)
    crawler = Crawler([], seed_stream=stream(urls), fetch=fetch, limits=limits, politeness=EAGER)
    totals = await crawler.crawl()
    assert (totals.pages, totals.skipped, len(asked)) == (3, 7, 3)


async def test_the_sitemaps_of_listed_hosts_are_not_read_those_of_seeds_are(autojump_clock):
    named = {f"{host}robots.txt": robots(f"Sitemap: {host}map.txt") for host in (HOME, OTHER)}
    web = Web(WEB | named | {HOME + "map.txt": Response(200, body=f"{HOME}z".encode())})
    crawler = Crawler([HOME], seed_stream=stream([OTHER]), fetch=web)
    await crawler.crawl()
    assert [each.url for each in crawler.sitemaps()] == [HOME + "map.txt"]
    assert HOME + "z" in web.hits
    assert OTHER + "map.txt" not in web.hits


async def test_a_resumed_crawl_goes_on_where_its_stream_was(tmp_path, autojump_clock):
    urls, asked = pages(400), Counter[str]()

    async def fetch(job: Job) -> Response:
        asked[job.url] += 1
        return await ok(job)

    async def run(stops_after: int) -> None:
        async with aclosing(stream(urls)) as seeds, SqliteFrontier(tmp_path) as frontier:
            crawler = Crawler(
                [], seed_stream=seeds, fetch=fetch, frontier=frontier, politeness=EAGER
            )
            async with crawler.outcomes() as outcomes:
                number = 0
                async for _ in outcomes:
                    number += 1
                    if number == stops_after:
                        crawler.stop()

    for stops_after in (50, 100, 1_000):
        await run(stops_after)
    assert asked == Counter(urls)
    # A line that was added is new; what has an outcome is passed over.
    urls.insert(0, HOME)
    await run(1_000)
    assert asked == Counter(urls)


async def test_with_only_the_sitemaps_say_what_is_fetched_and_links_are_told(autojump_clock):
    site = {
        "/robots.txt": robots(f"Sitemap: {HOME}map.txt"),
        "/map.txt": Response(200, body=f"{HOME}listed\n{HOME}moved\n{OTHER}".encode()),
        "/": html("/listed", "/linked"),
        "/listed": html("/deeper"),
        "/moved": redirect("/target"),
        "/target": html(),
    }
    web = Web({HOME.rstrip("/") + path: answer for path, answer in site.items()})
    crawler = Crawler([HOME], fetch=web, sitemaps=Sitemaps(only=True))
    async with crawler.outcomes() as outcomes:
        found = {outcome.url: outcome async for outcome in outcomes}
    assert set(found) == {HOME, HOME + "listed", HOME + "moved", HOME + "target"}
    assert isinstance(found[HOME + "moved"], Redirect)
    assert [tuple(each) for each in found[HOME + "listed"].rejected] == [
        (HOME + "deeper", Reason.NOT_INCLUDED)
    ]


def test_only_without_a_sitemap_is_refused():
    with pytest.raises(ValueError, match="only needs a sitemap"):
        Sitemaps(follow=False, only=True)
    assert Sitemaps(follow=False, also=[HOME + "map.xml"], only=True).only
