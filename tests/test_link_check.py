"""The link check, whole: each fault of a site of seeded faults is found, and no other."""

from __future__ import annotations

import httpx
import pytest
import trio
import trio.testing
from cases import for_each
from msgspec.structs import replace
from sites import faults
from sites.fault_cases import CASES, HOME, Case
from sites.faults import rows, served

from trio_crawler import Checks, Crawler, HttpFetch, Limits, Outcome, Page, Politeness, Redirect
from trio_crawler.check import Finding, Verdicts
from trio_crawler.check.link_check import LinkCheck
from trio_crawler.page import Link, LinkKind
from trio_crawler.page.fragments import places_of
from trio_crawler.page.links import read_page_links
from trio_crawler.page.read import read

POLITE = Politeness(nofollow=False)


class Result:
    """The findings of a whole check, and what it counted."""

    def __init__(self, check: LinkCheck) -> None:
        self.findings = list(check.findings())
        self.checked, self.not_checked = check.checked.copy(), check.not_checked.copy()
        check.close()


async def checked(crawler: Crawler) -> Result:
    """Crawl, and check the links."""
    check = LinkCheck()
    async with crawler.outcomes() as outcomes:
        async for outcome in outcomes:
            check.add(outcome)
    return Result(check)


@pytest.fixture(scope="module")
def in_memory() -> Result:
    """Return the result for the site in memory."""

    async def check() -> Result:
        crawler = Crawler([HOME], fetch=faults.web(), checks=Checks(), politeness=POLITE)
        return await checked(crawler)

    return trio.run(check, clock=trio.testing.MockClock(autojump_threshold=0))


@pytest.fixture
def by_sockets(autojump_clock: trio.testing.MockClock) -> Result:
    """Return the result for the site on real servers, under the names of the site in memory."""
    autojump_clock.autojump_threshold = 0.05

    async def check() -> Result:
        async with served() as site:
            url = site.servers[HOME].url
            async with HttpFetch(
                seeds=[url], allow_private=["127.0.0.0/8"], bodies=False
            ) as fetch:
                crawler = Crawler(
                    [url],
                    fetch=fetch,
                    checks=Checks(delay=0),
                    politeness=POLITE,
                    limits=Limits(max_tries=2),
                )
                with trio.fail_after(60):
                    result = await checked(crawler)
            result.findings = [named(site, finding) for finding in result.findings]
            return result

    return trio.run(check, clock=autojump_clock)


def named(site: faults.Served, finding: Finding) -> Finding:
    """Return a finding under the names of the site in memory."""
    page = None if finding.page is None else site.named(finding.page)
    return replace(finding, url=site.named(finding.url), page=page)


def case_id(case: Case) -> str:
    return case.name


@for_each("case", CASES, ids=case_id)
def test_each_fault_is_found_and_nothing_else(in_memory: Result, case: Case) -> None:
    assert rows(in_memory.findings, case) == set(case.found)


@for_each("case", CASES, ids=case_id)
def test_each_fault_of_real_servers_is_found(by_sockets: Result, case: Case) -> None:
    assert rows(by_sockets.findings, case) == set(case.found)


def test_a_broken_url_that_only_the_sitemap_names_is_a_fault(in_memory: Result) -> None:
    pages = frozenset().union(*(case.pages for case in CASES))
    (found,) = (each for each in in_memory.findings if each.page not in pages)
    assert (found.url, found.code) == (f"{HOME}gone-from-map", "404")
    assert found.page == f"{HOME}sitemap.xml"


def findings_of(*outcomes: Outcome, ignore: str = "$^") -> list[tuple[str | None, str, str]]:
    with LinkCheck(Verdicts(ignore=[ignore])) as check:
        for outcome in outcomes:
            check.add(outcome)
        return [(each.page, each.target, each.code) for each in check.findings()]


def test_the_fragment_of_a_form_is_not_looked_up_on_any_page() -> None:
    form = (Link("http://a.test/b", LinkKind.FORM, "nowhere"),)
    pages = [Page(f"http://a.test/{n}", 200, httpx.Headers(), b"", found=form) for n in range(3)]
    places: frozenset[int] = frozenset()
    target = Page("http://a.test/b", 200, httpx.Headers(), b"", targets=places)
    assert findings_of(*pages, target) == []


def test_the_fragment_of_a_link_of_the_caller_may_have_any_characters() -> None:
    links = tuple(Link("http://a.test/b", fragment=name) for name in ("é ü", "\ud800", "x"))
    page = Page("http://a.test/", 200, httpx.Headers(), b"", found=links)
    target = Page("http://a.test/b", 200, httpx.Headers(), b"", targets=places_of(["x"]))
    expected = {f"http://a.test/b#{name}" for name in ("é ü", "\ud800")}
    assert {url for _, url, _ in findings_of(page, target)} == expected


def test_a_fragment_without_a_place_is_ignored_by_its_whole_url() -> None:
    links = tuple(Link("http://a.test/b", fragment=name) for name in ("gone", "lost"))
    page = Page("http://a.test/", 200, httpx.Headers(), b"", found=links)
    target = Page("http://a.test/b", 200, httpx.Headers(), b"", targets=frozenset())
    found = findings_of(page, target, ignore="b#gone$")
    assert found == [(page.url, "http://a.test/b#lost", "missing_fragment")]


