"""The reader: the database of a crawl directory opened without changing anything."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

from trio_crawler.store.database import NAME, PATIENCE, Database, checked, refuse_other_than_file
from trio_crawler.store.errors import StoreError
from trio_crawler.store.faults import of_database, of_files, shown

# The directory cannot be written, or its disk is full.
_LOCKED_OUT = frozenset(
    {
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_READONLY,
    }
)


def opened_to_read(directory: Path) -> Database:
    """Open the database of a directory to read. Raises StoreError."""
    path = directory / NAME
    refuse_other_than_file(path)
    with of_files(path):
        there = path.exists()
    if not there:
        raise StoreError(f"{shown(directory)}: there is no crawl in it: give its directory")
    database = _first_that_reads(path)
    try:
        if not checked(database) or not database.row("SELECT count(*) FROM walks")[0]:
            raise StoreError(f"{shown(directory)}: no crawl has begun in it: give its directory")
    except BaseException:
        database.close()
        raise
    return database


def _first_that_reads(path: Path) -> Database:
    try:
        return _connected(path, "mode=ro")
    except sqlite3.Error as error:
        if not _locked_out(error):
            raise of_database(path, error) from error
    try:
        # A log needs an index beside it, which cannot be made in a directory that is read only.
        return _copied(path) if _has_log(path) else _connected(path, "immutable=1")
    except sqlite3.Error as error:
        raise of_database(path, error) from error


def _locked_out(error: sqlite3.Error) -> bool:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in _LOCKED_OUT


def _has_log(path: Path) -> bool:
    log = _log(path)
    with of_files(log):
        return log.exists() and log.stat().st_size > 0


def _log(path: Path) -> Path:
    return path.with_name(f"{path.name}-wal")


def _copied(path: Path) -> Database:
    """Open a copy with its log; nobody writes to it, for nobody can."""
    with tempfile.TemporaryDirectory(prefix="trio_crawler-") as directory:
        copy = Path(directory) / path.name
        with of_files(path):
            shutil.copyfile(path, copy)
            shutil.copyfile(_log(path), _log(copy))
        # What is open stays there when its name is gone.
        return _connected(copy, "mode=rw")


def _connected(path: Path, how: str) -> Database:
    connection = sqlite3.connect(
        f"file:{quote(os.fsencode(path.absolute()))}?{how}",
        uri=True,
        timeout=PATIENCE,
        isolation_level=None,
        check_same_thread=False,
    )
    try:
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except BaseException:
        with suppress(sqlite3.Error):
            connection.close()
        raise
    return Database(path, connection)
