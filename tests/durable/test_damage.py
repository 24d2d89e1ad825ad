"""A damaged database: whatever reads it ends with one line that names the file."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from random import Random

import pytest
import trio
from cli.command import crawl
from durable.damage import NAME, damage
from durable.small import at_once
from sites.raw import html, threaded_raw_server
from store.batches import page, walk

from trio_crawler.store.database import BadRow, Database, increasing


@pytest.mark.parametrize(
    ("many", "every", "seed"),
    [(8, 500, 1), pytest.param(150, 25, 2, marks=pytest.mark.slow)],
    ids=["some", "many"],
)
def test_whatever_byte_is_damaged_each_reader_goes_on_or_says_so_in_one_line(
    tmp_path, monkeypatch, many, every, seed
):
    monkeypatch.setattr(trio.to_thread, "run_sync", at_once)
    said, found = damage(tmp_path, many, Random(seed), every=every)
    assert found == []
    assert said["/crawl/crawl.sqlite: it is damaged"] > 0


def harmed(directory, sql: str) -> None:
    with closing(sqlite3.connect(directory / NAME)) as database, database:
        database.execute(sql)
    database.close()


NO_TEXT = "UPDATE urls SET url = CAST(x'ff41' AS TEXT)"


@pytest.mark.process
@pytest.mark.parametrize(
    ("command", "sql"),
    [
        ("report", NO_TEXT),
        ("crawl", NO_TEXT),
        ("refresh", NO_TEXT),
        ("report", "UPDATE page_ SET title = x'ff'"),
        ("crawl", "UPDATE page_ SET flaws = '[7'"),
        ("crawl", "UPDATE links_ SET links = '{'"),
        ("report", "UPDATE runs SET settings = '[]'"),
        ("refresh", "UPDATE crawl SET value = 7"),
        ("refresh", "UPDATE page_ SET etag = x'22'"),
    ],
)
def test_each_command_says_in_one_line_that_a_database_is_damaged(tmp_path, command, sql):
    with threaded_raw_server({"/": html("/a"), "/a": html()}) as server:
        words = ["-o", str(tmp_path), server.url]
        assert crawl(*words).returncode == 0
        harmed(tmp_path, sql)
        again = {"report": ["report", str(tmp_path)], "crawl": words}
        run = crawl(*again.get(command, [*words, "--refresh"]))
    assert run.returncode == 1
    assert run.stderr.startswith(f"trio-crawler: {tmp_path / NAME}: it is damaged (")
    assert run.stderr.endswith(" or delete the directory to start anew\n")
    assert len(run.stderr.splitlines()) == 1


def test_a_reader_that_goes_on_by_number_never_goes_back():
    assert increasing(4, 5) == 5
    with pytest.raises(BadRow):
        increasing(5, 5)


def test_a_bug_in_a_statement_is_no_damage(tmp_path):
    walk(tmp_path, [page("a")])
    with closing(sqlite3.connect(tmp_path / NAME, isolation_level=None)) as connection:
        database = Database(tmp_path / NAME, connection)
        with pytest.raises(sqlite3.IntegrityError):
            database.execute("INSERT INTO walks (walk) VALUES (1)")
        with pytest.raises(sqlite3.ProgrammingError):
            database.execute("SELECT ?")
