"""What compares two crawls finds what is wrong."""

from __future__ import annotations

from collections.abc import Iterable

import httpx
import pytest
from durable import compare
from durable.server import Asked
from durable.site import Site
from msgspec.structs import replace

from trio_crawler import Failure, Outcome, Page, Reason, Redirect
from trio_crawler.model import RejectedLink
from trio_crawler.report.lines import to_jsonl

SITE = Site(60, 1)


def page(url: str, *links: str, **more: object) -> Page:
    return Page(url, 200, httpx.Headers(), b"body", links=links, **more)  # type: ignore[arg-type]


CRAWL: list[Outcome] = [
    page("http://x.test/", "http://x.test/a", "http://x.test/b"),
    page("http://x.test/a", "http://x.test/c"),
    page("http://x.test/b", duplicate_of="http://x.test/a"),
    Redirect("http://x.test/c", 302, "http://x.test/"),
    Failure("http://x.test/d", Reason.TLS),
]


def asked(site: Site, again: Iterable[tuple[str, int]] = ()) -> list[Asked]:
    """Ask for each URL as often as a crawl does, in run 1, and for some again in other runs."""
    runs = [(path, 1) for path in site.urls for _ in range(site.answers[path].tries)]
    runs += [(path, 1) for path in site.busy]
    return [Asked(0.0, run, path, False, 200) for path, run in (*runs, *again)]


def test_equal_crawls_are_equal_in_any_order():
    assert compare.outcomes(reversed(CRAWL), CRAWL) == []


def test_depth_referrer_tries_and_seconds_may_differ():
    about = {"depth": 9, "referrer": "http://x.test/z", "tries": 3, "seconds": 9.0}
    other = [replace(outcome, **about) for outcome in CRAWL]
    assert compare.outcomes(other, CRAWL) == []


def test_which_of_the_copies_came_first_may_differ():
    copies = [("http://x.test/a", "http://x.test/b"), ("http://x.test/b", None)]
    other = [page(url, "http://x.test/c", duplicate_of=first) for url, first in copies]
    refused = RejectedLink("http://x.test/c", Reason.DUPLICATE)
    other[0] = replace(other[0], links=(), rejected=(refused,))
    wanted = [replace(other[0], duplicate_of=None), replace(other[1], duplicate_of=other[0].url)]
    assert compare.outcomes(other, wanted) == []


@pytest.mark.parametrize(
    "other",
    [
        CRAWL[1:],
        [*CRAWL, CRAWL[0]],
        [*CRAWL, page("http://x.test/e")],
        [replace(CRAWL[0], status=404), *CRAWL[1:]],
        [replace(CRAWL[0], links=()), *CRAWL[1:]],
        [replace(CRAWL[0], title="other"), *CRAWL[1:]],
        [*CRAWL[:2], replace(CRAWL[2], duplicate_of=None), *CRAWL[3:]],
        [CRAWL[0], replace(CRAWL[1], duplicate_of=CRAWL[2].url), *CRAWL[2:]],
        [*CRAWL[:3], replace(CRAWL[3], target="http://x.test/a"), CRAWL[4]],
        [*CRAWL[:4], replace(CRAWL[4], reason=Reason.DNS)],
    ],
    ids="lost twice more status links title copy both target reason".split(),
)
def test_what_differs_is_found(other):
    assert compare.outcomes(other, CRAWL)


def test_a_crawl_asks_for_each_url_and_for_some_again_after_a_stop():
    again = [(path, 2) for path in sorted(SITE.urls)[:4]]
    assert compare.requests(asked(SITE), SITE, 2, set()) == []
    assert compare.requests(asked(SITE, again), SITE, 2, {1}) == []


def test_too_many_requests_and_missing_ones_are_found():
    again = [(path, 2) for path in sorted(SITE.urls)[:4]]
    within = [(path, 1) for path in sorted(SITE.urls)[:1]]
    assert compare.requests(asked(SITE, again), SITE, 1, {1})
    assert compare.requests(asked(SITE, again), SITE, 4, set())
    assert compare.requests(asked(SITE, within), SITE, 4, set())
    assert compare.requests([each for each in asked(SITE) if each.path != "/"], SITE, 4, {1})


@pytest.mark.parametrize(
    "written",
    [CRAWL[1:], [*CRAWL, CRAWL[0]], [replace(CRAWL[0], title="other"), *CRAWL[1:]]],
    ids="lost twice other".split(),
)
def test_lines_that_are_not_the_outcomes_are_found(tmp_path, written):
    file = tmp_path / "pages.jsonl"
    file.write_bytes(b"".join(map(to_jsonl, CRAWL)))
    assert compare.lines(file, CRAWL) == []
    file.write_bytes(b"".join(map(to_jsonl, written)))
    assert compare.lines(file, CRAWL)
