from __future__ import annotations

import random

import httpx
import pytest
from cases import for_each
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from trio_crawler.model import (
    Failure,
    Listing,
    Outcome,
    Page,
    Reason,
    Redirect,
    RejectedLink,
    Sitemap,
    Skipped,
    Statistics,
)
from trio_crawler.page.urls import seen_key
from trio_crawler.report import CrawlFacts, Report

SITE = "https://a.test"
MAP = f"{SITE}/sitemap.xml"
SEED = f"{SITE}/"
READ = Sitemap(MAP, "urlset", entries=3, admitted=2, referrer=f"{SITE}/robots.txt")


def page(path: str, *links: str, status: int = 200, content_type: str = "text/html") -> Page:
    return Page(
        _url(path),
        status,
        httpx.Headers(),
        b"",
        content_type=content_type,
        referrer=_referrer(path),
        links=tuple(map(_url, links)),
    )


def redirect(path: str, target: str) -> Redirect:
    return Redirect(_url(path), 301, _url(target), referrer=_referrer(path))


def _referrer(path: str) -> str | None:
    return None if path == "/" else MAP


def _url(path: str) -> str:
    return SITE + path if path.startswith("/") else path


def told(
    outcomes: list[Outcome],
    *listed: str,
    sitemaps: tuple[Sitemap, ...] = (READ,),
    full: bool = False,
    ended: str = "",
) -> str:
    """Report a crawl from `SEED` with a sitemap that lists these paths."""
    report = Report(full=full)
    for outcome in outcomes:
        report.add(outcome)
    known = {seen_key(_url(path)): Listing(MAP) for path in listed}
    return report.text(
        CrawlFacts(
            Statistics(),
            1,
            seeds=[SEED],
            ended=ended,
            sitemaps=sitemaps,
            listing=lambda url: known.get(seen_key(url)),
        )
    )


def section(text: str, title: str) -> list[str]:
    """Return the lines below a heading; none if it is not there."""
    for part in text.split("\n\n"):
        first, *lines = part.splitlines()
        if first.rpartition(" (")[0] == title:
            assert first == f"{title} ({len(lines)})"
            return [line.strip().removeprefix(SITE) for line in lines]
    return []


def orphans(outcomes: list[Outcome], *listed: str) -> list[str]:
    return section(told(outcomes, *listed), "Orphans")


def unlisted(outcomes: list[Outcome], *listed: str) -> list[str]:
    return section(told(outcomes, *listed), "Unlisted")


# What only a sitemap leads to.


def test_a_page_of_a_sitemap_that_no_page_links_to_is_an_orphan() -> None:
    crawl: list[Outcome] = [page("/", "/a"), page("/a"), page("/lone")]
    assert orphans(crawl, "/", "/a", "/lone") == ["/lone"]


def test_what_a_page_links_to_later_is_no_orphan() -> None:
    assert orphans([page("/"), page("/a"), page("/b", "/a")], "/a", "/b") == ["/b"]


def test_a_seed_is_no_orphan_nor_is_what_it_redirects_to() -> None:
    assert orphans([redirect("/", "/home"), page("/home")], "/", "/home") == []
    assert orphans([redirect("/old", "/"), page("/")], "/", "/old") == []


def test_what_a_linked_url_redirects_to_is_no_orphan() -> None:
    crawl: list[Outcome] = [
        page("/", "/old"),
        redirect("/old", "/older"),
        redirect("/older", "/new"),
        page("/new"),
    ]
    assert orphans(crawl, "/new") == []


def test_what_only_an_orphan_redirects_to_is_one_if_it_is_in_a_sitemap() -> None:
    crawl: list[Outcome] = [page("/"), redirect("/old", "/new"), page("/new")]
    assert orphans(crawl, "/old", "/new") == ["/new"]
    assert orphans(crawl, "/old") == []


def test_a_page_that_links_to_nothing_but_itself_stays_an_orphan() -> None:
    assert orphans([page("/"), page("/lone", "/lone", "/")], "/lone") == ["/lone"]


