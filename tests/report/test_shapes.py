"""The table of the shapes of URLs, and the expressions that leave a shape out."""

from __future__ import annotations

import re
import shlex

import httpx
import pytest
from cases import for_each
from hypothesis import given
from hypothesis import strategies as st

from trio_crawler import Job, Reason, excluding
from trio_crawler.model import Failure, Outcome, Page, Redirect, Skipped, Statistics
from trio_crawler.report import CrawlFacts, Report, Shape, shapes
from trio_crawler.report.shapes import exclusion, has_long_number, shape_of

SITE = "https://h.test/"


def page(path: str, title: str | None = None, **about: object) -> Page:
    given = {"status": 200, "headers": httpx.Headers(), "body": b"", "content_type": "text/html"}
    return Page(SITE + path, title=title, **(given | about))  # type: ignore[arg-type]


def skipped(path: str, reason: Reason = Reason.STOPPED) -> Skipped:
    return Skipped(SITE + path, reason)


def shapes_of(*outcomes: Outcome) -> list[Shape]:
    report = Report()
    for outcome in outcomes:
        report.add(outcome)
    return report.shapes()


def counts(*outcomes: Outcome) -> dict[str, tuple[int, int, int]]:
    rows = shapes_of(*outcomes)
    return {row.url.removeprefix(SITE): (row.fetched, row.distinct, row.waiting) for row in rows}


# Counts.


def test_a_shape_counts_its_pages_their_distinct_titles_and_what_waits() -> None:
    assert counts(
        *(page(f"list?tag={n}&page={n % 3}", f"Articles {n % 4}") for n in range(9)),
        *(page(f"p/{n}", f"Article {n}") for n in range(5)),
        *(skipped(f"list?page={n}&tag=x") for n in range(7)),
        page("docs/a", "A"),
        page("docs/b", "A"),
        page("docs/", "Docs"),
    ) == {
        "list?page&tag": (9, 4, 7),
        "docs/*": (3, 2, 0),
        "p/0": (5, 5, 0),
    }


def test_only_urls_that_wait_because_the_crawl_ended_early_are_waiting() -> None:
    early = [Reason.STOPPED, Reason.PAGE_BUDGET, Reason.TIME_BUDGET]
    others = [Reason.ROBOTS, Reason.HOST_GIVEN_UP]
    assert counts(*(skipped(f"p/{at}", each) for at, each in enumerate(early + others))) == {
        "p/0": (0, 0, 3)
    }


def test_a_url_that_waits_in_a_directory_is_recorded_by_itself() -> None:
    found = Report()
    found.add(page("p/1", "One"))
    found.add_waiting(f"{SITE}p/2")
    assert found.shapes() == [Shape(f"{SITE}p/0", 1, 1, 1, r"^https://h\.test/p/[0-9]+$")]
    assert found.shapes()[0].cost == 1


def test_an_error_a_duplicate_and_a_second_page_with_the_same_title_are_not_distinct() -> None:
    assert counts(
        page("p/1", "One"),
        page("p/2", "One"),
        page("p/3", "Gone", status=404),
        page("p/4", "Four", duplicate_of=f"{SITE}p/1"),
        page("p/5", "Five", status=304),
        Redirect(f"{SITE}p/6", 301, SITE),
        Failure(f"{SITE}p/7", Reason.TIMEOUT),
    ) == {"p/0": (5, 2, 0)}


def test_pages_without_a_title_are_told_apart_by_size_type_and_links() -> None:
    assert counts(
        page("p/1", body=b"x"),
        page("p/2", body=b"y"),
        page("p/3", body=b"xx"),
        page("p/4", body=b"x", content_type="text/plain"),
        page("p/5", body=b"x", links=(SITE,)),
        page("p/6", status=304),
        page("p/7", status=304),
    ) == {"p/0": (7, 6, 0)}


