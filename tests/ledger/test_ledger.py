"""The ledger: one end for each URL, whatever its spelling and however often it comes."""

from __future__ import annotations

import tracemalloc

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from trio_crawler import Checked, Failure, Outcome, Page, Reason, Redirect, Skipped
from trio_crawler.ledger import Ledger
from trio_crawler.ledger.join import Broken, Join, Referrer
from trio_crawler.ledger.ledger import numbers_of
from trio_crawler.ledger.tables import FAILURE, PAGE
from trio_crawler.model import RejectedLink

HOME = "http://site.test/"
PAGE_AT_HOME = Page(HOME, 200, httpx.Headers(), b"", content_type="text/html")


def ledger_of(*outcomes: Outcome, **given: bool) -> Ledger:
    ledger = Ledger(**given)
    for outcome in outcomes:
        ledger.add(outcome)
    return ledger


def ends(ledger: Ledger) -> list[tuple[str, int, int]]:
    return [(url, row.kind, row.status) for url, row in ledger.ends()]


def test_of_two_ends_of_a_url_the_later_counts() -> None:
    failed = Failure(HOME, Reason.RESET, "gone away")
    ledger = ledger_of(failed, replace(PAGE_AT_HOME, again=True))
    assert ends(ledger) == [(HOME, PAGE, 200)]
    assert (ledger.errors, ledger.kinds[PAGE], ledger.kinds[FAILURE]) == (0, 1, 0)
    assert ledger.details == {}
    ledger.add(failed)
    assert (ends(ledger), ledger.errors) == ([(HOME, FAILURE, 0)], 1)


def test_an_end_of_an_earlier_run_counts_only_if_there_is_no_later_one() -> None:
    ledger = ledger_of(PAGE_AT_HOME)
    ledger.add(Failure(HOME, Reason.RESET), earlier=True)
    ledger.add(replace(PAGE_AT_HOME, url=f"{HOME}a", links=(HOME,)), earlier=True)
    assert ends(ledger) == [(HOME, PAGE, 200), (f"{HOME}a", PAGE, 200)]
    assert [list(each.followed) for each in ledger.outlinks()] == [[0]]


def test_two_spellings_are_one_url_and_each_is_shown_as_its_page_or_its_end_has_it() -> None:
    first = replace(PAGE_AT_HOME, links=(f"{HOME}%7euser",))
    second = replace(PAGE_AT_HOME, url=f"{HOME}b", links=(f"{HOME}~user",))
    gone = Page(f"{HOME}%7Euser", 404, httpx.Headers(), b"")
    for outcomes in ([first, second, gone], [gone, second, first]):
        ledger = ledger_of(*outcomes)
        assert ledger.knows(f"{HOME}~user")
        referrers = (Referrer(HOME), Referrer(f"{HOME}b"))
        assert Join(ledger).broken() == [Broken(gone.url, "404", referrers=referrers)]


def test_links_to_other_sites_are_counted_and_kept_if_that_is_wanted() -> None:
    links = (RejectedLink("http://b.test/", Reason.OTHER_SITE), RejectedLink("x", Reason.BAD_URL))
    page = replace(PAGE_AT_HOME, rejected=links)
    for outside, kept in ((False, {"bad_url"}), (True, {"bad_url", "other_site"})):
        ledger = ledger_of(page, outside=outside)
        (found,) = ledger.outlinks()
        assert found.rejected.keys() == kept
        assert ledger.rejected == {Reason.OTHER_SITE: 1, Reason.BAD_URL: 1}
        assert [ledger.urls.urls[each] for each in numbers_of(found.rejected["bad_url"])] == ["x"]


def test_each_kind_of_end_comes_back_as_it_was() -> None:
    ledger = ledger_of(
        replace(PAGE_AT_HOME, seconds=1.25, body_size=2**33, robots=("noindex",), depth=3),
        Redirect(f"{HOME}r", 301, "http://b.test/#x", rejected=Reason.OTHER_SITE, fragment="x"),
        Skipped(f"{HOME}s", Reason.STOPPED, referrer=HOME),
        Checked("http://c.test/", None, Reason.DNS, "no such name"),
    )
    page, redirect, skipped, checked = (row for _, row in ledger.ends())
    assert (page.seconds, page.size, page.good, page.indexable) == (1.25, 2**33, True, False)
    assert (redirect.rejected, redirect.reason) == (Reason.OTHER_SITE, None)
    assert ledger.urls.urls[redirect.target] == "http://b.test/"
    assert (skipped.reason, ledger.urls.urls[skipped.referrer]) == (Reason.STOPPED, HOME)
    assert (checked.reason, ledger.details[checked.number]) == (Reason.DNS, "no such name")


@given(st.lists(st.lists(st.integers(0, 400), max_size=9), max_size=300))
def test_the_links_of_many_pages_come_back_in_their_order(pages: list[list[int]]) -> None:
    made = [
        replace(PAGE_AT_HOME, url=f"{HOME}p{at}", links=tuple(f"{HOME}{n}" for n in links))
        for at, links in enumerate(pages)
    ]
    ledger = ledger_of(*made)
    urls = ledger.urls.urls
    found = [
        (urls[each.page], tuple(urls[n] for n in each.followed)) for each in ledger.outlinks()
    ]
    assert found == [(page.url, page.links) for page in made if page.links]


@pytest.mark.slow
@pytest.mark.merge
def test_a_url_and_fifty_links_take_less_than_250_bytes() -> None:
    urls = [f"{HOME}section-{n % 40}/page-{n}.html" for n in range(10_000)]
    pages = (
        replace(
            PAGE_AT_HOME,
            url=url,
            links=tuple(urls[(n + each * each) % 10_000] for each in range(50)),
        )
        for n, url in enumerate(urls)
    )
    ledger = Ledger()
    tracemalloc.start()
    for page in pages:
        ledger.add(page)
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert size < 250 * 10_000


def test_how_a_server_asks_for_a_login_is_what_this_run_has_seen() -> None:
    asked = httpx.Headers({"www-authenticate": "Digest realm=x"})
    ledger = ledger_of(Page(HOME, 401, asked, b""))
    ledger.add(Page(f"{HOME}a", 401, httpx.Headers(), b""), earlier=True)
    assert ledger.logins == {"http://site.test": "Digest"}


def test_a_status_and_seconds_that_no_server_has_are_cut() -> None:
    ledger = ledger_of(Page(HOME, 70_000, httpx.Headers(), b"", seconds=1e39))
    assert [(row.status, row.good) for _, row in ledger.ends()] == [(65_535, False)]


def test_beyond_the_most_rejected_urls_links_to_known_urls_are_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("trio_crawler.ledger.ledger.MOST_REJECTED", 1)
    urls = [f"{HOME}a", f"{HOME}b", HOME]
    pages = [
        replace(PAGE_AT_HOME, rejected=(RejectedLink(url, Reason.REL_NOFOLLOW),)) for url in urls
    ]
    for outside, kept in ((False, [urls[0], HOME]), (True, urls)):
        ledger = ledger_of(*pages, outside=outside)
        found = [numbers_of(each.rejected["rel_nofollow"]) for each in ledger.outlinks()]
        assert [ledger.urls.urls[number] for numbers in found for number in numbers] == kept
        assert ledger.exact is outside
