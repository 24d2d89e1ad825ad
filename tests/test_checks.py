"""Checks: URLs outside the crawl that are asked for, once, and not followed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import pytest
import trio
from sites.frontiers import FRONTIERS, Opened
from sites.raw import Request, raw_server, redirect, reply
from sites.webs import HOME, collect

from trio_crawler import (
    Checked,
    Checks,
    Crawler,
    Fetch,
    History,
    HostPoliteness,
    HttpFetch,
    HttpxFetch,
    Job,
    Limits,
    Page,
    Politeness,
    Reason,
    Redirect,
    Response,
    SqliteFrontier,
    excluding,
)
from trio_crawler.model import Answer, Fault, Purpose
from trio_crawler.testing import Web, fault, html
from trio_crawler.testing import redirect as moved

ALL = Checks(delay=0)
PLAIN = httpx.Headers({"Content-Type": "text/plain"})


async def checked(web: Web, checks: Checks = ALL, **about: Any) -> dict[str, Checked]:
    """Crawl a web, and return the checks by URL."""
    found = await collect(Crawler([web.url], fetch=web, checks=checks, **about))
    return {outcome.url: outcome for outcome in found if isinstance(outcome, Checked)}


class Asked:
    """A web that records the purposes of its jobs, by URL."""

    def __init__(self, web: Web) -> None:
        self.web = web
        self.jobs: list[Job] = []

    async def __call__(self, job: Job) -> Answer:
        self.jobs.append(job)
        return await self.web(job)

    def of(self, url: str) -> list[tuple[Purpose, int]]:
        return [(job.purpose, job.tries) for job in self.jobs if job.url == url]


@pytest.fixture(params=FRONTIERS, ids=lambda each: each.__name__)
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Opened:
    return lambda: request.param(tmp_path)


async def test_links_that_leave_the_site_are_checked_once_and_not_followed(
    autojump_clock: Any, opened: Opened
) -> None:
    out = "http://other.test/x"
    web = Web(
        {
            "/": html("/a", out, "http://other.test/gone"),
            "/a": html(out),
            out: html("http://other.test/deeper"),
        }
    )
    async with opened() as frontier:
        crawler = Crawler([HOME], fetch=web, checks=ALL, frontier=frontier)
        async with crawler.outcomes() as outcomes:
            found = [outcome async for outcome in outcomes]
    statuses = {each.url: each.status for each in found if isinstance(each, Checked)}
    assert statuses == {out: 200, "http://other.test/gone": 404}
    assert web.hits[out] == 1
    assert web.hits["http://other.test/deeper"] == 0
    totals = crawler.statistics()
    assert (totals.admitted, totals.pages, totals.checked, totals.in_flight) == (4, 2, 2, 0)


async def test_nothing_is_checked_unless_it_is_asked_for(autojump_clock: Any) -> None:
    web = Web({"/": html("http://other.test/")})
    assert await checked(web, Checks.off()) == {}
    found = await collect(Crawler([HOME], fetch=web))
    assert [type(outcome) for outcome in found] == [Page]


async def test_a_rejected_link_is_still_told_by_its_page(autojump_clock: Any) -> None:
    web = Web({"/": html("http://other.test/")})
    (page, _) = await collect(Crawler([HOME], fetch=web, checks=ALL))
    assert isinstance(page, Page)
    assert page.rejected == (("http://other.test/", Reason.OTHER_SITE),)


async def test_links_below_the_greatest_depth_are_checked_and_excluded_ones_are_not(
    autojump_clock: Any,
) -> None:
    web = Web({"/": html("/a", "/private"), "/a": html("/b"), "/b": html("/c")})
    scope = excluding("/private")
    found = await checked(web, scope=scope, limits=Limits(max_depth=1))
    assert {url: each.status for url, each in found.items()} == {f"{HOME}b": 200}
    assert web.hits[f"{HOME}private"] == web.hits[f"{HOME}c"] == 0


async def test_a_page_that_redirects_out_of_the_site_has_its_target_checked(
    autojump_clock: Any,
) -> None:
    target = "http://other.test/new"
    web = Web({"/": html("/out"), "/out": moved(target)})
    found = await collect(Crawler([HOME], fetch=web, checks=ALL))
    (left,) = (each for each in found if isinstance(each, Redirect))
    (there,) = (each for each in found if isinstance(each, Checked))
    assert (left.target, left.rejected) == (target, Reason.OTHER_SITE)
    assert (there.url, there.status, there.referrer) == (target, 404, f"{HOME}out")


@pytest.mark.parametrize(
    ("fragments", "own", "read"), [(True, "", True), (True, "#x", False), (False, "", False)]
)
async def test_what_a_page_redirects_to_outside_is_read_once_for_its_places(
    autojump_clock: Any, fragments: bool, own: str, read: bool
) -> None:
    target, purposes = "http://other.test/new", list[Purpose]()

    async def ask(job: Job) -> Answer:
        if job.url == target:
            purposes.append(job.purpose)
        return await web(job)

    web = Web({"/": html("/out"), "/out": moved(target + own), target: html()})
    checks = Checks(delay=0, fragments=fragments)
    await collect(Crawler([HOME], fetch=ask, checks=checks))
    assert purposes == [Purpose.FRAGMENTS if read else Purpose.CHECK]


async def test_the_redirects_of_a_check_are_followed_to_their_end(autojump_clock: Any) -> None:
    one, two, end = (f"http://other.test/{name}" for name in ("one", "two", "end"))
    web = Web({"/": html(one), one: moved(two), two: moved(end), end: html()})
    found = await checked(web)
    assert {url: (each.status, each.target) for url, each in found.items()} == {
        one: (302, two),
        two: (302, end),
        end: (200, None),
    }


async def test_a_check_that_redirects_for_ever_ends_at_the_limit(autojump_clock: Any) -> None:
    def onward(job: Job) -> Response:
        return moved(f"{job.url}x")

    steps = {f"http://other.test/{'x' * number}": onward for number in range(20)}
    web = Web({"/": html("http://other.test/"), **steps})
    found = await checked(web, limits=Limits(max_redirects=3))
    assert [each.reason for each in found.values()] == [None, None, None, "too_many_redirects"]
    loop = Web({"/": html("http://o.test/"), "http://o.test/": moved("http://o.test/")})
    assert list(await checked(loop)) == ["http://o.test/"]


async def test_a_check_that_leads_back_into_the_site_is_a_page_there(autojump_clock: Any) -> None:
    out = "http://other.test/"
    web = Web({"/": html(out), out: moved(f"{HOME}hidden"), "/hidden": html("/next")})
    found = await collect(Crawler([HOME], fetch=web, checks=ALL))
    pages = {each.url: each.status for each in found if isinstance(each, Page)}
    assert pages == {HOME: 200, f"{HOME}hidden": 200, f"{HOME}next": 404}


async def test_a_server_that_answers_head_with_an_error_is_asked_by_get(
    autojump_clock: Any,
) -> None:
    def by_get(job: Job) -> Response:
        return Response(405 if job.tries == 1 else 200)

    out = "http://other.test/"
    asked = Asked(Web({"/": html(out), out: by_get}))
    one_try = Limits(max_tries=1)
    crawler = Crawler([HOME], fetch=asked, checks=ALL, limits=one_try)
    found = [each for each in await collect(crawler) if isinstance(each, Checked)]
    assert [(each.status, each.tries) for each in found] == [(200, 2)]
    assert asked.of(out) == [(Purpose.CHECK, 1), (Purpose.CHECK, 2)]


async def test_a_check_without_an_answer_says_why(autojump_clock: Any) -> None:
    down = "http://down.test/"
    web = Web({"/": html(down), down: fault(Reason.CONNECTION_REFUSED, "no server listens there")})
    (found,) = (await checked(web)).values()
    assert (found.status, found.reason) == (None, Reason.CONNECTION_REFUSED)
    assert found.detail == "no server listens there"


async def test_a_check_of_a_host_that_was_given_up_was_never_asked(autojump_clock: Any) -> None:
    urls = [f"http://down.test/{number}" for number in range(8)]
    web = Web({"/": html(*urls), **dict.fromkeys(urls, Fault(Reason.NO_SUCH_HOST))})
    found = await checked(web)
    assert len(found) == 8
    assert {each.status for each in found.values()} == {None}
    assert sum(web.hits[url] for url in urls) == 2
    assert sum(not each.tries for each in found.values()) == 6


async def test_a_host_outside_the_crawl_gets_one_request_at_a_time_with_a_delay(
    autojump_clock: Any,
) -> None:
    outside = [f"http://other.test/{number}" for number in range(5)]
    starts: list[float] = []
    flying = peak = 0

    async def ask(job: Job) -> Answer:
        nonlocal flying, peak
        if job.purpose is not Purpose.CHECK:
            return html(*outside) if job.url == HOME else Response(404)
        flying += 1
        peak = max(peak, flying)
        starts.append(trio.current_time())
        await trio.sleep(0.1)
        flying -= 1
        return Response(200)

    await collect(Crawler([HOME], fetch=ask, checks=Checks(delay=2)))
    assert peak == 1
    gaps = [after - before for before, after in pairwise(starts)]
    assert len(gaps) == 4
    assert min(gaps) >= 2
    assert max(gaps) < 2.5


BAD = {"429": Response(429), "404": Response(404), "reset": fault(Reason.RESET), "slow": 0.6}


@pytest.mark.parametrize("kind", BAD)
async def test_a_host_outside_that_answers_well_is_checked_quicker_until_it_does_not(
    autojump_clock: Any, kind: str
) -> None:
    starts: list[float] = []

    async def ask(job: Job) -> Answer:
        if job.purpose is not Purpose.CHECK:
            outside = (f"http://other.test/{number}" for number in range(9))
            return html(*outside) if job.url == HOME else Response(404)
        starts.append(trio.current_time())
        bad = BAD[kind] if len(starts) == 5 else 0.01
        await trio.sleep(bad if isinstance(bad, float) else 0.01)
        return Response(200) if isinstance(bad, float) else bad

    await collect(Crawler([HOME], fetch=ask, checks=Checks()))
    gaps = [round(after - before, 2) for before, after in pairwise(starts)]
    if kind == "404":
        # The host is well. The URL is asked for once more, by GET.
        assert gaps == [0.5, *[0.1] * 8]
        return
    # Two good answers and two quick ones, the bad one, and two good answers again.
    assert gaps[:4] == [0.5, 0.1, 0.1, 0.1]
    assert min(gaps[4:6]) >= 0.5
    # A host that has refused a request is never asked so often again.
    assert (min(gaps[6:]) >= 0.5) is (kind == "429")


async def test_a_host_that_is_crawled_as_well_keeps_the_politeness_of_the_crawl(
    autojump_clock: Any,
) -> None:
    # The other site is found as a link outside first, and is a seed's host later.
    def scope(job: Job) -> bool | Reason:
        inside = job.url.startswith((HOME, "http://big.test/in/"))
        return inside or Reason.OTHER_SITE

    inside = [f"http://big.test/in/{number}" for number in range(8)]
    web = Web({"/": html("http://big.test/out", *inside)}, delay=1.0)
    began = trio.current_time()
    polite = Politeness(hosts={"big.test": HostPoliteness(per_host=8)})
    crawler = Crawler([HOME], fetch=web, checks=Checks(delay=60), scope=scope, politeness=polite)
    found = await collect(crawler)
    assert len(found) == 10
    assert trio.current_time() - began < 4


@pytest.mark.parametrize("checked", [False, True])
async def test_a_host_with_a_politeness_of_its_own_is_crawled_and_checked_by_that(
    autojump_clock: Any, checked: bool
) -> None:
    starts: dict[str, list[float]] = {"slow.test": [], "site.test": []}

    async def ask(job: Job) -> Answer:
        if job.url.endswith("robots.txt"):
            return Response(404)
        starts[httpx.URL(job.url).host].append(trio.current_time())
        await trio.sleep(0.1)
        slow = (f"http://slow.test/{number}" for number in range(5))
        return html(*slow, *map(str, range(9))) if job.url == HOME else html()

    polite = Politeness(
        hosts={"Slow.test": HostPoliteness(delay=7), "site.test": HostPoliteness(per_host=1)}
    )
    seeds, checks = ([HOME], Checks()) if checked else ([HOME, "http://slow.test/"], None)
    await collect(Crawler(seeds, fetch=ask, checks=checks, politeness=polite))
    slow, own = ([after - before for before, after in pairwise(each)] for each in starts.values())
    assert slow == pytest.approx([7.0] * (4 if checked else 5))
    assert own == pytest.approx([0.1] * 9)


@pytest.mark.parametrize("external", [False, True])
async def test_ten_ports_of_a_name_are_asked_for_and_no_more(
    autojump_clock: Any, external: bool
) -> None:
    links = [f"http://[::1]:{port}/{path}" for port in range(8000, 8030) for path in "ab"]
    web = Web({"/": html(*links, "http://[::1]/", "http://other.test/")})
    crawler = Crawler(
        [HOME, "http://[::1]:9000/"],
        fetch=web,
        checks=Checks() if external else None,
        scope=None if external else lambda job: True,
    )
    found = {each.url: each for each in await collect(crawler)}
    ports = {url.split(":")[-1].partition("/")[0] for url in found if "]:" in url}
    assert ports == {"9000", *map(str, range(8000, 8009))}
    assert {"http://[::1]/", "http://other.test/"} < set(found)
    rejected = {each.url: each.reason for each in found[HOME].rejected}  # type: ignore[union-attr]
    assert sum(reason is Reason.TOO_MANY_PORTS for reason in rejected.values()) == 42


async def test_of_a_host_outside_as_many_urls_are_checked_as_wanted(
    autojump_clock: Any,
) -> None:
    links = [f"http://{name}.test:{port}/{n}" for name in "ab" for port in (80, 81) for n in "123"]
    deep = [f"{HOME}deep{number}" for number in range(6)]
    web = Web(
        {"/": html(*links, "/in", "/on"), "/in": moved("http://c.test/"), "/on": html(*deep)}
    )
    found = await collect(
        Crawler([HOME], fetch=web, checks=Checks(max_per_host=4), limits=Limits(max_depth=1))
    )
    checked = [each.url[:13] for each in found if isinstance(each, Checked)]
    outside = [*["http://a.test"] * 4, *["http://b.test"] * 4, "http://c.test"]
    assert sorted(checked) == [*outside, *["http://site.t"] * 6]
    page = next(each for each in found if each.url == HOME and isinstance(each, Page))
    assert [each.reason for each in page.rejected].count(Reason.CHECK_BUDGET) == 4


@pytest.mark.parametrize("delay", [0.3, 0.5, 2])
async def test_a_host_that_was_checked_before_it_is_crawled_keeps_its_crawl_delay(
    autojump_clock: Any, delay: float
) -> None:
    def scope(job: Job) -> bool | Reason:
        return job.url.startswith((HOME, "http://big.test/in/")) or Reason.OTHER_SITE

    inside = [f"http://big.test/in/{number}" for number in range(5)]
    starts: list[float] = []

    async def ask(job: Job) -> Answer:
        if job.url in inside:
            starts.append(trio.current_time())
        await trio.sleep(5 if job.url == f"{HOME}later" else 0.1)
        pages = {HOME: html("http://big.test/out", "/later"), f"{HOME}later": html(*inside)}
        rules = f"User-agent: *\nCrawl-delay: {delay}".encode()
        pages["http://big.test/robots.txt"] = Response(200, PLAIN, rules)
        return pages.get(job.url, Response(404 if job.url.endswith(".txt") else 200))

    await collect(Crawler([HOME], fetch=ask, scope=scope, checks=Checks(robots=True)))
    gaps = [after - before for before, after in pairwise(starts)]
    assert len(gaps) == 4
    assert min(gaps) > delay - 0.001


@pytest.mark.parametrize("robots", [False, True])
async def test_the_robots_txt_of_a_host_outside_is_read_only_on_request(
    autojump_clock: Any, robots: bool
) -> None:
    out = "http://other.test/secret"
    rules = "http://other.test/robots.txt"
    disallow = Response(200, body=b"User-agent: *\nDisallow: /")
    web = Web({"/": html(out), out: html(), rules: disallow})
    (found,) = (await checked(web, Checks(robots=robots))).values()
    assert web.hits[rules] == robots
    assert (found.status, found.reason) == ((None, "robots") if robots else (200, None))


async def test_a_crawl_that_is_stopped_ends_its_checks(autojump_clock: Any) -> None:
    urls = [f"http://other.test/{number}" for number in range(10)]
    web = Web({"/": html(*urls), **dict.fromkeys(urls, html())})
    crawler = Crawler([HOME], fetch=web, checks=Checks(delay=100))
    found = []
    async with crawler.outcomes() as outcomes:
        async for outcome in outcomes:
            found.append(outcome)
            if len(found) == 3:
                crawler.stop()
    stopped = [each for each in found if isinstance(each, Checked) and not each.tries]
    assert len(found) == 11
    assert {each.reason for each in stopped} == {Reason.STOPPED}
    assert len(stopped) == 8


async def test_a_killed_crawl_checks_each_url_once_over_all_runs(
    autojump_clock: Any, tmp_path: Path
) -> None:
    urls = [f"http://other.test/{number}" for number in range(6)]
    web = Web({"/": html("/a", *urls), "/a": html(*urls)})
    for stops in (3, 100):
        async with SqliteFrontier(tmp_path) as frontier:
            crawler = Crawler([HOME], fetch=web, checks=Checks(), frontier=frontier)
            async with crawler.outcomes() as outcomes:
                seen = 0
                async for _ in outcomes:
                    seen += 1
                    if seen == stops:
                        break
    totals = crawler.statistics()
    assert (totals.admitted, totals.pages, totals.checked) == (8, 2, 6)
    with History(tmp_path) as history:
        found = [each for each in history.outcomes() if isinstance(each, Checked)]
        assert history.statistics().checked == 6
    # Each was asked by HEAD and by GET, since it is a 404; some twice, since the crawl was cut.
    assert sorted(each.url for each in found) == urls
    assert {each.status for each in found} == {404}
    assert {each.tries for each in found} == {2}


@asynccontextmanager
async def by_httpx(url: str) -> AsyncIterator[Fetch]:
    async with httpx.AsyncHTTPTransport() as transport, HttpxFetch(transport) as fetch:
        yield fetch


METHODS = [lambda url: HttpFetch(seeds=[url]), by_httpx]


@pytest.mark.parametrize("make", METHODS, ids=["own wire", "httpx"])
async def test_a_check_is_a_head_request_and_then_a_get_that_ends_after_the_head(
    make: Callable[[str], Any],
) -> None:
    big = 10_000_000
    asked: list[tuple[str, str]] = []

    async def answer(request: Request, stream: trio.abc.Stream) -> None:
        asked.append((request.method, request.target))
        if request.target == "/moved":
            await stream.send_all(redirect("/big"))
        elif request.method == "HEAD":
            # The length of a body that does not come.
            status = 405 if request.target == "/no-head" else 200
            head = f"HTTP/1.1 {status} x\r\nContent-Length: {big}\r\n\r\n"
            await stream.send_all(head.encode())
        else:
            head = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {big}\r\n\r\n"
            await stream.send_all(head.encode() + bytes(1_000))
            await trio.sleep_forever()

    async with raw_server(answer) as server, make(server.url) as fetch:
        with trio.fail_after(10):
            for path, tries, status, flaw in (
                ("big", 1, 200, None),
                ("big", 1, 200, None),
                ("no-head", 1, 405, None),
                ("no-head", 2, 200, Reason.NOT_READ),
                ("moved", 1, 302, None),
            ):
                job = Job(f"{server.url}{path}", purpose=Purpose.CHECK, tries=tries)
                response = await fetch(job)
                assert (response.status, response.flaw, response.body) == (status, flaw, b"")
    methods = [method for method, _ in asked]
    assert methods == ["HEAD", "HEAD", "HEAD", "GET", "HEAD"]


async def test_small_bodies_of_a_check_keep_the_connection() -> None:
    async def answer(request: Request, stream: trio.abc.Stream) -> None:
        await stream.send_all(reply(200, {}, b"" if request.method == "HEAD" else b"small"))

    async with raw_server(answer) as server, HttpFetch(seeds=[server.url]) as fetch:
        for tries in (1, 2, 2, 1):
            response = await fetch(Job(server.url, purpose=Purpose.CHECK, tries=tries))
            assert isinstance(response, Response)
        wire = fetch.statistics().wire
    assert wire is not None
    assert (wire.made, wire.reused) == (1, 3)
