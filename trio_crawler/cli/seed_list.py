"""The list of URLs of --urls: a file or standard input, one URL a line, read as it is needed."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

import click

from trio_crawler.cli.exit import complain
from trio_crawler.cli.files import refusing
from trio_crawler.cli.parsing import listed_url
from trio_crawler.cli.secrets import READ

if TYPE_CHECKING:
    # --help needs none of the library.
    from trio_crawler.cli.options import CrawlOptions

STANDARD_INPUT = "-"
MAX_LINE = 64 * 1024
"""The most bytes of a line; what is longer is no URL, and is not kept in memory."""

SHOWN = 10
"""The most lines that are no URLs and are each told; the others are counted."""

_PORTION = 64 * 1024


def check_list(options: CrawlOptions) -> None:
    """Raise click.UsageError for a list that cannot be read."""
    path = options.seed_stream
    if path is None:
        return
    if not path:
        raise click.UsageError("--urls needs the name of a file")
    if path == STANDARD_INPUT:
        if click.get_current_context().meta.get(READ):
            raise click.UsageError("standard input is read by --urls or by @-, not by both")
        if sys.stdin is None:
            raise click.UsageError("--urls -: standard input is closed")
    elif os.path.isdir(path):
        raise click.UsageError(f"--urls: {path} is a directory, not a file of URLs")


class SeedList:
    """The URLs of an open file, in its order: an async iterable, to be iterated over once.

    A line that is no URL is counted in `wrong`, and `tell` gets a sentence about each of the first
    ten: a list of a million URLs must not fail because of one. An error of the disk ends the list,
    and is kept in `error`. A terminal or a pipe may take as long as it likes between two lines: a
    URL is yielded as soon as its line is complete.
    """

    def __init__(self, descriptor: int, name: str) -> None:
        self.name = name
        self.tell: Callable[[str], None] = complain
        self.wrong = 0
        self.error: OSError | None = None
        self._descriptor = descriptor
        self._number = 0

    @property
    def problem(self) -> str:
        """A sentence about what could not be read; "" if all was."""
        if self.error is not None:
            return f"cannot read {self.name} after line {self._number:,}: {self.error.strerror}"
        if self.wrong > SHOWN:
            return f"{self.name}: {self.wrong:,} lines are no URLs; the first {SHOWN} are above"
        lines = "1 line is" if self.wrong == 1 else f"{self.wrong:,} lines are"
        return f"{self.name}: {lines} no URL" if self.wrong else ""

    async def __aiter__(self) -> AsyncIterator[str]:
        """Yield the URLs as they are written; one without a scheme gets http://."""
        async for line in self._lines():
            self._number += 1
            if (url := self._url(line)) is not None:
                yield url

    def _url(self, line: bytes | None) -> str | None:
        """Return the URL in a line, None if there is none; the line is None if it is too long."""
        from trio_crawler import normalise

        try:
            if line is None:
                raise click.BadParameter(f"a line of more than {MAX_LINE // 1024} KiB")
            text = line.decode("utf-8-sig" if self._number == 1 else "utf-8").strip()
            return None if not text or text[0] == "#" else normalise(listed_url(text))
        except UnicodeDecodeError:
            why = "not UTF-8 text"
        except click.BadParameter as error:
            why = error.message
        except ValueError as error:
            why = str(error).removeprefix("url: ")
        self.wrong += 1
        if self.wrong <= SHOWN:
            self.tell(f"{self.name}:{self._number}: {why}")
        return None

    async def _lines(self) -> AsyncIterator[bytes | None]:
        """Yield the lines without their ends, and None for one that is too long."""
        begun, too_long = b"", False
        while octets := await self._read():
            *whole, begun = (begun + octets).split(b"\n")
            for line in whole:
                yield None if too_long or len(line) > MAX_LINE else line
                too_long = False
            if len(begun) > MAX_LINE:
                begun, too_long = b"", True
        if too_long or begun:
            yield None if too_long else begun

    async def _read(self) -> bytes:
        """Return the next bytes, b"" at the end."""
        import trio

        read = partial(os.read, self._descriptor, _PORTION)
        try:
            # A silent terminal or pipe does not hold up the end of a crawl.
            return await trio.to_thread.run_sync(read, abandon_on_cancel=True)
        except OSError as error:
            self.error = error
            return b""


@contextmanager
def opened(path: str) -> Iterator[SeedList]:
    """Open a list, "-" for standard input. Raises click.UsageError for another file."""
    if path == STANDARD_INPUT:
        yield SeedList(0, "standard input")
        return
    with refusing(f"cannot read {path}"):
        descriptor = os.open(path, os.O_RDONLY)
    try:
        yield SeedList(descriptor, path)
    finally:
        os.close(descriptor)
