"""The errors of a crawl directory; the text of each is one line with the cause and the remedy."""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trio_crawler.arguments import public

if TYPE_CHECKING:
    import sqlite3


@public("trio_crawler")
class StoreError(Exception):
    """A crawl directory cannot be used.

    The text is one line for people: the file, the cause and the remedy.

    >>> try:
    ...     History("nothing-here")
    ... except StoreError as error:
    ...     print(error)
    nothing-here: there is no crawl in it: give the directory of a crawl
    """


@public("trio_crawler.store")
class DifferentCrawl(StoreError):
    """A crawl directory, or a store that is shared, holds a crawl with another meaning.

    The text names each option that differs, with both values. `named(names)` returns it with
    other names for the keys of the meaning.

    >>> error = DifferentCrawl("site", {"depth": (2, 3)})
    >>> error.named({"depth": "--depth"}).partition(": give")[0]
    'site: it holds another crawl (--depth was 2, now it is 3)'
    """

    def __init__(
        self,
        directory: str,
        differences: Mapping[str, tuple[object, object]],
        remedy: str = "give another directory, or delete this one to start anew",
    ) -> None:
        super().__init__(directory, differences, remedy)
        self._directory = directory
        self._differences = differences
        self._remedy = remedy

    @classmethod
    def check(
        cls, place: str, stored: Mapping[str, Any], given: Mapping[str, Any], *remedy: str
    ) -> None:
        """Raise, naming the `place` and each `remedy`, unless `stored` and `given` agree."""
        both = {key: (stored[key], value) for key, value in given.items() if key in stored}
        differ = {key: (was, now) for key, (was, now) in both.items() if was != now}
        if differ:
            raise cls(place, differ, *remedy)

    def __str__(self) -> str:
        return self.named({})

    def named(self, names: Mapping[str, str]) -> str:
        """Return the text with other names of the options, as far as `names` has them."""
        told = "; ".join(
            f"{names.get(key, key)} was {json.dumps(stored)}, now it is {json.dumps(given)}"
            for key, (stored, given) in self._differences.items()
        )
        return f"{self._directory}: it holds another crawl ({told}): {self._remedy}"


@public("trio_crawler.store")
class InUse(StoreError):
    """Another crawl is using the directory, or the file of a stream."""


@public("trio_crawler.store")
class Unusable(StoreError):
    """A server cannot be the store of a shared crawl, or has no crawl of that name.

    >>> async def connect() -> None:
    ...     async with opened_store("ftp://127.0.0.1/", "docs"):
    ...         pass
    >>> try:
    ...     trio.run(connect)
    ... except Unusable as error:
    ...     print(str(error).partition(",")[0])
    give the URL of a server
    """


_RESUME = "then start the crawl again: it resumes where it stopped"

# Cause and remedy by SQLite's primary result code (sqlite.org/rescode.html). Plain numbers, since
# importing sqlite3 takes time, and a crawl without a directory does not need it.
_DATABASE = {
    5: ("another program has locked it", f"close that program, {_RESUME}"),
    6: ("it is locked", f"close the program that uses it, {_RESUME}"),
    8: ("it cannot be written", f"make the file and its directory writable, {_RESUME}"),
    10: ("the disk fails to read or write it", f"check the disk, {_RESUME}"),
    11: (
        "it is damaged",
        "restore a copy of its directory, or delete the directory to start anew",
    ),
    13: ("the disk is full", f"free some space, {_RESUME}"),
    14: (
        "it cannot be opened",
        f"make the file and its directory readable and writable, {_RESUME}",
    ),
    26: (
        "it is not the database of a crawl",
        "give another directory, or move the file away",
    ),
}
# SQLITE_TOOBIG, SQLITE_MISMATCH. Other strange values have no code of their own.
_DAMAGE = {18, 20}
_STRANGE = ("Could not decode to UTF-8", "integer overflow")
_LONGEST = 200
_FILE = {
    errno.ENOSPC: f"free some space, {_RESUME}",
    errno.EDQUOT: f"free some space, {_RESUME}",
    errno.EFBIG: f"allow larger files, {_RESUME}",
    errno.EACCES: "make it writable, or give another path",
    errno.EPERM: "make it writable, or give another path",
    errno.EROFS: "make it writable, or give another path",
    errno.EISDIR: "it must be a plain file: move it away, or give another path",
    errno.ENOTDIR: "give another path",
    errno.EEXIST: "give another path",
    errno.ENOENT: "give another path",
    errno.EIO: f"check the disk, {_RESUME}",
    errno.ENXIO: "it must be a plain file: move it away, or give another path",
}
# What O_NOFOLLOW says of a link; EMLINK on FreeBSD, EFTYPE on NetBSD.
_LINK = {errno.ELOOP, errno.EMLINK, getattr(errno, "EFTYPE", errno.ELOOP)}
_AWAY = "move it away, or give another path"


def database_error(path: Path, error: sqlite3.Error) -> StoreError:
    """Return the StoreError for an error of a database."""
    # An error that the module sqlite3 itself raises has no code.
    code, text = getattr(error, "sqlite_errorcode", 0) & 0xFF, _brief(str(error))
    if code in _DAMAGE or text.startswith(_STRANGE):
        return damage_error(path, text)
    if code not in _DATABASE:
        return StoreError(f"{printable(path)}: {text}: check the file and its disk, {_RESUME}")
    wrong, remedy = _DATABASE[code]
    return StoreError(f"{printable(path)}: {wrong} ({text}): {remedy}")


def damage_error(path: Path, what: str) -> StoreError:
    """Return the StoreError for a database that has what no crawl has written."""
    wrong, remedy = _DATABASE[11]
    return StoreError(f"{printable(path)}: {wrong} ({_brief(what)}): {remedy}")


def _brief(text: str) -> str:
    """Return a message that may quote what is stored, as a short line."""
    return printable(text if len(text) <= _LONGEST else f"{text[:_LONGEST]}...")


def file_error(path: Path, error: OSError) -> StoreError:
    """Return the StoreError for an error of a file or a directory."""
    wrong = error.strerror or str(error)
    if error.errno in _LINK and os.path.islink(path):
        return link_error(path)
    if error.errno in (errno.EEXIST, errno.ENOTDIR):
        wrong = "there is a file where a directory should be"
    remedy = _FILE.get(error.errno or 0, f"check the file and its disk, {_RESUME}")
    return StoreError(f"{printable(path)}: {wrong}: {remedy}")


def link_error(path: Path) -> StoreError:
    """Return the StoreError for a symbolic link in the place of a file."""
    wrong = "it is a symbolic link, which is not followed"
    return StoreError(f"{printable(path)}: {wrong}: remove it, or give another path")


def check_plain(path: Path, about: os.stat_result, *, to_write: bool) -> None:
    """Raise StoreError unless a file is plain, and, `to_write`, has no second name."""
    if stat.S_ISLNK(about.st_mode):
        raise link_error(path)
    if not stat.S_ISREG(about.st_mode):
        raise StoreError(f"{printable(path)}: it is not a plain file: {_AWAY}")
    if to_write and about.st_nlink > 1:
        wrong = "it is a hard link, and the file would change under its other name too"
        raise StoreError(f"{printable(path)}: {wrong}: {_AWAY}")


@contextmanager
def file_errors(path: Path) -> Iterator[None]:
    """Raise StoreError for an OSError of the block."""
    try:
        yield
    except OSError as error:
        raise file_error(path, error) from error


def printable(path: Path | str) -> str:
    """Return a path as one line that UTF-8 can encode, with other characters escaped."""
    text = os.fspath(path)
    return text if text.isprintable() else ascii(text)[1:-1]
