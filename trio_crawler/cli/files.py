"""Files to write: checked before anything is opened, and never through a planted link."""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from io import BufferedWriter, FileIO

import click

from trio_crawler.cli.declaration import Output, requested

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


def check_files(options: object) -> None:
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
