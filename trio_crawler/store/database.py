"""The database file of a crawl directory, and what is done with it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeAlias

from trio_crawler.store import schema
from trio_crawler.store.errors import StoreError
from trio_crawler.store.faults import of_database, of_file, shown

NAME = "crawl.sqlite"
PATIENCE = 5.0
"""Seconds that another program's lock is waited for."""

Row: TypeAlias = tuple[Any, ...]


class Database:
    """Ask and change one database; what fails raises StoreError.

    One thread at a time may use it.
    """

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._connection = connection

    @contextmanager
    def translated(self) -> Iterator[None]:
        """Raise StoreError for what SQLite says is wrong; a statement of ours that is, stays."""
        try:
            yield
        except (sqlite3.IntegrityError, sqlite3.ProgrammingError):
            raise
        except sqlite3.Error as error:
            raise of_database(self.path, error) from error

    def rows(self, sql: str, *values: Any) -> list[Row]:
        """Return all rows that a question is answered by."""
        with self.translated():
            return self._connection.execute(sql, values).fetchall()

    def row(self, sql: str, *values: Any) -> Row:
        """Return the one row that a question is answered by."""
        row: Row = self.rows(sql, *values)[0]
        return row

    def stream(self, sql: str, *values: Any) -> Iterator[list[Row]]:
        """Give the rows in portions, all of the state in which they are at the first one."""
        with self.translated():
            cursor = self._connection.execute(sql, values)
        while True:
            with self.translated():
                portion = cursor.fetchmany(1_000)
            if not portion:
                return
            yield portion

    def do(self, sql: str, *values: Any) -> None:
        """Change something."""
        with self.translated():
            self._connection.execute(sql, values)

    def many(self, sql: str, rows: Iterable[Row]) -> None:
        """Change something for each of some rows."""
        with self.translated():
            self._connection.executemany(sql, rows)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Make one transaction of the block: all of it counts, or nothing."""
        self.do("BEGIN IMMEDIATE")
        try:
            yield
            self.do("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):
                self._connection.rollback()
            raise

    def close(self) -> None:
        """Close it; may be called again. What cannot be written now is found at the next open."""
        with suppress(sqlite3.Error):
            # The last one to close does this too, but somebody may be reading.
            self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
        with suppress(sqlite3.Error):
            self._connection.close()


def opened(directory: Path) -> Database:
    """Open the database of a directory to write, made if there is none. Raises StoreError."""
    path = directory / NAME
    refuse_other_than_file(path)
    with _translated(path):
        connection = sqlite3.connect(
            path,
            timeout=PATIENCE,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=200,
        )
    database = Database(path, connection)
    try:
        _prepare(database)
    except BaseException:
        database.close()
        raise
    return database


def _prepare(database: Database) -> None:
    # Before anything is written: it may be somebody else's.
    new = not checked(database)
    if new:
        database.do(f"PRAGMA page_size = {schema.PAGE_SIZE}")
    database.do("PRAGMA journal_mode = WAL")
    for pragma in schema.PRAGMAS:
        database.do(pragma)
    if new:
        with database.transaction():
            for statement in schema.STATEMENTS:
                database.do(statement)


def checked(database: Database) -> bool:
    """Tell whether a database holds a crawl; False if it holds nothing at all.

    Raises StoreError if it holds anything else.
    """
    name = shown(database.path)
    (application,) = database.row("PRAGMA application_id")
    (version,) = database.row("PRAGMA user_version")
    (tables,) = database.row("SELECT count(*) FROM sqlite_master")
    if not (application or version or tables):
        return False
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
    return True


def refuse_other_than_file(path: Path) -> None:
    """Raise StoreError for a directory."""
    with _translated(path):
        directory = path.is_dir()
    if directory:
        raise StoreError(
            f"{shown(path)}: it is a directory, where the database of a crawl should be: "
            "move it away, or give another directory"
        )


@contextmanager
def _translated(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise of_database(path, error) from error
    except OSError as error:
        raise of_file(path, error) from error
