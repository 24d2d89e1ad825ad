"""Places: where files are written, and never through a link that somebody has planted there."""

from __future__ import annotations

import errno
import os
import stat
import sys
from contextlib import ExitStack
from functools import partial
from io import FileIO

from trio_crawler.cli.outputs import STANDARD_OUTPUT
from trio_crawler.cli.sink import is_plain

PRIVATE, SHARED = 0o600, 0o666
"""The permissions of a new file: only its owner reads it, or the umask decides who does."""

PRIVATE_DIRECTORY = 0o700
"""The permissions of a new crawl directory."""

# Without O_NONBLOCK the opening of a pipe waits for its reader.
_SAFE = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
# In these directories links lead to open files: /dev/stdout, /dev/fd/3. In others below /dev, such
# as /dev/shm, all users may write.
_OPEN_FILES = ("/dev", "/dev/fd")


def place_of(path: str) -> str:
    """Return the path of a file with the links of its directory resolved, but not its own."""
    directory, name = os.path.split(path)
    if not name or _is_open_file(path):
        return os.path.realpath(path)
    return os.path.join(os.path.realpath(directory), name)


def mode_in(directory: str | os.PathLike[str] | None, path: str) -> int:
    """Return the permissions of an export: a file in a crawl directory is private, as that is."""
    if directory is None:
        return SHARED
    inside = os.path.join(os.path.realpath(directory), "")
    return PRIVATE if place_of(path).startswith(inside) else SHARED


def opened(path: str, mode: int = SHARED) -> FileIO:
    """Open a file to write to from its beginning; `-` is standard output. Raises OSError.

    A pipe or a device is opened as it is, wherever a link leads. A link to a plain file or to
    nothing is removed first, and so is a hard link: what it leads to stays as it is.
    """
    if path == STANDARD_OUTPUT:
        return _standard_output()
    if not is_plain(path) or _is_open_file(path):
        return FileIO(path, "w")
    if _is_link(path):
        os.unlink(path)
    with ExitStack() as on_error:
        file = _opened_plain(path, mode)
        on_error.callback(file.close)
        if mode == PRIVATE and not _is_own(os.fstat(file.fileno())):
            raise OSError(errno.EPERM, "another user owns it, and could read it: move it away")
        file.truncate()
        on_error.pop_all()
    return file


def opened_draft(path: str, mode: int) -> FileIO:
    """Open a draft to write to, with what a killed program left in it. Raises OSError."""
    if os.path.islink(path):
        raise OSError(errno.ELOOP, f"{path} is a symbolic link: remove it")
    try:
        file = _opened_plain(path, mode)
    except OSError as error:
        if error.errno in (errno.EISDIR, errno.ENXIO):
            raise _not_own(path, error.errno) from error
        raise
    about = os.fstat(file.fileno())
    if not stat.S_ISREG(about.st_mode) or about.st_nlink > 1 or not _is_own(about):
        file.close()
        raise _not_own(path, errno.EEXIST)
    return file


def _opened_plain(path: str, mode: int) -> FileIO:
    """Open a file that is not cut: it may belong to another program until it is locked."""
    return FileIO(path, "w", opener=partial(_open_uncut, mode))


def _open_uncut(mode: int, path: str, how: int) -> int:
    return os.open(path, (how & ~os.O_TRUNC) | _SAFE, mode)


def _is_open_file(path: str) -> bool:
    directory = os.path.realpath(os.path.dirname(path))
    return directory in _OPEN_FILES or directory.startswith("/proc/")


def _is_link(path: str) -> bool:
    try:
        about = os.lstat(path)
    except FileNotFoundError:
        return False
    return stat.S_ISLNK(about.st_mode) or (stat.S_ISREG(about.st_mode) and about.st_nlink > 1)


def _is_own(about: os.stat_result) -> bool:
    # On Windows there are no such numbers.
    return not hasattr(os, "geteuid") or about.st_uid == os.geteuid()


def _not_own(path: str, number: int | None) -> OSError:
    text = f"{path} is not a plain file of yours with one name: move it away"
    return OSError(number or errno.EEXIST, text)


def _standard_output() -> FileIO:
    if sys.stdout is None:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))
    # Unbuffered, so a thread stuck in a write holds no lock of sys.stdout.
    return FileIO(sys.stdout.fileno(), "w", closefd=False)
