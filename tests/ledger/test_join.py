from __future__ import annotations

import time
import tracemalloc
from collections.abc import Iterable

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from trio_crawler.ledger.join import Broken, Join, Referrer
from trio_crawler.ledger.ledger import Ledger
from trio_crawler.model import Failure, Outcome, Page, Reason, Redirect, RejectedLink, Skipped

pytestmark = pytest.mark.slow

HEADERS = httpx.Headers()


def page(url: str, *links: str, status: int = 200, malformed: tuple[str, ...] = ()) -> Page:
    refused = tuple(RejectedLink(href, Reason.BAD_URL) for href in malformed)
    return Page(url, status, HEADERS, b"", links=links, rejected=refused)


def joined(*outcomes: Outcome) -> Join:
    ledger = Ledger()
    for outcome in outcomes:
        ledger.add(outcome)
    return Join(ledger)


def broken(*outcomes: Outcome) -> list[Broken]:
    join = joined(*outcomes)
    found = join.broken()
    assert join.problems == len(found)
    return found


def on(*pages: str) -> tuple[Referrer, ...]:
    return tuple(Referrer(each) for each in pages)


def test_an_error_page_is_listed_with_every_page_that_links_to_it() -> None:
    assert broken(
        page("b", "gone"), page("a", "b", "gone", "c"), page("gone", status=404), page("c")
    ) == [Broken("gone", "404", referrers=on("a", "b"))]


@pytest.mark.parametrize("status", [200, 204, 299, 300, 304, 399])
def test_a_status_below_400_is_not_broken(status: int) -> None:
    assert broken(page("a", "b"), page("b", status=status)) == []


@pytest.mark.parametrize("status", [400, 403, 404, 410, 429, 500, 503, 999])
def test_every_status_from_400_on_is_broken(status: int) -> None:
    assert [each.why for each in broken(page("a", "b"), page("b", status=status))] == [str(status)]


def test_a_failure_is_listed_with_its_reason_and_its_detail() -> None:
    assert broken(page("a", "b"), Failure("b", Reason.CONNECTION_REFUSED, "nobody there")) == [
        Broken("b", "connection_refused", "nobody there", referrers=on("a"))
    ]


def test_a_chain_that_used_up_its_redirects_says_where_it_leads() -> None:
    untold = Failure("a", Reason.TOO_MANY_REDIRECTS, target="b")
    told = Failure("a", Reason.TOO_MANY_REDIRECTS, "this one leads to b", target="b")
    assert [each.detail for each in broken(untold)] == ["-> b"]
    assert [each.detail for each in broken(told)] == ["this one leads to b"]


def test_a_link_to_a_redirect_that_ends_in_a_broken_page_has_its_path() -> None:
    assert broken(
        page("p", "a"),
        page("q", "b"),
        page("r", "gone"),
        Redirect("a", 301, "b"),
        Redirect("b", 302, "gone"),
        page("gone", status=410),
    ) == [
        Broken(
            "gone", "410", referrers=(Referrer("p", ("a", "b")), Referrer("q", ("b",)), *on("r"))
        )
    ]


def test_a_page_that_leads_there_by_several_ways_is_named_once_by_the_shortest() -> None:
    assert broken(
        page("p", "z", "a", "y"),
        Redirect("z", 301, "gone"),
        Redirect("y", 301, "gone"),
        Redirect("a", 301, "z"),
        page("gone", status=404),
    ) == [Broken("gone", "404", referrers=(Referrer("p", ("y",)),))]


def test_a_redirect_to_a_good_page_is_not_broken() -> None:
    assert broken(page("p", "a"), Redirect("a", 301, "b"), page("b")) == []


def test_a_fragment_in_a_redirect_target_does_not_break_the_chain() -> None:
    found = broken(page("p", "a"), Redirect("a", 301, "b#top"), page("b", status=404))
    assert found == [Broken("b", "404", referrers=(Referrer("p", ("a",)),))]


def test_what_was_skipped_or_led_out_of_scope_is_not_broken() -> None:
    assert (
        broken(
            page("p", "a", "b"),
            Redirect("a", 301, "https://b.test/", rejected=Reason.OTHER_SITE),
            Skipped("b", Reason.STOPPED),
        )
        == []
    )


def test_a_redirect_whose_refused_target_came_by_another_way_is_as_broken_as_it() -> None:
    assert broken(
        page("p", "a"),
        page("q", "gone"),
        Redirect("a", 301, "gone", rejected=Reason.TOO_DEEP),
        page("gone", status=404),
    ) == [Broken("gone", "404", referrers=(Referrer("p", ("a",)), *on("q")))]


