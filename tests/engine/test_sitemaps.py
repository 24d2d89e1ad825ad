"""The handler of sitemaps: how many of them it fetches."""

from __future__ import annotations

from trio_crawler import MemoryFrontier, Reason
from trio_crawler.engine.links import Rules
from trio_crawler.engine.sitemaps import SitemapHandler
from trio_crawler.frontier import Plan

HOME, OTHER = "http://site.test/", "http://other.test/"


async def handler_of(max_sitemaps: int) -> SitemapHandler:
    plan, frontier = Plan([HOME, OTHER]), MemoryFrontier()
    await frontier.open(plan)
    return SitemapHandler(plan, frontier, Rules(plan, frontier), max_sitemaps=max_sitemaps)


async def test_of_the_sitemaps_of_one_host_only_so_many_are_fetched():
    handler = await handler_of(5)
    for home in (HOME, OTHER):
        maps = [f"{home}{n}.xml" for n in range(20)]
        jobs, _ = handler.named(maps, home + "robots.txt")
        assert [job.url for job in jobs] == maps[:5]


async def test_only_so_many_of_those_that_are_not_fetched_have_a_record():
    handler = await handler_of(5)
    maps = [f"{HOME}{n}.xml" for n in range(20)]
    _, rejected = handler.named(maps, HOME + "robots.txt")
    assert [record.url for record in rejected] == maps[5:10]
    assert {record.flaws for record in rejected} == {(Reason.HOST_BUDGET,)}
    assert handler.records == list(rejected)


async def test_a_robots_txt_that_is_read_again_does_not_use_up_the_sitemaps_of_its_host():
    handler = await handler_of(2)
    maps = [HOME + "1.xml", HOME + "2.xml"]
    for _ in range(4):
        jobs, rejected = handler.named(maps, HOME + "robots.txt")
        assert ([job.url for job in jobs], rejected) == (maps, ())
