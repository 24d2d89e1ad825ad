"""What may be said on the command line, and the one line that says what was wrong."""

from __future__ import annotations

import re
import resource
import subprocess
import sys
from inspect import signature
from urllib.parse import unquote

import ada_url
import click
import pytest
from cases import for_each
from cli.asked import pages
from cli.command import crawl, ended, environment, start
from hypothesis import example, given
from hypothesis import strategies as st
from sites.raw import html, threaded_raw_server

from trio_crawler import Crawler, HttpFetch, Limits, Politeness, __version__, normalise
from trio_crawler.cli.main import command, main
from trio_crawler.cli.options import CrawlOptions
from trio_crawler.cli.parsing import Group
from trio_crawler.page import has_accelerator

URL = "http://127.0.0.1:9/"

WRONG = {
    "no URL": ([], "name at least one URL"),
    "an empty URL": ([""], "empty URL"),
    "a negative depth": (["--depth", "-1", URL], "--depth"),
    "no tasks": (["--max-tasks", "0", URL], "--max-tasks"),
    "none of a host at a time": (["--per-host", "0", URL], "'--per-host': 0 is not in the range"),
    "a delay below zero": (
        ["--delay", "-1", URL],
        "--delay must be 0 or more, and finite, not -1",
    ),
    "a delay in words": (["--delay", "long", URL], "'--delay': 'long' is not a time"),
    "patience without end": (
        ["--patience", "inf", URL],
        "--patience must be 0 or more, and finite",
    ),
    "an order that is none": (
        ["--order", "x", URL],
        "'--order': 'x' is not one of 'breadth', 'depth', 'sitemap'",
    ),
    "a sender without a host": (
        ["--from", "nobody", URL],
        "--from must be an e-mail address such as me@example.org",
    ),
    "a sitemap of another scheme": (
        ["--sitemap", "ftp://x/", URL],
        "--sitemap: not an http or https URL: 'ftp://x/'",
    ),
    "no sitemap": (["--sitemap", "", URL], "'--sitemap': an empty URL"),
    "a user in a sitemap": (["--sitemap", "me@x/s.xml", URL], "'--sitemap': a URL must not hold"),
    "a sitemap, and none": (
        ["--sitemap", "/s.xml", "--no-sitemaps", URL],
        "use --sitemap or --no-sitemaps, not both",
    ),
    "no time-out": (["--timeout", "0", URL], "--timeout"),
    "a time that is no number": (["--max-time", "nan", URL], "--max-time must be more than 0"),
    "a bad --exclude": (["--exclude", "(", URL], "--exclude: not a regular expression: '('"),
    "a bad --under": (
        ["--under", "http://[", URL],
        "--under: not an http or https URL: 'http://['",
    ),
    "a header without a colon": (["--header", "Accept", URL], "write it as 'Name: value'"),
    "a header that is ours": (
        ["--header", "Host: x", URL],
        "--header: the header Host is set by the crawler",
    ),
    "a user agent of two lines": (
        ["--user-agent", "a\r\nb", URL],
        "--user-agent must be one line of text",
    ),
    "a URL of another scheme": (
        ["ftp://127.0.0.1/"],
        "URL: not an http or https URL: 'ftp://127.0.0.1/'",
    ),
    "a user in a prefix": (["--under", "http://user@127.0.0.1/", URL], "give them with --auth"),
    "no user": (["--auth", "", URL], "'--auth': write it as USER:PASSWORD"),
    "a password of two lines": (
        ["--auth", "user:a\nb", URL],
        "--auth must be text without control characters",
    ),
    "a password twice": (
        ["--auth", "a:b", "--header", "authorization: c", URL],
        "--auth or a --header Authorization, not both",
    ),
    "a cookie without a value": (["--cookie", "name", URL], "'--cookie': write it as NAME=VALUE"),
    "an empty regular expression to follow": (
        ["--include", "", URL],
        "--include: an empty regular expression is found in every URL",
    ),
    "an empty prefix": (["--under", "", URL], "'--under': an empty prefix"),
    "no name of a file of lines": (
        ["--jsonl", "", URL],
        "--jsonl needs the name of a file, not ''",
    ),
    "a report of no directory": (["report", ""], "DIR needs the name of a directory"),
    "an e-mail address as a URL": (["mailto:a@b.c"], "with mailto:, which is an e-mail address"),
    "an e-mail address alone": (["a@b.c"], "an e-mail address is no URL"),
    "a file after an at sign": (["@urls.txt"], "URLs are not read from a file after @"),
    "a path of a file as a URL": (["file:///x"], "URL: not an http or https URL: 'file:///x'"),
    "a folder": (["./folder"], "write trio-crawler check ./folder"),
    "a folder of the root": (["/srv/www"], "/srv/www is a path, not a URL"),
    "a file that is not there": (["index.html"], "index.html is a file, not a URL; if there is"),
    "a file that is there": (["pyproject.toml"], "write http://pyproject.toml"),
    "a file below a folder": (["docs/index.md"], "docs/index.md is a file, not a URL"),
    "cookies in two ways": (
        ["--cookie", "a=b", "--header", "COOKIE: c=d", URL],
        "--cookie or a --header Cookie, not both",
    ),
    "a URL as a host": (
        ["--insecure-host", "https://a.test/", URL],
        "--insecure-host must be a host such as",
    ),
    "a network with host bits": (
        ["--allow-private", "10.0.0.1/8", URL],
        "--allow-private must be a network without host bits, such as 10.0.0.0/8",
    ),
    "private addresses, and public ones only": (
        ["--allow-private", "10.0.0.0/8", "--public-only", URL],
        "use --allow-private or --public-only, not both",
    ),
    "a proxy of another scheme": (
        ["--proxy", "ftp://x", URL],
        "--proxy must be a URL such as http://127.0.0.1:3128",
    ),
    "a proxy, and those of the environment": (
        ["--proxy", "http://x:1", "--trust-env", URL],
        "use --proxy or --trust-env, not both",
    ),
    "what is no URL": (["http://[x"], "URL: not an http or https URL: 'http://[x'"),
    "an address of IPv6": (["::1"], "URL: not an http or https URL: 'http://::1'"),
    "a file in no directory": (
        ["--jsonl", "/no/where", URL],
        "cannot write --jsonl /no/where: No such file",
    ),
    "a directory as a sitemap": (
        ["--sitemap-xml", "/", URL],
        "cannot write --sitemap-xml /: Is a directory",
    ),
    "a sitemap in a pipe": (["--sitemap-xml", "-", URL], "--sitemap-xml needs the name of a file"),
    "a sitemap in a device": (
        ["--sitemap-xml", "/dev/null", URL],
        "write --sitemap-xml /dev/null: it is no plain file",
    ),
    "an archive in a pipe": (["--warc", "-", URL], "--warc needs the name of a file, not '-'"),
    "two things in one pipe": (
        ["--csv", "-", "--jsonl", "-", URL],
        "--jsonl and --csv cannot both write to standard output",
    ),
    "two things in one file": (
        ["--links", "/no/x", "--csv", "/no/./x", URL],
        "--csv and --links cannot both write to /no/x",
    ),
    "a new walk without a directory": (["--refresh", URL], "--refresh needs a crawl directory"),
    "no name of a directory": (["-o", "", URL], "-o needs the name of a directory"),
    "a pipe as a directory": (["-o", "-", URL], "-o needs the name of a directory"),
    "a report of nothing": (["report"], "Missing argument 'DIR'"),
    "a report with an option of the crawl": (["report", "--depth", "1", "a"], "--depth"),
    "an unknown option": (["--no-such", URL], "--no-such"),
    "half an option": (["--max-ta", "5", URL], "--max-tasks"),
    "an option without its value": ([URL, "--depth"], "--depth"),
}


