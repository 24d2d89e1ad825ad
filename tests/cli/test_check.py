"""The command that checks the links of a site, or of a folder, for its owner and for CI."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
import trio
from cases import for_each
from cli.asked import pages
from cli.command import crawl, here
from sites.raw import Request, Server, html, redirect, reply, threaded_raw_server

from trio_crawler import History
from trio_crawler.check import text as check_text
from trio_crawler.cli.build import Folder, pages_in
from trio_crawler.cli.results import WRITERS
from trio_crawler.net import FolderFetch
from trio_crawler.report import sections

PAGE = "<!doctype html><title>{}</title>{}"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with a site that has three faults in two pages."""
    site = tmp_path / "public"
    (site / "sub").mkdir(parents=True)
    start = """
<a href="sub/">below</a> <a href=gone.html>gone</a>
<img src="pictures/none.png" alt="a picture">
<a href="https://example.org/sub/page.html#here">here</a>
"""
    (site / "index.html").write_text(PAGE.format("Start", start))
    (site / "sub" / "index.html").write_text(PAGE.format("Below", '<a href="page.html">page</a>'))
    page = '<h1 id=here>x</h1><a href="#nowhere">nowhere</a><a href="#top">top</a>'
    (site / "sub" / "page.html").write_text(PAGE.format("Page", page))
    return site


@pytest.fixture
def lonely(folder: Path) -> Path:
    """Return a folder with pages that no link leads to, and other files."""
    files = {
        "index.html": '<a href=sub/>below</a> <img src=a.png><a href="lone.htm#lone">here</a>',
        "lone.htm": "<p id=lone>",
        "404.html": "<a href=/index.html>home</a>",
        "old%20 ö/far.XHTML": "<a href=gone.html>gone</a><a href=far.XHTML>itself</a>",
        ".git/x.html": "<a href=gone2.html>gone</a>",
        "a.png": "",
        "b.png": "",
        "sitemap.xml": "<urlset><url><loc>https://example.org/listed.html</loc></url></urlset>",
        "drafts/index.html": "<a href=gone3.html>gone</a>",
    }
    for path, body in files.items():
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_text(body)
    (folder / "sub" / "page.html").write_text("")
    (folder / "out.html").symlink_to(Path(__file__))
    (folder / "loop").symlink_to(folder)
    return folder


BASE = ("--base-url", "https://example.org/")


