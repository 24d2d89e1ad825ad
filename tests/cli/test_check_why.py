"""`check --why`: the links that a check asks nothing for, by reason and with their places."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli.command import crawl, here
from sites.raw import reply, threaded_raw_server

TYPE = {"Content-Type": "text/html"}
PAGE = b"""<!doctype html><title>x</title>
<a href="mailto:a@b.example">mail</a> <a href="/%C3%BC">secret</a>
<form action="/send"></form> <a href="/next">next</a>"""
NEXT = b'<!doctype html><title>y</title><a href="mailto:a@b.example">mail</a><a href="tel:1">t</a>'
SITE = {
    "/": reply(200, TYPE, PAGE),
    "/next": reply(200, TYPE, NEXT),
    "/robots.txt": reply(200, {"Content-Type": "text/plain"}, b"User-agent: *\nDisallow: /%C3"),
}


def test_each_link_that_is_not_checked_is_told_with_its_reason_and_its_place() -> None:
    with threaded_raw_server(SITE) as server:
        told = crawl("check", "--why", server.url)
        short = crawl("check", server.url)
    home = server.url.removesuffix("/")
    assert told.returncode == short.returncode == 0
    listed = (
        "Not checked (4 links)\n"
        "  1 form, a check sends no form\n"
        f"    {home}/:3:1: /send\n"
        "  1 link, disallowed by robots.txt (--ignore-robots checks such links)\n"
        f'    {home}/:2:39: /ü "secret"\n'
        "  1 mailto: link, only the syntax of the address is checked\n"
        f'    {home}/:2:1: mailto:a@b.example "mail"\n'
        "  1 tel: link, no request is made for this scheme\n"
        f'    {home}/next:1:69: tel:1 "t"\n\n'
    )
    assert listed in told.stdout
    lines = listed.splitlines(keepends=True)
    assert "".join(line for line in lines if not line.startswith("    ")) in short.stdout


def test_a_thousand_links_of_a_kind_and_a_reason_are_listed_and_with_v_all(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    links = "".join(f"<a href='tel:{number}'>x</a>\n" for number in range(1_002))
    (tmp_path / "index.html").write_text(f"<title>x</title>{links}")
    assert here("check", "--why", str(tmp_path)) == 0
    short = capsys.readouterr().out
    assert here("check", "--why", "-v", str(tmp_path)) == 0
    whole = capsys.readouterr().out
    assert (short.count(": tel:"), whole.count(": tel:")) == (1_000, 1_002)
    assert '1000:1: tel:999 "x"\n    and 2 more, use -v to list all\n' in short
    assert "use -v" not in whole
