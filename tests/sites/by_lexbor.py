"""What a page points to and contains by the tree of lexbor, to compare our reader with."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from selectolax.lexbor import LexborHTMLParser, LexborNode

URLS = {
    ("a", "href"): "a",
    ("area", "href"): "a",
    ("audio", "src"): "media",
    ("blockquote", "cite"): "link",
    ("body", "background"): "image",
    ("button", "formaction"): "form",
    ("embed", "src"): "object",
    ("form", "action"): "form",
    ("frame", "src"): "frame",
    ("iframe", "src"): "frame",
    ("img", "src"): "image",
    ("input", "formaction"): "form",
    ("object", "data"): "object",
    ("q", "cite"): "link",
    ("script", "src"): "script",
    ("source", "src"): "media",
    ("td", "background"): "image",
    ("track", "src"): "media",
    ("video", "src"): "media",
    ("video", "poster"): "image",
}
IN_SVG = {"a": "a", "image": "image", "use": "image", "script": "script"}
RELS = {"stylesheet": "style", "icon": "icon", "next": "link", "preload": "preload"}


def pointers(text: str) -> Counter[tuple[str, str]]:
    """Count the kinds and values of URLs in attributes, without `srcset` and `style`."""
    return Counter(each for node in nodes(text) for each in of_node(node))


def targets(text: str) -> set[str]:
    """Return the ids of a page, and the names of its `a`."""
    found = {node.attributes.get("id") for node in nodes(text)}
    found |= {
        node.attributes.get("name")
        for node in nodes(text)
        if node.tag == "a" and not is_foreign(node)
    }
    return {each for each in found if each}


def nodes(text: str) -> Iterator[LexborNode]:
    """Yield the elements of a page; those in a `template` are not in its tree."""
    tree = LexborHTMLParser(text)
    yield from tree.css("*")


def is_foreign(node: LexborNode) -> bool:
    """Whether an element is one of SVG or MathML."""
    above: set[str] = set()
    parent: LexborNode | None = node
    while parent is not None and parent.tag not in ("svg", "math"):
        above.add(str(parent.tag).lower())
        parent = parent.parent
    if parent is None:
        return False
    above -= {str(node.tag).lower()}
    return parent.tag == "math" or not above & {"foreignobject", "desc", "title"}


def of_node(node: LexborNode) -> Iterator[tuple[str, str]]:
    """Yield the kinds and values of one element."""
    tag, attributes = str(node.tag), {name: text or "" for name, text in node.attributes.items()}
    if is_foreign(node):
        name = "href" if "href" in attributes else "xlink:href"
        if tag in IN_SVG and name in attributes and (attributes[name].strip() or tag == "a"):
            yield IN_SVG[tag], attributes[name]
        return
    if tag == "link" and attributes.get("href", "").strip():
        for rel in attributes.get("rel", "").split():
            yield RELS[rel], attributes["href"]
    if tag == "input" and attributes.get("type") == "image" and attributes.get("src", "").strip():
        yield "image", attributes["src"]
    for name, value in attributes.items():
        kind = URLS.get((tag, name))
        if kind is not None and (value.strip() or kind == "a"):
            yield kind, value


is_left_open = re.compile(
    r"<svg\b(?:(?!</svg).)*?</(?:a|b|div|form|noscript|object|video)\b"
    r"|<template\b(?:(?!</template).)*<object\b(?:(?!</object).)*</template",
    re.IGNORECASE | re.DOTALL,
).search
"""Find an <svg> without its end that the end of an element around it may end, and an <object> in
a <template> without its end.

To see the first needs a stack of all open elements, which our readers do without: until the next
tag that ends SVG in any case, such as <p> or <div>, they take what follows for SVG. Behind the
second a tree has the <a> of the template again (13.2.4.3, reconstruct the active formatting
elements), since the marker of the object is cleared in place of the template's.
"""
