"""What may be said on the command line, and the one line that says what was wrong."""

from __future__ import annotations

import re

import click
import pytest
from cli.command import crawl
from sites.raw import html, threaded_raw_server

from trio_crawler import __version__
from trio_crawler.cli.options import command, main

URL = "http://127.0.0.1:9/"

WRONG = {
    "no URL": ([], "name at least one URL"),
    "an empty URL": ([""], "empty URL"),
    "a negative depth": (["--depth", "-1", URL], "--depth"),
    "a depth that is no number": (["--depth", "x", URL], "--depth"),
    "no tasks": (["--max-tasks", "0", URL], "--max-tasks"),
    "no tries": (["--max_tries", "0", URL], "--max-tries"),
    "no pages": (["--max-pages", "0", URL], "--max-pages"),
    "no time-out": (["--timeout", "0", URL], "--timeout"),
    "a time-out that is no number": (["--timeout", "nan", URL], "timeout"),
    "a time that is no number": (["--max-time", "nan", URL], "max_seconds"),
    "a bad --exclude": (["--exclude", "(", URL], "regular expression: '('"),
    "a bad --include": (["--include", "[", URL], "regular expression: '['"),
    "a bad --under": (["--under", "http://[", URL], ""),
    "a header without a colon": (["--header", "Accept", URL], "'Accept'"),
    "a header without a name": (["--header", ": x", URL], "': x'"),
    "a header of two lines": (["--header", "A: b\nC: d", URL], "header A"),
    "a user agent of two lines": (["--user-agent", "a\r\nb", URL], "User-Agent"),
    "a URL of another scheme": (["ftp://127.0.0.1/"], "ftp://127.0.0.1/"),
    "a user and a password": (["http://user:word@127.0.0.1/"], "--header 'Authorization"),
    "a user, and no scheme": (["user@127.0.0.1"], "--header 'Authorization"),
    "what is no URL": (["http://[x"], "http://[x"),
    "a port that is none": (["127.0.0.1:99999"], "127.0.0.1:99999"),
    "a file in no directory": (["--jsonl", "/no/where", URL], "/no/where: No such file"),
    "a directory as a file": (["--jsonl", "/", URL], "cannot write /: Is a directory"),
    "an unknown option": (["--no-such", URL], "--no-such"),
    "half an option": (["--max-ta", "5", URL], "--max-tasks"),
    "an option without its value": ([URL, "--depth"], "--depth"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_usage_is_status_2_and_one_line_that_names_the_cause(case, monkeypatch, capsys):
    words, cause = WRONG[case]
    monkeypatch.setattr("sys.argv", ["trio-crawler", *words])
    with pytest.raises(SystemExit) as left:
        main()
    out, err = capsys.readouterr()
    assert (left.value.code, out) == (2, "")
    assert re.fullmatch(r"trio-crawler: .+\n", err)
    assert cause in err


@pytest.mark.parametrize("case", ["no URL", "a time that is no number", "a file in no directory"])
def test_wrong_usage_leaves_no_traceback_in_a_process_of_its_own(case):
    words, cause = WRONG[case]
    result = crawl(*words)
    assert (result.returncode, result.stdout) == (2, "")
    assert re.fullmatch(r"trio-crawler: .+\n", result.stderr)
    assert cause in result.stderr


def test_a_password_in_a_url_is_not_told_again():
    with pytest.raises(click.BadParameter) as refused:
        said("http://user:secret@127.0.0.1/")
    assert "secret" not in refused.value.format_message()


def test_the_version_is_that_of_the_package():
    result = crawl("--version")
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.split() == ["trio_crawler", __version__]


@pytest.mark.parametrize("option", ["-h", "--help"])
def test_help_names_every_option_and_exit_status(option):
    result = crawl(option)
    assert (result.returncode, result.stderr) == (0, "")
    names = {name for parameter in command.params for name in parameter.opts} - {"urls"}
    assert names
    assert [name for name in names if name not in result.stdout] == []
    assert [n for n in (0, 1, 2, 3, 130) if not re.search(rf"^ +{n} ", result.stdout, re.M)] == []


def said(*words: str) -> dict[str, object]:
    """Parse a command line without running it."""
    with command.make_context("trio-crawler", [*words, "example.org"]) as context:
        return context.params


def test_every_option_of_the_chapter_is_understood_in_its_own_spelling():
    words = "--max_redirect 3 --max_tries=2 --max_tasks 7 --exclude x_y --lenient"
    params = said(*words.split())
    assert (params["max_redirect"], params["max_tries"], params["max_tasks"]) == (3, 2, 7)
    assert (params["exclude"], params["strict"]) == (("x_y",), False)


def test_the_later_of_strict_and_lenient_counts():
    assert said("--lenient", "--strict")["strict"] is True
    assert said("--strict", "--lenient")["strict"] is False


@pytest.mark.parametrize(
    ("words", "level"),
    [
        ([], 2),
        (["-v"], 3),
        (["-v", "-v"], 3),
        (["-vv"], 3),
        (["-q"], 0),
        (["--quiet", "--verbose"], 1),
        (["-q", "-v", "-v"], 2),
        (["-qvvv"], 3),
        (["-v", "-q"], 0),
        (["-vvq"], 0),
    ],
)
def test_quiet_falls_to_zero_and_each_verbose_after_it_adds_one(words, level):
    assert said(*words)["talk"] == level


@pytest.mark.parametrize(
    ("word", "url"),
    [
        ("example.org", "http://example.org"),
        ("example.org:8080/a", "http://example.org:8080/a"),
        (" https://example.org/ ", "https://example.org/"),
        ("HTTPS://example.org/", "HTTPS://example.org/"),
        ("example.org/?to=http://x/", "http://example.org/?to=http://x/"),
        ("example.org/@me", "http://example.org/@me"),
        ("example.org?mail=me@x", "http://example.org?mail=me@x"),
    ],
)
def test_a_url_without_a_scheme_gets_http(word, url):
    assert command.make_context("trio-crawler", [word]).params["urls"] == (url,)


@pytest.mark.parametrize("word", ["a:b@example.org", "http://me@example.org#x", "ME:@x?a/b"])
def test_a_user_before_the_host_is_refused_wherever_the_url_goes_on(word):
    with pytest.raises(click.BadParameter, match="user or password"):
        command.make_context("trio-crawler", [word])


def test_urls_keep_their_order_and_are_taken_once():
    params = command.make_context("trio-crawler", ["b", "a", "http://b"]).params
    assert params["urls"] == ("http://b", "http://a")


def test_a_crawl_in_the_spelling_of_the_chapter_runs():
    with threaded_raw_server({"/": html()}) as server:
        host = server.url.removeprefix("http://")
        result = crawl("--max_tasks", "5", "--max_tries", "1", "--max_redirect=2", host)
    assert (result.returncode, result.stderr) == (0, "")
    assert "workers=5" in result.stdout
    assert server.targets == ["/"]
