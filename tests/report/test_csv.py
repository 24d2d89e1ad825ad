from __future__ import annotations

import csv
import io
import re

import httpx
import pytest
from cases import for_each
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from trio_crawler.facts import PageFacts
from trio_crawler.ledger import Ledger
from trio_crawler.model import (
    Failure,
    Outcome,
    Page,
    Phase,
    Reason,
    Redirect,
    RejectedLink,
    Skipped,
)
from trio_crawler.report.lines import (
    COLUMNS,
    CSV_HEAD,
    csv_entry,
    csv_row,
    csv_with_facts,
    encode_rows,
)

URL = "https://a.test/"
PAGE = Page(
    URL,
    200,
    httpx.Headers(),
    b"<title>A</title>",
    content_type="text/html",
    charset="utf-8",
    title="A, or B",
    seconds=0.0123456,
    links=("https://a.test/b", "https://a.test/c"),
    rejected=(RejectedLink("https://b.test/", Reason.OTHER_SITE),),
    flaws=(Reason.BAD_CHARSET, Reason.TOO_MANY_LINKS),
    canonical="https://a.test/x",
    robots=("noindex", "nofollow"),
    duplicate_of="https://a.test/y",
)


def read(outcome: Outcome) -> dict[str, str]:
    """Read a line back; what is empty is left out."""
    (found,) = csv.DictReader(io.StringIO((CSV_HEAD + csv_row(outcome)).decode(), newline=""))
    return {name: text for name, text in found.items() if text}


def test_a_page_fills_its_columns() -> None:
    assert read(PAGE) == {
        "kind": "page",
        "url": URL,
        "status": "200",
        "content_type": "text/html",
        "charset": "utf-8",
        "title": "A, or B",
        "size": "16",
        "depth": "0",
        "tries": "1",
        "seconds": "0.012",
        "links": "2",
        "rejected": "1",
        "canonical": "https://a.test/x",
        "robots": "noindex nofollow",
        "duplicate_of": "https://a.test/y",
        "flaws": "bad_charset too_many_links",
    }


def test_the_facts_of_a_page_follow_its_columns() -> None:
    facts = PageFacts(
        fetched=0.0,
        headers={"server": "s"},
        h1=("A", "B"),
        h1_count=2,
        hreflang=(("de", f"{URL}de"), ("en", f"{URL}en")),
        json_ld=("Article", "Person"),
        scripted=True,
    )
    page = replace(PAGE, facts=facts)
    outcomes = [
        Redirect(f"{URL}old", 301, f"{URL}older"),
        Redirect(f"{URL}older", 301, URL),
        page,
        Failure(f"{URL}b", Reason.DNS),
    ]
    with Ledger() as ledger:
        for outcome in outcomes:
            ledger.add(outcome)
        text = b"".join(csv_with_facts(map(csv_entry, outcomes), ledger)).decode()
    *_, found, failed = csv.DictReader(io.StringIO(text, newline=""))
    assert csv_row(PAGE) == csv_row(page)
    assert [found.pop(name) for name in COLUMNS] == [read(PAGE).get(name, "") for name in COLUMNS]
    assert (failed["inlinks"], failed["redirected_from"]) == ("1", "")
    assert found.pop("redirected_from") == f"{URL}old {URL}older"
    assert {name: text for name, text in found.items() if text not in ("", "0")} == {
        "fetched": "1970-01-01T00:00:00Z",
        "headers": '{"server": "s"}',
        "h1": "A",
        "h1_count": "2",
        "hreflang": f"de={URL}de en={URL}en",
        "json_ld": "Article Person",
        "scripted": "1",
    }


def test_a_page_from_a_directory_has_the_size_of_the_body_it_had() -> None:
    assert read(replace(PAGE, body=b"", body_size=1234))["size"] == "1234"


WAY = {"url": URL, "depth": "2", "referrer": "https://a.test/r"}
ABOUT = {"depth": 2, "referrer": "https://a.test/r"}


@pytest.mark.parametrize(
    ("outcome", "told"),
    [
        (
            Redirect(URL, 301, "https://b.test/", rejected=Reason.OTHER_SITE, seconds=1, **ABOUT),
            {
                "kind": "redirect",
                "status": "301",
                "target": "https://b.test/",
                "reason": "other_site",
                "tries": "1",
                "seconds": "1",
            },
        ),
        (
            Failure(URL, Reason.TIMEOUT, "30 s", tries=3, phase=Phase.READ, **ABOUT),
            {
                "kind": "failure",
                "reason": "timeout",
                "detail": "30 s",
                "phase": "read",
                "tries": "3",
                "seconds": "0.0",
            },
        ),
        (Skipped(URL, Reason.STOPPED, **ABOUT), {"kind": "skipped", "reason": "stopped"}),
    ],
)
def test_the_other_kinds_have_the_columns_that_they_know(
    outcome: Outcome, told: dict[str, str]
) -> None:
    assert read(outcome) == WAY | told


def test_lines_end_as_the_rfc_has_it_and_quotes_are_where_they_must_be() -> None:
    assert csv_row(replace(PAGE, title='say "A, B"')).endswith(b"\r\n")
    assert b',"say ""A, B""",' in csv_row(replace(PAGE, title='say "A, B"'))
    assert CSV_HEAD.decode().removesuffix("\r\n").split(",") == list(COLUMNS)
    assert b'"' not in csv_row(replace(PAGE, title="plain"))
    assert b',"a;b",' in csv_row(replace(PAGE, title="a;b"))


