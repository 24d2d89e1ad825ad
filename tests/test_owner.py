"""What a block raises is never lost, and one task at a time reads a crawl."""

from __future__ import annotations

import shutil

import pytest
import trio
from cases import for_each

from trio_crawler import Crawler, HttpFetch, MemoryFrontier, SqliteFrontier, StoreError, same_site
from trio_crawler.report import Warc
from trio_crawler.testing import Web, html

SITE = {"/": html("/a", "/b", "/c"), "/a": html(), "/b": html(), "/c": html()}


async def test_an_error_of_the_block_outlives_the_cancellation_around_it(autojump_clock):
    web = Web(SITE, delay=1)

    async def block():
        async with Crawler([web.url], fetch=web).outcomes() as outcomes:
            async for _ in outcomes:
                try:
                    await trio.sleep(60)
                finally:
                    raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"), trio.move_on_after(5):
        await block()


async def test_an_error_of_the_block_comes_out_beside_a_bug(autojump_clock):
    web = Web(SITE, delay=1)

    async def fetch(job):
        if job.url.endswith("/b"):
            await trio.sleep(5)
            raise LookupError("a bug")
        return await web(job)

    async def block():
        async with Crawler([web.url], fetch=fetch).outcomes() as outcomes:
            async for outcome in outcomes:
                try:
                    await trio.sleep(0 if outcome.url == web.url else 60)
                finally:
                    if outcome.url != web.url:
                        raise SystemExit("of the block")

    with pytest.raises(BaseExceptionGroup) as caught:
        await block()
    assert caught.value.subgroup(LookupError)
    assert caught.value.subgroup(SystemExit)


async def test_two_loops_over_one_crawl_are_refused(autojump_clock):
    web = Web(SITE, delay=1)

    async def read(outcomes):
        async for _ in outcomes:
            await trio.sleep(0.3)

    async def block():
        crawler = Crawler([web.url], fetch=web)
        async with crawler.outcomes() as outcomes, trio.open_nursery() as nursery:
            nursery.start_soon(read, outcomes)
            nursery.start_soon(read, outcomes)

    with trio.fail_after(100), pytest.raises(ExceptionGroup) as caught:
        await block()
    assert caught.value.subgroup(trio.BusyResourceError)


def test_a_scope_or_frontier_that_is_empty_is_used_all_the_same():
    class Seen(set):
        def __call__(self, job):
            self.add(job.url)
            return True

    class Counted(MemoryFrontier):
        def __len__(self):
            return 0

    scope, frontier = Seen(), Counted()
    crawler = Crawler(["http://site.test/"], scope=scope, frontier=frontier)
    assert crawler.plan.scope is scope
    assert crawler.frontier is frontier


async def test_a_bug_in_an_order_names_the_url(autojump_clock):
    web = Web(SITE, delay=1)

    def order(job):
        if job.url.endswith("/b"):
            raise LookupError("a bug")
        return job.depth

    with pytest.raises(LookupError) as caught:
        await Crawler([web.url], fetch=web, order=order).crawl()
    assert web.url in caught.value.__notes__[0]


async def test_ctrl_c_that_hits_a_worker_comes_out_bare(autojump_clock):
    web = Web(SITE)

    async def fetch(job):
        if job.url.endswith("/b"):
            raise KeyboardInterrupt
        return await web(job)

    with pytest.raises(KeyboardInterrupt) as caught:
        await Crawler([web.url], fetch=fetch).crawl()
    assert caught.value.__context__ is None


async def test_ctrl_c_beside_a_bug_hides_nothing(autojump_clock):
    web = Web(SITE, delay=1)

    async def fetch(job):
        if job.url.endswith("/b"):
            raise KeyboardInterrupt
        try:
            return await web(job)
        except trio.Cancelled:
            raise LookupError("a bug") from None

    with pytest.raises(BaseExceptionGroup) as caught:
        await Crawler([web.url], fetch=fetch).crawl()
    assert caught.value.subgroup(LookupError)
    assert caught.value.subgroup(KeyboardInterrupt)


async def test_ctrl_c_that_hits_several_tasks_and_the_block_comes_out_once_and_bare(
    autojump_clock,
):
    web = Web(SITE, delay=1)

    async def fetch(job):
        try:
            if job.url.endswith(("/b", "/c")):
                await trio.sleep(5 if job.url.endswith("/b") else 60)
                raise KeyboardInterrupt
            return await web(job)
        except trio.Cancelled:
            raise KeyboardInterrupt from None

    async def block():
        async with Crawler([web.url], fetch=fetch).outcomes() as outcomes:
            async for outcome in outcomes:
                try:
                    await trio.sleep(0 if outcome.url == web.url else 60)
                finally:
                    if outcome.url != web.url:
                        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        await Crawler([web.url], fetch=fetch).crawl()
    with pytest.raises(KeyboardInterrupt):
        await block()


async def test_ctrl_c_of_the_block_beside_a_bug_hides_nothing(autojump_clock):
    web = Web(SITE, delay=1)

    async def fetch(job):
        try:
            return await web(job)
        except trio.Cancelled:
            raise LookupError("a bug") from None

    async def block():
        async with Crawler([web.url], fetch=fetch).outcomes():
            await trio.sleep(0.5)
            raise KeyboardInterrupt

    with pytest.raises(BaseExceptionGroup) as caught:
        await block()
    assert caught.value.subgroup(LookupError)
    assert caught.value.subgroup(KeyboardInterrupt)


@for_each(
    "make, named",
    [
        (lambda: Crawler([b"http://a/"]), "URL"),
        (lambda: same_site("http://a/"), "seeds"),
        (lambda: same_site(["a"]), "'a'"),
        (lambda: HttpFetch(seeds=["http://a/"], auth="me:secret"), "auth"),
        (lambda: HttpFetch(seeds=["http://a/"], auth="up"), "auth"),
        (lambda: HttpFetch(seeds=["http://a/"], headers="X: y"), "headers"),
        (lambda: Warc(seeds="http://a/"), "seeds"),
    ],
)
def test_an_argument_that_cannot_be_meant_is_named(make, named):
    with pytest.raises((TypeError, ValueError), match=named):
        make()


async def test_a_memory_frontier_says_that_it_serves_one_crawl():
    web, frontier = Web({"/": html()}), MemoryFrontier()
    await Crawler([web.url], fetch=web, frontier=frontier).crawl()
    with pytest.raises(RuntimeError, match="serves one crawl"):
        await Crawler([web.url], fetch=web, frontier=frontier).crawl()


async def test_a_directory_that_is_removed_ends_the_crawl(tmp_path):
    web = Web(SITE)

    async def block():
        async with SqliteFrontier(tmp_path / "kept") as frontier:
            crawler = Crawler([web.url], fetch=web, frontier=frontier)
            async with crawler.outcomes() as outcomes:
                async for _ in outcomes:
                    shutil.rmtree(tmp_path / "kept", ignore_errors=True)

    with pytest.raises((StoreError, BaseExceptionGroup)) as caught:
        await block()
    assert "it was removed during the crawl" in repr(caught.value)


async def test_a_meaning_that_json_cannot_hold_is_refused(tmp_path):
    with pytest.raises(TypeError, match="meaning"):
        async with SqliteFrontier(tmp_path / "kept", meaning={"include": {"a", "b"}}):
            pass