@for_each("case", WRONG)
def test_wrong_usage_is_status_2_and_one_line_that_names_the_cause_and_the_option(
    case, monkeypatch, capsys
):
    words, cause = WRONG[case]
    monkeypatch.setattr("sys.argv", ["trio-crawler", *words])
    with pytest.raises(SystemExit) as left:
        main()
    out, err = capsys.readouterr()
    assert (left.value.code, out) == (2, "")
    assert re.fullmatch(r"trio-crawler: .+\n", err)
    assert cause in err
    typed = [word.replace("_", "-") for word in words if word.startswith("-") and word != "-"]
    assert any(word in err for word in typed or ["URL", "DIR", "extra argument"])
    assert not re.search(r"\b(max_|user_|insecure_|allow_|per_|seeds|prefixes|patterns)", err)


def test_an_option_has_the_name_of_the_argument_that_it_becomes():
    parts = (Crawler, HttpFetch, Limits, Politeness)
    arguments = {name for part in parts for name in signature(part).parameters}
    made = {"scope", "limits", "politeness", "traps", "fetch", "frontier", "agent", "anchors"}
    made |= {"bodies", "origin_headers"}
    negated = {"robots", "nofollow"}
    absent = {"max_links", "max_idle", "tls", "random", "request"}
    names = CrawlOptions.fields.keys()
    assert arguments - made - negated - absent <= names
    assert names.isdisjoint(made | negated | absent)


