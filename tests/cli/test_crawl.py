"""A crawl from the command line: what is written where, how it ends, and with which status."""

from __future__ import annotations

import fcntl
import json
import os
import re
import signal
import struct
import subprocess
import termios

import pytest
import trio
from cli.asked import pages, requests
from cli.command import crawl, ended, environment, start, wait_until
from cli.gate import Gate
from cli.terminal import Terminal, shown
from sites.raw import Request, html, redirect, silence, threaded_raw_server

from trio_crawler.cli.main import command

pytestmark = pytest.mark.process

ACCOUNT = re.compile(
    r"^admitted ([\d,]+) = ([\d,]+) pages? \+ ([\d,]+) redirects? \+ ([\d,]+) failures?"
    r" \+ ([\d,]+) skipped(?: \+ ([\d,]+) in flight)?(?: \+ ([\d,]+) waiting)?$",
    re.MULTILINE,
)


def account(report: str) -> list[int]:
    """Give the figures of the accounting line, the sum first; what is not named is 0."""
    found = ACCOUNT.search(report)
    assert found, report
    admitted, *ways = (int((figure or "0").replace(",", "")) for figure in found.groups())
    assert admitted == sum(ways)
    return [admitted, *ways]


# The report and the exit status.


def test_a_site_without_faults_is_status_0_and_its_account_is_the_last_line():
    site = {"/": html("/a", "/old"), "/a": html("/"), "/old": redirect("/a")}
    with threaded_raw_server(site) as server:
        result = crawl(server.url)
    assert (result.returncode, result.stderr) == (0, "")
    assert account(result.stdout) == [3, 2, 1, 0, 0, 0, 0]
    assert result.stdout.endswith("admitted 3 = 2 pages + 1 redirect + 0 failures + 0 skipped\n")
    assert "Broken" not in result.stdout
    assert sorted(pages(server)) == ["/", "/a", "/old"]


def test_a_broken_link_is_status_1_and_told_with_the_page_that_has_it():
    with threaded_raw_server({"/": html("/a"), "/a": html("/gone")}) as server:
        result = crawl(server.url)
    assert (result.returncode, result.stderr) == (1, "")
    assert f"  404 {server.url}gone\n      from {server.url}a\n" in result.stdout


def test_a_site_of_which_nothing_comes_is_status_3():
    with threaded_raw_server({}) as server:
        url = server.url
    result = crawl("--max-tries", "1", url)
    assert (result.returncode, result.stderr) == (3, "")
    assert f"  connection_refused {url}\n" in result.stdout
    assert account(result.stdout) == [1, 0, 0, 1, 0, 0, 0]


def test_why_lists_each_refused_url_with_its_reason_and_a_page_that_has_it():
    with threaded_raw_server({"/": html("http://other.test/", "mailto:a@b")}) as server:
        short, long = crawl(server.url), crawl("--why", server.url)
    assert "Rejected links: 1 other_scheme, 1 other_site (--why lists them)" in short.stdout
    assert "other.test" not in short.stdout
    assert f"  other_site (1)\n    http://other.test/ from {server.url}\n" in long.stdout
    assert f"  other_scheme (1)\n    mailto:a@b from {server.url}\n" in long.stdout


def test_verbose_shows_each_outcome_on_standard_error_as_one_line():
    site = {"/": html("/a", title="Home"), "/a": redirect("/gone")}
    with threaded_raw_server(site) as server:
        result = crawl("-v", server.url)
    lines = result.stderr.splitlines()
    assert len(lines) == 3
    assert re.fullmatch(rf'200 .* {server.url}  "Home"', lines[0])
    assert lines[1] == f"302  {server.url}a -> {server.url}gone"
    assert re.fullmatch(rf"404 .* {server.url}gone", lines[2])
    assert account(result.stdout) == [3, 2, 1, 0, 0, 0, 0]
    sizes = r"\d+ B in, \d+ B out"
    counts = r"1 made, 3 reused, 0 retried, 1 open"
    assert re.search(f"^Connections: {counts}; {sizes}$", result.stdout, re.M)


HOSTILE = "\x1b[31m\x1b]0;owned\x07\u202e\u2066\x9b2J"


def test_nothing_that_a_terminal_obeys_gets_through_from_a_page():
    href = f"http://[{HOSTILE}"
    links = (href, f"/x{HOSTILE}", f"mailto:{HOSTILE}")
    site = {"/": html(*links, title=f"hello {HOSTILE}")}
    with threaded_raw_server(site) as server:
        result = crawl("-v", "--why", "--jsonl", "-", server.url)
    assert result.returncode == 1
    page = json.loads(result.stdout.splitlines()[0])
    assert page["title"].startswith("hello \x1b[31m")
    assert "hello" in result.stderr
    assert "mailto:" in result.stderr
    obeyed = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
    assert obeyed.findall(result.stdout + result.stderr) == []


