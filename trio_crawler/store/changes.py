"""Changes: the differences between a walk and the walk before it.

Noise does not count: what differs between two fetches of one page at nearly the same moment.
"""

from __future__ import annotations

# ruff: noqa: S608 - all names that are put into SQL are our own.
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from functools import partial
from struct import iter_unpack
from types import GenericAlias
from typing import Any, NamedTuple, TypeAlias

import msgspec

from trio_crawler.arguments import public
from trio_crawler.model import Reason
from trio_crawler.page.read import Facts
from trio_crawler.page.urls import is_web
from trio_crawler.policy.url_shapes import url_shape
from trio_crawler.store.compact import UrlSet
from trio_crawler.store.database import BadRow, Database, Url, checked, decoded, increasing
from trio_crawler.store.store import stored_facts
from trio_crawler.store.walk import PORTION, Walk

_NOT_LINKED = "no page links to it any more"
_OUTCOMES = """urls LEFT JOIN page_ ON page_.number = urls.number
    LEFT JOIN page_ AS content ON content.number = page_.same_as
    LEFT JOIN redirect_ ON redirect_.number = urls.number
    LEFT JOIN failure_ ON failure_.number = urls.number
    LEFT JOIN skip_ ON skip_.number = urls.number"""
# Of a body that was not read, this, the validator and the size take the place of the digest.
_UNREAD = "not read: "
_STATE = f"""page_.status, CASE WHEN coalesce(content.flaws, page_.flaws) LIKE '%"not_read"%'
    THEN CAST('{_UNREAD}' || coalesce(page_.etag, content.etag, page_.last_modified,
    content.last_modified) || ' ' || coalesce(content.size, page_.size) AS BLOB)
    ELSE page_.digest END,
    coalesce(content.size, page_.size), page_.text_digest, page_.text_size, page_.number,
    redirect_.target, failure_.reason, skip_.reason"""
_COLUMNS = "status, digest, size, text_digest, text_size, page, target, failure, skip"
_OLD = ", ".join(f"old.{name}" for name in _COLUMNS.split(", "))
_REJECTED = msgspec.json.Decoder(list[tuple[Any, ...]])
_OLD_STATE: Any = tuple[
    int | None,
    bytes | None,
    int | None,
    bytes | None,
    int | None,
    int | None,
    str | None,
    str | None,
    str | None,
]
_WIDTH = len(_OLD_STATE.__args__)
_COMPARED_ROW: Any = GenericAlias(
    tuple, (int, str, int, int, *_OLD_STATE.__args__, *_OLD_STATE.__args__)
)
_MISSING_ROW: Any = GenericAlias(tuple, (str, *_OLD_STATE.__args__))

# A value of a query that differs at each request: a time, a UUID, a token of letters and digits.
_VOLATILE = re.compile(
    r"(?<=[?&;=])(?:[0-9]{9,}(?:\.[0-9]+)?"
    r"|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
    r"|(?=[0-9a-f]*[0-9])(?=[0-9a-f]*[a-f])[0-9a-f]{8,}"
    r"|(?=[^&;0-9]*[0-9])(?=[^&;a-z]*[a-z])[\w.~%-]{16,})(?=[&;]|$)",
    re.IGNORECASE,
)


@public("trio_crawler.store")
class Change(NamedTuple):
    """The change of a URL from one walk to the next.

    `kind` is "new" for a URL that the earlier walk did not find; "gone" for one that worked before
    (a page of 2xx, or a redirect) and is now an error or was not found; "unchanged" for one with
    the same outcome; and "changed" for all others. `detail` describes the change in a few words;
    it is "" for a new URL that works, and for an unchanged one.

    A page of HTML is unchanged if its visible text, its title, its links, its canonical URL and
    its robots directives are. If its body has changed all the same, for instance by a token in a
    form, `detail` says that only its markup has. In the text, counters of views and times of the
    request are left out; in links, values in a query that are a time or a random token. Nor does
    it count what differed when a refresh fetched a page of the same shape twice; then `detail`
    says so.

    >>> Change("https://e.org/", "changed", "title")
    Change(url='https://e.org/', kind='changed', detail='title')
    """

    url: str
    kind: str
    detail: str = ""


