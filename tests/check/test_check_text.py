"""The report of a link check for people."""

from __future__ import annotations

import re

import pytest
from check.findings import FACTS, HOSTILE, MOVED, NAMELESS, PAGE, SEED, finding, several
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from trio_crawler.check import Finding, Identity, Verdict, check_report

SGR = re.compile(r"\x1b\[[0-9;]*m")


def test_an_author_reads_by_page_what_to_mend_and_where() -> None:
    twice = [finding(fragment=part, line=line) for line, part in enumerate(("", "a", "b"), 3)]
    assert check_report([MOVED, NAMELESS, SEED, *twice], FACTS) == (
        "Link check, 2026-11-23T13:00:00Z, trio_crawler 0.1.0: 5 faults, 1 note\n"
        "  trio-crawler check ./public\n\n"
        "https://a.test/docs/ (3 faults, 1 note)\n"
        '  3:7 404: /gone "gone" (3 links)\n'
        '  1:7 note 301 -> https://b.test/new: https://b.test/old (written "/gone") "gone"\n\n'
        "(given) (1 fault)\n"
        '  500: https://seed.test/ (written "/gone") "gone"\n\n'
        "https://a.test/ (1 fault)\n"
        '  no_such_host: https://x.test/ (written "/gone") "gone"\n\n'
        "Codes\n"
        "  301: The server redirects for good (301): update the link\n"
        "  no_such_host: The name of the host does not exist\n\n"
        "Not checked (4 links)\n"
        "  3 mailto: links, only the syntax of the address is checked\n"
        "  1 link, disallowed by robots.txt (--ignore-robots checks such links)\n\n"
        "127 different links checked. 4 targets on 3 pages: 5 faults, 1 note"
    )


def test_an_href_is_shown_as_written_only_if_the_target_does_not_show_it() -> None:
    plain = finding(url="https://a.test/docs/x.html", as_written="../docs/x.html#y")
    odd = finding(url="https://a.test/a%20b", as_written="a b")
    told = check_report([plain, odd], FACTS)
    assert '404: /docs/x.html "gone"' in told
    assert '404: /a%20b (written "a b") "gone"' in told


def test_what_ten_pages_have_is_told_once_with_the_first_of_them() -> None:
    pages = [f"https://a.test/{at:02}" for at in range(10)]
    menu = [finding(page=page, detail="it is gone") for page in pages]
    own = finding(page=pages[3], url="https://a.test/own")
    told = check_report([*menu, own], FACTS)
    assert (
        "On 10 pages or more, as from a template (1 target)\n"
        "  404: /gone, 10 links on 10 pages\n"
        "    it is gone\n"
        '    first https://a.test/00:3:7 "gone"\n\n'
        "https://a.test/03 (1 fault)\n"
    ) in told
    assert told.count("/gone, ") == told.count("first ") == 1
    assert "template" not in check_report([*menu[1:], own], FACTS)


def test_a_link_to_the_pages_own_path_elsewhere_is_one_of_a_template() -> None:
    paths = [f"/guide/{at:02}.html" for at in range(10)]
    about = {"text": "Edit", "as_written": ""}
    edits = [
        finding(page=f"https://a.test{path}", url=f"https://code.test/edit{path}x", **about)
        for path in paths
    ]
    others = [
        finding(page=f"https://a.test/{at}.html", url=f"https://a.test/{at}0.html", as_written="")
        for at in range(10)
    ]
    told = check_report([*edits, *others], FACTS)
    assert (
        "On 10 pages or more, as from a template (1 target)\n"
        "  404: https://code.test/edit/*.htmlx, 10 links on 10 pages\n"
        '    first https://a.test/guide/00.html:3:7 "Edit"\n\n'
        "https://a.test/0.html (1 fault)\n"
        '  3:7 404: /00.html "gone"\n'
    ) in told
    assert "20 targets on 20 pages" in told


def test_a_page_that_links_to_its_namesake_has_no_template() -> None:
    pages = ["https://a.test/git.html", "https://a.test/"]
    found = [finding(page=page, url="https://a.test/git-p4.html", as_written="") for page in pages]
    told = check_report([*found, *long_check()], FACTS)
    assert "The worst\n  404: /git-p4.html, 2 links on 2 pages\n" in told
    assert "*" not in told


def long_check() -> list[Finding]:
    """Return 30 pages with 30 faults each, all different."""
    return [
        finding(page=f"https://a.test/{page:02}", line=line, url=f"https://a.test/x{page}/{line}")
        for page in range(30)
        for line in range(1, 31)
    ]


@pytest.mark.parametrize("by_target", [False, True])
def test_a_report_fits_on_two_screens_and_counts_what_it_leaves_out(by_target: bool) -> None:
    found = long_check()
    if by_target:
        found += [replace_page(each, "https://a.test/other") for each in found]
    told = check_report(found, FACTS, by_target=by_target)
    lines = told.splitlines()
    assert 70 < len(lines) <= 100
    assert "-v lists every link, --json FILE writes all to a file" in lines
    end_of_head = next(at for at, line in enumerate(lines) if line.startswith("Below: "))
    assert end_of_head < 24
    rows = [line for line in lines[end_of_head:] if line.startswith("  ")]
    listed = sum(" 404" in line or ":7" in line for line in rows)
    left = sum(int(n.replace(",", "")) for n in re.findall(r"and ([\d,]+) links? ", told))
    assert listed + left == len(found)


