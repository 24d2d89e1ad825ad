"""The engine, in virtual time, over an in-memory web."""

from __future__ import annotations

import gc
import math
import re
import signal
from collections.abc import Sequence

import httpx
import pytest
import trio
from cases import for_each
from sites.webs import everything
from trio.testing import wait_all_tasks_blocked

from trio_crawler import (
    Checked,
    Crawler,
    Failure,
    Fault,
    Job,
    Limits,
    MemoryFrontier,
    Outcome,
    Page,
    Phase,
    Politeness,
    Reason,
    Redirect,
    Response,
    Skipped,
    Statistics,
)
from trio_crawler.engine.handler import LARGE_PAGE
from trio_crawler.testing import Web, fault, html, redirect

HOME = "http://site.test/"


async def collect(crawler: Crawler) -> list[Outcome]:
    async with crawler.outcomes() as outcomes:
        return [outcome async for outcome in outcomes]


def balanced(totals: Statistics) -> bool:
    ended = totals.pages + totals.redirects + totals.failures + totals.skipped
    return totals.admitted == ended + totals.in_flight + totals.waiting


def site_of(pages: int) -> dict[str, Response]:
    """Make a home page that links to so many leaves."""
    leaves = [f"/{number}" for number in range(pages)]
    return {"/": html(*leaves), **dict.fromkeys(leaves, html())}


# Law 1: exactly one outcome for each URL admitted.


async def test_every_page_is_fetched_once_and_has_one_outcome(autojump_clock):
    web = Web({"/": html("/a", "/b"), "/a": html("/b", "/"), "/b": html("/a", "/c")}, delay=1)
    crawler = Crawler([HOME], fetch=web)
    outcomes = await collect(crawler)
    assert sorted(o.url for o in outcomes) == [HOME, HOME + "a", HOME + "b", HOME + "c"]
    assert set(web.hits.values()) == {1}
    totals = crawler.statistics()
    assert (totals.admitted, totals.pages, totals.in_flight, totals.waiting) == (4, 4, 0, 0)


async def test_two_pages_that_find_the_same_links_at_once_admit_them_once(autojump_clock):
    shared = html("/x", "/y", "/z")
    web = Web({"/": html("/a", "/b"), "/a": shared, "/b": shared}, delay=1)
    totals = await Crawler([HOME], fetch=web).crawl()
    assert set(web.hits.values()) == {1}
    assert totals.admitted == 6


async def test_the_sum_of_the_statistics_holds_whenever_it_is_asked(autojump_clock):
    web = Web(site_of(50) | {"/7": fault(), "/8": redirect("/9")}, delay=1)
    crawler = Crawler([HOME], fetch=web, workers=4, limits=Limits(max_tries=2))
    seen = []

    async def watch() -> None:
        while True:
            seen.append(crawler.statistics())
            await trio.sleep(0.1)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(watch)
        await crawler.crawl()
        nursery.cancel_scope.cancel()
    assert len(seen) > 50
    assert all(balanced(totals) for totals in seen)
    assert any(totals.in_flight and totals.waiting for totals in seen)


# Law 2: the crawl ends by construction.


async def test_a_crawl_of_no_seeds_ends_at_once():
    with trio.fail_after(5):
        assert await collect(Crawler([])) == []


async def test_a_seed_given_twice_or_with_a_fragment_is_crawled_once(autojump_clock):
    web = Web({"/": html("/#top")})
    crawler = Crawler([HOME, HOME, HOME + "#part", "HTTP://SITE.test:80"], fetch=web)
    assert [o.url for o in await collect(crawler)] == [HOME]


@pytest.mark.slow
async def test_a_hundred_thousand_links_on_one_page_are_all_fetched():
    web = Web({"/": html(*(f"/{n}" for n in range(100_000)))})
    totals = await Crawler([HOME], fetch=web, workers=100).crawl()
    assert totals.pages == totals.admitted == 100_001
    assert len(web.hits) == 100_001


async def test_links_beyond_the_limit_are_counted(autojump_clock):
    web = Web({"/": html(*(f"/{n}" for n in range(10)))})
    crawler = Crawler([HOME], fetch=web, limits=Limits(max_links=4))
    home = (await collect(crawler))[0]
    assert (len(home.links), home.links_beyond) == (4, 6)
    assert home.flaws == (Reason.TOO_MANY_LINKS,)


async def test_a_crawler_crawls_once(autojump_clock):
    crawler = Crawler([HOME], fetch=Web({}))
    await crawler.crawl()
    with pytest.raises(RuntimeError, match="make another Crawler"):
        await crawler.crawl()