SECRETS = [
    ["http://user:s3cret%0A@127.0.0.1/"],
    ["http://user%3A:s3cret@127.0.0.1/"],
    ["http://user:s3cret%FF@127.0.0.1/"],
    ["http://user:s3cret@127.0.0.1/", "http://user:other@127.0.0.1/"],
    ["--header", "Authorization: x", "http://user:s3cret@127.0.0.1/"],
    ["--auth", "user:s3cret", "http://u:s3cret@127.0.0.1/"],
    ["http://user:s3cret@/127.0.0.1"],
    ["http://user:s3cret@\t\\127.0.0.1"],
    ["--under", "http:/\t/user:s3cret@127.0.0.1", URL],
    ["s3cret@127.0.0.1"],
    ["http://s3cret@127.0.0.1"],
    ["mailto:s3cret@127.0.0.1"],
    ["--auth", "@user:s3cret", URL],
    ["--auth", "@env:user:s3cret", URL],
    ["--header", "@Authorization: s3cret", URL],
    ["--cookie", "@a=s3cret", URL],
    ["--proxy", "@user:s3cret@127.0.0.1", URL],
    ["--proxy", "http://s3cret@127.0.0.1", URL],
    ["http://user:s3cret@[x"],
    ["user:s3cret@127.0.0.1:99999"],
    ["ftp://user:s3cret@127.0.0.1/"],
    ["--under", "http://user:s3cret@[x", URL],
    ["--sitemap", "http://user:s3cret@[x", URL],
    ["--sitemap", "//user:s3cret@x/", URL],
    ["--sitemap", "user:s3cret@127.0.0.1:99999", URL],
    ["--auth", "s3cret", URL],
    ["--auth", "user:s3cret\n", URL],
    ["--auth", "user:s3cret", "--header", "Authorization: Bearer s3cret", URL],
    ["--auth=user:s3cret", "--no-such", URL],
    ["--aut=user:s3cret", URL],
    ["--header", "Authorization Bearer s3cret", URL],
    ["--header", "Authorization: s3cret\nx", URL],
    ["--header", "Host: s3cret", URL],
    ["--cookie", "s3cret", URL],
    ["--cookie", "a=s3cret\n", URL],
    ["--cookie", "a=s3cret", "--header", "Cookie: b=s3cret", URL],
    ["--proxy", "ftp://user:s3cret@127.0.0.1", URL],
    ["--proxy", "http://user:s3cret@[127.0.0.1", URL],
    ["--insecure-host", "https://user:s3cret@127.0.0.1/", URL],
]


@for_each("words", SECRETS, ids=" ".join)
def test_what_may_be_a_password_is_not_told_again_when_it_is_wrong(words, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["trio-crawler", *words])
    with pytest.raises(SystemExit) as left:
        main()
    out, err = capsys.readouterr()
    assert (left.value.code, out) == (2, "")
    assert re.fullmatch(r"trio-crawler: .+\n", err)
    assert "s3cret" not in err


def test_a_package_that_is_missing_is_named_with_the_command_that_brings_it(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "h2", None)
    monkeypatch.setattr("sys.argv", ["trio-crawler", "--http2", URL])
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 2
    assert "pip install 'trio-crawler[http2]'\n" in capsys.readouterr().err


BUG = """
import trio_crawler.report
def text(*args, **more):
    raise ValueError("a bug")
trio_crawler.report.Report.text = text
from trio_crawler.cli import main
main()
"""


