"""The compiled scanner of links: what its functions take and return.

Each returns None for a page that another reader must read: one with `plaintext`, with SVG, MathML
or a `template` that contains more than they mostly do, or with more tags than are read.
"""

from collections.abc import Callable
from typing import Any

from trio_crawler.page.accelerator import Pointing

def tags(text: str, lean: bool = ..., /) -> list[tuple[str, int, int, int, int, int, bool]] | None:
    """Return the start tags of a page that may point somewhere, and its places, as `start_tags`.

    A usual link has the name "" and the place of its href, an id or name the name "#" and its own
    place. With `lean`, both are left out, and the elements that matter for an attribute that any
    may have.
    """

def targets(
    body: bytes,
    decode: Callable[[str], str],
    element: Callable[[str | None, str, str, str], Any],
    elements: dict[bytes, Any],
    rels: dict[str, Any],
    /,
    *joining: object,
) -> Pointing | None:
    """Return what a page in UTF-8 points to, and an outline of it.

    - the URLs of its usual links, each with its fragments for `link_targets.fragments_in` or None,
      without those that name an id or a name of the page; those of usual links with rel=nofollow;
      those of elements, by their kinds
    - by their sources the other hrefs, decoded, and what of elements depends on the page, each
      with the number of URLs before it: hrefs without a URL, with a fragment that is not simple,
      and long ones of data: and javascript:
    - the places, the first base, the first title
    - an outline: the tags but each `a` and `area`, a byte 0xFF, and these with the texts of links;
      if there is a base, all of them before that byte. Left out are links to ids and names of the
      page. Before each a comment has a NUL, "\1" if it may be written otherwise than its URL
      ends up to a "?", else a space, its line, a comma and its column

    There are URLs with `joining`, which is what `scan` takes from `own` on, and without a base.
    `decode` decodes a value with references. `element` returns what an element points to, by the
    directory of the page (None if there are no URLs), its name, its attributes and the content of
    a `style`: what depends on the page, the others, and its places. It returns None if another
    reader must read the page.
    `elements` keeps this for the next pages. `rels` has the kind of a usual `link` by its rel.
    None, too, if the URLs may have more than `room` characters.
    """

def scan(
    body: bytes,
    decode: Callable[[str], str],
    max_links: int,
    own: str = ...,
    home: str = ...,
    root: int = ...,
    known: dict[str, str] = ...,
    shared: dict[str, str] = ...,
    longest: int = ...,
    most: int = ...,
    other: Callable[[str, str], str] = ...,
    room: int = ...,
    /,
) -> tuple[bool, list[str], list[str], str | None, str | None] | None:
    """Return the links of a page in UTF-8, without their fragments.

    That is whether there are URLs in place of hrefs; the distinct hrefs of links, and those of
    nofollow links; the first base, the first title. `decode` decodes a href with references and
    cuts its fragment. None, too, with `max_links` links or an invalid byte.

    There are URLs with the page's `own` and what `urls.joining` returns; but not if there is a
    base, or a href that is no URL, or if the URLs have more than `room` characters.
    """