# Law 4: the network's faults are data, ours are exceptions.


async def test_a_bug_in_a_fetch_ends_the_crawl_at_once_with_the_url_as_a_note(autojump_clock):
    web = Web(site_of(50), delay=1)

    async def buggy(job: Job) -> Response:
        answer = await web(job)
        if job.url.endswith("/3"):
            raise ValueError("a bug")
        return answer

    with pytest.raises(ExceptionGroup) as caught:
        await Crawler([HOME], fetch=buggy, workers=5).crawl()
    (bug,) = caught.value.exceptions
    assert isinstance(bug, ValueError)
    assert bug.__notes__ == [f"while crawling {HOME}3, linked from {HOME}"]
    frames = []
    traceback = bug.__traceback__
    while traceback:
        frames.append(traceback.tb_frame.f_code.co_name)
        traceback = traceback.tb_next
    assert frames[-4:] == ["work", "fetch", "fetch_once", "buggy"]
    assert trio.current_time() == 2
    await trio.sleep(100)
    assert web.hits.total() <= 11


async def test_a_bug_ends_the_crawl_while_the_caller_is_busy_with_an_outcome(autojump_clock):
    async def buggy(job: Job) -> Response:
        if job.url != HOME + "bad":
            return html()
        await trio.sleep(1)
        raise ValueError("a bug")

    async def read_slowly() -> None:
        async with Crawler([HOME, HOME + "bad"], fetch=buggy).outcomes() as outcomes:
            async for _ in outcomes:
                await trio.sleep(1000)

    with pytest.raises(ExceptionGroup) as caught:
        await read_slowly()
    assert trio.current_time() == 1
    assert caught.value.exceptions[0].__notes__ == [f"while crawling {HOME}bad"]


async def test_a_bug_in_the_only_worker_does_not_end_the_loop_as_if_the_crawl_were_over():
    async def buggy(job: Job) -> Response:
        raise ValueError("a bug")

    async def crawl() -> None:
        async with Crawler([HOME], fetch=buggy, workers=1).outcomes() as outcomes:
            async for _ in outcomes:
                pass
            pytest.fail("the loop has ended")

    with pytest.raises(ExceptionGroup) as caught:
        await crawl()
    assert isinstance(caught.value.exceptions[0], ValueError)


async def test_a_bug_in_a_scope_names_the_page_that_was_read(autojump_clock):
    def scope(job: Job) -> None:
        raise LookupError("a bug")

    with pytest.raises(ExceptionGroup) as caught:
        await Crawler([HOME], fetch=Web({"/": html("/a")}), scope=scope).crawl()
    assert caught.value.exceptions[0].__notes__ == [f"while crawling {HOME}"]


async def test_a_fault_is_an_outcome(autojump_clock):
    web = Web({"/": fault(Reason.TLS, "the certificate has expired")})
    (failure,) = await collect(Crawler([HOME], fetch=web))
    assert isinstance(failure, Failure)
    assert (failure.reason, failure.detail) == (Reason.TLS, "the certificate has expired")
    assert web.hits[HOME] == 1


# Law 5: the caller owns the crawl.


async def nothing_goes_on(web: Web) -> bool:
    hits = web.hits.total()
    await trio.sleep(1000)
    return web.in_flight == 0 and web.hits.total() == hits


async def test_leaving_the_loop_ends_the_crawl(autojump_clock):
    web = Web(site_of(100), delay=1)
    crawler = Crawler([HOME], fetch=web)
    async with crawler.outcomes() as outcomes:
        async for _ in outcomes:
            break
    assert web.in_flight == 0
    assert await nothing_goes_on(web)
    assert crawler.statistics().pages == 1
    assert balanced(crawler.statistics())


async def test_an_exception_of_the_caller_leaves_bare_and_ends_the_crawl(autojump_clock):
    web = Web(site_of(100), delay=1)

    async def stumble() -> None:
        async with Crawler([HOME], fetch=web).outcomes() as outcomes:
            async for _ in outcomes:
                raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        await stumble()
    assert await nothing_goes_on(web)


async def test_a_deadline_of_the_caller_ends_the_crawl_with_a_bare_exception(autojump_clock):
    web = Web(site_of(1000), delay=1)
    with pytest.raises(trio.TooSlowError), trio.fail_after(7.5):
        await Crawler([HOME], fetch=web).crawl()
    assert trio.current_time() == 7.5
    assert await nothing_goes_on(web)


