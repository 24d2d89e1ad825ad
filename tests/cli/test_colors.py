"""A check on a terminal: its faults as they are found, and its colours."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from cli.command import crawl, ended, environment, start, wait_until
from cli.gate import Gate
from cli.terminal import Terminal, shown
from sites.raw import Server, html, redirect, threaded_raw_server

pytestmark = pytest.mark.process

RED, SGR = "\x1b[31m", re.compile(r"\x1b\[[0-9;]*m")
XTERM = environment(TERM="xterm")


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    made = Terminal()
    yield made
    made.close()


def site(*links: str, gate: Gate | None = None) -> dict[str, object]:
    """Return a site with links, the page /slow last."""
    return {"/": html(*links, "/slow"), "/slow": gate or html()}


@pytest.fixture
def server() -> Iterator[Server]:
    with threaded_raw_server({"/": html("/gone", "/a", title="\x1b[32mfine"), "/a": html()}) as it:
        yield it


# Faults as they are found.


def faults(text: str) -> list[str]:
    """Return the lines that begin with the word fault."""
    return [line for line in shown(text).splitlines() if line.startswith("fault ")]


def test_a_fault_stands_above_the_live_line_while_the_check_runs(terminal: Terminal) -> None:
    gate = Gate()
    with threaded_raw_server(site("/gone", "/old", gate=gate) | {"/old": redirect("/far")}) as it:
        words = ("check", "--check", "assets", it.url)
        with start(*words, stderr=terminal.theirs, env=XTERM) as process:
            wait_until(lambda: "fault 404" in shown(terminal.read()))
            told = faults(terminal.read())
            gate.open()
            out, _ = ended(process)
    assert told == [f"fault 404 {it.url}gone from {it.url}"]
    assert f"{RED}fault \x1b[0m404" in terminal.read()
    # What is behind a redirect is the fault of the link to that: only the report knows.
    assert faults(terminal.read()) == told
    assert "404: /gone" in out
    assert "404 -> /far: /old" in out


def test_known_faults_are_not_shown_again(terminal: Terminal, tmp_path) -> None:
    known = str(tmp_path / "known.jsonl")
    with threaded_raw_server(site("/gone", "/new")) as it:
        crawl("check", "--ignore", "/new$", "--write-baseline", known, it.url)
        words = ("check", "--baseline", known, it.url)
        crawl(*words, stderr=terminal.theirs, env=XTERM)
    assert faults(terminal.read()) == [f"fault 404 {it.url}new from {it.url}"]


def test_a_check_of_a_thousand_faults_shows_two_hundred_and_says_so(terminal: Terminal) -> None:
    with (
        threaded_raw_server({"/": html(*(f"/gone/{at}" for at in range(300)))}) as it,
        start("check", "--no-traps", it.url, stderr=terminal.theirs, env=XTERM) as process,
    ):
        wait_until(lambda: terminal.read() and process.poll() is not None)
        out, _ = ended(process)
    assert len(faults(terminal.read())) == 200
    assert "200 faults are shown: the report has the others" in shown(terminal.text)
    assert "300 faults" in out


# Colours.


def test_a_report_on_a_terminal_is_coloured_and_steers_it_no_further(
    server: Server, terminal: Terminal
) -> None:
    for words in (("check", server.url), (server.url,)):
        crawl("-q" if len(words) == 1 else "check", *words[-1:], stdout=terminal.theirs, env=XTERM)
    told = terminal.read()
    assert f"{RED}404\x1b[0m: /gone" in told
    assert f"{RED}404\x1b[0m {server.url}gone" in told
    assert "\x1b[1mBroken links (1)\x1b[0m" in told
    assert "\x1b[32mfine" not in told
    assert "\x1b" not in SGR.sub("", told)


@pytest.mark.parametrize("env", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_a_terminal_without_colours_gets_none(
    server: Server, terminal: Terminal, env: dict[str, str]
) -> None:
    where = environment(**({"TERM": "xterm"} | env))
    crawl("check", "-q", server.url, stdout=terminal.theirs, env=where)
    assert "\x1b" not in terminal.read()
    crawl("check", "-q", "--color", "always", server.url, stdout=terminal.theirs, env=where)
    assert f"{RED}404" in terminal.read()


def test_no_colour_reaches_a_pipe_unless_it_must(server: Server, terminal: Terminal) -> None:
    forced = environment(FORCE_COLOR="1", TERM="xterm")
    assert "\x1b" not in crawl("check", server.url, env=forced).stdout
    assert f"{RED}404" in crawl("check", "--color", "always", server.url).stdout
    crawl("check", "--color", "never", server.url, stdout=terminal.theirs, env=XTERM)
    assert "\x1b" not in terminal.read()