class State(NamedTuple):
    """The outcome of a URL in a walk: one of status, target, failure and skip is set.

    `page` is the number of its page, if it is one.
    """

    status: int | None
    digest: bytes | None
    size: int | None
    text_digest: bytes | None
    text_size: int | None
    page: int | None
    target: str | None
    failure: str | None
    skip: str | None

    @property
    def is_page(self) -> bool:
        """Whether it is a good page."""
        return self.status is not None and (200 <= self.status < 300 or self.status == 304)

    @property
    def works(self) -> bool:
        """Whether it is a good page or a redirect."""
        return self.is_page or self.target is not None

    @property
    def description(self) -> str:
        """The outcome in a few words."""
        if self.target is not None:
            return f"redirects to {self.target}"
        return "a page" if self.is_page else self.failure or str(self.status)

    @property
    def group(self) -> tuple[bool, str | None, int | None]:
        """Whether it works, its target, and the class of an error status (4 for 4xx).

        Outcomes with equal groups count as unchanged, unless both are pages.
        """
        error = None if self.works or self.status is None else self.status // 100
        return self.works, self.target, error


def _is_sampled(reason: str | None) -> bool:
    """Whether a URL was left out of a sample, so that another walk may well request it.

    Which URLs the sample has depends on the order of the answers: that is no change of the site.
    """
    return reason == Reason.BARREN_QUERY


def _same_body(before: State, now: State) -> bool:
    """Whether two bodies are the same, by their digests or their validators, else by their sizes.

    A body that is not whole has no digest, and one may have been read in one walk alone, for an
    archive.
    """
    if before.digest and now.digest:
        unread = _UNREAD.encode()
        if before.digest.startswith(unread) == now.digest.startswith(unread):
            return before.digest == now.digest
    return before.size == now.size


_Differences: TypeAlias = Callable[[State, State], tuple[list[str], bool]]


def compare(before: State | None, now: State, differences: _Differences) -> tuple[str, str] | None:
    """Return kind and detail of a change; None if neither walk requested the URL.

    `differences` returns how two pages differ, and whether they differ in noise as well.
    """
    if _is_sampled(now.skip) or (before is not None and _is_sampled(before.skip)):
        return None
    if now.skip is not None:
        return ("gone", f"not asked for: {now.skip}") if before and before.works else None
    if before is None or before.skip is not None:
        return "new", "" if now.is_page else now.description
    if before.works and not now.works:
        return "gone", now.description
    if not (before.is_page and now.is_page):
        if before.group == now.group:
            return "unchanged", ""
        return "changed", f"{now.description}, before: {before.description}"
    if now.status == 304 or _same_body(before, now):
        return "unchanged", ""
    sizes = f"{now.size:,} bytes, before: {before.size:,}"
    if not (now.text_digest and before.text_digest and now.page and before.page):
        return "changed", sizes
    found, noise = differences(before, now)
    if not found:
        where = "what differs at each fetch" if noise else "its markup"
        return "unchanged", f"only {where}: {sizes}"
    return "changed", "; ".join(found)


def _page_differences(
    database: Database, noise: Noise, url: str, before: State, now: State
) -> tuple[list[str], bool]:
    """Return how two pages of HTML differ, in a few words, and whether in noise as well."""
    old, new = (_facts(database, state.page or 0) for state in (before, now))
    found, noisy = [], False
    if now.text_digest != before.text_digest:
        noisy = noise.in_text(url, before.page or 0, now.page or 0)
        if not noisy:
            sizes = f"{now.text_size or 0:,} bytes, before: {before.text_size or 0:,}"
            found.append(f"text: {sizes}")
    if (old.title or "") != (new.title or ""):
        if noise.in_title(url):
            noisy = True
        else:
            found.append(_told("title", old.title, new.title))
    if (old.canonical or "") != (new.canonical or ""):
        found.append(_told("canonical", old.canonical, new.canonical))
    if old.meta_robots != new.meta_robots:
        found.append(_told("robots", ", ".join(old.meta_robots), ", ".join(new.meta_robots)))
    before_links, links = _stable(old.links), _stable(new.links)
    more, fewer = links - before_links, before_links - links
    if more or fewer:
        if noise.in_links(url, more | fewer):
            noisy = True
        else:
            found.append(f"links: +{len(more)} -{len(fewer)}")
    return found, noisy


def _told(name: str, old: str | None, new: str | None) -> str:
    return f'{name}: "{new or ""}", before: "{old or ""}"'


def _stable(links: Iterable[str]) -> set[str]:
    return {_VOLATILE.sub("*", url) if "?" in url else url for url in links}