async def test_cancelling_the_callers_nursery_ends_the_crawl(autojump_clock):
    web = Web(site_of(1000), delay=1)
    crawler = Crawler([HOME], fetch=web)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(crawler.crawl)
        await trio.sleep(7.5)
        nursery.cancel_scope.cancel()
    assert await nothing_goes_on(web)
    assert balanced(crawler.statistics())
    assert crawler.statistics().in_flight > 0


def test_control_c_leaves_as_a_bare_keyboard_interrupt():
    web = Web(site_of(1000))

    async def main() -> None:
        async with Crawler([HOME], fetch=web).outcomes() as outcomes:
            async for _ in outcomes:
                if web.hits.total() > 20:
                    signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        trio.run(main)


@pytest.mark.parametrize("times", [2, 3, 20])
def test_control_c_again_and_again_is_one_bare_keyboard_interrupt(times):
    struck = []

    def strike() -> None:
        struck.append(1)
        signal.raise_signal(signal.SIGINT)

    class Ending(Web):
        async def __call__(self, job):
            try:
                return await super().__call__(job)
            finally:
                # In each worker, while it is cancelled.
                if struck and len(struck) < times:
                    strike()

    web = Ending(site_of(1000), delay=0.001)

    async def main() -> None:
        async with Crawler([HOME], fetch=web).outcomes() as outcomes:
            async for _ in outcomes:
                if web.hits.total() > 20:
                    strike()

    with pytest.raises(KeyboardInterrupt):
        trio.run(main)
    assert len(struck) >= min(times, 5)


@pytest.mark.parametrize("enters", [True, False])
def test_control_c_at_either_end_of_the_block_leaves_no_nursery_open(enters):
    web = Web({"/": html()})
    reached = []

    class Struck(MemoryFrontier):
        async def open(self, plan):
            if enters:
                signal.raise_signal(signal.SIGINT)
                # Not in the middle of what opens the crawl, but at its next checkpoint.
                reached.append("opened")
            return await super().open(plan)

        async def run(self):
            try:
                await super().run()
            finally:
                if not enters:
                    signal.raise_signal(signal.SIGINT)

    async def main() -> None:
        async with Crawler([web.url], fetch=web, frontier=Struck()).outcomes() as outcomes:
            async for _ in outcomes:
                pass

    with pytest.raises(KeyboardInterrupt):
        trio.run(main)
    assert reached == ["opened"] * enters


async def test_a_crawl_inside_a_crawl_and_ten_in_one_nursery(autojump_clock):
    inner = Web(site_of(5), url="http://inner.test/", delay=1)
    web = Web(site_of(5), delay=1)
    found = []
    async with Crawler([HOME], fetch=web).outcomes() as outcomes:
        async for outcome in outcomes:
            totals = await Crawler([inner.url], fetch=inner).crawl()
            found.append((outcome.url, totals.pages))
    assert len(found) == 6
    assert {pages for _, pages in found} == {6}

    webs = [Web(site_of(20), url=f"http://host{n}.test/", delay=1) for n in range(10)]
    crawlers = [Crawler([web.url], fetch=web) for web in webs]
    async with trio.open_nursery() as nursery:
        for crawler in crawlers:
            nursery.start_soon(crawler.crawl)
    assert [crawler.statistics().pages for crawler in crawlers] == [21] * 10


async def test_after_a_crawl_no_task_is_left(autojump_clock):
    root = trio.lowlevel.current_root_task()

    def tasks(task: trio.lowlevel.Task) -> int:
        return 1 + sum(tasks(c) for n in task.child_nurseries for c in n.child_tasks)

    before = tasks(root)
    async with Crawler([HOME], fetch=Web(site_of(9), delay=1)).outcomes() as outcomes:
        async for _ in outcomes:
            assert tasks(root) > before
            break
    assert tasks(root) == before


# Law 7: the frontier is unbounded, the outcomes are not.


async def test_a_caller_that_never_reads_stops_the_fetching(autojump_clock):
    web = Web(site_of(1000), delay=1)
    async with Crawler([HOME], fetch=web, workers=8).outcomes() as outcomes:
        assert (await anext(outcomes)).url == HOME
        await anext(outcomes)
        await trio.sleep(1000)
        await wait_all_tasks_blocked()
        # Each worker holds one outcome; as many wait in the outbox.
        assert web.hits.total() <= 2 * 8 + 3


