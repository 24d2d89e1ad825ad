"""Small crawls that each show what one line is for: they print what a reader would see."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping

import trio
import trio.testing
from trio_crawler import Crawler, Job, Limits, Page, Politeness, Reason, Response
from trio_crawler.model import Answer
from trio_crawler.testing import Web, fault, html, redirect

DAY = 86_400.0
SMALL = {
    "/": html("/a", "/b", "/gone"),
    "/a": html("/", "/b"),
    "/b": redirect("/c"),
    "/c": html("/a"),
}
WIDE = {
    "/": html(*(f"/{n}" for n in range(30))),
    **{f"/{n}": html() for n in range(30)},
}


class Enough(Exception):
    """The crawl has asked for so much that it will never end."""


class Guarded(Web):
    """Raise Enough at the tenth request for one URL."""

    async def __call__(self, job: Job) -> Answer:
        if self.hits[job.url] > 9:
            raise Enough("a URL is asked for the tenth time")
        return await super().__call__(job)


def virtual(main: Callable[[], Awaitable[None]]) -> None:
    """Run in virtual time; print what was raised, and whether it would go on for ever."""

    async def call() -> None:
        with trio.move_on_after(2 * DAY) as days:
            await main()
        if days.cancelled_caught:
            print("Stuck: every task waits for ever")

    try:
        trio.run(call, clock=trio.testing.MockClock(autojump_threshold=0))
    except Exception as error:
        print(raised(error))


def raised(error: BaseException) -> str:
    """Write an exception on one line, of a group the first one it holds."""
    if isinstance(error, BaseExceptionGroup):
        return f"{type(error).__name__}: {raised(error.exceptions[0])}"
    told = [] if isinstance(error, Enough) else getattr(error, "__notes__", [])
    notes = "".join(f" ({note})" for note in told)
    return f"{type(error).__name__}: {error}{notes}"


def path(url: str) -> str:
    return url.removeprefix("http://site.test")


async def told(crawler: Crawler) -> None:
    """Crawl, and print what came of each URL."""
    lines: list[str] = []
    with trio.move_on_after(DAY) as day:
        async with crawler.outcomes() as outcomes:
            async for outcome in outcomes:
                kind = type(outcome).__name__
                status = getattr(outcome, "status", getattr(outcome, "reason", ""))
                lines.append(f"{path(outcome.url)}: {kind}, {status}")
    print(*sorted(lines), sep="\n")
    if day.cancelled_caught:
        print("Stuck: every task waits for ever")


def small() -> None:
    """Crawl four pages that link to each other, and one that is gone."""
    web = Guarded(SMALL, delay=1)

    async def main() -> None:
        await told(Crawler([web.url], fetch=web))
        twice = {path(url): n for url, n in sorted(web.hits.items()) if n > 1}
        print("asked for more than once:", twice or "none")

    virtual(main)


def seeded() -> None:
    """Crawl five pages, and say only how it ended."""
    web = Guarded(SMALL, delay=1)

    async def main() -> None:
        count, ended = 0, "in order"
        try:
            async with Crawler([web.url], fetch=web).outcomes() as outcomes:
                async for _ in outcomes:
                    count += 1
        except (ExceptionGroup, RuntimeError):
            ended = "with an error"
        print("the crawl ends", ended)
        print("URLs crawled beside the seed:", max(count - 1, 0))

    virtual(main)


def leaves() -> None:
    """Leave the block after the first of 31 pages."""
    web = Web(WIDE, delay=1)

    async def main() -> None:
        async with Crawler([web.url], fetch=web).outcomes() as outcomes:
            await anext(outcomes)
        print(f"left after {trio.current_time():g} s")
        before = web.hits.total()
        await trio.sleep(60)
        print("requests in the next minute:", web.hits.total() - before)

    virtual(main)


def reader_raises() -> None:
    """Let the reader's own code raise in the middle."""
    web = Web(WIDE, delay=1)

    async def main() -> None:
        async with Crawler([web.url], fetch=web).outcomes() as outcomes:
            async for outcome in outcomes:
                raise ValueError(f"I cannot use {path(outcome.url)}")

    virtual(main)


def scope_bug() -> None:
    """Crawl with a scope that has a bug."""
    web = Web(SMALL, delay=1)

    def scope(job: Job) -> bool:
        return {"/": True, "/a": True, "/b": True, "/gone": True}[path(job.url)]

    async def main() -> None:
        await Crawler([web.url], scope=scope, fetch=web).crawl()

    virtual(main)


def slow_host() -> None:
    """Crawl four hosts that say "in a minute" to everything, and one that answers."""
    busy = Response(503, html().headers)
    busy.headers["retry-after"] = "60"
    site = {f"http://busy{n}.test/{m}": busy for n in range(4) for m in "ab"}
    site |= {f"http://good.test/{n}": html(title=str(n)) for n in range(8)}
    web = Web(site, delay=1)

    async def main() -> None:
        crawler = Crawler(site, fetch=web, workers=4)
        async with crawler.outcomes() as outcomes:
            async for outcome in outcomes:
                if "good" in outcome.url:
                    last = trio.current_time()
        when = "within ten seconds" if last < 10 else "after more than a minute"
        print("the good host is done", when)

    virtual(main)


