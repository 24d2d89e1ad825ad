"""Notes on pages: what their facts give an owner reason to look at. None of them is a fault."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any

from trio_crawler.facts import PageFacts
from trio_crawler.ledger.ledger import KeptFacts, Ledger
from trio_crawler.ledger.rows import FAILURE, NOINDEX, OTHER_CANONICAL, REDIRECT
from trio_crawler.page.urls import authority, origin
from trio_crawler.report.visible import count, more, readable

if TYPE_CHECKING:
    from trio_crawler.report.facts import CrawlFacts

MOST_FACTS = 100_000
"""The most pages whose facts a report in HTML lists."""

MOST_TITLE, MOST_DESCRIPTION = 60, 160
"""The characters of a title, and of a description, that search engines show."""

_FEW = 3
# Characters of a language tag, which has 35 at most (RFC 5646, 4.4.1).
_TAG = 35
_CUT = "Search engines cut it: let its beginning say the most."
_looks_missing = re.compile(
    r"(?<![\w,.])404(?![\w,.]\w)|\bnot (?:be )?found\b|\b(?:does not|doesn't|no longer) exists?\b",
    re.IGNORECASE,
).search

NOTES: Mapping[str, tuple[str, str]] = {
    "no_title": ("without a title", "Give each page a title: search engines show it."),
    "same_title": ("with the title of another page", "Let each title say what differs."),
    "long_title": (f"with a title of more than {MOST_TITLE} characters", _CUT),
    "no_description": ("without a description", "Search engines choose a text in its place."),
    "same_description": ("with the description of another page", "Say what differs."),
    "long_description": (f"with a description of more than {MOST_DESCRIPTION} characters", _CUT),
    "no_h1": ("without an h1", "Give the page one heading of the first level."),
    "several_h1": ("with several h1", "Let one heading be the first, and the others h2."),
    "canonical_redirects": ("whose canonical URL redirects", "Name the end of the redirect."),
    "canonical_fails": ("whose canonical URL is an error", "Name a page that exists."),
    "canonical_elsewhere": (
        "whose canonical URL is on another host",
        "Search engines leave the page out: look whether you want that.",
    ),
    "noindex_listed": ("with noindex that a sitemap lists", "Correct the page or the sitemap."),
    "hreflang_no_return": (
        "whose hreflang names a page that does not name it",
        "Search engines ignore the pair: let both pages name each other.",
    ),
    "insecure": ("of https that load parts by http", "Browsers block them: use https."),
    "bad_json_ld": ("with JSON-LD that is not valid JSON", "Correct it: no program reads it."),
    "no_alt": ("with images without an alt", 'Say what they show; alt="" if they only decorate.'),
    "soft_404": (
        "that look like an error, with a status of success",
        "Answer 404 or 410, or search engines list the page.",
    ),
    "scripted": (
        "made by a script, which the crawl has not run",
        "Their links and texts are unknown here, and to some search engines.",
    ),
}
"""For each code what such pages are, and what helps."""


def page_notes(ledger: Ledger, facts: CrawlFacts) -> dict[str, list[tuple[str, str]]]:
    """Return for each note its pages, as URL and detail, sorted; in the order of `NOTES`.

    Titles, descriptions and headings count only on pages that a search engine may list.
    """
    found: dict[str, list[tuple[str, str]]] = {code: [] for code in NOTES}
    same: dict[str, dict[str, list[str]]] = {"same_title": {}, "same_description": {}}
    named: dict[str, set[str]] = {}
    for page in ledger.facts():
        own = page.facts
        texts = (page.title or "", own.description or "") if page.row.indexable else ()
        for text, pages in zip(texts, same.values(), strict=False):
            if text:
                pages.setdefault(text, []).append(page.url)
        of_texts = _of_texts(*texts, own) if texts else ()
        for code, detail in (*of_texts, *_of_content(ledger, page, facts)):
            found[code].append((page.url, detail))
        if own.hreflang:
            named[page.url] = {url for _, url in own.hreflang}
    for code, texts_of in same.items():
        several = [(text, urls) for text, urls in texts_of.items() if len(urls) > 1]
        found[code] += [(url, text) for text, urls in several for url in urls]
    found["hreflang_no_return"] = [
        (url, other)
        for url, others in named.items()
        for other in others
        if other != url and other in named and url not in named[other]
    ]
    return {
        # Pages with one title stand together.
        code: sorted(pages, key=(lambda page: page[::-1]) if code in same else None)
        for code, pages in found.items()
        if pages
    }


def _of_texts(title: str, description: str, facts: PageFacts) -> Iterator[tuple[str, str]]:
    if not title:
        yield "no_title", ""
    elif len(title) > MOST_TITLE:
        yield "long_title", title
    if not description:
        yield "no_description", ""
    elif len(description) > MOST_DESCRIPTION:
        yield "long_description", description
    if facts.h1_count != 1:
        yield ("several_h1", " · ".join(facts.h1)) if facts.h1_count else ("no_h1", "")


def _of_content(ledger: Ledger, page: KeptFacts, crawl: CrawlFacts) -> Iterator[tuple[str, str]]:
    own, url, canonical = page.facts, page.url, page.canonical
    if canonical and page.row.flags & OTHER_CANONICAL:
        number = ledger.number(canonical)
        end = None if number is None else ledger.end(number)
        if end is not None and end.kind == REDIRECT:
            yield "canonical_redirects", canonical
        elif end is not None and (end.kind == FAILURE or end.status >= 400):
            yield "canonical_fails", canonical
        elif authority(canonical) != authority(url):
            yield "canonical_elsewhere", canonical
    if page.row.flags & NOINDEX and crawl.listing and (listing := crawl.listing(url)):
        yield "noindex_listed", listing.sitemap
    if own.insecure:
        yield "insecure", own.insecure[0]
    if own.json_ld_errors:
        yield "bad_json_ld", own.json_ld_errors[0]
    if own.images_without_alt:
        yield "no_alt", f"{count(own.images_without_alt)} of {count(own.images, 'image')}"
    told = page.title or "", own.h1[0] if own.h1 else ""
    home = origin(url)
    if home in crawl.missing:
        # None if an invented URL was answered with an error, as it should.
        alike = zip(crawl.missing[home] or (), told, strict=False)
        is_soft = any(each and each == mine for each, mine in alike)
    else:
        is_soft = _looks_missing("\n".join(told)) is not None
    if is_soft:
        yield "soft_404", told[0] or told[1]
    if own.scripted:
        yield "scripted", ""


def looks_missing(ledger: Ledger, most: int) -> list[str]:
    """Return pages that look missing, of each host the first one, and at most so many."""
    found: dict[str, str] = {}
    for page in ledger.facts():
        if _looks_missing(f"{page.title}\n{page.facts.h1[:1]}"):
            found.setdefault(origin(page.url), page.url)
    return [*found.values()][:most]


def page_tables(
    ledger: Ledger, facts: CrawlFacts, url: Callable[[str], int], text: Callable[[str | None], int]
) -> dict[str, list[list[Any]]]:
    """Return the tables of a report in HTML: the notes, and the facts of each page."""
    return {
        "notes": [
            [code, *NOTES[code], [[url(page), text(detail)] for page, detail in pages]]
            for code, pages in page_notes(ledger, facts).items()
        ],
        # By the numbers of URLs, which are in their order.
        "facts": sorted(
            [
                url(page.url),
                text(page.title),
                text(page.facts.h1[0] if page.facts.h1 else ""),
                text(page.facts.description),
                page.facts.words,
                text(page.facts.lang[:_TAG]),
                text(", ".join(page.facts.json_ld)),
                page.facts.images,
            ]
            for page in islice(ledger.facts(), MOST_FACTS)
        ),
    }


def notes_section(
    notes: Mapping[str, list[tuple[str, str]]], full: bool, shown: Callable[[str], str]
) -> list[str]:
    """Return the lines about the notes: for each the first pages, with `full` all of them."""
    lines = []
    for code, pages in notes.items():
        urls = list(dict.fromkeys(url for url, _ in pages))
        listed = urls if full else urls[:_FEW]
        lines.append(f"  {count(len(urls))} {NOTES[code][0]}")
        lines += (f"    {readable(shown(url))}" for url in listed)
        lines += more(len(urls) - len(listed), "    ")
    return ["Notes on pages, by their facts", *lines] if lines else []
