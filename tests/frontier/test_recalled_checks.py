"""Checks that an earlier walk made not long ago are recalled, and not made again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trio

from trio_crawler import (
    Checked,
    Checks,
    Crawler,
    History,
    Limits,
    Outcome,
    Page,
    Politeness,
    Response,
    SqliteFrontier,
)
from trio_crawler.arguments import ArgumentError
from trio_crawler.check.link_check import LinkCheck
from trio_crawler.model import Answer, Job, Purpose
from trio_crawler.testing import Site, Web, html, redirect

HOME = "http://site.test/"
OUT = "http://out.test/"
DAY = 86_400
YESTERDAY = Checks(delay=0, max_age=DAY)


class Walks:
    """Walk after walk over a web, into one directory."""

    def __init__(self, directory: Path, site: Site) -> None:
        self.directory = directory
        self.web = Web(site)
        self.walks = 0

    async def walk(self, checks: Checks = YESTERDAY, last: int = 0, **about: Any) -> list[Outcome]:
        """Walk once; stop after so many outcomes, if any."""
        self.web.hits.clear()
        found: list[Outcome] = []
        async with SqliteFrontier(self.directory, refresh=bool(self.walks)) as frontier:
            crawler = Crawler([HOME], fetch=self.web, checks=checks, frontier=frontier, **about)
            async with crawler.outcomes() as outcomes:
                async for outcome in outcomes:
                    found.append(outcome)
                    if len(found) == last:
                        crawler.stop()
        totals = crawler.statistics()
        ended = totals.pages + totals.redirects + totals.failures + totals.skipped + totals.checked
        assert totals.admitted == ended + totals.waiting
        self.walks += 1
        return found

    @property
    def asked(self) -> set[str]:
        """The URLs outside the site that the last walk asked for."""
        return {url for url in self.web.hits if url.startswith(OUT)}


def checks_of(outcomes: list[Outcome]) -> dict[str, Checked]:
    return {each.url: each for each in outcomes if isinstance(each, Checked)}


@pytest.fixture
def walks(autojump_clock: Any, tmp_path: Path) -> Walks:
    site: Site = {
        "/": html(f"{OUT}fine", f"{OUT}gone", f"{OUT}moved", f"{OUT}lost", f"{OUT}read#place"),
        f"{OUT}fine": html(),
        f"{OUT}moved": redirect(f"{OUT}there"),
        f"{OUT}there": html(),
        f"{OUT}lost": redirect(f"{OUT}nowhere"),
        f"{OUT}read": Response(200, html().headers, b"<p id=place>"),
    }
    return Walks(tmp_path, site)


async def test_only_what_was_no_fine_end_is_asked_for_again(walks):
    before = checks_of(await walks.walk())
    with trio.fail_after(60):
        after = checks_of(await walks.walk())
    assert walks.asked == {f"{OUT}gone", f"{OUT}lost", f"{OUT}nowhere"}
    assert {url: each.status for url, each in after.items()} == {
        url: each.status for url, each in before.items()
    }
    recalled = {url for url, each in after.items() if not each.tries}
    assert recalled == {f"{OUT}{name}" for name in ("fine", "moved", "there", "read")}
    assert after[f"{OUT}moved"].target == f"{OUT}there"
    assert after[f"{OUT}read"].targets == before[f"{OUT}read"].targets
    assert len(after[f"{OUT}read"].targets or ()) == 1


async def test_what_is_recalled_was_not_asked_for_so_a_third_walk_asks_by_the_first(walks):
    await walks.walk()
    await walks.walk()
    with History(walks.directory) as history:
        assert sum(not each.tries for each in checks_of(list(history.outcomes())).values()) == 4
    await walks.walk()
    assert f"{OUT}fine" not in walks.asked
    await walks.walk(Checks(delay=0, max_age=1e-9))
    assert f"{OUT}fine" in walks.asked


async def test_without_a_max_age_all_is_asked_for_again(walks):
    await walks.walk()
    first = walks.asked
    await walks.walk(Checks(delay=0))
    assert walks.asked == first


async def test_findings_are_the_same_with_recalled_checks(walks):
    def findings(outcomes: list[Outcome]) -> set[tuple[str, str, str]]:
        check = LinkCheck()
        for outcome in outcomes:
            check.add(outcome)
        found = {(each.url, each.code, each.fragment) for each in check.findings()}
        check.close()
        return found

    first = findings(await walks.walk())
    assert {code for _, code, _ in first} == {"404"}
    assert findings(await walks.walk()) == first


async def test_a_url_whose_places_are_unknown_is_asked_for_when_a_link_names_one(walks):
    await walks.walk(Checks(delay=0, fragments=False))
    again = checks_of(await walks.walk())
    assert f"{OUT}read" in walks.asked
    assert f"{OUT}fine" not in walks.asked
    assert len(again[f"{OUT}read"].targets or ()) == 1


async def test_a_recalled_check_waits_for_no_turn_of_its_host(autojump_clock, tmp_path):
    outside = [f"{OUT}{number}" for number in range(20)]
    walks = Walks(tmp_path, {"/": html(*outside), **dict.fromkeys(outside, html())})
    slow = Checks(delay=100, max_age=DAY)
    await walks.walk(slow)
    began = trio.current_time()
    with trio.fail_after(3_600):
        assert len(await walks.walk(slow)) == 21
    assert trio.current_time() - began < 50


async def test_a_walk_that_is_stopped_recalls_the_rest_when_it_goes_on(walks):
    await walks.walk()
    part = await walks.walk(last=1, workers=1)
    with trio.fail_after(60):
        rest = await walks.walk()
    assert walks.asked <= {f"{OUT}gone", f"{OUT}lost", f"{OUT}nowhere"}
    with History(walks.directory) as history:
        assert history.walks == 2
        stored = list(history.outcomes())
    assert {each.url for each in part + rest} == {each.url for each in stored}
    assert len(stored) == len(part) + len(rest) == 8


async def test_what_is_inside_now_is_crawled_and_not_recalled(walks):
    await walks.walk(limits=Limits(max_depth=0))
    found = await walks.walk(scope=lambda job: True)
    assert checks_of(found) == {}
    assert {each.url for each in found if isinstance(each, Page)} >= {f"{OUT}fine", f"{OUT}read"}


async def test_a_max_age_needs_a_directory_and_external_checks(autojump_clock):
    crawler = Crawler([HOME], fetch=Web({"/": html()}), checks=YESTERDAY)
    with pytest.raises(ArgumentError, match="max_age needs a directory"):
        await crawler.crawl()
    with pytest.raises(ArgumentError, match="max_age needs external=True"):
        Checks(external=False, max_age=1)
    with pytest.raises(ValueError, match="max_age must be 0 or more"):
        Checks(max_age=-1)


async def test_a_page_that_has_not_changed_has_its_links_checked_again(autojump_clock, tmp_path):
    asked: list[Job] = []

    async def ask(job: Job) -> Answer:
        asked.append(job)
        if job.url != HOME:
            return html() if job.url == f"{OUT}a" else Response(404)
        if job.validator is not None:
            return Response(304)
        page = html(f"{OUT}a#x", f"{OUT}b")
        page.headers["ETag"] = "1"
        return page

    walks = Walks(tmp_path, {})
    walks.web = ask  # type: ignore[assignment]
    ask.hits = {}  # type: ignore[attr-defined]
    first = await walks.walk(Checks(delay=0))
    asked.clear()
    second = await walks.walk(Checks(delay=0))
    assert [each.status for each in second if isinstance(each, Page)] == [304]
    one, two = ({each.url: each for each in outcomes} for outcomes in (first, second))
    assert one.keys() == two.keys() == {HOME, f"{OUT}a", f"{OUT}b"}
    assert one[HOME].found == two[HOME].found != ()  # type: ignore[union-attr]
    assert two[HOME].targets == frozenset()  # type: ignore[union-attr]
    # The fragment is still wanted.
    assert Purpose.FRAGMENTS in {job.purpose for job in asked if job.url == f"{OUT}a"}


async def test_the_checks_of_a_crawled_host_keep_its_robots_txt_when_a_crawl_goes_on(
    autojump_clock, tmp_path
):
    rules = Response(200, body=b"User-agent: *\nDisallow: /deep/no")
    site: Site = {
        "/robots.txt": rules,
        "/": html("/a"),
        "/a": html(*(f"/deep/{name}" for name in ("1", "2", "no"))),
        **dict.fromkeys(("/deep/1", "/deep/2", "/deep/no"), html()),
    }
    walks = Walks(tmp_path, site)
    polite = {"limits": Limits(max_depth=1), "politeness": Politeness(per_host=1)}
    checks = Checks(delay=0)
    await walks.walk(checks, last=2, workers=1, **polite)
    walks.walks = 0
    rest = checks_of(await walks.walk(checks, **polite))
    assert rest[f"{HOME}deep/no"].reason == "robots"
    assert walks.web.hits[f"{HOME}deep/no"] == 0
