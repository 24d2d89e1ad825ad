"""Exports: the files that options name, written without holding up the crawl.

Each gets its name only when it is complete, except those that a reader may follow.
"""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from io import FileIO
from pathlib import Path
from tempfile import TemporaryFile
from typing import TypeAlias
from urllib.parse import quote

import trio

from trio_crawler import Outcome, Page, report
from trio_crawler.cli.files import SHARED, Draft, Target, place_of, refusing, target_of
from trio_crawler.cli.options import CrawlOptions
from trio_crawler.cli.parsing import requested
from trio_crawler.cli.shared_options import ReportOptions
from trio_crawler.ledger import Ledger

BATCH = 512 * 1024
"""Bytes of bodies whose outcomes are encoded and written at once in a thread.

▶ To call a thread for each outcome takes longer than to encode it.
"""

_OVERHEAD = 4 * 1024
"""The bytes that an outcome counts for besides its body."""

EVERY = 0.2
"""Seconds between two writes."""


Named: TypeAlias = Callable[[Outcome], Outcome]
"""Returns an outcome with the names of files as its URLs, for those in a folder."""


def as_it_is(outcome: Outcome) -> Outcome:
    """Return an outcome as it is: its URLs are those of servers."""
    return outcome


class Export:
    """One file that outcomes are written to; the end of its context manager closes it.

    Outcomes are gathered, up to 512 KiB of bodies and one outcome more. During a crawl a thread
    encodes and writes them, at least every 0.2 s. So a slow reader of a pipe slows the crawl, but
    does not block the event loop.

    After `error` is set nothing more is written. A write to a pipe that is cancelled continues in
    its thread, and `stuck` is set until it is done; a write to a plain file is not cancelled. The
    file gets its name only if it is `whole` and neither is set.
    """

    def __init__(
        self,
        path: str,
        target: Target,
        encode: Callable[[Outcome], bytes],
        head: bytes = b"",
        tail: Callable[[], bytes] = bytes,
        *,
        whole: bool = True,
    ) -> None:
        self.path = path
        self.whole = whole
        self.error: OSError | None = None
        self.stuck = False
        self._target = target
        self._file = target.file
        self._encode = encode
        self._tail = tail
        self._waits = not stat.S_ISREG(os.fstat(self._file.fileno()).st_mode)
        self._head = head
        # The outcomes that are not encoded yet, and the bytes that they count for.
        self._outcomes: list[Outcome] = []
        self._waiting = 0
        self._writing = trio.Lock()
        self._ended = False

    def __enter__(self) -> Export:
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        self.whole = self.whole and kind is None
        self.finish()

    def finish(self) -> None:
        """Write the rest, unless a thread is stuck in a write, and move the file to its name."""
        if self._ended:
            return
        self._ended = True
        try:
            if not self.stuck:
                self._write(*self._taken())
                self._write(self._tail())
                self._file.close()
            if self.whole and not (self.stuck or self.error):
                self._target.keep()
                return
        except OSError as error:
            self.error = self.error or error
        self._target.drop()

    def take(self, outcome: Outcome) -> None:
        """Add one outcome, and write in this thread if there is enough."""
        self._gather(outcome)
        if self._waiting >= BATCH:
            self._write(*self._taken())

    def _gather(self, outcome: Outcome) -> None:
        self._outcomes.append(outcome)
        self._waiting += _OVERHEAD + (outcome.size if isinstance(outcome, Page) else 0)

    async def put(self, outcome: Outcome) -> None:
        """Add one outcome; wait if the reader is behind."""
        self._gather(outcome)
        if self._waiting >= BATCH:
            await self.flush()

    async def flush(self) -> None:
        """Write what was gathered."""
        # It is removed and then written: a cancellation in between would lose it.
        async with self._writing:
            with trio.CancelScope(shield=not self._waits):
                await trio.lowlevel.checkpoint_if_cancelled()
                if not (self._head or self._outcomes):
                    return
                write = partial(self._write, *self._taken())
                self.stuck = True
                await trio.to_thread.run_sync(write, abandon_on_cancel=self._waits)

    def _taken(self) -> tuple[bytes, list[Outcome]]:
        """Remove and return what was gathered."""
        taken = self._head, self._outcomes
        self._head, self._outcomes, self._waiting = b"", [], 0
        return taken

    async def drain(self) -> None:
        """Write the gathered bytes again and again, until cancelled."""
        while True:
            await trio.sleep(EVERY)
            await self.flush()

    def _write(self, head: bytes, outcomes: Sequence[Outcome] = ()) -> None:
        """Write outcomes after a head, in any thread."""
        try:
            rest = memoryview(
                b"" if self.error else b"".join([head, *map(self._encode, outcomes)])
            )
            while rest:
                rest = rest[self._file.write(rest) :]
        except OSError as error:
            self.error = error
        finally:
            self.stuck = False


