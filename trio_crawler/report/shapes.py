"""The shapes of URLs: which kinds of URLs a crawl fetched, what they brought, and what waits."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass

from trio_crawler.arguments import check_kind, check_whole
from trio_crawler.model import Outcome, Page, Skipped
from trio_crawler.page.url_set import UrlSet
from trio_crawler.page.urls import is_web, origin
from trio_crawler.report.exclusion import OTHERS, exclusion, has_long_number, shape_of
from trio_crawler.report.readable import readable
from trio_crawler.report.summary import EARLY, is_good
from trio_crawler.report.visible import count, visible

MOST_SHAPES = 10_000
"""The most shapes of one kind that a crawl counts apart."""

MOST_TEXTS = 1_000_000
"""The most titles and texts that are remembered, with 14 bytes for each."""

_LISTED = 10
# With fewer good pages, their number says nothing.
_LEAST_PAGES = 20
_NOT_MODIFIED = 304


@dataclass(frozen=True, slots=True)
class Shape:
    """One kind of URLs of a crawl.

    `url` is the pattern of the URLs: numbers are 0, and a query is its names, sorted, without the
    values. A URL without a number and without a query has the shape of its directory, such as
    `https://example.org/docs/*`. `fetched` counts the pages of any status, `distinct` the
    different titles of the good ones among them (2xx, 304), `waiting` the URLs that were admitted
    and not fetched when the crawl ended early. A page without a title counts by its size, its type
    and its links; so does each page of a host that has one title for all. A duplicate of another
    page is not distinct. `exclude` is a regular expression that `--exclude` and `excluding` take
    to leave out the URLs of this shape and no others. The last of many shapes are counted
    together, under the `url` "" and with the `exclude` "".
    """

    __module__ = "trio_crawler.report"

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
    """The counts of one shape; `title` is the first title of its pages, `varied` if another came.

    `distinct` counts titles, `texts` those of pages with a title, as long as there is only one;
    `untitled` the texts of the pages without a title.
    """

    __slots__ = (
        "distinct",
        "fetched",
        "long_numbers",
        "texts",
        "title",
        "untitled",
        "varied",
        "waiting",
    )

    def __init__(self) -> None:
        self.fetched = self.distinct = self.texts = self.untitled = self.waiting = 0
        self.title: int | None = None
        self.varied = self.long_numbers = False

    @property
    def size(self) -> int:
        return self.fetched + self.waiting

    def absorb(self, other: _Counts) -> None:
        self.fetched += other.fetched
        self.distinct += other.distinct
        self.texts += other.texts
        self.untitled += other.untitled
        self.waiting += other.waiting


class Shapes:
    """The shapes of the URLs of a crawl, collected outcome by outcome.

    At most 10,000 shapes are counted apart: when there are more, the 5,000 with the fewest URLs
    are counted together. Of 1,000,000 titles and texts it is known whether they came before; each
    further one counts as distinct. It takes at most some 30 MiB of memory, and keeps no outcome.
    """

    __module__ = "trio_crawler.report"

    def __init__(self) -> None:
        self._shapes: dict[str, _Counts] = {}
        self._others = _Counts()
        self._texts = UrlSet()
        self._good = 0

    def __repr__(self) -> str:
        return f"<Shapes: {len(self._shapes)}>"

    def add(self, outcome: Outcome) -> None:
        """Record one outcome: a page, or a URL that was skipped because the crawl ended early."""
        check_kind("outcome", outcome, Outcome, "an outcome")
        if isinstance(outcome, Page):
            self._add_page(outcome)
        elif isinstance(outcome, Skipped) and outcome.reason in EARLY:
            self.add_waiting(outcome.url)

    def add_waiting(self, url: str) -> None:
        """Record a URL that waits for a later run; it must have no outcome."""
        check_kind("url", url, str, "a URL as a str")
        self._counts(shape_of(url), url).waiting += 1

    @property
    def repetitive(self) -> bool:
        """Whether less than half of the good pages are distinct, of 20 at least."""
        if self._good < _LEAST_PAGES:
            return False
        return 2 * sum(row.distinct for row in self._rows()) < self._good

    def rows(self, most: int | None = None) -> list[Shape]:
        """Return the shapes, or the first `most` of them; those that cost most come first.

        A shape costs the pages that brought nothing new, and those that wait.
        """
        if most is not None:
            check_whole("most", most)
        return sorted(self._rows(), key=_by_cost)[:most]

    def _rows(self) -> list[Shape]:
        varied = self._varied_origins()
        rows = [
            self._row(shape, each, origin(shape) in varied if is_web(shape) else each.varied)
            for shape, each in self._shapes.items()
        ]
        return rows + ([self._row(OTHERS, self._others, True)] if self._others.size else [])

    def _row(self, shape: str, found: _Counts, varied: bool) -> Shape:
        distinct = (found.distinct if varied else found.texts) + found.untitled
        web = is_web(shape)
        exclude = exclusion(shape, long_numbers=found.long_numbers) if web else ""
        return Shape(shape, found.fetched, distinct, found.waiting, exclude)

    def _varied_origins(self) -> set[str]:
        """Return the origins whose pages do not all have the same title."""
        firsts: dict[str, int] = {}
        varied: set[str] = set()
        for shape, found in self._shapes.items():
            if found.title is not None and is_web(shape):
                name = origin(shape)
                if found.varied or firsts.setdefault(name, found.title) != found.title:
                    varied.add(name)
        return varied

    def _counts(self, shape: str, url: str) -> _Counts:
        found = self._shapes.get(shape)
        if found is None:
            if shape == OTHERS:
                return self._others
            if len(self._shapes) >= MOST_SHAPES:
                self._forget_the_smallest()
            found = self._shapes[shape] = _Counts()
        if not found.long_numbers and has_long_number(url):
            found.long_numbers = True
        return found

    def _forget_the_smallest(self) -> None:
        shapes = self._shapes
        for shape in sorted(shapes, key=lambda each: shapes[each].size)[: MOST_SHAPES // 2]:
            self._others.absorb(shapes.pop(shape))

    def _add_page(self, page: Page) -> None:
        shape = shape_of(page.url)
        found = self._counts(shape, page.url)
        found.fetched += 1
        if not is_good(page):
            return
        self._good += 1
        if page.duplicate_of:
            return
        if not page.title:
            found.untitled += self._is_new(f"{shape}\n\t{_text(page)}")
            return
        if found.title is None:
            found.title = hash(page.title)
        elif found.title != hash(page.title):
            found.varied = True
        found.distinct += self._is_new(f"{shape}\n\n{page.title}")
        if not found.varied:
            found.texts += self._is_new(f"{shape}\n{_text(page)}")

    def _is_new(self, text: str) -> bool:
        known = len(self._texts)
        if known >= MOST_TEXTS:
            return text not in self._texts
        self._texts.add(text)
        return len(self._texts) > known


def _text(page: Page) -> str:
    """Return what a crawl and its directory both know of the text of a page."""
    if page.status == _NOT_MODIFIED:
        return page.url
    return f"{page.size} {page.content_type} {hash(page.links)}"


def _by_cost(row: Shape) -> tuple[bool, int, str]:
    return not row.url, -row.cost, row.url


def section(shapes: Shapes, *, full: bool) -> list[str]:
    """Return the table of the shapes that cost most, with `full` of all that cost something.

    The others have less than a twentieth of the cost.
    """
    rows = [row for row in shapes.rows() if row.cost]
    least = 0 if full else sum(row.cost for row in rows) / 20
    rows = [row for row in rows if row.cost >= least]
    if not rows:
        return []
    listed = rows if full else rows[:_LISTED]
    width = _width(listed, lambda row: row.fetched), _width(listed, lambda row: row.distinct)
    lines = [f"Shapes of URLs ({count(len(rows))}): fetched, distinct titles, waiting"]
    for row in listed:
        figures = f"{count(row.fetched):>{width[0]}}  {count(row.distinct):>{width[1]}}"
        waiting = f"{count(row.waiting):>{_width(listed, _waiting)}}"
        lines.append(f"  {figures}  {waiting}  {readable(row.url) or 'other shapes'}")
        if row.exclude:
            lines.append(f"      --exclude {visible(shlex.quote(row.exclude))}")
    if len(rows) > len(listed):
        lines.append(f"  and {count(len(rows) - len(listed))} more, use -v to list all")
    return lines


def _waiting(row: Shape) -> int:
    return row.waiting


def _width(rows: list[Shape], figure: Callable[[Shape], int]) -> int:
    return max(len(count(figure(row))) for row in rows)
