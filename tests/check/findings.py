"""Findings for the tests of the exports of a check."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from hypothesis import strategies as st

from trio_crawler.check.facts import CheckFacts
from trio_crawler.check.finding import Finding, Hop
from trio_crawler.model import Reason
from trio_crawler.policy.verdict import Defect, Verdict

PAGE = "https://a.test/docs/"
FACTS = CheckFacts(
    datetime(2026, 11, 23, 13, 0, 0, tzinfo=UTC),
    command="trio-crawler check ./public",
    checked={"a": 120, "image": 7},
    not_checked={("mailto", "other_scheme"): 3, ("a", "robots"): 1},
)

HOSTILE = (
    "<>&\"'`|[]()*_~$#!@:;,{}\\\x00\x1b\n\r\t\x7f\x85\u202e\u2028\ud800\ufffe\uffffä漢😀 a1-./%"
)
texts = st.text(st.sampled_from(HOSTILE) | st.characters(), max_size=30)
codes = st.sampled_from([*map(str, Reason), *map(str, Defect), "404", "403", "301", "999", "599"])
urls = st.sampled_from(["https://a.test/x", "https://b.test/?a=1&copy;=2"]) | texts


def finding(**changed: Any) -> Finding:
    """Return a fault, with some fields changed."""
    fields: dict[str, Any] = {
        "verdict": Verdict.FAULT,
        "url": "https://a.test/gone",
        "code": "404",
        "page": PAGE,
        "kind": "a",
        "line": 3,
        "column": 7,
        "text": "gone",
        "as_written": "/gone",
    }
    return Finding(**(fields | changed))


MOVED = finding(
    verdict=Verdict.NOTE,
    url="https://b.test/old",
    code="301",
    line=1,
    chain=(Hop(301, "https://b.test/new"),),
    external=True,
)
NAMELESS = finding(
    url="https://x.test/", code="no_such_host", page="https://a.test/", line=0, column=0
)
SEED = finding(url="https://seed.test/", code="500", page=None, kind="", line=0, column=0)
SEVERAL = (MOVED, finding(line=9), finding(), NAMELESS, SEED)

hostile = st.builds(
    Finding,
    verdict=st.sampled_from([Verdict.NOTE, Verdict.FAULT]),
    url=urls,
    code=codes,
    page=st.none() | st.just(PAGE) | texts,
    kind=st.sampled_from(["", "a", "image"]),
    fragment=texts,
    line=st.integers(0, 2**40),
    column=st.integers(0, 2**40),
    text=texts,
    as_written=texts,
    detail=texts,
    chain=st.lists(st.builds(Hop, st.just(302), urls), max_size=3).map(tuple),
    external=st.booleans(),
)
several = st.lists(hostile, max_size=8)


def path_of(url: str) -> str | None:
    """Return the file of a page of a.test; what is no folder there is at a server."""
    home = "https://a.test/"
    is_page = url.startswith(home) and url.endswith("/")
    return f"public/{url.removeprefix(home)}index.html" if is_page else None