@for_each(
    "pages, found",
    [
        ([[], ["x"]], False),
        ([["x"], []], False),
        ([[], []], True),
        ([[], None], False),
        ([["y"], ["y"]], True),
        ([[], [], ["x"]], False),
        ([[], [], []], True),
        ([[], ["x"], []], False),
    ],
)
@pytest.mark.parametrize("in_a_circle", [False, True])
def test_a_fragment_is_sought_on_a_page_and_on_those_to_which_it_refreshes(
    pages: list[list[str] | None], found: bool, in_a_circle: bool
) -> None:
    urls = [f"http://a.test/{at}" for at in range(len(pages))]
    links = [Link("http://a.test/0", fragment="x")]
    links += [Link(url, LinkKind.REFRESH) for url in [*urls[1:], urls[0]]]
    made = [Page("http://a.test/", 200, httpx.Headers(), b"", found=tuple(links[:1]))]
    for at, (url, names) in enumerate(zip(urls, pages, strict=True), 1):
        onward = tuple(links[at : at + 1]) if in_a_circle or at < len(pages) else ()
        targets = None if names is None else places_of(names)
        made.append(Page(url, 200, httpx.Headers(), b"", found=onward, targets=targets))
    expected = [("http://a.test/", "http://a.test/0#x", "missing_fragment")] if found else []
    assert findings_of(*made) == findings_of(*reversed(made)) == expected


def test_a_page_that_is_a_fault_itself_is_told_if_only_its_own_fragments_lead_to_it() -> None:
    url, body = "http://a.test/", b"<a href='#x'>toc</a><h1 id=x>x</h1>"
    facts = read(body, "text/html", url, scanned=True)
    found = read_page_links(body, "text/html", url, facts.pointed, 9, facts.outline)
    with LinkCheck(Verdicts(accept=[200])) as check:
        check.add(
            Page(url, 203, httpx.Headers(), body, referrer="http://a.test/s.xml", found=found)
        )
        assert [(each.page, each.url, each.code) for each in check.findings()] == [
            (url, url, "203")
        ]


def test_a_broken_link_is_told_of_each_page_that_has_it() -> None:
    lost = Link("http://a.test/b", LinkKind.IMAGE)
    urls = [f"http://a.test/{n}" for n in range(3)]
    pages = [Page(url, 200, httpx.Headers(), b"", found=(lost,)) for url in urls]
    gone = Page(lost.url, 404, httpx.Headers(), b"", referrer=urls[0])
    assert findings_of(*pages, gone) == [(url, lost.url, "404") for url in urls]


def test_a_seed_is_linked_by_another_page_also_by_a_redirect_or_in_another_spelling() -> None:
    home, new, lone, old = (f"http://a.test/{name}" for name in ("", "new", "%7Elone", "old"))
    outcomes = [
        Page(home, 200, httpx.Headers(), b"", found=(Link(old), Link("http://a.test/%7Ea"))),
        Page(new, 200, httpx.Headers(), b"", found=()),
        Page("http://a.test/~a", 200, httpx.Headers(), b"", found=()),
        Page(lone, 200, httpx.Headers(), b"", found=(Link(lone), Link("http://a.test/~lone"))),
        Redirect(old, 301, new, referrer=home),
    ]
    with LinkCheck() as check:
        for outcome in outcomes:
            check.add(outcome)
        assert list(check.unlinked()) == [home, lone]


def test_a_redirect_to_another_spelling_of_its_url_does_not_go_on_for_ever() -> None:
    there = Link("http://a.test/%7Ea", LinkKind.A)
    page = Page("http://a.test/", 200, httpx.Headers(), b"", found=(there,))
    redirect = Redirect(there.url, 301, "http://a.test/~a", referrer=page.url)
    assert findings_of(page, redirect) == [(page.url, there.url, "301")]


@for_each(
    "path, status, told",
    [("%.html", 400, True), ("a?b=%2", 400, True), ("%25", 400, False), ("%.html", 404, False)],
)
def test_an_answer_of_400_is_explained_by_a_percent_sign_that_begins_no_escape(
    path: str, status: int, told: bool
) -> None:
    url = f"http://a.test/{path}"
    page = Page("http://a.test/", 200, httpx.Headers(), b"", found=(Link(url),))
    with LinkCheck() as check:
        gone = Page(url, status, httpx.Headers(), b"", referrer=page.url)
        for outcome in (page, gone):
            check.add(outcome)
        details = {each.detail for each in (*check.findings(), *check.certain(gone))}
    assert details == {
        'a "%" is not followed by two hexadecimal digits: write %25' if told else ""
    }


def test_the_links_of_a_page_are_read_with_their_places_at_once_if_one_is_malformed() -> None:
    url, told = "http://a.test/", []
    for href in ("gone", "http://["):
        body = f"<a href={href}>".encode()
        pointed = read(body, "text/html", url, scanned=True).pointed
        unread = None if href == "gone" else body  # so that no place can be read
        found = read_page_links(unread, "text/html", url, pointed, 9, b"an outline")
        with LinkCheck() as check:
            check.add(page := Page(url, 200, httpx.Headers(), body, found=found))
            told.append([each.line for each in check.certain(page)])
    assert told == [[], [1]]
