"""URLs that differ only in the order of their parameters."""

from __future__ import annotations


class QueryOrder:
    """The first order of each set of parameters; URLs with another order are rejected.

    One other order is let through: the order that the server redirects the first one to. Such a
    URL is recognised by its referrer, and let through once, so pages that link to themselves in
    every order gain only one URL. A redirect by way of another URL is not recognised.
    """

    __slots__ = ("_first", "_moved")

    def __init__(self) -> None:
        self._first: dict[int, int] = {}
        self._moved: set[int] = set()

    def rejects(self, url: str, referrer: str | None) -> bool:
        """Whether a URL differs only in its order from one that was let through."""
        key = _sorted(url)
        first = None if key is None else self._first.get(key)
        if first is None or first == hash(url):
            return False
        return key in self._moved or hash(referrer) != first

    def keep(self, url: str) -> None:
        """Record a URL that is let through."""
        key = _sorted(url)
        if key is None:
            return
        if self._first.get(key, hash(url)) != hash(url):
            self._moved.add(key)
        self._first[key] = hash(url)


def _sorted(url: str) -> int | None:
    if "&" not in url:
        return None
    path, _, query = url.partition("?")
    return hash((path, *sorted(query.split("&")))) if "&" in query else None
