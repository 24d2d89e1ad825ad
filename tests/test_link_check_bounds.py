"""The bounds of a link check: endless chains, silent hosts, very many links, in virtual time."""

from __future__ import annotations

import math
import tracemalloc
from collections import Counter
from typing import Any

import httpx
import pytest
import trio
from cases import for_each
from sites.webs import HOME, collect

from trio_crawler import Checked, Checks, Crawler, Job, Limits, Outcome, Page, Reason, Response
from trio_crawler.check.link_check import LinkCheck
from trio_crawler.cli.main import CHECK_WORKERS
from trio_crawler.link import LinkKind
from trio_crawler.model import Answer, Fault, Phase, Purpose
from trio_crawler.testing import Web, html
from trio_crawler.testing import redirect as moved

CSS = httpx.Headers({"content-type": "text/css"})
OUT = "http://other.test/"


def document(text: str) -> Response:
    """Return a page of this markup."""
    return Response(200, httpx.Headers({"content-type": "text/html"}), text.encode())


def judged(outcomes: list[Outcome]) -> tuple[LinkCheck, list[tuple[str, str]]]:
    """Return a link check of the outcomes, and the codes and targets of its findings."""
    check = LinkCheck()
    for outcome in outcomes:
        check.add(outcome)
    found = [(each.code, each.target) for each in check.findings()]
    check.close()
    return check, found


def number_of(url: str) -> int:
    """Return the number in the last part of a URL, 0 if it has none."""
    digits = "".join(filter(str.isdigit, url.rpartition("/")[2]))
    return int(digits or 0)


async def endless(job: Job) -> Answer:
    """Answer with frames in frames, or style sheets that import others, without an end."""
    await trio.lowlevel.checkpoint()
    number = number_of(job.url) + 1
    if job.purpose is Purpose.ROBOTS:
        return Response(404)
    if "sheet" in job.url:
        return Response(200, CSS, f"@import 'sheet{number}.css'; a {{ b: {number} }}".encode())
    return document(f"<title>{number}</title><iframe src=/frame?n={number}></iframe>")


@pytest.mark.parametrize("first", ["frame?n=0", "sheet0.css"])
async def test_frames_in_frames_and_imports_without_end_are_a_trap(
    autojump_clock: Any, first: str
) -> None:
    found = await collect(Crawler([HOME + first], fetch=endless, checks=Checks()))
    assert 1_000 < len(found) < 1_100
    assert {type(outcome) for outcome in found} == {Page}
    check, faults = judged(found)
    assert faults == []
    (left,) = check.not_checked
    assert left[1] == Reason.TOO_MANY_HOPS


async def test_a_style_sheet_that_imports_itself_is_asked_for_once(autojump_clock: Any) -> None:
    web = Web(
        {
            "/": document("<link rel=stylesheet href=/a.css>"),
            "/a.css": Response(200, CSS, b"@import '/b.css';"),
            "/b.css": Response(200, CSS, b"@import '/a.css'; @import '/b.css';"),
        }
    )
    found = await collect(Crawler([HOME], fetch=web, checks=Checks()))
    assert len(found) == 3
    assert set(web.hits.values()) == {1}


async def test_the_parts_of_the_deepest_pages_are_checked(autojump_clock: Any) -> None:
    web = Web(
        {
            "/": document("<link rel=stylesheet href=/a.css><a href=/next>x</a>"),
            "/a.css": Response(200, CSS, b"@import '/b.css';"),
            "/b.css": Response(200, CSS, b"@import '/c.css';"),
        }
    )
    checks = Checks(external=False)
    found = await collect(Crawler([HOME], fetch=web, checks=checks, limits=Limits(max_depth=0)))
    # What a style sheet names is one level deeper: it is checked, and not read.
    assert {outcome.url: type(outcome) for outcome in found} == {
        HOME: Page,
        f"{HOME}a.css": Page,
        f"{HOME}b.css": Checked,
    }
    check, _ = judged(found)
    assert check.not_checked == {(LinkKind.A, "too_deep"): 1}


