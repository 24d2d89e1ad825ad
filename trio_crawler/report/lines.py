r"""Outcomes and links as lines: JSON for programs, CSV for spreadsheets.

The texts are those of strangers, and spreadsheets part a file at a comma, a semicolon or a tab, as
the country or the user has it. Whichever it is, no cell begins with what a spreadsheet takes for a
formula. To get a text back from a cell:

1. Remove the guard: where a single quote begins the cell or follows a comma or a semicolon, and
   only quotes and blanks stand between it and one of `= + - @`, remove the single quote. Remove
   it also from the end of the last cell of a line, where only quotes and blanks stand between a
   comma or a semicolon and the end.
2. Decode the escapes `\xHH`, `\uHHHH` and `\UHHHHHHHH`. Each is one character: control
   characters (tabs and line ends too), invisible ones, and a backslash that would look like the
   begin of an escape. Any other backslash is itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from itertools import chain
from typing import Any, TypeAlias, assert_never

import msgspec

from trio_crawler.arguments import check_iterable, check_kind, public
from trio_crawler.expressions import lazy
from trio_crawler.facts import PageFacts
from trio_crawler.ledger.ledger import Ledger
from trio_crawler.ledger.tables import REDIRECT
from trio_crawler.model import Anchor, Checked, Failure, Outcome, Page, Redirect, Skipped
from trio_crawler.report.visible import json_visible, visible

_encoder = msgspec.json.Encoder()
_MOST_HOPS = 20


@public("trio_crawler.report")
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


@public("trio_crawler.report")
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


Cell: TypeAlias = "str | int | float | None"

# A spreadsheet reads text that begins with one of these as a formula, also in the wide and small
# forms of East Asia. Some drop quotes and blanks before it.
_FORMULA = "=+\\-@\uff1d\uff0b\uff0d\uff20\ufe66\ufe62\ufe63\ufe6b\u2212"
_BEGIN = r"(?:^|(?<=[,;]))"
_GUARDED = re.compile(rf"""{_BEGIN}(?=['"\s]*[{_FORMULA}])""")
# With a quote for the line itself, the rest of the line and the next one would be one cell for a
# reader that parts at the semicolon.
_GUARDED_LAST = lazy(rf"""{_GUARDED.pattern}|(?<=[,;])(?=['"\s]*\Z)""")
_LIKE_AN_ESCAPE = re.compile(r"\\(?=x[0-9a-f]{2}|u[0-9a-f]{4}|U[0-9a-f]{8})")
_QUOTED = re.compile('[",;]')
# ▶ Nearly all cells stay as they are: to see that takes a quarter of the time of what follows.
_is_plain = re.compile(r"[A-Za-z0-9][ !$-+\--:<-\[\]-~]*+").fullmatch


def encode_rows(rows: Iterable[Iterable[Cell]]) -> bytes:
    r"""Encode rows as CSV (RFC 4180), in UTF-8 without a byte order mark; None is empty.

    Whether a reader parts lines at commas, semicolons or tabs, no cell of its begins with a
    formula (`=`, `+`, `-`, `@`): such text gets a single quote before it, at the beginning of a
    cell and after each comma and semicolon in it. Control characters and line ends are escaped
    (see `visible`), so that each row is one line, and so is a backslash that looks like an
    escape: the text can be recovered. JSON Lines have every text unchanged.
    """
    return "".join(map(_line, rows)).encode()


def _line(row: Iterable[Cell]) -> str:
    *cells, last = row
    # RFC 4180, section 2: CRLF, commas, quotes only where they are needed, and then doubled.
    encoded = ",".join([*(_encoded(cell, _GUARDED) for cell in cells), _encoded(last)])
    return f"{encoded or _EMPTY}\r\n"


_EMPTY = '""'


def _encoded(cell: Cell, guarded: re.Pattern[str] = _GUARDED_LAST) -> str:
    if not isinstance(cell, str):
        return "" if cell is None else str(cell)
    if _is_plain(cell):
        return cell
    escaped = visible(_LIKE_AN_ESCAPE.sub(r"\\x5c", cell) if "\\" in cell else cell)
    text = guarded.sub("'", escaped)
    return '"' + text.replace('"', '""') + '"' if _QUOTED.search(text) else text


COLUMNS = (
    "kind",
    "url",
    "status",
    "reason",
    "detail",
    "content_type",
    "charset",
    "title",
    "size",
    "depth",
    "referrer",
    "target",
    "tries",
    "seconds",
    "links",
    "rejected",
    "canonical",
    "robots",
    "duplicate_of",
    "flaws",
    "phase",
    "about",
    "folded_into",
    "again",
)
CSV_HEAD = encode_rows([COLUMNS])
"""The line with the names of the columns of `csv_row`."""


@public("trio_crawler.report")
def csv_row(outcome: Outcome) -> bytes:
    """Return one outcome as a line of CSV, with the columns of `CSV_HEAD`.

    `kind` is page, redirect, failure, skipped or checked; a column that does not apply to a kind
    is empty. `size` is in bytes, `seconds` are rounded to the millisecond; `links` counts the
    distinct links inside the scope, `rejected` the rejected ones. Several robots directives or
    flaws are separated by spaces. `target` is the target of a redirect; `reason` is why the target
    was not admitted, or why a URL has no page; `about` is "robots" if robots.txt failed.
    `folded_into` is the canonical URL that was crawled in place of a page. `again` is 1 if the URL
    was admitted again (see `Job.again`), else it is empty.

    >>> csv_row(Failure("https://e.org/", Reason.DNS)).split(b",")[:3]
    [b'failure', b'https://e.org/', b'']
    """
    check_kind("outcome", outcome, Outcome, "an outcome")
    return encode_rows([map(_cells(outcome).get, COLUMNS)])


def _cells(outcome: Outcome) -> dict[str, Any]:
    cells = record_of(outcome)
    if isinstance(outcome, Page):
        cells |= {"links": len(outcome.links), "rejected": len(outcome.rejected)}
        cells |= {"robots": " ".join(outcome.robots), "flaws": " ".join(outcome.flaws)}
    cells["again"] = 1 if outcome.again else None
    return cells


FACTS_COLUMNS = (*COLUMNS, "inlinks", "redirected_from", *PageFacts.__struct_fields__)


@public("trio_crawler.report")
def csv_entry(outcome: Outcome, shown: Outcome | None = None) -> bytes:
    """Return one outcome as a line for `csv_with_facts`; `shown` is written in its place.

    >>> entries = [csv_entry(Failure("https://e.org/", Reason.DNS))]
    >>> with Ledger() as ledger:
    ...     head, row = csv_with_facts(entries, ledger)
    >>> row[:26]
    b'failure,https://e.org/,,dn'
    """
    check_kind("outcome", outcome, Outcome, "an outcome")
    check_kind("shown", shown, Outcome | None, "an outcome or None")
    written = outcome if shown is None else shown
    cells = _cells(written)
    if isinstance(written, Page) and (facts := written.facts) is not None:
        lists = ("json_ld", "json_ld_errors", "insecure")
        objects = {name: getattr(facts, name) for name in ("social", "headers")}
        cells |= facts_record(facts) | {
            "h1": facts.h1[0] if facts.h1 else None,
            "hreflang": " ".join(f"{language}={url}" for language, url in facts.hreflang),
            **{name: " ".join(getattr(facts, name)) for name in lists},
            **{
                name: json.dumps(each, ensure_ascii=False) if each else ""
                for name, each in objects.items()
            },
            "scripted": 1 if facts.scripted else None,
        }
    return json.dumps([outcome.url, [cells.get(name) for name in FACTS_COLUMNS]]).encode() + b"\n"


@public("trio_crawler.report")
def csv_with_facts(entries: Iterable[bytes], ledger: Ledger) -> Iterator[bytes]:
    """Yield CSV with the facts of pages, from `entries` of `csv_entry` and the crawl's `ledger`.

    To the columns of `CSV_HEAD` it adds `inlinks`, the number of pages that link to a URL inside
    the scope; `redirected_from`, the URLs of the redirects that lead to it, the first one first;
    and the fields of `PageFacts`, which are empty if the crawl kept no facts. `h1` is the first
    heading, `fetched` a date and time of ISO 8601 in UTC. Several URLs, types or errors are
    separated by spaces, and each of `hreflang` is the language, "=" and the URL. `social` and
    `headers` are JSON. `scripted` is 1 or empty.

    >>> failure = Failure("https://e.org/", Reason.DNS)
    >>> with Ledger() as ledger:
    ...     ledger.add(failure)
    ...     head, row = csv_with_facts([csv_entry(failure)], ledger)
    >>> len(row.split(b",")) == len(head.split(b","))
    True
    """
    check_iterable("entries", entries, "the lines of csv_entry")
    check_kind("ledger", ledger, Ledger, "a Ledger")
    about = leading_to(ledger)

    def row(line: bytes) -> bytes:
        url, cells = json.loads(line)
        inlinks, way = about(url)
        cells[len(COLUMNS) : len(COLUMNS) + 2] = inlinks, " ".join(way)
        return encode_rows([cells])

    return chain([encode_rows([FACTS_COLUMNS])], map(row, entries))


LINKS_HEAD = encode_rows([("page", "url", "kind", "text", "reason")])
"""The line with the names of the columns of `link_rows`."""

_UNKNOWN = Anchor("", "")


@public("trio_crawler.report")
def link_rows(outcome: Outcome) -> bytes:
    r"""Return the links of one outcome as lines of CSV; b"" if it has none.

    `page` links to `url`. `kind` ("a", "area") is the element of the first anchor, and `text` its
    text; both are empty if the crawl did not keep anchors. `reason` is why a link was rejected,
    and is empty for a link inside the scope; the links inside the scope come first. A redirect is
    a line too, with the kind "redirect".

    >>> rejected = (RejectedLink("mailto:a@e.org", Reason.OTHER_SCHEME),)
    >>> page = Page("https://e.org/", 200, httpx.Headers(), b"", rejected=rejected)
    >>> link_rows(page)
    b'https://e.org/,mailto:a@e.org,,,other_scheme\r\n'
    """
    check_kind("outcome", outcome, Outcome, "an outcome")
    return encode_rows(_links(outcome))


def _links(outcome: Outcome) -> Iterator[tuple[Cell, ...]]:
    if isinstance(outcome, Redirect):
        yield outcome.url, outcome.target, "redirect", "", outcome.rejected
    elif isinstance(outcome, Page):
        anchor = outcome.anchors.get
        for url in outcome.links:
            yield outcome.url, url, *anchor(url, _UNKNOWN), None
        for url, reason in outcome.rejected:
            yield outcome.url, url, *anchor(url, _UNKNOWN), reason