def test_the_faults_of_a_folder_are_told_by_page_with_their_places(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert here("check", *BASE, str(folder)) == 1
    told = capsys.readouterr().out
    assert f"{folder}/index.html (2 faults)\n  2:26 404: /gone.html" in told
    assert '  3:1 404: /pictures/none.png "a picture"' in told
    assert f"{folder}/sub/page.html (1 fault)\n" in told
    assert "missing_fragment: /sub/page.html#nowhere" in told
    assert told.rstrip().endswith("3 faults, 0 notes")


def test_clean_urls_lead_to_files_of_html_on_request(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "index.html").write_text(PAGE.format("Start", '<a href="/about">about</a>'))
    (folder / "about.html").write_text(PAGE.format("About", ""))
    (folder / "sub" / "page.html").unlink()
    (folder / "sub" / "index.html").write_text("")
    assert here("check", str(folder)) == 1
    assert "/about.html\n" in capsys.readouterr().out
    assert here("check", "--clean-urls", str(folder)) == 0
    told = capsys.readouterr().out
    assert "that no link leads to (1)" in told
    assert "about" not in told.replace(str(folder), "")


FORMS = ("--junit", "--sarif", "--json", "--markdown", "--write-baseline")


def test_the_files_for_ci_have_the_faults_and_their_files(folder: Path, tmp_path: Path) -> None:
    files = {flag: tmp_path / f"out{flag}" for flag in FORMS}
    words = [word for flag, path in files.items() for word in (flag, str(path))]
    assert here("check", *BASE, *words, "-q", str(folder)) == 1
    suites = ET.fromstring(files["--junit"].read_text())
    assert suites.get("failures") == "3"
    (run,) = json.loads(files["--sarif"].read_text())["runs"]
    assert len(run["results"]) == 3
    summary = json.loads(files["--json"].read_text())
    assert summary["counts"]["verdict"] == {"fault": 3, "note": 0}
    assert "gone.html" in files["--markdown"].read_text()
    assert len(files["--write-baseline"].read_text().splitlines()) == 4


def test_a_baseline_lets_only_new_faults_fail_and_tells_what_was_mended(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    known = str(tmp_path / "known.jsonl")
    assert here("check", *BASE, "--write-baseline", known, str(folder)) == 1
    assert here("check", *BASE, "--baseline", known, str(folder)) == 0
    assert "3 known from the baseline" in capsys.readouterr().out
    assert here("check", *BASE, "--baseline", known, "--fail-on", "fault", str(folder)) == 1
    (folder / "gone.html").write_text(PAGE.format("Back", '<a href="other.html">other</a>'))
    capsys.readouterr()
    assert here("check", *BASE, "--baseline", known, str(folder)) == 1
    told = capsys.readouterr().out
    assert "Mended since the baseline (1)" in told
    assert "other.html" in told


def test_a_page_is_named_by_its_file_as_the_disk_has_it(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "index.html").write_text(PAGE.format("Start", '<a href="a%20b.html">a</a>'))
    (folder / "a b.html").write_text(PAGE.format("Gap", '<a href="gone">gone</a>'))
    assert here("check", "--github", str(folder)) == 1
    assert f"::error file={folder}/a b.html,line=1," in capsys.readouterr().out


def test_a_url_in_a_folder_has_the_name_of_its_file_and_none_outside(folder: Path) -> None:
    (folder.parent / "other.html").write_text("")
    home = "http://folder.invalid/"
    name = Folder(str(folder), home, clean_urls=False, whole=True).path_of
    assert name(f"{home}sub/page.html?x#y") == f"{folder}/sub/page.html#y"
    assert name(f"{home}sub/") == f"{folder}/sub/index.html"
    assert name(f"{home}n%20%C3%B6.html?x") == f"{folder}/n ö.html?x"
    assert name(f"{home}..%2fother.html") == f"{folder}/..%2fother.html"
    assert name("http://other.test/sub/page.html") is None
    assert Folder("./a", home, clean_urls=False, whole=True).path_of(f"{home}b") == "a/b"


async def test_a_folder_without_a_page_in_the_scope_is_left_at_a_cancel_scope(
    folder: Path,
) -> None:
    with trio.CancelScope() as scope:
        scope.cancel()
        assert [url async for url in pages_in(FolderFetch(folder), lambda job: False)] == []
    assert scope.cancelled_caught


def test_a_folder_without_a_page_is_told_and_the_status_is_3(
    folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    linked = tmp_path / "linked"
    linked.mkdir()
    (linked / "index.html").symlink_to(folder / "index.html")
    (linked / "readme.txt").write_text("")
    assert here("check", str(linked)) == 3
    out, err = capfd.readouterr()
    assert f"no page of {linked} was read" in err
    assert "0 different links checked" in out


def test_no_file_and_no_line_names_a_host_for_a_folder_without_a_url(
    lonely: Path, tmp_path: Path
) -> None:
    (lonely / "moved.html").write_text('<a href="/sub">below</a><a href="/nö#x" rel=next>no</a>')
    kinds = ("csv", "links", "jsonl", "junit", "sarif", "markdown", "json", "write-baseline")
    words = [f"--{kind}={tmp_path / kind}" for kind in kinds]
    kept = str(tmp_path / "kept")
    found = crawl("check", "-v", "--github", *words, "-o", kept, str(lonely))
    again = crawl("report", "-v", kept, f"--csv={tmp_path / 'again'}")
    told = {kind: (tmp_path / kind).read_text() for kind in (*kinds, "again")}
    told |= {"out": found.stdout, "err": found.stderr, "report": again.stdout}
    assert [kind for kind, text in told.items() if "folder.invalid" in text] == []
    for kind in ("jsonl", "csv", "links", "junit", "markdown", "json", "out", "again"):
        assert f"{lonely}/drafts/gone3.html" in told[kind].replace("\\", ""), kind
    for kind in ("out", "junit", "sarif", "json"):
        assert "There is no such file" in told[kind]
        assert kind == "sarif" or "The server answers" not in told[kind]


def test_a_sitemap_of_a_folder_needs_its_url(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(click.UsageError, match="--sitemap-xml of a folder needs --base-url"):
        here("check", "--sitemap-xml", str(tmp_path / "x.xml"), str(folder))


# A site.


@pytest.fixture
def server() -> Iterator[Server]:
    async def answer(request: Request, stream: trio.abc.Stream) -> None:
        if request.target == "/":
            body = (
                b'<!doctype html><title>x</title><a href="/a">a</a><a rel=nofollow href="/b">b</a>'
                b'<a href="/old">old</a>'
            )
            await stream.send_all(reply(200, {"Content-Type": "text/html"}, body))
        elif request.target in ("/a", "/b"):
            await stream.send_all(html())
        elif request.target == "/old":
            await stream.send_all(reply(301, {"Location": "/a"}))
        else:
            await stream.send_all(html(status=404))

    with threaded_raw_server(answer) as server:
        yield server


def test_an_owner_is_told_what_is_behind_nofollow(
    server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    assert here("check", server.url) == 0
    assert "/b" in pages(server)
    capsys.readouterr()
    here(server.url)
    assert pages(server).count("/b") == 1


def test_a_permanent_redirect_is_a_note_and_fails_only_on_request(
    server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    assert here("check", server.url) == 0
    assert "note 301 -> /a: /old" in capsys.readouterr().out
    assert here("check", "--fail-on", "note", server.url) == 1
    assert here("check", "--redirects", "fault", server.url) == 1
    assert here("check", "--fail-on", "note", "--ignore", "/old$", server.url) == 0
    assert here("check", "--fail-on", "note", "--accept", "200..399", server.url) == 0


def test_a_plain_crawl_says_what_it_does_not_check(
    server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    here(server.url)
    assert "Not checked: links to other sites, images" in capsys.readouterr().out
    here("--check", "all", server.url)
    told = capsys.readouterr().out
    assert "Not checked: links to other sites" not in told
    assert "Link check, " in told


WRONG = {
    "no site": (["check"], "name a URL or a folder"),
    "a kind that is none": (["--check", "images", "h.test"], "'images' is none of external"),
    "a base without a folder": (["check", *BASE, "h.test"], "--base-url is for a folder"),
    "clean URLs of a crawl": (["--clean-urls", "h.test"], "--clean-urls is for a folder"),
    "a status that is none": (["check", "--accept", "20", "h.test"], "--accept"),
    "a pattern that is none": (["check", "--ignore", "(", "h.test"], "--ignore"),
    "no baseline": (["check", "--baseline", "/no/such", "h.test"], "--baseline: cannot read"),
    "no patterns": (["check", "--ignore-file", "/no/such", "h.test"], "--ignore-file: cannot"),
    "an age without a directory": (["check", "--max-age", "1d", "h.test"], "name it with -o"),
    "an age in words": (["check", "--max-age", "a day", "h.test"], "such as 500ms, 30s, 90m, 12h"),
    "an age below zero": (["check", "-o", "x", "--max-age=-1d", "h.test"], "must be 0 or more"),
    "an age of pages": (
        ["check", "--check", "assets", "-o", "x", "--max-age", "1d", "h.test"],
        "--max-age is about URLs outside the site",
    ),
    "no check of a host": (
        ["check", "--check-max-per-host", "0", "h.test"],
        "--check-max-per-host must",
    ),
    "a bound without checks": (["--check-max-per-host", "5", "h.test"], "--check external"),
    "an age of a plain crawl": (["-o", "x", "--max-age", "1d", "h.test"], "--check external"),
    "a delay below zero": (["check", "--check-delay", "-1", "h.test"], "--check-delay must be"),
}


@for_each("words, said", WRONG.values(), ids=WRONG)
def test_what_cannot_be_checked_is_one_line(words: list[str], said: str) -> None:
    with pytest.raises(click.UsageError) as refused:
        here(*words)
    assert said in refused.value.format_message()


def test_a_folder_or_a_file_is_checked_alone(folder: Path) -> None:
    for place in (folder, folder / "index.html"):
        with pytest.raises(click.UsageError, match="alone"):
            here("check", str(place), "h.test")


def test_a_file_that_cannot_be_written_is_said_before_the_check(server: Server) -> None:
    with pytest.raises(click.UsageError, match="--junit /no/such/file"):
        here("check", "--junit", "/no/such/file", server.url)
    assert server.requests == []


@for_each(
    "words, workers",
    [
        (["assets"], 4),
        (["assets", "--per-host", "7"], 7),
        (["assets", "--max-tasks", "3"], 3),
        # Most wait for other sites.
        (["external"], 100),
    ],
)
def test_a_folder_alone_is_read_by_few_tasks(
    words: list[str], workers: int, folder: Path, tmp_path: Path
) -> None:
    here("check", "-o", str(tmp_path / "crawl"), str(folder), "--check", *words)
    assert [run.workers for run in History(tmp_path / "crawl").runs] == [workers]


# All pages of a folder.


def faults(*words: str) -> dict[str, object]:
    """Return the bad paths of a check, and what it says about pages without a link to them."""
    told = json.loads(crawl("check", *words, "--json", "-", "-q").stdout)
    base = "https://example.org/"
    bad = sorted(each["url"].removeprefix(base) for each in told["findings"])
    unlinked = told["unlinked"]
    alone = unlinked and [url.removeprefix(base) for url in unlinked]
    return {"bad": bad, "alone": alone, "unread": told["unread"]}


def test_a_page_with_two_urls_is_one_page(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "index.html").write_text('<a href="sub/index.html">a</a><a href=about.html>b</a>')
    (folder / "about.html").write_text("")
    (folder / "sub" / "index.html").write_text('<a href="gone.html">c</a><a href="page.html">d')
    (folder / "sub" / "page.html").write_text("")
    for words in ([], ["--clean-urls"]):
        assert here("check", *BASE, *words, str(folder)) == 1
        told = capsys.readouterr().out
        assert "1 target on 1 page: 1 fault, 0 notes" in told
        assert "no link leads to" not in told


FAR = "old%2520%20%C3%B6/"


def test_every_page_of_a_folder_is_checked_and_what_no_link_leads_to_is_told(lonely: Path) -> None:
    bad = ["drafts/gone3.html", "listed.html", f"{FAR}gone.html"]
    alone = ["drafts/", f"{FAR}far.XHTML"]
    assert faults(*BASE, str(lonely)) == {"bad": bad, "alone": alone, "unread": 1}
    # Without a first page, too: then no link leads to it and below.
    (lonely / "index.html").unlink()
    found = faults(*BASE, str(lonely))
    assert found["bad"] == sorted([*bad, "index.html"])
    assert found["unread"] == 2


def test_the_report_on_a_directory_has_the_pages_that_no_link_leads_to(
    lonely: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = str(tmp_path / "kept")
    assert here("check", *BASE, "-o", directory, str(lonely)) == 1
    told = capsys.readouterr().out
    assert "Pages that no link leads to (2)\n" in told
    assert "1 file of other kinds, that no link leads to, was not read" in told
    assert here("report", directory) == 1
    assert capsys.readouterr().out.splitlines()[3:] == told.splitlines()[3:]


@for_each(
    "words",
    {
        "links alone": (["--linked-only"], [], None),
        "no drafts": (["--exclude", "drafts|old"], ["listed.html"], []),
        "one part": (["--under", "/drafts/"], ["drafts/gone3.html"], ["drafts/"]),
        "no sitemap": (["--no-sitemaps", "--exclude", "old"], ["drafts/gone3.html"], ["drafts/"]),
        "another sitemap": (["--sitemap", "/a.xml", "--sitemap-only"], ["a.html"], None),
    }.values(),
)
def test_the_options_of_a_crawl_hold_for_a_folder(lonely: Path, words) -> None:
    listed = "<urlset><url><loc>https://example.org/a.html</loc></url></urlset>"
    (lonely / "a.xml").write_text(listed)
    given, bad, alone = words
    found = faults(*BASE, *given, str(lonely))
    assert (found["bad"], found["alone"]) == (bad, alone)


def test_a_depth_needs_a_check_of_links_alone(lonely: Path) -> None:
    with pytest.raises(click.UsageError, match="--depth needs --linked-only"):
        here("check", "--depth", "1", str(lonely))
    assert here("check", *BASE, "--depth", "1", "--linked-only", str(lonely)) == 0


def test_of_a_file_the_links_within_its_folder_are_followed(lonely: Path) -> None:
    far = lonely / "old%20 ö" / "far.XHTML"
    # Its folder is the root.
    assert faults(*BASE, str(far))["bad"] == ["gone.html"]
    several = faults(*BASE, str(far), str(lonely / "drafts" / "index.html"))
    assert several["bad"] == ["drafts/gone3.html", f"{FAR}gone.html"]
    assert faults(*BASE, str(lonely / "lone.htm")) == {"bad": [], "alone": None, "unread": 0}


def test_a_place_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(click.UsageError, match=r"there is no file or folder .*/none"):
        here("check", str(tmp_path / "none"))


def test_a_scheme_that_leads_nowhere_is_a_note_with_its_place(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    links = ("htp://x.test/", "file:///etc/passwd", "slack://open", "sms:1", "javascript:x()")
    page = "".join(f'\n<a href="{href}">x</a>' for href in links)
    (folder / "index.html").write_text(page)
    (folder / "sub" / "page.html").write_text("<p id=nowhere>")
    assert here("check", str(folder)) == 0
    told = capsys.readouterr().out
    assert '\n  2:1 note bad_scheme: htp://x.test/ "x" - htp: may be meant as http:\n' in told
    assert '\n  3:1 note bad_scheme: file:///etc/passwd "x" - a file: link leads' in told
    assert "0 faults, 2 notes" in told
    assert here("check", "--fail-on", "note", str(folder)) == 1


def test_what_robots_txt_hides_or_names_and_where_redirects_lead_is_told(
    capsys: pytest.CaptureFixture[str],
) -> None:
    robots = b"User-agent: *\nDisallow: /x/\nSitemap: {}none.xml\n"
    head = "<link rel=stylesheet href=/x/a.css><img src=/x/a.png><script src=/x/a.js></script>"
    body = f"{head}<a href=/f>f</a><a href=/j>j</a><a href=/m>m</a>".encode()
    site: dict[str, object] = {
        "/": reply(200, {"Content-Type": "text/html"}, body),
        "/f": redirect("file:///etc/passwd", 301),
        "/j": redirect("javascript:alert(1)"),
        "/m": redirect("mailto:a@b.test"),
    }
    with threaded_raw_server(site) as server:
        text = robots.replace(b"{}", server.url.encode())
        site["/robots.txt"] = reply(200, {"Content-Type": "text/plain"}, text)
        assert here("check", server.url) == 1
    told = capsys.readouterr().out
    assert "bad_status: /none.xml - status 404" in told
    assert f"{server.url}robots.txt (1 fault)" in told
    assert "note robots: /x/a.css" in told
    assert "note robots: /x/a.js" in told
    assert "note robots: /x/a.png" not in told
    for path, scheme in (("f", "file"), ("j", "javascript")):
        assert re.search(f"bad_location -> {scheme}:.*: /{path} .*leads to a {scheme}: URL", told)
    assert "update the link" not in told
    assert "3 faults, 2 notes" in told


# A memory of checks.


@pytest.fixture
def other() -> Iterator[Server]:
    """Return a server of another site; half of its pages are gone."""

    async def answer(request: Request, stream: trio.abc.Stream) -> None:
        gone = request.target.startswith("/gone")
        await stream.send_all(html(status=404 if gone else 200))

    with threaded_raw_server(answer) as server:
        yield server


@pytest.fixture
def linked(folder: Path, other: Server) -> Path:
    """Return a folder with links to the other site, to two pages that are there and one not."""
    names = ("fine", "well", "gone")
    links = "".join(f'<a href="{other.url}{name}">{name}</a>' for name in names)
    (folder / "index.html").write_text(PAGE.format("Start", links))
    (folder / "sub" / "page.html").unlink()
    (folder / "sub" / "index.html").unlink()
    return folder


PRIVATE = ("--allow-private", "127.0.0.0/8", "--check-delay", "0")


def test_the_same_line_each_night_does_not_ask_again_for_what_was_fine(
    linked: Path, other: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = ("check", "-o", str(tmp_path / "memory"), "--max-age", "1d", *PRIVATE, str(linked))
    told = []
    for _ in range(3):
        assert here(*line) == 1
        told.append(capsys.readouterr().out)
    asked = Counter(pages(other))
    assert (asked["/fine"], asked["/well"]) == (1, 1)
    assert asked["/gone"] == 6, "a HEAD and a GET each night"
    assert "not asked again" not in told[0]
    for each in told[1:]:
        assert "2 external URLs not asked again: fine in an earlier check" in each
    for each in told:
        assert "3 different links checked. 1 target on 1 page: 1 fault, 0 notes\n" in each


def test_without_a_max_age_a_finished_check_is_told_again_and_nothing_is_asked_for(
    linked: Path, other: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = ("check", "-o", str(tmp_path / "memory"), *PRIVATE, str(linked))
    assert here(*line) == 1
    first, asked = capsys.readouterr().out, len(other.requests)
    assert here(*line) == 1
    again = capsys.readouterr().out
    assert len(other.requests) == asked
    assert first.split("\n\n")[1:] == again.split("\n\n")[1:]
    assert again.endswith("is complete now: --refresh walks through the site again\n")
    # What was checked without a memory is known to the first run with one.
    assert here(*line[:1], "--max-age", "2W", *line[1:]) == 1
    assert "2 external URLs not asked again" in capsys.readouterr().out


def test_a_directory_of_another_folder_or_of_a_plain_crawl_is_refused(
    linked: Path, server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    memory = str(tmp_path / "memory")
    assert here("check", "-o", memory, *PRIVATE, str(linked)) == 1
    (tmp_path / "other").mkdir()
    assert here("check", "-o", memory, *PRIVATE, str(tmp_path / "other")) == 2
    assert "another crawl" in capsys.readouterr().err
    plain = str(tmp_path / "plain")
    assert here("-o", plain, server.url) == 0
    assert here("check", "-o", plain, server.url) == 2
    assert here("check", "-o", str(tmp_path / "owner"), server.url) == 0
    kinds = ("--check", "all", "--ignore-nofollow")
    assert here(*kinds, "-o", str(tmp_path / "owner"), server.url) == 0


@pytest.mark.parametrize(("words", "workers"), [((), 100), (("--max-tasks", "7"), 7)])
def test_a_check_has_more_workers_than_a_crawl_unless_a_number_is_given(
    linked: Path, server: Server, tmp_path: Path, words: tuple[str, ...], workers: int
) -> None:
    memory, plain = (str(tmp_path / name) for name in ("memory", "plain"))
    here("check", *words, "-o", memory, *PRIVATE, str(linked))
    here(*words, "-o", plain, server.url)
    with History(memory) as history:
        assert history.runs[-1].workers == workers
    with History(plain) as history:
        assert history.runs[-1].workers == min(workers, 10)


# Commands of strangers.

COMMAND = re.compile(r"##\w*\[")


@for_each("words", [["-v", "--why"], ["check", "-v", "--github", "--why"]])
def test_no_line_and_no_file_has_a_command_for_the_runner_of_a_ci(tmp_path: Path, words) -> None:
    bad = "##[stop-commands]x ##vso[task.setvariable variable=a]b"
    links = "".join(
        f'<a href="{href}">{bad}</a>'
        for href in ("/gone?##[a]", "/p###vso[task.x]", "htp:##[x]", "mailto:##[y]", "/to")
    )
    body = f"<title>{bad}</title>{links}<img src='/i##[g].png' alt='{bad}'>".encode()
    site = {"/": reply(200, {"Content-Type": "text/html"}, body), "/to": redirect("/?q=##[z]")}
    kinds = ["csv", "links", "jsonl"]
    kinds += ["junit", "sarif", "markdown", "json", "write-baseline"] * (words[0] == "check")
    with threaded_raw_server(site) as server:
        files = [f"--{kind}={tmp_path / kind}" for kind in kinds]
        found = crawl(*words, *files, server.url)
    told = {kind: (tmp_path / kind).read_text() for kind in kinds}
    told |= {"out": found.stdout, "err": found.stderr}
    assert {
        kind: COMMAND.findall(text) for kind, text in told.items() if COMMAND.search(text)
    } == {}
    assert r"#\x23[stop-commands]" in told["csv"]


# A bug of ours in one part of a report.


def test_a_section_that_fails_is_told_in_its_place_and_all_else_is_written(
    tmp_path, monkeypatch, capsys
):
    def fail(*given: object, **named: object) -> list[str]:
        raise KeyError("a bug")

    kept = str(tmp_path / "kept")
    names = ("csv", "junit", "sarif", "markdown", "json")
    words = [f"--{name}={tmp_path / name}" for name in names]
    with threaded_raw_server({"/": html("/old"), "/old": redirect("/new"), "/new": html()}) as web:
        monkeypatch.setattr(sections, "slowest", fail)
        monkeypatch.setattr(check_text, "_codes", fail)
        monkeypatch.setitem(WRITERS, "--sarif", fail)
        assert here(web.url, "--check", "all", "-o", kept, *words) == 1
        out, err = capsys.readouterr()
        assert here("report", kept) == 1
    lost = "A part of the report is missing, by a fault of trio_crawler: KeyError: 'a bug'"
    for told in (out, capsys.readouterr().out):
        assert told.count(f"\n\n{lost}\n\n") == 2
        assert "admitted" in told
        assert "0 faults" in told
    assert f"--sarif {tmp_path}/sarif is not written. {lost}" in out
    assert err.count("in fail\n") == 3
    written = {each.name for each in tmp_path.iterdir()}
    assert written == {"kept", "csv", "junit", "markdown", "json"}
