"""What waits is bounded: in bytes, in hosts, and by the name of a host."""

from __future__ import annotations

import sqlite3
from collections import Counter

import httpx
import pytest
import trio
from msgspec.structs import replace

from trio_crawler import (
    Crawler,
    Limits,
    MemoryFrontier,
    Page,
    Reason,
    Response,
    SqliteFrontier,
    Traps,
    depth_first,
)
from trio_crawler.page.read import read
from trio_crawler.page.urls import MAX_CHARACTERS
from trio_crawler.store.history import History
from trio_crawler.testing import Web, html

HOME = "http://site.test/"
LONG = "q" * 1_900


async def crawled(crawler):
    """Return the outcomes of a crawl, and how many links were rejected for each reason."""
    outcomes, reasons = [], Counter[Reason]()
    async with crawler.outcomes() as found:
        async for outcome in found:
            outcomes.append(outcome)
            if isinstance(outcome, Page):
                reasons.update(reason for _, reason in outcome.rejected)
    return outcomes, reasons


def any_host(job):
    return True


async def test_all_ports_of_a_host_share_its_budget(autojump_clock):
    links = [f"http://site.test:{8000 + n % 5}/{n}x" for n in range(40)]
    links += [f"https://site.test:{9000 + n % 5}/{n}y" for n in range(40)]
    web = Web({HOME: html(*links), **dict.fromkeys(links, html())})
    _, reasons = await crawled(Crawler([HOME], fetch=web, traps=Traps(per_host=30)))
    assert reasons == {Reason.HOST_BUDGET: 50}


async def test_other_hosts_have_budgets_of_their_own(autojump_clock):
    links = [f"http://{name}.test/{n}" for name in "ab" for n in range(20)]
    web = Web({HOME: html(*links), **dict.fromkeys(links, html())})
    crawler = Crawler([HOME], fetch=web, traps=Traps(per_host=15), scope=any_host)
    _, reasons = await crawled(crawler)
    assert reasons == {Reason.HOST_BUDGET: 10}


@pytest.mark.parametrize("traps", [None, Traps.off()])
async def test_a_flood_of_subdomains_ends_at_the_number_of_hosts(autojump_clock, traps):
    links = [f"http://a{n}.site.test/" for n in range(100)]
    links += [f"{HOME}{n}" for n in range(10)]
    web = Web({HOME: html(*links), **dict.fromkeys(links, html())})
    limits = Limits(max_hosts=20)
    crawler = Crawler([HOME], fetch=web, scope=any_host, limits=limits, traps=traps)
    outcomes, reasons = await crawled(crawler)
    if traps is None:
        assert reasons == {Reason.TOO_MANY_HOSTS: 81}
    # Without traps a host is found when its first URL is admitted: a page late.
    later, _ = await crawled(
        Crawler([HOME, *links[:20]], fetch=web, scope=any_host, limits=limits, traps=traps)
    )
    assert {HOME + "0", HOME + "9"} <= {outcome.url for outcome in outcomes}
    assert len(later) == 31


@pytest.mark.parametrize(("order", "budget"), [(None, 100_000), (depth_first, 10_000)])
@pytest.mark.parametrize("lasting", [False, True])
async def test_no_url_is_admitted_while_too_many_bytes_wait(
    autojump_clock, tmp_path, order, budget, lasting
):
    pages = {f"{HOME}{n}x": html(*(f"/{n}x{m}y{LONG}" for m in range(20))) for n in range(30)}
    leaves = {f"{HOME}{n}x{m}y{LONG}": html() for n in range(30) for m in range(20)}
    web = Web({HOME: html(*pages), **pages, **leaves})
    limits = Limits(max_waiting=budget)
    most = 0

    async def fetch(job):
        nonlocal most
        most = max(most, crawler.frontier.hosts.waiting_bytes)
        return await web(job)

    async with SqliteFrontier(tmp_path / "o") as kept:
        frontier = kept if lasting else MemoryFrontier()
        crawler = Crawler([HOME], fetch=fetch, frontier=frontier, limits=limits, order=order)
        outcomes, reasons = await crawled(crawler)
    assert set(reasons) == {Reason.WAITING_BUDGET}
    assert reasons[Reason.WAITING_BUDGET] + len(outcomes) == 1 + 30 + 600
    # The links of pages that were judged at the same moment come on top.
    assert budget < most < budget + 10 * 20 * 2_100
    assert crawler.frontier.hosts.waiting_bytes == 0