def compare_walks(database: Database, before: int, now: int) -> Iterator[Change]:
    """Yield the changes between two walks, in the order of the later one; missing URLs follow.

    If the later walk is not finished, only the URLs that have an outcome are compared. The
    database gets a temporary table of the earlier walk, and is read in portions, so the crawl may
    write meanwhile.
    """
    old, new = Walk(database, before), Walk(database, now)
    finished = not new.unfinished
    database.execute(f"CREATE TEMP TABLE old (url PRIMARY KEY, {_COLUMNS}) WITHOUT ROWID")
    database.execute(
        f"INSERT OR REPLACE INTO temp.old SELECT urls.url, {_STATE} FROM {_OUTCOMES} "
        "WHERE urls.number BETWEEN ? AND ? AND purpose = 'page' AND ended AND url NOT NULL "
        # Of a URL that was admitted again the last outcome stays.
        "ORDER BY urls.number",
        old.first,
        old.last,
    )
    noise, sample = Noise(database, new.last), _Sample(database, old)
    # A URL that was admitted again has two outcomes, and the last one counts.
    last = {url: number for url, number, has_outcome in new.again() if has_outcome}
    after = new.first - 1
    while found := database.read(_COMPARED_ROW, _COMPARED, after, new.last, PORTION):
        with database.store_errors():
            after = increasing(after, found[-1][0])
            first, then = 4, 4 + _WIDTH
            pairs = [(_state(row[first:then]), _state(row[then:])) for row in found]
        for (number, url, ended, known, *_), (was, state) in zip(found, pairs, strict=True):
            counts = ended and last.get(url, number) == number
            if not counts or (not known and sample.left_out(url)):
                continue
            differences = partial(_page_differences, database, noise, url)
            change = compare(was if known else None, state, differences)
            if change is not None:
                yield Change(url, *change)
    if finished:
        yield from _missing(database, new)


class _Sample:
    """The URLs that a walk found and left out of its samples; they are read when first needed."""

    def __init__(self, database: Database, walk: Walk) -> None:
        self._database, self._walk = database, walk
        self._urls: UrlSet | None = None

    def left_out(self, url: str) -> bool:
        """Whether a URL was left out; only one with a query can be."""
        if "?" not in url:
            return False
        if self._urls is None:
            self._urls = UrlSet()
            for rejected in _rejected_portions(self._database, self._walk):
                self._urls.update(link for link, reason in rejected if _is_sampled(reason))
        return url in self._urls


_COMPARED = f"""SELECT urls.number, urls.url, ended, old.url NOT NULL, {_OLD}, {_STATE}
    FROM {_OUTCOMES} LEFT JOIN temp.old ON old.url = urls.url
    WHERE urls.number > ? AND urls.number <= ? AND purpose = 'page' ORDER BY urls.number LIMIT ?"""


def _facts(database: Database, page: int) -> Facts:
    found = stored_facts(database, page)
    with database.store_errors():
        if found is None:
            raise BadRow(f"the content of page {page} is missing")
    return found[2]


def _missing(database: Database, new: Walk) -> Iterator[Change]:
    """Yield the changes of the URLs that a finished walk did not find."""
    found = database.read(
        _MISSING_ROW,
        "SELECT * FROM temp.old WHERE skip IS NULL AND url NOT IN "
        "(SELECT url FROM urls WHERE number BETWEEN ? AND ? "
        "AND purpose NOT IN ('check', 'fragments'))",
        new.first,
        new.last,
    )
    reasons = _rejected(database, new, {url for url, *_ in found}) if found else {}
    for url, *state in found:
        if _is_sampled(reasons.get(url)):
            continue
        with database.store_errors():
            was = _state(state)
        detail = f"not followed any more: {reasons[url]}" if url in reasons else _NOT_LINKED
        if was.works:
            yield Change(url, "gone", detail)
        else:
            yield Change(url, "changed", f"{detail}, before: {was.description}")


def _state(values: Sequence[Any]) -> State:
    state = State(*values)
    if state.status is not None and state.size is None:
        raise BadRow("a page has no size")
    return state


def _rejected(database: Database, walk: Walk, urls: set[str]) -> dict[str, str]:
    """Return the first reason for which a walk rejected some URLs."""
    reasons: dict[str, str] = {}
    for rejected in _rejected_portions(database, walk):
        for url, reason in rejected:
            if url in urls:
                reasons.setdefault(url, reason)
    return reasons


def _rejected_portions(database: Database, walk: Walk) -> Iterator[list[tuple[str, str]]]:
    """Yield the links that a walk rejected, each with its reason, in portions."""
    for portion in walk.rejected():
        with database.store_errors():
            links = [link[:2] for text in portion for link in decoded(_REJECTED, text)]
            found: list[tuple[str, str]] = checked(list[tuple[str, str]], links)
        yield found


