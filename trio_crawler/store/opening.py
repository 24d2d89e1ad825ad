"""Open the database of a crawl directory, to write to it or only to read it.

One of an older format is migrated to the current one.
"""

from __future__ import annotations

# ruff: noqa: S608 - all names that are put into SQL are our own.
import json
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
    """Open the database of a directory; create or migrate it if needed. Raises StoreError.

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
    version = read_version(database)
    if not version:
        database.execute(f"PRAGMA page_size = {schema.PAGE_SIZE}")
    database.execute("PRAGMA journal_mode = WAL")
    for pragma in schema.PRAGMAS:
        database.execute(pragma)
    if version == schema.VERSION:
        return
    with database.transaction():
        if version:
            migrate(database, version)
        else:
            for statement in schema.STATEMENTS:
                database.execute(statement)


def read_version(database: Database) -> int:
    """Return the format of a crawl's database; 0 if the database is empty.

    Raises StoreError for the database of another program, or of a newer format.
    """
    name = printable(database.path)
    (application,) = database.row("PRAGMA application_id")
    (version,) = database.row("PRAGMA user_version")
    (tables,) = database.row("SELECT count(*) FROM sqlite_master")
    if not (application or version or tables):
        return 0
    if application != schema.APPLICATION:
        raise StoreError(
            f"{name}: it is the database of another program: "
            "give another directory, or move the file away"
        )
    if version > schema.VERSION:
        raise StoreError(
            f"{name}: a newer version of trio_crawler made it (format {version}, "
            f"this one knows {schema.VERSION}): use that version, or give another directory"
        )
    return int(version)


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
        version = read_version(database)
        if not version or not database.row("SELECT count(*) FROM walks")[0]:
            raise StoreError(
                f"{printable(directory)}: no crawl has begun in it: give the directory of a crawl"
            )
        if version < schema.VERSION:
            # Only a run of the crawl may migrate the directory itself.
            database.close()
            database = _open_copy(path)
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
    return _open_copy(path) if _has_log(path) else _connect(path, "immutable=1")


def _has_log(path: Path) -> bool:
    log = _log(path)
    with file_errors(log):
        return log.exists() and log.stat().st_size > 0


def _log(path: Path) -> Path:
    return path.with_name(f"{path.name}-wal")


def _open_copy(path: Path) -> Database:
    """Open a copy of a database and its log, migrated to the present format.

    No crawl may be writing to the database.
    """
    directory = Path(tempfile.mkdtemp(prefix="trio_crawler-"))
    with ExitStack() as on_error:
        on_error.callback(shutil.rmtree, directory, ignore_errors=True)
        copy = directory / path.name
        with file_errors(path):
            shutil.copyfile(path, copy)
            if _log(path).exists():
                shutil.copyfile(_log(path), _log(copy))
        database = _connect(copy, "mode=rw")
        # Errors name the file that the user has.
        database.path = path
        on_error.callback(database.close)
        if (version := read_version(database)) < schema.VERSION:
            with database.transaction():
                migrate(database, version)
        on_error.pop_all()
    # On POSIX an open file stays readable without its name; Windows refuses to remove it.
    shutil.rmtree(directory, ignore_errors=True)
    if directory.exists():
        database.remove_on_close(directory)
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


_NOT_ASKED = "not asked for: "
_OF_ROBOTS = "robots.txt: "

# In format 1 rejected links are "refused", and the folding of a page follows from other columns.
# Only a prefix of `detail` tells that robots.txt failed, or that a sitemap was not requested. The
# statistics of its hosts, one row for each scheme, are not kept.
_FROM_1 = (
    *(
        f"ALTER TABLE {table} RENAME COLUMN refused TO rejected"
        for table in ("page_", "links_", "redirect_", "sitemaps")
    ),
    "ALTER TABLE page_ ADD COLUMN folded_into TEXT",
    "ALTER TABLE failure_ ADD COLUMN about TEXT",
    "ALTER TABLE sitemaps ADD COLUMN fetched INTEGER DEFAULT 1",
    """UPDATE page_ SET folded_into = canonical WHERE canonical = duplicate_of AND coalesce(
        (SELECT json_extract(value, '$.canonical') FROM crawl WHERE key = 'meaning'), 1)""",
    "UPDATE failure_ SET reason = 'connection_refused' WHERE reason = 'refused'",
    f"""UPDATE failure_ SET about = 'robots', detail = substr(detail, {len(_OF_ROBOTS) + 1})
        WHERE exact IS NULL AND detail LIKE '{_OF_ROBOTS}%'""",
    f"""UPDATE sitemaps SET fetched = 0, detail = '' WHERE detail LIKE '{_NOT_ASKED}%'""",
    "DROP TABLE hosts",
    schema.HOSTS,
)
# The place of the value that was added to the list in `exact`: in formats 2 and 7.
_ADDED = {"page_": 19, "failure_": 7, "sitemaps": 8}
_OF_8 = ("asked", "refused")
_FRAGMENT = {"redirect_": 6, "check_": 9}


def migrate(database: Database, version: int) -> None:
    """Rewrite a database of an older `version`; the caller begins and commits the transaction.

    Afterwards the database is equal to one that the current version created.
    """
    for name in ("pages", "links", "redirects", "failures", "skipped", "waiting"):
        database.execute(f"DROP VIEW {name}")
    if version < 5:
        _to_5(database, version)
    if version < 6:
        _to_6(database)
    else:
        database.execute("DROP VIEW checked")
    # Up to format 6 redirects had no fragment; a table for checks without one had format 6 alone.
    for table in ("redirect_",) * (version < 7) + ("check_",) * (version == 6):
        database.execute(f"ALTER TABLE {table} ADD COLUMN fragment TEXT")
        _insert_value(database, table, _FRAGMENT[table])
    if 5 <= version < 8:
        for name in _OF_8:
            database.execute(f"ALTER TABLE hosts ADD COLUMN {name} {schema.HOST_COUNTS[name]}")
    database.execute(schema.FACTS)
    for statement in schema.VIEWS:
        database.execute(statement)
    database.execute(f"PRAGMA user_version = {schema.VERSION}")


def _to_6(database: Database) -> None:
    if not any(row[1] == "text_blocks" for row in database.rows("PRAGMA table_info(page_)")):
        # Some programs of format 5 had no samples of the texts.
        database.execute("ALTER TABLE page_ ADD COLUMN text_blocks BLOB")
        database.execute(schema.REPEATED)
    # As it is now: the changes after format 6 are made to a table of that format only.
    database.execute(schema.CHECK)
    database.execute(schema.FOUND)


def _to_5(database: Database, version: int) -> None:
    if version < 2:
        for statement in _FROM_1:
            database.execute(statement)
        for table, place in _ADDED.items():
            _insert_value(database, table, place)
    if version < 3:
        database.execute("ALTER TABLE runs ADD COLUMN reason TEXT")
    if version < 4:
        database.execute("ALTER TABLE urls ADD COLUMN source INTEGER")
    database.execute("ALTER TABLE urls ADD COLUMN again INTEGER")
    if version > 1:
        for name, kind in schema.HOST_COUNTS.items():
            database.execute(f"ALTER TABLE hosts ADD COLUMN {name} {kind}")
    database.execute("UPDATE hosts SET walk = (SELECT max(walk) FROM walks)")
    for column in ("text_digest BLOB", "text_size INTEGER"):
        database.execute(f"ALTER TABLE page_ ADD COLUMN {column}")


def _insert_value(database: Database, table: str, place: int) -> None:
    """Insert a null into the list in `exact` of each row that has one."""
    key = "id" if table == "sitemaps" else "number"
    for number, exact in database.rows(f"SELECT {key}, exact FROM {table} WHERE exact NOT NULL"):
        values = json.loads(exact.decode("utf-8", "surrogatepass"))
        values.insert(place, None)
        text = json.dumps(values, ensure_ascii=False, separators=(",", ":"))
        packed = text.encode("utf-8", "surrogatepass")
        database.execute(f"UPDATE {table} SET exact = ? WHERE {key} = ?", packed, number)
