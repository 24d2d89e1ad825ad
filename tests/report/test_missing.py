"""Red links: the pages of a wiki that do not exist yet."""

from __future__ import annotations

import httpx
from cases import for_each

from trio_crawler.model import Outcome, Page, Reason, RejectedLink, Statistics
from trio_crawler.report import CrawlFacts, Report
from trio_crawler.report.broken import is_red_link

WIKI = "https://w.test/"
RED = f"{WIKI}index.php?title=New&action=edit&redlink=1"


def told(*outcomes: Outcome, full: bool = False) -> str:
    report = Report(full=full)
    for outcome in outcomes:
        report.add(outcome)
    return report.text(CrawlFacts(Statistics(), 1, seeds=[]))


def page(
    path: str, *links: str, rejected: tuple[RejectedLink, ...] = (), status: int = 200
) -> Page:
    return Page(WIKI + path, status, httpx.Headers(), b"", links=links, rejected=rejected)


def nofollow(url: str, reason: Reason = Reason.REL_NOFOLLOW) -> tuple[RejectedLink]:
    return (RejectedLink(url, reason),)


@for_each(
    "url, red",
    [
        (RED, True),
        (f"{WIKI}w?redlink=1", True),
        (f"{WIKI}w?redlink=1&title=New&veaction=edit", True),
        (f"{WIKI}index.php?title=Old&action=edit", False),
        (f"{WIKI}w?noredlink=1", False),
        (f"{WIKI}w?redlink=10", False),
        (f"{WIKI}redlink=1", False),
    ],
)
def test_a_red_link_of_mediawiki_is_known_by_its_url(url: str, red: bool) -> None:
    assert is_red_link(url) == is_red_link(url, nofollow=True) == red


@for_each(
    "url, red",
    [
        (f"{WIKI}doku.php?id=new", True),
        (f"{WIKI}wiki/doku.php?id=a:new", True),
        (f"{WIKI}doku.php?id=old&do=edit", False),
        (f"{WIKI}doku.php?do=recent&id=old", False),
        (f"{WIKI}doku.php?id=", False),
        (f"{WIKI}new", False),
    ],
)
def test_a_red_link_of_dokuwiki_is_the_address_of_a_page_with_rel_nofollow(
    url: str, red: bool
) -> None:
    assert is_red_link(url, nofollow=True) == red
    assert not is_red_link(url)


def test_a_page_that_was_fetched_exists_although_a_link_to_it_says_nofollow() -> None:
    link = page("x", rejected=nofollow(f"{WIKI}doku.php?id=start"))
    assert "do not exist" not in told(link, page("doku.php?id=start"))
    assert "do not exist yet (1)" in told(link, page("doku.php?id=start", status=404))


def test_a_red_link_to_another_site_counts_too() -> None:
    other = nofollow("https://other.test/w?redlink=1", Reason.OTHER_SITE)
    assert "do not exist yet (1)" in told(page("a", rejected=other))
