"""All that pages point to, and the places of pages, in a crawl directory."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import zlib
from array import array
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
from cases import examples, for_each
from hypothesis import given
from hypothesis import strategies as st
from store.batches import NOW, SITE, page, stored, texts, walk

from trio_crawler.link import Link, LinkKind
from trio_crawler.model import Checked, Outcome, Page, Reason
from trio_crawler.policy.settings import Checks
from trio_crawler.store import schema
from trio_crawler.store.database import BadRow
from trio_crawler.store.errors import StoreError
from trio_crawler.store.history import History
from trio_crawler.store.rows import MAX_SIZE, found_fields, found_values
from trio_crawler.store.runs import End
from trio_crawler.store.store import Store
from trio_crawler.store.writer import Batch

ODD = Link("mailto:\ud800", LinkKind.A, "", 'a "\x00\ud83d"', 3, 7, "&#xD800;", False, True)
LINKS = (Link(SITE + "a", LinkKind.IMAGE, "x", "text", 1, 2, "a#x", nofollow=True), ODD)
OUT = "https://out.test/"
KEYS = st.frozensets(st.integers(0, 2**64 - 1), max_size=9)
links = st.builds(
    Link,
    texts,
    st.sampled_from(LinkKind),
    *(texts, texts, st.integers(0, 2**40), st.integers(0, 2**40), texts),
    *(st.booleans(), st.booleans()),
)
EVERY = Checks()


def written(directory: Path, outcomes: list[Outcome], refresh: bool = False) -> list[Outcome]:
    walk(directory, outcomes, refresh=refresh)
    with History(directory) as history:
        return list(history.outcomes())


def changed(directory: Path, sql: str, *values: Any) -> None:
    with closing(sqlite3.connect(directory / "crawl.sqlite")) as connection, connection:
        connection.execute(sql, values)


@examples(60)
@given(st.lists(links, max_size=9).map(tuple), st.none() | KEYS)
def test_links_and_places_are_read_back_as_they_were(found, targets):
    outcome = page(found=found, targets=targets)
    values = found_values(outcome)
    if values is None:
        assert (found, targets) == ((), None)
    else:
        assert found_fields(outcome, values) == {"found": found, "targets": targets}


def test_outcomes_of_a_directory_have_links_and_places(tmp_path):
    both = page("both", found=LINKS, targets=frozenset({1, 2**64 - 1}))
    empty = page("empty", targets=frozenset())
    check = Checked(OUT, 200, targets=frozenset({7}))
    made = [both, page("none"), empty, check, Checked(f"{OUT}head", 200)]
    assert written(tmp_path, made) == list(map(stored, made))


def test_a_crawl_without_checks_writes_no_links_of_all_kinds(tmp_path):
    written(tmp_path, [page(links=(SITE + "a",)), Checked(OUT, 404)])
    with closing(sqlite3.connect(tmp_path / "crawl.sqlite")) as connection:
        assert connection.execute("SELECT count(*) FROM found_").fetchone() == (0,)


def test_a_page_that_has_not_changed_has_the_links_and_places_of_its_content(tmp_path):
    whole = page(found=LINKS, targets=frozenset({5}))
    walk(tmp_path, [whole])
    with Store.open(tmp_path, refresh=True) as store:
        facts = store.facts(1)
        assert facts is not None
        assert (facts.found, facts.targets) == (LINKS, {5})
        unchanged = page(status=304, body=b"", found=facts.found, targets=facts.targets)
        row = (2, unchanged.url, "page", 0, 10, None, None)
        store.write(Batch(admitted=[row], settled=[(2, NOW, unchanged)]))
        store.end(End.FINISHED, [], 1.0)
    with History(tmp_path) as history:
        (again,) = history.outcomes()
        assert isinstance(again, Page)
        assert (again.status, again.found, again.targets) == (304, LINKS, {5})
    with closing(sqlite3.connect(tmp_path / "crawl.sqlite")) as connection:
        # It is stored once.
        assert connection.execute("SELECT number FROM found_").fetchall() == [(1,)]


@for_each(
    "made, checks, asked_by_validator",
    [
        ({}, Checks.off(), True),
        ({}, EVERY, False),
        ({"found": LINKS}, Checks(fragments=False), True),
        ({"found": LINKS}, EVERY, False),
        ({"targets": frozenset()}, EVERY, True),
        ({"content_type": "image/png"}, EVERY, True),
        ({"content_type": "text/css"}, EVERY, False),
        ({"content_type": "text/css", "found": LINKS}, EVERY, True),
    ],
)
def test_a_page_whose_links_are_not_stored_is_asked_for_whole_by_checks(
    tmp_path, made, checks, asked_by_validator
):
    walk(tmp_path, [page(headers=httpx.Headers({"ETag": "1"}), **made)])
    with Store.open(tmp_path, refresh=True) as store:
        assert bool(list(store.validators(checks))) == asked_by_validator


def test_the_links_are_small():
    names = [f"{number}.html" for number in range(500)]
    many = tuple(Link(SITE + name, text=f"The page {name}", as_written=name) for name in names)
    values = found_values(page(found=many))
    assert values is not None
    assert len(values[1] or b"") < 500 * 25


def bomb(size: int) -> bytes:
    return zlib.compress(b"[" + b" " * size + b"]", 9)


@for_each(
    "size, packed",
    [
        (None, b"[]"),
        (-1, b"[]"),
        (7, b"no zlib"),
        (8, b"no zlib"),
        (2, b"\xff\xff"),
        (9, zlib.compress(b"[]")),
        (1, zlib.compress(b"[]")),
        (2, zlib.compress(b"[]")[:-1]),
        (2, b"{}"),
        (5, b"[[1]]"),
        (10, json.dumps([["x", "nokind"]])),
        (MAX_SIZE + 1, bomb(MAX_SIZE - 1)),
        (1000, bomb(10_000_000)),
        ("9", b"[]"),
        (2, "[]"),
    ],
)
def test_damaged_links_are_told_as_damage(tmp_path, size, packed):
    walk(tmp_path, [page(found=LINKS)])
    changed(tmp_path, "UPDATE found_ SET size = ?, links = ?", size, packed)
    with History(tmp_path) as history, pytest.raises(StoreError, match="damaged"):
        list(history.outcomes())
    with Store.open(tmp_path) as store, pytest.raises(StoreError, match="damaged"):
        store.facts(1)


@pytest.mark.parametrize("packed", [b"1234567", "12345678", 8])
def test_damaged_places_are_told_as_damage(tmp_path, packed):
    walk(tmp_path, [Checked(OUT, 200, targets=frozenset({1}))])
    changed(tmp_path, "UPDATE found_ SET targets = ?", packed)
    with History(tmp_path) as history, pytest.raises(StoreError, match="damaged"):
        list(history.outcomes())


def test_links_beyond_the_bound_of_the_reader_are_cut_by_the_writer(monkeypatch):
    monkeypatch.setattr("trio_crawler.store.rows.MAX_SIZE", 1_000)
    many = tuple(Link(f"{SITE}{n}") for n in range(100))
    made = page(found=many)
    fields = found_fields(made, found_values(made))
    assert fields["found"] == many[: len(fields["found"])]
    assert 5 < len(fields["found"]) < 50


def test_places_of_random_bytes_are_places():
    keys = array("Q", range(5)).tobytes()
    assert found_fields(Checked(OUT), (None, None, keys)) == {"targets": frozenset(range(5))}
    with pytest.raises(BadRow):
        found_fields(Checked(OUT), (None, None, keys[:-1]))


@pytest.mark.skipif(shutil.which("sqlite3") is None, reason="no shell of SQLite")
def test_the_shell_of_sqlite_reads_the_links_as_the_schema_says(tmp_path):
    one, two = page("short", found=LINKS[:1]), page("long", found=LINKS[:1] * 50)
    walk(tmp_path, [one, two])
    query = (schema.__doc__ or "").split("does:\n")[1].split("\n\n`targets`")[0]
    shell = ["sqlite3", "-readonly", str(tmp_path / "crawl.sqlite"), query]
    ran = subprocess.run(shell, capture_output=True, text=True, timeout=20, check=True)
    lines = ran.stdout.splitlines()
    assert len(lines) == 51
    assert set(lines) == {f"{SITE}short|1|{SITE}a", f"{SITE}long|1|{SITE}a"}


# What earlier walks have checked.


def fine(directory: Path, max_age: float = 1e9) -> dict[str, bool]:
    with Store.open(directory, refresh=True) as store:
        return {url: known.places for url, known in store.fine_checks(max_age)}


def test_only_the_urls_whose_last_check_was_fine_are_known(tmp_path):
    made: list[Outcome] = [
        Checked(f"{OUT}fine", 200),
        Checked(f"{OUT}read", 200, targets=frozenset()),
        Checked(f"{OUT}gone", 404),
        Checked(f"{OUT}down", reason=Reason.TIMEOUT),
        Checked(f"{OUT}to-fine", 301, target=f"{OUT}fine"),
        Checked(f"{OUT}to-read", 301, target=f"{OUT}read"),
        Checked(f"{OUT}to-gone", 301, target=f"{OUT}gone"),
        Checked(f"{OUT}twice", 301, target=f"{OUT}to-fine"),
        Checked(f"{OUT}loop", 301, target=f"{OUT}loop"),
        Checked(f"{OUT}ring", 301, target=f"{OUT}loop"),
        Checked(f"{OUT}out", 301, target=f"{OUT}fine", rejected=Reason.EXCLUDED),
        Checked(f"{OUT}many", 301, Reason.TOO_MANY_REDIRECTS, target=f"{OUT}fine"),
        # It was not asked for in that walk either.
        Checked(f"{OUT}copied", 200, tries=0),
        Checked(f"{OUT}once", 200),
    ]
    walk(tmp_path, made)
    walk(tmp_path, [Checked(f"{OUT}once", 500), Checked(f"{OUT}fine", 200, tries=0)], refresh=True)
    assert fine(tmp_path) == {
        f"{OUT}fine": False,
        f"{OUT}read": True,
        f"{OUT}to-fine": False,
        f"{OUT}to-read": True,
        f"{OUT}twice": False,
    }


def test_a_check_that_is_too_old_or_in_the_future_is_not_known(tmp_path):
    walk(tmp_path, [Checked(OUT, 200)])
    assert list(fine(tmp_path)) == [OUT]
    for shift in (-200.0, 200.0):
        changed(tmp_path, "UPDATE check_ SET fetched = unixepoch('now') + ?", shift)
        assert fine(tmp_path, max_age=100) == {}
    assert list(fine(tmp_path, max_age=float("inf"))) == []


def test_the_checks_of_the_walk_itself_are_not_known(tmp_path):
    walk(tmp_path, [Checked(OUT, 200)])
    with Store.open(tmp_path) as store:
        assert list(store.fine_checks(1e9)) == []


def test_a_check_that_is_missing_is_told_as_damage(tmp_path):
    walk(tmp_path, [Checked(OUT, 200)])
    with Store.open(tmp_path, refresh=True) as store, pytest.raises(StoreError, match="damaged"):
        store.check(2)


def test_a_page_that_was_only_checked_later_is_gone_and_one_that_was_checked_too_is_not(tmp_path):
    both, left = SITE + "both", SITE + "left"
    walk(tmp_path, [page("both"), page("left")])
    purposes = [(both, "page"), (left, "check"), (both, "check"), (both, "fragments")]
    admitted = [(n, url, kind, 0, 10, None, None) for n, (url, kind) in enumerate(purposes, 3)]
    ends = [page("both"), Checked(left, 200), Checked(both, 200), Checked(both, 200, again=True)]
    settled = [(n, NOW, end) for n, end in enumerate(ends, 3)]
    with Store.open(tmp_path, refresh=True) as store:
        store.write(Batch(admitted=admitted, settled=settled, again=[6]))
        store.end(End.FINISHED, [], 1.0)
    with History(tmp_path) as history:
        assert {change.url: change.kind for change in history.changes()} == {
            both: "unchanged",
            left: "gone",
        }
        totals = history.statistics()
        assert (totals.admitted, totals.pages, totals.checked) == (4, 1, 3)
        assert [outcome.again for outcome in history.outcomes()] == [False, False, False, True]