async def test_robots_directives_of_a_page_are_not_about_its_parts(autojump_clock: Any) -> None:
    page = "<meta name=robots content=nofollow><img src=/a.png><a href=/b>x</a>"
    web = Web({"/": document(page)})
    found = await collect(Crawler([HOME], fetch=web, checks=Checks()))
    check, faults = judged(found)
    assert faults == [("404", f"{HOME}a.png")]
    assert check.not_checked == {(LinkKind.A, "meta_nofollow"): 1}


async def test_parts_that_robots_txt_disallows_are_counted_and_not_asked_for(
    autojump_clock: Any,
) -> None:
    rules = Response(200, body=b"User-agent: *\nDisallow: /secret")
    page = "<img src=/secret.png><img src=/a.png>"
    web = Web({"/": document(page), "/robots.txt": rules})
    found = await collect(Crawler([HOME], fetch=web, checks=Checks()))
    check, faults = judged(found)
    assert faults == [("404", f"{HOME}a.png")]
    assert check.not_checked == {(LinkKind.IMAGE, "robots"): 1}
    assert web.hits[f"{HOME}secret.png"] == 0


async def test_the_links_of_a_duplicate_page_are_judged(autojump_clock: Any) -> None:
    page = document("<title>the same page, with words enough</title><a href=/gone>x</a>")
    web = Web({"/": html("/a", "/b"), "/a": page, "/b": page})
    found = await collect(Crawler([HOME], fetch=web, checks=Checks()))
    assert any(isinstance(each, Page) and each.duplicate_of for each in found)
    _, faults = judged(found)
    assert faults == [("404", f"{HOME}gone")] * 2


async def test_the_relative_links_of_a_copy_in_another_folder_are_checked(
    autojump_clock: Any,
) -> None:
    page = document("<a href=gone>x</a><a href=?q>y</a><a href=#z>z</a>")
    names = ("/a/1", "/a/2", "/b/3")
    web = Web({"/": html(*names), **dict.fromkeys(names, page), "/a/1?q": html()})
    found = await collect(Crawler([HOME], fetch=web, checks=Checks()))
    copies = {each.url: each.duplicate_of for each in found if isinstance(each, Page)}
    assert copies[f"{HOME}a/2"] == f"{HOME}a/1"
    assert copies[f"{HOME}b/3"] is None
    check, faults = judged(found)
    assert Counter(faults) == {
        ("404", f"{HOME}a/gone"): 2,
        ("404", f"{HOME}b/gone"): 1,
        ("404", f"{HOME}b/3?q"): 1,
        **{("missing_fragment", f"{HOME.rstrip('/')}{name}#z"): 1 for name in names},
    }
    # In one folder a link that is only a query is the one that leads elsewhere: it is counted.
    assert check.not_checked == {(LinkKind.A, Reason.DUPLICATE): 1}


async def test_two_spellings_of_a_url_are_checked_as_one(autojump_clock: Any) -> None:
    web = Web({"/": html("/~me", "/%7Eme", "/%7eme"), "/~me": html()})
    found = await collect(Crawler([HOME], fetch=web, checks=Checks()))
    assert len(found) == 2
    check, faults = judged(found)
    assert (faults, dict(check.not_checked)) == ([], {})


SILENT = [(Reason.CONNECT_TIMEOUT, Phase.CONNECT, 10), (Reason.TIMEOUT, Phase.WAIT, 30)]


