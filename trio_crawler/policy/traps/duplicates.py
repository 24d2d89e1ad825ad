"""Duplicate bodies: the same body under many URLs of one host."""

from __future__ import annotations

from hashlib import sha1

from trio_crawler.page.urls import directory


class DuplicateBodies:
    """The URL that each body of one host came from first.

    In the same directory the same links lead to the same pages (but for links that are only a
    query), so they need not be followed again. In another directory relative links lead
    elsewhere, and a mirror of a part of a site must not lose its pages: there they are followed,
    in at most `copies` directories. A body in more directories comes from a server that answers
    every request alike.

    With `by_digest` bodies are compared by their SHA-1, also with those of an earlier run.
    """

    __slots__ = ("_by_digest", "_copies", "_directories", "_first")

    def __init__(self, copies: float, *, by_digest: bool = False) -> None:
        self._copies = copies
        # ▶ The hash of 40 KB takes 10 us, SHA-1 25.
        self._by_digest = by_digest
        # By the hash of the body: of 10^9 bodies two have the same with a chance of one in thirty.
        self._first: dict[int, str] = {}
        self._directories: dict[int, set[str]] = {}

    def original(self, url: str, body: bytes) -> str | None:
        """Return the first URL with this body, if the links of this one need not be followed."""
        known = sha1(body, usedforsecurity=False).digest() if self._by_digest else body
        return self._record(hash(known), url)

    def original_by_digest(self, url: str, digest: bytes) -> str | None:
        """Return what `original` would, for a body that is known by its SHA-1."""
        return self._record(hash(digest), url)

    def _record(self, key: int, url: str) -> str | None:
        first = self._first.setdefault(key, url)
        if first == url:
            return None
        here, followed = directory(url), self._directories.get(key, {directory(first)})
        if here in followed or len(followed) >= self._copies:
            return first
        self._directories[key] = followed | {here}
        return None
