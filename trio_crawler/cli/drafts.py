"""Drafts: files that get their name when they are whole."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from collections.abc import Iterable
from contextlib import ExitStack, suppress
from io import BufferedWriter, FileIO
from pathlib import Path
from tempfile import TemporaryFile
from typing import Protocol
from urllib.parse import quote

from trio_crawler import report
from trio_crawler.cli.sink import opened


class Drafted(Protocol):
    """A file that is being written."""

    file: FileIO

    def keep(self) -> None:
        """Give the file its name, once it is closed. Raises OSError."""

    def drop(self) -> None:
        """Forget the file."""


class Plain:
    """A file that is written as it is: its reader need not wait until it is whole."""

    def __init__(self, path: str) -> None:
        self.file = opened(path)

    def keep(self) -> None:
        """Do nothing: it has its name."""

    def drop(self) -> None:
        """Do nothing: what was written is written."""


class Draft:
    """A file that is written beside its place, as `PATH.part`; what was there stays meanwhile.

    A pipe, a device and the like are written as they are. Raises OSError.
    """

    def __init__(self, path: str) -> None:
        self._path = os.path.realpath(path)
        beside = os.path.isfile(self._path) or not os.path.exists(self._path)
        self._written = f"{self._path}.part" if beside else self._path
        self.file = _claimed(self._written) if beside else opened(self._written)
        # The lock is held until the file has its name, which is after it was closed.
        self._claim = os.dup(self.file.fileno())

    def keep(self) -> None:
        """Give the file its name, once it is closed. Raises OSError."""
        self.keep_as(self._path)

    def keep_as(self, path: str) -> None:
        """Give the file another name. Raises OSError."""
        if self._written != self._path:
            os.replace(self._written, path)
        self._release()

    def drop(self) -> None:
        """Remove the file, unless it has its name: what stands there now is another's."""
        if self._written != self._path and self._claim >= 0:
            with suppress(OSError):
                self.file.close()
            with suppress(OSError):
                os.unlink(self._written)
        self._release()

    def _release(self) -> None:
        claim, self._claim = self._claim, -1
        if claim >= 0:
            os.close(claim)


def _claimed(path: str) -> FileIO:
    """Open a draft to write that no other program is writing. Raises OSError."""
    while True:
        # Not cut before it is ours.
        file = FileIO(path, "w", opener=lambda name, how: os.open(name, how & ~os.O_TRUNC, 0o666))
        with ExitStack() as left:
            left.callback(file.close)
            _lock(file)
            # Or the other one has given it its name meanwhile.
            if _is_at(file, path):
                file.truncate()
                left.pop_all()
                return file


def _lock(file: FileIO) -> None:
    try:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise OSError(errno.EBUSY, "another crawl or report is writing it") from None


def _is_at(file: FileIO, path: str) -> bool:
    with suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(file.fileno()), os.stat(path))
    return False


class Sitemaps:
    """A sitemap, or an index and the sitemaps it names, `NAME-1.xml` and so on beside it.

    Entries are gathered in a file without a name. Raises OSError.
    """

    def __init__(self, path: str) -> None:
        self._path = Path(os.path.realpath(path))
        self._drafts = [Draft(path)]
        if not stat.S_ISREG(os.fstat(self._drafts[0].file.fileno()).st_mode):
            self._drafts[0].file.close()
            self._drafts[0].drop()
            raise OSError(errno.ESPIPE, "it is no plain file, and may have to become several")
        self._entries = TemporaryFile(dir=self._path.parent)  # noqa: SIM115 - `keep` closes it
        # The sink closes its own.
        self.file = FileIO(os.dup(self._entries.fileno()), "w")

    def keep(self) -> None:
        """Write the files from the entries, and give them their names. Raises OSError."""
        with self._entries as entries:
            entries.seek(0)
            home = report.sitemap_home(entries.readline())
            entries.seek(0)
            for number, part in enumerate(report.sitemap_parts(entries), 1):
                if number > 1:
                    self._drafts.append(Draft(str(self._numbered(number))))
                _write(self._drafts[-1], part)
        if len(self._drafts) > 1:
            self._name(home)
        else:
            self._drafts[0].keep()

    def _name(self, home: str) -> None:
        """Give the sitemaps their names first, and then their index, which leads to them."""
        paths = [self._numbered(number) for number in range(1, len(self._drafts) + 1)]
        for draft, path in zip(self._drafts, paths, strict=True):
            draft.keep_as(str(path))
        index = Draft(str(self._path))
        self._drafts.append(index)
        names = (quote(os.fsencode(path.name)) for path in paths)
        _write(index, [report.sitemap_index(home + name for name in names)])
        index.keep()

    def drop(self) -> None:
        """Remove the files that have no name yet."""
        self._entries.close()
        for draft in self._drafts:
            draft.drop()

    def _numbered(self, number: int) -> Path:
        return self._path.with_stem(f"{self._path.stem}-{number}")


def _write(draft: Draft, chunks: Iterable[bytes]) -> None:
    with BufferedWriter(draft.file, 64 * 1024) as file:
        for chunk in chunks:
            file.write(chunk)
