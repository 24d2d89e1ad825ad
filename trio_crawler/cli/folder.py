"""A folder that is checked in place of a server: its seeds, its URL, the names of its files."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote_to_bytes

import trio
from msgspec.structs import fields, replace

from trio_crawler import ArgumentError, Job, Outcome, Page, PageFacts, Scope
from trio_crawler.cli.options import CrawlOptions
from trio_crawler.net import FolderFetch

if TYPE_CHECKING:
    from trio_crawler.check import LinkCheck

_NAMES = 100_000
"""The URLs whose files are remembered: a page's links are those of many others."""


def seeds_in(options: CrawlOptions, folder: FolderFetch) -> tuple[str, ...]:
    """Return the URLs in a folder that are asked for first: its index.html, or what is named."""
    if options.files:
        return tuple(map(folder.url_of, options.files))
    # Without an index.html the pages alone are the seeds.
    missing = options.walks and folder.path_of(folder.base_url) is None
    return () if missing else (folder.base_url,)


async def pages_in(folder: FolderFetch, scope: Scope) -> AsyncGenerator[str]:
    """Yield the URLs of the pages in a folder that the scope admits."""
    for url in folder.pages():
        if scope(Job(url)) is True:
            yield url
        await trio.lowlevel.checkpoint()


class Folder:
    """The folder that is checked, and the `base`, the URL that stands for it.

    `whole` is whether all its pages are checked, not only those that links lead to. `path_of`
    returns the path of what a URL names there, as CI names the files of a repository, whether
    there is such a file or not; None for a URL of another place.
    """

    def __init__(self, path: str, base: str, *, clean_urls: bool, whole: bool) -> None:
        self._path, self.base, self._whole = path, base, whole
        self._files: FolderFetch | None = None
        # A folder that was checked in an earlier run may not be there any more.
        with suppress(ArgumentError):
            self._files = FolderFetch(path, base_url=base, clean_urls=clean_urls)
        self.path_of = lru_cache(_NAMES)(self._path_of)

    def _path_of(self, url: str) -> str | None:
        before, mark, fragment = url.partition("#")
        if not before.startswith(self.base):
            return None
        path = None if self._files is None else self._files.path_of(before)
        if path is None:
            below, question, query = before.removeprefix(self.base).partition("?")
            names = "/".join(map(_name, below.split("/")))
            path = os.path.join(self._path, names) + question + query
        return path.removeprefix(f".{os.sep}").replace(os.sep, "/") + mark + fragment

    def named(self, outcome: Outcome) -> Outcome:
        """Return an outcome with the paths of files as its URLs, if the folder has no URL."""
        if not _NOWHERE(self.base):
            return outcome
        changed: dict[str, Any] = {}
        for field in fields(outcome):
            match getattr(outcome, field.name):
                case str(url) if field.name in _URLS:
                    changed[field.name] = self.shown(url)
                case tuple(links) if field.name == "links":
                    changed["links"] = tuple(map(self.shown, links))
                case tuple(links) if field.name == "rejected":
                    changed["rejected"] = tuple(
                        each._replace(url=self.shown(each.url)) for each in links
                    )
                case dict(anchors) if field.name == "anchors":
                    changed["anchors"] = {self.shown(url): at for url, at in anchors.items()}
                case PageFacts() as facts:
                    pairs = tuple((name, self.shown(url)) for name, url in facts.hreflang)
                    changed["facts"] = replace(facts, hreflang=pairs)
        return replace(outcome, **changed)

    def shown(self, url: str) -> str:
        """Return the text to show for a URL: the path of a file in the folder."""
        return self.path_of(url) or url

    def once(self, outcome: Outcome, links: LinkCheck) -> Outcome:
        """Return an outcome without its links, if `links` has the page by another URL."""
        if isinstance(outcome, Page) and outcome.ok and self._has_twin(outcome.url, links):
            return replace(outcome, links=(), rejected=(), found=())
        return outcome

    def _has_twin(self, url: str, links: LinkCheck) -> bool:
        """Whether there is an outcome of another URL that the same file answers for."""
        if url.endswith("/"):
            twin = f"{url}index.html"
        else:
            twin = url.removesuffix("index.html" if url.endswith("/index.html") else ".html")
            twin = f"{url}.html" if twin == url else twin
        return links.knows(twin) and self.path_of(twin) == self.path_of(url)

    def unlinked(self, links: LinkCheck) -> list[str] | None:
        """Return the pages that no link leads to; None if not all pages are checked.

        No link has to lead to the first page, nor to the one that servers answer 404 with.
        """
        known = {self.base, f"{self.base}404.html", f"{self.base}404"}
        if not self._whole:
            return None
        alone = set(links.unlinked()) - known
        # A link may have the other URL of a page.
        return sorted(url for url in alone if not self._has_twin(url, links))

    def unread(self, links: LinkCheck) -> Counter[str]:
        """Count the files that are no pages and were not asked for, by their endings."""
        if self._files is None or not self._whole:
            return Counter()
        read = f"{self.base}sitemap.xml"
        return Counter(
            os.path.splitext(url)[1]
            for url in self._files.others()
            if url != read and not links.knows(url)
        )


# The URL of a folder that has none is at a host that cannot exist (RFC 6761, 6.4).
_NOWHERE = re.compile("https?://[^/]*[.]invalid[:/]").match
_URLS = frozenset("url referrer target canonical duplicate_of folded_into".split())


def _name(segment: str) -> str:
    """Return the name in a segment of a path; one that no file can have stays encoded."""
    name = os.fsdecode(unquote_to_bytes(segment))
    return segment if os.sep in name or "\0" in name or name in (".", "..") else name
