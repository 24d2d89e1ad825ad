"""The hosts of a crawl: what they keep of a job that waits, and when no more jobs start."""

from __future__ import annotations

import trio

from trio_crawler import Job, Limits, Politeness, Reason
from trio_crawler.frontier import Attempt, Hosts, Plan, Settlement
from trio_crawler.model import Purpose
from trio_crawler.testing import fault, html

URL = "http://e.test/robots.txt"


def end(reason: Reason) -> None:
    """Let the crawl go on."""


async def test_a_robots_txt_that_is_settled_leaves_the_attempt_at_the_page_of_its_url():
    hosts = Hosts(Plan([URL]), end=end)
    page = Attempt(Job(URL, tries=1), fault(), 1.0)
    hosts.retry(page, 5)
    hosts.settled(Settlement(Job(URL, purpose=Purpose.ROBOTS)))
    assert hosts.last(page.job) is page
    hosts.settled(Settlement(page.job))
    assert hosts.last(page.job) is None


async def test_the_last_attempt_is_kept_without_its_body():
    hosts = Hosts(Plan([URL]), end=end)
    hosts.retry(Attempt(Job(URL, tries=1), html("/a", status=503), 1.0), 5)
    kept = hosts.last(Job(URL))
    assert kept is not None
    assert (kept.answer.status, kept.answer.body) == (503, b"")


async def test_no_job_starts_at_the_moment_at_which_the_time_budget_is_used_up(autojump_clock):
    plan = Plan([URL], limits=Limits(max_seconds=1), politeness=Politeness(robots=False))
    ends: list[Reason] = []
    hosts = Hosts(plan, end=ends.append)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(hosts.keep_time)
        await trio.sleep(0.5)
        hosts.admit([Job(URL), Job(URL + "2")])
        assert hosts.next_job(False) == Job(URL)
        hosts.deadline = trio.current_time()
        assert hosts.next_job(False) is None
        await trio.sleep(1)
        assert ends == [Reason.TIME_BUDGET]
        nursery.cancel_scope.cancel()


async def test_the_time_budget_begins_when_the_first_job_is_admitted(autojump_clock):
    hosts = Hosts(Plan([URL], limits=Limits(max_seconds=5)), end=end)
    await trio.sleep(2)
    hosts.admit([Job(URL)])
    await trio.sleep(1)
    hosts.admit([Job(URL + "2")])
    assert hosts.deadline == 7
