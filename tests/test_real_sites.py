"""Three real sites: the requests are those of a browser, worked out here without the crawler."""

from __future__ import annotations

import mimetypes
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import quote, unquote, urldefrag, urljoin, urlsplit

import pytest
from sites.docs import Docs, serve_directory

from trio_crawler import Crawler, Page, Redirect, Statistics, same_site
from trio_crawler.report import CrawlFacts, Report

pytestmark = pytest.mark.real

DOC = Path("/usr/share/doc")
PYTHON = DOC / "python3/html"
SQLITE = DOC / "sqlite3"
POSTGRES = DOC / "postgresql-doc-15/html"
PACKAGES = {PYTHON: "python3-doc", SQLITE: "sqlite3-doc", POSTGRES: "postgresql-doc-15"}

ORIGIN = "http://127.0.0.1"
"""Stands for the server in the oracle, which knows no port."""

_HTML_SPACES = "\t\n\f\r "
_LINE_BREAKS = re.compile("[\t\n\r]")
_ESCAPE = re.compile("%[0-9A-Fa-f]{2}")
_UNRESERVED = re.compile(r"[\w.~-]", re.ASCII)


@dataclass
class Walk:
    """Hold what a browser would ask for: targets by status, and who links to what is missing."""

    statuses: dict[str, int] = field(default_factory=dict)
    missing: dict[str, set[str]] = field(default_factory=dict)


class Hrefs(HTMLParser):
    """Gather what can be clicked on, and the base it is read against."""

    def __init__(self) -> None:
        # Nothing is asked about the text; attributes are decoded all the same.
        super().__init__(convert_charrefs=False)
        self.hrefs: list[str] = []
        self.base: str | None = None

    def updatepos(self, i: int, j: int) -> int:
        return j  # nobody asks for line numbers, and counting them takes a tenth of the time

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        hrefs = [value or "" for name, value in attrs if name == "href"]
        if hrefs and tag in ("a", "area"):
            self.hrefs.append(hrefs[0])
        elif hrefs and tag == "base" and self.base is None:
            self.base = hrefs[0]


@cache
def one_spelling(target: str) -> str:
    """Spell a target so that two are equal if a server must take them for the same."""

    def simplest(escape: re.Match[str]) -> str:
        character = unquote(escape[0], "latin-1")
        return character if _UNRESERVED.fullmatch(character) else escape[0].upper()

    return _ESCAPE.sub(simplest, quote(target, safe="%/?#[]@!$&'()*+,;=:|^`{}~"))


@cache
def browse(root: Path) -> Walk:
    """Walk through the files under `root` as a browser would that clicks on every link."""
    walk = Walk()
    waiting = {"/": None}
    for target in waiting_for(waiting):
        walk.statuses[target], found = answer(root, target)
        for each in found:
            waiting.setdefault(each)
            walk.missing.setdefault(each, set()).add(target)
    for target, status in walk.statuses.items():
        if status != 404:
            walk.missing.pop(target, None)
    return walk


def waiting_for(queue: dict[str, None]) -> Iterator[str]:
    """Give the keys of a dict that grows meanwhile, each once, in the order they came."""
    done = 0
    while done < len(queue):
        fresh = list(queue)[done:]
        done += len(fresh)
        yield from fresh


def answer(root: Path, target: str) -> tuple[int, set[str]]:
    """Answer as a static server does: the status, and the targets that can be reached."""
    written, mark, query = target.partition("?")
    path = unquote(written)
    file = root / path.lstrip("/")
    if file.is_dir() and not path.endswith("/"):
        return 301, {f"{written}/{mark}{query}"}
    if file.is_dir():
        index = file / "index.html"
        return 200, links(index, target) if index.exists() else listing(file, target)
    if not file.is_file() or path.endswith("/"):
        return 404, set()
    return 200, links(file, target)


def links(file: Path, target: str) -> set[str]:
    """Read the targets a file links to; what is not HTML has none."""
    if mimetypes.guess_type(file.name) != ("text/html", None):
        return set()
    page = Hrefs()
    page.feed(file.read_text("utf-8", "replace"))
    page.close()
    base = urljoin(ORIGIN + target, (page.base or "").strip(_HTML_SPACES))
    return resolved(frozenset(page.hrefs), base)


