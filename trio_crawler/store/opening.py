"""Open the database of a crawl directory, to write to it or only to read it."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

from trio_crawler.store import schema
from trio_crawler.store.database import Database
from trio_crawler.store.errors import (
    StoreError,
    check_plain,
    damage_error,
    database_error,
    file_error,
    file_errors,
    printable,
)
from trio_crawler.store.files import make_file

NAME = "crawl.sqlite"
BUSY_TIMEOUT = 5.0
"""Seconds to wait while another program has locked the database."""

_BESIDE = ("wal", "shm", "journal")

# The directory cannot be written, or its disk is full.
_NOT_WRITABLE = frozenset(
    {
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_READONLY,
    }
)


def open_to_write(directory: Path, busy_timeout: float = BUSY_TIMEOUT) -> Database:
    """Open the database of a directory; create it if needed. Raises StoreError.

    While another program has locked the database, each statement waits for `busy_timeout` seconds.
    """
    path = directory / NAME
    with _store_errors(path):
        _check_files(path, to_write=True)
        # Not by SQLite, which would follow a symbolic link and let others read the file.
        if not path.exists():
            make_file(path)
        before = os.lstat(path)
        connection = sqlite3.connect(
            path,
            timeout=busy_timeout,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=200,
        )
    database = Database(path, connection)
    try:
        # Nothing has been written yet.
        _check_same(path, before)
        _prepare(database)
    except BaseException:
        database.close()
        raise
    return database


def _prepare(database: Database) -> None:
    # First, before anything is written: the file may belong to another program.
    is_new = _is_empty(database)
    if is_new:
        database.execute(f"PRAGMA page_size = {schema.PAGE_SIZE}")
    database.execute("PRAGMA journal_mode = WAL")
    for pragma in schema.PRAGMAS:
        database.execute(pragma)
    if is_new:
        with database.transaction():
            for statement in schema.STATEMENTS:
                database.execute(statement)


def _is_empty(database: Database) -> bool:
    """Whether a database has no table yet.

    Raises StoreError for the database of another program, or of another format.
    """
    name = printable(database.path)
    (application,) = database.row("PRAGMA application_id")
    (version,) = database.row("PRAGMA user_version")
    (tables,) = database.row("SELECT count(*) FROM sqlite_master")
    if not (application or version or tables):
        return True
    if application != schema.APPLICATION:
        raise StoreError(
            f"{name}: it is the database of another program: "
            "give another directory, or move the file away"
        )
    if version != schema.VERSION:
        made = "a newer" if version > schema.VERSION else "an older"
        raise StoreError(
            f"{name}: {made} version of trio_crawler made it (format {version}, "
            f"this one knows {schema.VERSION}): use that version, or give another directory"
        )
    return False


def _check_files(path: Path, *, to_write: bool) -> None:
    """Raise StoreError if the database or a file that SQLite keeps beside it is not plain.

    ▶ SQLite opens the database where a symbolic link leads, and waits for the writer of a pipe.
    The files are not opened here: to close one would release the locks of SQLite on it.
    """
    for each in (path, *(path.with_name(f"{path.name}-{end}") for end in _BESIDE)):
        try:
            about = os.lstat(each)
        except (FileNotFoundError, NotADirectoryError, ValueError):
            continue
        if each == path and stat.S_ISDIR(about.st_mode):
            raise StoreError(
                f"{printable(path)}: it is a directory, where the database of a crawl should be: "
                "move it away, or give another directory"
            )
        check_plain(each, about, to_write=to_write)


def _check_same(path: Path, before: os.stat_result) -> None:
    """Raise StoreError if a file was replaced while SQLite opened it."""
    with file_errors(path):
        now = os.lstat(path)
    # The number of a file that was removed may be that of the next file.
    check_plain(path, now, to_write=True)
    if not os.path.samestat(now, before):
        raise StoreError(
            f"{printable(path)}: another program replaced it while it was opened: "
            "give a directory in which no other user may write"
        )


@contextmanager
def _store_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise database_error(path, error) from error
    except UnicodeDecodeError as error:
        raise damage_error(path, str(error)) from error
    except OSError as error:
        raise file_error(path, error) from error


def open_to_read(directory: Path) -> Database:
    """Open the database of a directory without changing the directory. Raises StoreError."""
    path = directory / NAME
    with file_errors(path):
        _check_files(path, to_write=False)
        exists = path.exists()
    if not exists:
        raise StoreError(
            f"{printable(directory)}: there is no crawl in it: give the directory of a crawl"
        )
    with _store_errors(path):
        database = _connect_to_read(path)
    try:
        if _is_empty(database) or not database.row("SELECT count(*) FROM walks")[0]:
            raise StoreError(
                f"{printable(directory)}: no crawl has begun in it: give the directory of a crawl"
            )
    except BaseException:
        database.close()
        raise
    return database


def _connect_to_read(path: Path) -> Database:
    try:
        return _connect(path, "mode=ro")
    except sqlite3.Error as error:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF not in _NOT_WRITABLE:
            raise
    # To read a log SQLite creates an index file, which a read-only directory prevents.
    with file_errors(log := _log(path)):
        has_log = log.exists() and log.stat().st_size > 0
    return _open_copy(path) if has_log else _connect(path, "immutable=1")


def _log(path: Path) -> Path:
    return path.with_name(f"{path.name}-wal")


def _open_copy(path: Path) -> Database:
    """Open a copy of a database and its log; no crawl may be writing to the database."""
    directory = Path(tempfile.mkdtemp(prefix="trio_crawler-"))
    with ExitStack() as on_error:
        on_error.callback(shutil.rmtree, directory, ignore_errors=True)
        copy = directory / path.name
        with file_errors(path):
            shutil.copyfile(path, copy)
            if _log(path).exists():
                shutil.copyfile(_log(path), _log(copy))
        database = _connect(copy, "mode=rw")
        on_error.pop_all()
    # Errors name the file that the user has.
    database.path = path
    # An open file stays readable without its name.
    shutil.rmtree(directory, ignore_errors=True)
    return database


def _connect(path: Path, how: str) -> Database:
    connection = sqlite3.connect(
        f"file:{quote(os.fsencode(path.absolute()))}?{how}",
        uri=True,
        timeout=BUSY_TIMEOUT,
        isolation_level=None,
        check_same_thread=False,
    )
    try:
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except BaseException:
        with suppress(sqlite3.Error, UnicodeDecodeError):
            connection.close()
        raise
    return Database(path, connection)
