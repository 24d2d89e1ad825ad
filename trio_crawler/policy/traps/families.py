"""Families of paths: the URLs whose paths have the same first names."""

from __future__ import annotations

import re

# The names of a path that tell families apart.
_LEVELS = 3
# Directories with more different names than this hold items, such as articles.
_MAX_NAMES = 16
_MAX_DIRECTORIES = 500

_ITEM = "*"
_numbers = re.compile("[0-9]+").sub


class Families:
    """The families of the paths of one host.

    A family is the number of names of a path, and the first three of them. Numbers are folded, and
    where a directory has more than 16 names, the later ones are "*". So `/repo/tree` and
    `/repo/commit` are two families, and ten thousand articles are 17. At most 500 directories are
    told apart.
    """

    __slots__ = ("_names",)

    def __init__(self) -> None:
        self._names: dict[str, set[str]] = {}

    def of(self, path: str) -> str:
        """Return the family of a path."""
        # Pages deeper down are views of parts, such as the history of a file.
        names = path.strip("/").split("/")
        family = str(len(names))
        for name in names[:_LEVELS]:
            known = self._names.get(family)
            if known is None:
                if len(self._names) >= _MAX_DIRECTORIES:
                    return f"{family}/{_ITEM}"
                known = self._names[family] = set()
            folded = _numbers("0", name)
            if folded not in known:
                if len(known) >= _MAX_NAMES:
                    folded = _ITEM
                else:
                    known.add(folded)
            family = f"{family}/{folded}"
        return family
