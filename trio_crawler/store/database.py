"""The database of a crawl directory: opened to write or only to read, and read by one door.

SQLite stores any value in any column, and has no checksums: a byte that flips on a disk may turn a
text into a number. Only what passes here is used, so that damage is found where it is read.
"""

# The annotations are objects, not strings: msgspec reads them.
import json
import os
import shutil
import sqlite3
import stat
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Annotated, Any, TypeAlias, TypeVar
from urllib.parse import quote

import msgspec
from msgspec import Meta

from trio_crawler.store import schema
from trio_crawler.store.errors import (
    StoreError,
    check_plain,
    damage_error,
    database_error,
    file_error,
    file_errors,
    printable,
)

Row: TypeAlias = tuple[Any, ...]
_T = TypeVar("_T")
_NULL = float("nan")
# The second for a message of SQLite that quotes what is no UTF-8.
_ERROR = 1  # SQLITE_ERROR, such as a column that there is not.
_ERRORS = (sqlite3.Error, UnicodeDecodeError)


def _code(error: sqlite3.Error) -> int:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def _columns(connection: sqlite3.Connection) -> set[tuple[str, str]]:
    sql = (
        "SELECT of.name, has.name FROM sqlite_master AS of, pragma_table_info(of.name) AS has "
        "WHERE of.type = 'table'"
    )
    return set(connection.execute(sql))


def _own_columns() -> set[tuple[str, str]]:
    with closing(sqlite3.connect(":memory:")) as made:
        for statement in schema.STATEMENTS:
            made.execute(statement)
        return _columns(made)


class Database:
    """A connection to the database of a crawl directory; its errors are raised as StoreError.

    One thread at a time may use it.
    """

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._connection = connection
        self._closed = False

    @contextmanager
    def store_errors(self) -> Iterator[None]:
        """Raise StoreError for an error of SQLite or a bad row; a bug of ours stays as it is.

        Raises RuntimeError if the connection is closed.
        """
        if self._closed:
            raise RuntimeError(f"{printable(self.path)}: it is closed: open the directory again")
        try:
            yield
        except (BadRow, UnicodeDecodeError) as error:
            # The second for a name in the schema, or SQLite's message that quotes it.
            raise damage_error(self.path, str(error)) from error
        except sqlite3.ProgrammingError:
            raise
        except sqlite3.Error as error:
            # A number that we count up is taken, or a column is missing: by damage, or by a bug.
            integrity = isinstance(error, sqlite3.IntegrityError)
            if (integrity or _code(error) == _ERROR) and self._is_damaged():
                raise damage_error(self.path, str(error)) from error
            if integrity:
                raise
            raise database_error(self.path, error) from error

    def _is_damaged(self) -> bool:
        """Whether the file is not as SQLite and this format make it; it is read as a whole."""
        try:
            (version,) = self._connection.execute("PRAGMA user_version").fetchone()
            if (version == schema.VERSION) != (_columns(self._connection) == _own_columns()):
                return True
            return self._connection.execute("PRAGMA integrity_check(1)").fetchall() != [("ok",)]
        except _ERRORS:
            return True

    def read(self, kind: type[_T], sql: str, *values: Any) -> list[_T]:
        """Return all rows of a query, each of a type."""
        found = self.rows(sql, *values)
        with self.store_errors():
            return checked(list[kind], found)  # type: ignore[valid-type]

    def read_one(self, kind: type[_T], sql: str, *values: Any) -> _T:
        """Return the only row of a query, of a type."""
        return self.read(kind, sql, *values)[0]

    def rows(self, sql: str, *values: Any) -> list[Row]:
        """Return all rows of a query."""
        with self.store_errors():
            return self._connection.execute(sql, values).fetchall()

    def row(self, sql: str, *values: Any) -> Row:
        """Return the only row of a query."""
        row: Row = self.rows(sql, *values)[0]
        return row

    def portions(self, kind: type[_T], sql: str, *values: Any) -> Iterator[list[_T]]:
        """Yield the rows of a query in portions, all as of the moment of the first portion."""
        with self.store_errors():
            cursor = self._connection.execute(sql, values)
        while True:
            with self.store_errors():
                portion = checked(list[kind], cursor.fetchmany(1_000))  # type: ignore[valid-type]
            if not portion:
                return
            yield portion

    def execute(self, sql: str, *values: Any) -> None:
        """Run a statement that returns no rows."""
        with self.store_errors():
            self._connection.execute(sql, values)

    def execute_many(self, sql: str, rows: Iterable[Row]) -> None:
        """Run a statement once for each row of values."""
        with self.store_errors():
            # SQLite stores NaN as NULL. ▶ To bind it takes 0.05 us, and None 0.3, since `sqlite3`
            # looks for an adapter: a row of a page takes 2.8 us in place of 4.9.
            some = ([_NULL if value is None else value for value in row] for row in rows)
            self._connection.executemany(sql, some)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Run the block as one transaction: all of its changes are committed, or none."""
        self.execute("BEGIN IMMEDIATE")
        try:
            yield
            self.execute("COMMIT")
        except BaseException:
            with suppress(*_ERRORS):
                self._connection.rollback()
            raise

    def close(self) -> None:
        """Close the connection; may be called again.

        Errors are ignored: the next opening recovers unwritten changes from the log.
        """
        self._closed = True
        with suppress(*_ERRORS):
            # The last connection that closes does this too, but a reader may have another one.
            self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
        with suppress(*_ERRORS):
            self._connection.close()


Count = Annotated[int, Meta(ge=0)]
Number = Annotated[int, Meta(ge=0, le=2**53)]
"""A number after which there are others."""
Time = Annotated[float, Meta(ge=0, le=250_000_000_000)]
"""Seconds since 1970, up to the last year that `datetime` knows."""
Url = Annotated[str, Meta(pattern=r"^https?://[^/]+/")]
Origin = Annotated[str, Meta(pattern=r"^https?://[^/]+$")]
Digest: Any = bytes | None
Latin1 = Annotated[str, Meta(pattern="^[\x00-\xff]*$")]


class BadRow(Exception):
    """A row of the database is none that a crawl writes."""


def checked(kind: type[_T], row: Any) -> _T:
    """Return a row, or a list of rows, as values of a type. Raises BadRow."""
    try:
        return msgspec.convert(row, kind)
    except (msgspec.ValidationError, UnicodeEncodeError) as error:
        raise BadRow(str(error)) from error


def parsed(kind: type[_T], text: str) -> _T:
    """Return the value of JSON text, which may contain lone surrogates. Raises BadRow."""
    try:
        return checked(kind, json.loads(text))
    except (ValueError, RecursionError) as error:
        raise BadRow(str(error)) from error


def decoded(decoder: msgspec.json.Decoder[Any], text: str) -> Any:
    """Return the value of JSON text by a decoder, as `parsed` does, but faster."""
    try:
        return decoder.decode(text)
    except UnicodeEncodeError:
        kind: Any = decoder.type
        return parsed(kind, text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise BadRow(str(error)) from error


def increasing(after: int, last: int) -> int:
    """Return the last number of a portion, which must be above `after`. Raises BadRow.

    Without this a reader that goes on after the last number might go on for ever.
    """
    if last <= after:
        raise BadRow(f"number {last} comes after {after}")
    return last


NAME = "crawl.sqlite"
PRIVATE, PRIVATE_DIRECTORY = 0o600, 0o700
"""The permissions of a crawl: its files may hold cookies, and pages of a login."""

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
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, PRIVATE))
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
