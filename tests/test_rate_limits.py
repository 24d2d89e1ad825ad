"""Servers that limit their clients: no page is lost, and the crawl is as fast as they allow."""

from __future__ import annotations

import math
import random

import httpx
import pytest
import trio
from sites.limited import SITE, Limited
from sites.servers import nginx

from trio_crawler import (
    Crawler,
    HttpFetch,
    Job,
    Limits,
    Page,
    Politeness,
    Response,
    SqliteFrontier,
)
from trio_crawler.policy.host_load import MAX_REFUSALS
from trio_crawler.testing import Web, html


async def crawled(server: Limited, seed: int = 1, **politeness: float | bool) -> list[Page]:
    """Crawl a server to the end; every page must come."""
    crawler = Crawler(
        [SITE], fetch=server, random=random.Random(seed), politeness=Politeness(**politeness)
    )
    async with crawler.outcomes() as outcomes:
        pages = [outcome async for outcome in outcomes]
    assert [page.status for page in pages] == [200] * server.pages
    assert max(page.tries for page in pages) <= 4
    return pages


@pytest.mark.parametrize("seed", range(3))
async def test_300_pages_at_50_a_second_take_at_most_10_seconds_and_none_is_lost(
    autojump_clock, seed
):
    server = Limited(rate=50)
    await crawled(server, seed)
    assert 299 / 50 <= trio.current_time() <= 10
    assert 10 <= server.refused.total() <= 60


@pytest.mark.parametrize(
    ("server", "seconds"),
    [
        (Limited(rate=1, pages=100), 150),
        (Limited(rate=5, pages=100), 32),
        (Limited(rate=200), 4),
        (Limited(rate=50, burst=20), 10),
        (Limited(rate=50, latency=0.06), 15),
        (Limited(rate=5, status=429, headers={"Retry-After": "1"}), 120),
        (Limited(rate=5, burst=5, status=429, headers={"Retry-After": "1"}), 90),
    ],
    ids=["1", "5", "200", "burst", "slow", "429", "429-burst"],
)
async def test_no_page_is_lost_to_a_limit_of_the_rate(autojump_clock, server, seconds):
    await crawled(server)
    assert trio.current_time() <= seconds
    assert server.refused.total() <= server.pages // 6 + 40


@pytest.mark.parametrize("latency", [0.001, 0.05, 0.2])
@pytest.mark.parametrize("window", ["fixed", "sliding"])
async def test_a_host_that_allows_ten_requests_a_second_gets_at_least_six(
    autojump_clock, window, latency
):
    server = Limited(rate=10, window=window, latency=latency, status=429)
    crawler = Crawler([SITE], fetch=server, random=random.Random(1))
    assert (await crawler.crawl()).pages == 300
    assert trio.current_time() <= 300 / 6
    host = crawler.hosts["limited.test"]
    assert host.asked == 0
    assert 0 < host.refused <= server.refused.total()


@pytest.mark.parametrize("at_once", [1, 2, 3])
async def test_no_page_is_lost_to_a_limit_of_the_requests_at_once(autojump_clock, at_once):
    server = Limited(at_once=at_once, latency=0.1)
    await crawled(server)
    assert trio.current_time() <= 2 * 300 * 0.1 / at_once
    assert server.refused.total() <= 80


@pytest.mark.parametrize("every", [2, 3, 10])
@pytest.mark.parametrize("rest", [1, 2])
async def test_no_page_is_lost_to_a_server_that_is_busy_now_and_then(autojump_clock, every, rest):
    """It refuses each request whose number is a multiple of `every`."""
    links = [f"{SITE}{number}" for number in range(150)]
    web = Web({SITE: html(*links), **dict.fromkeys(links, html())})
    asked = 0

    async def fetch(job: Job) -> Response:
        nonlocal asked
        await trio.sleep(0.05)
        if job.url.endswith("robots.txt"):
            return Response(404)
        asked += 1
        refused = asked % every == 0
        return (
            Response(429, httpx.Headers({"Retry-After": f"{rest}"})) if refused else await web(job)
        )

    async with Crawler([SITE], fetch=fetch, random=random.Random(1)).outcomes() as outcomes:
        pages = [outcome async for outcome in outcomes]
    assert [page.status for page in pages] == [200] * 151


async def test_an_adaptive_crawl_of_a_limited_server_loses_no_page_either(autojump_clock):
    await crawled(Limited(rate=50), adaptive=True)
    assert trio.current_time() <= 10


async def test_a_delay_that_was_asked_for_is_kept_beside_a_learned_one(autojump_clock):
    await crawled(Limited(rate=1, pages=20), delay=0.5)
    assert 0.5 * 20 <= trio.current_time() <= 40


