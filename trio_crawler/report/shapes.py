"""The shapes of URLs: which kinds of URLs a crawl fetched, what they brought, and what waits."""

from __future__ import annotations

import re
import shlex
from collections import defaultdict

import msgspec

from trio_crawler.arguments import public
from trio_crawler.expressions import lazy
from trio_crawler.ledger.ledger import Ledger
from trio_crawler.ledger.tables import NO_URL, PAGE, SKIPPED, Row
from trio_crawler.page.urls import is_web, origin
from trio_crawler.policy.url_shapes import url_shape
from trio_crawler.report.summary import EARLY
from trio_crawler.report.visible import count, more, readable, visible

MOST_SHAPES = 10_000
"""The most shapes of one kind that a crawl counts apart."""

_LISTED = 10
# With fewer good pages, their number says nothing.
_LEAST_PAGES = 20


@public("trio_crawler.report")
class Shape(msgspec.Struct, frozen=True):
    r"""One kind of URLs of a crawl.

    `url` is the pattern of the URLs: numbers are 0, and a query is its names, sorted, without the
    values. A URL without a number and without a query has the shape of its directory, such as
    `https://example.org/docs/*`. `fetched` counts the pages of any status, `distinct` the
    different titles of the good ones among them (2xx, 304), `waiting` the URLs that were admitted
    and not fetched when the crawl ended early. A page without a title counts by its size, its type
    and its links; so does each page of a host that has one title for all. A duplicate of another
    page is not distinct. `exclude` is a regular expression that `--exclude` and `excluding` take
    to leave out the URLs of this shape and no others. The last of many shapes are counted
    together, under the `url` "" and with the `exclude` "".

    >>> shape = Shape("https://e.org/?page", fetched=20, distinct=3, waiting=5, exclude=r"\?page=")
    >>> shape.cost
    22
    """

    url: str
    fetched: int
    distinct: int
    waiting: int
    exclude: str

    @property
    def cost(self) -> int:
        """The pages that brought nothing new, and those that wait."""
        return self.fetched - self.distinct + self.waiting


class _Counts:
    """The counts of one shape, and what its good pages are told apart by."""

    __slots__ = ("fetched", "long_numbers", "texts", "titles", "untitled", "waiting")

    def __init__(self) -> None:
        self.fetched = self.waiting = 0
        # Titles, the texts of the pages that have one, and those of the pages without one.
        self.titles, self.texts, self.untitled = set[int](), set[int](), set[int]()
        self.long_numbers = False

    @property
    def size(self) -> int:
        return self.fetched + self.waiting