def test_a_redirect_to_something_that_is_no_url_is_broken() -> None:
    found = broken(page("p", "a"), Redirect("a", 301, "http://[x", rejected=Reason.BAD_URL))
    assert found == [Broken("a", "bad_url", "-> http://[x", referrers=on("p"))]


def test_a_malformed_href_is_broken_and_listed_as_it_is_written() -> None:
    assert broken(
        page("p", malformed=("http://[x", "http://[x")), page("q", malformed=("\ud800",))
    ) == [
        Broken("http://[x", "bad_url", referrers=on("p")),
        Broken("\ud800", "bad_url", referrers=on("q")),
    ]


def test_a_redirect_to_another_spelling_of_its_url_is_no_loop() -> None:
    there, here = "http://a.test/%7Ea", "http://a.test/~a"
    assert broken(page("http://a.test/", there), Redirect(there, 301, here)) == []
    (found,) = broken(page("http://a.test/", there), Redirect(there, 301, there))
    assert found.why == "redirect loop"


def test_a_page_that_a_sitemap_alone_lists_is_unlinked_although_the_sitemap_is_a_page() -> None:
    sitemap, alone = "http://a.test/map.xml", "http://a.test/alone"
    join = joined(
        page("http://a.test/", sitemap),
        replace(page(sitemap), referrer="http://a.test/"),
        replace(page(alone), referrer=sitemap),
    )
    assert list(join.unlinked(["http://a.test/"], [sitemap])) == [alone]


def test_a_loop_of_redirects_is_listed_once_with_its_members_and_all_its_referrers() -> None:
    assert broken(
        page("p", "c"),
        page("q", "tail"),
        Redirect("c", 302, "b"),
        Redirect("b", 302, "d"),
        Redirect("d", 302, "c"),
        Redirect("tail", 302, "d"),
    ) == [
        Broken(
            "b",
            "redirect loop",
            loop=("b", "d", "c"),
            referrers=(Referrer("p", ("c",)), Referrer("q", ("tail", "d", "c"))),
        )
    ]


def test_a_redirect_to_itself_is_a_loop_of_one() -> None:
    assert broken(page("p", "a"), Redirect("a", 302, "a")) == [
        Broken("a", "redirect loop", loop=("a",), referrers=on("p"))
    ]


def test_two_loops_are_two_problems() -> None:
    outcomes = [Redirect("a", 302, "b"), Redirect("b", 302, "a"), Redirect("c", 302, "c")]
    assert [each.loop for each in broken(*outcomes)] == [("a", "b"), ("c",)]


def test_a_broken_url_that_nothing_leads_to_is_a_seed() -> None:
    seed = Referrer(None)
    assert broken(page("a", status=500)) == [Broken("a", "500", referrers=(seed,))]
    assert broken(Redirect("a", 302, "a")) == [
        Broken("a", "redirect loop", loop=("a",), referrers=(seed,))
    ]


def test_a_seed_that_redirects_to_a_broken_page_is_a_referrer_beside_the_pages() -> None:
    assert broken(page("p", "gone"), Redirect("s", 301, "gone"), page("gone", status=404)) == [
        Broken("gone", "404", referrers=(Referrer(None, ("s",)), *on("p")))
    ]


def test_a_broken_seed_that_a_page_links_to_is_listed_with_the_page() -> None:
    assert broken(page("p", "s"), page("s", status=404)) == [Broken("s", "404", referrers=on("p"))]


def test_a_chain_of_ten_thousand_redirects_is_followed_and_shortened() -> None:
    hops = [Redirect(f"u{at:05}", 301, f"u{at + 1:05}") for at in range(10_000)]
    (found,) = broken(page("p", "u00000"), *hops, page("u10000", status=404))
    (referrer,) = found.referrers
    assert referrer.page == "p"
    assert referrer.via == tuple(f"u{at:05}" for at in range(10))
    assert referrer.omitted == 9_990


def test_a_long_chain_linked_at_every_hop_costs_no_more_than_its_links() -> None:
    hops: list[Outcome] = [Redirect(f"u{at:05}", 301, f"u{at + 1:05}") for at in range(10_000)]
    pages = [page(f"p{at:05}", f"u{at:05}") for at in range(10_000)]
    (found,) = broken(*hops, *pages, page("u10000", status=404))
    assert len(found.referrers) == 10_000
    assert sum(len(each.via) for each in found.referrers) <= 100_000