@pytest.mark.slow
async def test_when_the_limit_ends_the_crawl_is_as_fast_as_before(autojump_clock):
    server = Limited(rate=50, pages=3000, until=3)
    crawler = Crawler([SITE], fetch=server, random=random.Random(1))
    await crawler.crawl()
    # 50 a second would take a minute.
    assert trio.current_time() <= 8
    host = crawler.hosts["limited.test"]
    assert (host.delay, host.limit, host.failures) == (0, 4, 0)


async def test_a_server_without_a_limit_is_held_back_by_nothing(autojump_clock):
    server = Limited()
    await crawled(server)
    assert (server.requests, server.refused.total()) == (301, 0)
    assert trio.current_time() < 0.1


async def test_a_host_that_refuses_all_is_given_up_in_time(autojump_clock):
    server = Limited(pages=60)

    async def fetch(job: Job) -> Response:
        return await server(job) if trio.current_time() < 0.004 else Response(503)

    crawler = Crawler([SITE], fetch=fetch)
    totals = await crawler.crawl()
    assert 360 <= trio.current_time() <= 420
    assert totals.admitted == 60


@pytest.mark.parametrize("tries", [1, 4])
async def test_a_url_that_is_always_refused_ends_after_its_tries_and_some(autojump_clock, tries):
    """Two pages are refused for ever, beside a hundred that come."""
    asked = dict.fromkeys(("bad1", "bad2"), 0)
    links = [f"{SITE}{number}" for number in range(50)]
    web = Web({SITE: html(SITE + "bad1", SITE + "bad2", *links), **dict.fromkeys(links, html())})

    async def fetch(job: Job) -> Response:
        name = job.url.rpartition("/")[2]
        if name in asked:
            asked[name] += 1
            await trio.sleep(0.01)
            return Response(503)
        await trio.sleep(0.01)
        return await web(job)

    crawler = Crawler([SITE], fetch=fetch, limits=Limits(max_tries=tries))
    async with crawler.outcomes() as outcomes:
        pages = {outcome.url: outcome async for outcome in outcomes}
    assert len(pages) == 53
    assert {pages[SITE + name].status for name in asked} == {503}
    assert {pages[SITE + name].tries for name in asked} == {tries}
    assert all(tries <= count <= tries + MAX_REFUSALS for count in asked.values())
    assert trio.current_time() <= 30


async def test_one_url_that_is_refused_is_tried_as_often_as_any(autojump_clock):
    asked = []
    links = [f"{SITE}{number}" for number in range(50)]
    web = Web({SITE: html(SITE + "bad", *links), **dict.fromkeys(links, html())}, delay=0.01)

    async def fetch(job: Job) -> Response:
        if job.url == SITE + "bad":
            asked.append(trio.current_time())
            return Response(503, httpx.Headers())
        return await web(job)

    await Crawler([SITE], fetch=fetch).crawl()
    assert len(asked) == 4


async def test_a_crawl_that_is_stopped_within_a_limit_goes_on_and_loses_no_page(
    autojump_clock, tmp_path
):
    server = Limited(rate=50)
    totals = None
    for seconds in (2.0, math.inf):
        async with SqliteFrontier(tmp_path) as frontier:
            with trio.move_on_after(seconds):
                crawler = Crawler([SITE], fetch=server, frontier=frontier)
                totals = await crawler.crawl()
    assert totals is not None
    assert (totals.pages, totals.admitted, totals.failures) == (300, 300, 0)


@pytest.mark.real
@pytest.mark.parametrize("status", [503, 429])
def test_nginx_with_a_limit_of_50_a_second_gives_all_of_300_pages(tmp_path, status):
    links = "".join(f'<a href="/{number}.html">{number}</a>' for number in range(299))
    (tmp_path / "index.html").write_text(links)
    for number in range(299):
        (tmp_path / f"{number}.html").write_text(f"<title>{number}</title>")
    text = (
        "limit_req_zone $binary_remote_addr zone=one:1m rate=50r/s;"
        "server { listen 127.0.0.1:@PORT@; limit_req zone=one; limit_req_log_level info;"
        f" limit_req_status {status}; }}"
    )

    async def crawl(url: str) -> tuple[list[Page], float]:
        async with HttpFetch(seeds=[url]) as fetch, Crawler([url], fetch=fetch).outcomes() as all_:
            begun = trio.current_time()
            return [outcome async for outcome in all_], trio.current_time() - begun

    with nginx(text, root=tmp_path) as server:
        pages, seconds = trio.run(crawl, server.url() + "/")
    assert [page.status for page in pages] == [200] * 300
    assert seconds >= 299 / 50
    # 10 seconds on a machine that does nothing else.
    assert seconds <= 20
    assert any(entry.status == status for entry in server.log())
