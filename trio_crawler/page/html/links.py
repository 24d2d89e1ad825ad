"""Read everything that a page of HTML or XHTML points to: with the places, or in one scan without.

▶ The tags come from our own tokenizer for every page. lexbor's tree, with the attributes of all
elements that may point somewhere, takes 1.29 ms for a page of python3-doc (336 links, 96 KB), and
has no places or spellings. The tokenizer takes 1.24 ms with these and the texts of links, and no
page makes it quadratic. On the 1,540 pages of python3-doc, sqlite3-doc and apache2-doc both find
the same; where tags are misnested, the tree repeats a link.

A scan gives a page up whose SVG, MathML or `template` contains more than they mostly do:
`read_links` and `fragments.read_targets` read such a page.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache, partial
from operator import attrgetter
from typing import Any, NamedTuple, TypeAlias

from trio_crawler.expressions import lazy
from trio_crawler.link import Link, LinkKind
from trio_crawler.page import accelerator, css, entities, link_targets, urls
from trio_crawler.page.html import anchors
from trio_crawler.page.html.pointers import (
    MAX_TEXT,
    MAX_WRITTEN,
    Pointer,
    described,
    kind_of_rel,
    pointers,
)
from trio_crawler.page.html.start_tags import (
    PLACE,
    USE,
    StartTag,
    attributes,
    is_style_sheet,
    start_tags,
)
from trio_crawler.page.link_targets import (
    MARK,
    Pointed,
    Target,
    Urls,
    Wanted,
    fragments_in,
    is_cut,
    resolve_base,
    wanted_of,
)

# The names of links as `start_tags` tells them, and the kinds that they may have.
_LINKS, _OF_LINKS = frozenset({"", "a", "area"}), frozenset({LinkKind.A, LinkKind.CSS})
# An escape, or an address of IPv6: in all tags but links it may be written otherwise.
_IS_ODD = re.compile(r"[%\[]").search
# A usual tag of an outline, after the NUL of its mark.
_USUAL = re.compile(
    rb'([ \x01])([0-9]+),([0-9]+)--><(link|script|img)((?: [a-z_-]+="[^"]*+")++) ?/?>'
).match
_APART = b"\xff"  # no byte of UTF-8
_ODD = b"\1"  # the mark of a tag that may be written otherwise; a page may have it, too
_MOST_PARTS = 8  # more are not sought in each tag
_MAX_FRAMES = 3  # documents in a srcdoc of a srcdoc are not read


class FoundLinks(NamedTuple):
    """The links of a document in its order, and how many were not read."""

    links: Sequence[Link]
    beyond: int = 0


def read_links(
    text: str,
    url: str,
    *,
    encoding: str = "utf-8",
    xml: bool = False,
    max_links: int = 100_000,
    wanted: Wanted | None = None,
    within: Collection[str] | None = None,
    outlined: bool = False,
) -> FoundLinks:
    """Return everything that a page points to, in document order; repeated links are repeated.

    `url` is the normalised URL of the document, and `encoding` its encoding. The content of
    `template` is ignored, since a browser does not show it; that of `noscript` is read, as in a
    browser without scripts. At most `max_links` links are read, with distinct URLs of at most
    4 MiB, and 500,000 tags that may contain one or have an id; `beyond` counts the links that were
    left out (at least one if tags were). Only links that are `wanted` are returned, None
    for all, and only those `within` elements with these names. If the text is `outlined`, it is of
    an outline: see `_scan.pyi`.
    """
    collector = _Collector(max_links)
    collector.read(text, xml=xml, within=within)
    base = url if collector.base is None else resolve_base(collector.base, url, encoding)
    links, left_out = link_targets.links(
        text, collector.rows, base, encoding, wanted, _shown, outlined=outlined
    )
    return FoundLinks(links, collector.beyond + left_out)


def read_outline(
    outline: bytes,
    url: str,
    max_links: int,
    wanted: Mapping[str, Wanted],
    encoding: str = "utf-8",
) -> Sequence[Link]:
    """Return the links of a page in an `encoding` by its outline as `read_links` does.

    Of each kind the `wanted` ones are returned, and perhaps others. Links to places of the page
    itself may be left out.
    """
    # If there is a base, all are together.
    end = outline.find(_APART)
    apart = end + 1 < len(outline)
    links = [kind for kind in wanted if apart and kind in _OF_LINKS]
    rest = [kind for kind in wanted if not (apart and kind == LinkKind.A)]
    read = partial(read_links, url=url, encoding=encoding, max_links=max_links, outlined=True)
    found = list[Link]()
    if apart and rest and (usual := _usual(outline[:end], wanted, rest, url)) is not None:
        found, rest = usual, []
    for kinds, part, within in ((links, slice(end + 1, None), _LINKS), (rest, slice(end), None)):
        if kinds:
            some = wanted_of(wanted, kinds)
            parts = _parts_of(some, url, of_links=within is not None)
            found += read(_some_of(outline[part], parts), wanted=some, within=within).links
    found.sort(key=attrgetter("line", "column"))
    return found[:max_links]


def _usual(
    tags: bytes, wanted: Mapping[str, Wanted], kinds: Iterable[str], own: str
) -> list[Link] | None:
    """Return the wanted links of an outline if each URL has one usual tag for itself; None if not.

    ▶ Many sites have one fault on each page, in the same element: this takes 10 us, not 16.
    """
    found, odd, start = list[Link](), 0, MARK.encode()
    # A value that is not known here is read by `read_links`, and so is all that is not usual.
    known = urls.links_of(urls.directory(own))
    for kind in kinds:
        for url, named in wanted[kind].items():
            parts = _parts_of({url: None}, own, of_links=False) if named is None else None
            part = parts[0].encode() if parts else b""
            at = tags.find(part)
            alone = part and at >= 0 and tags.find(part, at + 1) < 0
            tag = _USUAL(tags, tags.rfind(start, 0, at) + len(start)) if alone else None
            if tag is None:
                return None
            mark, line, column, name, source = tag.groups()
            its, _ = pointers(name.decode(), source.decode(), foreign=False)
            if len(its) != 1:
                return None
            pointer = its[0]
            if pointer.kind != kind or known.get(pointer.value, pointer.value) != url:
                return None
            about = described(pointer.attributes), int(line), int(column), pointer.written
            found.append(Link(url, pointer.kind, "", *about, pointer.nofollow))
            odd += mark == _ODD
    return found if odd == tags.count(_ODD) else None


def _parts_of(wanted: Wanted, own: str, *, of_links: bool) -> list[str] | None:
    """Return what is in the source of each link to a wanted URL; None if that is unknown.

    `own` is the URL of the page. A link without an escape is written with the last segment of its
    path and with its fragment: only those of the page and of directories need not be. What follows
    a "?" may have references, since the scanner does not mark such a link. Of `a` and `area`
    (`of_links`) it marks all that may be written otherwise; of other elements it does not mark
    escapes, and hosts and schemes in capitals.
    """
    home, parts = own[: own.index("/", len("https://")) + 1], list[str]()
    for url, named in wanted.items():
        path, mark, _ = url.partition("?")
        end = path[max(path.rfind("/"), path.find(":")) + 1 :]
        if url == own:
            end = ""
        elif mark:
            parts.append(mark if own.startswith(path) else end + mark)
            continue
        elif not end and "/" in url and not url.startswith(home):
            name = url.split("/")[-2]
            end = f"{name if of_links else name.rpartition(':')[2]}/"
            if url.count("/") == len("://"):
                # The home page of a site: its host is written, unless it is an address.
                end = name.partition(":")[0] if of_links and name.islower() else ""
        before = "" if url.endswith("/") else end
        for each in ("",) if named is None else named:
            parts.append(f"{before}#{each}" if each and "?" not in each else end)
    unknown = "" in parts or (not of_links and any(map(_IS_ODD, parts)))
    return None if unknown else parts


def _some_of(outline: bytes, parts: Collection[str] | None) -> str:
    """Return the tags of an outline that have a part, and perhaps others."""
    if parts is None or len(parts) > _MOST_PARTS:
        return outline.decode()
    start, chosen = MARK.encode(), dict[int, int]()
    # ▶ The mark is one byte, which is found in a fiftieth of the time of several.
    for part in (_ODD, *(each.encode() for each in parts)):
        at = outline.find(part)
        while at >= 0:
            end = outline.find(start, at + 1)
            end = len(outline) if end < 0 else end
            chosen[outline.rfind(start, 0, at + len(start))] = end
            at = outline.find(part, end)
    return b"".join([outline[at : chosen[at]] for at in sorted(chosen)]).decode()


class _Collector:
    """A collector of the links of a document, and of the documents in its frames."""

    def __init__(self, max_links: int, frames: int = _MAX_FRAMES) -> None:
        self.rows: list[link_targets.Row] = []
        self.base: str | None = None
        self.beyond = 0
        self._room, self._frames = max_links, frames

    def read(self, text: str, *, xml: bool, within: Collection[str] | None = None) -> None:
        """Add the links of a document, or those within elements of some names."""
        rows, usual = self.rows, LinkKind.A
        for tag in start_tags(text, xml=xml):
            if within is not None and tag[0] not in within:
                continue
            name, start, begin, end, content, _, foreign = tag
            if not name:
                href = text[begin:end]
                if self._room <= 0:
                    self.beyond += 1
                    continue
                self._room -= 1
                value = entities.in_attribute(href) if "&" in href or "\0" in href else href
                rows.append((start, usual, value, href[:MAX_WRITTEN], content, False))
            elif name == PLACE:
                continue
            elif name == "/":
                self.beyond += 1
            elif name == "base" and not foreign:
                if self.base is None and "href" in (found := attributes(text[begin:end])):
                    self.base = entities.in_attribute(found["href"])
            else:
                empty = xml and text.startswith("/>", content - 2)
                inside = content if name == "a" and not empty else 0
                self._add(pointers(name, text[begin:end], foreign=foreign)[0], start, inside)
                if name == "style":
                    self._read_style(text, tag)
                elif name == "iframe" and not foreign:
                    self._read_frame(text[begin:end], start)

    def _add(self, found: Iterable[Pointer], start: int, content: int = 0) -> None:
        for kind, value, written, given, nofollow in found:
            if self._room <= 0:
                self.beyond += 1
                continue
            self._room -= 1
            self.rows.append((start, kind, value, written, (content, given), nofollow))

    def _read_style(self, text: str, tag: StartTag) -> None:
        _, _, begin, end, content, content_end, foreign = tag
        if not is_style_sheet(text[begin:end]):
            return
        if foreign:
            # In SVG the content of a style is no raw text: it ends at the next tag.
            close = "]]>" if text.startswith("<![CDATA[", content) else "<"
            content_end = text.find(close, content)
        for url, written, at, imported in css.style_urls(text, content, content_end):
            kind = LinkKind.STYLE if imported else LinkKind.CSS
            self._add((Pointer(kind, url, written[:MAX_WRITTEN]),), at)

    def _read_frame(self, source: str, start: int) -> None:
        srcdoc = attributes(source).get("srcdoc")
        if srcdoc is None or self._frames == 0:
            return
        inner = _Collector(self._room, self._frames - 1)
        text = entities.in_attribute(srcdoc)
        inner.read(text, xml=False)
        for at, kind, value, written, shown, nofollow in inner.rows:
            told = shown if isinstance(shown, str) else _shown(text, at, shown)
            self.rows.append((start, kind, value, written, told, nofollow))
        self.beyond += inner.beyond
        self._room = inner._room


def _shown(text: str, start: int, told: link_targets.Told) -> str:
    """Return the visible text of a link, or what its attributes say."""
    content, given = (told, None) if isinstance(told, int) else told
    shown = anchors.read_until_end(text, content)[0] if content else ""
    if not shown:
        return described(attributes(text[start + 2 : content - 1]) if given is None else given)
    return shown if len(shown) <= MAX_TEXT else shown[:MAX_TEXT].rstrip()


_MAX_CHARACTERS, _MAX_BYTES = 1 << 20, 1 << 22
_HARD = ("svg", "math", "/")
_SHORT = 512

_Value: TypeAlias = str | Target

# A URL without a path: it leads to the page itself, not to its directory.
_OF_PAGE = lazy(r"[\x00-\x20]*+ (?: https?: )?+ [\x00-\x20]*+ (?: [?\#] | \Z )", re.I | re.X)


class Scan(NamedTuple):
    """What a page points to, with whole URLs, and its places.

    `links` are the URLs of `a` and `area`, `nofollow` those with rel=nofollow, both without the
    fragments that name places of the page, and `others` the rest: the kinds of all other elements,
    and what is malformed. References are not decoded in the `title`. `outline` has the links to
    all this and their texts in UTF-8, for `read_outline`, but for links to places of the page. It
    is empty if the page was read in Python. With `is_usual` no URL or href is to be shortened.
    """

    links: Urls
    nofollow: Urls
    others: Pointed
    places: set[str]
    base: str
    title: str | None
    outline: bytes
    is_usual: bool


def scan(source: str | bytes, url: str, encoding: str = "utf-8") -> Scan | None:
    """Return the targets that `read_links` would find in HTML, and the places.

    Bytes are UTF-8 and read by the compiled scanner, a text is read in Python. None if that is not
    there, if the page is not simple, or has more than 4 MiB or 1 MiB of characters, or if its URLs
    have more than 4 MiB.
    """
    home = urls.directory(url)
    joining = urls.joining(home, encoding)
    if isinstance(source, str):
        read = _targets(source, home if joining else None)
    else:
        targets = accelerator.targets
        if targets is None or len(source) > _MAX_BYTES:
            return None
        about = entities.in_attribute, _element, _elements(home), _KINDS, url
        read = targets(source, *about, *joining)
    if read is None:
        return None
    links, nofollow, kinds, rest, places, base, title, outline = read
    alike = joining and base is None and _are_few(rest, home)
    pointed = Pointed(kinds, {})
    # The links that are no URLs yet, each with the number of URLs before it; what else depends on
    # the page.
    inside: list[tuple[int, _Value]] = []
    own: list[tuple[LinkKind, _Value, bool]] = []
    for at, found in rest.values():
        if isinstance(found, str):
            inside.append((at, _target(found, home if alike else None)))
            continue
        for each in found:
            if each[0] is not LinkKind.A or each[2]:
                own.append(each)
            else:
                inside.append((at, each[1]))
    start = url if base is None else resolve_base(entities.in_attribute(base), url, encoding)
    by_value: dict[str, Target] = {}
    values = [value for _, value in inside] + [value for _, value, _ in own]
    if unresolved := [value for value in values if isinstance(value, str)]:
        by_value = link_targets.resolve(unresolved, start, encoding, whole=True)
        if len(by_value) < len(set(unresolved)):
            return None
    known, done = list(links.items()) if inside else [], 0
    if inside:
        links = {}
    for at, value in inside:
        link_targets.merge(links, known[done:at])
        done = at
        pointed.add(LinkKind.A, by_value[value] if isinstance(value, str) else value, links)
    link_targets.merge(links, known[done:])
    for kind, value, is_nofollow in own:
        end = by_value[value] if isinstance(value, str) else value
        pointed.add(kind, end, nofollow if is_nofollow else None)
    for of_links in (links, nofollow):
        if named := of_links.get(url):
            others = [f"{each}\n" for each in fragments_in(named) if each not in places]
            of_links[url] = bytearray("".join(others), "utf-8") or None
    is_usual = not (by_value or any(is_cut(value[0]) for value in values))
    return Scan(links, nofollow, pointed, places, start, title, outline, is_usual)


def _targets(text: str, home: str | None) -> accelerator.Pointing | None:
    """Return what the compiled `targets` does without URLs of usual links, and no outline."""
    if len(text) > _MAX_CHARACTERS or "\0" in text:
        return None
    found: dict[str | tuple[str, str, str], None] = {}
    places, base, title = set[str](), None, None
    for name, _, begin, end, content, content_end, foreign in start_tags(text):
        value = text[begin:end]
        if name == PLACE:
            places.add(entities.in_attribute(value))
        elif not name:
            found[entities.in_attribute(value)] = None
        else:
            told = text[content:content_end] if name == "style" else ""
            found[_HARD[0] if foreign else name, value, told] = None
            if name == "title" and title is None:
                title = text[content:content_end]
            elif name == "base" and base is None:
                base = attributes(value).get("href")
    if base is not None or not _are_few(found, home or ""):
        home = None
    rest, pointed = dict[Any, tuple[int, Any]](), Pointed({}, {})
    for each in found:
        if isinstance(each, str):
            rest[each] = (0, each)
            continue
        element = _element(home, *each)
        if element is None:
            return None
        if element.own:
            rest[each] = (0, element.own)
        for kind, url, fragment in element.others:
            pointed.add(kind, (url, fragment, False))
        places.update(element.places)
    return {}, {}, pointed.kinds, rest, places, base, title, b""


def _are_few(found: Collection[Any], home: str) -> bool:
    """Whether the URLs of what was found may be made, as if no two were the same."""
    return len(found) * len(home) < urls.MAX_CHARACTERS


class Pointing(NamedTuple):
    """What one element points to.

    `own` are the kinds, targets and rel=nofollow of what depends on the page, and of all links: a
    target is as written unless it is known; `others` the kinds, URLs and fragments of the rest.
    """

    own: tuple[tuple[LinkKind, _Value, bool], ...]
    others: tuple[tuple[LinkKind, str, str], ...]
    places: tuple[str, ...]


def _element(home: str | None, name: str, source: str, content: str) -> Pointing | None:
    """Return what an element points to on the pages of a directory.

    The URLs are not made without a directory. None if another reader must read the page.
    """
    if name in _HARD or (name == "iframe" and "srcdoc" in source.lower()):
        return None
    pointing, given = pointers(name, source, foreign=name == USE)
    # A base is never shown, and so its style leads nowhere.
    found = [] if name == "base" else [*pointing]
    if name == "style" and is_style_sheet(source):
        for url, written, _, imported in css.style_urls(content):
            found.append(Pointer(LinkKind.STYLE if imported else LinkKind.CSS, url, written))
    if name == "link" and len(rel := given.get("rel", "")) < _SHORT and len(_KINDS) < _MOST_RELS:
        named = kind_of_rel(rel)
        # What is to be preloaded may have a srcset.
        if named not in (None, LinkKind.PRELOAD) and "&" not in rel:
            _KINDS[rel] = named
    own: list[tuple[LinkKind, _Value, bool]] = []
    others: list[tuple[LinkKind, str, str]] = []
    for kind, value, _, _, nofollow in found:
        target = _target(value, home)
        if kind is LinkKind.A or isinstance(target, str) or is_cut(target[0]):
            own.append((kind, target, nofollow and kind is LinkKind.A))
        else:
            others.append((kind, *target[:2]))
    places = given.get("id", ""), given.get("name", "") if name == "a" else ""
    return Pointing(
        tuple(own), tuple(others), tuple(map(entities.in_attribute, filter(None, places)))
    )


# The kinds of links by their rel, for the compiled scanner. ▶ The next page, the one before and
# the canonical one are most elements that are on one page only: each took 10 us in Python.
_KINDS: dict[str, LinkKind] = {}
_MOST_RELS = 1_024


@lru_cache(64)
def _elements(home: str) -> dict[bytes, Any]:
    """Return what `_element` returned for the pages of a directory, by the source of elements."""
    return {}


def _target(value: str, home: str | None) -> _Value:
    if home is None or len(value) > _SHORT or _OF_PAGE.match(value):
        return value
    if "?" in value and not value.isascii():
        # The query depends on the encoding of the page.
        return value
    try:
        return urls.in_directory(value, home), link_targets.fragment_of(value), False
    except ValueError:
        return value