# JSON Lines.


def test_jsonl_to_a_file_has_one_line_for_each_url_and_replaces_what_was_there(tmp_path):
    path = tmp_path / "out.jsonl"
    path.write_text("old\n" * 1000)
    links = [f"/{number}" for number in range(30)]
    with threaded_raw_server({"/": html(*links), **dict.fromkeys(links, html())}) as server:
        result = crawl("--jsonl", str(path), server.url)
    urls = [json.loads(line)["url"] for line in path.read_text().splitlines()]
    assert sorted(urls) == sorted([server.url, *(server.url + link[1:] for link in links)])
    assert (result.returncode, result.stderr) == (0, "")
    assert account(result.stdout)[0] == 31


def test_a_full_disk_is_status_1_and_one_line_and_the_report_is_still_printed():
    with threaded_raw_server({"/": html("/a"), "/a": html()}) as server:
        result = crawl("--jsonl", "/dev/full", server.url)
    assert result.returncode == 1
    assert result.stderr == "trio-crawler: cannot write /dev/full: No space left on device\n"
    account(result.stdout)


def test_a_report_that_cannot_be_written_is_status_1_and_one_line():
    with threaded_raw_server({"/": html()}) as server, open("/dev/full", "wb") as full:
        result = crawl(server.url, stdout=full)
    assert result.returncode == 1
    assert result.stderr == "trio-crawler: cannot write the report: No space left on device\n"


def stuck(process: subprocess.Popen[bytes]) -> None:
    """Wait until the process has filled its standard output, which nobody reads."""
    assert process.stdout
    pipe = process.stdout.fileno()

    def waiting() -> int:
        return struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, b"\0" * 4))[0]

    wait_until(lambda: waiting() == fcntl.fcntl(pipe, fcntl.F_GETPIPE_SZ))


def narrow(*words: str) -> subprocess.Popen[bytes]:
    """Start the command with a standard output that holds 4096 bytes."""
    read, write = os.pipe()
    fcntl.fcntl(write, fcntl.F_SETPIPE_SZ, 4096)
    process = start(*words, stdout=write)
    os.close(write)
    process.stdout = os.fdopen(read, "rb")
    return process


def test_a_slow_reader_gets_every_line_also_those_that_come_after_the_crawl():
    gate, links = Gate(), [f"/{'x' * 100}{number}" for number in range(100)]
    site = {"/": html("/slow", *links), **dict.fromkeys(links, html()), "/slow": gate}
    with threaded_raw_server(site) as server, narrow("--jsonl", "-", server.url) as process:
        stuck(process)
        gate.open()
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(1)
        out, err = ended(process)
    urls = [json.loads(line)["url"] for line in out.splitlines()]
    assert len(urls) == len(set(urls)) == 102
    assert account(err)[:2] == [102, 102]
    assert process.returncode == 0


def test_two_ctrl_c_end_also_a_crawl_whose_reader_is_stuck():
    links = [f"/{'x' * 100}{number}" for number in range(100)]
    site = {"/": html("/slow", *links), "/slow": silence}
    with threaded_raw_server(site) as server, narrow("--jsonl", "-", server.url) as process:
        stuck(process)
        process.send_signal(signal.SIGINT)
        said = process.stderr.readline()
        process.send_signal(signal.SIGINT)
        process.wait(3)
        _, err = ended(process)
    assert said.startswith(b"Ctrl-C: ")
    assert process.returncode == 130
    assert "\nEnded early: stopped at once by Ctrl-C\n" in err
    account(err)


@pytest.mark.parametrize("words", [["--jsonl", "-"], [], ["-v", "--jsonl", "-"]])
def test_a_reader_that_leaves_ends_the_crawl_without_a_word(words):
    gate = Gate()
    site = {"/": html("/slow"), "/slow": gate}
    with threaded_raw_server(site) as server, start(*words, server.url) as process:
        assert gate.came.wait(20)
        if "--jsonl" in words:
            assert json.loads(process.stdout.readline())["url"] == server.url
        process.stdout.close()
        gate.open()
        process.stdout = None
        _, err = ended(process)
    talk = [line for line in err.splitlines() if not line.startswith("200 ")]
    assert talk == []
    assert bool(err) == ("-v" in words)
    assert process.returncode == 128 + signal.SIGPIPE


# What is crawled.


