"""The report of a check that a directory has kept: what the check itself has printed."""

from __future__ import annotations

import signal
from pathlib import Path

import click
import pytest
from cli.command import crawl, ended, here, start
from cli.gate import Gate
from sites.raw import html, redirect, reply, threaded_raw_server

pytestmark = pytest.mark.process

IMAGE = reply(200, {"Content-Type": "image/png"}, b"x")
PAGE = b"""<!doctype html><title>x</title><h1 id=here>x</h1>
<a href="/gone">gone</a> <a href="#here">here</a> <a href="#nowhere">nowhere</a>
<a href="/old#y">old</a> <img src="/i.png"> <img src="/j.png"> <a href="mailto:x">mail</a>
<a href="/slow">slow</a>"""
SITE = {
    "/": reply(200, {"Content-Type": "text/html"}, PAGE),
    "/i.png": IMAGE,
    "/old": redirect("/new"),
    "/new": html("/gone", title="new"),
    "/slow": html("/late"),
}


def body(text: str) -> list[str]:
    """Return a report without its head, which has the date and the command."""
    head, *rest = text.split("\n\n")
    assert head.startswith("Link check, ")
    return rest


VIEWS = {
    "by page": (),
    "by target": ("--by", "target"),
    "with accepted statuses": ("--accept", "200..299,404"),
    "with ignored URLs": ("--ignore", "gone"),
    "with redirects as notes": ("--redirects", "note", "--fail-on", "note"),
    "whole": ("-v",),
    "with the links that are not checked": ("--why",),
}


@pytest.mark.parametrize("words", VIEWS.values(), ids=VIEWS)
def test_the_report_of_a_directory_is_that_of_the_check(
    words: tuple[str, ...], tmp_path: Path
) -> None:
    kept = str(tmp_path / "kept")
    with threaded_raw_server(SITE) as server:
        printed = crawl("check", "-o", kept, *words, server.url)
    again = crawl("report", kept, *words)
    assert body(again.stdout) == body(printed.stdout)
    assert again.returncode == printed.returncode
    assert len(body(printed.stdout)) > 2


def test_an_interrupted_and_resumed_check_reports_all_of_it(tmp_path: Path) -> None:
    kept, gate = str(tmp_path / "kept"), Gate("/late")
    with threaded_raw_server(SITE) as whole:
        expected = crawl("check", whole.url).stdout.replace(whole.url, "URL/")
    with threaded_raw_server(SITE | {"/slow": gate}) as server:
        with start("check", "-o", kept, server.url) as process:
            gate.came.wait(20)
            process.send_signal(signal.SIGINT)
            process.stderr.readline()
            gate.open()
            out, _ = ended(process)
        assert "It ended early" in out
        stopped = crawl("report", kept)
        assert body(stopped.stdout) == body(out)
        assert "It ended early: " in stopped.stdout
        resumed = crawl("check", "-o", kept, server.url)
        again = crawl("report", kept)
    assert f" in {kept}: the same command goes on\n" in out
    *parts, left = body(resumed.stdout)
    assert left == f"The crawl in {kept} is complete now: --refresh walks through the site again\n"
    assert [*parts[:-1], f"{parts[-1]}\n"] == body(expected.replace("URL/", server.url))
    assert body(again.stdout) == body(resumed.stdout)
    assert again.returncode == resumed.returncode == 1


def test_a_crawl_that_checks_keeps_both_reports(tmp_path: Path) -> None:
    kept = str(tmp_path / "kept")
    with threaded_raw_server(SITE) as server:
        here("-o", kept, "--check", "assets", server.url)
    told = crawl("report", kept)
    assert "Broken links (" in told.stdout
    assert "\n\nLink check, " in told.stdout


def test_options_of_a_check_are_refused_where_there_is_none(tmp_path: Path) -> None:
    kept = str(tmp_path / "kept")
    with threaded_raw_server(SITE) as server:
        here("-o", kept, server.url)
        for words in (("report", kept), (server.url,)):
            with pytest.raises(click.UsageError, match="--by is about a check"):
                here(*words, "--by", "target")
            with pytest.raises(click.UsageError, match="--junit is about a check"):
                here(*words, "--junit", str(tmp_path / "x"))
