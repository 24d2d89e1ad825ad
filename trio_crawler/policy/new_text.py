"""New text: whether pages say something that others have not said.

The pages of a calendar differ only in their dates.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from trio_crawler.policy.url_shapes import steps

_BYTES = 2 * 1024 * 1024
_MASK = 8 * _BYTES - 1
# With more texts than a quarter of the bits, one new text in four would pass for a known one.
_MAX_TEXTS = 2 * _BYTES
# Of a longer body only the two ends are read.
_END = 131_072
_MAX_PIECES = 5_000

_KEPT = frozenset(b"0123456789<>abcdefghijklmnopqrstuvwxyz\0") | frozenset(range(128, 256))
# A script repeats the name of its page, and a form the source of its text.
_NO_TEXT = (b"script", b"style", b"textarea")
_AS_WORDS = bytes(byte if byte in _KEPT else 32 for byte in bytes(range(256)).lower())

_DIGITS = b"0123456789\0"  # NUL: the other byte of each ASCII character in UTF-16
_WORD = frozenset(b"0123456789_<>abcdefghijklmnopqrstuvwxyz\0") | frozenset(range(128, 256))
_WORDS = bytes(byte if byte in _WORD else 32 for byte in bytes(range(256)).lower())
_DATE_WORDS = frozenset(
    b"jan feb mar apr may jun jul aug sep sept oct nov dec january february march april june"
    b" july august september october november december mon tue tues wed thu thur thurs fri sat"
    b" sun mo tu we th fr sa su monday tuesday wednesday thursday friday saturday sunday st nd"
    b" rd am pm nbsp".split()
)
_LONG = 16
# Two pages may differ only in an image. The query of its address is left out: it may be generated.
image_names = re.compile(rb"""src=["']?([^"'?<> ]++)""").findall

_EVERY, _ENOUGH = 4, 4_096
_STEPS_KEPT = 16
# The weight of a page that leads to the same distances as the pages before.
_STEADY = 0.1


def fingerprint(url: str, body: bytes) -> int:
    """Return a hash of the text of a page; pages that differ only in a date have the same.

    It is the hash of a set: the words outside the tags, in lower case, and the names of the
    images. Left out are digits, months, days of the week, words of the URL, and random words (16
    letters and digits or more). The hash is valid in one process only. The middle of a body of
    more than 256 KiB is not read. 30 KB take some 0.4 ms.
    """
    if len(body) > 2 * _END:
        body = body[:_END] + body[-_END:]
    # A page may begin with text: ">" makes it text after a tag.
    pieces = set((b">" + body).translate(_WORDS).split(b"<"))
    text = b" ".join([piece.partition(b">")[2] for piece in pieces])
    words = [word for word in set(text.split()) if len(word) < _LONG or not _is_random(word)]
    kept = _without_digits(b" ".join(words)) - _DATE_WORDS
    in_url = _without_digits(url.encode().translate(_WORDS))
    return hash(frozenset(kept - in_url | set(image_names(body))))


def _is_random(word: bytes) -> bool:
    # Both tests are for ASCII only: a Chinese sentence is one word here, and not a random one.
    return word.isalnum() and not word.isalpha()


def _without_digits(text: bytes) -> set[bytes]:
    return set(text.translate(None, _DIGITS).split())


class News(NamedTuple):
    """The texts between the tags of a page: all, the new ones, and those new without digits.

    The address of a new image counts as a new text: a photo may be all that a page shows.
    """

    texts: int
    new: int
    worded: int

    @property
    def is_news(self) -> bool:
        """Whether the page says something new.

        News are three texts that differ in more than digits, or two that are a fifth of all: a
        list in another order has a new heading at most, a page of measurements has new numbers.
        """
        return self.worded >= 3 or (self.new >= 2 and 5 * self.new >= self.texts)


class Novelty:
    """The texts that the pages of one crawl have shown, by host.

    It takes 2 MiB from the first page on. One bit stands for a text, so a new text may pass for a
    known one: 1 of 40 after 400,000 texts. After four million all are forgotten, so that they
    count as new once more.
    """

    __slots__ = ("_bits", "_hosts", "_texts")

    def __init__(self) -> None:
        self._bits = bytearray()
        self._hosts = 0
        self._texts = 0

    def add_host(self) -> int:
        """Return the number of another host."""
        self._hosts += 1
        return self._hosts

    def add(self, host: int, body: bytes) -> News:
        """Record the texts of an HTML page of a host; return how many are new.

        ▶ 30 KB take 0.1 to 0.4 ms.
        """
        if not self._bits or self._texts > _MAX_TEXTS:
            self._bits, self._texts = bytearray(_BYTES), 0
        new = worded = 0
        texts = _texts_of(body)
        for text in texts | set(image_names(body, 0, _END)[:_MAX_PIECES]):
            if self._is_new(hash((host, text))):
                new += 1
                bare = b" ".join(text.translate(None, _DIGITS).split())
                worded += len(bare) > 1 and self._is_new(hash((host, b"", bare)))
        return News(len(texts), new, worded)

    def _is_new(self, key: int) -> bool:
        place, bit = (key & _MASK) >> 3, 1 << (key & 7)
        if self._bits[place] & bit:
            return False
        self._bits[place] |= bit
        self._texts += 1
        return True


def _texts_of(body: bytes) -> set[bytes]:
    """Return the texts between the tags, in lower case and without punctuation.

    Scripts, styles and text areas are left out.
    """
    if len(body) > 2 * _END:
        body = body[:_END] + body[-_END:]
    # A page may begin with text: ">" makes it text after a tag.
    pieces = (b">" + body).translate(_AS_WORDS).split(b"<", _MAX_PIECES)[:_MAX_PIECES]
    texts = {
        piece.partition(b">")[2].strip() for piece in pieces if not piece.startswith(_NO_TEXT)
    }
    texts.discard(b"")
    return texts


class Streak:
    """The pages in a row on which some URLs of a pattern had no new text.

    `barren` counts all of them, `steady` those whose links had the same distances as the links of
    pages before, each as a tenth. Every fourth page is read, and counts as four. After 4,096
    different pages no more are read: such URLs are not a trap.
    """

    __slots__ = ("_pages", "_prints", "_steps", "barren", "steady")

    def __init__(self) -> None:
        self.barren = self.steady = 0.0
        self._pages = 0
        self._prints: set[int] | None = set()
        # Months have different lengths, so the pages of a calendar have several sets of steps.
        self._steps = deque[int](maxlen=_STEPS_KEPT)

    def add(self, url: str, body: bytes, weight: float = 1.0, links: Sequence[str] = ()) -> None:
        """Record a page with its links; it adds `weight` to `barren` if it has no new text."""
        self._pages += 1
        if self._prints is not None and self._pages % _EVERY == 1:
            found = fingerprint(url, body)
            self.barren = self.barren + _EVERY * weight if found in self._prints else 0.0
            self._prints.add(found)
            if len(self._prints) >= _ENOUGH:
                self._prints = None
            self._step(url, links)

    def _step(self, url: str, links: Sequence[str]) -> None:
        if not self.barren:
            self.steady = 0.0
            return
        found = steps(url, links)
        kept = hash(found)
        if found and kept in self._steps:
            self.steady += _EVERY * _STEADY
            return
        self.steady = 0.0
        if found:
            self._steps.append(kept)
