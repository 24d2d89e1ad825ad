"""Outcomes as JSON Lines: one object a line, for programs."""

from __future__ import annotations

import json
from typing import Any, assert_never

import msgspec

from trio_crawler.model import Failure, Outcome, Page, Redirect, Refused, Skipped
from trio_crawler.report.visible import json_visible

_encoder = msgspec.json.Encoder()


def line(outcome: Outcome) -> bytes:
    r"""Encode one outcome as a JSON object and a newline.

    The keys, in this order; a key is always there unless it says otherwise:

    - every kind: `kind` ("page", "redirect", "failure", "skipped"), `url`;
    - page: `status`, `content_type`, `charset`, `title` (or null), `size` (bytes of the body),
      `depth`, `referrer` (or null), `tries`, `seconds` (to the millisecond), `links` (URLs, in
      document order), `links_beyond` (only when links were cut off), `refused` (objects with
      `url` and `reason`), `flaws` (reasons), and only where there is something to say
      `canonical` (the URL it calls its own), `robots` (what it asks of robots, such as "noindex")
      and `duplicate_of` (the first URL with the same body, or the canonical one it was folded to);
    - redirect: `status`, `target`, `reason` (why the target was not admitted, or null),
      `depth`, `referrer`, `tries`, `seconds`;
    - failure: `reason`, `detail`, `phase` (only when it is known how far the last try had come),
      `target` (or null), `depth`, `referrer`, `tries`, `seconds`;
    - skipped: `reason`, `depth`, `referrer`.

    The line is UTF-8 and holds no control or direction character but its newline: those are
    written as ``\uXXXX``, and so are lone surrogates (two that spell a character together come
    back as that character). Bodies and headers are left out.
    """
    record = _record(outcome)
    try:
        encoded = _encoder.encode(record)
    except UnicodeEncodeError:
        # A lone surrogate, from a malformed href or title: UTF-8 has no bytes for it.
        encoded = json.dumps(record, separators=(",", ":")).encode()
    return json_visible(encoded) + b"\n"


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
        **_way(page),
        "links": page.links,
    }
    if page.links_beyond:
        record["links_beyond"] = page.links_beyond
    record |= {"refused": [_refused(link) for link in page.refused], "flaws": page.flaws}
    said = {
        "canonical": page.canonical,
        "robots": page.robots,
        "duplicate_of": page.duplicate_of,
    }
    return record | {key: value for key, value in said.items() if value}


def _redirect(redirect: Redirect) -> dict[str, Any]:
    return {
        "kind": "redirect",
        "url": redirect.url,
        "status": redirect.status,
        "target": redirect.target,
        "reason": redirect.refused,
        **_way(redirect),
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
    return record | {"target": failure.target, **_way(failure)}


def _skipped(skipped: Skipped) -> dict[str, Any]:
    return {
        "kind": "skipped",
        "url": skipped.url,
        "reason": skipped.reason,
        "depth": skipped.depth,
        "referrer": skipped.referrer,
    }


def _way(outcome: Page | Redirect | Failure) -> dict[str, Any]:
    return {
        "depth": outcome.depth,
        "referrer": outcome.referrer,
        "tries": outcome.tries,
        "seconds": round(outcome.seconds, 3),
    }


def _refused(link: Refused) -> dict[str, str]:
    return {"url": link.url, "reason": link.reason}
