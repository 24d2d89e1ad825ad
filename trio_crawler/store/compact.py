"""A set of very many URLs, and queues of waiting jobs: both take a few bytes of memory for each.

The set keeps its URLs as numbers. The queues keep the jobs at their two ends as objects, and all
others in blocks of a file.
"""

from __future__ import annotations

import errno
import zlib
from array import array
from collections.abc import Callable, Collection, Iterable, Sequence
from io import RawIOBase
from itertools import filterfalse
from pathlib import Path
from struct import Struct
from tempfile import TemporaryFile, gettempdir

import msgspec

from trio_crawler.model import Job
from trio_crawler.store.errors import file_errors

# Average number of keys in a bucket: fewer take more memory, more take longer to search.
_FILL = 10
# The most recent URLs kept as str, and the most characters of one: together at most 12 MiB.
_RECENT, _LONGEST = 32_768, 256

# ▶ `key in bucket` takes twice as long as `bucket.count(key)`: `in` first tests whether the key is
# a number.
_pack = Struct("<q").pack

# Jobs of a block. A smaller one would cost a system call for a few jobs, a larger one would block
# the event loop for long. Blocks get smaller so that all queues keep some `_JOBS` jobs in memory.
_MIN_BLOCK, _MAX_BLOCK = 4, 200
_JOBS = 50_000
# The same in bytes, for long URLs.
_MAX_BLOCK_BYTES = 128 * 1024
_BYTES = 16 * 1024 * 1024
OVERHEAD = 200
"""The bytes that a job in memory counts for besides those of its URL."""

# ▶ Blocks of ordinary URLs take a sixth of their size, at 1 us a URL; the URLs of a flood, which
# were compressed on the wire, a fortieth.
_LEVEL = 1

MEMORY = 16 * 1024 * 1024
"""The bytes of waiting jobs that a frontier keeps in memory before it uses a file."""

_encode = msgspec.msgpack.Encoder().encode


