"""The command on a site with a login that bounces."""

from __future__ import annotations

import csv
import json
import sqlite3
from collections import Counter
from contextlib import suppress

import pytest
import trio
from cli.command import crawl, ended, start
from sites.login import PAGES, bounce
from sites.raw import Request, threaded_raw_server

pytestmark = pytest.mark.process


def test_with_cookies_all_pages_are_found_and_the_status_is_0(tmp_path):
    lines, table = tmp_path / "lines.jsonl", tmp_path / "urls.csv"
    with threaded_raw_server(bounce) as server:
        files = ["--jsonl", str(lines), "--csv", str(table)]
        result = crawl("-q", "--cookies", *files, server.url)
    assert result.returncode == 0, result.stdout
    assert f"admitted {PAGES + 3} = {PAGES + 1} pages + 2 redirects + 0 failures" in result.stdout
    assert "Admitted again: 1 URL, as a redirect led back" in result.stdout
    assert f"302 {server.url} ->" not in result.stdout
    assert f"302 {server.url}login -> {server.url}" in result.stdout
    assert "--cookies" not in result.stdout
    told = [json.loads(line) for line in lines.read_text().splitlines()]
    home = [one for one in told if one["url"] == server.url]
    assert [(one["kind"], one.get("again")) for one in home] == [
        ("redirect", None),
        ("page", True),
    ]
    assert sum("again" in one for one in told) == 1
    with table.open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["url"] == server.url]
    assert [(row["kind"], row["again"]) for row in rows] == [("redirect", ""), ("page", "1")]


def test_without_cookies_the_report_names_the_option():
    with threaded_raw_server(bounce) as server:
        result = crawl("-q", server.url)
    assert result.returncode == 3
    assert f"redirect loop {server.url}\n" in result.stdout
    assert "may be the bounce to a login" in result.stdout
    assert "(--cookies stores cookies and sends them back)" in result.stdout


@pytest.mark.parametrize("killed_at", [2, 3, 4, 5, 6, 9, PAGES + 4])
def test_after_a_kill_no_page_behind_the_login_is_lost(tmp_path, killed_at):
    asked: Counter[str] = Counter()
    workers = 2

    async def deadly(request: Request, stream: trio.abc.Stream) -> None:
        asked[request.target] += 1
        if asked.total() == killed_at:
            process.kill()
        with suppress(trio.BrokenResourceError):
            await bounce(request, stream)

    with threaded_raw_server(deadly) as server:
        few = ["--max-tasks", str(workers)]
        words = ["-q", "--cookies", *few, "-o", str(tmp_path / "d"), server.url]
        with start(*words) as process:
            ended(process)
        result = crawl(*words)
    assert f"admitted {len(rows(tmp_path))} = " in result.stdout
    found: dict[str, list[int]] = {}
    for url, again, done in rows(tmp_path):
        assert done
        found.setdefault(url, []).append(again)
    assert set(found) >= {server.url, *(f"{server.url}p{n}" for n in range(PAGES))}
    # A second asking that waited at the kill goes out without its cookie, and once more with one.
    assert all(marks in ([0], [0, 1], [0, 1, 1]) for marks in found.values())
    # A request that the kill cut short is sent again.
    pages = Counter({path: n for path, n in asked.items() if path != "/robots.txt"})
    sent_twice = sum(n - len(found[server.url + path[1:]]) for path, n in pages.items())
    assert 0 <= sent_twice <= 2 * workers


def rows(directory):
    with sqlite3.connect(directory / "d" / "crawl.sqlite") as connection:
        sql = "SELECT url, again NOT NULL, ended FROM urls WHERE purpose = 'page' ORDER BY number"
        found = connection.execute(sql).fetchall()
    connection.close()
    return found