_ROW: Any = tuple[int, Url, bytes | None, bytes | None, int, str]
_BLOCKS_ROW: Any = tuple[int, bytes | None]
_LINKS = msgspec.json.Decoder(list[str])
# Blocks are numbers of two bytes, so neither is a block.
_START, _END = -1, -2
# How many blocks away is a block that marks a place: a heading may stand between.
_NEAR = 4

_Mark: TypeAlias = tuple[int, int, int]
"""Two blocks, and 0 for the place between them; or a block, how far away it is, and 1."""


class Gap(NamedTuple):
    """A place at which two texts differ: its blocks in the older one, and how many at most."""

    begin: int
    end: int
    size: int


class Noise:
    """What two fetches of a page have shown, by the shape of its URL; read up to a number.

    A block of text is noise if it stands at a place where the two fetches differed: between the
    same blocks, or as far, up to four blocks, from one that the page has only once. So noise that
    all pages of a shape have in common is known from one of them, and an edit elsewhere is told.
    At such a place no more blocks may differ than at the two fetches.
    """

    def __init__(self, database: Database, last: int) -> None:
        self._database = database
        self._places: dict[str, dict[_Mark, int]] = {}
        self._links: dict[str, set[str]] = {}
        self._retitled: set[str] = set()
        sql = (
            "SELECT number, url, text_blocks, blocks, retitled, repeated_.links FROM repeated_ "
            "JOIN urls USING (number) JOIN page_ USING (number) WHERE number <= ?"
        )
        for _, url, first, second, retitled, links in database.read(_ROW, sql, last):
            if first is None or second is None or not is_web(url):
                continue
            with database.store_errors():
                self._learn(url_shape(url), _unpacked(first), _unpacked(second))
                self._links.setdefault(url_shape(url), set()).update(decoded(_LINKS, links))
            if retitled:
                self._retitled.add(url_shape(url))

    def _learn(self, shape: str, first: Sequence[int], second: Sequence[int]) -> None:
        places = self._places.setdefault(shape, {})
        for gap in _gaps(first, second):
            for mark in _marks(gap, first, second):
                places[mark] = max(gap.size, places.get(mark, 0))

    def in_text(self, url: str, before: int, now: int) -> bool:
        """Whether the texts of two pages, by their numbers, differ in nothing but noise."""
        places = self._places.get(url_shape(url)) if is_web(url) else None
        if not places:
            return False
        old, new = self._blocks(before), self._blocks(now)
        found = _gaps(old, new)
        # The digests of the texts differ, and if no block does, it is not known where.
        return bool(found) and all(
            any(gap.size <= places.get(mark, 0) for mark in _marks(gap, old, new)) for gap in found
        )

    def in_links(self, url: str, links: Iterable[str]) -> bool:
        """Whether links of a page differ in nothing but noise; these are in one of two fetches."""
        known = self._links.get(url_shape(url), ()) if is_web(url) else ()
        return all(is_web(link) and url_shape(link) in known for link in links)

    def in_title(self, url: str) -> bool:
        """Whether the title of a page is another at each fetch."""
        return is_web(url) and url_shape(url) in self._retitled

    def _blocks(self, number: int) -> list[int]:
        sql = "SELECT number, text_blocks FROM page_ WHERE number = ?"
        for _, blocks in self._database.read(_BLOCKS_ROW, sql, number):
            with self._database.store_errors():
                return _unpacked(blocks or b"")
        return []


def _unpacked(blocks: bytes) -> list[int]:
    """Return the hashes of the blocks of a text. Raises BadRow."""
    if len(blocks) % 2:
        raise BadRow("the blocks of a text are cut")
    return [block for (block,) in iter_unpack("<H", blocks)]


def _gaps(old: Sequence[int], new: Sequence[int]) -> list[Gap]:
    codes = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    return [
        Gap(begin, end, max(end - begin, last - first))
        for what, begin, end, first, last in codes
        if what != "equal"
    ]


def _marks(gap: Gap, old: Sequence[int], new: Sequence[int]) -> Iterator[_Mark]:
    """Yield the marks of a place: the blocks around it, and each near one that is there once."""
    text = [_START, *old, _END]
    before, after = gap.begin, gap.end + 1
    yield text[before], text[after], 0
    for far in range(_NEAR):
        for place, away in ((before - far, -far), (after + far, far + 1)):
            if 0 <= place < len(text):
                block = text[place]
                if old.count(block) < 2 and new.count(block) < 2:
                    yield block, away, 1