class UrlSet:
    """A set of URLs, kept as 64-bit keys with 14 bytes for each.

    Two URLs may have the same key; then the second counts as seen. In a set of 10,000,000 URLs
    this happens with a chance of 3 in 1,000,000. A key is Python's hash of a str, which has
    another salt in each process: a site cannot know which URLs collide, and a key is valid in one
    process only. If PYTHONHASHSEED is known, such as 0, a site can find two of its own URLs that
    collide (in 2**32 hashes), so that only one of them is fetched; to hide a given URL of another
    site takes 2**64 hashes.

    Room for `expected` URLs from the beginning saves a third of the time to add them.

    ▶ A Python set of the same keys takes 60 to 100 bytes for each. It blocks the event loop for
    0.2 s at 5,000,000 and 0.9 s at 10,000,000 keys when it grows. Here one bucket of keys is
    divided at a time (linear hashing), and a bucket is searched by a single step in C.
    """

    __slots__ = ("_buckets", "_count", "_high", "_low", "_recent")

    # The bytes of an entry, which begins with the key.
    _width = 8

    def __init__(self, expected: int = 0) -> None:
        # A bucket is the concatenation of the keys that end in the bits of its index.
        self._buckets = [b""] * max(2, expected // _FILL)
        self._count = 0
        # Masks that find the index of a key: `_high` if that bucket exists already, else `_low`.
        self._high = (1 << len(self._buckets).bit_length()) - 1
        self._low = self._high >> 1
        # The URLs found most recently: most links of a page are on many other pages.
        self._recent: set[str] = set()

    def __len__(self) -> int:
        return self._count

    def __contains__(self, url: object) -> bool:
        number = hash(url)
        index = number & self._high
        if index >= len(self._buckets):
            index &= self._low
        return self._buckets[index].count(_pack(number)) > 0

    def add(self, url: str) -> None:
        """Add a URL."""
        number, buckets = hash(url), self._buckets
        index = number & self._high
        if index >= len(buckets):
            index &= self._low
        bucket, key = buckets[index], _pack(number)
        if not bucket.count(key):
            buckets[index] = bucket + key
            self._count += 1
            if self._count > len(buckets) * _FILL:
                self._divide()

    def _place(self, url: str) -> tuple[bytes, int]:
        """Return the key of a URL, and the index of its bucket."""
        number = hash(url)
        index = number & self._high
        return _pack(number), index if index < len(self._buckets) else index & self._low

    def _grow(self) -> None:
        """Count a key that was added, and make room for the next one."""
        self._count += 1
        if self._count > len(self._buckets) * _FILL:
            self._divide()

    def update(self, urls: Iterable[str]) -> None:
        """Add many URLs."""
        for url in urls:
            self.add(url)

    def intersection(self, urls: Collection[str]) -> set[str]:
        """Return the URLs among `urls` that are in the set."""
        known = self._recent.intersection(urls)
        if len(known) < len(urls):
            buckets, high, low = self._buckets, self._high, self._low
            count = len(buckets)
            found = [
                url
                for url in filterfalse(known.__contains__, urls)
                if buckets[
                    index if (index := (number := hash(url)) & high) < count else index & low
                ].count(_pack(number))
            ]
            if len(self._recent) + len(found) > _RECENT:
                self._recent.clear()
            if found:
                self._recent.update([url for url in found if len(url) <= _LONGEST])
                known.update(found)
        return known

    def _divide(self) -> None:
        """Divide the next bucket by one more bit of its keys."""
        buckets = self._buckets
        bit = self._low + 1
        index = len(buckets) - bit
        bucket = buckets[index]
        byte, place = divmod(self._low.bit_length(), 8)
        stay: list[bytes] = []
        go: list[bytes] = []
        for start in range(0, len(bucket), self._width):
            to = go if bucket[start + byte] >> place & 1 else stay
            to.append(bucket[start : start + self._width])
        buckets[index] = b"".join(stay)
        buckets.append(b"".join(go))
        if len(buckets) > self._high:
            self._low, self._high = self._high, self._high * 2 + 1


def nameless_file(directory: Path) -> RawIOBase:
    """Return a new file without a name, which no crash leaves behind. The caller closes it."""
    return TemporaryFile(buffering=0, dir=directory)


def bytes_of(jobs: Sequence[Job]) -> int:
    """Return the bytes that jobs in memory count for."""
    return sum([len(job.url) for job in jobs]) + OVERHEAD * len(jobs)


class DiskQueueFile:
    """A file for the blocks of many queues; the first block in it opens it, by calling `opened`.

    The jobs are of one `kind`. While those in memory have less than `memory` bytes together, no
    queue makes blocks. The file is in `directory`, by default that of temporary files. It does not
    shrink until all its blocks are read; then it is emptied. `close` closes it. Raises StoreError
    for an OSError; nothing has changed then.
    """

    def __init__(
        self,
        directory: str | Path | None = None,
        *,
        kind: type[Job] = Job,
        memory: int = 0,
        opened: Callable[[Path], RawIOBase] = nameless_file,
    ) -> None:
        self._directory = Path(gettempdir() if directory is None else directory)
        self._opened = opened
        self._decode: Callable[[bytes], list[Job]] = msgspec.msgpack.Decoder(list[kind]).decode  # type: ignore[valid-type]
        self.memory = memory
        # The bytes of the jobs of all queues that are in memory.
        self.held = 0
        self._file: RawIOBase | None = None
        self._end = 0
        self._blocks = 0
        self._queues = 0
        # The number of jobs of a block, and of their bytes.
        self.block = _MAX_BLOCK
        self.block_bytes = _MAX_BLOCK_BYTES

    def __len__(self) -> int:
        return self._end

    def add_queue(self) -> None:
        """Count one queue more: with more queues the blocks get smaller."""
        self._queues += 1
        self.block = min(_MAX_BLOCK, max(_MIN_BLOCK, _JOBS // self._queues))
        self.block_bytes = min(_MAX_BLOCK_BYTES, _BYTES // self._queues)

    def write(self, jobs: Sequence[Job]) -> tuple[int, int]:
        """Store a block; return its place: its offset and length."""
        block, written = memoryview(zlib.compress(_encode(jobs), _LEVEL)), 0
        with file_errors(self._directory):
            file = self._open()
            file.seek(self._end)
            while written < len(block):
                written += file.write(block[written:]) or 0
        offset, self._end = self._end, self._end + written
        self._blocks += 1
        return offset, written

    def read(self, offset: int, length: int) -> list[Job]:
        """Return the jobs of the block at a place."""
        block = b""
        with file_errors(self._directory):
            file = self._open()
            file.seek(offset)
            while len(block) < length:
                more = file.read(length - len(block))
                if not more:
                    raise OSError(errno.EIO, "the file of waiting URLs has been truncated")
                block += more
        return self._decode(zlib.decompress(block))

    def forget(self) -> None:
        """Count one block less; after the last one the file is emptied."""
        self._blocks -= 1
        if not self._blocks:
            self._end = 0
            with file_errors(self._directory):
                self._open().truncate(0)

    def close(self) -> None:
        """Close the file; its jobs are lost."""
        if self._file is not None:
            self._file.close()

    def _open(self) -> RawIOBase:
        if self._file is None:
            self._file = self._opened(self._directory)
        return self._file


class DiskQueue:
    """A first-in, first-out queue of jobs, with all but the first and the last in blocks.

    A job in the file takes a few bytes of memory; a short queue makes no blocks. The jobs must
    be of the kind of the file, and none may be blocked by a Fault. If a call raises StoreError, no
    job was added, removed or lost, and the call may be repeated.
    """

    __slots__ = ("_blocks", "_count", "_file", "_head", "_next", "_tail", "_tail_bytes")

    def __init__(self, file: DiskQueueFile) -> None:
        file.add_queue()
        self._file = file
        self._count = 0
        # The oldest job is the last of these.
        self._head: list[Job] = []
        # The places of the blocks after the head, from index `_next` on.
        self._blocks: array[int] | None = None
        self._next = 0
        self._tail: list[Job] = []
        self._tail_bytes = 0

    def __len__(self) -> int:
        return self._count

    def put(self, job: Job) -> None:
        """Add a job."""
        file, size = self._file, len(job.url) + OVERHEAD
        if self._blocks or file.held >= file.memory:
            if len(self._tail) >= file.block or self._tail_bytes + size > file.block_bytes:
                self._empty_tail()
            if size > file.block_bytes:
                self._write([job])
                self._count += 1
                return
        self._tail.append(job)
        self._tail_bytes += size
        file.held += size
        self._count += 1

    def peek(self) -> Job:
        """Return the oldest job."""
        if not self._head:
            self._fill_head()
        return self._head[-1]

    def pop(self) -> Job:
        """Remove and return the oldest job."""
        if not self._head:
            self._fill_head()
        job = self._head.pop()
        self._file.held -= len(job.url) + OVERHEAD
        self._count -= 1
        return job

    def _empty_tail(self) -> None:
        # Before the file was needed, the tail may have grown long.
        long = len(self._tail) > self._file.block or self._tail_bytes > self._file.block_bytes
        if not self._blocks and (long or not self._head):
            self._swap()
        elif self._tail:
            self._write(self._tail)
            self._file.held -= self._tail_bytes
            self._tail, self._tail_bytes = [], 0

    def _write(self, jobs: Sequence[Job]) -> None:
        place = self._file.write(jobs)
        self._blocks = self._blocks or array("Q")
        self._blocks.extend(place)

    def _fill_head(self) -> None:
        if not self._blocks:
            self._swap()
            return
        offset, length = self._blocks[self._next : self._next + 2]
        found = self._file.read(offset, length)
        self._file.held += bytes_of(found)
        self._head.extend(reversed(found))
        self._next += 2
        if self._next * 2 >= len(self._blocks):
            # On average each entry is moved at most once.
            del self._blocks[: self._next]
            self._next = 0
        self._file.forget()

    def _swap(self) -> None:
        """Add the tail to the head; no block is between them."""
        self._tail.reverse()
        self._head[:0] = self._tail
        self._tail, self._tail_bytes = [], 0
