"""`--urls`: a list of URLs from a file or standard input, read as it is needed."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator

import pytest
import trio
from cases import for_each
from cli.command import crawl, ended, start, wait_until
from durable.server import Served, served
from durable.site import Site

from trio_crawler.cli.files import MAX_LINE, SeedList

LOCAL = ("--allow-private", "127.0.0.0/8", "-v")


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    with served(Site(30, 7), 30, 7) as server:
        yield server


async def read(octets: bytes) -> tuple[list[str], list[str], SeedList]:
    """Return the URLs and the complaints of a list with these bytes."""
    out, into = os.pipe()
    told: list[str] = []
    found: list[str] = []
    urls = SeedList(out, "list")
    urls.tell = told.append

    def write() -> None:
        with os.fdopen(into, "wb") as file:
            file.write(octets)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.to_thread.run_sync, write)
        async for url in urls:
            found.append(url)
    os.close(out)
    return found, told, urls


async def test_blank_lines_and_comments_are_skipped_and_the_last_line_needs_no_end():
    lines = b"\xef\xbb\xbfhttp://a.test/\r\n\n  \n# no\n  b.test/x  \nHTTP://C.test/#part"
    found, told, urls = await read(lines)
    assert found == ["http://a.test/", "http://b.test/x", "http://c.test/"]
    assert (told, urls.problem) == ([], "")


WRONG = {
    b"http://a b/": "not a URL of the WHATWG URL Standard: 'http://a b/'",
    b"mailto:me@site.test": "a URL begins with http:// or https://, and this one with mailto:",
    b"ftp://site.test/": "a URL begins with http:// or https://",
    b"http://me:s3cret@site.test/": "a URL must not hold a user or password here",
    b"me:s3cret@site.test/": "a URL must not hold a user or password here",
    b"http://site.test/\xff": "not UTF-8 text",
    b"http://site.test/" + b"x" * MAX_LINE: "a line of more than 64 KiB",
    b"http://site.test/" + b"x" * 5 * MAX_LINE: "a line of more than 64 KiB",
}


@for_each("line", WRONG, ids=lambda line: line[:20].decode("latin-1"))
async def test_a_line_that_is_no_url_is_told_with_its_number_and_the_others_are_read(line):
    found, (told,), urls = await read(b"# first\n" + line + b"\nhttp://b.test/\n")
    assert found == ["http://b.test/"]
    assert told.startswith(f"list:2: {WRONG[line]}")
    assert "s3cret" not in told
    assert urls.problem == "list: 1 line is no URL"


async def test_of_many_lines_that_are_no_urls_the_first_ten_are_told_and_all_are_counted():
    found, told, urls = await read(b"ftp://a/\n" * 1_234 + b"http://b.test/")
    assert (len(told), told[-1].partition(" ")[0], len(found)) == (10, "list:10:", 1)
    assert urls.problem == "list: 1,234 lines are no URLs; the first 10 are above"


async def test_a_list_that_cannot_be_read_to_its_end_says_where_it_stopped(tmp_path):
    descriptor = os.open(tmp_path, os.O_RDONLY)
    urls = SeedList(descriptor, "list")
    assert [url async for url in urls] == []
    os.close(descriptor)
    assert urls.problem == "cannot read list after line 0: Is a directory"


def paths_asked(server: Served) -> Counter[str]:
    """Return how often each path was asked for."""
    return Counter(each.path for each in server.asked() if each.path != "/robots.txt")


def test_the_urls_of_a_file_are_fetched_once_and_their_links_are_not_followed(server, tmp_path):
    server.begin(tmp_path / "log")
    place = tmp_path / "list"
    first = server.url
    place.write_text(f"# mine\n{first}\n\n{first}other\n{first}#part\nftp://x/\n")
    result = crawl("--urls", str(place), *LOCAL)
    assert paths_asked(server) == Counter(["/", "/other"])
    assert result.returncode == 1
    told = [line for line in result.stderr.splitlines() if str(place) in line]
    assert told == [
        f"{place}:6: a URL begins with http:// or https://",
        f"trio-crawler: {place}: 1 line is no URL",
    ]


def test_one_line_that_is_no_url_makes_the_exit_status_1(server, tmp_path):
    server.begin(tmp_path / "log")
    place = tmp_path / "list"
    place.write_text(server.url)
    assert crawl("--urls", str(place), *LOCAL).returncode == 0
    place.write_text(f"{server.url}\nno url")
    assert crawl("--urls", str(place), *LOCAL).returncode == 1


def test_a_url_from_standard_input_is_fetched_before_the_next_one_is_written(server, tmp_path):
    server.begin(tmp_path / "log")
    with start("--urls", "-", *LOCAL, stdin=subprocess.PIPE) as process:
        for count in (1, 2, 3):
            process.stdin.write(f"{server.url}{count}\n".encode())
            process.stdin.flush()
            wait_until(lambda count=count: paths_asked(server).total() == count)
        assert process.poll() is None
        ended(process)
    assert paths_asked(server) == Counter(["/1", "/2", "/3"])


def test_ctrl_c_ends_a_crawl_whose_standard_input_is_silent(server, tmp_path):
    server.begin(tmp_path / "log")
    with start("--urls", "-", *LOCAL, stdin=subprocess.PIPE) as process:
        process.stdin.write(f"{server.url}\n".encode())
        process.stdin.flush()
        wait_until(lambda: paths_asked(server))
        process.send_signal(signal.SIGINT)
        process.wait(20)
        out = process.stdout.read().decode()
        process.stdin.close()
    assert process.returncode == 130
    assert "Ended early: stopped by Ctrl-C" in out
    assert "\nadmitted 1 = 1 page" in out


@pytest.mark.slow
def test_the_memory_of_the_command_does_not_grow_with_the_list(server, tmp_path):
    script = "yes '# a comment of some length' | head -c 200000000"
    limit = 400 * 1024 * 1024
    with (
        subprocess.Popen(["sh", "-c", script], stdout=subprocess.PIPE) as lines,
        start("--urls", "-", *LOCAL, stdin=lines.stdout) as process,
    ):
        # Not before the start: the tests themselves may have more memory than that.
        resource.prlimit(process.pid, resource.RLIMIT_DATA, (limit, limit))
        _, err = ended(process)
    assert (process.returncode, err) == (3, "")


REFUSED = {
    "no such file": (["--urls", "nowhere"], "cannot read nowhere: No such file or directory"),
    "a directory": (["--urls", "."], "--urls: . is a directory, not a file of URLs"),
    "no name": (["--urls", ""], "--urls needs the name of a file"),
    "read twice": (
        ["--urls", "-", "--cookie", "@-", "site.test"],
        "standard input is read by --urls or by @-, not by both",
    ),
    "two minds": (
        ["--sitemap-only", "--no-sitemaps", "site.test"],
        "use --sitemap-only or --no-sitemaps, not both",
    ),
    **{
        words[0]: (["--urls", "-", *words], f"{words[0]} needs a URL on the command line")
        for words in (
            ["--lenient"],
            ["--sitemap", "http://site.test/map.xml"],
            ["--sitemap-only"],
            ["--header", "a: b"],
            ["--cookie", "a=b"],
            ["--auth", "me:secret"],
            ["--netrc"],
            ["--client-cert", "certificate"],
        )
    },
    "a path": (["--urls", "-", "--under", "/a"], "--under with a path needs a URL"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_a_list_cannot_be_read_with_is_refused_by_one_line(case, tmp_path):
    words, cause = REFUSED[case]
    (tmp_path / "certificate").touch()
    with start(*words, stdin=subprocess.PIPE, cwd=tmp_path) as process:
        out, err = process.communicate(b"a=b\n", timeout=20)
    assert (process.returncode, out) == (2, b"")
    assert err.decode().startswith(f"trio-crawler: {cause}")
    assert err.count(b"\n") == 1