def test_a_value_error_of_the_crawl_is_a_bug_with_a_traceback_and_no_wrong_usage():
    command = [sys.executable, "-c", BUG, "--max-tries", "1", URL]
    run = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=30)
    assert run.returncode == 1
    assert run.stderr.startswith("Traceback")
    assert "ValueError: a bug" in run.stderr
    assert "trio-crawler:" not in run.stderr


def test_the_version_is_that_of_the_package():
    result = crawl("--version")
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.split() == ["trio_crawler", __version__]


def test_the_version_says_on_request_whether_there_is_a_compiled_scanner(monkeypatch):
    found = "yes" if has_accelerator() else "no"
    for words in (["--version", "-v"], ["-v", "--version"]):
        lines = crawl(*words).stdout.splitlines()
        assert lines == [f"trio_crawler {__version__}", f"compiled readers of pages: {found}"]
    monkeypatch.setenv("TRIO_CRAWLER_PURE", "1")
    assert crawl("--version", "-v").stdout.splitlines()[1] == "compiled readers of pages: no"


def test_help_names_every_option_and_exit_status():
    result = crawl("--help")
    assert (result.returncode, result.stderr) == (0, "")
    names = {name for parameter in command.params for name in parameter.opts} - {"seeds"}
    assert names
    assert [name for name in names if name not in result.stdout] == []
    assert [n for n in (0, 1, 2, 3, 130) if not re.search(rf"^ +{n} ", result.stdout, re.M)] == []


def test_help_shows_each_option_once_under_the_heading_of_its_group():
    text = crawl("--help", env=environment(COLUMNS="96")).stdout
    groups: dict[str, list[str]] = {}
    for line in text.splitlines():
        if re.fullmatch(r"[A-Z][a-z ,]+:", line):
            named = groups.setdefault(line, [])
        elif found := re.match(r"  (?:-., )?(--[a-z0-9-]+)", line):
            named.append(found[1])
    assert list(groups) == [f"{title}:" for title in Group]
    listed = [name for names in groups.values() for name in names]
    known = [parameter.opts[-1] for parameter in command.params if parameter.name != "seeds"]
    assert sorted(listed) == sorted({*known, "--help"} - {"-h"})


def test_help_is_there_at_once():
    # CPU seconds: what else the machine does is not counted.
    def spent() -> float:
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    took = []
    for _ in range(3):
        before = spent()
        with start("--help") as process:
            ended(process)
        took.append(spent() - before)
    assert 0 < min(took) < 0.3


def said(*words: str) -> dict[str, object]:
    """Parse a command line without running it."""
    with command.make_context("trio-crawler", [*words, "example.org"]) as context:
        return context.params


def test_every_option_of_the_chapter_is_understood_in_its_own_spelling():
    words = "--max_redirect 3 --max_tries=2 --max_tasks 7 --exclude x_y --lenient"
    params = said(*words.split())
    assert (params["max_redirects"], params["max_tries"], params["workers"]) == (3, 2, 7)
    assert (params["exclude"], params["strict"]) == (("x_y",), False)