class _Shapes:
    """The shapes of the URLs of a crawl.

    At most 10,000 shapes are counted apart: when there are more, the 5,000 with the fewest URLs
    are counted together.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._shapes: dict[str, _Counts] = {}
        self._fetched = self._distinct = self._waiting = 0
        for url, row in ledger.ends(PAGE, SKIPPED):
            if row.kind == PAGE:
                self._add_page(url, row)
            elif row.reason in EARLY:
                self._counts(url).waiting += 1
        for url in ledger.waiting:
            self._counts(url).waiting += 1

    def rows(self) -> list[Shape]:
        """Return the shapes."""
        varied = self._varied_origins()
        rows = [
            self._row(
                shape, each, origin(shape) in varied if is_web(shape) else len(each.titles) > 1
            )
            for shape, each in self._shapes.items()
        ]
        if self._fetched + self._waiting:
            rows.append(Shape(OTHERS, self._fetched, self._distinct, self._waiting, ""))
        return rows

    def _row(self, shape: str, found: _Counts, varied: bool) -> Shape:
        distinct = len(found.titles if varied else found.texts) + len(found.untitled)
        long_numbers = found.long_numbers
        exclude = exclusion(shape, long_numbers=long_numbers) if is_web(shape) else ""
        return Shape(shape, found.fetched, distinct, found.waiting, exclude)

    def _varied_origins(self) -> set[str]:
        """Return the origins whose pages do not all have the same title."""
        titles: defaultdict[str, set[int]] = defaultdict(set)
        for shape, found in self._shapes.items():
            if is_web(shape) and len(titles[origin(shape)]) < 2:
                titles[origin(shape)] |= found.titles
        return {name for name, found in titles.items() if len(found) > 1}

    def _counts(self, url: str) -> _Counts:
        shape = shape_of(url)
        found = self._shapes.get(shape)
        if found is None:
            if len(self._shapes) >= MOST_SHAPES:
                self._forget_the_smallest()
            found = self._shapes[shape] = _Counts()
        if "0" in shape and not found.long_numbers and has_long_number(url):
            found.long_numbers = True
        return found

    def _forget_the_smallest(self) -> None:
        shapes = self._shapes
        for shape in sorted(shapes, key=lambda each: shapes[each].size)[: MOST_SHAPES // 2]:
            small = shapes.pop(shape)
            self._fetched += small.fetched
            self._waiting += small.waiting
            self._distinct += len(small.titles) + len(small.untitled)

    def _add_page(self, url: str, row: Row) -> None:
        found = self._counts(url)
        found.fetched += 1
        if not row.good or row.target != NO_URL:
            return
        if not row.title:
            found.untitled.add(row.text)
        else:
            found.titles.add(row.title)
            found.texts.add(row.text)


def shapes_of(ledger: Ledger) -> list[Shape]:
    """Return the shapes of the URLs of a crawl; those that cost most come first."""
    return sorted(_Shapes(ledger).rows(), key=lambda row: (not row.url, -row.cost, row.url))


def is_repetitive(ledger: Ledger) -> bool:
    """Whether less than half of the good pages are distinct, of 20 at least."""
    good = distinct = 0
    # Titles that differ are at least as many when they are counted by shape, and those with one
    # remainder at most: few bytes tell that of most crawls.
    told = bytearray(2 * ledger.kinds[PAGE] + 1)
    for _, row in ledger.ends(PAGE):
        if not row.good:
            continue
        good += 1
        if row.target == NO_URL:
            at = (row.title or row.text) % len(told)
            distinct += not told[at]
            told[at] = 1
    if good < _LEAST_PAGES or 2 * distinct >= good:
        return False
    return 2 * sum(row.distinct for row in shapes_of(ledger)) < good


def shapes_section(ledger: Ledger, full: bool) -> list[str]:
    """Return the table of the shapes that cost most, with `full` of all that cost something.

    The others have less than a twentieth of the cost.
    """
    rows = [row for row in shapes_of(ledger) if row.cost]
    least = 0 if full else sum(row.cost for row in rows) / 20
    rows = [row for row in rows if row.cost >= least]
    if not rows:
        return []
    listed = rows if full else rows[:_LISTED]
    width = [
        max(len(count(getattr(row, name))) for row in listed)
        for name in ("fetched", "distinct", "waiting")
    ]
    lines = [f"Shapes of URLs ({count(len(rows))}): fetched, distinct titles, waiting"]
    for row in listed:
        figures = f"{count(row.fetched):>{width[0]}}  {count(row.distinct):>{width[1]}}"
        waiting = f"{count(row.waiting):>{width[2]}}"
        lines.append(f"  {figures}  {waiting}  {readable(row.url) or 'other shapes'}")
        if row.exclude:
            lines.append(f"      --exclude {visible(shlex.quote(row.exclude))}")
    return lines + more(len(rows) - len(listed))


OTHERS = ""
"""The shape of all URLs that are not counted apart."""

_MAX_SHAPE = 1_000

# What `pattern` writes as "0", if no shorter expression will do.
_LONG = "[0-9A-Fa-f]{16,}"
_UUID = "[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"
_LONG_ALONE = rf"(?<![0-9A-Za-z%]){_LONG}(?![0-9A-Za-z])"
_found = lazy(f"{_UUID}|{_LONG_ALONE}")
_NUMBER = "[0-9]+"
_ANY_NUMBER = f"(?:{_UUID}|{_LONG_ALONE}|{_NUMBER})"
# The rest of a URL without a number and without a query.
_PLAIN = "(?:[^/?%0-9]|%..)*"
_PART = re.compile("(%[0-9A-Fa-f]{2}|0)")
_meaning = re.compile(r"[\\.^$*+?{}\[\]|()]")


def shape_of(url: str) -> str:
    """Return the shape of a URL; of any other text its scheme, and `OTHERS` if that is unknown."""
    if not (is_web(url) and url.isascii()) or url.find("/", 8) < 0:
        scheme, colon, _ = url.partition(":")
        return f"{scheme}:*" if colon and scheme.isalnum() else OTHERS
    found = url_shape(url)
    return found if len(found) <= _MAX_SHAPE else OTHERS


def has_long_number(url: str) -> bool:
    """Whether a URL has a UUID, or a hexadecimal number of 16 digits and more."""
    return _found.search(url) is not None


def exclusion(shape: str, *, long_numbers: bool = False) -> str:
    """Return a regular expression for the URLs of a web shape, and for those of no other.

    With `long_numbers` some of its numbers are UUIDs, or hexadecimal numbers of 16 digits and
    more.
    """
    start = shape.index("/", 8)
    begin, (path, query, names) = f"^{_escaped(shape[:start])}", shape[start:].partition("?")
    parts = _PART.split(path)
    if not query and path.endswith("/*") and "0" not in parts:
        return f"{begin}{_escaped(path[:-1])}{_PLAIN}$"
    number = _ANY_NUMBER if long_numbers else _NUMBER
    named = (number if part == "0" else _escaped(part) for part in parts)
    return f"{begin}{''.join(named)}{_query(names) if query else ''}$"


def _query(names: str) -> str:
    """Return an expression for a query of these names, in any order and with any values."""
    wanted = [_escaped(name) for name in names.split("&")]
    if len(wanted) == 1:
        (name,) = wanted
        return rf"\?{name}(=[^&]*)?(&{name}(=[^&]*)?)*"
    each = "".join(f"(?=(.*&)?{name}([=&]|$))" for name in wanted)
    one = f"({'|'.join(wanted)})(=[^&]*)?"
    return rf"\?{each}{one}(&{one})*"


def _escaped(text: str) -> str:
    # Not `re.escape`, which also escapes characters that have a meaning only elsewhere.
    return _meaning.sub(r"\\\g<0>", text)
