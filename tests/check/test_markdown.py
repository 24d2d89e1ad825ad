from __future__ import annotations

import re

import pytest
from check.findings import FACTS, HOSTILE, MOVED, PAGE, SEED, SEVERAL, finding, path_of, several
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from trio_crawler.check.finding import Finding
from trio_crawler.check.github import MAX_BYTES, escaped, to_markdown
from trio_crawler.report.visible import visible

RENDER = MarkdownIt("commonmark").enable(["table", "strikethrough"])


def text(found: list[Finding] | tuple[Finding, ...], **more: object) -> str:
    return b"".join(to_markdown(found, FACTS, **more)).decode()  # type: ignore[arg-type]


def test_a_summary_has_the_counts_and_a_table_for_each_page() -> None:
    assert text([MOVED, finding(), SEED], path_of=path_of) == (
        "## Links: 2 faults, 1 note\n\n"
        "- 127 links checked on 2026-11-23T13:00:00Z by trio-crawler 0.1.0\n"
        "- command: trio-crawler check ./public\n"
        "- not checked: 3 mailto: links, only the syntax of the address is checked\n"
        "- not checked: 1 link, disallowed by robots.txt (--ignore-robots checks such links)\n"
        "\n### public/docs/index.html\n\n"
        "| Line | Finding | Link | |\n| ---: | --- | --- | --- |\n"
        "| 3 | fault 404 | [https\\://a.test/gone](<https://a.test/gone>) “gone” "
        "| The server answers 404 (Not Found) |\n"
        "| 1 | note 301 | [https\\://b.test/old](<https://b.test/old>) “gone” "
        "| The server redirects for good (301) to https\\://b.test/new: update the link |\n"
        "\n### Seeds\n\n"
        "| Line | Finding | Link | |\n| ---: | --- | --- | --- |\n"
        "|  | fault 500 | [https\\://seed.test/](<https://seed.test/>) “gone” "
        "| The server answers 500 (Internal Server Error) |\n"
    )


def test_pages_with_the_most_faults_come_first() -> None:
    pages = {"https://a.test/1": 1, "https://a.test/3": 3, "https://a.test/2": 2}
    found = [finding(page=page, line=line) for page, n in pages.items() for line in range(n)]
    assert re.findall("### .*/([0-9])", text([*SEVERAL[:1] * 9, *found])) == ["3", "2", "1"]


def test_a_summary_has_at_most_one_mebibyte_and_says_what_is_left_out() -> None:
    found = [finding(url=f"https://a.test/{'x' * 400}{at}", line=at + 1) for at in range(2_000)]
    told = text(found)
    assert MAX_BYTES - 2_000 < len(told.encode()) <= MAX_BYTES
    rows = told.count("| fault 404 |")
    assert told.endswith(f"\nLeft out here: {2_000 - rows:,} findings.\n")


@pytest.mark.parametrize("limit", [0, 4_096, 10_000])
def test_a_smaller_bound_is_kept_down_to_four_kibibytes(limit: int) -> None:
    found = [finding(line=line, page=f"https://a.test/{line % 7}") for line in range(500)]
    assert len(text(found, max_bytes=limit).encode()) <= max(limit, 4_096)


def test_no_page_has_a_heading_without_a_row() -> None:
    found = [finding(page=f"https://a.test/{'y' * 300}{at}") for at in range(100)]
    told = text(found, max_bytes=5_000)
    assert told.count("### ") == told.count("| fault 404 |") > 1


lines = st.text(st.sampled_from(HOSTILE) | st.characters(), max_size=40).map(visible)


@given(lines)
def test_any_text_is_shown_as_it_is(line: str) -> None:
    words = " ".join(line.split())
    rendered = RENDER.render(f"| a |\n| --- |\n| {escaped(words)} |\n")
    (cell,) = re.findall("<td>(.*?)</td>", rendered, re.DOTALL)
    assert cell == html(words)


def html(text: str) -> str:
    for letter, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;")):
        text = text.replace(letter, entity)
    return text


@given(several)
def test_any_findings_make_tables_of_four_cells_and_links_to_the_web_alone(
    found: list[Finding],
) -> None:
    rendered = RENDER.render(text(found, path_of=path_of))
    rows = re.findall("<tr>(.*?)</tr>", rendered, re.DOTALL)
    bodies = [row for row in rows if "<td" in row]
    assert len(bodies) == len(found)
    assert {row.count("<td") for row in bodies} <= {4}
    assert set(re.findall("<([a-z0-9]+)", rendered)) <= set(
        "h2 h3 ul li table thead tbody tr th td a".split()
    )
    assert all(href.startswith("http") for href in re.findall('href="([^"]*)"', rendered))


def test_a_target_is_linked_with_its_query_as_it_is() -> None:
    rendered = RENDER.render(text([finding(url="https://b.test/?a=1&copy;=2|3", page=PAGE)]))
    assert 'href="https://b.test/?a=1&amp;copy;=2%7C3"' in rendered


def test_a_malformed_link_is_no_link() -> None:
    assert "](<" not in text([finding(url="http:// x", code="bad_url")])
