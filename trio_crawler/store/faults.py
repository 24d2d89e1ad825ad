"""Faults of files and databases, as one line for people."""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from trio_crawler.store.errors import StoreError

_GO_ON = "then start the crawl again: it goes on where it stopped"

# By SQLite's primary result code (sqlite.org/rescode.html): how its own message begins, what is
# wrong, and what to do.
_DATABASE = {
    5: ("database is locked", "another program has it locked", f"close that program, {_GO_ON}"),
    6: ("database table is locked", "it is locked", f"close what uses it, {_GO_ON}"),
    8: (
        "attempt to write a readonly",
        "it cannot be written",
        f"make the file and its directory writable, {_GO_ON}",
    ),
    10: ("disk I/O error", "the disk fails to read or write it", f"check the disk, {_GO_ON}"),
    11: (
        "database disk image is malformed",
        "it is damaged",
        "put back a copy of its directory, or delete the directory to start anew",
    ),
    13: ("database or disk is full", "the disk is full", f"free some space, {_GO_ON}"),
    14: (
        "unable to open database",
        "it cannot be opened",
        f"make the file and its directory readable and writable, {_GO_ON}",
    ),
    26: (
        "file is not a database",
        "it is not a database of a crawl",
        "give another directory, or move the file away",
    ),
}
_FILE = {
    errno.ENOSPC: f"free some space, {_GO_ON}",
    errno.EDQUOT: f"free some space, {_GO_ON}",
    errno.EFBIG: f"allow larger files, {_GO_ON}",
    errno.EACCES: "make it writable, or give another path",
    errno.EPERM: "make it writable, or give another path",
    errno.EROFS: "make it writable, or give another path",
    errno.EISDIR: "it must be a plain file: move it away, or give another path",
    errno.ENOTDIR: "give another path",
    errno.EEXIST: "give another path",
    errno.ENOENT: "give another path",
    errno.EIO: f"check the disk, {_GO_ON}",
}


def of_database(path: Path, error: sqlite3.Error) -> StoreError:
    """Say what is wrong with a database."""
    code = getattr(error, "sqlite_errorcode", -1) & 0xFF
    for number, (begins, wrong, remedy) in _DATABASE.items():
        if code == number or (code == 0xFF and str(error).startswith(begins)):
            return StoreError(f"{shown(path)}: {wrong} ({error}): {remedy}")
    return StoreError(f"{shown(path)}: {error}: check the file and its disk, {_GO_ON}")


def of_file(path: Path, error: OSError) -> StoreError:
    """Say what is wrong with a file or a directory."""
    wrong = error.strerror or str(error)
    if error.errno in (errno.EEXIST, errno.ENOTDIR):
        wrong = "a file is there, where a directory should be"
    remedy = _FILE.get(error.errno or 0, f"check the file and its disk, {_GO_ON}")
    return StoreError(f"{shown(path)}: {wrong}: {remedy}")


@contextmanager
def of_files(path: Path) -> Iterator[None]:
    """Raise StoreError for an OSError of the block."""
    try:
        yield
    except OSError as error:
        raise of_file(path, error) from error


def shown(path: Path | str) -> str:
    """Write a path so that it is one line and can be encoded, whatever it is made of."""
    text = os.fspath(path)
    return text if text.isprintable() else ascii(text)[1:-1]
