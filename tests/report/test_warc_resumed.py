"""An archive beside a crawl directory: one file over all runs, whole at every moment between."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from report.archives import records as archived

from trio_crawler import SqliteFrontier
from trio_crawler.crawler import Crawler
from trio_crawler.model import Page, Response
from trio_crawler.report.warc_archive import Warc
from trio_crawler.testing import Web, html, redirect, robots

pytestmark = pytest.mark.process

pytest.importorskip("warcio")
fastwarc = pytest.importorskip("fastwarc.warc")

ANSWERS = ("response", "revisit")
PAGES = 24
SITE: dict[str, Any] = {
    "/robots.txt": robots("User-agent: *", "Disallow: /closed"),
    "/": html(*(f"/{number}" for number in range(PAGES))),
    **{f"/{number}": html("/", f"/{number + PAGES}") for number in range(PAGES)},
    **{f"/{number}": redirect("/") for number in range(PAGES, 2 * PAGES)},
}


async def run(directory: Path, web: Web, most: int | None = None) -> int:
    """Crawl into a directory, and leave after so many outcomes."""
    warc = Warc(seeds=[web.url])
    count = 0
    async with SqliteFrontier(directory) as frontier:
        archive = frontier.stream(directory / "site.warc.gz", warc.records, warc.head)
        crawler = Crawler([web.url], fetch=warc.recording(web), frontier=frontier)
        async with crawler.outcomes() as outcomes:
            async for outcome in outcomes:
                assert not isinstance(outcome, Page) or outcome.ok
                archive.add(outcome)
                count += 1
                if count == most:
                    break
    return count


def checked(path: Path) -> list[Any]:
    """Read an archive by fastwarc; warcio finds no fault with it."""
    from warcio.checker import Checker

    assert Checker(SimpleNamespace(inputs=[str(path)], verbose=False)).process_all() == 0
    with path.open("rb") as file:
        return [
            (
                record.headers["WARC-Type"],
                record.headers.get("WARC-Target-URI"),
                record.reader.read(),
            )
            for record in fastwarc.ArchiveIterator(file, parse_http=True)
        ]


@pytest.mark.parametrize("most", [2, 3, 8, 30])
async def test_runs_that_are_left_make_one_archive_together(
    tmp_path: Path, autojump_clock: Any, most: int
) -> None:
    web = Web(SITE, delay=0.01)
    path = tmp_path / "site.warc.gz"
    while await run(tmp_path, web, most) == most:
        checked(path)
    found = checked(path)
    assert [kind for kind, _, _ in found].count("warcinfo") == 1
    answers = Counter(url for kind, url, _ in found if kind in ANSWERS)
    expected = {web.url.rstrip("/") + target for target in SITE}
    assert {url for url in answers if url} == expected
    robots_url = web.url + "robots.txt"
    assert all(count == 1 for url, count in answers.items() if url != robots_url)
    for kind, url, body in found:
        if kind == "response":
            answer = SITE["/" + url.removeprefix(web.url)]
            assert isinstance(answer, Response)
            assert body == answer.body


async def test_the_304s_of_refreshes_have_the_digest_and_the_date_of_the_body_of_the_first_walk(
    tmp_path: Path, autojump_clock: Any
) -> None:
    tag = httpx.Headers({"content-type": "text/html", "etag": '"1"'})
    body = Response(200, tag, b"same")
    web, warc, data = (
        Web({"/": lambda job: Response(304, tag) if job.validator else body}),
        Warc(),
        b"",
    )
    for _ in range(3):
        async with SqliteFrontier(tmp_path, refresh=True) as frontier:
            crawler = Crawler([web.url], fetch=warc.recording(web), frontier=frontier)
            async with crawler.outcomes() as outcomes:
                async for outcome in outcomes:
                    data += warc.records(outcome)
    found = [each for each in archived(data) if each.url == web.url and each.kind in ANSWERS]
    assert [each.kind for each in found] == ["response", "revisit", "revisit"]
    first, second, third = (each.fields for each in found)
    assert second["WARC-Payload-Digest"] == first["WARC-Payload-Digest"]
    assert second["WARC-Refers-To-Date"] < second["WARC-Date"]
    same = ("WARC-Payload-Digest", "WARC-Refers-To-Date", "WARC-Refers-To-Target-URI")
    assert [third[name] for name in same] == [second[name] for name in same]
