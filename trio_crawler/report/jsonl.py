"""Outcomes as JSON Lines: one object a line, for programs."""

from __future__ import annotations

import json
from typing import Any, assert_never

import msgspec

from trio_crawler.arguments import check_kind
from trio_crawler.model import Checked, Failure, Outcome, Page, Redirect, RejectedLink, Skipped
from trio_crawler.report.visible import json_visible

_encoder = msgspec.json.Encoder()


def to_jsonl(outcome: Outcome) -> bytes:
    r"""Return one outcome as a JSON object and a newline.

    The keys, in this order; a key is always present unless noted:

    - every kind: `kind` ("page", "redirect", "failure", "skipped", "checked"), `url`;
    - page: `status`, `content_type`, `charset`, `title` (or null), `size` (bytes of the body),
      `depth`, `referrer` (or null), `tries`, `seconds` (to the millisecond), `links` (URLs, in
      document order), `links_beyond` (only if links were cut off), `rejected` (objects with
      `url` and `reason`), `flaws` (reasons), and only if they have a value: `canonical` (the
      URL that the page names as its own), `robots` (directives for robots, such as "noindex"),
      `duplicate_of` (the first URL with the same body, or the canonical one) and `folded_into`
      (the canonical URL that was crawled in place of this page);
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
    """
    check_kind("outcome", outcome, Outcome, "an outcome")
    record = _record(outcome)
    if outcome.again:
        record["again"] = True
    try:
        encoded = _encoder.encode(record)
    except UnicodeEncodeError:
        # A lone surrogate, from a malformed href or title: UTF-8 has no bytes for it.
        encoded = json.dumps(record, separators=(",", ":")).encode()
    return json_visible(encoded) + b"\n"


to_jsonl.__module__ = "trio_crawler.report"


def _record(outcome: Outcome) -> dict[str, Any]:
    match outcome:
        case Page():
            return _page(outcome)
        case Redirect():
            return _redirect(outcome)
        case Failure():
            return _failure(outcome)
        case Skipped():
            return _skipped(outcome)
        case Checked():
            return _checked(outcome)
        case _:
            assert_never(outcome)


def _page(page: Page) -> dict[str, Any]:
    record = {
        "kind": "page",
        "url": page.url,
        "status": page.status,
        "content_type": page.content_type,
        "charset": page.charset,
        "title": page.title,
        "size": page.size,
        **_request_fields(page),
        "links": page.links,
    }
    if page.links_beyond:
        record["links_beyond"] = page.links_beyond
    record |= {"rejected": [_rejected(link) for link in page.rejected], "flaws": page.flaws}
    optional = {
        "canonical": page.canonical,
        "robots": page.robots,
        "duplicate_of": page.duplicate_of,
        "folded_into": page.folded_into,
    }
    return record | {key: value for key, value in optional.items() if value}


def _redirect(redirect: Redirect) -> dict[str, Any]:
    return {
        "kind": "redirect",
        "url": redirect.url,
        "status": redirect.status,
        "target": redirect.target,
        "reason": redirect.rejected,
        **_request_fields(redirect),
    }


def _failure(failure: Failure) -> dict[str, Any]:
    record = {
        "kind": "failure",
        "url": failure.url,
        "reason": failure.reason,
        "detail": failure.detail,
    }
    if failure.phase:
        record["phase"] = failure.phase
    if failure.about:
        record["about"] = failure.about
    return record | {"target": failure.target, **_request_fields(failure)}


def _skipped(skipped: Skipped) -> dict[str, Any]:
    return {
        "kind": "skipped",
        "url": skipped.url,
        "reason": skipped.reason,
        "depth": skipped.depth,
        "referrer": skipped.referrer,
    }


def _checked(checked: Checked) -> dict[str, Any]:
    record = {
        "kind": "checked",
        "url": checked.url,
        "status": checked.status,
        "reason": checked.reason or checked.rejected,
        "detail": checked.detail,
    }
    if checked.phase:
        record["phase"] = checked.phase
    return record | {"target": checked.target, **_request_fields(checked)}


def _request_fields(outcome: Page | Redirect | Failure | Checked) -> dict[str, Any]:
    return {
        "depth": outcome.depth,
        "referrer": outcome.referrer,
        "tries": outcome.tries,
        "seconds": round(outcome.seconds, 3),
    }


def _rejected(link: RejectedLink) -> dict[str, str]:
    return {"url": link.url, "reason": link.reason}