@for_each(
    "reason",
    [
        Reason.REL_NOFOLLOW,
        Reason.META_NOFOLLOW,
        Reason.HEADER_NOFOLLOW,
        Reason.DUPLICATE,
        Reason.TOO_DEEP,
    ],
)
def test_a_link_that_was_not_followed_is_a_link(reason: Reason) -> None:
    home = replace(page("/"), rejected=(RejectedLink(f"{SITE}/a%7eb", reason),))
    assert orphans([home, page("/a~b")], "/a~b") == []


def test_a_link_may_spell_an_escape_in_another_way_than_the_sitemap() -> None:
    assert orphans([page("/", "/a~b"), page("/a%7Eb")], "/a%7Eb") == []
    assert orphans([page("/", "/a%7eb"), page("/a~b")], "/a~b") == []
    assert orphans([page("/", "/a%7eb"), page("/a%7Eb")], "/a%7Eb") == []
    assert orphans([page("/", "/a"), page("/a%7Eb")], "/a%7Eb") == ["/a%7Eb"]


@pytest.mark.parametrize(
    "other",
    [
        page("/gone", status=404),
        redirect("/gone", "/"),
        Failure(f"{SITE}/gone", Reason.TIMEOUT),
        Skipped(f"{SITE}/gone", Reason.PAGE_BUDGET),
    ],
)
def test_only_a_page_that_came_is_an_orphan(other: Outcome) -> None:
    assert "Orphans" not in told([page("/"), other], "/gone")


def test_a_page_in_no_sitemap_is_no_orphan() -> None:
    folded = replace(page("/"), canonical=f"{SITE}/c", duplicate_of=f"{SITE}/c")
    folded = replace(folded, folded_into=f"{SITE}/c")
    assert orphans([folded, page("/c")]) == []


def test_the_canonical_page_of_a_folded_one_counts_as_linked() -> None:
    folded = replace(page("/"), canonical=f"{SITE}/c", duplicate_of=f"{SITE}/c")
    folded = replace(folded, folded_into=f"{SITE}/c")
    assert orphans([folded, page("/c")], "/c") == []
    named = replace(page("/"), canonical=f"{SITE}/c")
    assert orphans([named, page("/c")], "/c") == ["/c"]


NAMES = ["/", "/a", "/b", "/c", "/d"]
names = st.sampled_from(NAMES)


@given(
    st.dictionaries(names, st.one_of(st.lists(names, max_size=3), names), max_size=5),
    st.sets(names),
    st.randoms(use_true_random=False),
)
def test_orphans_are_what_nothing_leads_to_in_whatever_order_the_outcomes_come(
    site: dict[str, list[str] | str], listed: set[str], chance: random.Random
) -> None:
    crawl: list[Outcome] = [
        redirect(path, leads) if isinstance(leads, str) else page(path, *leads)
        for path, leads in site.items()
    ]
    chance.shuffle(crawl)
    linked = {"/"}
    linked.update(
        leads for path, to in site.items() if isinstance(to, list) for leads in to if leads != path
    )
    for _ in NAMES:
        linked.update(to for path, to in site.items() if isinstance(to, str) if path in linked)
    pages = {path for path, leads in site.items() if isinstance(leads, list)}
    assert orphans(crawl, *listed) == sorted(listed & pages - linked)


# What no sitemap lists.


def test_a_page_that_no_sitemap_lists_is_unlisted() -> None:
    crawl: list[Outcome] = [page("/", "/a", "/b"), page("/a"), page("/b")]
    assert unlisted(crawl, "/", "/a") == ["/b"]
    assert unlisted(crawl, "/", "/a", "/b") == []


def test_a_listed_page_may_be_spelled_in_another_way() -> None:
    assert unlisted([page("/"), page("/a%7eb")], "/", "/a~b") == []


PLAIN = page("/b")


