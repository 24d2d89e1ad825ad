"""Outcomes and batches to fill a store with."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import httpx
from hypothesis import strategies as st
from msgspec.structs import replace

from trio_crawler.facts import PageFacts
from trio_crawler.model import (
    Anchor,
    Failure,
    Outcome,
    Page,
    Phase,
    Reason,
    Redirect,
    RejectedLink,
    Skipped,
)
from trio_crawler.store.runs import End
from trio_crawler.store.store import Store
from trio_crawler.store.writer import Batch

SITE = "https://a.test/"
NOW = 1_790_000_000.0


def page(path: str = "", **about: Any) -> Page:
    """Make a page of this site."""
    given: dict[str, Any] = {"status": 200, "headers": httpx.Headers(), "body": b"<p>"}
    given |= {"content_type": "text/html", "charset": "utf-8"}
    return Page(url=SITE + path, **(given | about))


def stored(outcome: Outcome) -> Outcome:
    """Return the outcome that is read back."""
    if not isinstance(outcome, Page):
        return outcome
    kept = [(key, outcome.headers.get(key)) for key in ("content-type", "etag", "last-modified")]
    headers = httpx.Headers([(key, value) for key, value in kept if value is not None])
    return replace(outcome, headers=headers, body=b"", body_size=outcome.size)


def batch(outcomes: Iterable[Outcome], first: int = 1, **about: Any) -> Batch:
    """Admit and settle the URLs of outcomes, numbered from the first."""
    made = Batch(**about)
    for number, outcome in enumerate(outcomes, first):
        way = (outcome.depth, 10, outcome.referrer, None)
        made.admitted.append((number, outcome.url, "page", *way))
        made.settled.append((number, NOW + number, outcome))
    return made


def admitted(paths: Iterable[str], first: int = 1) -> Batch:
    """Admit URLs of this site, which then wait."""
    rows = [(n, SITE + path, "page", 0, 10, None, None) for n, path in enumerate(paths, first)]
    return Batch(admitted=rows)


def walk(directory: Any, outcomes: Iterable[Outcome], refresh: bool = False) -> None:
    """Make one walk with these outcomes, and end it."""
    with Store.open(directory, refresh=refresh) as store:
        store.write(batch(outcomes, store.last_number() + 1))
        store.end(End.FINISHED, [], 1.0)


# Whatever a page can hold: NULs, control characters, letters of every script.
texts = st.text(max_size=20) | st.text(st.sampled_from('a/\\"[\0\x1b\x85\ufffd\u202e'), max_size=9)
urls = st.text(st.characters(exclude_categories=["Cs"]), max_size=20).map(SITE.__add__)
maybe = st.none() | texts
reasons = st.sampled_from(Reason)
counts = st.integers(0, 2**63 - 1)
seconds = st.floats(0, 1e9)
refused = st.builds(RejectedLink, texts, reasons)
anchors = st.builds(Anchor, st.sampled_from(["a", "area"]), texts)
values = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=20)
headers = st.fixed_dictionaries(
    {}, optional={"Content-Type": values, "ETag": values, "Last-Modified": values, "Age": values}
).map(httpx.Headers)


@st.composite
def pages(draw: st.DrawFn) -> Page:
    """Make any page; its anchors are of its links."""
    links = draw(st.lists(texts, unique=True, max_size=5))
    others = draw(st.lists(refused, max_size=5))
    named = links + [url for url, _ in others]
    return Page(
        url=draw(urls),
        status=draw(st.integers(200, 599)),
        headers=draw(headers),
        body=draw(st.binary(max_size=9)),
        depth=draw(st.integers(0, 20)),
        referrer=draw(st.none() | urls),
        tries=draw(counts),
        seconds=draw(seconds),
        content_type=draw(texts),
        charset=draw(texts),
        title=draw(maybe),
        links=tuple(links),
        links_beyond=draw(counts),
        rejected=tuple(others),
        flaws=tuple(draw(st.lists(reasons, max_size=3))),
        canonical=draw(maybe),
        robots=tuple(draw(st.lists(texts, max_size=3))),
        duplicate_of=draw(maybe),
        anchors=draw(st.dictionaries(st.sampled_from(named), anchors)) if named else {},
        facts=draw(st.none() | st.builds(PageFacts, seconds, h1=st.lists(urls).map(tuple))),
    )


_way: dict[str, st.SearchStrategy[Any]] = {
    "url": urls,
    "depth": st.integers(0, 20),
    "referrer": st.none() | urls,
}
_tried = _way | {"tries": counts, "seconds": seconds}
outcomes: st.SearchStrategy[Outcome] = st.one_of(
    pages(),
    st.builds(Redirect, **_tried, status=counts, target=texts, rejected=st.none() | reasons),
    st.builds(
        Failure,
        **_tried,
        reason=reasons,
        detail=texts,
        target=maybe,
        phase=st.none() | st.sampled_from(Phase),
    ),
    st.builds(Skipped, **_way, reason=reasons),
)