def test_where_all_pages_of_a_host_have_one_title_their_texts_count() -> None:
    same = [page(f"p/{n}", "Our shop", body=b"x" * n) for n in range(9)]
    assert counts(*same, page("p/9", "Our shop", body=b"")) == {"p/0": (10, 9, 0)}
    # A title that only one shape has says that its pages are alike.
    assert counts(*same, page("about", "About us"))["p/0"] == (9, 1, 0)
    assert counts(*same, page("p/10", "About us"))["p/0"] == (10, 2, 0)


def test_the_shapes_that_cost_most_come_first() -> None:
    found = shapes_of(
        *(page(f"good/{n}", f"{n}") for n in range(30)),
        *(skipped(f"waits/{n}") for n in range(5)),
        *(page(f"same/{n}", "Same") for n in range(9)),
    )
    names = [row.url.removeprefix(SITE) for row in found]
    assert names == ["same/0", "waits/0", "good/0"]
    assert [row.cost for row in found[:2]] == [8, 5]


def test_a_shape_that_comes_late_is_counted_although_thousands_came_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(shapes, "MOST_SHAPES", 100)
    letters = [f"{one}{two}{three}/x" for one in "abcdefgh" for two in "abcdef" for three in "abc"]
    found = shapes_of(
        *(page(f"trap/{n}", "Same") for n in range(9)),
        *(page(path, path) for path in letters),
        *(page(f"late?q={n}", "Same") for n in range(9)),
    )
    rows = found
    assert len(rows) <= 101
    assert {row.url: row.fetched for row in rows[:2]} == {f"{SITE}trap/0": 9, f"{SITE}late?q": 9}
    assert (rows[-1].url, rows[-1].exclude) == ("", "")
    assert sum(row.fetched for row in rows) == 18 + len(letters)


# Expressions.


@for_each(
    "url, shape, exclude",
    [
        ("p/17", "p/0", r"^https://h\.test/p/[0-9]+$"),
        ("2024/05/a-7", "0/0/a-0", r"^https://h\.test/[0-9]+/[0-9]+/a-[0-9]+$"),
        ("a+b?q=1", "a+b?q", r"^https://h\.test/a\+b\?q(=[^&]*)?(&q(=[^&]*)?)*$"),
        ("docs/a", "docs/*", r"^https://h\.test/docs/(?:[^/?%0-9]|%..)*$"),
        ("%C3%A0%20b", "*", r"^https://h\.test/(?:[^/?%0-9]|%..)*$"),
    ],
)
def test_an_expression_is_as_short_as_the_shape_allows(url: str, shape: str, exclude: str) -> None:
    assert shape_of(SITE + url) == SITE + shape
    assert exclusion(SITE + shape) == exclude
    assert re.search(exclude, SITE + url)


words = st.sampled_from(["a", "b", "page", "x.y", "a+b", "p1", "7", "2024", "%20", "%C3%A9", "*"])
paths = st.lists(st.lists(words, max_size=3).map("".join), min_size=1, max_size=3).map("/".join)
names = st.sampled_from(["a", "b", "page", "ab", "x[]", "", "p2", "a.b"])
values = st.sampled_from(["", "=", "=1", "=x", "=a=b", "=/?x", "=%26"])
queries = st.lists(st.tuples(names, values).map("".join), min_size=1, max_size=4).map("&".join)
urls = st.builds(
    lambda host, path, query: f"https://{host}/{path}{query}",
    st.sampled_from(["h.test", "hxtest", "h.test:8080"]),
    paths,
    st.just("") | queries.map("?".__add__),
)


@given(st.lists(urls, min_size=2, max_size=8))
def test_an_expression_matches_the_urls_of_its_shape_and_no_others(found: list[str]) -> None:
    for shape in {shape_of(url) for url in found}:
        expression = exclusion(shape)
        scope = excluding(expression)
        for url in found:
            own = shape_of(url) == shape
            assert (scope(Job(url)) is Reason.EXCLUDED) == own, (expression, url)


LONG = [
    "0123456789abcdef0123",
    "4f5a6b7c8d9e0f1a2b3c",
    "12345678-9abc-def0-1234-56789abcdef0",
    "7",
]