@for_each(
    "other",
    [
        page("/b", status=404),
        page("/b", content_type="image/png"),
        replace(PLAIN, robots=("noindex",)),
        replace(PLAIN, canonical=f"{SITE}/"),
        replace(PLAIN, duplicate_of=f"{SITE}/"),
    ],
)
def test_only_html_pages_that_want_to_be_found_are_unlisted(other: Page) -> None:
    assert unlisted([page("/"), replace(PLAIN, canonical=PLAIN.url)], "/") == ["/b"]
    assert unlisted([page("/"), other], "/") == []


def test_a_page_that_is_as_it_was_before_may_be_unlisted() -> None:
    assert unlisted([page("/"), page("/b", status=304)], "/") == ["/b"]


OTHER = "https://b.test/x"


def test_pages_of_a_host_without_a_sitemap_are_not_unlisted() -> None:
    assert unlisted([page("/", OTHER), page(OTHER)], "/") == []


def test_pages_of_a_host_that_a_sitemap_elsewhere_lists_are() -> None:
    away = Sitemap("https://cdn.test/map", "urlset", 1, 1)
    text = told([page("/"), page("/b"), page(OTHER)], "/", sitemaps=(away,))
    assert section(text, "Unlisted") == ["/b"]


@pytest.mark.parametrize("kind", ["", "index"])
def test_without_a_sitemap_that_could_be_read_nothing_is_unlisted(kind: str) -> None:
    lost = Sitemap(MAP, kind, flaws=(Reason.BAD_SITEMAP,))
    text = told([page("/")], sitemaps=(lost,))
    assert "Unlisted" not in text
    assert "Unlisted (1)" in told([page("/")], sitemaps=(lost, READ))


def test_without_sitemaps_the_report_has_no_section_about_them() -> None:
    text = told([page("/"), page("/a")], "/a", sitemaps=())
    assert not any(word in text for word in ("itemap", "Orphans", "Unlisted"))


def test_a_crawl_that_ended_early_knows_them_only_so_far() -> None:
    crawl: list[Outcome] = [page("/"), page("/lone"), page("/b")]
    text = told(crawl, "/", "/lone", ended="stopped by Ctrl-C")
    assert "\nOrphans so far (1)\n" in text
    assert "\nUnlisted so far (1)\n" in text
    for reason in (Reason.PAGE_BUDGET, Reason.TIME_BUDGET, Reason.STOPPED):
        assert "\nOrphans so far" in told([*crawl, Skipped("u", reason)], "/", "/lone")
    refused = replace(page("/"), rejected=(RejectedLink(SITE, Reason.PAGE_BUDGET),))
    assert "\nOrphans so far" in told([refused, *crawl[1:]], "/", "/lone")
    assert "so far" not in told([*crawl, Skipped(SEED, Reason.ROBOTS)], "/", "/lone")


# The sitemaps themselves.


def test_a_broken_page_that_only_a_sitemap_lists_has_the_sitemap_as_referrer() -> None:
    crawl: list[Outcome] = [
        page("/", status=500),
        page("/gone", status=404),
        redirect("/old", "/lost"),
        page("/lost", status=410),
    ]
    text = told(crawl, "/", "/gone", "/old")
    assert f"  404 {SITE}/gone\n      from {MAP}\n" in text
    assert f"  410 {SITE}/lost\n      from {MAP} via {SITE}/old\n" in text
    assert f"  500 {SEED}\n      (seed)\n" in text


def test_no_sitemap_gets_an_escape_sequence_to_the_terminal() -> None:
    evil = "\x1b[2J\n\u202e"
    flawed = Sitemap(MAP + evil, flaws=(Reason.BAD_SITEMAP,), detail=evil, referrer=evil)
    crawl: list[Outcome] = [page("/"), page("/lone" + evil), page("/b" + evil)]
    text = told(crawl, "/", "/lone" + evil, sitemaps=(flawed, READ))
    assert "Orphans (1)" in text
    assert "Unlisted (1)" in text
    assert not set("\x1b\u202e") & set(text)
