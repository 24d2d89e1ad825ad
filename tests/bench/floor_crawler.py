"""The floor with compiled links: `raw_crawler.py`, but the links by this package's scanner.

    python tests/bench/floor_crawler.py http://127.0.0.1:8000/ 10

What is left is what a crawler on Trio pays that reads pages as this one does, and does nothing
else: no rules, no limits, no records, no report.
"""

from __future__ import annotations

import sys
from functools import lru_cache

import ada_url
import outlinks
import raw_crawler
import shape

from trio_crawler.page import accelerator

_DIRECTORIES, _LINKS, _CHARACTERS = 64, 1_024, 256


@lru_cache(_DIRECTORIES)
def _known(home: str) -> dict[str, str]:
    return {}


def _without_fragment(href: str) -> str:
    return href.replace("&amp;", "&").partition("#")[0]


@lru_cache(4_096)
def _absolute(href: str) -> str:
    return _joined(href, None)


def _joined(href: str, base: str | None) -> str:
    try:
        return ada_url.URL(href, base).href.partition("#")[0]
    except ValueError:
        return ""


def found(body: bytes, url: str, host: str) -> set[str]:
    """Return the URLs of this host that a page links to."""
    scan, join = accelerator.scan, accelerator.join
    if scan is None or join is None:
        raise SystemExit("the compiled scanner is not here")
    page = scan(body, _without_fragment, 0, 0, 100_000)
    if page is None:
        return outlinks.outlinks(body, url, host)
    hrefs = dict.fromkeys((*page[1], *page[2]), "")
    home = url[: url.partition("?")[0].rindex("/") + 1]
    for href in join(hrefs, home, len(host), _known(home), _CHARACTERS, _LINKS):
        hrefs[href] = _absolute(href) if ":" in href[:8] else _joined(href, url) if href else url
    return {link for link in hrefs.values() if link.startswith(host)}


if __name__ == "__main__":
    shape.outlinks = found
    shape.run(raw_crawler.crawl, *sys.argv[1:])
