"""A directory of an older format is read, and goes on."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest
from msgspec.structs import replace
from store.batches import page, walk

from trio_crawler.facts import PageFacts
from trio_crawler.model import (
    Checked,
    Failure,
    Page,
    Purpose,
    Reason,
    Redirect,
    Sitemap,
    Skipped,
)
from trio_crawler.policy.settings import HostStatistics
from trio_crawler.store import runs
from trio_crawler.store.errors import StoreError
from trio_crawler.store.history import History
from trio_crawler.store.runs import End
from trio_crawler.store.schema import APPLICATION, HOST_COUNTS, STATEMENTS, VERSION
from trio_crawler.store.store import Store
from trio_crawler.store.writer import Batch

DUMP = Path(__file__).with_name("format_1.sql")
"""What the last version with format 1 wrote of a small crawl that folds canonical pages."""

HOME = "http://site.test/"
ODD = "a lone \ud800"


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Return a directory of format 1."""
    with sqlite3.connect(tmp_path / "crawl.sqlite") as connection:
        connection.executescript(DUMP.read_text())
        connection.execute(f"PRAGMA application_id = {APPLICATION}")
        connection.execute("PRAGMA user_version = 1")
        # A title that no column can hold: all values of the row are in `exact`, too.
        row = connection.execute("SELECT * FROM page_ WHERE number = 1").fetchone()
        values = [None if isinstance(each, bytes) else each for each in row[1:-1]] + [None, None]
        values[11] = ODD
        packed = json.dumps(values, ensure_ascii=False).encode("utf-8", "surrogatepass")
        connection.execute("UPDATE page_ SET exact = ? WHERE number = 1", (packed,))
    connection.close()
    return tmp_path


def columns(path: Path) -> dict[str, list[str]]:
    """Name the columns of each table and view."""
    with sqlite3.connect(path) as connection:
        names = connection.execute("SELECT name FROM sqlite_master WHERE sql NOT NULL")
        found = {
            name: sorted(
                row[1] for row in connection.execute(f"SELECT * FROM pragma_table_xinfo('{name}')")
            )
            for (name,) in names.fetchall()
        }
    connection.close()
    return found


def check(history: History) -> None:
    """Look at what format 1 told in other words."""
    outcomes = {outcome.url: outcome for outcome in history.outcomes()}
    assert len(outcomes) == 11
    home, folded = outcomes[HOME], outcomes[HOME + "folded"]
    assert isinstance(home, Page)
    assert isinstance(folded, Page)
    assert home.title == ODD
    assert {link.reason for link in home.rejected} == {Reason.ROBOTS, Reason.OTHER_SITE}
    assert (home.folded_into, folded.folded_into) == (None, HOME + "a")
    lost, dead = outcomes[HOME + "refused"], outcomes["http://dead.test/"]
    assert isinstance(lost, Failure)
    assert isinstance(dead, Failure)
    assert (lost.reason, lost.about) == (Reason.CONNECTION_REFUSED, None)
    assert (dead.detail, dead.about) == ("the certificate has expired", Purpose.ROBOTS)
    elsewhere, ours = history.sitemaps()
    assert elsewhere == Sitemap(
        "http://elsewhere.test/map.xml",
        flaws=(Reason.OTHER_SITE,),
        referrer=HOME + "robots.txt",
        fetched=False,
    )
    assert (ours.entries, ours.fetched) == (2, True)
    assert history.hosts() == {}
    times = dict(history.times())
    assert times.keys() == {url for url, each in outcomes.items() if getattr(each, "tries", 0)}
    assert all(1.7e9 < ended < 1.9e9 for ended in times.values())


def test_a_directory_of_format_1_is_read_and_not_changed(directory: Path) -> None:
    before = (directory / "crawl.sqlite").read_bytes()
    with History(directory) as history:
        check(history)
    assert (directory / "crawl.sqlite").read_bytes() == before


@pytest.mark.parametrize("windows", [False, True])
def test_the_copy_that_is_read_is_removed(
    directory: Path, monkeypatch: pytest.MonkeyPatch, windows: bool
) -> None:
    elsewhere = directory / "tmp"
    elsewhere.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(elsewhere))
    with monkeypatch.context() as patch:
        if windows:
            # It refuses to remove a file that is open.
            patch.setattr("shutil.rmtree", lambda path, ignore_errors: None)
        history = History(directory)
    assert len(list(elsewhere.iterdir())) == windows
    check(history)
    history.close()
    assert not list(elsewhere.iterdir())


