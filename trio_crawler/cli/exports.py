"""Exports: the files that options name; each gets its name only when it is complete."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from io import BufferedWriter, FileIO
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, Protocol, TypeAlias
from urllib.parse import quote

from trio_crawler import Outcome, report
from trio_crawler.cli.outputs import STANDARD_OUTPUT
from trio_crawler.cli.places import PRIVATE, SHARED, mode_in, opened, opened_draft, place_of
from trio_crawler.cli.sink import Sink, is_plain
from trio_crawler.report import to_jsonl
from trio_crawler.store import FileLock

Named: TypeAlias = Callable[[Outcome], Outcome]
"""Returns an outcome with the names of files as its URLs, for those in a folder."""


def as_it_is(outcome: Outcome) -> Outcome:
    """Return an outcome as it is: its URLs are those of servers."""
    return outcome


def _of_named(encode: Callable[[Outcome], bytes], named: Named) -> Callable[[Outcome], bytes]:
    return encode if named is as_it_is else lambda outcome: encode(named(outcome))


class Target(Protocol):
    """The file of an export, while it is written."""

    file: FileIO

    def keep(self) -> None:
        """Move the file to its name, once it is closed. Raises OSError."""

    def drop(self) -> None:
        """Abandon the file."""


class Export:
    """One file that outcomes are written to; the end of its context manager closes it.

    The file gets its name only if it is `whole` and there was no `error`.
    """

    def __init__(
        self,
        path: str,
        target: Target,
        encode: Callable[[Outcome], bytes],
        head: bytes = b"",
        *,
        tail: Callable[[], bytes] = bytes,
        costly: bool = False,
        whole: bool = True,
    ) -> None:
        self.path = path
        self.whole = whole
        self.error: OSError | None = None
        self.sink = Sink(target.file, encode, head, tail, costly=costly)
        self._target = target
        self._ended = False

    def __enter__(self) -> Export:
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        self.whole = self.whole and kind is None
        self.finish()

    def finish(self) -> None:
        """Write the rest, and move the file to its name."""
        if self._ended:
            return
        self._ended = True
        self.sink.close()
        self.error = self.sink.error
        if self.error or self.sink.stuck or not self.whole:
            self._target.drop()
            return
        try:
            self._target.keep()
        except OSError as error:
            self.error = error
            self._target.drop()


def exports(
    paths: Mapping[str, str],
    directory: str | os.PathLike[str] | None = None,
    *,
    whole: bool = True,
    named: Named = as_it_is,
) -> Iterator[Export]:
    """Open files, by the options that name them; those in a crawl directory are private.

    `named` returns what is written of an outcome.

    Raises OSError, whose `filename` is the option with the file, as they were typed.
    """
    for flag, path in paths.items():
        encode, head, target = _FORMS[flag]
        with naming(flag, path):
            at = (
                InPlace(path)
                if path == STANDARD_OUTPUT
                else target(path, mode_in(directory, path))
            )
            yield Export(path, at, _of_named(encode, named), head, whole=whole)


def in_place(
    flag: str,
    path: str,
    encode: Callable[[Outcome], bytes] = to_jsonl,
    head: bytes = b"",
    *,
    private: bool = False,
    named: Named = as_it_is,
    **more: Any,
) -> Export:
    """Open a file that a reader may follow while it is written.

    Only its owner may read a new file that is `private`. Raises OSError as `exports` does.
    """
    with naming(flag, path):
        file = InPlace(path, PRIVATE if private else SHARED)
        return Export(path, file, _of_named(encode, named), head, **more)


@contextmanager
def naming(flag: str, path: str) -> Iterator[None]:
    """Let an OSError of the block have the option with its file as `filename`."""
    try:
        yield
    except OSError as error:
        error.filename = f"{flag} {path}"
        raise


class InPlace:
    """A file that has its name from the beginning: its reader need not wait for the end."""

    def __init__(self, path: str, mode: int = SHARED) -> None:
        self.file = opened(path, mode)

    def keep(self) -> None:
        """Do nothing: it has its name."""

    def drop(self) -> None:
        """Do nothing: the written part stays."""


class Draft:
    """A file that is written as `PATH.part`, while an earlier file PATH stays as it is.

    A pipe or a device is written in place. A PATH that is a link is replaced by the file, and
    what it leads to stays as it is. Raises OSError.
    """

    def __init__(self, path: str, mode: int = SHARED) -> None:
        self._path = place_of(path)
        self._written = f"{self._path}.part"
        self._claim: _Claim | None = None
        if is_plain(path) and not os.path.isdir(self._path):
            self.file, self._claim = _claimed(self._written, mode)
        else:
            self.file = opened(path)

    def keep(self) -> None:
        """Move the file to its name, once it is closed. Raises OSError."""
        self.keep_as(self._path)

    def keep_as(self, path: str) -> None:
        """Move the file to another name, once it is closed. Raises OSError."""
        if self._claim is not None:
            with self._claim.ending():
                os.replace(self._written, path)
            self._claim = None

    def drop(self) -> None:
        """Remove the file, unless it has its name: then another program may be writing there."""
        if self._claim is not None:
            with suppress(OSError):
                self.file.close()
            with suppress(OSError), self._claim.ending():
                os.unlink(self._written)
            self._claim = None


class _Claim:
    """A lock on a draft. It lasts longer than the file is open: until the file has its name.

    Raises OSError.
    """

    def __init__(self, file: FileIO, path: str) -> None:
        # The lock is on the open file, which stays open with the duplicate.
        self._file = os.dup(file.fileno())
        with ExitStack() as on_error:
            on_error.callback(os.close, self._file)
            try:
                self._lock = FileLock(self._file, Path(path))
            except BlockingIOError as error:
                busy = "another crawl or report is writing it"
                raise OSError(errno.EBUSY, busy) from error
            on_error.pop_all()

    def release(self) -> None:
        """Let another program write the draft."""
        self._lock.release()
        os.close(self._file)

    @contextmanager
    def ending(self) -> Iterator[None]:
        """Release the lock after the block, which moves or removes the file.

        If the block raises OSError the lock stays held. On Windows it is released before the
        block, since no open file can be moved or removed there.
        """
        if os.name == "nt":
            self.release()
            yield
        else:
            yield
            self.release()


def _claimed(path: str, mode: int) -> tuple[FileIO, _Claim]:
    """Open a draft that no other program is writing. Raises OSError."""
    while True:
        file = opened_draft(path, mode)
        with ExitStack() as on_error:
            on_error.callback(file.close)
            claim = _Claim(file, path)
            on_error.callback(claim.release)
            # If not, another program moved the file before we locked it: try again.
            if _is_at(file, path):
                file.seek(0)
                file.truncate()
                on_error.pop_all()
                return file, claim


def _is_at(file: FileIO, path: str) -> bool:
    with suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(file.fileno()), os.lstat(path))
    return False


class SitemapFiles:
    """A sitemap, or an index and the sitemaps that it names, `NAME-1.xml` and so on beside it.

    Entries are gathered in a file without a name; `split` divides them into sitemaps. Raises
    OSError.
    """

    def __init__(
        self,
        path: str,
        mode: int = SHARED,
        split: Callable[[Iterable[bytes]], Iterable[Iterable[bytes]]] = report.sitemap_parts,
    ) -> None:
        self._split = split
        self._path = Path(place_of(path))
        self._mode = mode
        self._drafts = [Draft(path, mode)]
        if not stat.S_ISREG(os.fstat(self._drafts[0].file.fileno()).st_mode):
            self._drafts[0].file.close()
            self._drafts[0].drop()
            raise OSError(errno.ESPIPE, "it is no plain file, and a large sitemap needs several")
        self._entries = TemporaryFile(dir=self._path.parent)  # noqa: SIM115 - `keep` closes it
        # The sink closes its own.
        self.file = FileIO(os.dup(self._entries.fileno()), "w")

    def keep(self) -> None:
        """Write the files from the entries, and move them to their names. Raises OSError."""
        with self._entries as entries:
            entries.seek(0)
            home = report.sitemap_home(entries.readline())
            entries.seek(0)
            for number, part in enumerate(self._split(entries), 1):
                if number > 1:
                    self._drafts.append(Draft(str(self._numbered(number)), self._mode))
                _write(self._drafts[-1], part)
        if len(self._drafts) > 1:
            self._name(home)
        else:
            self._drafts[0].keep()

    def _name(self, home: str) -> None:
        """Move the sitemaps to their names first, and then the index, which leads to them."""
        paths = [self._numbered(number) for number in range(1, len(self._drafts) + 1)]
        for draft, path in zip(self._drafts, paths, strict=True):
            draft.keep_as(str(path))
        index = Draft(str(self._path), self._mode)
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


_FORMS: dict[str, tuple[Callable[[Outcome], bytes], bytes, Callable[[str, int], Target]]] = {
    "--jsonl": (to_jsonl, b"", Draft),
    "--csv": (report.csv_row, report.CSV_HEAD, Draft),
    "--links": (report.link_rows, report.LINKS_HEAD, Draft),
    "--sitemap-xml": (report.sitemap_entry, b"", SitemapFiles),
}
