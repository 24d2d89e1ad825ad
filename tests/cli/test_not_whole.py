"""Bodies that are not read whole: the report of the command, its status, archives and runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import trio
from cli.command import crawl
from sites.raw import Request, html, reply, threaded_raw_server
from warcio.archiveiterator import ArchiveIterator

from trio_crawler import History, Page

pytestmark = pytest.mark.process

LARGE = b"<title>l</title><a href=/a>a</a>" + b" " * 5_000 + b"<a href=/never>"
IMAGE = bytes(range(256)) * 400
PNG = {"Content-Type": "image/png", "ETag": '"1"'}
HTML = {"Content-Type": "text/html", "ETag": '"1"'}
SITE = {
    "/": html("/large", "/same", "/image"),
    "/large": reply(200, HTML, LARGE),
    "/same": reply(200, HTML, LARGE),
    "/image": reply(200, PNG, IMAGE),
    "/a": html(),
}


def records(path: Path) -> dict[str, dict[str, Any]]:
    found = map(json.loads, path.read_text().splitlines())
    return {record["url"].rpartition("/")[2]: record for record in found}


def test_a_body_over_max_bytes_is_told_and_no_problem(tmp_path: Path) -> None:
    lines = tmp_path / "a.jsonl"
    with threaded_raw_server(SITE) as server:
        result = crawl("--max-bytes", "4000", "--jsonl", str(lines), server.url)
        whole = crawl("--max-bytes", "6000", server.url)
    assert result.returncode == 0
    assert "Not read whole (2): --max-bytes sets the limit\n  3.9 KiB read of" in result.stdout
    found = records(lines)
    assert set(found) == {"", "large", "same", "image", "a"}
    assert (found["large"]["size"], found["large"]["flaws"]) == (4000, ["too_large"])
    assert (found["image"]["size"], found["image"]["flaws"]) == (102_400, ["not_read"])
    assert "Not read whole" not in whole.stdout
    # A copy of a page that was read whole is one, and its lost link is a broken one.
    assert (whole.returncode, "Duplicates (1)" in whole.stdout) == (1, True)


def test_an_archive_has_the_bodies_of_all_types_and_says_which_were_cut(tmp_path: Path) -> None:
    path = tmp_path / "a.warc"
    with threaded_raw_server(SITE) as server:
        result = crawl("--warc", str(path), "--max-bytes", "103000", server.url)
        short = crawl("--warc", str(tmp_path / "b.warc"), "--max-bytes", "4000", server.url)
    assert (result.returncode, short.returncode) == (1, 0)
    whole = archived(path)
    assert whole["image"] == ("response", None, IMAGE)
    # The one that came first is archived whole.
    assert {whole["same"][0], whole["large"][0]} == {"response", "revisit"}
    cut = archived(tmp_path / "b.warc")
    assert cut["large"] == cut["same"] == ("response", "length", LARGE[:4000])
    assert cut["image"] == ("response", "length", b"")


def archived(path: Path) -> dict[str, tuple[str, str | None, bytes]]:
    found = {}
    with path.open("rb") as file:
        for record in ArchiveIterator(file):
            if record.rec_type in ("response", "revisit"):
                fields = record.rec_headers
                name = fields.get_header("WARC-Target-URI").rpartition("/")[2]
                why, body = fields.get_header("WARC-Truncated"), record.content_stream().read()
                found[name] = (record.rec_type, why, body)
    return found


def test_a_directory_has_digests_of_whole_bodies_only(tmp_path: Path) -> None:
    where = str(tmp_path / "crawl")
    words = ["-o", where, "--max-bytes"]
    with threaded_raw_server(SITE) as server:
        assert crawl(*words, "200000", server.url).returncode == 1
        first = server.requests.copy()
        assert crawl(*words, "4000", "--refresh", server.url).returncode == 0
        second = server.requests[len(first) :]
        third = crawl(*words, "4000", "--refresh", server.url)
        last = server.requests[len(first) + len(second) :]
    with History(where) as history:
        first_image = {page.url: page for page in history.outcomes(1)}[f"{server.url}image"]
    assert (first_image.size, first_image.flaws) == (102_400, ("not_read",))
    conditional = {r.target for r in second if "if-none-match" in r.headers}
    assert {"/large", "/same", "/image"} <= conditional
    # The whole pages of the first walk are still asked for by their validators.
    assert {"/large", "/same", "/image"} <= {r.target for r in last}
    with History(where) as history:
        pages = {page.url.rpartition("/")[2]: page for page in history.outcomes()}
        kinds = {change.url.rpartition("/")[2]: change.kind for change in history.changes()}
    assert pages["large"].flaws == ("too_large",)
    assert pages["large"].size == 4000
    assert kinds["large"] == kinds["image"] == "unchanged"
    assert third.returncode == 0
    # The image is not among them: nothing would read it anyway.
    assert "Not read whole (2): --max-bytes sets the limit" in third.stdout


# Archives and downloads.


class Files:
    """A file server; the bodies of its files have no end, and nobody should wait for one."""

    def __init__(self) -> None:
        self.versions = dict.fromkeys(FILES, 1)
        self.sizes = dict.fromkeys(FILES, 300_000_000)
        self.pieces = 0

    async def __call__(self, request: Request, stream: trio.abc.Stream) -> None:
        fields = FILES.get(request.target)
        if fields is None:
            found = html(*FILES) if request.target == "/" else reply(404)
            await stream.send_all(found)
            return
        head = {**fields, "Content-Length": str(self.sizes[request.target])}
        if request.target != "/untagged.zip":
            head["ETag"] = f'"{self.versions[request.target]}"'
        if request.target == "/snapshot.tar.gz":
            del head["Content-Length"]
            head["Transfer-Encoding"] = "chunked"
        if request.target == "/film.mp4" and request.headers.get("if-none-match") == head["ETag"]:
            await stream.send_all(reply(304, {"Connection": "close"}))
            return
        # The others do not obey If-None-Match, as gitweb does not.
        await stream.send_all(reply(200, {**head, "Connection": "close"}).split(b"\r\n\r\n")[0])
        await stream.send_all(b"\r\n\r\n")
        while True:
            await stream.send_all(bytes(16 * 1024))
            self.pieces += 1


SAVED = {"Content-Disposition": 'attachment; filename="a"'}
FILES: dict[str, dict[str, str]] = {
    "/snapshot.tar.gz": {"Content-Type": "application/x-gzip"},
    "/tagged.zip": {"Content-Type": "application/zip"},
    "/untagged.zip": {"Content-Type": "application/zip"},
    "/film.mp4": {"Content-Type": "video/mp4"},
    "/table.csv": {"Content-Type": "text/csv", **SAVED},
    "/data.xml": {"Content-Type": "application/xml", **SAVED},
}


@pytest.mark.parametrize("kept", [False, True])
def test_a_file_server_is_well_and_its_files_cost_only_their_heads(
    tmp_path: Path, kept: bool
) -> None:
    words, files = ["-o", str(tmp_path / "d")] * kept, Files()
    with threaded_raw_server(files) as server:
        result = crawl(*words, server.url)
    assert result.returncode == 0
    assert "Not read whole" not in result.stdout
    assert f"{len(FILES)} not_read\n" in result.stdout
    # What the buffers of two sockets hold.
    assert files.pieces * 16 * 1024 < len(FILES) * 8 * 2**20


def test_a_refresh_compares_files_that_are_not_read_by_validator_and_size(
    tmp_path: Path,
) -> None:
    words, files = ["-o", str(tmp_path / "d")], Files()
    with threaded_raw_server(files) as server:
        crawl(*words, server.url)
        same = [crawl(*words, "--refresh", server.url).stdout for _ in range(2)]
        files.versions["/tagged.zip"] = files.versions["/snapshot.tar.gz"] = 2
        files.versions["/film.mp4"] = 2
        files.sizes["/untagged.zip"] = 400_000_000
        changed = crawl(*words, "--refresh", server.url)
    assert all("0 new, 0 changed, 0 gone, 7 unchanged" in each for each in same)
    assert "0 new, 4 changed, 0 gone, 3 unchanged" in changed.stdout
    with History(tmp_path / "d") as history:
        kinds = {change.url.rpartition("/")[2]: change.kind for change in history.changes()}
        pages = [page for page in history.outcomes() if isinstance(page, Page)]
    assert {name for name, kind in kinds.items() if kind == "changed"} == {
        "tagged.zip", "snapshot.tar.gz", "untagged.zip", "film.mp4",
    }  # fmt: skip
    assert {page.flaws for page in pages} == {(), ("not_read",)}


def test_a_refresh_without_the_archive_of_the_walk_before_compares_files_by_size(
    tmp_path: Path,
) -> None:
    def image(length: int) -> bytes:
        return reply(200, {"Content-Type": "image/png"}, bytes(length))

    site = {"/": html("/a.png"), "/a.png": image(100_000)}
    words = ["-o", str(tmp_path / "d")]
    with threaded_raw_server(site) as server:
        crawl(*words, "--warc", str(tmp_path / "a.warc"), server.url)
        without = crawl(*words, "--refresh", server.url)
        again = crawl(*words, "--refresh", "--warc", str(tmp_path / "b.warc"), server.url)
        site["/a.png"] = image(100_001)
        changed = crawl(*words, "--refresh", server.url)
    assert "0 new, 0 changed, 0 gone, 2 unchanged" in without.stdout
    assert "0 new, 0 changed, 0 gone, 2 unchanged" in again.stdout
    assert "/a.png (100,001 bytes, before: 100,000)" in changed.stdout