def test_a_crawl_goes_on_in_a_directory_of_format_1_which_then_has_the_present_one(
    directory: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with Store.open(directory, meaning={"canonical": True}) as store:
        assert store.resumed
    with History(directory) as history:
        check(history)
    new = tmp_path_factory.mktemp("new") / "crawl.sqlite"
    with sqlite3.connect(new) as connection:
        for statement in STATEMENTS:
            connection.execute(statement)
        assert connection.execute("PRAGMA user_version").fetchone() == (VERSION,)
    connection.close()
    assert columns(directory / "crawl.sqlite") == columns(new)


def without_facts(connection: sqlite3.Connection) -> None:
    """Take away all that format 9 added."""
    for name in ("facts", "inlinks"):
        connection.execute(f"DROP VIEW {name}")
    connection.execute("DROP TABLE facts_")


def forget(connection: sqlite3.Connection, *names: str) -> None:
    """Take columns away that later formats added; the views, which read them, were others."""
    without_facts(connection)
    for name in HOST_COUNTS:
        connection.execute(f"ALTER TABLE hosts DROP COLUMN {name}")
    for name in ("pages", "links", "redirects", "failures", "skipped", "waiting"):
        connection.execute(f"DROP VIEW {name}")
        connection.execute(f"CREATE VIEW {name} AS SELECT number, url, referrer FROM urls")
    connection.execute("DROP VIEW checked")
    connection.execute("DROP TABLE check_")
    connection.execute("ALTER TABLE redirect_ DROP COLUMN fragment")
    connection.execute("DROP TABLE found_")
    for name in names:
        connection.execute(f"ALTER TABLE urls DROP COLUMN {name}")
    for name in ("text_digest", "text_size", "text_blocks"):
        connection.execute(f"ALTER TABLE page_ DROP COLUMN {name}")
    connection.execute("DROP TABLE repeated_")


def test_a_directory_of_format_3_keeps_its_referrers_and_goes_on(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        home, link = "http://site.test/", "http://site.test/a"
        admitted = [(1, home, "page", 0, 9, None, None), (2, link, "page", 1, 9, home, None)]
        store.write(Batch(admitted=admitted, settled=[(2, 1.0, Skipped(link, Reason.STOPPED))]))
    with sqlite3.connect(tmp_path / "crawl.sqlite") as connection:
        forget(connection, "source", "again")
        connection.execute("PRAGMA user_version = 3")
    connection.close()
    with History(tmp_path) as history:
        assert [one.referrer for one in history.outcomes()] == [home]
    with Store.open(tmp_path) as store:
        assert [row[5] for rows in store.walk.waiting() for row in rows] == [None]


LAST = HostStatistics("site.test", 3, 2, 4, 0.5, 0.0, 0.25, 1, {})


def test_a_directory_of_format_4_is_read_and_goes_on(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        urls = [HOME, HOME + "a"]
        admitted = [(n, url, "page", 0, 9, None, None) for n, url in enumerate(urls, 1)]
        store.write(Batch(admitted=admitted, settled=[(1, 1.0, Redirect(HOME, 302, HOME))]))
        store.end(End.STOPPED, [LAST], 1.0)
    with sqlite3.connect(tmp_path / "crawl.sqlite") as connection:
        forget(connection, "again")
        connection.execute("PRAGMA user_version = 4")
    connection.close()
    with History(tmp_path) as history:
        assert list(history.outcomes()) == [Redirect(HOME, 302, HOME)]
        assert history.hosts() == {"site.test": LAST}
    with Store.open(tmp_path) as store:
        store.end(End.STOPPED, [replace(LAST, pages=7)], 1.0)
        assert runs.read_hosts(store.walk._database)["site.test"].pages == 7
        assert [row[-1] for rows in store.walk.waiting() for row in rows] == [0]
        again = (3, HOME, "page", 0, 8, HOME, None)
        moved = Redirect(HOME, 302, HOME, 0, HOME, again=True)
        store.write(Batch(admitted=[again], again=[3], settled=[(3, 1.0, moved)]))
        assert list(store.walk.outcomes()) == [Redirect(HOME, 302, HOME), moved]


def test_a_directory_of_format_2_is_read_and_goes_on(tmp_path: Path) -> None:
    Store.open(tmp_path).close()
    with sqlite3.connect(tmp_path / "crawl.sqlite") as connection:
        connection.execute("ALTER TABLE runs DROP COLUMN reason")
        forget(connection, "source", "again")
        connection.execute("PRAGMA user_version = 2")
    connection.close()
    with History(tmp_path) as history:
        assert [run.reason for run in history.runs] == [None]
    with Store.open(tmp_path) as store:
        store.end(End.STOPPED, [], 1.0, Reason.TIME_BUDGET)
    with History(tmp_path) as history:
        assert [run.reason for run in history.runs] == [None, Reason.TIME_BUDGET]


def test_a_directory_of_format_6_keeps_its_redirects_and_checks_and_goes_on(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    # A target that no column can hold: all values of the row are in `exact`, too.
    plain, odd = HOME + "a", HOME + ODD
    outcomes: list[Redirect | Checked] = [
        Redirect(HOME, 302, odd, fragment="x"),
        Checked(plain, 301, target=odd, depth=1, fragment="x"),
    ]
    with Store.open(tmp_path) as store:
        admitted = [(1, HOME, "page", 0, 9, None, None), (2, plain, "check", 1, 9, None, None)]
        settled = [(number, 1.0, each) for number, each in enumerate(outcomes, 1)]
        store.write(Batch(admitted=admitted, settled=settled))
    with sqlite3.connect(tmp_path / "crawl.sqlite") as connection:
        without_facts(connection)
        for view in ("redirects", "checked"):
            connection.execute(f"DROP VIEW {view}")
            connection.execute(f"CREATE VIEW {view} AS SELECT number, url FROM urls")
        for table in ("redirect_", "check_"):
            ((exact,),) = connection.execute(f"SELECT exact FROM {table}").fetchall()
            values = json.loads(exact.decode("utf-8", "surrogatepass"))
            assert values.pop() == "x"
            packed = json.dumps(values, ensure_ascii=False).encode("utf-8", "surrogatepass")
            connection.execute(f"UPDATE {table} SET exact = ?", (packed,))
            connection.execute(f"ALTER TABLE {table} DROP COLUMN fragment")
        for name in ("asked", "refused"):
            connection.execute(f"ALTER TABLE hosts DROP COLUMN {name}")
        connection.execute("PRAGMA user_version = 6")
    connection.close()
    wanted = [replace(each, fragment="") for each in outcomes]
    with History(tmp_path) as history:
        assert list(history.outcomes()) == wanted
    with Store.open(tmp_path) as store:
        assert list(store.walk.outcomes()) == wanted
    new = tmp_path_factory.mktemp("new")
    Store.open(new).close()
    assert columns(tmp_path / "crawl.sqlite") == columns(new / "crawl.sqlite")


def test_a_directory_of_format_7_keeps_its_hosts(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        store.end(End.STOPPED, [replace(LAST, asked=0.5, refused=3)], 1.0)
    with History(tmp_path) as history:
        assert history.hosts() == {"site.test": replace(LAST, asked=0.5, refused=3)}
    with sqlite3.connect(tmp_path / "crawl.sqlite") as connection:
        without_facts(connection)
        for name in ("asked", "refused"):
            connection.execute(f"ALTER TABLE hosts DROP COLUMN {name}")
        connection.execute("PRAGMA user_version = 7")
    connection.close()
    with History(tmp_path) as history:
        assert history.hosts() == {"site.test": LAST}
    with Store.open(tmp_path) as store:
        store.end(End.STOPPED, [replace(LAST, refused=2)], 1.0)
        assert runs.read_hosts(store.walk._database)["site.test"].refused == 2


def test_a_directory_of_format_8_is_read_and_keeps_facts_from_then_on(tmp_path: Path) -> None:
    walk(tmp_path, [page("a")])
    with sqlite3.connect(tmp_path / "crawl.sqlite") as connection:
        without_facts(connection)
        connection.execute("PRAGMA user_version = 8")
    connection.close()
    with History(tmp_path) as history:
        assert [each.facts for each in history.outcomes()] == [None]
    known = page("a", facts=PageFacts(fetched=2.0, h1=("A",), h1_count=1))
    walk(tmp_path, [known], refresh=True)
    with History(tmp_path) as history:
        assert [each.facts for each in history.outcomes()] == [known.facts]


def test_a_migration_that_fails_changes_nothing(directory: Path) -> None:
    with sqlite3.connect(directory / "crawl.sqlite") as connection:
        connection.execute("ALTER TABLE page_ ADD COLUMN folded_into TEXT")
    connection.close()
    before = columns(directory / "crawl.sqlite")
    with pytest.raises(StoreError, match="duplicate column name: folded_into"):
        Store.open(directory)
    assert columns(directory / "crawl.sqlite") == before