async def test_what_was_waiting_when_the_crawl_ends_is_skipped_url_by_url(autojump_clock):
    web = Web({HOME: html(*(f"/{n}x" for n in range(500)))})
    crawler = Crawler([HOME], fetch=web)
    skipped = Counter[Reason]()
    async with crawler.outcomes() as outcomes:
        async for outcome in outcomes:
            if outcome.url == HOME:
                await trio.lowlevel.checkpoint()
            elif isinstance(outcome, Page):
                crawler.stop()
            else:
                skipped[outcome.reason] += 1
            figures = crawler.statistics()
            assert figures.waiting == crawler.frontier.hosts.waiting
    assert figures.admitted == 501 == figures.pages + figures.skipped
    assert skipped[Reason.STOPPED] == figures.skipped > 400
    assert crawler.frontier.statistics().ready == 0


class Steps(trio.abc.Instrument):
    """Count the steps of tasks."""

    count = 0

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self.count += 1


async def test_urls_that_are_skipped_at_an_early_end_need_no_step_of_a_worker_each(autojump_clock):
    web = Web({HOME: html(*(f"/{n}x" for n in range(5_000)))})
    crawler, steps = Crawler([HOME], fetch=web), Steps()
    async with crawler.outcomes() as outcomes:
        async for outcome in outcomes:
            if outcome.url == HOME:
                crawler.stop()
                trio.lowlevel.add_instrument(steps)
    trio.lowlevel.remove_instrument(steps)
    assert crawler.statistics().skipped == 5_000
    assert steps.count < 5_000 / 4


async def test_outcomes_that_are_there_take_no_step_each_but_let_other_tasks_run(nursery):
    steps, turns = Steps(), 0

    async def at_once(job):
        await trio.lowlevel.checkpoint()
        return html(*(f"/{n}x" for n in range(500))) if job.url == HOME else html()

    async def other():
        nonlocal turns
        while True:
            await trio.lowlevel.checkpoint()
            turns += 1

    async with Crawler([HOME], fetch=at_once).outcomes() as outcomes:
        nursery.start_soon(other)
        trio.lowlevel.add_instrument(steps)
        async for _ in outcomes:
            pass
        trio.lowlevel.remove_instrument(steps)
    assert 500 / 16 < turns < 400
    assert steps.count - turns < 3 * 500


@pytest.mark.parametrize("ends", ["stop", "max_seconds"])
async def test_requests_that_hang_at_an_early_end_keep_no_waiting_url_from_being_skipped(
    autojump_clock, nursery, ends
):
    web = Web({HOME: html(*(f"/{n}x" for n in range(100)))})

    async def fetch(job):
        if job.url.endswith("x"):
            await trio.sleep(50)
        return await web(job)

    limits = Limits(max_seconds=10) if ends == "max_seconds" else Limits()
    crawler = Crawler([HOME], fetch=fetch, limits=limits, workers=4)
    times = Counter[float]()

    async def stop() -> None:
        await trio.sleep(10)
        crawler.stop()

    if ends == "stop":
        nursery.start_soon(stop)
    start = trio.current_time()
    async with crawler.outcomes() as outcomes:
        async for outcome in outcomes:
            if not isinstance(outcome, Page):
                times[round(trio.current_time() - start)] += 1
    assert times == {10: 96}
    assert crawler.statistics().pages == 5


async def test_answers_that_come_at_an_early_end_do_not_wait_until_all_others_are_skipped(
    autojump_clock,
):
    web = Web({HOME: html(*(f"/{n}x" for n in range(2_000)))})
    crawler = Crawler([HOME], fetch=web)
    kinds = []
    async with crawler.outcomes() as outcomes:
        async for outcome in outcomes:
            kinds.append(isinstance(outcome, Page))
            if len(kinds) == 2:
                crawler.stop()
    assert 3 < sum(kinds) == sum(kinds[:1_000])


async def test_a_caller_that_gives_up_on_one_outcome_after_an_early_end_loses_none(autojump_clock):
    web = Web({HOME: html(*(f"/{n}x" for n in range(300)))})
    crawler = Crawler([HOME], fetch=web)
    urls = Counter[str]()
    async with crawler.outcomes() as outcomes:
        urls[(await anext(outcomes)).url] += 1
        crawler.stop()
        while True:
            with trio.CancelScope() as scope:
                if not len(urls) % 3:
                    scope.cancel("not now")
                try:
                    urls[(await anext(outcomes)).url] += 1
                except StopAsyncIteration:
                    break
            if scope.cancelled_caught:
                urls[(await anext(outcomes)).url] += 1
    assert len(urls) == 301 == urls.total()