@pytest.mark.parametrize("hosts", [1_000, pytest.param(20_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("reason", "phase", "seconds"), SILENT, ids=lambda each: str(each))
async def test_hosts_that_never_answer_hold_a_worker_for_two_timeouts_each(
    autojump_clock: Any, reason: Reason, phase: Phase, seconds: float, hosts: int
) -> None:
    workers = CHECK_WORKERS
    urls = [f"http://host{number}.test/" for number in range(hosts)]

    async def ask(job: Job) -> Answer:
        if job.url == HOME:
            return html(*urls)
        if job.purpose is Purpose.ROBOTS:
            return Response(404)
        await trio.sleep(seconds)
        return Fault(reason, "no answer", phase)

    began = trio.current_time()
    crawler = Crawler([HOME], fetch=ask, checks=Checks(), workers=workers)
    found = await collect(crawler, within=math.inf)
    assert {each.tries for each in found if isinstance(each, Checked)} == {2}
    bound = hosts * 2 * seconds / workers
    assert bound <= trio.current_time() - began < bound + 2 * seconds
    _, findings = judged(found)
    assert len(findings) == hosts


async def test_a_host_that_is_silent_is_given_up_with_all_its_links(autojump_clock: Any) -> None:
    urls = [f"{OUT}{number}" for number in range(1_000)]
    asked = 0

    async def ask(job: Job) -> Answer:
        nonlocal asked
        if job.url == HOME:
            return html(*urls)
        if not job.url.startswith(OUT):
            return Response(404)
        asked += 1
        await trio.sleep(10)
        return Fault(Reason.CONNECT_TIMEOUT, "no answer", Phase.CONNECT)

    found = await collect(Crawler([HOME], fetch=ask, checks=Checks()))
    checked = [each for each in found if isinstance(each, Checked)]
    assert asked < 20
    assert len(checked) == 1_000
    check, findings = judged(found)
    # A note for each that was asked for; the others are counted.
    assert len(findings) + check.not_checked[LinkKind.A, "connect_timeout"] == 1_000
    assert {code for code, _ in findings} == {"connect_timeout"}


async def test_a_host_that_says_later_is_asked_again_when_it_says(autojump_clock: Any) -> None:
    times: list[float] = []
    later = Response(429, httpx.Headers({"retry-after": "120"}))

    def busy(job: Job) -> Response:
        times.append(trio.current_time())
        return later if len(times) == 1 else Response(200)

    web = Web({"/": html(OUT), OUT: busy})
    found = await collect(Crawler([HOME], fetch=web, checks=Checks()))
    assert [each.status for each in found if isinstance(each, Checked)] == [200]
    assert 120 <= times[1] - times[0] < 130


async def test_a_host_that_always_says_later_ends_after_the_tries(autojump_clock: Any) -> None:
    later = Response(429, httpx.Headers({"retry-after": "80000"}))
    web = Web({"/": html(OUT), OUT: later})
    began = trio.current_time()
    found = await collect(Crawler([HOME], fetch=web, checks=Checks()))
    assert [each.status for each in found if isinstance(each, Checked)] == [429]
    # Four tries, and at most 300 seconds between two of them.
    assert trio.current_time() - began < 3 * 310


BY_HEAD = [
    Response(500),
    *(
        Fault(reason, "not to HEAD", Phase.WAIT)
        for reason in (Reason.TIMEOUT, Reason.RESET, Reason.BAD_REPLY)
    ),
]


@for_each("tries", [1, 2, 4])
@for_each("answer", BY_HEAD, ids=str)
async def test_a_head_without_a_good_answer_is_followed_by_a_get(
    autojump_clock: Any, answer: Answer, tries: int
) -> None:
    def by_get(job: Job) -> Answer:
        return answer if job.tries == 1 else Response(200)

    web = Web({"/": html(OUT), OUT: by_get})
    limits = Limits(max_tries=tries)
    found = await collect(Crawler([HOME], fetch=web, checks=Checks(), limits=limits))
    assert [(each.status, each.tries) for each in found if isinstance(each, Checked)] == [(200, 2)]


async def test_a_redirect_of_the_site_to_an_external_error_is_a_fault_of_the_link(
    autojump_clock: Any,
) -> None:
    web = Web({"/": html("/out"), "/out": moved(f"{OUT}gone")})
    _, faults = judged(await collect(Crawler([HOME], fetch=web, checks=Checks())))
    assert faults == [("404", f"{HOME}out")]
    # Without checks of what is outside, nothing is known of it.
    inside = Checks(external=False)
    _, faults = judged(await collect(Crawler([HOME], fetch=web, checks=inside)))
    assert faults == []


@pytest.mark.slow
@pytest.mark.parametrize("pages", [20, 200])
async def test_very_many_external_links_take_a_bounded_memory_each(
    autojump_clock: Any, pages: int
) -> None:
    links = 500

    async def ask(job: Job) -> Answer:
        await trio.lowlevel.checkpoint()
        if job.url == HOME:
            return html(*(f"/page{number}" for number in range(pages)))
        if job.url.startswith(HOME):
            first = number_of(job.url) * links
            urls = (f"http://h{n % 20_000}.test/{n}" for n in range(first, first + links))
            return html(*urls, title=job.url)
        return Response(404 if number_of(job.url) % 100 == 0 else 200)

    check = LinkCheck()
    crawler = Crawler([HOME], fetch=ask, checks=Checks(delay=1), workers=100)
    began = trio.current_time()
    tracemalloc.start()
    try:
        async with crawler.outcomes() as outcomes:
            async for outcome in outcomes:
                check.add(outcome)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert crawler.statistics().checked == pages * links
    hosts = min(20_000, pages * links)
    assert peak < 1_000 * pages * links + 1_500 * hosts
    # Five links of each host, a second apart; the politeness of the hosts decides the end.
    assert trio.current_time() - began < 600
    faults = sum(each.code == "404" for each in check.findings())
    check.close()
    assert faults == pages * links // 100


@pytest.mark.slow
async def test_a_page_of_a_million_ids_is_judged(autojump_clock: Any) -> None:
    ids = "".join(f'<p id="i{number}">' for number in range(999_000))
    web = Web({"/": html("/big#i998999", "/big#i999000"), "/big": document(ids)})
    found = await collect(Crawler([HOME], fetch=web, checks=Checks()), within=math.inf)
    _, faults = judged(found)
    assert faults == [("missing_fragment", f"{HOME}big#i999000")]


async def test_a_check_counts_the_places_of_a_page_as_memory(autojump_clock: Any) -> None:
    ids = "".join(f'<p id="i{number}">' for number in range(1_000))
    web = Web({"/": html(f"{OUT}#i999", f"{OUT}#i1000"), OUT: document(ids)})
    found = await collect(Crawler([HOME], fetch=web, checks=Checks()))
    assert [len(each.targets or ()) for each in found if isinstance(each, Checked)] == [1_000]
    _, notes = judged(found)
    assert notes == [("missing_fragment", f"{OUT}#i1000")]


@for_each("turned", [False, True])
async def test_a_link_that_is_not_checked_is_listed_on_the_first_page_by_url(
    autojump_clock: Any, turned: bool
) -> None:
    mail = "".join(f"<a href=mailto:{name}@b.test>x</a>" for name in "abc")
    pages = {"/": document("<a href=/b>b</a><a href=/a>a</a>"), "/b": document(mail)}
    web = Web(pages | {"/a": document(f"<p>\n{mail}")})
    found = await collect(Crawler([HOME], fetch=web, checks=Checks()))
    check = LinkCheck(why=2)
    for outcome in reversed(found) if turned else found:
        check.add(outcome)
    assert list(check.findings()) == list(check.findings())
    assert check.not_checked == {("mailto", Reason.OTHER_SCHEME): 3}
    places = [(each.page, each.link.line, each.link.url) for each in check.listed]
    assert places == [(f"{HOME}a", 2, "mailto:a@b.test"), (f"{HOME}a", 2, "mailto:b@b.test")]
    check.close()
