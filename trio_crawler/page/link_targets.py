"""Resolve the values of links to URLs and fragments, each distinct value once."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import chain
from typing import NamedTuple, TypeAlias

import ada_url

from trio_crawler.expressions import lazy
from trio_crawler.link import Link, LinkKind
from trio_crawler.page import urls

Target: TypeAlias = tuple[str, str, bool]
"""A URL without fragment, the fragment, and whether the value is malformed."""

Told: TypeAlias = int | tuple[int, Mapping[str, str]]
"""The offset of the content that has the text of a link, 0 if none has, and its attributes.

A usual link has only the offset.
"""

Row: TypeAlias = tuple[int, LinkKind, str, str, str | Told, bool]
"""A link before it is resolved: offset, kind, value, spelling, text, nofollow."""


Urls: TypeAlias = dict[str, bytearray | None]
"""URLs without fragment, each with the fragments that `fragments_in` returns; None for none.

▶ As sets of texts those of python3-doc took 8 MB more, and a check of it 2 % more time.
"""

MARK = "<!--\0"
"""The beginning of what tells the place of a tag in an outline: see `_scan.pyi`."""

Wanted: TypeAlias = Mapping[str, Collection[str] | None]
"""URLs that links are wanted to, each with the fragments of these links; None for any.

A malformed text may be among them. With None its links are returned as if it were a URL.
"""


def fragments_in(named: bytes | bytearray) -> list[str]:
    """Return the fragments that are named at a URL, some of them perhaps twice.

    They have a line end behind each, which none contains: the URL Standard leaves it out.
    """
    return named.decode("utf-8", "surrogatepass").split("\n")[:-1]


def wanted_of(wanted: Mapping[str, Wanted], kinds: Iterable[str]) -> Wanted:
    """Return what is wanted of some kinds of links together, by what is wanted of each kind."""
    first, *others = [wanted[kind] for kind in kinds] or [{}]
    if not others:
        return first
    together = dict(first)
    for of_kind in others:
        for url, named in of_kind.items():
            known = together.get(url, ())
            together[url] = None if named is None or known is None else {*known, *named}
    return together


class Pointed(NamedTuple):
    """What a page points to, by the kinds of its links: URLs, and the texts that are malformed."""

    kinds: dict[LinkKind, Urls]
    malformed: dict[LinkKind, dict[str, None]]

    def add(self, kind: LinkKind, target: Target, urls: Urls | None = None) -> None:
        """Add a link, to other `urls` than those of its kind if they are given."""
        url, fragment, malformed = target
        if malformed:
            self.malformed.setdefault(kind, {})[url] = None
            return
        urls = self.kinds.setdefault(kind, {}) if urls is None else urls
        if fragment:
            merge(urls, ((url, bytearray(f"{fragment}\n", "utf-8", "surrogatepass")),))
        else:
            urls.setdefault(url)

    def has_more(self, most: int) -> bool:
        """Whether there are more distinct links, which differ in their fragments or kinds, too."""
        named = [each for urls in self.kinds.values() for each in urls.values() if each]
        links = sum(map(len, self.malformed.values())) + sum(map(len, self.kinds.values()))
        links -= len(named)
        # Nearly no page has so many even if those that are repeated count.
        return links + sum(each.count(b"\n") for each in named) > most and (
            links + sum(len({*fragments_in(each)}) for each in named) > most
        )


def merge(urls: Urls, others: Iterable[tuple[str, bytearray | None]]) -> None:
    """Add other URLs to some; the two may share their fragments."""
    for url, named in others:
        if named and (known := urls.get(url)):
            known += named
        elif named or url not in urls:
            urls[url] = named


# A fragment that the URL Standard does not change.
_SIMPLE = re.compile(r"[!#-;=?-_a-z{-~]*+").fullmatch
_PLAIN = bytes(each for each in range(0x80) if _SIMPLE(chr(each)))
_SURROGATES = lazy("[\ud800-\udfff]")
# A `data:` URL may be as long as its page; its beginning is enough to say what it is.
_BEGINNING = 64
_CUT = ("data:", "javascript:")


def links(
    text: str,
    rows: Iterable[Row],
    base: str,
    encoding: str = "utf-8",
    wanted: Wanted | None = None,
    read_text: Callable[[str, int, Told], str] | None = None,
    *,
    outlined: bool = False,
) -> tuple[list[Link], int]:
    """Return the links of rows in the order of the text, and the number of those left out.

    A link is left out if the distinct URLs have more than 4 MiB. `base` is a normalised URL, and
    `encoding` that of the document. Only links that are `wanted` are returned, None
    for all. `read_text` reads the text of a link, by its offset and what tells it. If the text is
    `outlined`, a mark before each tag tells its place.
    """
    rows = list(rows)
    # ▶ A URL is its own target: to resolve it, too, would take five times as long.
    targets: dict[str, Target] = {
        row[2]: (row[2], "", False) for row in rows if wanted and wanted.get(row[2], ()) is None
    }
    if values := [row[2] for row in rows if row[2] not in targets]:
        targets |= resolve(values, base, encoding)
    found: list[Link] = []
    left_out = 0
    add, new, known = found.append, tuple.__new__, targets.get
    line, line_start, done = 1, 0, 0
    for start, kind, value, written, shown, nofollow in rows:
        if (target := known(value)) is None:
            left_out += 1
            continue
        url, fragment, malformed = target
        if wanted is not None:
            named = wanted.get(url, ())
            if named is not None and fragment not in named:
                continue
        if outlined and (mark := text.rfind(MARK, done, start)) >= 0:
            done = text.index("-->", mark) + len("-->")
            its_line, its_column = text[mark + len(MARK) + 1 : done - len("-->")].split(",")
            line, line_start = int(its_line), done + 1 - int(its_column)
        if done < start and (newlines := text.count("\n", done, start)):
            line += newlines
            line_start = text.rindex("\n", done, start) + 1
        done = start
        if not isinstance(shown, str):
            assert read_text is not None, "a row has an offset"  # noqa: S101 - for mypy
            shown = read_text(text, start, shown)
        column = start - line_start + 1
        # ▶ Link(...) takes 0.4 us, this 0.2: a third of all that is done for a link here.
        link = url, kind, fragment, shown, line, column, written, nofollow, malformed
        add(new(Link, link))
    return found, left_out


def resolve(
    values: Iterable[str], base: str, encoding: str = "utf-8", *, whole: bool = False
) -> dict[str, Target]:
    """Return the target of each value; those beyond 4 MiB of URLs are left out.

    Of a long `data:` or `javascript:` URL only the beginning is returned, unless it is to be
    `whole`.
    """
    distinct = list(dict.fromkeys(values))
    # Nearly no page has a URL that is cut, or a fragment that the URL Standard changes.
    texts = distinct if whole else [_shortened(each) if ":" in each else each for each in distinct]
    hrefs = urls.without_fragments(texts, base)
    alike = list(dict.fromkeys(hrefs))
    found, bad, _ = urls.resolve_within(alike, base, encoding, urls.MAX_CHARACTERS)
    if not whole:
        found = {href: _cut(url) for href, url in found.items()}
    odd = "".join(distinct).encode("utf-8", "surrogatepass").translate(None, _PLAIN)
    if bad or odd or len(found) < len(alike):
        return _with_fragments(dict(zip(distinct, hrefs, strict=True)), found, bad)
    return {
        value: (found[href], value.partition("#")[2], False)
        for value, href in zip(distinct, hrefs, strict=True)
    }


def shortened(pointed: Pointed) -> Pointed:
    """Return what a page points to with the beginnings of `data:` and `javascript:` URLs only."""
    # A `data:` URL of an image may be as long as the page.
    lines = "\n".join(("", *chain.from_iterable(pointed.kinds.values())))
    if not (pointed.malformed or any(f"\n{scheme}" in lines for scheme in _CUT)):
        return pointed
    short = Pointed({}, {})
    for kind, of_kind in pointed.kinds.items():
        cut = ((_cut(url), named) for url, named in of_kind.items())
        merge(short.kinds.setdefault(kind, {}), cut)
    for kind, texts in pointed.malformed.items():
        short.malformed[kind] = dict.fromkeys(map(_shortened, texts))
    return short


def is_cut(url: str) -> bool:
    """Whether only the beginning of a URL is kept."""
    return len(url) > _BEGINNING and url.startswith(_CUT)


def _cut(url: str) -> str:
    return url[:_BEGINNING] if is_cut(url) else url


def _with_fragments(
    hrefs: Mapping[str, str], found: Mapping[str, str], malformed: Iterable[str]
) -> dict[str, Target]:
    """Return the target of each value; those that were not resolved are left out.

    `hrefs` are the values without their fragments, by the values; `found` are the URLs of these
    hrefs, as far as they are not `malformed`.
    """
    malformed = frozenset(malformed)
    targets: dict[str, Target] = {}
    # Nearly always no fragment is changed: to see that for all of them is cheaper than for each.
    simple = _SIMPLE("".join([value.partition("#")[2] for value in hrefs])) is not None
    for value, href in hrefs.items():
        if (url := found.get(href)) is not None:
            at = value.find("#") + 1
            fragment = "" if not at else value[at:] if simple else fragment_of(value)
            targets[value] = url, fragment, False
        elif (text := href.partition("#")[0]) in malformed:
            targets[value] = text, "", True
    return targets


def fragment_of(value: str) -> str:
    """Return the fragment of a URL as the URL Standard serialises it, "" if it has none."""
    fragment = value.partition("#")[2]
    if _SIMPLE(fragment):
        return fragment
    # The rest of the URL changes nothing; the standard works on scalar values.
    return ada_url.URL("a:#" + _SURROGATES.sub("\ufffd", fragment)).hash[1:]


def _shortened(value: str) -> str:
    if len(value) <= _BEGINNING:
        return value
    start = value.lstrip(urls.STRIPPED)[: 2 * _BEGINNING]
    return start if start[:11].lower().startswith(_CUT) else value


def resolve_base(href: str, url: str, encoding: str) -> str:
    """Return the base URL for a href; the document's URL if the href cannot be a base."""
    try:
        base = urls.normalise_in(encoding, href, url)
    except ValueError:
        return url
    return url if base.startswith(_CUT) else base
