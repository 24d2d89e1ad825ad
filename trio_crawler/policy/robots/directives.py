"""Robots directives of one page: X-Robots-Tag fields and robots meta elements."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import httpx

from trio_crawler.policy.robots.parse import product_token

MAX_DIRECTIVES = 50
"""The most directives kept from the header fields of one page, and from its meta elements."""

_LONGEST = 100
"""The most characters of a directive; no date in one is that long."""

_MAX_TEXT = 4_096
"""The most characters that are read of one field or attribute."""

# A date has a comma before its day.
_COMMA = re.compile(r",(?!\s*[0-9])")
_VALUED = re.compile(r"unavailable_after|max-[a-z-]+")
_AGENT = re.compile(r"\*|[a-z0-9_-]\S*")


def header_directives(headers: httpx.Headers, token: str) -> tuple[str, ...]:
    """Return the directives of all X-Robots-Tag fields that are for all agents or for this one.

    They are in lower case, distinct and in order; "none" becomes "noindex" and "nofollow".
    `token` is a product token. In a field such as "somebot: noindex, nofollow" all directives are
    for that agent, up to the next agent that the field names.
    """
    fields = headers.get_list("x-robots-tag")
    return _distinct(each for text in fields for each in _for_agent(text, token.lower()))


def meta_directives(contents: Iterable[str]) -> tuple[str, ...]:
    """Return the directives in the `content` attributes of meta elements.

    They have the form that `header_directives` documents. The caller chooses the elements:
    `<meta name=robots>`, and those that are named after its product token.
    """
    return _distinct(
        each for text in contents for part in _elements(text) for each in _words(part)
    )


def _for_agent(text: str, token: str) -> Iterator[str]:
    ours = True
    for element in _elements(text):
        name, colon, rest = element.partition(":")
        if colon and _AGENT.fullmatch(name) and not _VALUED.fullmatch(name):
            ours = name == "*" or (token != "" and product_token(name) == token)
            element = rest
        if ours:
            yield from _words(element)


def _elements(text: str) -> Iterator[str]:
    for part in _COMMA.split(text[:_MAX_TEXT].lower()):
        yield ":".join(piece.strip() for piece in part.split(":"))


def _words(element: str) -> Iterable[str]:
    """Return the directives of one element; white space separates them, but not in a value."""
    return [element] if ":" in element else element.split()


def _distinct(elements: Iterable[str]) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for element in elements:
        if len(found) >= MAX_DIRECTIVES:
            break
        if element == "none":
            found.update({"noindex": None, "nofollow": None})
        elif len(element) <= _LONGEST:
            found[element] = None
    return tuple(found)[:MAX_DIRECTIVES]
