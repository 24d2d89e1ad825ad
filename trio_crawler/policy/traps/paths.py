"""Paths: how deep a URL goes, and whether it goes in circles."""

from __future__ import annotations

from collections.abc import Sequence


def segments(path: str) -> int:
    """Count the segments of a path; the slash of a directory begins none."""
    return path.count("/") - path.endswith("/")


def repeats(path: str, most: float) -> bool:
    """Tell whether directories, one or a run of them, come more than `most` times in a row.

    So does the path of a relative link that is followed from page to page: /a/a/a/x, or
    /a/b/a/b/a/b/x. What stands behind the last slash is no directory: 2011/11/11/11 is a date
    and a number.
    """
    if path.count("/") - 1 <= most:
        return False
    directories = path.split("/")[1:-1]
    # Whatever comes once more than `most` times leaves `most` names without a place in the set.
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