async def test_large_bodies_that_wait_for_the_caller_stop_the_fetching_sooner(autojump_clock):
    site = {HOME: html(*(f"/{n}" for n in range(100)))}
    large = Response(200, httpx.Headers({"content-type": "image/png"}), bytes(10 * 1024 * 1024))
    site |= {f"{HOME}{n}": large for n in range(100)}
    web = Web(site, delay=1)
    async with Crawler([HOME], fetch=web, workers=20).outcomes() as outcomes:
        await anext(outcomes)
        await anext(outcomes)
        await trio.sleep(1000)
        # The first page, the one in hand, two that wait with over 16 MiB, and the workers'.
        assert web.hits.total() <= 2 + 2 + 20
        assert sum([1 async for _ in outcomes]) == 99


async def test_no_more_requests_are_in_flight_than_workers(autojump_clock):
    web = Web(site_of(100), delay=1)
    await Crawler([HOME], fetch=web, workers=7, politeness=Politeness(per_host=100)).crawl()
    assert web.peak == 7
    assert trio.current_time() == 1 + math.ceil(100 / 7)


@pytest.mark.slow
async def test_no_page_is_kept_alive_by_the_crawl():
    """The bodies of pages the caller has let go of are freed while the crawl goes on."""

    def pages() -> int:
        gc.collect()
        return sum(type(thing) is Page for thing in gc.get_objects())

    before = pages()
    async with Crawler([HOME], fetch=Web(site_of(50)), workers=10).outcomes() as outcomes:
        alive = [pages() - before async for _ in outcomes]
    assert len(alive) == 51
    assert max(alive) <= 10 + 10 + 2
    # At the end the workers wait for a job and hold none. The caller holds a page, and Trio may
    # hold some with which it last woke a task.
    assert alive[-1] <= 5


# Redirects.


def chain(length: int) -> dict[str, Response]:
    """Make /0 -> /1 -> ... -> /length, a page."""
    hops = {f"/{n}": redirect(f"/{n + 1}") for n in range(length)}
    return hops | {f"/{length}": html()}


async def crawled(site: dict[str, Response], seeds: Sequence[str], limit: int) -> list[Outcome]:
    web = Web(site, delay=1)
    crawler = Crawler(
        [HOME.rstrip("/") + seed for seed in seeds],
        fetch=web,
        limits=Limits(max_redirects=limit),
    )
    outcomes = await collect(crawler)
    assert set(web.hits.values()) <= {1}
    assert balanced(crawler.statistics())
    return outcomes


@pytest.mark.parametrize(("length", "limit"), [(0, 0), (2, 3), (3, 3), (10, 10)])
async def test_a_chain_up_to_the_limit_reaches_its_page(autojump_clock, length, limit):
    outcomes = await crawled(chain(length), ["/0"], limit)
    assert [type(outcome) for outcome in outcomes] == [Redirect] * length + [Page]


@pytest.mark.parametrize(("length", "limit"), [(1, 0), (4, 3), (11, 10), (100, 10)])
async def test_a_chain_above_the_limit_is_a_failure_that_says_so(autojump_clock, length, limit):
    outcomes = await crawled(chain(length), ["/0"], limit)
    assert [type(outcome) for outcome in outcomes] == [Redirect] * limit + [Failure]
    assert outcomes[-1].reason is Reason.TOO_MANY_REDIRECTS
    assert outcomes[-1].phase is Phase.READ
    assert outcomes[-1].target == f"{HOME}{limit + 1}"


async def test_a_redirect_cycle_ends(autojump_clock):
    site = {"/a": redirect("/b"), "/b": redirect("/c"), "/c": redirect("/a")}
    outcomes = await crawled(site, ["/a"], 10)
    assert [type(outcome) for outcome in outcomes] == [Redirect] * 3


async def test_two_paths_into_one_target_fetch_it_once(autojump_clock):
    site = {"/foo": redirect("/baz"), "/bar": redirect("/baz"), "/baz": html()}
    outcomes = await crawled(site, ["/foo", "/bar"], 10)
    assert len(outcomes) == 3


