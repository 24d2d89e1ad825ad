"""The file of --html: by a crawl, a check and a report, whole or not at all, without a secret."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from cli.asked import stopped_at_once
from cli.command import crawl
from report.pages import tables
from sites.raw import html, redirect, threaded_raw_server

pytestmark = pytest.mark.process

SITE = {
    "/": html("/a", "/old", "/gone", "http://other.test/", title="Home"),
    "/a": html("/#x", title="A"),
    "/old": redirect("/a"),
}


def first_screen(path: Path) -> str:
    text = path.read_text()
    return text[: text.index("<main")]


def test_a_crawl_and_the_report_of_its_directory_write_the_same_tables(tmp_path: Path) -> None:
    live, kept = tmp_path / "live.html", tmp_path / "kept.html"
    directory = str(tmp_path / "dir")
    with threaded_raw_server(SITE) as server:
        assert crawl("-o", directory, "--html", str(live), server.url).returncode == 1
        crawl("-o", directory, "--refresh", server.url)
    assert crawl("report", directory, "--html", str(kept)).returncode == 1
    assert '<p class="verdict fault">1 broken link</p>' in first_screen(live)
    first, second = (tables(path.read_bytes()) for path in (live, kept))
    for name in ("url", "kind", "status", "depth", "title"):
        assert first["ends"][name] == second["ends"][name]
    assert first["urls"] == second["urls"]
    assert all(first["ends"]["at"])
    assert all(second["ends"]["at"])
    assert first["head"]["changes"] is None
    assert second["head"]["changes"]["unchanged"] == 4


@pytest.mark.parametrize("words", [(), ("-o", "dir")])
def test_a_check_has_places_and_the_links_that_it_did_not_check(words, tmp_path: Path) -> None:
    file = tmp_path / "check.html"
    with threaded_raw_server(SITE) as server:
        options = ("--check", "fragments", "--html", str(file), *words)
        assert crawl("check", *options, server.url, cwd=tmp_path).returncode == 1
    if words:
        file.unlink()
        crawl("report", "dir", "--html", str(file), cwd=tmp_path)
    found = tables(file.read_bytes())
    problems, texts = found["head"]["problems"], found["texts"]
    assert {texts[row[1]] for row in problems["list"]} == {"404", "missing_fragment"}
    assert all(line for _, line, *_ in problems["places"])
    (row,) = found["head"]["notChecked"]
    assert (row["number"], len(row["links"])) == (1, 1)


def test_after_ctrl_c_the_file_is_whole_and_says_so(tmp_path: Path) -> None:
    path = tmp_path / "out.html"
    stopped_at_once("--html", path)
    assert "It ended early: stopped at once by Ctrl-C" in first_screen(path)
    assert len(tables(path.read_bytes())["ends"]["url"]) == 1


def test_a_time_that_is_over_ends_the_file_too(tmp_path: Path) -> None:
    path = tmp_path / "out.html"
    with threaded_raw_server({"/": html("/a"), "/a": html("/b")}) as server:
        crawl("--html", str(path), "--max-time", "0.5", "--delay", "30", server.url)
    assert "It ended early: the time allowed was over" in first_screen(path)


def test_no_secret_of_the_command_is_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "out.html"
    with threaded_raw_server(SITE) as server:
        secrets = ("--auth", "me:pass1", "--header", "X-Key: pass2", "--cookie", "a=pass3")
        place = server.url.replace("://", "://you:pass4@")
        crawl("check", "--html", str(path), *secrets[2:], place, "--check", "assets")
        crawl("--html", f"{path}2", *secrets, server.url)
    for each in (path, Path(f"{path}2")):
        assert "***" in each.read_text()
        assert not re.search("pass[1-4]", each.read_text())


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--html", ""), "--html needs the name of a file"),
        (("--html", "no/such/place"), "cannot write --html no/such/place"),
        (("--html", "x", "--csv", "x"), "cannot both write to x"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_before_the_crawl(words, told, tmp_path) -> None:
    result = crawl(*words, "http://127.0.0.1:1/", cwd=tmp_path)
    assert (result.returncode, [*tmp_path.iterdir()]) == (2, [])
    assert told in result.stderr


def test_a_file_in_the_directory_of_the_crawl_is_private(tmp_path: Path) -> None:
    directory = tmp_path / "dir"
    with threaded_raw_server(SITE) as server:
        crawl("-o", str(directory), "--html", str(directory / "r.html"), server.url)
    assert (directory / "r.html").stat().st_mode & 0o777 == 0o600


def test_a_dash_is_standard_output_and_the_report_goes_to_standard_error() -> None:
    with threaded_raw_server(SITE) as server:
        result = crawl("--html", "-", server.url)
    assert result.stdout.startswith("<!doctype html>")
    assert "admitted 4 = " in result.stderr