def targets_of(site: dict[str, bytes], *words: str) -> list[str]:
    """Crawl a site with options, in this process; give what was asked for, sorted."""
    with threaded_raw_server(site) as server:
        said = [word.replace("{url}", server.url) for word in words]
        assert command.main([*said, server.url], standalone_mode=False) == 0
    return sorted(pages(server))


CHAIN = {"/": html("/1"), "/1": html("/2"), "/2": html("/3"), "/3": html()}


@pytest.mark.parametrize(("depth", "count"), [("0", 1), ("2", 3)])
def test_depth_is_the_most_links_that_are_followed_in_a_row(depth, count):
    assert targets_of(CHAIN, "--depth", depth) == ["/", "/1", "/2"][:count]


def test_max_pages_is_kept_and_what_was_left_is_told():
    leaves = [f"/{number}" for number in range(20)]
    with threaded_raw_server({"/": html(*leaves), **dict.fromkeys(leaves, html())}) as server:
        result = crawl("--max-pages", "3", "--max-tasks", "1", server.url)
    assert len(pages(server)) == 3
    assert account(result.stdout)[:2] == [21, 3]
    assert "Skipped: 18 page_budget\n" in result.stdout
    assert result.returncode == 0


SHOP = {
    "/": html("/shop/a", "/blog/a", "/to-blog", "/to-shop"),
    "/to-blog": redirect("/blog/b"),
    "/to-shop": redirect("/shop/b"),
    **dict.fromkeys(["/shop/a", "/shop/b", "/blog/a", "/blog/b"], html()),
}


def test_what_is_excluded_is_not_asked_for_also_behind_a_redirect():
    asked = targets_of(SHOP, "--exclude", "/blog/", "--exclude", "p/a$")
    assert asked == ["/", "/shop/b", "/to-blog", "/to-shop"]


def test_only_what_is_included_is_asked_for_also_behind_a_redirect():
    asked = targets_of(SHOP, "--include", "/shop/", "--include", "/to-")
    assert asked == ["/", "/shop/a", "/shop/b", "/to-blog", "/to-shop"]


@pytest.mark.parametrize("prefix", ["/shop/", "shop/", "{url}shop/"])
def test_only_what_is_under_a_prefix_is_asked_for_also_behind_a_redirect(prefix):
    asked = targets_of(SHOP, "--under", prefix, "--under", "/to-")
    assert asked == ["/", "/shop/a", "/shop/b", "/to-blog", "/to-shop"]


def test_headers_go_to_the_origin_that_was_given_and_the_user_agent_to_all():
    words = ["--header", "X-Key: a: b", "--header", "Accept:c", "--user-agent", "me/1"]
    with (
        threaded_raw_server({"/": html()}) as other,
        threaded_raw_server({"/": html(other.url)}) as server,
    ):
        result = crawl(*words, "--allow-private", "127.0.0.1", server.url)
    assert result.returncode == 0
    (asked,), (beyond,) = requests(server), requests(other)
    assert (asked.headers["x-key"], asked.headers["accept"]) == ("a: b", "c")
    assert "x-key" not in beyond.headers
    assert beyond.headers["accept"] != "c"
    assert asked.headers["user-agent"] == beyond.headers["user-agent"] == "me/1"


# Its end.


def test_max_time_ends_a_site_that_has_no_end():
    numbers = iter(range(1, 10**9))

    async def more(request: Request, stream: trio.abc.Stream) -> None:
        await stream.send_all(html(f"/{next(numbers)}"))

    with threaded_raw_server(more) as server:
        result = crawl("--no-traps", "--max-time", "0.3", server.url)
    assert result.returncode == 0
    assert re.search("^(Skipped|Rejected links): 1 time_budget", result.stdout, re.M)
    assert "\nEnded early: the time allowed was over\n" in result.stdout
    assert account(result.stdout)[1] == len(pages(server)) >= 1


def test_what_is_in_flight_finishes_after_the_first_ctrl_c_and_nothing_more_is_asked_for():
    gate, leaves = Gate(), [f"/{number}" for number in range(5)]
    site = {"/": html("/slow", *leaves), "/slow": gate, **dict.fromkeys(leaves, html())}
    with threaded_raw_server(site) as server, start("--max-tasks", "1", server.url) as process:
        assert gate.came.wait(20)
        process.send_signal(signal.SIGINT)
        said = process.stderr.readline()
        gate.open()
        out, err = ended(process)
    assert said == b"Ctrl-C: finishing what is in flight; once more to stop at once\n"
    assert (process.returncode, err) == (130, "")
    assert pages(server) == ["/", "/slow"]
    assert account(out) == [7, 2, 0, 0, 5, 0, 0]
    assert "\nEnded early: stopped by Ctrl-C\n" in out
    assert "\nSkipped: 5 stopped\n" in out


