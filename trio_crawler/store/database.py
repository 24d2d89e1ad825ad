"""A connection to the database file of a crawl directory."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeAlias

from trio_crawler.store.errors import database_error, printable

Row: TypeAlias = tuple[Any, ...]


class Database:
    """A connection to the database of a crawl directory; its errors are raised as StoreError.

    One thread at a time may use it.
    """

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._connection = connection
        self._temporary: Path | None = None
        self._closed = False

    @contextmanager
    def store_errors(self) -> Iterator[None]:
        """Raise StoreError for an error of SQLite; a bug in our statements stays as it is.

        Raises RuntimeError if the connection is closed.
        """
        if self._closed:
            raise RuntimeError(f"{printable(self.path)}: it is closed: open the directory again")
        try:
            yield
        except (sqlite3.IntegrityError, sqlite3.ProgrammingError):
            raise
        except sqlite3.Error as error:
            raise database_error(self.path, error) from error

    def rows(self, sql: str, *values: Any) -> list[Row]:
        """Return all rows of a query."""
        with self.store_errors():
            return self._connection.execute(sql, values).fetchall()

    def row(self, sql: str, *values: Any) -> Row:
        """Return the only row of a query."""
        row: Row = self.rows(sql, *values)[0]
        return row

    def portions(self, sql: str, *values: Any) -> Iterator[list[Row]]:
        """Yield the rows of a query in portions, all as of the moment of the first portion."""
        with self.store_errors():
            cursor = self._connection.execute(sql, values)
        while True:
            with self.store_errors():
                portion = cursor.fetchmany(1_000)
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
            with suppress(sqlite3.Error):
                self._connection.rollback()
            raise

    def remove_on_close(self, directory: Path) -> None:
        """Remove a directory when the connection is closed."""
        self._temporary = directory

    def close(self) -> None:
        """Close the connection; may be called again.

        Errors are ignored: the next opening recovers unwritten changes from the log.
        """
        self._closed = True
        with suppress(sqlite3.Error):
            # The last connection that closes does this too, but a reader may have another one.
            self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
        with suppress(sqlite3.Error):
            self._connection.close()
        if self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)
