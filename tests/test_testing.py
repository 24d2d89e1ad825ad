from __future__ import annotations

import pytest
import trio

from trio_crawler import Crawler, Fault, Job, Page, Reason, Response
from trio_crawler.testing import Web, fault, html, redirect


async def test_a_web_answers_paths_whole_urls_and_functions(autojump_clock):
    web = Web(
        {"/": html("/a"), "http://other.test/": html(), "/f": lambda job: fault(detail=job.url)}
    )
    assert (await web(Job(web.url))).body == html("/a").body
    assert (await web(Job("http://other.test/"))).status == 200
    assert await web(Job(web.url + "f")) == Fault(Reason.RESET, web.url + "f")
    assert (await web(Job(web.url + "none"))).status == 404


async def test_a_web_takes_its_time_and_counts(autojump_clock):
    web = Web({"/": html()}, delay=lambda job: 3 if job.depth else 2)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(web, Job(web.url))
        nursery.start_soon(web, Job(web.url, depth=1))
        await trio.testing.wait_all_tasks_blocked()
        assert web.in_flight == 2
    assert trio.current_time() == 3
    assert (web.in_flight, web.peak, web.hits[web.url]) == (0, 2, 2)


async def test_made_pages_and_redirects_are_read_as_such(autojump_clock):
    web = Web({"/": redirect("/t", 308), "/t": html("/a?b=1&c=2", title="<T>")})
    async with Crawler([web.url], fetch=web).outcomes() as outcomes:
        found = [outcome async for outcome in outcomes]
    assert found[0].target == web.url + "t"
    assert isinstance(found[1], Page)
    assert (found[1].title, found[1].links) == ("<T>", (web.url + "a?b=1&c=2",))


@pytest.mark.parametrize("status", [200, 404, 500])
def test_a_page_can_have_any_status(status):
    assert html(status=status) == Response(status, html().headers, html().body)