def replace_page(each: Finding, page: str) -> Finding:
    return finding(page=page, line=each.line, url=each.url)


def test_a_few_pages_have_all_the_room() -> None:
    found = long_check()[:60]
    assert check_report(found, FACTS).count(":7 404: ") == 60


@pytest.mark.parametrize("by_target", [False, True])
def test_a_full_report_has_a_line_for_each_link(by_target: bool) -> None:
    found = [*long_check(), *(finding(page=f"https://a.test/{at}") for at in range(20))]
    told = check_report(found, FACTS, by_target=by_target, full=True)
    assert len(re.findall(r"\d+:7 ", told)) == len(found)
    assert "use -v" not in told
    assert "-v lists" not in told


def test_a_full_report_has_the_fragments_of_missing_pages() -> None:
    told = check_report([finding(fragment="here")], FACTS, full=True)
    assert "404: /gone#here" in told


def test_assets_that_were_not_asked_for_are_told_with_the_option_that_does() -> None:
    facts = replace(FACTS, not_checked={("image", ""): 2, ("a", ""): 1, ("a", "not_included"): 3})
    told = check_report([], facts)
    assert "  2 images, only pages were asked for (--check assets checks such links)\n" in told
    # A check that came to its end has reached all.
    assert "  1 link, which the crawl did not follow\n" in told
    told = check_report([], replace(facts, ended="stopped"))
    assert "  1 link, not reached before the check ended\n" in told
    assert "  3 links, outside of the crawl (--check external checks such links)\n" in told


# Colours.


def test_faults_are_red_notes_yellow_headings_bold_and_what_is_mended_green() -> None:
    facts = replace(FACTS, mended=[Identity("/", "/back", "404")])
    told = check_report([finding(), MOVED], facts, color=True)
    assert "\x1b[31m404\x1b[0m: /gone" in told
    assert "\x1b[33mnote 301\x1b[0m -> " in told
    assert f"\x1b[1m{PAGE}\x1b[0m (1 fault, 1 note)" in told
    assert "\x1b[1mMended since the baseline (1)\x1b[0m\n  \x1b[32m404\x1b[0m /back on /\n" in told
    assert "\x1b[31m1 fault\x1b[0m, \x1b[33m1 note\x1b[0m" in told
    assert "\x1b[32m0 faults\x1b[0m" in check_report([], FACTS, color=True)


@given(several, st.booleans(), st.booleans())
def test_colours_change_nothing_else_and_a_page_cannot_make_one(
    found: list[Finding], by_target: bool, full: bool
) -> None:
    plain = check_report(found, FACTS, by_target=by_target, full=full)
    assert "\x1b" not in plain
    painted = check_report(found, FACTS, by_target=by_target, full=full, color=True)
    assert SGR.sub("", painted) == plain


def test_hostile_text_stays_escaped_in_colours() -> None:
    told = check_report([finding(text="\x1b[32mfine\x1b[0m\n" + HOSTILE)], FACTS, color=True)
    assert r"\x1b[32mfine\x1b[0m\x0a" in told
    assert "\x1b[32mfine" not in told


def test_the_verdict_of_a_template_is_not_mixed_with_another() -> None:
    pages = [f"https://a.test/{at:02}" for at in range(10)]
    faults = [finding(page=page) for page in pages]
    notes = [finding(page=page, verdict=Verdict.NOTE, line=9) for page in pages]
    told = check_report([*faults, *notes], FACTS)
    assert "(2 targets)" in told
    assert told.index("  404: /gone") < told.index("  note 404: /gone")


def test_pages_that_no_link_leads_to_are_listed_up_to_a_bound_and_other_files_counted() -> None:
    urls = [f"https://a.test/{number:02}" for number in range(22)]
    told = check_report([], replace(FACTS, unlinked=urls, unread={".pdf": 1}))
    assert "Pages that no link leads to (22)\n  https://a.test/00\n" in told
    assert "  https://a.test/19\n  and 2 more, use -v to list all\n" in told
    assert "  1 file of other kinds, that no link leads to, was not read: 1 .pdf\n" in told
    assert "  https://a.test/21\n" in check_report([], replace(FACTS, unlinked=urls), full=True)
    told = check_report([], replace(FACTS, unlinked=[], unread={".md": 2, "": 1}))
    kinds = "2 .md, 1 without an ending"
    alone = "that no link leads to, were not read"
    assert f"Not read\n  3 files of other kinds, {alone}: {kinds}\n" in told
    assert "  A check reads no Markdown: check the HTML that is made of it\n" in told


def test_a_report_of_nothing_but_what_is_mended_names_it_and_escapes_it() -> None:
    mended = [Identity("/p", f"/{number}", "404\x1b[2J") for number in range(25)]
    told = check_report([], replace(FACTS, mended=mended, not_checked={}))
    assert "\n\nBelow: Mended since the baseline (25)\n\n" in told
    assert "\x1b" not in told
