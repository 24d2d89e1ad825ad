"""Outcomes as JSON Lines: one object a line, for programs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from typing import Any, assert_never

import msgspec

from trio_crawler.arguments import check_iterable, check_kind
from trio_crawler.facts import PageFacts
from trio_crawler.ledger.ledger import Ledger
from trio_crawler.ledger.rows import REDIRECT
from trio_crawler.model import Checked, Failure, Outcome, Page, Redirect, Skipped
from trio_crawler.report.visible import json_visible

_encoder = msgspec.json.Encoder()
_MOST_HOPS = 20


def to_jsonl(outcome: Outcome) -> bytes:
    r"""Return one outcome as a JSON object and a newline.

    The keys, in this order; a key is always present unless noted:

    - every kind: `kind` ("page", "redirect", "failure", "skipped", "checked"), `url`;
    - page: `status`, `content_type`, `charset`, `title` (or null), `size` (bytes of the body),
      `depth`, `referrer` (or null), `tries`, `seconds` (to the millisecond), `links` (URLs, in
      document order), `links_beyond` (only if links were cut off), `rejected` (objects with
      `url` and `reason`), `flaws` (reasons), and only if they have a value: `canonical` (the
      URL that the page names as its own), `robots` (directives for robots, such as "noindex"),
      `duplicate_of` (the first URL with the same body, or the canonical one), `folded_into`
      (the canonical URL that was crawled in place of this page) and `facts` (an object with the
      fields of `PageFacts`, all of them; `fetched` is a date and time of ISO 8601, in UTC);
    - redirect: `status`, `target`, `reason` (why the target was not admitted, or null),
      `depth`, `referrer`, `tries`, `seconds`;
    - failure: `reason`, `detail`, `phase` (of the last try; only if it is known),
      `about` ("robots", only if robots.txt failed), `target` (or null),
      `depth`, `referrer`, `tries`, `seconds`;
    - skipped: `reason`, `depth`, `referrer`;
    - checked, a URL outside the crawl that was only checked: `status` (or null), `reason` (why
      there is no answer, or why the target is not checked; or null), `detail`, `phase` (only if it
      is known), `target` (of a redirect, or null), `depth`, `referrer`, `tries`, `seconds`;
    - every kind: `again` (true, only if the URL was admitted again: see `Job.again`). Its line
      follows that of a redirect with the same URL.

    The line is UTF-8. Control and direction characters and lone surrogates are written as
    ``\uXXXX``; two surrogates that together form a character are read back as that character.
    Bodies and headers are left out.

    >>> line = json.loads(to_jsonl(Redirect("https://e.org/old", 301, "https://e.org/new")))
    >>> line["url"], line["status"], line["target"]
    ('https://e.org/old', 301, 'https://e.org/new')
    """
    check_kind("outcome", outcome, Outcome, "an outcome")
    record = record_of(outcome)
    try:
        encoded = _encoder.encode(record)
    except UnicodeEncodeError:
        # A lone surrogate, from a malformed href or title: UTF-8 has no bytes for it.
        encoded = json.dumps(record, separators=(",", ":")).encode()
    return json_visible(encoded) + b"\n"


to_jsonl.__module__ = "trio_crawler.report"


def jsonl_with_links(entries: Iterable[bytes], ledger: Ledger) -> Iterator[bytes]:
    r"""Yield lines of `to_jsonl` with what the ledger of a whole crawl knows of their URLs.

    Of each outcome `entries` has its URL in JSON on a line, and its own line. The keys are
    `inlinks`, the number of pages that link to the URL inside the scope, and `redirected_from`,
    the URLs of the redirects that lead to it, the first one first.

    >>> failure = Failure("https://e.org/", Reason.DNS)
    >>> with Ledger() as ledger:
    ...     ledger.add(failure)
    ...     lines = [b'"https://e.org/"\n', to_jsonl(failure)]
    ...     json.loads(next(jsonl_with_links(lines, ledger)))["inlinks"]
    0
    """
    check_iterable("entries", entries, "URLs and lines of to_jsonl")
    check_kind("ledger", ledger, Ledger, "a Ledger")
    rest, about = iter(entries), leading_to(ledger)

    def line(url: bytes) -> bytes:
        inlinks, way = about(json.loads(url))
        more = _encoder.encode({"inlinks": inlinks, "redirected_from": way})
        return next(rest).removesuffix(b"}\n") + b"," + json_visible(more)[1:] + b"\n"

    return map(line, rest)


jsonl_with_links.__module__ = "trio_crawler.report"


def leading_to(ledger: Ledger) -> Callable[[str], tuple[int, list[str]]]:
    """Return a function that returns the inlinks of a URL, and the redirects that lead to it."""
    inlinks, sources = ledger.inlinks(), dict[int, str]()
    for url, row in ledger.ends(REDIRECT):
        # Of several redirects to one URL the first by its name.
        target = ledger.usual(row.target)
        sources[target] = min(url, sources.get(target, url))

    def about(url: str) -> tuple[int, list[str]]:
        number, way, at = ledger.number(url), dict[str, None](), url
        while (known := ledger.number(at)) in sources and len(way) < _MOST_HOPS:
            at = sources[known]
            if at in way:
                break
            way[at] = None
        return inlinks[number] if number is not None else 0, [*reversed(way)]

    return about


def record_of(outcome: Outcome) -> dict[str, Any]:
    """Return the keys and values of one outcome; they are those of a line of CSV as well."""
    about: dict[str, Any] = {"url": outcome.url}
    match outcome:
        case Page() as page:
            about |= {
                "status": page.status,
                "content_type": page.content_type,
                "charset": page.charset,
                "title": page.title,
                "size": page.size,
                **_request_fields(page),
                "links": page.links,
                **_present(links_beyond=page.links_beyond),
                "rejected": [{"url": url, "reason": reason} for url, reason in page.rejected],
                "flaws": page.flaws,
                **_present(
                    canonical=page.canonical,
                    robots=page.robots,
                    duplicate_of=page.duplicate_of,
                    folded_into=page.folded_into,
                    facts=page.facts and facts_record(page.facts),
                ),
            }
        case Redirect(status=status, target=target, rejected=rejected):
            about |= {"status": status, "target": target, "reason": rejected}
            about |= _request_fields(outcome)
        case Failure(reason=reason, detail=detail, target=target):
            about |= {"reason": reason, "detail": detail}
            about |= _present(phase=outcome.phase, about=outcome.about)
            about |= {"target": target, **_request_fields(outcome)}
        case Skipped(reason=reason, depth=depth, referrer=referrer):
            about |= {"reason": reason, "depth": depth, "referrer": referrer}
        case Checked(status=status, detail=detail, target=target):
            why = outcome.reason or outcome.rejected
            about |= {"status": status, "reason": why, "detail": detail}
            about |= {**_present(phase=outcome.phase), "target": target}
            about |= _request_fields(outcome)
        case _:
            assert_never(outcome)
    kind = type(outcome).__name__.lower()
    return {"kind": kind, **about, **_present(again=outcome.again)}


def facts_record(facts: PageFacts) -> dict[str, Any]:
    """Return the keys and values of the facts of a page."""
    at = datetime.fromtimestamp(facts.fetched, UTC).isoformat(timespec="seconds")
    return {**msgspec.structs.asdict(facts), "fetched": at.replace("+00:00", "Z")}


def _present(**values: Any) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value}


def _request_fields(outcome: Page | Redirect | Failure | Checked) -> dict[str, Any]:
    return {
        "depth": outcome.depth,
        "referrer": outcome.referrer,
        "tries": outcome.tries,
        "seconds": round(outcome.seconds, 3),
    }
