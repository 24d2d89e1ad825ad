"""Faults at the n-th call of SQLite, or of the system, that a crawl makes for its directory."""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

_BY_NUMBER = ("write", "pwrite", "pread", "read", "fsync", "fdatasync", "ftruncate")
_BY_PATH = ("open", "mkdir", "unlink", "replace", "rename", "truncate")
_STEPS = ("execute", "executemany", "executescript", "fetchone", "fetchmany", "fetchall")


class Kind(NamedTuple):
    """What goes wrong; `on` says that from then on it goes wrong again and again."""

    name: str
    make: Callable[[], Exception]
    on: bool = False


def _sqlite(code: int, text: str) -> Callable[[], Exception]:
    def make() -> Exception:
        error = sqlite3.OperationalError(text)
        error.sqlite_errorcode = code
        return error

    return make


def _system(number: int) -> Callable[[], Exception]:
    return lambda: OSError(number, os.strerror(number))


OF_SQLITE = (
    Kind("an I/O error", _sqlite(10, "disk I/O error")),
    Kind("locked", _sqlite(5, "database is locked")),
    Kind("full for good", _sqlite(13, "database or disk is full"), on=True),
)
OF_FILES = (
    Kind("an I/O error", _system(errno.EIO)),
    Kind("no space for good", _system(errno.ENOSPC), on=True),
    Kind("read-only for good", _system(errno.EROFS), on=True),
)


class Faults:
    """Count the calls while it is armed, and let number `at` fail.

    `sqlite` says which calls are meant: those of SQLite's connections, or those of files below a
    directory.
    """

    def __init__(self, patch: pytest.MonkeyPatch, under: Path, *, sqlite: bool) -> None:
        self.calls = 0
        self.failed: list[str] = []
        self._at = 0
        self._kind: Kind | None = None
        self._armed = False
        self._under = str(under)
        if sqlite:
            self._patch_sqlite(patch)
        else:
            self._patch_files(patch)

    @contextmanager
    def armed(self, kind: Kind, at: int) -> Iterator[None]:
        """Let call number `at` of the block fail."""
        self.calls, self.failed = 0, []
        self._kind, self._at, self._armed = kind, at, True
        try:
            yield
        finally:
            self._armed = False

    def call(self, name: str) -> None:
        """Note a call, and raise if it is to fail."""
        if not self._armed or self._kind is None:
            return
        self.calls += 1
        if self.calls == self._at or (self._kind.on and self.calls > self._at):
            self.failed.append(name)
            raise self._kind.make()

    def _patch_sqlite(self, patch: pytest.MonkeyPatch) -> None:
        steps = {name: self._counted_step(name) for name in _STEPS}
        counted = type("Cursor", (sqlite3.Cursor,), {**steps, "__next__": self._counted_next()})

        class Connection(sqlite3.Connection):
            def cursor(self, factory: Any = counted) -> Any:
                return super().cursor(factory)

            def execute(self, *args: Any) -> Any:
                return self.cursor().execute(*args)

            def executemany(self, *args: Any) -> Any:
                return self.cursor().executemany(*args)

            def executescript(self, *args: Any) -> Any:
                return self.cursor().executescript(*args)

        connect = sqlite3.connect

        def connected(*args: Any, **named: Any) -> Any:
            self.call("connect")
            return connect(*args, factory=Connection, **named)

        patch.setattr(sqlite3, "connect", connected)

    def _counted_step(self, name: str) -> Any:
        inner = getattr(sqlite3.Cursor, name)

        def step(cursor: Any, *args: Any) -> Any:
            self.call(f"{name} {str(args[0])[:60] if args else ''}")
            return inner(cursor, *args)

        return step

    def _counted_next(self) -> Any:
        def step(cursor: Any) -> Any:
            self.call("a row")
            return sqlite3.Cursor.__next__(cursor)

        return step

    def _patch_files(self, patch: pytest.MonkeyPatch) -> None:
        for name in (*_BY_NUMBER, *_BY_PATH):
            patch.setattr(os, name, self._counted_call(name, getattr(os, name)))

    def _counted_call(self, name: str, inner: Any) -> Any:
        def call(what: Any, *args: Any, **named: Any) -> Any:
            if self._armed and self._is_meant(what):
                self.call(name)
            return inner(what, *args, **named)

        return call

    def _is_meant(self, what: Any) -> bool:
        if isinstance(what, int):
            try:
                what = os.readlink(f"/proc/self/fd/{what}")
            except OSError:
                return False
        return str(os.fspath(what)).startswith(self._under)