def test_an_expression_matches_uuids_and_long_hexadecimal_numbers_if_the_shape_has_some() -> None:
    pages = [page(f"commit/{each}", "Commit") for each in LONG]
    others = [f"{SITE}{path}" for path in ("commit/", "commit/a", "commit/7/", "commit/x12", "7")]
    (row,) = shapes_of(*pages)
    assert (row.url, row.fetched) == (f"{SITE}commit/0", 4)
    for each in pages:
        assert re.search(row.exclude, each.url)
    for url in others:
        assert not re.search(row.exclude, url)
    assert [has_long_number(each) for each in LONG] == [True, True, True, False]


@given(st.text(st.characters(exclude_categories=()), max_size=30))
def test_whatever_a_link_says_has_a_shape(text: str) -> None:
    assert isinstance(shape_of(text), str)
    assert isinstance(shape_of(f"https://h.test/{text}"), str)
    # What no encoding can hold, next to what has a pattern.
    assert shape_of("https://h.test/1\ud800") == "https:*"


def test_an_expression_for_a_hostile_query_is_searched_quickly() -> None:
    expression = exclusion(f"{SITE}x?{'&'.join('abcdefgh')}")
    assert not re.search(expression, f"{SITE}x?{'a&' * 1_000}b")


# The section.


def told(*outcomes: Outcome, full: bool = False, ended: str = "", waiting: int = 0) -> str:
    report = Report(full=full)
    for outcome in outcomes:
        report.add(outcome)
    for n in range(waiting):
        report.add_waiting(f"{SITE}waits/{n}")
    return report.text(CrawlFacts(Statistics(), 1, seeds=[], ended=ended))


SAME = [page(f"list?tag={n}", "Articles", body=b"x" * n) for n in range(1_234)]
HONEST = [page(f"p/{n}", f"Article {n}") for n in range(100)]


def test_a_crawl_whose_pages_are_mostly_the_same_has_a_table_of_shapes() -> None:
    table = r"""Shapes of URLs (1): fetched, distinct titles, waiting
  1,234  1  0  https://h.test/list?tag
      --exclude '^https://h\.test/list\?tag(=[^&]*)?(&tag(=[^&]*)?)*$'

"""
    assert table in told(*SAME, *HONEST)
    assert "Shapes" not in told(*HONEST)
    assert "Shapes" not in told(*SAME[:102], *HONEST)
    assert "Shapes" in told(*SAME[:103], *HONEST)


def test_few_pages_that_are_the_same_are_a_table_only_in_a_full_report_of_an_early_end() -> None:
    few = [*SAME[:18], page("about", "About")]
    assert "Shapes" not in told(*few, ended="stopped by Ctrl-C")
    assert "Shapes" not in told(*few, full=True)
    assert "Shapes of URLs (1)" in told(*few, full=True, ended="stopped by Ctrl-C")
    assert "Shapes of URLs (2)" in told(*few, skipped("p/1"), full=True)
    assert "Shapes of URLs (2)" in told(*few, full=True, waiting=1)
    assert "Shapes" in told(*few, SAME[20])


def test_shapes_that_cost_little_beside_the_others_are_left_out() -> None:
    few = [page(f"p/{n}", "Page") for n in range(50)]
    assert "Shapes of URLs (1)" in told(*SAME, *few)
    assert "Shapes of URLs (2)" in told(*SAME, *few, full=True)


def test_a_crawl_that_ended_early_and_left_nothing_has_no_table() -> None:
    assert "Shapes" not in told(*HONEST, ended="stopped by Ctrl-C")


def test_a_shell_reads_the_expression_as_it_is() -> None:
    text = told(skipped("it's;rm?a=1&b=2"), full=True)
    (line,) = [line.strip() for line in text.splitlines() if "--exclude" in line]
    option, expression = shlex.split(line)
    assert option == "--exclude"
    assert re.search(expression, f"{SITE}it's;rm?b=3&a=")
    assert not re.search(expression, f"{SITE}it's;rm?b=3")