def listing(directory: Path, target: str) -> set[str]:
    """Link to what a directory without an index holds."""
    names = (each.name + "/" * each.is_dir() for each in directory.iterdir())
    return resolved(frozenset(quote(name) for name in names), ORIGIN + target)


def resolved(hrefs: frozenset[str], base: str) -> set[str]:
    """Join hrefs to a base and keep the targets of those that stay on the site."""
    found = set()
    for href in {urldefrag(href).url for href in hrefs}:
        # In an http URL a backslash is a slash (URL Standard 4.4, relative state).
        # sqlite3-doc has one: <a href="\\"json1.html#jptr\\"">.
        written = _LINE_BREAKS.sub("", href.strip(_HTML_SPACES)).replace("\\", "/")
        url = urlsplit(urljoin(base, written))
        if url.scheme == "http" and url.netloc == urlsplit(ORIGIN).netloc:
            query = f"?{url.query}" if url.query else ""
            found.add(one_spelling((url.path or "/") + query))
    return found


@contextmanager
def served(root: Path) -> Iterator[Docs]:
    if not (root / "index.html").exists():
        pytest.skip(f"the package {PACKAGES[root]} is not installed")
    with serve_directory(root) as docs:
        yield docs


@dataclass(frozen=True)
class Crawled:
    """Hold what one crawl left: the server's log, the status of each outcome, the report."""

    log: list[tuple[str, int]]
    ends: list[tuple[str, int]]
    text: str
    statistics: Statistics


_crawled: dict[Path, Crawled] = {}


async def crawled(root: Path) -> Crawled:
    """Crawl a site, the first time it is asked for; URLs are told without the server's address."""
    if root not in _crawled:
        with served(root) as docs:
            _crawled[root] = await crawl(docs)
    return _crawled[root]


async def crawl(docs: Docs) -> Crawled:
    report = Report(full=True)
    ends: list[tuple[str, int]] = []
    crawler = Crawler([docs.url], scope=same_site([docs.url]), workers=20)
    async with crawler.outcomes() as outcomes:
        async for outcome in outcomes:
            assert isinstance(outcome, Page | Redirect)
            ends.append((one_spelling(outcome.url.replace(docs.url, "/", 1)), outcome.status))
            report.add(outcome)
    first, *rest = docs.log()
    # sqlite3-doc has one, which does not matter for what is packaged.
    assert first in (("/robots.txt", 404), ("/robots.txt", 200))
    log = [(one_spelling(target), status) for target, status in rest]
    statistics = crawler.statistics()
    text = report.text(CrawlFacts(statistics, 20, seeds=crawler.plan.seeds)).replace(docs.url, "/")
    return Crawled(log, ends, text, statistics)


def broken(text: str) -> list[tuple[str, str, list[str]]]:
    """Read the section of broken links: why, target and referrers of each, by target."""
    sections = (part.splitlines() for part in text.split("\n\n"))
    lines = next((each for each in sections if each[0].startswith("Broken links")), [])
    found: list[tuple[str, str, list[str]]] = []
    for line in lines[1:]:
        first, second = line.split()
        if line.startswith("      "):
            assert first == "from"
            found[-1][2].append(one_spelling(second))
        else:
            found.append((first, one_spelling(second), []))
    return sorted((why, target, sorted(pages)) for why, target, pages in found)


SITES = pytest.mark.parametrize(
    "root",
    # The first takes as long as the others together: it runs with `--all`.
    [pytest.param(root, marks=pytest.mark.merge) for root in (SQLITE, POSTGRES)] + [PYTHON],
    ids=PACKAGES.get,
)


@SITES
async def test_a_real_site_is_asked_once_for_each_url_a_browser_would_find(root: Path) -> None:
    site = await crawled(root)
    expected = sorted(browse(root).statuses.items())
    assert sorted(site.log) == expected
    assert sorted(site.ends) == expected
    assert site.statistics.admitted == len(expected)


@SITES
async def test_each_missing_page_is_told_once_with_every_page_that_links_to_it(root: Path) -> None:
    site = await crawled(root)
    missing = browse(root).missing
    expected = [("404", target, sorted(missing[target])) for target in sorted(missing)]
    assert broken(site.text) == expected


@pytest.mark.merge
async def test_sqlite_s_documentation_as_packaged_has_links_to_many_missing_pages() -> None:
    with served(SQLITE):
        assert len(browse(SQLITE).missing) > 100
