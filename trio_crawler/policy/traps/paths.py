"""Paths of URLs: the number of segments, and repeated directories."""

from __future__ import annotations

from collections.abc import Sequence


def segments(path: str) -> int:
    """Return the number of segments of a path; a slash at the end begins none."""
    return path.count("/") - path.endswith("/")


def repeats(path: str, most: float) -> bool:
    """Whether a directory, or a run of directories, comes more than `most` times in a row.

    A relative link that is followed from page to page makes such paths: /a/a/a/x, or
    /a/b/a/b/a/b/x. The name after the last slash is not a directory: 2011/11/11/11 is a date and
    a number.
    """
    if path.count("/") - 1 <= most:
        return False
    directories = path.split("/")[1:-1]
    # A name that comes more than `most` times makes the set smaller by at least `most`.
    if len(directories) - len(set(directories)) < most:
        return False
    longest = int(len(directories) // (most + 1))
    return any(_in_a_row(directories, run, most) for run in range(1, longest + 1))


def _in_a_row(names: Sequence[str], run: int, most: float) -> bool:
    same = 0
    for name, later in zip(names, names[run:], strict=False):
        same = same + 1 if name == later else 0
        if same >= run * most:
            return True
    return False