def test_sigterm_ends_a_crawl_as_ctrl_c_does_with_a_status_of_its_own():
    gate = Gate()
    with threaded_raw_server({"/": gate}) as server, start(server.url) as process:
        assert gate.came.wait(20)
        process.terminate()
        said = process.stderr.readline()
        gate.open()
        out, _ = ended(process)
    assert said.startswith(b"SIGTERM: ")
    assert process.returncode == 143
    assert "\nEnded early: stopped by SIGTERM\n" in out
    assert account(out) == [1, 1, 0, 0, 0, 0, 0]


def test_the_second_ctrl_c_ends_at_once_and_the_report_says_what_was_in_flight():
    site = {"/": html("/slow"), "/slow": silence}
    with threaded_raw_server(site) as server, start(server.url) as process:
        wait_until(lambda: pages(server) == ["/", "/slow"])
        process.send_signal(signal.SIGINT)
        process.stderr.readline()
        process.send_signal(signal.SIGINT)
        out, err = ended(process, patience=3)
    assert (process.returncode, err) == (130, "")
    assert "\nEnded early: stopped at once by Ctrl-C\n" in out
    assert account(out) == [2, 1, 0, 0, 0, 1, 0]


def test_what_never_answers_is_cut_off_five_seconds_after_ctrl_c_and_after_max_time():
    with (
        threaded_raw_server({"/": silence}) as server,
        start(server.url) as first,
        start("--max-time", "0.1", server.url) as second,
    ):
        wait_until(lambda: len(pages(server)) == 2)
        first.send_signal(signal.SIGINT)
        with pytest.raises(subprocess.TimeoutExpired):
            first.wait(3)
        (one, _), (two, silent) = ended(first, 7), ended(second, 7)
    assert (first.returncode, second.returncode, silent) == (130, 3, "")
    assert "\nEnded early: stopped by Ctrl-C\n" in one
    assert "\nEnded early: cut short 5 s after --max-time\n" in two
    assert account(one) == account(two) == [1, 0, 0, 0, 0, 1, 0]


# The live line.


@pytest.fixture
def terminal():
    made = Terminal()
    yield made
    made.close()


def test_on_a_terminal_a_line_of_numbers_is_shown_and_is_gone_at_the_end(terminal):
    gate = Gate()
    with threaded_raw_server({"/": html("/slow"), "/slow": gate}) as server:
        xterm = environment(TERM="xterm")
        with start(server.url, stderr=terminal.theirs, env=xterm) as process:
            wait_until(lambda: "1 page " in terminal.read())
            gate.open()
            out, _ = ended(process)
    line = re.compile(r"\d+ pages?  \d+/s  \d+ in queue  \d+ in flight  \d+ errors?  0:\d\d")
    last = list(line.finditer(terminal.read()))[-1]
    assert "1 pages" not in terminal.text
    after = terminal.text[last.end() :]
    assert "\x1b[2K" in after
    assert shown(after).strip() == ""
    # The cursor is never hidden: after kill -9 the shell would have none.
    assert "\x1b[?25l" not in terminal.text
    assert "in queue" not in out
    assert "\x1b" not in out
    assert account(out) == [2, 2, 0, 0, 0, 0, 0]


def test_talk_on_a_terminal_stands_above_the_live_line_and_stays(terminal):
    gate = Gate()
    with threaded_raw_server({"/": html("/slow"), "/slow": gate}) as server:
        xterm = environment(TERM="xterm")
        with start("-v", server.url, stderr=terminal.theirs, env=xterm) as process:
            wait_until(lambda: "1 page " in terminal.read())
            gate.open()
            ended(process)
    kept = [line for line in shown(terminal.read()).splitlines() if " in queue " not in line]
    said = [line for line in kept if line]
    assert [line.split()[0] for line in said] == ["200", "200"]
    assert said[0].endswith(server.url)
    assert said[1].endswith(f'{server.url}slow  "at last"')


@pytest.mark.parametrize(("words", "term"), [(["-q"], "xterm"), ([], "dumb")])
def test_no_live_line_where_none_is_wanted_or_none_is_possible(terminal, words, term):
    with threaded_raw_server({"/": html("/a"), "/a": html()}) as server:
        result = crawl(*words, server.url, stderr=terminal.theirs, env=environment(TERM=term))
    assert terminal.read() == ""
    assert account(result.stdout)[:2] == [2, 2]
