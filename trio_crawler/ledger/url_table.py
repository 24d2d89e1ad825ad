"""Tables of very many URLs, with few bytes for each: texts in compressed blocks, and numbers."""

from __future__ import annotations

import marshal
import zlib
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from functools import lru_cache
from struct import Struct

from trio_crawler.page.url_set import UrlSet
from trio_crawler.page.urls import seen_key

_BLOCK = 64 * 1024
# The URLs of the last pages, as far as they have at most so many characters: most links of a page
# are among them.
_RECENT, _LONGEST = 32_768, 256
# Blocks that are kept decompressed.
_OPEN = 16

_number = Struct("<I").pack
_key = Struct("<q").pack


class TextList:
    """A list of texts that only grows; all but the last are compressed.

    ▶ A URL of an ordinary site takes 10 to 20 bytes.
    """

    def __init__(self) -> None:
        self._blocks: list[bytes] = []
        # The index of the first text of each block.
        self._starts = array("Q")
        self._tail: list[str] = []
        self._tail_size = 0
        self._count = 0
        self._open = lru_cache(_OPEN)(self._read)

    def __len__(self) -> int:
        return self._count

    def append(self, text: str) -> None:
        """Add a text."""
        self._tail.append(text)
        self._count += 1
        self._tail_size += len(text)
        if self._tail_size >= _BLOCK:
            # Not msgspec: an href may have lone surrogates.
            self._blocks.append(zlib.compress(marshal.dumps(self._tail), 1))
            self._starts.append(self._count - len(self._tail))
            self._tail, self._tail_size = [], 0

    def __getitem__(self, index: int) -> str:
        first = self._count - len(self._tail)
        if index >= first:
            return self._tail[index - first]
        block = bisect_right(self._starts, index) - 1
        return self._open(block)[index - self._starts[block]]

    def __iter__(self) -> Iterator[str]:
        for block in range(len(self._blocks)):
            yield from self._read(block)
        yield from self._tail

    def _read(self, block: int) -> list[str]:
        texts: list[str] = marshal.loads(zlib.decompress(self._blocks[block]))  # noqa: S302
        return texts


class UrlTable(UrlSet):
    """Numbers of URLs, from 0 on in the order of their first mention, and the URLs by number.

    Each spelling has a number of its own; `same` has for the number of each that is not the
    `seen_key` of its URL the number of this key. A number takes 20 bytes, besides the URL in
    `urls`. As in a `UrlSet`, two URLs may be taken for one, which happens with a chance of 3 in
    1,000,000 among 10,000,000.
    """

    __slots__ = ("_numbers", "same", "urls")

    # An entry is the key and the number.
    _width = 12

    def __init__(self) -> None:
        super().__init__()
        self.urls = TextList()
        self.same: dict[int, int] = {}
        self._numbers: dict[str, int] = {}

    def number(self, url: str) -> int:
        """Return the number of a URL, a new one if needed."""
        known = self._numbers.get(url)
        return self._find(url) if known is None else known

    def numbers(self, urls: Iterable[str]) -> array[int]:
        """Return the numbers of URLs, new ones where needed."""
        known, find = self._numbers.get, self._find
        return array(
            "I", [find(url) if (number := known(url)) is None else number for url in urls]
        )

    def known(self, url: str) -> int | None:
        """Return the number of a URL; None if it has none."""
        key, index = self._place(url)
        return self._search_bucket(self._buckets[index], key)

    def _find(self, url: str) -> int:
        key, index = self._place(url)
        bucket = self._buckets[index]
        number = self._search_bucket(bucket, key)
        if number is None:
            number = self._count
            self.urls.append(url)
            self._buckets[index] = bucket + key + _number(number)
            self._grow()
            if "%" in url and (usual := seen_key(url)) != url:
                self.same[number] = self._find(usual)
        if len(url) <= _LONGEST:
            if len(self._numbers) >= _RECENT:
                self._numbers.clear()
            self._numbers[url] = number
        return number

    def _search_bucket(self, bucket: bytes, key: bytes) -> int | None:
        at = bucket.find(key)
        while at >= 0 and at % self._width:
            at = bucket.find(key, at + 1)
        return None if at < 0 else int.from_bytes(bucket[at + 8 : at + 12], "little")
