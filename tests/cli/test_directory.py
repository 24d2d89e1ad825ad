"""A crawl that is kept in a directory: going on, another walk, files, stops, faults."""

from __future__ import annotations

import gzip
import json
import os
import re
import signal
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
import trio
from cli.asked import pages
from cli.command import crawl, ended, here, start, wait_until
from cli.gate import Gate
from sites.raw import Request, html, redirect, reply, silence, threaded_raw_server

from trio_crawler import History, __version__
from trio_crawler.store import End

pytestmark = pytest.mark.process

NOBODY = "http://127.0.0.1:9/"
LEAVES = [f"/{number}" for number in range(6)]


def gated(gate: Gate) -> dict[str, object]:
    """Make a site of nine pages of which the second is slow."""
    site = {"/": html("/slow", *LEAVES), "/slow": gate, "/last": html(title="last")}
    return site | {leaf: html(title=leaf) for leaf in LEAVES}


@pytest.fixture
def crawled(tmp_path: Path) -> Path:
    """Give the name of a directory for a crawl, in one of its own."""
    return tmp_path / "crawl"


def records(path: Path) -> list[str]:
    """List the URLs of a JSON Lines file."""
    return [json.loads(line)["url"] for line in path.read_text().splitlines()]


def without_times(report: str) -> str:
    """Leave out of a report what the clock says."""
    slowest = re.sub(r"Slowest pages\n(  .*\n)+", "", report)
    return re.sub(r"Finished .*", "", slowest)


def stopped(gate: Gate, *words: str, sent: signal.Signals = signal.SIGINT) -> tuple[str, str, int]:
    """Stop the command while the gate's page is in flight, and let that come.

    Gives what was written, but for the first line on standard error, and the status.
    """
    with start(*words) as process:
        assert gate.came.wait(20)
        process.send_signal(sent)
        process.stderr.readline()
        gate.open()
        out, err = ended(process, patience=5)
    return out, err, process.returncode


# Going on.


def test_the_same_command_again_asks_for_nothing_and_tells_the_same(crawled):
    site = {"/": html("/a", "/gone"), "/a": redirect("/b"), "/b": html("http://other.test/")}
    with threaded_raw_server(site) as server:
        first = crawl("-o", str(crawled), server.url)
        asked = list(server.targets)
        again = crawl("-o", str(crawled), server.url)
    assert (first.returncode, first.stderr) == (again.returncode, again.stderr) == (1, "")
    assert server.targets == asked
    assert without_times(again.stdout) == without_times(first.stdout)
    assert f"  404 {server.url}gone\n" in again.stdout
    line = f"The crawl in {crawled} is complete now: --refresh walks through the site again\n"
    assert line in again.stdout