@pytest.mark.parametrize("slow", ["/r1", "/p", "/r2", ""])
async def test_a_chain_cut_short_goes_on_when_a_fuller_path_comes(autojump_clock, slow):
    """Experiment 12: with one redirect allowed, /r1 -> /r2 -> /r3 is cut, /p -> /r2 is not."""
    site = {"/r1": redirect("/r2"), "/r2": redirect("/r3"), "/r3": html(), "/p": html("/r2")}
    web = Web(site, delay=lambda job: 5 if slow and job.url.endswith(slow) else 1)
    seeds = [HOME + "r1", HOME + "p"]
    crawler = Crawler(seeds, fetch=web, limits=Limits(max_redirects=1))
    outcomes = await collect(crawler)
    assert HOME + "r3" in {o.url for o in outcomes if isinstance(o, Page)}
    assert set(web.hits.values()) == {1}
    assert balanced(crawler.statistics())


@for_each("status", [301, 302, 303, 307, 308])
async def test_every_redirect_status_of_a_browser_is_followed(autojump_clock, status):
    site = {"/a": redirect("b", status), "/b": html()}
    first, second = await crawled(site, ["/a"], 10)
    assert (first.status, first.target, second.url) == (status, HOME + "b", HOME + "b")


async def test_a_redirect_without_a_location_is_a_failure(autojump_clock):
    (failure,) = await crawled({"/a": Response(302)}, ["/a"], 10)
    assert (failure.reason, failure.phase) == (Reason.BAD_LOCATION, Phase.READ)
    assert "without a Location" in failure.detail


async def test_a_location_that_is_no_url_is_a_failure(autojump_clock):
    (failure,) = await crawled({"/a": redirect("http://[x")}, ["/a"], 10)
    assert (failure.reason, failure.phase) == (Reason.BAD_LOCATION, Phase.READ)


# Each is no URL, and a browser would take what stands before the last "@" for user and password.
SECRETS = [
    "http://user:s3cret@[x",
    "http://user:s3cr%20et@[x",
    "//user:s3cret@[x",
    "\\\\user:s3cret@[x",
    "HTTPS:/user:s3cret@[x",
    " ftp://user:s3cret@[x",
    "http:///\tuser:s3cret@[x",
    "http://user:s3cret@me@[x",
    "http://user:s3c/ret@[x",
    "http://user:s3c/r@et@[x",
    "http://user:s3c/r\net@[x",
    f"http://{300 * 'u'}:s3cret@[x",
]


@for_each("written", SECRETS)
async def test_a_location_that_is_no_url_is_told_without_its_user_and_password(
    autojump_clock, written
):
    (failure,) = await crawled({"/a": redirect(written)}, ["/a"], 10)
    assert failure.reason is Reason.BAD_LOCATION
    assert failure.detail.startswith("Location is not a URL: ")
    assert failure.detail.endswith("[x'")
    assert not re.search("u|s3c|ret|@", failure.detail.partition(": ")[2])


@for_each("written", SECRETS)
async def test_a_link_that_is_no_url_is_told_without_its_user_and_password(
    autojump_clock, written
):
    (page,) = await crawled({"/a": html(written, written.replace("user", "other"))}, ["/a"], 10)
    # Two that differ only there are told once.
    ((told, reason),) = page.rejected
    assert reason is Reason.BAD_URL
    assert told.endswith("[x")
    assert not re.search("u|s3c|ret|@", told)


@for_each(
    "url",
    [
        "http://[::1/@me",
        "http://a b/?mail=me@x",
        "http://a b:80?mail=me@x",
        "http://a b:80/@me",
        "http://a b\\@me",
        "http://[::g]:80/@me",
    ],
)
async def test_an_at_sign_behind_the_host_stays_in_a_link_that_is_no_url(autojump_clock, url):
    (page,) = await crawled({"/a": html(url)}, ["/a"], 10)
    assert page.rejected == ((url, Reason.BAD_URL),)


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("http://other.test/", Reason.OTHER_SITE),
        ("javascript:alert(1)", Reason.OTHER_SCHEME),
        ("file:///etc/passwd", Reason.OTHER_SCHEME),
    ],
)
async def test_a_redirect_out_of_the_scope_is_not_followed(autojump_clock, target, reason):
    (outcome,) = await crawled({"/a": redirect(target)}, ["/a"], 10)
    assert (type(outcome), outcome.target, outcome.rejected) == (Redirect, target, reason)


# Retries.


async def test_a_passing_fault_is_tried_again_up_to_max_tries(autojump_clock):
    web = Web({"/": fault(Reason.CONNECTION_REFUSED)})
    (failure,) = await collect(Crawler([HOME], fetch=web, limits=Limits(max_tries=4)))
    assert (web.hits[HOME], failure.tries) == (4, 4)
    assert 1.75 <= trio.current_time() <= 3.5


