"""Exports: the files that options ask for, and how an outcome is written to each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from trio_crawler import Outcome, report
from trio_crawler.cli.drafts import Draft, Drafted, Plain, Sitemaps
from trio_crawler.cli.outputs import STANDARD_OUTPUT
from trio_crawler.cli.sink import Sink
from trio_crawler.report import to_jsonl


class Export:
    """One file that outcomes are written to; a context manager that ends it, however it is left.

    A draft gets its name only when it is `whole`, and nothing went wrong. `error` says what did.
    """

    def __init__(
        self,
        path: str,
        file: Drafted,
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
        self.sink = Sink(file.file, encode, head, tail, costly=costly)
        self._file = file
        self._ended = False

    def __enter__(self) -> Export:
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        self.whole = self.whole and kind is None
        self.finish()

    def finish(self) -> None:
        """Write what is left, and give the file its name."""
        if self._ended:
            return
        self._ended = True
        self.sink.close()
        self.error = self.sink.error
        if self.error or self.sink.stuck or not self.whole:
            self._file.drop()
            return
        try:
            self._file.keep()
        except OSError as error:
            self.error = error
            self._file.drop()


_FORMS: dict[str, tuple[Callable[[Outcome], bytes], bytes]] = {
    "--jsonl": (to_jsonl, b""),
    "--csv": (report.csv_row, report.CSV_HEAD),
    "--links": (report.link_rows, report.LINKS_HEAD),
    "--sitemap-xml": (report.sitemap_entry, b""),
}


def exports(files: Mapping[str, str | None], *, whole: bool = True) -> Iterator[Export]:
    """Open the files that are asked for, by the options that do.

    Raises OSError, with the file's name as it was given.
    """
    for option, path in files.items():
        if path is not None:
            encode, head = _FORMS[option]
            yield Export(path, _placed(option, path), encode, head, whole=whole)


def plain(
    path: str,
    encode: Callable[[Outcome], bytes] = to_jsonl,
    head: bytes = b"",
    **more: Any,
) -> Export:
    """Open a file that is written as it is, also while somebody reads it. Raises OSError."""
    with _naming(path):
        return Export(path, Plain(path), encode, head, **more)


def _placed(option: str, path: str) -> Drafted:
    with _naming(path):
        if option == "--sitemap-xml":
            return Sitemaps(path)
        return Plain(path) if path == STANDARD_OUTPUT else Draft(path)


@contextmanager
def _naming(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        error.filename = path
        raise