@pytest.mark.parametrize("anchors", [False, True])
async def test_long_urls_are_stored_once_and_read_back_as_they_were(
    autojump_clock, tmp_path, anchors
):
    pages = {f"{HOME}{n}x{LONG}": html(*(f"/{m}x{LONG}" for m in range(40))) for n in range(40)}
    web = Web({HOME: html(*(f"/{n}x{LONG}" for n in range(20)), "/short"), **pages})
    async with SqliteFrontier(tmp_path) as frontier:
        crawler = Crawler([HOME], fetch=web, frontier=frontier, anchors=anchors)
        outcomes, _ = await crawled(crawler)
    found = {one.url: one for one in outcomes}
    assert len(found) == 42
    with History(tmp_path) as history:
        for one in history.outcomes():
            wanted = found[one.url]
            assert (one.referrer, one.links) == (wanted.referrer, wanted.links)
            assert one.anchors == wanted.anchors
    with sqlite3.connect(tmp_path / "crawl.sqlite") as connection:
        listed = set(connection.execute("SELECT page, url FROM links"))
        assert listed == {(one.url, url) for one in outcomes for url in one.links}
        pages = dict(connection.execute("SELECT url, referrer FROM pages"))
        assert pages == {one.url: one.referrer for one in outcomes if isinstance(one, Page)}
        (links,) = connection.execute(
            "SELECT sum(length(links)) FROM links_ WHERE number < 3"
        ).fetchone()
        (referrers,) = connection.execute("SELECT max(length(referrer)) FROM urls").fetchone()
    connection.close()
    # The links of the first two pages: 20 and 20 new ones, and 20 known ones.
    assert links < 60_000
    assert referrers < 100


async def test_a_crawl_with_long_referrers_goes_on_where_it_stopped(autojump_clock, tmp_path):
    web = {HOME: html(f"/a{LONG}"), f"{HOME}a{LONG}": html(f"/b{LONG}", f"/c{LONG}")}
    web = Web({**web, f"{HOME}b{LONG}": html(), f"{HOME}c{LONG}": html()})
    outcomes = []
    for _ in range(4):
        async with SqliteFrontier(tmp_path) as frontier:
            crawler = Crawler([HOME], fetch=web, frontier=frontier, workers=1)
            async with crawler.outcomes() as found:
                async for outcome in found:
                    outcomes.append(replace(outcome, seconds=0.0))
                    crawler.stop()
    referrers = {one.url[:18]: one.referrer for one in outcomes}
    assert referrers[HOME + "a"] == HOME
    assert referrers[HOME + "b"] == referrers[HOME + "c"] == f"{HOME}a{LONG}"


def test_the_links_of_a_page_have_4_mib_at_most_and_the_others_are_counted():
    base = f"<base href='{HOME}{LONG}/'>"
    body = base + "".join(f"<a href={n}>l</a>" for n in range(20_000))
    body += "".join(f"<a rel=nofollow href=n{n}>l</a>" for n in range(5_000))
    facts = read(body.encode(), "text/html", HOME, anchors=True)
    assert 0 <= MAX_CHARACTERS - sum(map(len, facts.links)) < 2_000
    assert facts.links[0] == f"{HOME}{LONG}/0"
    assert facts.beyond == 25_000 - len(facts.links)
    assert facts.flaws == (Reason.TOO_MANY_LINKS,)
    assert set(facts.anchors) == set(facts.links)


async def test_long_headers_are_not_kept_while_a_url_waits_for_a_retry(autojump_clock):
    headers = httpx.Headers([("content-type", "text/html"), ("x-long", "y" * 60_000)])
    web = Web({HOME: html("/busy"), HOME + "busy": Response(503, headers)})
    kept = list[dict[str, str]]()

    async def fetch(job):
        if last := crawler.frontier.hosts.last(job):
            kept.append(dict(last.answer.headers))
        return await web(job)

    crawler = Crawler([HOME], fetch=fetch, limits=Limits(max_tries=2))
    await crawler.crawl()
    assert kept == [{"content-type": "text/html"}]
