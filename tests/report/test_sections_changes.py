from __future__ import annotations

from trio_crawler.report.sections import changes
from trio_crawler.store import Change

URL = "https://a.test/"


def test_each_kind_of_change_is_counted_and_listed_with_its_details() -> None:
    found = [
        Change(f"{URL}same", "unchanged"),
        Change(f"{URL}z", "new"),
        Change(f"{URL}a", "new"),
        Change(f"{URL}b", "changed", "10 bytes, then 20"),
        Change(f"{URL}c", "gone", "404"),
    ]
    assert changes(found, 1_700_000_000.0) == (
        "Changes since 2023-11-14 22:13 UTC: 2 new, 1 changed, 1 gone, 1 unchanged\n"
        "New (2)\n"
        "  https://a.test/a\n"
        "  https://a.test/z\n"
        "Changed (1)\n"
        "  https://a.test/b (10 bytes, then 20)\n"
        "Gone (1)\n"
        "  https://a.test/c (404)"
    )


def test_unchanged_urls_with_a_detail_are_counted_and_in_full_listed() -> None:
    found = [
        Change(f"{URL}same", "unchanged"),
        Change(f"{URL}token", "unchanged", "only its markup: 12 bytes, before: 12"),
    ]
    line = "Changes since 1970-01-01 00:00 UTC: 0 new, 0 changed, 0 gone, 2 unchanged "
    line += "(1 of them but for the markup)"
    assert changes(found, 0.5) == line
    assert changes(found, 0.5, full=True) == (
        f"{line}\nUnchanged but for the markup (1)\n"
        "  https://a.test/token (only its markup: 12 bytes, before: 12)"
    )


def test_where_nothing_has_changed_one_line_says_so() -> None:
    found = [Change(URL, "unchanged")] * 1200
    assert changes(found, 0.5) == (
        "Changes since 1970-01-01 00:00 UTC: 0 new, 0 changed, 0 gone, 1,200 unchanged"
    )


def test_the_first_twenty_are_listed_in_order_and_in_full_all_are() -> None:
    found = [Change(f"{URL}{number:02}", "gone", "404") for number in reversed(range(30))]
    short, full = changes(found, None), changes(found, None, full=True)
    assert short.splitlines()[0].startswith("Changes since the last walk: 0 new, 0 changed, 30 g")
    listed = [f"  {URL}{number:02} (404)" for number in range(30)]
    assert short.splitlines()[2:] == [*listed[:20], "  and 10 more, use -v to list all"]
    assert full.splitlines()[2:] == listed


def test_nothing_that_a_terminal_obeys_gets_through() -> None:
    told = changes([Change(f"{URL}\x1b", "changed", "title \u202e")], 1.0)
    assert r"https://a.test/\x1b (title \u202e)" in told
