"""Files that somebody has planted where the command writes: none of them is followed."""

from __future__ import annotations

import csv
import io
import os
import stat
from pathlib import Path

import click
import pytest
from cli.command import crawl, here
from sites.raw import html, reply, threaded_raw_server

from trio_crawler.cli.files import Draft

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(os.name != "posix", reason="links and pipes of POSIX"),
]

SITE = {"/": html("/a"), "/a": html()}
DRAFTS = {"--csv": "x.csv", "--links": "x.csv", "--sitemap-xml": "x.xml"}
AT_ONCE = {"--jsonl": "x.jsonl", "--warc": "x.warc"}


def plant(kind: str, path: Path, target: Path) -> None:
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "directory":
        path.mkdir()
    elif kind == "hard link":
        path.hardlink_to(target)
    elif kind == "file of another user":
        path.touch()
        os.chown(path, 65534, 65534)
    else:
        path.symlink_to(target)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_files_of_one_name_that_are_written_at_once_are_each_whole(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("old")
    first, second = Draft(str(path)), Draft(str(path))
    assert path.read_text() == "old"
    for number, draft in enumerate((second, first)):
        draft.write([b"%d" % number])
        draft.keep()
        assert path.read_text() == str(number)
    assert list(tmp_path.iterdir()) == [path]


def test_no_name_is_no_file(tmp_path, monkeypatch):
    (tmp_path / "in").mkdir()
    monkeypatch.chdir(tmp_path / "in")
    for path in (".", str(tmp_path)):
        with pytest.raises(click.UsageError, match=f"cannot write --csv {path}: "):
            here("--csv", path, "http://127.0.0.1:9/")
    assert [each.name for each in tmp_path.iterdir()] == ["in"]


@pytest.mark.parametrize("kind", ["link", "hard link"])
@pytest.mark.parametrize("flag", [*DRAFTS, *AT_ONCE])
def test_a_file_that_is_a_link_is_replaced_and_what_it_leads_to_stays(tmp_path, flag, kind):
    target, path = tmp_path / "target", tmp_path / (DRAFTS | AT_ONCE)[flag]
    target.write_text("mine")
    plant(kind, path, target)
    with threaded_raw_server(SITE) as server:
        assert here(flag, str(path), server.url) == 0
    assert target.read_text() == "mine"
    assert not path.is_symlink()
    assert server.url.encode() in path.read_bytes()


def test_a_link_to_a_directory_is_followed(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    with threaded_raw_server(SITE) as server:
        words = ["-o", str(tmp_path / "link"), "--csv", str(tmp_path / "link/x.csv")]
        assert here(*words, server.url) == 0
    assert {"crawl.sqlite", "lock", "x.csv"} <= {
        each.name for each in (tmp_path / "real").iterdir()
    }


@pytest.mark.parametrize("flag", ["--csv", "--jsonl"])
@pytest.mark.parametrize("link", ["/dev/stdout", "/dev/fd/1", "own"])
def test_a_link_to_a_pipe_or_a_device_is_followed(tmp_path, flag, link):
    if link == "own":
        link = str(tmp_path / "link")
        os.symlink("/dev/stdout", link)
    with threaded_raw_server(SITE) as server:
        result = crawl(flag, link, "--depth", "0", server.url)
        assert crawl(flag, "/dev/null", server.url).returncode == 0
    assert (result.returncode, result.stderr) == (0, "")
    assert server.url in result.stdout.splitlines()[1 if flag == "--csv" else 0]


# Who may read what is written.


def test_a_crawl_directory_and_archives_are_private_and_what_is_published_is_not(tmp_path):
    directory, cookie = tmp_path / "crawl", {"Set-Cookie": "id=1", "Content-Type": "text/html"}
    words = ["-o", str(directory)]
    for flag, name in (DRAFTS | AT_ONCE).items():
        words += [flag, str((directory if flag != "--warc" else tmp_path) / (flag[2:] + name))]
    before = os.umask(0o022)
    try:
        with threaded_raw_server({"/": reply(headers=cookie, body=b"")}) as server:
            assert here(*words, server.url) == 0
            files = [directory, *directory.iterdir(), tmp_path / "warcx.warc"]
            assert {path.name for path in files if mode(path) & 0o077} == set()
            for flag, name in (DRAFTS | AT_ONCE).items():
                assert here(flag, str(tmp_path / name), server.url) == 0
            assert (
                crawl("report", str(directory), "--csv", str(directory / "y.csv")).returncode == 0
            )
    finally:
        os.umask(before)
    assert mode(tmp_path / "x.warc") == mode(directory / "y.csv") == 0o600
    assert {mode(tmp_path / name) for name in ("x.csv", "x.xml", "x.jsonl")} == {0o644}
    rows = list(csv.DictReader(io.StringIO((directory / "y.csv").read_text())))
    assert [row["url"] for row in rows] == [server.url]


@pytest.mark.skipif(os.name == "posix" and os.geteuid() != 0, reason="only root has other users")
def test_an_archive_is_not_written_to_a_file_that_another_user_owns(tmp_path):
    path = tmp_path / "x.warc"
    plant("file of another user", path, path)
    with pytest.raises(click.UsageError, match="another user owns it"):
        here("--warc", str(path), "http://127.0.0.1:9/")
