"""The floor with compiled links: `raw_crawler.py`, but the links by this package's scanner.

    python tests/bench/floor_crawler.py http://127.0.0.1:8000/ 10

What is left is what a crawler on Trio pays that reads pages as this one does, and does nothing
else: no rules, no limits, no records, no report.
"""

from __future__ import annotations

import sys

import outlinks
import raw_crawler
import shape

from trio_crawler.page import accelerator, urls


def _without_fragment(href: str) -> str:
    return href.replace("&amp;", "&").partition("#")[0]


def found(body: bytes, url: str, host: str) -> set[str]:
    """Return the URLs of this host that a page links to."""
    if accelerator.scan is None:
        raise SystemExit("the compiled scanner is not here")
    joining = urls.joining(urls.directory(url), "utf-8")
    page = accelerator.scan(body, _without_fragment, 100_000, url, *joining)
    if page is None:
        return outlinks.outlinks(body, url, host)
    are_urls, links, more, _, _ = page
    every = (*links, *more) if are_urls else urls.resolve([*links, *more], url)[0].values()
    return {link for link in every if link.startswith(host)}


if __name__ == "__main__":
    shape.outlinks = found
    shape.run(raw_crawler.crawl, *sys.argv[1:])