async def test_a_url_that_comes_back_is_a_page(autojump_clock):
    answers = iter([fault(Reason.RESET), fault(Reason.CONNECTION_REFUSED), html()])
    crawler = Crawler([HOME], fetch=Web({"/": lambda job: next(answers)}))
    (page,) = await collect(crawler)
    assert (type(page), page.tries, crawler.statistics().retries) == (Page, 3, 2)


async def test_a_url_that_waits_for_its_retry_holds_no_worker(autojump_clock):
    web = Web(site_of(20) | {"/0": fault(Reason.CONNECTION_REFUSED)}, delay=0.01)
    async with Crawler([HOME], fetch=web, workers=1).outcomes() as outcomes:
        order = [outcome.url async for outcome in outcomes]
    assert order[-1] == HOME + "0"


async def test_a_fault_that_will_not_pass_is_not_tried_again(autojump_clock):
    web = Web({"/": fault(Reason.TLS)})
    await Crawler([HOME], fetch=web).crawl()
    assert web.hits[HOME] == 1


# Budgets and stops.


async def test_stop_lets_what_is_in_flight_finish_and_skips_the_rest(autojump_clock):
    web = Web(site_of(50), delay=1)
    crawler = Crawler([HOME], fetch=web, workers=5)
    outcomes = []
    async with crawler.outcomes() as stream:
        async for outcome in stream:
            outcomes.append(outcome)
            if len(outcomes) == 3:
                crawler.stop()
    kinds = [type(outcome) for outcome in outcomes]
    assert (kinds.count(Page), len(kinds)) == (web.hits.total(), 51)
    assert kinds.count(Skipped) == 51 - web.hits.total() >= 40
    assert {o.reason for o in outcomes if isinstance(o, Skipped)} == {Reason.STOPPED}


async def test_stop_does_not_wait_for_retries(autojump_clock):
    web = Web({"/": fault(Reason.CONNECTION_REFUSED)})
    crawler = Crawler([HOME], fetch=web, limits=Limits(max_tries=20))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(crawler.crawl)
        await trio.sleep(20)
        crawler.stop()
        await wait_all_tasks_blocked()
        assert trio.current_time() == 20
        totals = crawler.statistics()
        assert (totals.failures, totals.skipped, totals.waiting) == (1, 0, 0)


async def stopped_at(seconds: float, crawler: Crawler) -> list[Outcome]:
    async with trio.open_nursery() as nursery, crawler.outcomes() as outcomes:

        async def stop() -> None:
            await trio.sleep(seconds)
            crawler.stop()

        nursery.start_soon(stop)
        return [outcome async for outcome in outcomes]


async def test_a_busy_page_that_waits_when_the_crawl_is_stopped_ends_by_its_last_answer(
    autojump_clock,
):
    busy = html(status=503)
    busy.headers["Retry-After"] = "60"
    web = Web({"/": html("/busy", "/other"), "/busy": busy, "/other": html()}, delay=1)
    crawler = Crawler([HOME], fetch=web)
    outcomes = await stopped_at(10, crawler)
    page = outcomes[-1]
    assert isinstance(page, Page)
    assert (page.url, page.status, page.tries, page.seconds) == (HOME + "busy", 503, 1, 1)
    assert page.headers["retry-after"] == "60"
    # Any number of these may wait: their bodies are not kept.
    assert (page.body, busy.body != b"") == (b"", True)
    assert (page.content_type, page.depth, page.referrer) == ("text/html", 1, HOME)
    totals = crawler.statistics()
    assert (totals.pages, totals.skipped, totals.retries, totals.in_flight) == (3, 0, 1, 0)
    assert balanced(totals)
    assert (trio.current_time(), web.hits[HOME + "busy"]) == (10, 1)


async def test_a_failure_that_waits_when_the_crawl_is_stopped_ends_by_its_last_fault(
    autojump_clock,
):
    faults = iter([fault(Reason.RESET), Fault(Reason.CONNECTION_REFUSED, "no", Phase.CONNECT)])
    crawler = Crawler([HOME], fetch=Web({"/": lambda job: next(faults)}, delay=2))
    # The second try ends at 4.5 at the latest, and a third begins at 4.75 at the earliest.
    (failure,) = await stopped_at(4.6, crawler)
    assert isinstance(failure, Failure)
    told = (failure.reason, failure.detail, failure.phase, failure.tries)
    assert told == (Reason.CONNECTION_REFUSED, "no", Phase.CONNECT, 2)
    assert failure.seconds == pytest.approx(2)
    assert balanced(crawler.statistics())


