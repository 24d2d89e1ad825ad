"""A real archive: pywb replays what a crawl and its refresh have written."""

from __future__ import annotations

import subprocess
import time
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path

import httpx
import pytest
import trio
from cli.command import here
from sites.proxies import program
from sites.raw import Request, html, reply, threaded_raw_server
from sites.servers import free_port, is_ready, running

pytestmark = pytest.mark.real

HOUR = 3_600
TAG = {"Content-Type": "text/html", "ETag": '"1"'}
BODY = b'<!doctype html><title>home</title><a href="/news">news</a>' + b"<p>text</p>" * 9_000


async def unchanged(request: Request, stream: trio.abc.Stream) -> None:
    known = request.headers.get("if-none-match") == TAG["ETag"]
    await stream.send_all(reply(304 if known else 200, TAG, b"" if known else BODY))


def test_pywb_replays_a_page_that_was_not_modified_whole_at_the_time_of_the_refresh(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manager, wayback = program("wb-manager"), program("wayback")
    began, now = time.time(), time.time
    file, site = str(tmp_path / "a.warc.gz"), {"/": unchanged, "/news": html(title="old")}
    words = ["-o", str(tmp_path / "kept"), "--warc", file]
    with threaded_raw_server(site) as server:
        url = server.url
        assert here(*words, url) == 0
        site["/news"] = html(title="new")
        # pywb tells captures apart by the second.
        monkeypatch.setattr(time, "time", lambda: now() + HOUR)
        assert here(*words, "--refresh", url) == 0
        monkeypatch.undo()
    for told in (["init", "site"], ["add", "site", file]):
        subprocess.run([manager, *told], cwd=tmp_path, check=True, capture_output=True)
    port = free_port()
    with running([wayback, "-b", "127.0.0.1", "-p", str(port), "-d", str(tmp_path)]) as process:
        assert is_ready(process, [port])
        found = {}
        for since in (0, HOUR):
            at = f"{datetime.fromtimestamp(began + since, UTC):%Y%m%d%H%M%S}"
            replay = f"http://127.0.0.1:{port}/site/{at}id_/{url}"
            home, news = httpx.get(replay, timeout=60), httpx.get(f"{replay}news", timeout=60)
            captured = parsedate_to_datetime(home.headers["memento-datetime"]).timestamp()
            assert (home.status_code, home.content) == (200, BODY)
            found[since] = captured - began > HOUR / 2, b"<title>new" in news.content
    assert found == {0: (False, False), HOUR: (True, True)}
