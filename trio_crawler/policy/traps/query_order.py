"""Query order: the same parameters in another order are the same page."""

from __future__ import annotations


class QueryOrder:
    """The order in which each set of parameters came first.

    Every other order is refused, but for one: the order that a server redirects the first one to.
    That URL is known by its referrer, and let through once, so that pages which link to themselves
    in every order gain one URL by it. (A redirect by way of some other URL is not known.)
    """

    __slots__ = ("_first", "_moved")

    def __init__(self) -> None:
        self._first: dict[int, int] = {}
        self._moved: set[int] = set()

    def refuses(self, url: str, referrer: str | None) -> bool:
        """Whether a URL differs from one that was let through only in its order."""
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
