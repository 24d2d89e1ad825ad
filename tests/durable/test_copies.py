"""Copies: two pages that are the same, of which only one is written when the crawl ends."""

from __future__ import annotations

from pathlib import Path

import trio
from durable import compare

from trio_crawler import Crawler, Job, Outcome, Page, Response, SqliteFrontier
from trio_crawler.testing import Web, html

# More links than are judged in one turn, so that the copy may overtake the first.
ONLY = [f"/only/{number}" for number in range(60)]
SITE = {
    "/": html("/one/x", "/one/y"),
    "/one/x": html(*ONLY),
    "/one/y": html(*ONLY),
    **{path: html(title=path) for path in ONLY},
}


async def ended_between(home: Path) -> bool:
    """Crawl until a copy is settled and its first is not; return whether that came about."""

    async def web(job: Job) -> Response:
        # Not `Web`, whose answers are so far apart that none overtakes another.
        await trio.lowlevel.checkpoint()
        return SITE.get(job.url.removeprefix("http://site.test"), Response(404))

    copy = None
    async with SqliteFrontier(home) as frontier:
        crawler = Crawler(["http://site.test/"], frontier=frontier, fetch=web)
        async with crawler.outcomes() as outcomes:
            async for outcome in outcomes:
                if copy is not None and outcome.url == copy.duplicate_of:
                    return True
                if "/one/" in outcome.url:
                    copy = outcome if isinstance(outcome, Page) else None
                    if copy is None or not copy.duplicate_of:
                        return False
    return False


async def completed(home: Path) -> list[Outcome]:
    async with SqliteFrontier(home) as frontier:
        await Crawler(["http://site.test/"], frontier=frontier, fetch=Web(SITE)).crawl()
    return compare.stored(home)


async def test_what_only_copies_link_to_is_not_lost_when_the_first_is_fetched_again(
    memory, autojump_clock
):
    for number in range(100):
        home = memory / f"{number}"
        if await ended_between(home):
            break
    else:
        raise AssertionError("the copy never came first")
    outcomes = await completed(home)
    assert {outcome.url for outcome in outcomes} == {f"http://site.test{path}" for path in SITE}
    copies = [
        outcome for outcome in outcomes if isinstance(outcome, Page) and outcome.duplicate_of
    ]
    assert len(copies) == 1


async def test_a_copy_that_comes_later_is_one_of_the_first_and_not_of_a_copy(
    memory, autojump_clock
):
    site = {
        "/": html("/one/x", "/one/y", "/wait"),
        "/one/x": html("/"),
        "/one/y": html("/"),
        "/one/z": html("/"),
        "/wait": html("/one/z"),
    }
    # What is admitted first comes second.
    web = Web(site, delay=lambda job: {"/one/x": 2, "/wait": 3}.get(job.url[16:], 1))
    async with SqliteFrontier(memory / "crawl") as frontier:
        crawler = Crawler([web.url], frontier=frontier, fetch=web)
        async with crawler.outcomes() as outcomes:
            async for outcome in outcomes:
                if outcome.url.endswith("/wait"):
                    break
    async with SqliteFrontier(memory / "crawl") as frontier:
        await Crawler([web.url], frontier=frontier, fetch=web).crawl()
    pages = {page.url[16:]: page for page in compare.stored(memory / "crawl")}
    firsts = {path: getattr(page, "duplicate_of", None) for path, page in pages.items()}
    first = "http://site.test/one/y"
    assert firsts == {
        "/": None,
        "/wait": None,
        "/one/x": first,
        "/one/y": None,
        "/one/z": first,
    }
