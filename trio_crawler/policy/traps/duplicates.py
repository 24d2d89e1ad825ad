"""Duplicate bodies: the same body under many URLs of one host."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha1

from trio_crawler.page.urls import directory


class DuplicateBodies:
    """The first URL of each body of one host.

    In one directory the links of two equal bodies lead to the same pages (except for links that
    are only a query), so they are followed once. In another directory relative links lead
    elsewhere, and a mirror of a part of a site must not lose its pages, so they are followed
    there too, in at most `copies` directories. A body in more directories comes from a server
    that answers every request alike.

    With `by_digest` bodies are compared by their SHA-1, also with the bodies of an earlier run.
    """

    __slots__ = ("_by_digest", "_copies", "_directories", "_first")

    def __init__(self, copies: float, *, by_digest: bool = False) -> None:
        self._copies = copies
        # ▶ The hash of 40 KB takes 10 us, SHA-1 25.
        self._by_digest = by_digest
        # By the 64-bit hash of the body: a collision among 10^9 bodies has a chance of 1 in 30.
        self._first: dict[int, str] = {}
        self._directories: dict[int, set[str]] = {}

    def original(self, url: str, body: bytes) -> str | None:
        """Return the first URL with this body; None if the links of `url` are to be followed."""
        known = sha1(body, usedforsecurity=False).digest() if self._by_digest else body
        return self._record(hash(known), url)

    def original_by_digest(self, url: str, digest: bytes) -> str | None:
        """Return the result of `original` for the body with this SHA-1."""
        return self._record(hash(digest), url)

    def restore(self, bodies: Iterable[tuple[str, bytes]]) -> None:
        """Record the URL and the SHA-1 of bodies, as `original_by_digest` does for each."""
        first = self._first
        for url, digest in bodies:
            key = hash(digest)
            # ▶ Nearly all bodies are new: a call for each takes three times as long.
            if first.setdefault(key, url) is not url:
                self._record(key, url)

    def _record(self, key: int, url: str) -> str | None:
        first = self._first.setdefault(key, url)
        if first == url:
            return None
        here, followed = directory(url), self._directories.get(key, {directory(first)})
        if here in followed or len(followed) >= self._copies:
            return first
        self._directories[key] = followed | {here}
        return None
