"""Applications with endless URLs: all content is found within a budget, in virtual time."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from sites.applications import Crawled, crawled
from sites.raw import raw_server
from sites.shop import HOME, Blog, Canned, FoldedList, Shop, served

from trio_crawler import HttpFetch, Page

pytestmark = pytest.mark.slow

BUDGET = 1_200
TRAPS = ("filters", "calendar", "login", "print", "language", "delete")


async def of_shop(shop: Shop, most: int = BUDGET) -> Crawled:
    return await crawled(HOME, most=most, fetch=Canned(shop))


def missing(shop: Shop, crawl: Crawled) -> set[int]:
    return {article.number for article in shop.articles} - shop.found(crawl.outcomes)


@pytest.mark.parametrize(
    ("features", "page_size"),
    [((), 10), ((), 20), (("login", "print", "language"), 10), (TRAPS, 10), (TRAPS, 20)],
    ids=lambda value: value if isinstance(value, int) else "+".join(value) or "next links only",
)
async def test_400_articles_are_found_within_1200_requests(
    features: Iterable[str], page_size: int, autojump_clock: object
) -> None:
    shop = Shop(page_size=page_size, features=features)
    crawl = await of_shop(shop)
    assert not missing(shop, crawl)


async def test_a_crawl_of_a_shop_with_every_trap_ends_by_itself(autojump_clock: object) -> None:
    shop = Shop()
    crawl = await of_shop(shop, most=5_000)
    assert crawl.ended
    assert not missing(shop, crawl)


async def test_a_shop_that_answers_over_sockets_has_the_same_articles() -> None:
    shop = Shop(60, features=())
    async with raw_server(served(shop)) as server:
        crawl = await crawled(server.url, most=BUDGET)
    assert crawl.ended
    assert not missing(shop, crawl)
    assert len(crawl.pages) == 60 + 3 + 2


async def test_200_posts_behind_older_posts_are_found(autojump_clock: object) -> None:
    blog = Blog()
    crawl = await crawled(HOME, most=BUDGET, fetch=Canned(blog))
    assert blog.found(crawl.outcomes) == blog.posts.keys()
    # 50 lists, of which the first is the home page.
    assert crawl.ended
    assert crawl.requests == 200 + 50


async def test_lists_that_name_the_first_page_as_canonical_lose_no_article(
    autojump_clock: object,
) -> None:
    site = FoldedList()
    fetch = Canned(site)
    crawl = await crawled(HOME, most=BUDGET, fetch=fetch, fold_canonical=True)
    assert site.found(crawl.outcomes) == site.articles.keys()
    assert crawl.ended


async def test_a_crawl_with_a_cookie_stays_logged_in_and_deletes_nothing() -> None:
    shop = Shop(20, features=("delete",), members=30)
    async with (
        raw_server(served(shop)) as server,
        HttpFetch(seeds=[server.url], headers={"Cookie": "session=member"}) as fetch,
    ):
        crawl = await crawled(f"{server.url}members/", most=BUDGET, fetch=fetch)
    assert shop.session
    assert shop.deleted == []
    assert len(shop.found_members(crawl.pages)) == 31
    assert not any("/accounts/" in each.url for each in crawl.outcomes if isinstance(each, Page))