def retry_after() -> None:
    """Ask a host of five pages; the first says "in two minutes"."""
    busy = Response(429, html().headers)
    busy.headers["retry-after"] = "120"
    web = timed({"/": busy, **{f"/{n}": html() for n in range(4)}})

    async def main() -> None:
        seeds = [web.url, *(f"{web.url}{n}" for n in range(4))]
        await Crawler(seeds, fetch=web, workers=1).crawl()
        waited = web.starts[1] - web.starts[0]
        when = "two minutes later" if waited >= 120 else "within a second"
        print("the host is asked again", when)

    virtual(main)


class Timed(Web):
    starts: list[float]

    async def __call__(self, job: Job) -> Answer:
        if "robots" not in job.url:
            self.starts.append(trio.current_time())
        return await super().__call__(job)


def timed(site: Mapping[str, Answer]) -> Timed:
    web = Timed(site)
    web.starts = []
    return web


def again() -> None:
    """Ask for a page whose connection is always cut, beside a good one."""
    web = Guarded({"/": html("/cut"), "/cut": fault(Reason.INCOMPLETE)})

    async def main() -> None:
        began = trio.current_time()
        await told(Crawler([web.url], fetch=web))
        tries = web.hits[f"{web.url}cut"]
        waited = trio.current_time() - began > 1
        print("tries:", tries)
        print(
            "between the tries:",
            "more than a second" if waited else "no time at all",
        )

    virtual(main)


def deadline() -> None:
    """Give a crawl a minute, at a host that wants to be asked in five."""
    busy = Response(503, html().headers)
    busy.headers["retry-after"] = "300"
    web = Web(
        {"/": html("/busy", "/other"), "/busy": busy, "/other": html()}, delay=1
    )

    async def main() -> None:
        seeds = [f"{web.url}busy", web.url]
        limits = Limits(max_seconds=60)
        await Crawler(seeds, fetch=web, limits=limits, workers=1).crawl()
        print(f"over after {trio.current_time():g} s")

    virtual(main)


def slow_reader() -> None:
    """Read one page a minute, of pages that take a second, with two workers."""
    web = Web(WIDE, delay=1)

    async def main() -> None:
        most = read = 0
        async with Crawler([web.url], fetch=web, workers=2).outcomes() as outcomes:
            async for _ in outcomes:
                read += 1
                await trio.sleep(60)
                most = max(most, web.hits.total() - read)
        print("fetched before they were read:", most, "of 31 pages, at most")

    virtual(main)


def budget() -> None:
    """Crawl with a budget of three pages."""
    web = Web(WIDE, delay=1)

    async def main() -> None:
        crawler = Crawler([web.url], fetch=web, limits=Limits(max_pages=3))
        await crawler.crawl()
        asked = web.hits.total()
        print("asked for", "more than 3" if asked > 3 else asked, "pages")

    virtual(main)


def depth() -> None:
    """Crawl three links deep, where the short way to a page is the slow one."""
    site = {
        "/": html("/quick", "/slow"),
        "/quick": html("/quicker"),
        "/quicker": html("/meeting"),
        "/slow": html("/meeting"),
        "/meeting": html("/last"),
        "/last": html(),
    }
    web = Web(site, delay=lambda job: 60 if job.url.endswith("slow") else 1)

    async def main() -> None:
        crawler = Crawler([web.url], fetch=web, limits=Limits(max_depth=3))
        async with crawler.outcomes() as outcomes:
            depths = {path(each.url): each.depth async for each in outcomes}
        print("/meeting is", depths["/meeting"], "links from the seed")
        print("/last is", "found" if "/last" in depths else "too deep")

    virtual(main)


def redirects() -> None:
    """Follow one redirect at most; a page links to /r2, to which one of them leads, too."""
    site = {
        "/": html("/r1", "/p"),
        "/r1": redirect("/r2"),
        "/r2": redirect("/r3"),
        "/r3": html(),
        "/p": html("/r2"),
    }
    web = Web(site, delay=lambda job: 5 if job.url.endswith("p") else 1)

    async def main() -> None:
        await told(Crawler([web.url], fetch=web, limits=Limits(max_redirects=1)))

    virtual(main)


def gentle() -> None:
    """Crawl one host with ten workers, four of them at a time."""
    web = Web(WIDE, delay=1)

    async def main() -> None:
        await Crawler(
            [web.url], fetch=web, politeness=Politeness(per_host=4)
        ).crawl()
        print("at most", web.peak, "requests at a time")

    virtual(main)


def stops() -> None:
    """Stop after the first page, while one worker still reads another that links to 30."""
    web = Web(
        WIDE | {"/first": html()}, delay=lambda job: 1 if "first" in job.url else 5
    )

    async def main() -> None:
        crawler = Crawler([web.url, f"{web.url}first"], fetch=web)
        count: Counter[str] = Counter()
        async with crawler.outcomes() as outcomes:
            async for outcome in outcomes:
                crawler.stop()
                count[type(outcome).__name__] += 1
                if isinstance(outcome, Page):
                    count["rejected link"] += len(outcome.rejected)
        print(*(f"{kind}: {n}" for kind, n in sorted(count.items())), sep="\n")

    virtual(main)


if __name__ == "__main__":
    globals()[sys.argv[1]]()
