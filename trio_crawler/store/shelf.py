"""The shelf: the streams of one crawl, and what the database knows of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from trio_crawler.model import Outcome
from trio_crawler.store import database
from trio_crawler.store import files as lock
from trio_crawler.store.database import Database
from trio_crawler.store.errors import StoreError
from trio_crawler.store.faults import of_files, shown
from trio_crawler.store.streams import Stream

_OWN = frozenset({database.NAME, f"{database.NAME}-wal", f"{database.NAME}-shm", lock.NAME})


class Shelf:
    """Hold the streams that a run has open.

    Each is known by the path that leads from the directory to it, so that both may be moved
    together. Everything raises StoreError.
    """

    def __init__(self, directory: Path, opened: Database) -> None:
        self._directory = directory
        self._database = opened
        self._streams: dict[str, Stream] = {}
        self._left = False

    def open(
        self,
        path: str | Path,
        encode: Callable[[Outcome], bytes],
        head: Callable[[], bytes],
        rest: Callable[[], bytes],
    ) -> Stream:
        """Open a file, new or known; what is there and not of this crawl is left alone."""
        name = name_of(self._directory, path)
        if name in _OWN:
            raise StoreError(f"{shown(path)}: the crawl itself needs it: give another path")
        sql = "SELECT length, tail, behind, closed FROM streams WHERE path = ?"
        found = self._database.rows(sql, name)
        length, tail, behind, closed = found[0] if found else (None, None, False, False)
        if behind:
            raise StoreError(
                f"{shown(path)}: a run has gone on without it, so records are missing: "
                "give another path"
            )
        if any(stream.is_file(path) for stream in self._streams.values()):
            raise StoreError(f"{shown(path)}: it is given twice: give another path")
        stream = Stream(Path(path), length, tail, encode, head, rest, closed=bool(closed))
        try:
            self._enter_name(name)
        except BaseException:
            stream.close()
            raise
        self._streams[name] = stream
        return stream

    def _enter_name(self, name: str) -> None:
        # Before anything is in it: what a killed run has left there is the crawl's own.
        self._database.do(
            "INSERT INTO streams (path, length, behind, closed) VALUES (?, 0, 0, 0) "
            "ON CONFLICT (path) DO UPDATE SET closed = 0",
            name,
        )

    def append(self, writes: Iterable[tuple[Stream, list[Outcome]]]) -> dict[str, int]:
        """Write the records of outcomes to their streams; return the new lengths, by name.

        A new one gets its head in any case. Nothing of it counts before it is `entered`.
        """
        given: dict[int, list[Outcome]] = {}
        for stream, outcomes in writes:
            given.setdefault(id(stream), []).extend(outcomes)
        pieces = {
            name: stream.records(given.get(id(stream), []))
            for name, stream in self._streams.items()
        }
        return {name: self._streams[name].append(data) for name, data in pieces.items() if data}

    def enter(self, lengths: Mapping[str, int], *, settled: bool) -> None:
        """Note new lengths, and if this run has settled anything; for a transaction."""
        if lengths:
            sql = "UPDATE streams SET length = ?, tail = ? WHERE path = ?"
            written = ((at, self._streams[name].tail, name) for name, at in lengths.items())
            self._database.many(sql, written)
        if settled and not self._left:
            self._leave_behind()

    def _leave_behind(self) -> None:
        """Note which streams of earlier runs lack what this one settles."""
        for (name,) in self._database.rows("SELECT path FROM streams"):
            if name not in self._streams:
                self._database.do("UPDATE streams SET behind = 1 WHERE path = ?", name)
        self._left = True

    def commit(self, lengths: Iterable[str]) -> None:
        """Take note that what was written to these counts."""
        for name in lengths:
            self._streams[name].commit()

    def cut_back(self) -> None:
        """Cut the streams back to what the database says, if it still says it."""
        try:
            lengths: dict[str, int] = dict(self._database.rows("SELECT path, length FROM streams"))
        except StoreError:
            return
        for name, stream in self._streams.items():
            stream.cut_back(lengths.get(name, 0))

    def end(self) -> None:
        """Note that the run leaves its streams as they are to be found again."""
        sql = "UPDATE streams SET closed = 1 WHERE path = ?"
        self._database.many(sql, [(name,) for name in self._streams])

    def close(self) -> None:
        """Close the files; may be called again."""
        for stream in self._streams.values():
            stream.close()
        self._streams.clear()


def owns(directory: Path, opened: Database, path: str | Path) -> bool:
    """Tell whether a file is the crawl's own: its database, its lock, or a stream of it."""
    name = name_of(directory, path)
    return name in _OWN or bool(opened.rows("SELECT 1 FROM streams WHERE path = ?", name))


def name_of(directory: Path, path: str | Path) -> str:
    """Give the path that leads from a directory to a file, links followed."""
    with of_files(Path(path)):
        whole, inside = Path(path).resolve(), directory.resolve()
    # A path need not be UTF-8.
    return os.path.relpath(whole, inside).encode("utf-8", "backslashreplace").decode()