def exports(
    options: CrawlOptions | ReportOptions,
    *,
    named: Named,
    ledger: Ledger | None,
    in_place: str = "",
    whole: bool = False,
    but: Collection[str] = (),
) -> Iterator[Export]:
    """Open the files of outcomes that options name; those in a crawl directory are private.

    With a `ledger` a CSV has the facts of pages, and it and JSON Lines have what that knows at the
    end. A reader may follow the file of the option `in_place`, which is always whole; it has not.
    `named` returns what is written of an outcome. Raises click.UsageError for a file that cannot
    be written.
    """
    for flag, (path, _) in requested(options).items():
        if flag not in _FORMS or flag in but:
            continue
        name, columns, form = _FORMS[flag]
        encode = partial(lambda write, outcome: write(named(outcome)), getattr(report, name))
        head = getattr(report, columns) if columns else b""
        with refusing(f"cannot write {flag} {path}"):
            live = flag == in_place
            target = target_of(path, options.directory, Target if live else form)
            if ledger is not None and flag in _LATE and not live:
                complete, entry = _LATE[flag]
                target = Completed(target, partial(getattr(report, complete), ledger=ledger))
                encode = partial(lambda entry, outcome: entry(outcome, named(outcome)), entry)
                head = b""
            yield Export(path, target, encode, head, whole=whole or live)


def _line(outcome: Outcome, shown: Outcome) -> bytes:
    return b"%b\n%b" % (json.dumps(outcome.url).encode(), report.to_jsonl(shown))


class _Gathered(Target):
    """A file that is made at the end, from the entries in one without a name. Raises OSError."""

    def __init__(self, folder: Path | None = None) -> None:
        self._entries = TemporaryFile(dir=folder)  # noqa: SIM115 - `keep` closes it
        # The sink closes its own.
        self.file = FileIO(os.dup(self._entries.fileno()), "w")


class Completed(_Gathered):
    """A file that is completed at the end. Raises OSError."""

    def __init__(
        self, target: Target, complete: Callable[[Iterable[bytes]], Iterable[bytes]]
    ) -> None:
        super().__init__()
        self._target, self._complete = target, complete

    def keep(self) -> None:
        """Write the file, and move it to its name. Raises OSError."""
        with self._entries as entries:
            entries.seek(0)
            self._target.write(self._complete(entries))
        self._target.keep()

    def drop(self) -> None:
        """Abandon the file."""
        self._entries.close()
        self._target.drop()


class SitemapFiles(_Gathered):
    """A sitemap, or an index and the sitemaps that it names, `NAME-1.xml` and so on beside it.

    Entries are gathered in a file without a name; `split` divides them into sitemaps. Raises
    OSError.
    """

    def __init__(
        self,
        path: str,
        mode: int = SHARED,
        split: Callable[[Iterable[bytes]], Iterable[Iterable[bytes]]] | None = None,
    ) -> None:
        self._split, self._mode = split or report.sitemap_parts, mode
        self._path = Path(place_of(path))
        self._drafts = [Draft(path, mode)]
        if not stat.S_ISREG(os.fstat(self._drafts[0].file.fileno()).st_mode):
            self._drafts[0].file.close()
            self._drafts[0].drop()
            raise OSError(errno.ESPIPE, "it is no plain file, and a large sitemap needs several")
        super().__init__(self._path.parent)

    def keep(self) -> None:
        """Write the files from the entries, and move them to their names. Raises OSError."""
        with self._entries as entries:
            entries.seek(0)
            home = report.sitemap_home(entries.readline())
            entries.seek(0)
            for number, part in enumerate(self._split(entries), 1):
                if number > 1:
                    self._drafts.append(Draft(str(self._numbered(number)), self._mode))
                self._drafts[-1].write(part)
        if len(self._drafts) == 1:
            self._drafts[0].keep()
            return
        # The sitemaps get their names first, and then the index, which leads to them.
        paths = [self._numbered(number) for number in range(1, len(self._drafts) + 1)]
        for draft, path in zip(self._drafts, paths, strict=True):
            draft.keep(str(path))
        index = Draft(str(self._path), self._mode)
        self._drafts.append(index)
        names = (quote(os.fsencode(path.name)) for path in paths)
        index.write([report.sitemap_index(home + name for name in names)])
        index.keep()

    def drop(self) -> None:
        """Remove the files that have no name yet."""
        self._entries.close()
        for draft in self._drafts:
            draft.drop()

    def _numbered(self, number: int) -> Path:
        return self._path.with_stem(f"{self._path.stem}-{number}")


_LATE: dict[str, tuple[str, Callable[[Outcome, Outcome], bytes]]] = {
    "--csv": ("csv_with_facts", lambda outcome, shown: report.csv_entry(outcome, shown)),
    "--jsonl": ("jsonl_with_links", _line),
}
# By the names in `report`, whose modules most crawls need not.
_FORMS: dict[str, tuple[str, str, Callable[[str, int], Target]]] = {
    "--jsonl": ("to_jsonl", "", Draft),
    "--csv": ("csv_row", "CSV_HEAD", Draft),
    "--links": ("link_rows", "LINKS_HEAD", Draft),
    "--sitemap-xml": ("sitemap_entry", "", SitemapFiles),
}
