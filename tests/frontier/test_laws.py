"""The laws of a frontier, for each frontier: in memory, in SQLite, and the one of the guide."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
import trio
from cases import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sites.frontiers import EVERY, Opened
from trio.testing import wait_all_tasks_blocked

from trio_crawler import (
    Crawler,
    Job,
    Limits,
    Outcome,
    Politeness,
    Reason,
    Response,
    Sitemaps,
    Skipped,
    Traps,
    depth_first,
)
from trio_crawler.frontier import (
    Attempt,
    Frontier,
    Plan,
    RobotsRules,
    Settlement,
    SitemapRead,
)
from trio_crawler.model import Purpose
from trio_crawler.policy.robots import ALLOW_ALL
from trio_crawler.testing import Web, html

SITE = "http://e.test/"
A, B, C = (Job(SITE + name) for name in "abc")
EAGER = Politeness(per_host=100, robots=False)


@pytest.fixture(params=EVERY, ids=lambda make: make.__name__)
def frontiers(request, tmp_path_factory) -> Opened:
    """Open a new frontier at each call."""
    return lambda: request.param(tmp_path_factory.mktemp("frontier"))


@asynccontextmanager
async def running(opened: Opened, *seeds: Job, **plan: Any) -> AsyncIterator[Frontier]:
    """Run a frontier; what it still has at the end of the block is left."""
    urls = [seed.url for seed in seeds]
    async with opened() as frontier, trio.open_nursery() as nursery:
        await frontier.open(Plan(urls, **({"politeness": EAGER} | plan)))
        nursery.start_soon(frontier.run)
        yield frontier
        nursery.cancel_scope.cancel("the test is over")


async def take(frontier: Frontier, count: int = 1) -> list[Job]:
    """Receive so many jobs; an error if they do not come."""
    with trio.fail_after(5):
        return [await frontier.jobs.receive() for _ in range(count)]


async def drained(frontier: Frontier) -> list[Job]:
    """Receive all jobs that come now."""
    jobs = []
    async with trio.open_nursery() as nursery:

        async def collect() -> None:
            with suppress(trio.EndOfChannel):
                while True:
                    jobs.append(await frontier.jobs.receive())
            nursery.cancel_scope.cancel("the channel has ended")

        nursery.start_soon(collect)
        # Longer than SQLite waits for more to write.
        await wait_all_tasks_blocked(0.1)
        nursery.cancel_scope.cancel("no more comes now")
    return jobs


async def is_over(frontier: Frontier) -> bool:
    """Whether the channel ends, without any more jobs."""
    with trio.fail_after(5):
        try:
            await frontier.jobs.receive()
        except trio.EndOfChannel:
            return True
    return False


def came(frontier: Frontier, job: Job) -> Attempt:
    """Let a job be answered."""
    attempt = Attempt(job, Response(200), 0.1)
    frontier.hosts.answered(attempt)
    return attempt


def end_of(job: Job, *successors: Job) -> Settlement:
    """Return how a page ends."""
    return Settlement(job, Skipped(job.url, Reason.STOPPED), successors)


async def settle(frontier: Frontier, job: Job, *successors: Job) -> None:
    """Let a job be answered and end."""
    if not job.blocked:
        came(frontier, job)
    await frontier.settle(end_of(job, *successors))


def urls(jobs: Iterable[Job]) -> list[str]:
    return [job.url for job in jobs]


# The end.


async def test_the_jobs_end_when_every_admitted_url_is_settled(frontiers):
    async with running(frontiers, A) as frontier:
        (first,) = await take(frontier)
        assert (first.url, first.purpose) == (A.url, Purpose.PAGE)
        await settle(frontier, first, B)
        (second,) = await take(frontier)
        await settle(frontier, second, A, B)
        assert await is_over(frontier)
        assert frontier.statistics().unsettled == 0


async def test_a_crawl_of_no_seeds_ends_at_once(frontiers):
    async with running(frontiers) as frontier:
        assert await is_over(frontier)
        assert frontier.statistics().admitted == 0


async def test_successors_are_counted_in_before_their_parent_is_counted_out(frontiers):
    async with running(frontiers, A) as frontier:
        (job,) = await take(frontier)
        for number in range(20):
            await settle(frontier, job, Job(f"{SITE}{number}"))
            assert frontier.statistics().unsettled == 1
            (job,) = await take(frontier)
        await settle(frontier, job)
        assert await is_over(frontier)


async def test_what_is_admitted_by_add_before_the_parent_ends_keeps_the_crawl_going(frontiers):
    async with running(frontiers, A) as frontier:
        (job,) = await take(frontier)
        assert await frontier.add([B, C, B]) == 2
        await settle(frontier, job)
        rest = await take(frontier, 2)
        assert urls(rest) == [B.url, C.url]
        for each in rest:
            await settle(frontier, each)
        assert await is_over(frontier)


async def test_when_the_crawl_is_over_nothing_is_admitted(frontiers):
    async with running(frontiers, A) as frontier:
        await settle(frontier, *await take(frontier))
        assert await is_over(frontier)
        assert await frontier.add([B]) == 0
        assert frontier.statistics().admitted == 1


# Once.


async def test_a_url_is_admitted_once_however_often_it_is_found(frontiers):
    async with running(frontiers, A, A) as frontier:
        (job,) = await take(frontier)
        assert await frontier.add([A, B]) == 1
        assert await frontier.add([A, B]) == 0
        await settle(frontier, job, A, B, C, C)
        assert urls(await drained(frontier)) == [B.url, C.url]
        assert frontier.statistics().admitted == 3


async def test_urls_that_differ_only_in_needless_escapes_are_one(frontiers):
    same = [Job(SITE + name) for name in ("%7Ea%2f", "~a%2F", "%7ea%2F")]
    async with running(frontiers, *same) as frontier:
        (job,) = await take(frontier)
        assert job.url == same[0].url
        assert await drained(frontier) == []
        assert frontier.statistics().admitted == 1
        await settle(frontier, job)


async def test_a_sitemap_and_a_page_of_the_same_url_are_two(frontiers):
    sitemap = Job(SITE + "map.xml", purpose=Purpose.SITEMAP)
    page = Job(SITE + "map.xml")
    async with running(frontiers, A) as frontier:
        (job,) = await take(frontier)
        assert await frontier.add([sitemap, page, sitemap]) == 2
        await settle(frontier, job)
        both = await drained(frontier)
        assert {each.purpose for each in both} == {Purpose.PAGE, Purpose.SITEMAP}
        # Only pages are counted as admitted.
        assert frontier.statistics().admitted == 2
        assert frontier.statistics().unsettled == 2
        for each in both:
            learned = SitemapRead(None) if each.purpose is Purpose.SITEMAP else None
            came(frontier, each)
            outcome = None if learned else Skipped(each.url, Reason.STOPPED)
            await frontier.settle(Settlement(each, outcome, learned=learned))
        assert await is_over(frontier)


async def test_known_returns_only_urls_that_were_admitted(frontiers):
    async with running(frontiers, A) as frontier:
        await settle(frontier, *await take(frontier), B)
        known = frontier.known([A.url, B.url, C.url])
        assert known <= {A.url, B.url}


async def test_a_job_keeps_what_it_was_admitted_with(frontiers):
    job = Job(SITE + "deep", 3, 7, A.url, priority=0.25)
    async with running(frontiers, A) as frontier:
        await settle(frontier, *await take(frontier), job)
        (back,) = await take(frontier)
        names = ("url", "depth", "redirects", "referrer", "tries", "purpose", "priority")
        assert all(getattr(back, name) == getattr(job, name) for name in names)


# The jobs that the scheduler makes itself.


async def test_a_robots_txt_is_neither_counted_nor_remembered(frontiers):
    async with running(frontiers, A, politeness=Politeness()) as frontier:
        (file,) = await take(frontier)
        assert (file.url, file.purpose) == (SITE + "robots.txt", Purpose.ROBOTS)
        came(frontier, file)
        await frontier.settle(Settlement(file, learned=RobotsRules(file.url, ALLOW_ALL)))
        counts = frontier.statistics()
        assert (counts.admitted, counts.waiting, counts.unsettled) == (1, 1, 1)
        assert frontier.known([file.url]) == set()
        (page,) = await take(frontier)
        # A page may have that URL too.
        await settle(frontier, page, Job(file.url))
        (page,) = await take(frontier)
        assert (page.url, page.purpose) == (file.url, Purpose.PAGE)
        await settle(frontier, page)
        assert await is_over(frontier)


async def test_the_sitemaps_that_a_robots_txt_names_are_admitted_although_it_does_not_count(
    frontiers,
):
    async with running(frontiers, A, politeness=Politeness()) as frontier:
        (file,) = await take(frontier)
        came(frontier, file)
        sitemap = Job(SITE + "map.xml", referrer=file.url, purpose=Purpose.SITEMAP)
        learned = RobotsRules(file.url, ALLOW_ALL)
        await frontier.settle(Settlement(file, successors=[sitemap], learned=learned))
        assert frontier.statistics().unsettled == 2
        taken = {job.url: job for job in await take(frontier, 2)}
        assert set(taken) == {A.url, sitemap.url}


async def test_a_crawl_that_is_stopped_before_it_begins_fetches_nothing(autojump_clock, frontiers):
    web = Web({"/": html("/a")})
    async with frontiers() as frontier:
        crawler = Crawler([web.url], fetch=web, frontier=frontier)
        crawler.stop(Reason.TIME_BUDGET)
        assert (await crawler.crawl()).pages == 0
    assert not web.hits


# Atomic steps.


@pytest.mark.parametrize("step", ["settle", "add", "retry"])
async def test_a_step_that_is_cancelled_has_changed_nothing(frontiers, step):
    async with running(frontiers, A) as frontier:
        (job,) = await take(frontier)
        attempt = came(frontier, job)
        before = frontier.statistics()
        with trio.CancelScope() as scope:
            scope.cancel()
            if step == "settle":
                await frontier.settle(end_of(job, B))
            elif step == "add":
                await frontier.add([B])
            else:
                await frontier.retry(attempt, 0)
        assert scope.cancelled_caught
        assert frontier.statistics() == before
        assert await drained(frontier) == []
        await frontier.settle(end_of(job))
        assert await is_over(frontier)


async def test_settling_a_job_twice_is_an_error(frontiers):
    async with running(frontiers, A) as frontier:
        (job,) = await take(frontier)
        await settle(frontier, job)
        assert await is_over(frontier)
        with pytest.raises((RuntimeError, KeyError)):
            await frontier.settle(end_of(job))


async def test_a_frontier_serves_one_crawl(frontiers):
    async with running(frontiers, A) as frontier:
        with pytest.raises(RuntimeError, match="a frontier serves one crawl"):
            await frontier.open(Plan([B.url]))
        await settle(frontier, *await take(frontier))


# Retries.


async def test_a_retry_comes_back_after_its_delay(frontiers, autojump_clock):
    async with running(frontiers, A, B) as frontier:
        first, second = await take(frontier, 2)
        began = trio.current_time()
        await frontier.retry(came(frontier, first), 10)
        await frontier.retry(came(frontier, second), 5)
        assert frontier.statistics().waiting == 2
        back = await frontier.jobs.receive()
        assert (back.url, trio.current_time() - began) == (second.url, 5)
        again = await frontier.jobs.receive()
        assert (again.url, trio.current_time() - began) == (first.url, 10)
        assert frontier.statistics().unsettled == 2
        for job in (back, again):
            await settle(frontier, job)
        assert await is_over(frontier)


# The plan.


async def test_the_politeness_of_the_plan_is_kept(frontiers, autojump_clock):
    politeness = Politeness(per_host=1, delay=3, robots=False)
    async with running(frontiers, A, B, politeness=politeness) as frontier:
        began = trio.current_time()
        (first,) = await take(frontier)
        assert await drained(frontier) == []
        came(frontier, first)
        second = await frontier.jobs.receive()
        assert trio.current_time() - began == 3
        for job in (first, second):
            await frontier.settle(end_of(job))


async def test_the_order_of_the_plan_is_kept(frontiers):
    async with running(frontiers, A, order=depth_first) as frontier:
        (job,) = await take(frontier)
        deeper = [Job(f"{SITE}{depth}", depth) for depth in (1, 3, 2)]
        await settle(frontier, job, *deeper)
        assert [each.depth for each in await drained(frontier)] == [3, 2, 1]


async def test_no_more_jobs_are_out_than_the_page_budget_has_left(frontiers):
    async with running(frontiers, A, B, limits=Limits(max_pages=1)) as frontier:
        (job,) = await take(frontier)
        assert await drained(frontier) == []
        # A page that is skipped leaves the budget to the next one.
        await settle(frontier, job)
        (job,) = await take(frontier)
        assert job.url == B.url
        await settle(frontier, job)


async def test_levels_come_one_after_the_other_when_depth_is_limited(frontiers):
    async with running(frontiers, A, B, limits=Limits(max_depth=2)) as frontier:
        first, second = await take(frontier, 2)
        await settle(frontier, first, Job(C.url, 1))
        assert await drained(frontier) == []
        await settle(frontier, second)
        assert urls(await take(frontier)) == [C.url]


# Early ends.


async def test_after_the_end_no_job_is_to_be_fetched(frontiers):
    async with running(frontiers, A) as frontier:
        (job,) = await take(frontier)
        assert await frontier.add([B]) == 1
        frontier.end(Reason.STOPPED)
        frontier.end(Reason.TIME_BUDGET)
        blocked = await drained(frontier)
        assert all(each.blocked is Reason.STOPPED for each in blocked)
        for each in blocked:
            await frontier.settle(end_of(each, C))
        await settle(frontier, job, C)
        rest = await drained(frontier)
        assert all(each.blocked is Reason.STOPPED for each in rest)
        for each in rest:
            await frontier.settle(end_of(each))
        assert await is_over(frontier)


async def test_a_retry_after_the_end_ends_by_its_last_attempt_or_waits(frontiers):
    async with running(frontiers, A) as frontier:
        (job,) = await take(frontier)
        frontier.end(Reason.STOPPED)
        attempt = came(frontier, job)
        await frontier.retry(attempt, 10)
        blocked = await drained(frontier)
        if blocked:
            assert frontier.hosts.last(blocked[0]) == attempt
            await frontier.settle(end_of(blocked[0]))
        else:
            assert frontier.statistics().waiting == 1
        assert await is_over(frontier)


async def test_the_time_budget_ends_the_crawl(frontiers, autojump_clock):
    began = trio.current_time()
    async with running(frontiers, A, B, limits=Limits(max_seconds=60)) as frontier:
        jobs = await take(frontier, 2)
        await trio.sleep(61)
        for job in jobs:
            await settle(frontier, job, C)
        for job in await drained(frontier):
            assert job.blocked is Reason.TIME_BUDGET
            await frontier.settle(end_of(job))
        assert await is_over(frontier)
        assert trio.current_time() - began < 70


# In a crawl.


@pytest.mark.parametrize("end", ["stopped", "out of time", "out of pages", "cancelled"])
async def test_after_each_kind_of_end_no_host_owes_a_url_and_the_account_balances(
    frontiers, autojump_clock, end
):
    site = {"/": html(*(f"/{number}" for number in range(8)))}
    site |= {f"/{number}": html(status=503 if number % 2 else 200) for number in range(8)}
    outcomes = list[Outcome]()
    async with frontiers() as frontier:
        crawler = Crawler(
            ["http://site.test/"],
            workers=3,
            politeness=Politeness(delay=1, robots=False),
            limits=Limits(
                max_pages=4 if end == "out of pages" else math.inf,
                max_seconds=4 if end == "out of time" else math.inf,
            ),
            fetch=Web(site),
            frontier=frontier,
        )
        # By then retries are due, and wait for the turn of their host.
        with trio.move_on_after(4 if end == "cancelled" else math.inf):
            async with crawler.outcomes() as found, trio.open_nursery() as nursery:
                if end == "stopped":
                    nursery.start_soon(stop_at, crawler, 4)
                outcomes.extend([outcome async for outcome in found])
                nursery.cancel_scope.cancel("the crawl is over")
        hosts, counts = crawler.hosts.values(), crawler.statistics()
        assert min(each.waiting for each in hosts) >= 0
        assert sum(each.waiting for each in hosts) <= counts.waiting
        if end != "cancelled":
            assert counts.admitted == len(outcomes) + counts.waiting


async def stop_at(crawler: Crawler, moment: float) -> None:
    await trio.sleep(moment)
    crawler.stop()


WEBS = st.lists(
    st.lists(st.integers(0, 11), max_size=6),
    min_size=1,
    max_size=12,
)


@settings(examples(25), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(WEBS, st.integers(1, 5), st.sampled_from([math.inf, 1, 3]))
def test_every_url_that_was_admitted_ends_in_one_outcome(frontiers, links, workers, pages):
    async def crawled() -> None:
        names = [f"/{number}" for number in range(len(links))]
        pages_of = [html(*(f"/{to}" for to in found)) for found in links]
        web = Web(dict(zip(names, pages_of, strict=True)))
        ends = Counter[str]()
        async with frontiers() as frontier:
            crawler = Crawler(
                ["http://site.test/0"],
                workers=workers,
                limits=Limits(max_pages=pages),
                traps=Traps.off(),
                sitemaps=Sitemaps(follow=False),
                fetch=web,
                frontier=frontier,
            )
            async with crawler.outcomes() as outcomes:
                async for outcome in outcomes:
                    ends[outcome.url] += 1
            counts = crawler.statistics()
        assert set(ends.values()) == {1}
        assert counts.pages <= pages
        assert counts.in_flight == 0
        assert counts.admitted == sum(ends.values()) + counts.waiting
        assert not counts.waiting or pages < math.inf
        assert counts.rejected == 0

    trio.run(crawled)
