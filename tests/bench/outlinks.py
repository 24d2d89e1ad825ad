"""The least that links cost, for the yardsticks `raw`, `httpx`, `fast` and `scrapy`.

A tree by lexbor, fragments cut and duplicates dropped before anything is resolved, the usual href
resolved by hand, and the others by ada-url.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import ada_url
from selectolax.lexbor import LexborHTMLParser

REDIRECTS = frozenset({300, 301, 302, 303, 307, 308})

# A path that is joined as it stands: no escape, no colon, no segment that begins with a dot.
_SEGMENT = r"[\w~!$&()*+,;=@-][\w~!$&()*+,;=@.-]*+"
_plain = re.compile(rf"(/|(?:\.\./)*+){_SEGMENT}(?:/{_SEGMENT})*+/?+", re.ASCII).fullmatch


def outlinks(body: bytes, url: str, host: str) -> set[str]:
    """Return the URLs below `host` that the `a` elements of a page lead to."""
    hrefs = [node.attributes.get("href") for node in LexborHTMLParser(body).tags("a")]
    distinct = {href.partition("#")[0] for href in hrefs if href}
    distinct.discard("")
    return resolved(distinct, url, host)


def resolved(hrefs: Iterable[str], url: str, host: str) -> set[str]:
    """Resolve hrefs against a page's URL, by hand where that is safe; keep those of the host."""
    directory = url[: url.partition("?")[0].rindex("/") + 1]
    bases = {"": directory, "/": host}
    found = set()
    for href in hrefs:
        if match := _plain(href):
            climb = match[1]
            if climb not in bases:
                bases[climb] = _ancestor(directory, len(climb) // 3, len(host))
            found.add(bases[climb] + href[len(climb) :])
        elif (other := _joined(href, url)).startswith(host):
            found.add(other)
    return found


def _ancestor(directory: str, levels: int, root: int) -> str:
    while levels and len(directory) > root:
        directory = directory[: directory.rindex("/", 0, -1) + 1]
        levels -= 1
    return directory


def _joined(href: str, url: str) -> str:
    try:
        return ada_url.join_url(url, href).partition("#")[0]
    except ValueError:
        return ""