def test_a_loop_of_ten_thousand_redirects_is_found() -> None:
    hops = [Redirect(f"u{at:05}", 301, f"u{(at + 1) % 10_000:05}") for at in range(10_000)]
    (found,) = broken(*reversed(hops))
    assert len(found.loop) == 10_000
    assert found.loop[0] == found.url == "u00000"


URLS = [f"u{at}" for at in range(8)]


@st.composite
def crawls(draw: st.DrawFn) -> list[Outcome]:
    """One outcome for each of a few URLs, with links and redirects among them."""
    urls, some = st.sampled_from(URLS), st.lists(st.sampled_from(URLS), unique=True)
    kinds: st.SearchStrategy[tuple[str, int, object]] = st.one_of(
        st.builds(lambda links: ("page", 200, tuple(links)), some),
        st.just(("page", 404, ())),
        st.builds(lambda target: ("redirect", 301, target), urls),
        st.just(("failure", 0, None)),
    )
    made: list[Outcome] = []
    for url in URLS:
        match draw(kinds):
            case ("page", status, tuple(links)):
                made.append(page(url, *links, status=status))
            case ("redirect", status, str(target)):
                made.append(Redirect(url, status, target))
            case _:
                made.append(Failure(url, Reason.RESET))
    return made


@given(crawls(), st.data())
def test_the_order_of_the_outcomes_changes_nothing(
    made: list[Outcome], data: st.DataObject
) -> None:
    assert broken(*data.draw(st.permutations(made))) == broken(*made)


@given(crawls())
def test_a_page_is_named_exactly_when_following_its_links_ends_badly(made: list[Outcome]) -> None:
    by_url = {outcome.url: outcome for outcome in made}
    expected = set()
    for outcome in made:
        for link in outcome.links if isinstance(outcome, Page) else ():
            end = follow(by_url, link)
            if end is not None:
                expected.add((outcome.url, end))
    named = {
        (referrer.page, frozenset(each.loop or [each.url]))
        for each in broken(*made)
        for referrer in each.referrers
        if referrer.page is not None
    }
    assert named == expected


def follow(by_url: dict[str, Outcome], url: str) -> frozenset[str] | None:
    """Follow redirects as a browser does; give the URL it fails at, or the loop, or None."""
    way: list[str] = []
    while isinstance(outcome := by_url[url], Redirect):
        if url in way:
            return frozenset(way[way.index(url) :])
        way.append(url)
        url = outcome.target
    sound = isinstance(outcome, Page) and outcome.status < 400
    return None if sound else frozenset([url])


@given(crawls(), st.integers(0, 3))
def test_referrers_are_listed_up_to_the_limit_and_the_rest_counted(
    made: list[Outcome], limit: int
) -> None:
    links = joined(*made)
    for some, whole in zip(links.broken(limit), links.broken(), strict=True):
        assert some.referrers == whole.referrers[:limit]
        assert len(some.referrers) + some.omitted == len(whole.referrers)
        assert replace(some, referrers=(), omitted=0) == replace(whole, referrers=())


def test_a_hundred_thousand_broken_links_are_shortened_within_32_mib() -> None:
    targets = [f"u{at:05}" for at in range(10_000)]
    links = joined(
        *(page(f"p{at:05}", *targets) for at in range(30)),
        *(Failure(target, Reason.DNS) for target in targets),
    )
    tracemalloc.start()
    try:
        found = links.broken(10)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert sum(len(each.referrers) + each.omitted for each in found) == 300_000
    assert peak < 32 << 20


def crawl(pages: int, links: int) -> Iterable[Page]:
    """Pages that link to one another, all strings made beforehand."""
    urls = [f"https://a.test/{at:06}" for at in range(pages)]
    for at, url in enumerate(urls):
        yield page(url, *(urls[(at * 31 + step * 97) % pages] for step in range(links)))


def test_a_million_links_to_pages_that_never_came_fit_in_24_mib() -> None:
    outcomes = [page(f"from{at}", *each.links) for at, each in enumerate(crawl(10_000, 100))]
    ledger = Ledger()
    tracemalloc.start()
    try:
        for outcome in outcomes:
            ledger.add(outcome)
        now, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert repr(ledger) == "<Ledger: 10000 ends, 20000 URLs>"
    assert now < 12 << 20
    assert peak < 24 << 20


def test_a_page_of_a_hundred_links_is_added_in_well_under_a_millisecond() -> None:
    outcomes = list(crawl(2_000, 100))
    ledger = Ledger()
    begun = time.process_time()
    for outcome in outcomes:
        ledger.add(outcome)
    assert time.process_time() - begun < 2_000 * 500e-6
