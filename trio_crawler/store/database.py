"""A connection to the database file of a crawl directory, and the one door for what is read there.

SQLite stores any value in any column, and has no checksums: a byte that flips on a disk may turn a
text into a number. Only what passes here is used, so that damage is found where it is read.
"""

# The annotations are objects, not strings: msgspec reads them.
import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Annotated, Any, TypeAlias, TypeVar

import msgspec
from msgspec import Meta

from trio_crawler.store import schema
from trio_crawler.store.errors import damage_error, database_error, printable

Row: TypeAlias = tuple[Any, ...]
_T = TypeVar("_T")
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
            self._connection.executemany(sql, rows)

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


def parsed(kind: type[_T], text: str | bytes) -> _T:
    """Return the value of JSON text, which may contain lone surrogates. Raises BadRow."""
    return checked(kind, loaded(text))


def loaded(text: str | bytes) -> Any:
    """Return the value of JSON text; bytes are UTF-8 with lone surrogates. Raises BadRow."""
    try:
        if isinstance(text, bytes):
            text = text.decode("utf-8", "surrogatepass")
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadRow(str(error)) from error


def decoded(decoder: msgspec.json.Decoder[Any], text: str) -> Any:
    """Return the value of JSON text by a decoder, as `parsed` does, but faster."""
    try:
        return decoder.decode(text)
    except UnicodeEncodeError:
        return parsed(decoder.type, text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise BadRow(str(error)) from error


def increasing(after: int, last: int) -> int:
    """Return the last number of a portion, which must be above `after`. Raises BadRow.

    Without this a reader that goes on after the last number might go on for ever.
    """
    if last <= after:
        raise BadRow(f"number {last} comes after {after}")
    return last
