"""The first lines of the report, about links that were left out for the sake of the host."""

from __future__ import annotations

import random

import httpx
import pytest
from cases import for_each
from cli.command import here
from sites.raw import html, reply, threaded_raw_server

from trio_crawler.cli.main import report_command
from trio_crawler.model import Outcome, Page, Reason, Redirect, RejectedLink, Skipped, Statistics
from trio_crawler.report import CrawlFacts, Report

SITE = "http://h.test/"
META, HEADER, REL = Reason.META_NOFOLLOW, Reason.HEADER_NOFOLLOW, Reason.REL_NOFOLLOW


def page(
    url: str, *links: str, depth: int = 0, left: dict[str, Reason] | None = None, status: int = 200
) -> Page:
    rejected = tuple(RejectedLink(SITE + path, reason) for path, reason in (left or {}).items())
    found = tuple(SITE + link for link in links)
    return Page(
        SITE + url, status, httpx.Headers(), b"", depth=depth, links=found, rejected=rejected
    )


def left(number: int, reason: Reason, name: str = "x") -> dict[str, Reason]:
    return {f"{name}{each}": reason for each in range(number)}


def report_of(*outcomes: Outcome) -> Report:
    report = Report()
    for outcome in outcomes:
        report.add(outcome)
    return report


def first_lines(report: Report, seeds: int = 1) -> list[str]:
    """Return the first lines of the report, without the heading itself."""
    facts = CrawlFacts(Statistics(), 1, seeds=[SITE] * seeds)
    return report.text(facts).partition("\n\n")[0].splitlines()[1:]


@pytest.mark.parametrize(
    ("reason", "line"),
    [
        (
            META,
            "The start page asks crawlers not to follow its links (robots meta nofollow): "
            "7 links not followed; --ignore-nofollow follows them",
        ),
        (
            HEADER,
            "The start page asks crawlers not to follow its links (X-Robots-Tag nofollow): "
            "7 links not followed; --ignore-nofollow follows them",
        ),
        (
            REL,
            "The start page asks crawlers not to follow links (rel=nofollow): "
            "7 links not followed; --ignore-nofollow follows them",
        ),
        (
            Reason.ROBOTS,
            "robots.txt disallows links of the start page: "
            "7 links not followed; --ignore-robots follows them",
        ),
    ],
)
def test_a_crawl_that_ends_at_its_seed_says_why_and_which_option_goes_on(reason, line) -> None:
    report = report_of(page("", left=left(7, reason)))
    assert first_lines(report) == [line]
    assert report.turned_away
    assert report.problems == 0


def test_of_several_reasons_each_has_a_line_the_most_frequent_first() -> None:
    links = left(1, Reason.ROBOTS, "r") | left(2, REL, "n")
    report = report_of(page("", left=links), page("b", left={"b0": REL}))
    assert first_lines(report, seeds=2) == [
        "The start pages ask crawlers not to follow links (rel=nofollow): 3 links not followed; "
        "--ignore-nofollow follows them",
        "robots.txt disallows links of the start pages: 1 link not followed; "
        "--ignore-robots follows it",
    ]
    assert report.turned_away


def test_a_crawl_that_leaves_out_more_links_than_it_fetches_pages_says_so() -> None:
    pages = [page("", "a", "b"), page("a", depth=1), page("b", depth=1, left=left(4, META))]
    report = report_of(*pages)
    assert first_lines(report) == [
        "Pages ask crawlers not to follow their links (robots meta nofollow): 4 links not "
        "followed, beside 3 pages fetched; --ignore-nofollow follows them"
    ]
    assert not report.turned_away


def test_a_link_counts_once_and_not_if_another_link_to_it_was_followed() -> None:
    links = left(3, REL) | {"a": REL, "b": REL}
    pages = [page("", "a", "b", left=links)]
    pages += [page("a", depth=1, left=links), page("b", depth=1, left=links)]
    for order in (pages, pages[::-1]):
        assert first_lines(report_of(*order)) == []
    assert len(first_lines(report_of(*pages, page("c", left={"x9": REL, "x10": REL})))) == 1


@for_each(
    "outcomes",
    [
        [page("")],
        [page("", left=left(9, Reason.TOO_DEEP))],
        [page("", left=left(9, Reason.OTHER_SITE))],
        [page("", "a", left=left(2, META)), page("a", depth=1)],
        [Redirect(SITE, 302, SITE + "a", rejected=Reason.ROBOTS)],
    ],
    ids=["no link", "depth", "other site", "fewer than pages", "no page"],
)
def test_any_other_crawl_says_nothing_and_is_not_turned_away(outcomes) -> None:
    report = report_of(*outcomes)
    assert not report.turned_away
    assert not any("not followed" in line for line in first_lines(report))


def test_links_that_lead_outside_do_not_count_and_other_reasons_do() -> None:
    links = left(2, META) | left(3, Reason.OTHER_SITE, "o") | left(3, Reason.EXCLUDED, "e")
    assert report_of(page("", left=links)).turned_away
    assert not report_of(page("", left=links | {"t": Reason.DEEP_PATH})).turned_away


def test_urls_that_were_skipped_because_of_robots_txt_count() -> None:
    """The robots.txt of another host is not known when the links to it are found."""
    barred = [Skipped(f"http://other.test/{n}", Reason.ROBOTS, depth=1) for n in range(2)]
    report = report_of(page(""), *barred)
    assert first_lines(report) == [
        "robots.txt disallows links of the start page: 2 links not followed; "
        "--ignore-robots follows them"
    ]
    assert report.turned_away


def test_the_first_lines_do_not_depend_on_the_order_of_the_outcomes() -> None:
    links = [left(5, META), left(8, REL), left(3, Reason.ROBOTS)]
    pages = [page(f"p{n}", "x1", depth=1, left=each) for n, each in enumerate(links)]
    expected = first_lines(report_of(*pages))
    assert expected
    for seed in range(5):
        mixed = random.Random(seed).sample(pages, len(pages))
        assert first_lines(report_of(*mixed)) == expected


def test_at_most_100_000_links_are_counted() -> None:
    links = left(100_001, META)
    (line,) = first_lines(report_of(page("", left=links)))
    assert ": 100,000 or more links not followed; " in line


NOFOLLOW = '<meta name="robots" content="index, nofollow">'
HTML = {"Content-Type": "text/html"}


def test_the_command_exits_with_3_and_the_report_of_the_directory_says_the_same(tmp_path, capsys):
    links = "".join(f'<a href="/{n}">{n}</a>' for n in range(7)) + "<a href=//o.test/>o</a>"
    site = {"/": reply(200, HTML, (NOFOLLOW + links).encode())}
    with threaded_raw_server(site) as server:
        assert here("-o", str(tmp_path), server.url) == 3
        crawled = capsys.readouterr().out
        assert server.targets == ["/robots.txt", "/"]
        assert report_command.main([str(tmp_path)], standalone_mode=False) == 3
        again = capsys.readouterr().out
        assert here("--ignore-nofollow", server.url) == 1
    assert crawled.startswith(
        f"Crawl of {server.url}: no link was followed\n"
        "The start page asks crawlers not to follow its links (robots meta nofollow): "
        "7 links not followed; --ignore-nofollow follows them\n\n"
    )
    assert again.partition("Finished")[0] == crawled.partition("Finished")[0]


def test_a_page_without_links_is_status_0(capsys):
    site = {"/": reply(200, HTML, NOFOLLOW.encode()), "/a": html()}
    with threaded_raw_server(site) as server:
        assert here(server.url, f"{server.url}a") == 0
    assert "not followed" not in capsys.readouterr().out
