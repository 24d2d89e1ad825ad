"""Sites on which a slip of the crawler is seen: each function crawls, and says what came of it."""

from __future__ import annotations

import asyncio
import warnings
from dataclasses import dataclass, replace

from errata.ported import Crawler, Printed
from sites import plain
from sites.serving import NOT_THERE, Answer, Answerer, Site, page
from virtual import Stuck, run_asyncio, visitor


@dataclass(frozen=True)
class Seen:
    ended: str
    site: Site
    crawler: Crawler

    def __str__(self) -> str:
        return f"{self.ended}; {len(self.site.hits)} paths asked for"


def crawled(answer: Answerer, printed: Printed, max_redirect: int = 10) -> Seen:
    """Crawl a site in virtual time, and say how that ended."""
    client, site = visitor(answer)
    crawler = Crawler(client, site.url, max_redirect, printed)

    async def crawl() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)
        async with client:
            await crawler.crawl()

    try:
        run_asyncio(crawl)
    except Stuck:
        return Seen("waits for ever", site, crawler)
    except ExceptionGroup as group:
        failures = sorted({type(each).__name__ for each in group.exceptions})
        return Seen(f"raises {', '.join(failures)}", site, crawler)
    return Seen("ends", site, crawler)


def redirecting(**locations: str) -> Answerer:
    """Return a site whose root links to redirects; an empty location is none at all."""

    def answer(path: str) -> Answer:
        location = locations.get(path[1:])
        if location is None:
            return (
                page(*(f"/{name}" for name in locations)) if path == "/" else page()
            )
        headers = {"Location": location} if location else {}
        return Answer(status=302, headers=headers)

    return answer


def unawaited_put(printed: bool) -> str:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        seen = crawled(plain.answer, Printed(unawaited_put=printed))
        said = [str(each.message) for each in caught]
    return "; ".join([str(seen), *said])


def root_unseen(printed: bool) -> str:
    seen = crawled(plain.answer, Printed(root_unseen=printed))
    return f"{seen.ended}; the root asked for {seen.site.hits['/']}x"


def raw_location(printed: bool) -> str:
    relative = crawled(redirecting(a="b"), Printed(raw_location=printed))
    missing = crawled(redirecting(a=""), Printed(raw_location=printed))
    dead = "a worker fails" if relative.ended != "ends" else relative.ended
    return f"relative: {dead}; no Location: {missing.ended}"


def hanging_up(path: str) -> Answer:
    return Answer(hang_up=True) if path == "/5" else plain.answer(path)


def uncounted_failure(printed: bool) -> str:
    switches = Printed(uncounted_failure=printed, unwatched_workers=True)
    return str(crawled(hanging_up, switches))


def long_way(path: str) -> Answer:
    """Two redirects from the root to /r3; a slow page links to the second of them."""
    moved = {"/r1": "/r2", "/r2": "/r3", "/s1": "/s2", "/s2": "/s3"}
    if path in moved:
        return Answer(status=302, headers={"Location": moved[path]})
    slow = replace(page("/r2"), wait=1.0)
    return {"/": page("/r1", "/s1", "/slow"), "/slow": slow}.get(path, NOT_THERE)


def spent_in_silence(printed: bool) -> str:
    seen = crawled(long_way, Printed(spent_in_silence=printed), max_redirect=1)
    linked = "asked for" if seen.site.hits["/r3"] else "never asked for"
    known = sorted(url.removeprefix("http://site") for url in seen.crawler.left())
    return f"{seen.ended}; /r3, one redirect from a link: {linked}; on record as left: {known}"


def yield_from_release(printed: bool) -> str:
    return str(crawled(plain.answer, Printed(yield_from_release=printed)))


def lying(path: str) -> Answer:
    return Answer(b"\xff\xfe") if path == "/5" else plain.answer(path)


def with_video(path: str) -> Answer:
    video = Answer(b"\0" * 3_000_000, headers={"Content-Type": "video/mp4"})
    return {"/": page("/video"), "/video": video}.get(path, NOT_THERE)


def unchecked_pages(printed: bool) -> str:
    lied = crawled(lying, Printed(unchecked_pages=printed))
    video = crawled(with_video, Printed(unchecked_pages=printed)).crawler.read
    return (
        f"charset that lies: {lied}; of a video of 3,000,000 bytes read: "
        f"{'all' if video >= 3_000_000 else 'none' if video < 1000 else video}"
    )


def all_hanging_up(path: str) -> Answer:
    return plain.answer(path) if path in ("/", "/1", "/2") else Answer(hang_up=True)


def unwatched_workers(printed: bool) -> str:
    one = crawled(hanging_up, Printed(unwatched_workers=printed))
    many = crawled(all_hanging_up, Printed(unwatched_workers=printed))
    return f"one bad page: {one.ended}; more bad pages than workers: {many.ended}"
