"""The facts of a page: what it says of itself to search engines, social media and readers."""

from collections.abc import Mapping

import msgspec

__all__ = ["PageFacts"]


class PageFacts(msgspec.Struct, frozen=True, omit_defaults=True):
    """The facts of a page besides those that each `Page` has, if the crawl keeps facts.

    - `fetched`: the Unix time at which the page was read.
    - `headers`: the values of those response headers that say how a page is served, by their names
      in lower case: see `HEADERS`. Each has at most 500 characters.

    The others are read from the body of a good answer (2xx) in HTML or XHTML. If it has none, or
    was cut, they are those of its beginning. Texts have at most 500 characters, with white space
    collapsed, and so has a heading.

    - `lang`: the language that `<html>` declares, else "".
    - `h1`: the texts of the first ten `h1`, of an image its `alt`; `h1_count` counts all.
    - `description`: the content of the first meta description; None if there is none.
    - `hreflang`: the pairs of language and absolute URL of `<link rel=alternate hreflang>`, the
      first 200.
    - `social`: the contents of the meta elements of Open Graph and cards ("og:title",
      "article:author", "twitter:card"), by their names; the first of each counts.
    - `json_ld`: the types of the items in JSON-LD, each as often as it is there; the first 50.
    - `json_ld_errors`: why an element of JSON-LD is not valid JSON, one sentence for each.
    - `words`: the words of the visible text: what stands between white space or tags.
    - `images` counts `img` elements, and `images_without_alt` those without the attribute `alt`.
    - `insecure`: the first 20 parts of an https page, such as images and scripts, that it loads by
      http ("mixed content").
    - `scripted`: whether a script makes the page: it has a script, an empty element for its
      result, and fewer than ten words.

    >>> page = Response(200, httpx.Headers({"content-type": "text/html"}), b"<h1>Bread</h1>")
    >>> web = Web({"/": page})
    >>> async def facts() -> list[PageFacts | None]:
    ...     async with Crawler([web.url], fetch=web, facts=True).outcomes() as outcomes:
    ...         return [page.facts async for page in outcomes]
    >>> [each.h1 for each in trio.run(facts)]
    [('Bread',)]
    """

    __module__ = "trio_crawler"

    fetched: float = 0.0
    headers: Mapping[str, str] = {}
    lang: str = ""
    h1: tuple[str, ...] = ()
    h1_count: int = 0
    description: str | None = None
    hreflang: tuple[tuple[str, str], ...] = ()
    social: Mapping[str, str] = {}
    json_ld: tuple[str, ...] = ()
    json_ld_errors: tuple[str, ...] = ()
    words: int = 0
    images: int = 0
    images_without_alt: int = 0
    insecure: tuple[str, ...] = ()
    scripted: bool = False
