"""Find the places of a page that a fragment may name, and whether a fragment names one.

The rules are those of the HTML Standard (7.4.6.4, "find a potential indicated element").
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from collections.abc import Set as AbstractSet
from functools import cached_property, lru_cache
from hashlib import blake2b
from urllib.parse import unquote_to_bytes

from trio_crawler.expressions import lazy
from trio_crawler.page import entities
from trio_crawler.page.html.start_tags import PLACE, attributes, start_tags

MAX_TARGETS = 1_000_000
"""The most places of one page that are read."""

_DIRECTIVE = ":~:"
_CODE_HOST = "user-content-"
# The first line and the last one of a source that a script of its page marks: 10-20, L10-L20.
_LINES = lazy("(L?)([0-9]+)-L?([0-9]+)")
_may_have_place = lazy(r"\b(?:id|name)\s*=", re.I)


def read_targets(text: str, *, xml: bool = False) -> AbstractSet[int] | None:
    """Return the keys of the places in a page of HTML or XHTML: of ids, and of the names of `a`.

    Those in a `template` do not count. None if not all of the page was read, since a fragment that
    is not found may still name a place: at most 1,000,000 tags are read that may have one.
    """
    if _may_have_place.search(text) is None:
        # ▶ A feed or a description of a search: 30 ms less, once, for the reader's expression.
        return Places(())
    found: set[str] = set()
    for name, _, begin, end, _, _, foreign in start_tags(text, xml=xml, most=MAX_TARGETS):
        if name == PLACE:
            found.add(text[begin:end])
        elif name == "/":
            return None
        elif name:
            values = attributes(text[begin:end])
            found.add(values.get("id", ""))
            if name == "a" and not foreign:
                found.add(values.get("name", ""))
    found.discard("")
    return places_of(frozenset(map(entities.in_attribute, found)))


def has_place(places: AbstractSet[int], fragment: str) -> bool:
    """Whether a fragment names a place of a page, or needs none.

    A range of lines names two: where code is shown, a script of the page marks what is between.
    """
    known: Collection[str] | AbstractSet[int] = places
    written: Callable[[str], str | int] = key_of
    if isinstance(places, Places):
        # ▶ Names need no keys. A check of Apache's documentation made those of 223 pages.
        known, written = places.names, str
    names = names_of(fragment)
    if not names or any(written(name) in known for name in names):
        return True
    lines = _LINES.fullmatch(fragment)
    return lines is not None and all(written(lines[1] + lines[at]) in known for at in (2, 3))


def names_of(fragment: str) -> Sequence[str]:
    """Return the places that a fragment may name, the likeliest first, without duplicates.

    The fragment names a place if its page has one of them. It is without "#", as the URL parser
    writes it. There are none if it needs no place: if it is empty, "top" in any case, or only a
    text directive (`:~:text=`, which is cut off); or if it begins with "!" or "/", since such a
    fragment is a route for a script.

    A code host adds "user-content-" to the ids in a text of its users, and a script of the host
    leads to them without it.
    """
    if not names_place(fragment):
        return ()
    fragment = fragment.partition(_DIRECTIVE)[0]
    decoded = fragment
    if "%" in fragment:
        decoded = unquote_to_bytes(fragment).decode("utf-8", "replace")
    names = dict.fromkeys((fragment, decoded))
    return (*names, *(_CODE_HOST + name for name in names))


def names_place(fragment: str) -> bool:
    """Whether a fragment needs a place in its page; see `names_of`."""
    name = fragment.partition(_DIRECTIVE)[0]
    if not name or name[0] in "!/":
        return False
    if len(name) < len("top") or (len(name) > len("top") and "%" not in name):
        return True
    return unquote_to_bytes(name).lower() != b"top"


class Places(AbstractSet[int]):
    """The keys of the places of a page, made from their names when the first one is asked for.

    ▶ A check in memory asks for hardly any: the keys of python3-doc would take a fifteenth of it.
    """

    def __init__(self, names: Collection[str]) -> None:
        self.names = names

    @cached_property
    def _keys(self) -> frozenset[int]:
        return frozenset(map(key_of, self.names))

    def __contains__(self, key: object) -> bool:
        return key in self._keys

    def __iter__(self) -> Iterator[int]:
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self.names)

    __hash__ = AbstractSet._hash
    _from_iterable = frozenset


def places_of(names: Collection[str]) -> AbstractSet[int]:
    """Return the keys of distinct ids."""
    # One id may have all of a page's 10 MiB, so that long ones are not kept.
    short = len("".join(names)) <= _MOST_TEXT
    return Places(names) if short else frozenset(map(key_of, names))


def key_of(name: str) -> int:
    """Return the 64-bit key of an id, the same in each run."""
    return _key(name) if len(name) <= _LONGEST else _key.__wrapped__(name)


# ▶ Most fragments are ids, and the pages of a site have many ids in common: the keys of Apache's
# documentation take a quarter of the time.
_LONGEST, _MOST_TEXT = 256, 64 * 1024


@lru_cache(32_768)
def _key(name: str) -> int:
    digest = blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little")
