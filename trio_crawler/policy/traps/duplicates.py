"""Copies: the same body under many URLs."""

from __future__ import annotations

from hashlib import sha1


class Copies:
    """Remember for each body the URL it came from first.

    In the same directory the same links lead to the same pages (but for those that are only a
    query), so they need not be followed again. In another directory relative links lead
    elsewhere, and a mirror of a part of a site must not lose its pages: there they are followed,
    in up to `most` directories. More are a server that says the same to whatever it is asked.
    """

    __slots__ = ("_by_digest", "_directories", "_first", "_most")

    def __init__(self, most: float) -> None:
        self._most = most
        # Only what must be compared with an earlier run needs a digest that outlasts this one:
        # the hash takes 10 us for 40 KB, SHA-1 25.
        self._by_digest = False
        # The keys are hashes of host and body: of 10^9 bodies two have the same with a chance of
        # one in thirty.
        self._first: dict[int, str] = {}
        self._directories: dict[int, set[str]] = {}

    def outlast(self) -> None:
        """Know bodies by their SHA-1, from the first one on: others are told of by that alone."""
        self._by_digest = True

    def original_by_digest(self, host: str, url: str, digest: bytes) -> str | None:
        """Return what `original` would, of a body that is known by its SHA-1."""
        return self._note(hash((host, digest)), url)

    def original(self, host: str, url: str, body: bytes) -> str | None:
        """Return the first URL of `host` with this body if its links need not be followed."""
        told = sha1(body, usedforsecurity=False).digest() if self._by_digest else body
        return self._note(hash((host, told)), url)

    def _note(self, key: int, url: str) -> str | None:
        first = self._first.setdefault(key, url)
        if first == url:
            return None
        here, followed = _directory(url), self._directories.get(key, {_directory(first)})
        if here in followed or len(followed) >= self._most:
            return first
        self._directories[key] = followed | {here}
        return None


def _directory(url: str) -> str:
    path = url.partition("?")[0]
    return path[: path.rindex("/") + 1]
