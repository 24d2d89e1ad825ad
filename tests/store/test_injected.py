"""A fault at each call of SQLite and of the file system, one after the other."""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from store.batches import SITE, batch, page

from trio_crawler.store.errors import StoreError
from trio_crawler.store.history import History
from trio_crawler.store.runs import End
from trio_crawler.store.store import Store

pytestmark = pytest.mark.slow

FILE_CALLS = ("open", "fstat", "pwrite", "fsync", "ftruncate")


class Faults:
    """Count calls, and let one of them fail; of a file, half of what is written was written."""

    def __init__(self, error: Exception, at: int) -> None:
        self.error = error
        self.at = at
        self.calls = 0

    def call(self) -> None:
        self.calls += 1
        if self.calls == self.at:
            raise self.error

    def install(self, patch: pytest.MonkeyPatch) -> None:
        if isinstance(self.error, OSError):
            for name in FILE_CALLS:
                patch.setattr(os, name, self.wrapped(getattr(os, name)))
        else:
            patch.setattr(sqlite3, "connect", self.connect(sqlite3.connect))

    def wrapped(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*given: Any, **named: Any) -> Any:
            if call.__name__ == "pwrite" and self.calls + 1 == self.at:
                call(given[0], given[1][: len(given[1]) // 2], *given[2:])
            self.call()
            return call(*given, **named)

        return wrapped

    def connect(self, connect: Callable[..., sqlite3.Connection]) -> Callable[..., Any]:
        faults = self

        class Faulty(sqlite3.Connection):
            def execute(self, *given: Any) -> sqlite3.Cursor:
                faults.call()
                return super().execute(*given)

            def executemany(self, *given: Any) -> sqlite3.Cursor:
                faults.call()
                return super().executemany(*given)

        return lambda *given, **named: connect(*given, **named, factory=Faulty)


def sqlite_error(message: str, code: int) -> sqlite3.Error:
    error = sqlite3.OperationalError(message)
    error.sqlite_errorcode = code
    return error


def session(directory: Path) -> None:
    with Store.open(directory, meaning={"urls": [SITE]}) as store:
        stream = store.stream(directory / "x", lambda outcome: outcome.url.encode() + b"\n")
        number = store.last_number() + 1
        made = [page(str(number)), page(str(number + 1))]
        store.write(batch(made, number, writes=[(stream, made)]))
        store.end(End.FINISHED, [], 1.0)


@pytest.mark.parametrize(
    "error",
    [
        sqlite_error("disk I/O error", sqlite3.SQLITE_IOERR),
        sqlite_error("database or disk is full", sqlite3.SQLITE_FULL),
        OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)),
    ],
)
@pytest.mark.parametrize("begun", [False, True])
def test_after_a_fault_anywhere_nothing_is_torn_and_the_next_run_goes_on(tmp_path, error, begun):
    told: list[str] = []
    for at in count(1):
        directory = tmp_path / str(at)
        directory.mkdir()
        if begun:
            session(directory)
        faults = Faults(error, at)
        with pytest.MonkeyPatch.context() as patch:
            faults.install(patch)
            try:
                session(directory)
            except StoreError as fault:
                told.append(str(fault))
        session(directory)
        with History(directory) as history:
            urls = [outcome.url for outcome in history.outcomes()]
            assert history._database.row("PRAGMA integrity_check") == ("ok",)
        assert urls == [f"{SITE}{number}" for number in range(1, len(urls) + 1)]
        assert len(urls) in (2 + 2 * begun, 4 + 2 * begun)
        assert (directory / "x").read_text().split() == urls
        if faults.calls < at:
            break
    assert all(line.startswith(str(tmp_path)) and line.isprintable() for line in told)
    assert len(told) >= at - 3
    assert at > (25 if isinstance(error, sqlite3.Error) else 7)