@pytest.mark.parametrize(("sent", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_what_waits_when_a_signal_comes_is_told_and_fetched_by_the_same_command(
    crawled, sent, status
):
    gate = Gate("/last")
    words = ["-o", str(crawled), "--max-tasks", "1"]
    with threaded_raw_server(gated(gate)) as server:
        out, *rest = stopped(gate, *words, server.url, sent=sent)
        assert rest == ["", status]
        assert f"\n7 URLs wait in {crawled}: the same command goes on\n" in out
        assert "\nadmitted 9 = 2 pages + " in out
        assert "Skipped" not in out
        again = crawl(*words, server.url)
    assert (again.returncode, again.stderr) == (0, "")
    assert sorted(pages(server)) == sorted(["/", "/slow", "/last", *LEAVES])
    assert "\nadmitted 9 = 9 pages + 0 redirects + 0 failures + 0 skipped\n" in again.stdout
    assert "Ended early" not in again.stdout


def test_a_later_run_that_is_ended_at_once_tells_that_its_report_is_not_of_all_runs(crawled):
    site = {"/": html("/slow", "/gone"), "/slow": silence}
    words = ["-o", str(crawled), "--max-tasks", "1"]
    told = []
    with threaded_raw_server(site) as server:
        for run in (1, 2):
            with start(*words, server.url) as process:
                wait_until(lambda run=run: pages(server).count("/slow") == run)
                process.terminate()
                process.stderr.readline()
                process.terminate()
                out, err = ended(process, patience=3)
            assert (process.returncode, err) == (143, "")
            told.append(f"\nThe report does not have all runs: 'report {crawled}' has" in out)
    assert told == [False, True]


@pytest.mark.parametrize("kills", [1, 3])
def test_a_crawl_that_is_killed_goes_on_and_loses_nothing(crawled, kills):
    lines, archive = crawled.with_suffix(".jsonl"), crawled.with_suffix(".warc.gz")
    words = ["-o", str(crawled), "--max-tasks", "1", "--jsonl", str(lines), "--warc", str(archive)]
    site = gated(gate := Gate("/last"))
    with threaded_raw_server(site) as server:
        for _ in range(kills):
            gate.came.clear()
            with start(*words, server.url) as process:
                assert gate.came.wait(20)
                process.kill()
                ended(process)
        gate.open()
        last = crawl(*words, server.url)
    assert (last.returncode, last.stderr) == (0, "")
    every = [server.url.rstrip("/") + path for path in ["/", "/slow", "/last", *LEAVES]]
    assert sorted(records(lines)) == sorted(every)
    asked = pages(server)
    assert len(asked) <= 9 + 2 * kills
    assert sorted(set(asked)) == sorted(["/", "/slow", "/last", *LEAVES])
    written = gzip.decompress(archive.read_bytes())
    assert written.count(b"WARC-Type: warcinfo\r\n") == 1
    for url in every:
        found = written.count(f"WARC-Target-URI: {url}\r\n".encode())
        assert found == 3, "request, response and metadata"


def test_a_json_lines_file_that_is_new_gets_also_what_was_known(crawled):
    lines = crawled.with_suffix(".jsonl")
    with threaded_raw_server({"/": html("/a"), "/a": html("/gone")}) as server:
        here("-o", str(crawled), server.url)
        for _ in range(2):
            here("-o", str(crawled), "--jsonl", str(lines), server.url)
    assert records(lines) == [f"{server.url}{path}" for path in ["", "a", "gone"]]
    assert len(pages(server)) == 3


def test_exports_tell_of_all_runs(crawled):
    gate, path = Gate("/last"), crawled.with_suffix(".csv")
    words = ["-o", str(crawled), "--max-tasks", "1", "--csv", str(path)]
    with threaded_raw_server(gated(gate)) as server:
        stopped(gate, *words, server.url)
        assert len(path.read_text().splitlines()) == 3
        crawl(*words, server.url)
    assert len(path.read_text().splitlines()) == 10


def test_an_export_that_is_not_whole_when_all_must_end_is_not_written(crawled):
    path = crawled.with_suffix(".csv")
    site = {"/": html("/slow"), "/slow": silence}
    words = ["-o", str(crawled), "--csv", str(path)]
    with threaded_raw_server(site) as server, start(*words, server.url) as process:
        wait_until(lambda: pages(server) == ["/", "/slow"])
        process.terminate()
        process.stderr.readline()
        process.terminate()
        out, err = ended(process, patience=3)
    assert err == ""
    assert out.endswith(f"\n\n{path} is not written: 'report {crawled}' can do that\n")
    assert [each.name for each in crawled.parent.iterdir()] == ["crawl"]


def test_a_budget_that_is_used_up_leaves_what_waits(crawled):
    with threaded_raw_server({"/": html(*LEAVES), **dict.fromkeys(LEAVES, html())}) as server:
        words = ["-o", str(crawled), "--max-tasks", "1"]
        first = crawl(*words, "--max-pages", "3", server.url)
        assert len(pages(server)) == 3
        assert f"\n4 URLs wait in {crawled}: a greater --max-pages goes on\n" in first.stdout
        again = crawl(*words, server.url)
    with History(crawled) as history:
        assert [run.how for run in history.runs] == [End.SPENT, End.FINISHED]
    assert "\nadmitted 7 = 7 pages + 0 redirects + 0 failures + 0 skipped\n" in again.stdout
    assert len(pages(server)) == 7


@pytest.mark.parametrize("option", ["--jsonl", "--warc"])
def test_a_file_that_a_run_went_on_without_is_refused_for_it_would_lack_records(crawled, option):
    with threaded_raw_server({"/robots.txt": reply(404), "/": html(*LEAVES)}) as server:
        words = ["-o", str(crawled), "--max-tasks", "1", server.url]
        kept = [option, str(crawled.with_suffix(".out"))]
        here(*words, *kept, "--max-pages", "2")
        here(*words, "--max-pages", "3")
        before = crawled.with_suffix(".out").read_bytes()
        refused = crawl(*words, *kept)
    assert refused.returncode == 1
    assert refused.stderr.count("\n") == 1
    assert "a run has gone on without it" in refused.stderr
    assert crawled.with_suffix(".out").read_bytes() == before


# What may change from run to run, and what not.


OTHER = [
    ["--depth", "1"],
    ["--lenient"],
    ["--include", "a"],
    ["--exclude", "x"],
    ["--under", "/"],
    ["--sitemap", "/s.xml"],
    ["--no-sitemaps"],
    ["--canonical"],
    ["--max-redirect", "1"],
    ["--ignore-robots"],
    ["--ignore-nofollow"],
    ["--no-traps"],
    ["http://other.test/"],
]


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """Crawl a site of two pages; give the directory and the URL."""
    directory = str(tmp_path_factory.mktemp("done") / "crawl")
    with threaded_raw_server({"/": html("/a"), "/a": html()}) as server:
        assert here("-o", directory, server.url) == 0
    return directory, server.url


@pytest.mark.parametrize("words", OTHER, ids=" ".join)
def test_options_that_change_what_the_crawl_means_are_refused(done, words, capsys):
    directory, url = done
    assert here("-o", directory, *words, url) == 2
    out, err = capsys.readouterr()
    name = words[0] if words[0].startswith("-") else "URL"
    assert out == ""
    assert re.fullmatch(rf"trio-crawler: {directory}: .+\n", err)
    assert f"({name.replace('lenient', 'strict')} was " in err
    assert "start anew" in err


# Directories of earlier versions have these names, and must still continue.
MEANING = {
    "strict": False,
    "no_sitemaps": False,
    "canonical": True,
    "depth": 3,
    "max_redirect": 4,
    "ignore_robots": False,
    "ignore_nofollow": True,
    "no_traps": False,
    "include": [],
    "exclude": ["a", "b"],
    "under": ["/"],
    "sitemap": ["/s.xml"],
    "sitemap_only": False,
    "list": None,
    "check": [],
    "check_robots": False,
    "base_url": None,
    "clean_urls": False,
    "linked_only": False,
}
SETTINGS = {
    "cookies": False,
    "checks": False,
    "check_delay": None,
    "check_max_per_host": None,
    "max_age": 0.0,
    "max_tries": 4,
    "max_pages": 5,
    "max_time": 60.0,
    "max_bytes": 10_485_760,
    "timeout": 30.0,
    "per_host": 4,
    "delay": 0.0,
    "adaptive": False,
    "facts": False,
    "patience": 360.0,
    "order": "breadth",
    "ignore_robots": False,
    "ignore_nofollow": True,
    "follow_side_effects": False,
    "credentials": False,
    "workers": 7,
    "insecure_hosts": [],
    "texts": False,
    "warc": None,
    "part": False,
    "owner": False,
    "folder": None,
    "base": None,
    "clean_urls": False,
    "whole": False,
    "version": __version__,
}


def test_a_directory_stores_the_options_under_the_names_that_earlier_versions_gave_them(crawled):
    words = "--lenient --canonical --depth 3 --max-redirect 4 --ignore-nofollow --exclude b"
    words += " --exclude a --under / --sitemap /s.xml --max-pages 5 --max-time 60 --max-tasks 7"
    with threaded_raw_server({"/": html()}) as server:
        here("-o", str(crawled), *words.split(), server.url)
    with closing(sqlite3.connect(crawled / "crawl.sqlite")) as database:
        ((stored,),) = database.execute("SELECT value FROM crawl WHERE key = 'meaning'")
        ((settings,),) = database.execute("SELECT settings FROM runs")
    assert json.loads(stored) == {"urls": [server.url], **MEANING}
    assert json.loads(settings) == {"seeds": [server.url], **SETTINGS}


def test_options_that_only_say_how_may_change(done, capsys):
    directory, url = done
    how = ["--max-tasks", "3", "--delay", "0.1", "--timeout", "5", "--order", "depth", "--why"]
    assert here("-o", directory, *how, url) == 0
    assert "workers=3" in capsys.readouterr().out


def test_nothing_that_may_be_a_secret_is_kept(crawled):
    words = ["--auth", "u:s3cret", "--header", "X-Key: s3cret", "--cookie", "a=s3cret"]
    with threaded_raw_server({"/": html()}) as server:
        archive = crawled.with_suffix(".warc")
        assert here("-o", str(crawled), "--warc", str(archive), *words, server.url) == 0
    assert b"s3cret" not in archive.read_bytes()
    for path in crawled.iterdir():
        assert b"s3cret" not in path.read_bytes(), path


# Another walk.


def test_refresh_tells_what_is_new_changed_gone_and_unchanged(crawled):
    tag = {"Content-Type": "text/html", "ETag": '"1"'}
    body = b'<a href="/a"></a><a href="/b"></a><a href="/same"></a>'

    async def same(request: Request, stream: trio.abc.Stream) -> None:
        known = request.headers.get("if-none-match") == '"1"'
        await stream.send_all(reply(304 if known else 200, tag, b"" if known else b"same"))

    site = {"/": reply(headers=tag, body=body), "/a": html(title="one"), "/same": same}
    site |= {"/b": html(title="b")}
    with threaded_raw_server(site) as server:
        here("-o", str(crawled), server.url)
        site["/a"] = html("/new", title="two")
        site["/new"] = html()
        site["/b"] = reply(404)
        result = crawl("-o", str(crawled), "--refresh", server.url)
        told = result.stdout[result.stdout.index("\nChanges since ") :]
        assert re.match(
            r"\nChanges since \d{4}-\d\d-\d\d \d\d:\d\d UTC: "
            r"1 new, 1 changed, 1 gone, 2 unchanged\n",
            told,
        )
        assert f"\nNew (1)\n  {server.url}new\n" in told
        assert f"\nChanged (1)\n  {server.url}a (" in told
        assert f"\nGone (1)\n  {server.url}b (404" in told
        asked = len(server.targets)
        plain = crawl("-o", str(crawled), server.url)
        assert len(server.targets) == asked
    assert "Changes since" not in plain.stdout
    assert f"  404 {server.url}b\n" in plain.stdout


# What can be wrong.


def test_a_second_crawl_in_the_same_directory_is_refused_and_the_first_goes_on(crawled):
    gate, words = Gate("/last"), ["-o", str(crawled)]
    with threaded_raw_server(gated(gate)) as server, start(*words, server.url) as process:
        assert gate.came.wait(20)
        second = crawl(*words, server.url)
        gate.open()
        out, err = ended(process)
    assert (second.returncode, second.stdout) == (2, "")
    assert re.fullmatch(rf"trio-crawler: {crawled}.+\n", second.stderr)
    assert (process.returncode, err) == (0, "")
    assert "\nadmitted 9 = 9 pages" in out


def test_a_file_in_place_of_the_directory_is_status_1_and_one_line(crawled, capsys):
    crawled.write_text("a file")
    assert here("-o", str(crawled), NOBODY) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert re.fullmatch(rf"trio-crawler: {crawled}.*\n", err)
    assert crawled.read_text() == "a file"


def test_a_stream_that_is_gone_in_the_middle_ends_the_crawl_with_one_line(crawled):
    gate, lines = Gate("/last"), crawled.with_suffix(".jsonl")
    words = ["-o", str(crawled), "--max-tasks", "1", "--jsonl", str(lines)]
    with threaded_raw_server(gated(gate)) as server:
        with start(*words, server.url) as process:
            assert gate.came.wait(20)
            wait_until(lambda: lines.stat().st_size)
            os.unlink(lines)
            gate.open()
            out, err = ended(process, patience=10)
        assert process.returncode == 1
        assert re.fullmatch(rf"trio-crawler: {lines}: .+\n", err)
        # The report of what came until then.
        assert f"  {server.url}slow\n" in out
        assert "\nEnded early: its directory failed\n" in out
        # What is gone is asked for: with another file the crawl goes on.
        again = crawl(*words[:-1], f"{lines}.2", server.url)
    assert (again.returncode, again.stderr) == (0, "")
    assert len(records(Path(f"{lines}.2"))) == 9
