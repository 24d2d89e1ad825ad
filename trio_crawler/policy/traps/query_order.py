"""Orders: the same parameters in another order are the same page."""

from __future__ import annotations

from collections.abc import Iterable


class Orders:
    """Remember for each set of parameters the order in which they came first.

    Any other order is refused, but for one: that in which a server redirects the first. It is
    known by its referrer, and let through once, so that pages which link to themselves in any
    order gain no more than one URL by it. (A redirect by way of some other URL is not known.)
    """

    __slots__ = ("_first", "_moved")

    def __init__(self) -> None:
        self._first: dict[int, int] = {}
        self._moved: set[int] = set()

    def refuses(self, url: str, referrer: str | None) -> bool:
        """Tell whether a URL is one that was let through, but for the order."""
        key = _sorted(url)
        first = None if key is None else self._first.get(key)
        if first is None or first == hash(url):
            return False
        return key in self._moved or hash(referrer) != first

    def recall(self, urls: Iterable[str]) -> None:
        """Note URLs that were let through in an earlier run, in that order."""
        for url in urls:
            if "&" in url:
                self.keep(url)

    def keep(self, url: str) -> None:
        """Note a URL that is let through."""
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
