r"""Outcomes and links as CSV, for spreadsheets: one line for each outcome, or for each link.

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
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, TypeAlias

from trio_crawler.arguments import check_iterable, check_kind
from trio_crawler.expressions import lazy
from trio_crawler.facts import PageFacts
from trio_crawler.ledger.ledger import Ledger
from trio_crawler.model import Anchor, Outcome, Page, Redirect
from trio_crawler.report.jsonl import facts_record, leading_to, record_of
from trio_crawler.report.visible import visible

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


csv_row.__module__ = "trio_crawler.report"


def _cells(outcome: Outcome) -> dict[str, Any]:
    cells = record_of(outcome)
    if isinstance(outcome, Page):
        cells |= {"links": len(outcome.links), "rejected": len(outcome.rejected)}
        cells |= {"robots": " ".join(outcome.robots), "flaws": " ".join(outcome.flaws)}
    cells["again"] = 1 if outcome.again else None
    return cells


FACTS_COLUMNS = (*COLUMNS, "inlinks", "redirected_from", *PageFacts.__struct_fields__)


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
    if isinstance(written, Page) and written.facts is not None:
        cells |= _facts(written.facts)
    return json.dumps([outcome.url, [cells.get(name) for name in FACTS_COLUMNS]]).encode() + b"\n"


csv_entry.__module__ = "trio_crawler.report"


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
    return chain([encode_rows([FACTS_COLUMNS])], _completed(entries, ledger))


csv_with_facts.__module__ = "trio_crawler.report"


def _completed(entries: Iterable[bytes], ledger: Ledger) -> Iterator[bytes]:
    about = leading_to(ledger)
    for line in entries:
        url, cells = json.loads(line)
        inlinks, way = about(url)
        cells[len(COLUMNS) : len(COLUMNS) + 2] = inlinks, " ".join(way)
        yield encode_rows([cells])


def _facts(facts: PageFacts) -> dict[str, Cell]:
    lists = ("json_ld", "json_ld_errors", "insecure")
    return facts_record(facts) | {
        "h1": facts.h1[0] if facts.h1 else None,
        "hreflang": " ".join(f"{language}={url}" for language, url in facts.hreflang),
        **{name: " ".join(getattr(facts, name)) for name in lists},
        **{name: _json(getattr(facts, name)) for name in ("social", "headers")},
        "scripted": 1 if facts.scripted else None,
    }


def _json(values: Mapping[str, str]) -> str:
    return json.dumps(values, ensure_ascii=False) if values else ""


LINKS_HEAD = encode_rows([("page", "url", "kind", "text", "reason")])
"""The line with the names of the columns of `link_rows`."""

_UNKNOWN = Anchor("", "")


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


link_rows.__module__ = "trio_crawler.report"


def _links(outcome: Outcome) -> Iterator[tuple[Cell, ...]]:
    if isinstance(outcome, Redirect):
        yield outcome.url, outcome.target, "redirect", "", outcome.rejected
    elif isinstance(outcome, Page):
        anchor = outcome.anchors.get
        for url in outcome.links:
            yield outcome.url, url, *anchor(url, _UNKNOWN), None
        for url, reason in outcome.rejected:
            yield outcome.url, url, *anchor(url, _UNKNOWN), reason