@for_each(
    "words, level",
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
    assert said(*words)["level"] == level


def test_cookies_are_taken_one_by_one_or_as_a_header_has_them():
    params = said("--cookie", "a=1", "--cookie", "b=2; c=3=4", "--cookie", "d=")
    assert params["own_cookies"] == ("a=1", "b=2", "c=3=4", "d=")


@for_each(
    "word, url",
    [
        ("http:/example.org/", "http:/example.org/"),
        ("example.org", "http://example.org"),
        ("example.org:8080/a", "http://example.org:8080/a"),
        (" https://example.org/ ", "https://example.org/"),
        ("HTTPS://example.org/", "HTTPS://example.org/"),
        ("example.org/?to=http://x/", "http://example.org/?to=http://x/"),
        ("[::1]:8080/a", "http://[::1]:8080/a"),
        ("example.org/@me", "http://example.org/@me"),
        ("example.org?mail=me@x", "http://example.org?mail=me@x"),
    ],
)
def test_a_url_without_a_scheme_gets_http(word, url):
    assert command.make_context("trio-crawler", [word]).params["seeds"] == (url,)


@for_each(
    "word, url, login",
    [
        ("http://me:word@example.org/a", "http://example.org/a", ("me", "word")),
        ("me:word@example.org:80", "http://example.org:80", ("me", "word")),
        ("http://me@example.org#x", "http://example.org#x", ("me", None)),
        ("ME:@x?a/b", "http://x?a/b", ("ME", "")),
        ("http://:word@x", "http://x", ("", "word")),
        ("http:/me:word@x", "http:/x", ("me", "word")),
        ("HTTP:\\\\me:word@x\\a@b", "HTTP:\\\\x\\a@b", ("me", "word")),
        ("http:///\tme:wo\nrd@x", "http:///x", ("me", "word")),
        ("http:me:word@x", "http:x", ("me", "word")),
        ("http://me:a:b@c@x/", "http://x/", ("me", "a:b@c")),
        ("http://m%C3%A9:%40%3A%2F%25@x/", "http://x/", ("m\xe9", "@:/%")),
        ("http://me:100%@x/", "http://x/", ("me", "100%")),
        ("http://me:w@[::1]:8/", "http://[::1]:8/", ("me", "w")),
        ("http://@x/", "http://x/", None),
        ("http://:@x/", "http://x/", None),
    ],
)
def test_a_user_before_the_host_is_a_login_wherever_the_url_goes_on(word, url, login):
    params = command.make_context("trio-crawler", [word]).params
    assert params["seeds"] == (url,)
    assert params["logins"] == (((url, login),) if login else ())


PARTS = ["http", "HTTP", "ftp", *":/\\@?#%0uh", "//", "[::1]", "%40", "%3A", "é", " ", "\t", "\n"]


@given(st.lists(st.sampled_from(PARTS), max_size=9), st.booleans())
@example(["u:p", "@", "/", "h"], True)
@example(["u:p", "@", "\t", "\\", "h"], True)
def test_host_user_and_password_are_those_of_the_url_standard(parts, with_scheme):
    word = ("http://" if with_scheme else "") + "".join(parts)
    try:
        params = command.make_context("trio-crawler", ["--", word]).params
    except click.UsageError:
        return
    (seed,), logins = params["seeds"], params["logins"]
    try:
        url = normalise(seed)
    except ValueError:
        return
    bare = re.sub("[\t\n]", "", word.strip())
    whole = (
        bare
        if re.match("[a-z]+://|https?:(?![0-9]+([/?#\\\\]|$))", bare, re.I)
        else f"http://{bare}"
    )
    standard = ada_url.URL(whole)
    assert url == normalise(whole)
    user, password = ((unquote(part)) for part in (standard.username, standard.password))
    found = [(each[0], each[1] or "") for _, each in logins] or [("", "")]
    assert not url.startswith("http") or found == [(user, password)]


def test_the_password_in_a_url_is_not_in_a_traceback_by_the_options():
    params = command.make_context("trio-crawler", ["http://me:s3cret@x/"]).params
    assert "s3cret" not in repr(CrawlOptions(**params))


@for_each(
    "word, found",
    [
        ("/sitemap.xml", "/sitemap.xml"),
        (" /a?b=http://c ", "/a?b=http://c"),
        ("example.org/s.xml", "http://example.org/s.xml"),
        ("example.org:8080/s.xml", "http://example.org:8080/s.xml"),
        ("//example.org/s.xml", "http:////example.org/s.xml"),
        ("https://example.org/s.xml", "https://example.org/s.xml"),
    ],
)
def test_a_sitemap_is_a_url_with_or_without_scheme_or_a_path(word, found):
    assert said("--sitemap", word)["sitemaps"] == (found,)


def test_urls_keep_their_order_and_are_taken_once():
    params = command.make_context("trio-crawler", ["b", "a", "http://b"]).params
    assert params["seeds"] == ("http://b", "http://a")


def test_a_crawl_in_the_spelling_of_the_chapter_runs():
    with threaded_raw_server({"/": html()}) as server:
        host = server.url.removeprefix("http://")
        result = crawl(
            "--max_tasks=5", "--per_host=5", "--max_tries", "1", "--max_redirect=2", host
        )
    assert (result.returncode, result.stderr) == (0, "")
    assert "workers=5" in result.stdout
    assert pages(server) == ["/"]