async def test_what_a_stopped_crawl_never_asked_for_is_skipped_beside_what_waited(autojump_clock):
    web = Web(
        {"/": html("/busy", "/a", "/b"), "/busy": fault(), "/a": html(), "/b": html()}, delay=1
    )
    crawler = Crawler([HOME], fetch=web, workers=1, limits=Limits(max_tries=20))
    # Between 2.25 and 2.5 the host has rested, and /a is asked for.
    outcomes = await stopped_at(2.6, crawler)
    kinds = {outcome.url.removeprefix(HOME): type(outcome) for outcome in outcomes}
    assert kinds == {"": Page, "busy": Failure, "a": Page, "b": Skipped}
    assert set(web.hits.values()) == {1}
    assert balanced(crawler.statistics())


async def test_the_answer_of_an_earlier_try_is_not_kept(autojump_clock):
    answers = iter([1, 2, 3])

    def answer(job: Job) -> Response | Fault:
        return Fault(Reason.RESET, f"try {number}") if (number := next(answers)) < 3 else html()

    crawler = Crawler([HOME], fetch=Web({"/": answer}))
    totals = await crawler.crawl()
    assert (totals.pages, totals.retries) == (1, 2)
    gc.collect()
    details = [thing.detail for thing in gc.get_objects() if isinstance(thing, Fault)]
    assert not [detail for detail in details if detail.startswith("try ")]
    assert crawler.statistics() == totals


@pytest.mark.parametrize("workers", [1, 3, 50])
async def test_the_page_budget_is_met_exactly(autojump_clock, workers):
    web = Web(
        site_of(50) | {"/3": redirect("/4"), "/5": redirect("/new"), "/new": html()}, delay=1
    )
    crawler = Crawler([HOME], fetch=web, limits=Limits(max_pages=12), workers=workers)
    outcomes = await collect(crawler)
    assert sum(isinstance(outcome, Page) for outcome in outcomes) == 12
    assert balanced(crawler.statistics())


async def test_a_page_budget_of_one_follows_the_seeds_redirect(autojump_clock):
    web = Web({"/": redirect("/home"), "/home": html("/a")}, delay=1)
    crawler = Crawler([HOME], fetch=web, limits=Limits(max_pages=1))
    outcomes = await collect(crawler)
    assert [type(outcome) for outcome in outcomes[:2]] == [Redirect, Page]
    assert crawler.statistics().pages == 1


async def test_the_time_budget_stops_the_admission_and_keeps_what_is_in_flight(autojump_clock):
    web = Web(site_of(100), delay=1)
    gently = Politeness(per_host=5)
    crawler = Crawler(
        [HOME], fetch=web, workers=5, limits=Limits(max_seconds=3.5), politeness=gently
    )
    outcomes = await collect(crawler)
    assert trio.current_time() == 4
    assert sum(isinstance(o, Page) for o in outcomes) == 16
    assert {o.reason for o in outcomes if isinstance(o, Skipped)} == {Reason.TIME_BUDGET}


async def test_a_depth_is_the_shortest_distance_whatever_answers_first(autojump_clock):
    """/ -> /slow -> /x -> /y is the short way; / -> /a -> /b -> /x the quick one."""
    site = {
        "/": html("/slow", "/a"),
        "/slow": html("/x"),
        "/a": html("/b"),
        "/b": html("/x"),
        "/x": html("/y"),
        "/y": html("/z"),
        "/z": html(),
    }
    web = Web(site, delay=lambda job: 100 if "slow" in job.url else 1)
    crawler = Crawler([HOME], fetch=web, limits=Limits(max_depth=3))
    depths = {o.url.removeprefix(HOME): o.depth for o in await collect(crawler)}
    assert depths == {"": 0, "slow": 1, "a": 1, "x": 2, "b": 2, "y": 3}


async def test_a_link_too_deep_is_refused_with_its_reason(autojump_clock):
    web = Web({"/": html("/a"), "/a": html("/b")})
    outcomes = await collect(Crawler([HOME], fetch=web, limits=Limits(max_depth=1)))
    assert outcomes[-1].rejected == ((HOME + "b", Reason.TOO_DEEP),)


# Bad input.


@for_each("seed", ["", "not a url", "ftp://site.test/", "mailto:a@b", "http://[x"])
def test_a_seed_that_is_no_web_address_is_named(seed):
    with pytest.raises(ValueError, match="not a"):
        Crawler([seed])


