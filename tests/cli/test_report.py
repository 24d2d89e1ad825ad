"""The report of a crawl directory, printed again without the network."""

from __future__ import annotations

import csv
import io
import json
import re
import signal
from functools import partial
from pathlib import Path
from xml.etree import ElementTree

import pytest
from cli.command import crawl, ended, here, start
from cli.gate import Gate
from sites.raw import html, redirect, reply, threaded_raw_server
from store.batches import admitted

from trio_crawler.cli.main import main, report_command
from trio_crawler.store import End
from trio_crawler.store.store import Store

SITE = {
    "/": html("/a", "/old", "/gone", "http://other.test/", title="Home"),
    "/a": html("/"),
    "/old": redirect("/a"),
    "/sitemap.xml": reply(
        headers={"Content-Type": "application/xml"},
        body=b"<urlset><url><loc>/a</loc></url></urlset>",
    ),
}


def tell(*words: str) -> int:
    """Print a report in this process; return its status."""
    return int(report_command.main(list(words), standalone_mode=False))


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Crawl a site; give the directory and the URL."""
    directory = str(tmp_path_factory.mktemp("report") / "crawl")
    with threaded_raw_server(SITE) as server:
        words = ["--ignore-nofollow", "--max-tasks", "3", "--sitemap", "/sitemap.xml"]
        assert here("-o", directory, *words, server.url) == 1
    return directory, server.url


@pytest.mark.parametrize(
    ("how", "line"),
    [
        (End.STOPPED, "Ended early: stopped"),
        (End.CUT_SHORT, "Ended early: cut short"),
        (End.SPENT, "1 URL waits in {}: a greater --max-pages goes on"),
        (End.FINISHED, "1 URL waits in {}: the same command goes on"),
        (None, "1 URL waits in {}: the same command goes on"),
    ],
)
def test_the_report_says_how_the_last_run_ended(tmp_path, capsys, how, line):
    with Store.open(tmp_path) as store:
        store.write(admitted("a"))
        if how is not None:
            store.end(how, [], 1.0)
    tell(str(tmp_path))
    out = capsys.readouterr().out
    assert line.format(tmp_path) in out.splitlines()
    assert ("Ended early" in out) == line.startswith("Ended early")


def without_time(report: str) -> str:
    return re.sub(r"Finished .* s \(.* URLs/s, ", "", report)


@pytest.mark.parametrize("words", [[], ["--why"], ["-v"], ["--why", "-v"]], ids=" ".join)
def test_it_tells_what_the_crawl_told(site, words, capsys):
    directory, url = site
    crawled = ["--ignore-nofollow", "--max-tasks", "3", "--sitemap", "/sitemap.xml"]
    assert here("-o", directory, *crawled, *words, url) == 1
    before = capsys.readouterr().out
    assert tell(directory, *words) == 1
    out, err = capsys.readouterr()
    connections = re.compile(r"Connections: .*\n\n")
    assert without_time(out) == without_time(connections.sub("", before))
    assert err == ""
    assert f"  404 {url}gone\n      from {url}\n" in out
    assert "nofollow ignored" in out
    assert "workers=3" in out
    assert "Sitemaps: 1 sitemap" in out


def test_the_words_of_a_shell_are_enough(site):
    directory, url = site
    result = crawl("report", directory)
    assert (result.returncode, result.stderr) == (1, "")
    assert result.stdout.startswith(f"Crawl of {url}: 1 broken link\n")


def test_every_export_can_be_written_from_it(site, tmp_path, capsys):
    directory, url = site
    names = ["--jsonl", "--csv", "--links", "--sitemap-xml"]
    words = [word for name in names for word in (name, str(tmp_path / name.strip("-")))]
    assert tell(directory, *words) == 1
    urls = sorted([url, f"{url}a", f"{url}old", f"{url}gone"])
    lines = (tmp_path / "jsonl").read_text().splitlines()
    assert sorted(json.loads(line)["url"] for line in lines) == urls
    rows = csv.DictReader(io.StringIO((tmp_path / "csv").read_text(), newline=""))
    assert sorted(row["url"] for row in rows) == urls
    assert f"{url},http://other.test/," in (tmp_path / "links").read_text()
    found = ElementTree.parse(tmp_path / "sitemap-xml").getroot()
    assert sorted(each.text for each in found.iterfind("{*}url/{*}loc")) == [url, f"{url}a"]
    assert len(list(tmp_path.iterdir())) == 4


@pytest.mark.parametrize("kept", [True, False])
def test_links_without_texts_are_told_by_a_report_and_by_a_run_that_goes_on(
    tmp_path, capsys, kept
):
    directory, links = str(tmp_path / "crawl"), tmp_path / "links"
    words = ["-o", directory, *(["--links", str(links)] if kept else [])]
    told = f"trio-crawler: --links {links}: the links of 1 page have no texts, which"
    with threaded_raw_server({"/": html("/a"), "/a": html()}) as server:
        assert here(*words, server.url) == 0
        for command in (partial(tell, directory), partial(here, "-o", directory, server.url)):
            assert "trio-crawler: " not in capsys.readouterr().err
            assert command("--links", str(links)) == 0
            assert capsys.readouterr().err.startswith(told) is not kept
            ((_, url, kind, text, _),) = list(csv.reader(links.read_text().splitlines()))[1:]
            assert (url, kind, text != "") == (f"{server.url}a", "a" if kept else "", kept)


def test_changes_of_one_walk_are_none_and_of_two_are_told(tmp_path, capsys):
    directory, pages = str(tmp_path / "crawl"), {"/": html("/a"), "/a": html()}
    with threaded_raw_server(pages) as server:
        here("-o", directory, server.url)
        capsys.readouterr()
        assert tell(directory, "--changes") == 0
        once = capsys.readouterr().out
        pages["/"] = html("/b")
        pages["/b"] = html(title="b")
        here("-o", directory, "--refresh", server.url)
        walked = capsys.readouterr().out
        assert tell(directory, "--changes") == 0
        again = capsys.readouterr().out
    assert once.endswith("--refresh crawls it again and reports the changes\n")
    told = again[again.index("\nChanges since ") :]
    assert told == walked[walked.index("\nChanges since ") :]
    assert ": 1 new, 1 changed, 1 gone, 0 unchanged\n" in told


def test_a_crawl_that_goes_on_can_be_reported(tmp_path):
    gate = Gate()
    directory = str(tmp_path / "crawl")
    pages = {"/": html("/slow"), "/slow": gate}
    with threaded_raw_server(pages) as server, start("-o", directory, server.url) as process:
        assert gate.came.wait(20)
        meanwhile = crawl("report", directory)
        gate.open()
        out, err = ended(process)
    assert (meanwhile.returncode, meanwhile.stderr) == (0, "")
    assert f"1 URL waits in {directory}" in meanwhile.stdout
    assert (process.returncode, err) == (0, "")
    assert "\nadmitted 2 = 2 pages " in out


# What can be wrong.


@pytest.mark.parametrize("make", [lambda path: None, Path.mkdir, Path.touch])
def test_where_no_crawl_is_one_line_says_so(tmp_path, make, capsys):
    path = tmp_path / "crawl"
    make(path)
    assert tell(str(path)) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert re.fullmatch(rf"trio-crawler: {path}: .+\n", err)


def test_a_reader_that_leaves_ends_it_without_a_word(site):
    with start("report", site[0]) as process:
        process.stdout.close()
        process.stdout = None
        _, err = ended(process)
    assert err == ""
    assert process.returncode == 128 + signal.SIGPIPE


def test_a_host_of_that_name_is_written_as_a_url(monkeypatch, capsys):
    words = ["trio-crawler", "http://report/", "--max-tries", "1", "--timeout", "0.001"]
    monkeypatch.setattr("sys.argv", words)
    with pytest.raises(SystemExit):
        main()
    assert capsys.readouterr().out.startswith(
        "Crawl of http://report/: no page was fetched, 1 broken link\n"
    )


@pytest.mark.parametrize("option", ["--csv", "--links", "--sitemap-xml", "--jsonl"])
@pytest.mark.parametrize("name", ["crawl.sqlite", "pages.jsonl"])
def test_an_export_does_not_take_the_place_of_a_file_of_the_crawl(tmp_path, capsys, option, name):
    directory = tmp_path / "crawl"
    with threaded_raw_server({"/robots.txt": reply(404), "/": html()}) as server:
        words = ["-o", str(directory), server.url]
        assert here(*words, "--jsonl", str(directory / "pages.jsonl")) == 0
        before = (directory / name).read_bytes()
        capsys.readouterr()
        assert tell(str(directory), option, str(directory / name)) == 1
        refused = [capsys.readouterr().err]
        if option != "--jsonl":
            assert here(*words, option, str(directory / name)) == 1
            refused.append(capsys.readouterr().err)
    for line in refused:
        assert line.endswith("it is a file of the crawl itself: give another path\n")
        assert line.count("\n") == 1
    assert (directory / name).read_bytes()[:16] == before[:16]
    assert list(directory.glob("*.part")) == []
