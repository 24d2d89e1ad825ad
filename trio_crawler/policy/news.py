"""What the pages of one host bring that is new: by their texts, and by their parameters.

The pages of a calendar differ only in their dates. A shop has a page for each combination of
filters, a wiki a history for each page, and a login repeats the URL that led to it: these have
neither texts nor links that are new.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import NamedTuple
from urllib.parse import unquote
from zlib import crc32

from trio_crawler.expressions import lazy
from trio_crawler.page.urls import host, path
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
IMAGE_NAMES = lazy(rb"""src=["']?([^"'?<> ]++)""")

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
    # Both tests are for ASCII only: a Chinese sentence is one word here, and not a random one.
    words = [
        word
        for word in set(text.split())
        if len(word) < _LONG or not word.isalnum() or word.isalpha()
    ]
    kept = _without_digits(b" ".join(words)) - _DATE_WORDS
    in_url = _without_digits(url.encode().translate(_WORDS))
    return hash(frozenset(kept - in_url | set(IMAGE_NAMES.findall(body))))


def _without_digits(text: bytes) -> set[bytes]:
    return set(text.translate(None, _DIGITS).split())


class News(NamedTuple):
    """The texts between the tags of a page: all, the new ones, and those new without digits.

    They are in lower case and without punctuation; scripts, styles and text areas are left out.
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

    __slots__ = ("_bits", "_texts")

    def __init__(self) -> None:
        self._bits = bytearray()
        self._texts = 0

    def add(self, host: int, body: bytes) -> News:
        """Record the texts of an HTML page of a host, by any number; return how many are new.

        ▶ 30 KB take 0.1 to 0.4 ms.
        """
        if not self._bits or self._texts > _MAX_TEXTS:
            self._bits, self._texts = bytearray(_BYTES), 0
        new = worded = 0
        if len(body) > 2 * _END:
            body = body[:_END] + body[-_END:]
        # A page may begin with text: ">" makes it text after a tag.
        pieces = (b">" + body).translate(_AS_WORDS).split(b"<", _MAX_PIECES)[:_MAX_PIECES]
        texts = {
            each.partition(b">")[2].strip()
            for each in set(pieces)
            if not each.startswith(_NO_TEXT)
        }
        texts.discard(b"")
        own, bits = hash((host,)), self._bits
        for text in texts.union(IMAGE_NAMES.findall(body, 0, _END)[:_MAX_PIECES]):
            key = own ^ hash(text)
            # ▶ Most texts are known: a call for each takes twice as long.
            if bits[(key & _MASK) >> 3] & 1 << (key & 7):
                continue
            new += self._is_new(key)
            bare = b" ".join(text.translate(None, _DIGITS).split())
            worded += len(bare) > 1 and self._is_new(~own ^ hash(bare))
        return News(len(texts), new, worded)

    def _is_new(self, key: int) -> bool:
        place, bit = (key & _MASK) >> 3, 1 << (key & 7)
        if self._bits[place] & bit:
            return False
        self._bits[place] |= bit
        self._texts += 1
        return True


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


# The names of a path that tell families apart.
_LEVELS = 3
# Directories with more different names than this hold items, such as articles.
_MAX_SIBLINGS = 16
_MAX_DIRECTORIES = 500

_ITEM = "*"
_numbers = re.compile("[0-9]+").sub

# Of a parameter that is left out one URL in so many is fetched.
_SAMPLED = 50
# A parameter with a URL in it is left out after so many pages: it repeats where a link was.
_ECHOES = 8
# The weight of a page of a chain. The pages of a list may all be known for a while, as tags lead
# to their articles too, and then others come. Chains are short beside the products of filters.
_CHAIN = 1 / 8
# A page that leads to at most so many new URLs of its family, and to one, is part of a chain.
_NEXT = 2
_MAX_SHAPES = 256
# The parameters of a shape that are told apart: a URL of 2,000 characters may have 500.
_MAX_NAMES = 64
# Marks of the names of parameters: no name has such a character in a normalised URL.
_URL, _NUMBER = " url", " number"
_LINKS_READ = 1_000

_part = re.compile("[&;]").split
_is_url = re.compile("https?:|/", re.IGNORECASE).match
_is_number = re.compile("[0-9]+").fullmatch


class _Parameter:
    """One parameter in one family of paths: its pages in a row without news, and those with."""

    __slots__ = ("_weight", "idle", "most", "news")

    def __init__(self, most: float, name: str) -> None:
        echo = name.endswith(_URL)
        self.most = min(most, _ECHOES) if echo else most
        self.news = 0
        # An echo is poor until it has brought something.
        self.idle = self.most / 2 if echo else 0.0
        self._weight = _CHAIN if name.endswith(_NUMBER) else 1.0

    def record(self, *, news: bool, weight: float) -> None:
        """Record a page; one without news counts by its weight."""
        self.news += news
        self.idle = 0.0 if news else self.idle + min(weight, self._weight)

    @property
    def is_good(self) -> bool:
        """Whether it has brought something lately."""
        return self.news > 0 and 2 * self.idle < self.most

    @property
    def is_barren(self) -> bool:
        """Whether it has brought nothing for too long, which is longer if it brought much."""
        return self.idle >= max(self.most, 2 * self.news)


class Shape:
    """The URLs of one family with the same parameters."""

    __slots__ = ("_is_number", "_parameters")

    def __init__(self, parameters: tuple[_Parameter, ...], *, is_number: bool = False) -> None:
        self._parameters = parameters
        # As in `?id=5` or `?page=5`, it counts pages: a list that may go on,
        # and is never left out. The pattern of the URL has bounds of its own.
        self._is_number = is_number

    @property
    def is_good(self) -> bool:
        """Whether all parameters have brought something lately; a number may bring it yet."""
        if self._is_number:
            return all(2 * each.idle < each.most for each in self._parameters)
        return bool(self._parameters) and all(each.is_good for each in self._parameters)

    @property
    def is_left_out(self) -> bool:
        """Whether a parameter has brought nothing for too long."""
        return not self._is_number and any(each.is_barren for each in self._parameters)

    def record(self, *, news: bool, weight: float) -> None:
        """Record a page; one without news counts against the parameters that brought none."""
        blamed = [each for each in self._parameters if not each.is_good]
        for each in self._parameters if news else blamed or self._parameters:
            each.record(news=news, weight=weight)


class Queries:
    """The shapes of the URLs with a query, of one host, and what each parameter has brought.

    A family of paths is the number of their names, and the first three of them. Numbers are
    folded, and where a directory has more than 16 names, the later ones are "*". So `/repo/tree`
    and `/repo/commit` are two families, and ten thousand articles are 17. At most 500 directories
    are told apart.

    A parameter is left out after `most` pages in a row that brought nothing, counted in its family
    of paths, or after twice as many as have brought something: other views may show its texts
    first. If its values are URLs, 8 pages are enough; of numbers, and of pages that lead to one or
    two more, it takes eight times as many. Of the URLs with such a parameter one in 50 is sampled,
    always the same ones. As soon as one brings something, the parameter is back. Of a URL with
    more than 64 parameters only the first 64 count, by name.
    """

    __slots__ = ("_most", "_names", "_others", "_parameters", "_shapes")

    def __init__(self, most: float) -> None:
        self._most = most
        # By the beginning of a family: the names that may follow.
        self._names: dict[str, set[str]] = {}
        self._parameters: dict[tuple[str, str], _Parameter] = {}
        self._shapes: dict[tuple[str, str], Shape] = {}
        # All shapes beyond the bound. They are never left out.
        self._others = Shape(())

    def family(self, path: str) -> str:
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
                if len(known) >= _MAX_SIBLINGS:
                    folded = _ITEM
                else:
                    known.add(folded)
            family = f"{family}/{folded}"
        return family

    def shape(self, url: str) -> Shape:
        """Return the shape of a URL with a query."""
        place, _, query = url[url.index("/", 8) :].partition("?")
        family = self.family(place)
        names = sorted({_name(part) for part in _part(query)})[:_MAX_NAMES]
        key = family, "&".join(names)
        shape = self._shapes.get(key)
        if shape is None:
            if len(self._shapes) >= _MAX_SHAPES:
                return self._others
            parameters = tuple(
                self._parameters.setdefault((family, name), _Parameter(self._most, name))
                for name in names
            )
            is_number = len(names) == 1 and names[0].endswith(_NUMBER)
            shape = self._shapes[key] = Shape(parameters, is_number=is_number)
        return shape

    def left_out(self, url: str) -> bool:
        """Whether a URL with a query has a parameter that is left out, and is not sampled."""
        return self.shape(url).is_left_out and crc32(url.encode()) % _SAMPLED != 0

    def record(self, url: str, *, news: bool, new: Iterable[str] = ()) -> None:
        """Record whether the page of a URL with a query brought anything new.

        `new` has the new URLs that it links to.
        """
        weight = 1.0 if news else self._weight(url, new)
        self.shape(url).record(news=news, weight=weight)

    def _weight(self, url: str, new: Iterable[str]) -> float:
        """Return how much a page without news counts: less if it is part of a chain."""
        place = path(url)
        onward = sum(path(link) == place for link in islice(new, _LINKS_READ))
        return _CHAIN if 0 < onward <= _NEXT else 1.0

    def leads_on(self, url: str, new: Iterable[str]) -> bool:
        """Whether the page of a URL links to new URLs that are worth something.

        Those of its own family are not: a filter leads to more filters. A URL with a query is, if
        its shape has brought something before. At another host it never is: its shape is unknown
        here.
        """
        family, home = self.family(path(url)), host(url)
        for link in islice(new, _LINKS_READ):
            if host(link) != home:
                worth = "?" not in link
            elif self.family(path(link)) == family:
                worth = False
            else:
                worth = "?" not in link or self.shape(link).is_good
            if worth:
                return True
        return False


def _name(part: str) -> str:
    """Return the name of a parameter, marked if its value is a URL or a number."""
    name, equals, value = part.partition("=")
    if not equals:
        return ""
    if _is_number(value):
        return name + _NUMBER
    return name + _URL if _is_url(unquote(value)) else name


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
