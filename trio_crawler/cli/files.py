"""Files: those to write, never through a planted link; and the list of URLs that is read.

What is to be written is checked before anything is opened. The list of --urls is a file or
standard input, one URL a line, read as it is needed.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from io import BufferedWriter, FileIO
from typing import TYPE_CHECKING

import click

from trio_crawler.cli.exit import complain
from trio_crawler.cli.parsing import Options, Output, listed_url, requested
from trio_crawler.cli.secrets import READ

STANDARD_OUTPUT = "-"

PRIVATE, SHARED = 0o600, 0o666
"""The permissions of a new file: only its owner reads it, or the umask decides who does."""

PROCESSES, LEFT = "processes", "left"
"""The part of a crawl directory with a crawl by several processes that is not finished."""

PRIVATE_DIRECTORY = 0o700
"""The permissions of a new crawl directory."""

# Without O_NONBLOCK the opening of a pipe waits for its reader.
_SAFE = os.O_NOFOLLOW | os.O_NONBLOCK
# In these directories links lead to open files: /dev/stdout, /dev/fd/3. In others below /dev, such
# as /dev/shm, all users may write.
_OPEN_FILES = ("/dev", "/dev/fd")


def check_directory(directory: str, named: str, hint: str = "") -> None:
    """Raise click.UsageError if this is no name of a directory."""
    if directory in ("", STANDARD_OUTPUT):
        raise click.UsageError(f"{named} needs the name of a directory{hint}")


def check_files(options: Options) -> None:
    """Raise click.UsageError if two files are the same, or one cannot be standard output."""
    known: dict[str, str] = {}
    for flag, (path, output) in requested(options).items():
        if not path or (path == STANDARD_OUTPUT and output is Output.FILE):
            raise click.UsageError(f"{flag} needs the name of a file, not '{path}'")
        # Opened twice, each would overwrite the other.
        with suppress(OSError, ValueError):
            about = os.stat(path)
            if stat.S_ISREG(about.st_mode) and os.path.samestat(about, os.fstat(1)):
                raise click.UsageError(
                    f"{flag}: the report goes to {path}: with {flag} - it goes to standard error"
                )
        place = path if path == STANDARD_OUTPUT else os.path.realpath(path)
        if place in known:
            where = "standard output" if path == STANDARD_OUTPUT else path
            raise click.UsageError(f"{known[place]} and {flag} cannot both write to {where}")
        known[place] = flag


def is_plain(path: str) -> bool:
    """Whether a file can be truncated, and so be a stream; a pipe and a device cannot."""
    if path == STANDARD_OUTPUT:
        return False
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return True
    return stat.S_ISREG(mode) or stat.S_ISDIR(mode)


def place_of(path: str) -> str:
    """Return the path of a file with the links of its directory resolved, but not its own."""
    directory, name = os.path.split(path)
    if not name or _is_open_file(path):
        return os.path.realpath(path)
    return os.path.join(os.path.realpath(directory), name)


def opened(path: str, mode: int = SHARED) -> FileIO:
    """Open a file to write to from its beginning; `-` is standard output. Raises OSError.

    A pipe or a device is opened as it is, wherever a link leads. A link to a plain file or to
    nothing is removed first, and so is a hard link: what it leads to stays as it is.
    """
    if path == STANDARD_OUTPUT:
        if sys.stdout is None:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        # Unbuffered, so a thread stuck in a write holds no lock of sys.stdout.
        return FileIO(sys.stdout.fileno(), "w", closefd=False)
    if not is_plain(path) or _is_open_file(path):
        return FileIO(path, "w")
    with suppress(FileNotFoundError):
        about = os.lstat(path)
        if stat.S_ISLNK(about.st_mode) or (stat.S_ISREG(about.st_mode) and about.st_nlink > 1):
            os.unlink(path)

    with ExitStack() as on_error:
        # Not cut before it is known to whom it belongs.
        file = FileIO(
            path, "w", opener=lambda it, how: os.open(it, (how & ~os.O_TRUNC) | _SAFE, mode)
        )
        on_error.callback(file.close)
        if mode == PRIVATE and os.fstat(file.fileno()).st_uid != os.geteuid():
            raise OSError(errno.EPERM, "another user owns it, and could read it: move it away")
        file.truncate()
        on_error.pop_all()
    return file


def _is_open_file(path: str) -> bool:
    directory = os.path.realpath(os.path.dirname(path))
    return directory in _OPEN_FILES or directory.startswith("/proc/")


@contextmanager
def refusing(told: str) -> Iterator[None]:
    """Raise click.UsageError, which says what cannot be done, for an OSError of the block."""
    try:
        yield
    except OSError as error:
        raise click.UsageError(f"{told}: {error.strerror}") from None


class Target:
    """A file to write, which has its name from the beginning: a reader need not wait for the end.

    Raises OSError.
    """

    file: FileIO

    def __init__(self, path: str, mode: int = SHARED) -> None:
        self.file = opened(path, mode)

    def write(self, pieces: Iterable[bytes]) -> None:
        """Write the whole file, and close it. Raises OSError."""
        with BufferedWriter(self.file, 64 * 1024) as file:
            file.writelines(pieces)

    def keep(self) -> None:
        """Let the file have its name, once it is closed. Raises OSError."""

    def drop(self) -> None:
        """Abandon the file; what is written in place stays."""


class Draft(Target):
    """A file that is written under another name, while an earlier file PATH stays as it is.

    No other program writes under that name, `PATH.7d01ab3c.part`. A pipe or a device is written in
    place. A PATH that is a link is replaced by the file, and what it leads to stays as it is.
    Raises OSError.
    """

    def __init__(self, path: str, mode: int = SHARED) -> None:
        self._path = place_of(path)
        self._written = ""
        if not is_plain(path) or os.path.isdir(self._path):
            self.file = opened(path)
            return
        written = f"{self._path}.{os.urandom(4).hex()}.part"
        self.file = FileIO(written, "x", opener=partial(os.open, mode=mode))
        self._written = written

    def keep(self, path: str = "") -> None:
        """Move the file to its name, or to another `path`, once it is closed. Raises OSError."""
        if self._written:
            os.replace(self._written, path or self._path)
            self._written = ""

    def drop(self) -> None:
        """Remove the file, unless it has its name."""
        if self._written:
            with suppress(OSError):
                self.file.close()
            with suppress(OSError):
                os.unlink(self._written)
            self._written = ""


def target_of(
    path: str,
    directory: str | os.PathLike[str] | None = None,
    form: Callable[[str, int], Target] = Draft,
) -> Target:
    """Open a file that is private in a crawl directory; `-` is standard output. Raises OSError."""
    if path == STANDARD_OUTPUT:
        return Target(path)
    # As private as the directory is.
    inside = directory is not None and os.path.join(os.path.realpath(directory), "")
    return form(path, PRIVATE if inside and place_of(path).startswith(inside) else SHARED)


def written(
    path: str,
    target: Target,
    pieces: Callable[[], Iterable[bytes]],
    unwritten: dict[str, OSError],
) -> list[str]:
    """Write a whole file, and let it have its name; add an OSError to `unwritten`.

    Return no lines: as a part of a report, this is a file beside it.
    """
    try:
        target.write(pieces())
        target.keep()
    except OSError as error:
        unwritten[path] = error
    return []


# The list of URLs.

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
def opened_list(path: str) -> Iterator[SeedList]:
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