@pytest.mark.parametrize("before", ["ftp://", "http://", "//", ""])
def test_a_seed_that_is_no_web_address_is_named_without_its_user_and_password(before):
    with pytest.raises(ValueError, match=r"not a.*\[site.test/@x'$") as raised:
        Crawler([f"{before}user:s3cret@[site.test/@x"])
    assert "s3cret" not in str(raised.value)


def test_a_single_string_of_seeds_is_a_type_error():
    with pytest.raises(TypeError, match=r"write \['http://site.test/'\]"):
        Crawler(HOME)


def test_a_single_string_of_seeds_is_told_without_its_user_and_password():
    with pytest.raises(TypeError, match=r"write \['http://site.test/'\]"):
        Crawler("http://user:s3cret@site.test/")


@pytest.mark.parametrize("workers", [0, -1])
def test_no_workers_is_a_value_error(workers):
    with pytest.raises(ValueError, match="workers must be 1 or more"):
        Crawler([HOME], workers=workers)


@for_each(
    "name, figure",
    [
        ("max_depth", -1),
        ("max_pages", 0),
        ("max_tries", 0),
        ("max_seconds", 0),
        ("max_seconds", math.nan),
    ],
)
def test_a_limit_that_cannot_be_meant_is_named(name, figure):
    with pytest.raises(ValueError, match=f"{name} must be"):
        Limits(**{name: figure})


# What a page brings along.


async def test_a_page_carries_its_body_text_headers_and_links(autojump_clock):
    body = "<title> Caf\xe9 </title><a href=a#x>1</a><a href='http://other.test/'>2</a>"
    headers = httpx.Headers({"Content-Type": "text/html; charset=latin-1", "X-Key": "v"})
    web = Web({"/": Response(200, headers, body.encode("latin-1"))})
    page = (await collect(Crawler([HOME], fetch=web)))[0]
    assert isinstance(page, Page)
    assert page.ok
    assert page.text == body
    assert page.body == body.encode("latin-1")
    assert (page.title, page.charset, page.content_type) == ("Café", "windows-1252", "text/html")
    assert page.headers["x-key"] == "v"
    assert page.links == (HOME + "a",)
    assert page.rejected == (("http://other.test/", Reason.OTHER_SITE),)


async def test_the_links_of_an_error_page_are_not_followed(autojump_clock):
    web = Web({"/": html("/a", status=404)})
    (page,) = await collect(Crawler([HOME], fetch=web))
    assert (page.status, page.ok, page.links) == (404, False, ())


@for_each(
    "outcome, ok, fault",
    [
        (Page(HOME, 204, httpx.Headers(), b""), True, None),
        (Page(HOME, 304, httpx.Headers(), b""), False, None),
        (Redirect(HOME, 301, HOME), False, None),
        (Failure(HOME, Reason.DNS, "no address", tries=0), False, Fault(Reason.DNS, "no address")),
        (Skipped(HOME, Reason.ROBOTS), False, None),
        (Checked(HOME, 200), True, None),
        (Checked(HOME, 404), False, None),
        (Checked(HOME, reason=Reason.RESET, detail="x"), False, Fault(Reason.RESET, "x")),
        (Checked(HOME, reason=Reason.TIMEOUT, tries=0), False, Fault(Reason.TIMEOUT)),
        (Checked(HOME, reason=Reason.ROBOTS, tries=0), False, None),
    ],
)
def test_an_outcome_of_any_kind_says_if_it_is_well_and_why_not(outcome, ok, fault):
    assert (outcome.ok, outcome.fault) == (ok, fault)


async def test_malformed_links_are_refused_and_the_crawl_goes_on(autojump_clock):
    web = Web({"/": html("http://[x", "/a")})
    outcomes = await collect(Crawler([HOME], fetch=web))
    assert outcomes[0].rejected == (("http://[x", Reason.BAD_URL),)
    assert [o.url for o in outcomes] == [HOME, HOME + "a"]


async def test_any_scope_may_be_passed(autojump_clock):
    web = Web({"/": html("http://other.test/"), "http://other.test/": html()})
    totals = await Crawler([HOME], fetch=web, scope=everything).crawl()
    assert totals.pages == 2


async def test_a_large_page_is_read_in_a_thread_with_the_same_result():
    links = [f"/{n:020}" for n in range(20_000)]
    web = Web({"/": html(*links)})
    async with Crawler([HOME], fetch=web).outcomes() as outcomes:
        page = await anext(outcomes)
    assert len(page.body) >= LARGE_PAGE
    assert len(page.links) == 20_000
