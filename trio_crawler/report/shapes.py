"""The shapes of URLs: which kinds of URLs a crawl fetched, what they brought, and what waits."""

from __future__ import annotations

import shlex
from collections import defaultdict

import msgspec

from trio_crawler.arguments import public
from trio_crawler.expressions import lazy
from trio_crawler.ledger.ledger import Ledger
from trio_crawler.ledger.tables import NO_URL, PAGE, SKIPPED
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


def shapes_of(ledger: Ledger) -> list[Shape]:
    """Return the shapes of the URLs of a crawl; those that cost most come first.

    At most 10,000 shapes are counted apart: when there are more, the 5,000 with the fewest URLs
    are counted together.
    """
    shapes: dict[str, _Counts] = {}
    fetched = distinct = waiting = 0

    def counts(url: str) -> _Counts:
        nonlocal fetched, distinct, waiting
        shape = shape_of(url)
        if shape not in shapes and len(shapes) >= MOST_SHAPES:
            order = sorted(shapes, key=lambda each: shapes[each].fetched + shapes[each].waiting)
            for small in map(shapes.pop, order[: MOST_SHAPES // 2]):
                fetched += small.fetched
                distinct += len(small.titles) + len(small.untitled)
                waiting += small.waiting
        found = shapes.setdefault(shape, _Counts())
        if "0" in shape and not found.long_numbers and has_long_number(url):
            found.long_numbers = True
        return found

    for url, row in ledger.ends(PAGE, SKIPPED):
        if row.kind == PAGE:
            found = counts(url)
            found.fetched += 1
            if row.good and row.target == NO_URL:
                (found.texts if row.title else found.untitled).add(row.text)
                found.titles.update([row.title] if row.title else ())
        elif row.reason in EARLY:
            counts(url).waiting += 1
    for url in ledger.waiting:
        counts(url).waiting += 1
    titles: defaultdict[str, set[int]] = defaultdict(set)
    for shape, found in shapes.items():
        if is_web(shape) and len(titles[origin(shape)]) < 2:
            titles[origin(shape)] |= found.titles
    rows = [Shape(OTHERS, fetched, distinct, waiting, "")] if fetched + waiting else []
    for shape, found in shapes.items():
        is_url = is_web(shape)
        # Whether the pages of its host, or its own, do not all have the same title.
        varied = len(titles[origin(shape)] if is_url else found.titles) > 1
        distinct = len(found.titles if varied else found.texts) + len(found.untitled)
        exclude = exclusion(shape, long_numbers=found.long_numbers) if is_url else ""
        rows.append(Shape(shape, found.fetched, distinct, found.waiting, exclude))
    return sorted(rows, key=lambda row: (not row.url, -row.cost, row.url))


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
            if 2 * distinct >= ledger.kinds[PAGE]:
                # However the others are: most crawls end here, half-way.
                return False
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
_PART = lazy("(%[0-9A-Fa-f]{2}|0)")
_MEANING = lazy(r"[\\.^$*+?{}\[\]|()]")


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
    return _MEANING.sub(r"\\\g<0>", text)
