"""The table of shapes of the command, and of the report of a directory."""

from __future__ import annotations

import re
import shlex
import sqlite3
from contextlib import closing

import pytest
from cli.command import here
from cli.test_report import tell, without_time
from sites.raw import html, threaded_raw_server

from trio_crawler import History

ARTICLES = [f"/article/{n}" for n in range(6)]
FILTERS = [f"/list?tag={tag}&year={year}" for tag in "abcd" for year in range(2000, 2008)]
SITE = {
    "/": html("/list", *ARTICLES[:1], title="Home"),
    "/list": html(*FILTERS, title="Articles"),
    **{path: html("/", *FILTERS, *ARTICLES[:3], title="Articles") for path in FILTERS},
    **{path: html(ARTICLES[(n + 1) % 6], title=f"Article {n}") for n, path in enumerate(ARTICLES)},
}


def shown(text: str) -> dict[str, tuple[list[int], str]]:
    """Return the figures and the expression of each shape of a report."""
    found = re.findall(r"^  ([\d,]+)  ([\d,]+)  ([\d,]+)  (\S+)\n +--exclude (.*)$", text, re.M)
    return {
        shape: ([int(each.replace(",", "")) for each in figures], shlex.split(quoted)[0])
        for *figures, shape, quoted in found
    }


def test_the_expression_of_a_shape_leaves_out_this_shape_and_no_other(capsys):
    with threaded_raw_server(SITE) as server:
        assert here("--no-traps", server.url) == 0
        table = shown(capsys.readouterr().out)
        (figures, exclude) = table[f"{server.url}list?tag&year"]
        assert figures == [32, 1, 0]
        begun = len(server.requests)
        assert here("--no-traps", "--exclude", exclude, server.url) == 0
        asked = {request.target for request in server.requests[begun:]}
        assert asked == {"/robots.txt", "/", "/list", *ARTICLES}
        assert "Shapes" not in capsys.readouterr().out


def report_in(text: str) -> str:
    """Return the report without its times, and without what only the crawl itself knows."""
    report = re.sub(r"Connections: .*\n\n", "", text[text.index("Crawl of ") :])
    # With them it may be longer than a screen, and then it has a head.
    head = r"^admitted .*\n\n(The worst\n(  .*\n)+\n)?Below: .*\n(  .*\n)*"
    return without_time(re.sub(head, "", report, count=1, flags=re.M))


@pytest.mark.parametrize("words", [[], ["-v"], ["--why"]], ids=" ".join)
def test_the_report_of_a_directory_has_what_waits_as_the_crawl_had_it(tmp_path, words, capsys):
    directory = str(tmp_path / "crawl")
    with threaded_raw_server(SITE) as server:
        crawl = ["-o", directory, "--max-tasks", "1", "--no-traps", *words, server.url]
        here("--max-pages", "5", *crawl)
        first = report_in(capsys.readouterr().out)
        tell(directory, *words)
        again = report_in(capsys.readouterr().out)
        assert again == first
        table = shown(again)
        # Where a crawl ended early, only a full report says what waits.
        assert bool(table) is ("-v" in words)
        if table:
            assert sum(figures[0] for figures, _ in table.values()) <= 5
            assert table[f"{server.url}list?tag&year"][0][2] > 20
        here(*crawl)
        assert shown(capsys.readouterr().out)[f"{server.url}list?tag&year"][0] == [32, 1, 0]


def test_a_directory_has_the_hosts_of_all_runs(tmp_path, capsys):
    directory = str(tmp_path / "crawl")
    with threaded_raw_server({"/": html(title="Two")}) as other:
        port = other.url.rpartition(":")[2].strip("/")
        more = f"http://127.0.0.1:{port}/"
        with threaded_raw_server(SITE) as server:
            seeds = [server.url, more]
            here("-o", directory, "--max-pages", "2", *seeds)
            with History(directory) as history:
                before = {name: host.pages for name, host in history.hosts().items()}
            capsys.readouterr()
            here("-o", directory, "-v", "--delay", "0.001", *seeds)
    crawled = report_in(capsys.readouterr().out)
    tell(directory, "-v")
    assert report_in(capsys.readouterr().out) == crawled
    assert "\nHosts (2): " in crawled
    with History(directory) as history:
        hosts = history.hosts()
        statistics = history.statistics()
    assert len(hosts) == 2
    assert sum(before.values()) == 2
    assert sum(host.pages for host in hosts.values()) == statistics.pages > 10
    assert sum(host.bytes for host in hosts.values()) == statistics.bytes
    with closing(sqlite3.connect(f"{directory}/crawl.sqlite")) as database:
        rows = database.execute("SELECT name, pages FROM hosts").fetchall()
    assert dict(rows) == {name: host.pages for name, host in hosts.items()}
