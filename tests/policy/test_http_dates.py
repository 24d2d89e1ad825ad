"""Dates as header fields have them."""

from __future__ import annotations

from datetime import UTC, datetime

from cases import for_each
from hypothesis import given
from hypothesis import strategies as st

from trio_crawler.policy.answers import parse_http_date

WHEN = datetime(1994, 11, 6, 8, 49, 37, tzinfo=UTC)


@for_each(
    "text",
    [
        "Sun, 06 Nov 1994 08:49:37 GMT",
        "Sunday, 06-Nov-94 08:49:37 GMT",
        "Sun Nov  6 08:49:37 1994",
        "06 Nov 1994 08:49:37",
        "Sun, 06-Nov-1994 08:49:37 GMT",
        "06 Nov 1994 09:49:37 +0100",
    ],
)
def test_the_forms_of_http_and_those_that_servers_made_up_are_read(text):
    assert parse_http_date(text) == WHEN


@for_each(
    "text",
    [
        "",
        "Sun",
        "08:49:37",
        "Nov 1994 08:49:37",
        "6 Nov 1994 24:00:00",
        "6 Nov 1994 08:60:00",
        "32 Nov 1994 08:49:37",
        "29 Feb 2026 08:49:37",
        "06 Nov 19941 08:49:37",
        "31 Dec 9999 23:00:00 -2300",
    ],
)
def test_what_lacks_a_part_or_is_on_no_calendar_is_no_date(text):
    assert parse_http_date(text) is None


@for_each("year, full", [("00", 2000), ("68", 2068), ("69", 1969), ("99", 1999), ("1601", 1601)])
def test_two_digits_of_a_year_lie_between_1969_and_2068(year, full):
    assert parse_http_date(f"06 Nov {year} 08:49:37") == WHEN.replace(year=full)


@given(st.text(st.sampled_from("0123456789:/-, JanovDec\t\xe9GMT"), max_size=60))
def test_whatever_is_written_gives_a_date_or_none(text):
    found = parse_http_date(text)
    assert found is None or found.tzinfo is UTC
