"""What somebody has planted in a crawl directory: it is refused by its name, and left alone."""

from __future__ import annotations

import os
import socket
import sqlite3
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from cases import for_each
from store.batches import batch, page, walk

from trio_crawler.store.errors import StoreError
from trio_crawler.store.history import History
from trio_crawler.store.store import Store

DATABASE = "crawl.sqlite"
FILES = ("lock", DATABASE, f"{DATABASE}-wal", f"{DATABASE}-shm", f"{DATABASE}-journal")
LINKS = ("link", "dangling link", "hard link")
OTHERS = ("pipe", "socket", "directory", "device")

pytestmark = pytest.mark.skipif(os.name != "posix", reason="links and pipes of POSIX")


def plant(kind: str, path: Path, target: Path) -> None:
    match kind:
        case "link":
            target.write_bytes(b"")
            path.symlink_to(target)
        case "dangling link":
            path.symlink_to(target)
        case "hard link":
            target.write_bytes(b"")
            path.hardlink_to(target)
        case "pipe":
            os.mkfifo(path)
        case "socket":
            with socket.socket(socket.AF_UNIX) as made:
                here = os.getcwd()
                os.chdir(path.parent)  # The name of a socket may not be long.
                made.bind(path.name)
                os.chdir(here)
        case "directory":
            path.mkdir()
        case "device":
            if os.geteuid():
                pytest.skip("only root can make a device")
            os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 3))


def line(directory: Path) -> str:
    """Open a directory, which is refused in one line."""
    with pytest.raises(StoreError) as refused:
        Store.open(directory).close()
    text = str(refused.value)
    assert text.isprintable()
    return text.removeprefix(f"{directory}/")


@for_each("begun", [False, True], ids=["new", "begun"])
@for_each("kind", [*LINKS, *OTHERS])
@for_each("name", FILES)
def test_what_is_planted_for_a_file_is_refused_by_its_name_and_left_alone(
    tmp_path, name, kind, begun
):
    directory, target = tmp_path / "crawl", tmp_path / "target"
    directory.mkdir()
    if begun:
        walk(directory, [page("a")])
        (directory / name).unlink(missing_ok=True)
    plant(kind, directory / name, target)
    text = line(directory)
    assert text.startswith(f"{name}: ")
    assert "move it away" in text or "remove it" in text
    assert kind == "dangling link" or kind in OTHERS or target.read_bytes() == b""
    assert kind != "dangling link" or not target.exists()


@for_each("kind", [*LINKS[:2], *OTHERS])
@for_each("name", FILES[1:4])
def test_a_reader_refuses_it_too(tmp_path, name, kind):
    walk(tmp_path, [page("a")])
    (tmp_path / name).unlink(missing_ok=True)
    plant(kind, tmp_path / name, tmp_path / "target")
    with pytest.raises(StoreError) as refused:
        History(tmp_path)
    assert str(refused.value).startswith(f"{tmp_path / name}: ")


def test_a_copy_by_hard_links_can_be_read(tmp_path):
    walk(tmp_path, [page("a")])
    copy = tmp_path / "copy"
    copy.mkdir()
    (copy / DATABASE).hardlink_to(tmp_path / DATABASE)
    with History(copy) as history:
        assert len(list(history.outcomes())) == 1


@pytest.mark.parametrize("kind", ["link", "file"])
def test_a_database_that_is_replaced_while_it_is_opened_is_not_written(
    tmp_path, monkeypatch, kind
):
    # Another user has replaced the file between the look at it and its opening.
    connect, target = sqlite3.connect, tmp_path / "target"

    def replaced(path: Path, **given: object) -> sqlite3.Connection:
        if kind == "link":
            path.unlink()
            path.symlink_to(target)
        else:
            target.rename(path)
        return connect(path, **given)

    target.touch()
    with monkeypatch.context() as patch:
        patch.setattr(sqlite3, "connect", replaced)
        why = "it is a symbolic link" if kind == "link" else "another program replaced it"
        assert line(tmp_path).startswith(f"{DATABASE}: {why}")
    assert (target if kind == "link" else tmp_path / DATABASE).read_bytes() == b""


@for_each("kind", [*LINKS, *OTHERS[:3]])
def test_a_stream_follows_no_link(tmp_path, kind):
    path, target = tmp_path / "lines", tmp_path / "target"
    plant(kind, path, target)
    with Store.open(tmp_path / "crawl") as store:
        with pytest.raises(StoreError) as refused:
            store.stream(path, lambda _: b"x")
        assert str(refused.value).startswith(f"{path}: ")
        store.write(batch([page("a")]))
    assert kind in OTHERS or not target.exists() or target.read_bytes() == b""


def test_a_stream_that_became_a_link_is_not_followed(tmp_path):
    path, target = tmp_path / "lines", tmp_path / "target"
    with Store.open(tmp_path / "crawl") as store:
        stream = store.stream(path, lambda _: b"x")
        store.write(batch([page("a")], writes=[(stream, [page("a")])]))
    path.rename(target)
    path.symlink_to(target)
    with Store.open(tmp_path / "crawl") as store, pytest.raises(StoreError):
        store.stream(path, lambda _: b"x")
    assert target.read_bytes() == b"x"


# Who may read it.


@pytest.fixture(params=[0o022, 0o000, 0o077], ids=oct)
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_new_directory_and_its_files_are_for_their_owner_only(tmp_path, umask):
    directory = tmp_path / "in" / "crawl"
    with Store.open(directory) as store:
        streams = [
            store.stream(path, lambda _: b"x", private=private)
            for path, private in (
                (directory / "lines", False),
                (tmp_path / "lines", False),
                (tmp_path / "private", True),
            )
        ]
        store.write(batch([page("a")], writes=[(each, [page("a")]) for each in streams]))
        assert mode(directory) == 0o700
        modes = {path.name: mode(path) for path in directory.iterdir()}
        assert modes == dict.fromkeys([*FILES[:4], "lines"], 0o600)
        assert mode(tmp_path / "lines") == 0o666 & ~umask
        assert mode(tmp_path / "private") == 0o600
    with Store.open(directory):
        assert {mode(path) for path in directory.iterdir()} == {0o600}


def test_the_permissions_of_what_is_there_are_left(tmp_path):
    tmp_path.chmod(0o755)
    walk(tmp_path, [page("a")])
    (tmp_path / DATABASE).chmod(0o640)
    with Store.open(tmp_path) as store:
        store.write(batch([page("b")], 2))
        assert (mode(tmp_path), mode(tmp_path / f"{DATABASE}-wal")) == (0o755, 0o640)