@for_each("formula", ["=1+1", "+1", "-1", "@SUM(A1)", "\uff1d1", "=cmd|' /C'!A0"])
def test_a_spreadsheet_is_given_nothing_to_calculate(formula: str) -> None:
    assert read(replace(PAGE, title=formula))["title"] == f"'{formula}"


@for_each("text", ["1-1", "a=b", "'1", "a;b=c", "a, b", r"C:\new", "ä", "😀"])
def test_any_other_text_is_as_it_was(text: str) -> None:
    assert read(replace(PAGE, title=text))["title"] == text


def test_what_steers_a_terminal_or_breaks_a_line_is_escaped() -> None:
    title = "a\r\nb\0\x1b[31m\u202e\ud800"
    assert read(replace(PAGE, title=title))["title"] == r"a\x0d\x0ab\x00\x1b[31m\u202e\ud800"
    # A tab before a formula would be cut off by some spreadsheets.
    assert read(replace(PAGE, title="\t=1"))["title"] == r"\x09=1"


# Readers that part at another character, and the texts that come back.

FORMULAS = "=+-@\t\r\uff1d\uff0b\uff0d\uff20"
HOSTILE = "=+-@\uff1d\ufe66\u2212,;\t\r\n\"' \\x09a|\u2028\ud800\xa0\U000e0041"
letters = st.sampled_from(HOSTILE) | st.characters() | st.characters(categories=["Cs"])
texts = st.text(letters)
cells = st.none() | st.integers(0) | texts
rows = st.lists(cells, min_size=2, max_size=6)


@for_each(
    "title, cell",
    [
        ("title;=cmd|' /C calc'!A0;", "title;'=cmd|' /C calc'!A0;"),
        ("a,=1", "a,'=1"),
        ('a;"=1', "a;'\"=1"),
        ('a;"" = 1', 'a;\'"" = 1'),
        (" =1", "' =1"),
        ("'=1", "''=1"),
        (";;@x", ";;'@x"),
        ("a\t=1", r"a\x09=1"),
        ("a\n=1", r"a\x0a=1"),
    ],
)
def test_a_spreadsheet_that_parts_elsewhere_is_given_nothing_to_calculate_either(title, cell):
    assert read(replace(PAGE, title=title))["title"] == cell


def recovered(cell: str, *, last: bool) -> str:
    """Return the text that a cell was made of, by the rule in the docstring of the module."""
    begin = r"(^|[,;])'(?=['\"\s]*[=+\-@\uff1d\uff0b\uff0d\uff20\ufe66\ufe62\ufe63\ufe6b\u2212]"
    found = re.sub(begin + (r"|(?<=[,;]')['\"\s]*\Z)" if last else ")"), r"\1", cell)
    escape = re.compile(r"\\(?:x([0-9a-f]{2})|u([0-9a-f]{4})|U([0-9a-f]{8}))")
    return escape.sub(lambda match: chr(int(match[1] or match[2] or match[3], 16)), found)


@given(rows)
@example([r"\x09", "\t", "a\\\t"])
@example(["'=1", "=1", "a;"])
def test_any_record_is_one_line_with_as_many_cells_and_each_can_be_recovered(
    found: list[str | int | None],
) -> None:
    line = encode_rows([found]).decode()
    assert line.endswith("\r\n")
    assert len(line.splitlines()) == 1
    (read_back,) = csv.reader(io.StringIO(line, newline=""))
    assert len(read_back) == len(found)
    for at, (text, cell) in enumerate(zip(read_back, found, strict=True), 1):
        if isinstance(cell, str):
            assert recovered(text, last=at == len(found)) == cell
        else:
            assert text == ("" if cell is None else str(cell))


def parted(text: str) -> list[str]:
    """Return the cells as a spreadsheet finds them that parts at all three at once."""
    # Python's reader has one separator; those in quotes were parted by none of the three.
    cells, quoted, cell, fresh = [], False, "", True
    for letter in text:
        if fresh and letter == '"':
            quoted, fresh = True, False
        elif quoted:
            quoted = letter != '"'
            cell += letter if quoted else ""
        elif letter in ",;\t\n":
            cells.append(cell)
            cell, fresh = "", True
        else:
            cell, fresh = cell + letter, False
    return [*cells, cell]


@given(st.lists(rows, min_size=1, max_size=3))
@example([["a", "b,;"], ["c", "d"]])
@example([['x";"=1', "a"]])
def test_wherever_a_reader_parts_no_cell_begins_with_a_formula(
    found: list[list[str | int | None]],
) -> None:
    text = encode_rows(found).decode()
    read_back = parted(text.replace("\r\n", "\n"))
    for separator in ",;\t":
        for reader in (csv.excel, csv.unix_dialect):
            for row in csv.reader(io.StringIO(text, newline=""), reader, delimiter=separator):
                read_back += row
        for line in text.split("\r\n"):
            # A reader that knows no quotes, or drops them.
            read_back += line.split(separator)
            read_back += [cell.strip('" ') for cell in line.split(separator)]
    assert [cell for cell in read_back if cell.startswith(tuple(FORMULAS))] == []
    assert [cell for cell in read_back if cell.lstrip(' "').startswith(tuple(FORMULAS))] == []
