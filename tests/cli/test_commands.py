"""The commands where people type them: each does the thing, or one line says what to type."""

from __future__ import annotations

import gc
import re

import pytest
from cli.command import crawl
from sites.raw import html, threaded_raw_server

from trio_crawler.cli.exit import guarded
from trio_crawler.cli.main import check_command, command

NOWHERE = "http://127.0.0.1:1/"
REFUSED = {
    "a command with a slip": (["chekc", NOWHERE], "did you mean check? A host of that name is"),
    "another one": (["repotr", "d"], "did you mean report? A host of that name is written http"),
    "a folder that is not there": (["check", "./none"], "there is no file or folder ./none"),
    "a folder without a dot": (["check", "none/en"], "there is no file or folder none/en; a host"),
    "a file of another kind": (["check", "README.md"], "reads .html, .htm and .xhtml files, not"),
    "a folder without its command": (
        ["tests/cli", NOWHERE],
        "write trio-crawler check tests/cli, or of a",
    ),
    "a time in words": (
        ["--max-time", "an hour", NOWHERE],
        "'an hour' is not a time: write seconds",
    ),
    "a unit without a number": (["--timeout", "s", NOWHERE], "'s' is not a time: write seconds"),
    "no number": (["--depth", "x", NOWHERE], "'--depth': 'x' is not a valid integer"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_command_line_that_cannot_be_meant_is_one_line_that_says_what_to_type(case):
    words, told = REFUSED[case]
    result = crawl(*words)
    assert (result.returncode, result.stdout) == (2, "")
    assert told in result.stderr
    assert result.stderr.count("\n") == 1


def test_the_command_may_come_after_options_and_a_crawl_may_be_called_by_its_name():
    with threaded_raw_server({"/": html("/a"), "/a": html()}) as server:
        checked = crawl("-v", "--max_tasks", "3", "check", "--by=page", server.url)
        crawled = crawl("crawl", server.url)
        hosts = crawl("--max-tries=1", "--", "check", server.url)
    assert "1 different link checked" in checked.stdout
    assert "Crawl of http://check/ and 1 more seed" in hosts.stdout
    assert "admitted 2 = 2 pages" in crawled.stdout


@pytest.mark.parametrize("flag", ["-o", "-qo"])
def test_a_directory_may_be_called_like_a_command(tmp_path, flag):
    with threaded_raw_server({"/": html()}) as server:
        result = crawl(flag, "check", server.url, cwd=tmp_path)
    assert "admitted 1 = 1 page" in result.stdout
    assert (tmp_path / "check").is_dir()


@pytest.mark.parametrize("words", [["help"], ["help", "check"], ["check", "--help"]], ids=" ".join)
def test_help_is_shown_where_it_is_asked_for(words):
    title = "trio-crawler check" if "check" in words else "trio-crawler"
    assert crawl(*words).stdout.startswith(f"Usage: {title} [OPTIONS]")


def test_the_help_of_a_check_begins_with_the_options_of_checks():
    found = re.findall(r"^(\w[\w ]+):$", crawl("check", "--help").stdout, re.MULTILINE)
    assert found[:2] == ["What to check", "What counts as a fault of a check"]


@pytest.mark.parametrize("of", [command, check_command], ids=lambda of: of.name)
def test_the_short_help_fits_on_a_screen_and_has_fifteen_options(of):
    text = of.short_help_text(of.make_context(of.name, [], resilient_parsing=True))
    assert len(text.splitlines()) <= 40
    assert len(re.findall(r"^  -", text.partition("Options:")[2], re.MULTILINE)) == 15
    words = [] if of is command else ["check"]
    assert crawl(*words, "-h").stdout.splitlines()[1:] == text.splitlines()[1:]


@pytest.mark.parametrize(
    ("time", "seconds"),
    [("0.5", 0.5), ("500ms", 0.5), ("30s", 30), ("90M", 5400), ("1.5h", 5400), ("1d", 86400)],
)
def test_every_time_takes_a_unit(time, seconds):
    for name, flag in [
        ("delay", "--delay"),
        ("max_seconds", "--max-time"),
        ("max_age", "--max-age"),
    ]:
        context = command.make_context("crawl", [flag, time, NOWHERE])
        assert context.params[name] == seconds


def test_cycles_are_collected_while_a_command_works():
    gc.disable()
    assert guarded(gc.isenabled)
    gc.unfreeze()
