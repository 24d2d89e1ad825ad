from __future__ import annotations

import httpx
from cases import for_each
from hypothesis import given
from hypothesis import strategies as st

from trio_crawler.model import Validator
from trio_crawler.policy.answers import LONGEST, conditions_of, validator_of

DATE = "Sat, 21 Nov 2026 19:00:00 GMT"


def validator(*fields: tuple[str | bytes, str | bytes]) -> Validator | None:
    raw = [
        tuple(one if isinstance(one, bytes) else one.encode() for one in pair) for pair in fields
    ]
    return validator_of(httpx.Headers(raw))  # type: ignore[arg-type]


def test_an_entity_tag_and_a_date_are_kept_as_they_came() -> None:
    assert validator(("ETag", '"a-1"'), ("Last-Modified", DATE)) == Validator('"a-1"', DATE)


@for_each("tag", ['W/"a"', '"a"', '""', "unquoted", '"a b,c*"', '"\xe9\xff"'])
def test_any_entity_tag_is_sent_back_byte_for_byte(tag: str) -> None:
    found = validator((b"etag", tag.encode("latin-1")))
    assert found == Validator(tag, None)
    assert conditions_of(found) == [(b"If-None-Match", tag.encode("latin-1"))]


@for_each(
    "tag, tags",
    [
        ('"a-gzip"', '"a-gzip", "a"'),
        ('"a-br"', '"a-br", "a"'),
        ('"a-zstd"', '"a-zstd", "a"'),
        ('"a-deflate"', '"a-deflate", "a"'),
        ('"a;gzip"', '"a;gzip", "a"'),
        ('W/"a-gzip"', 'W/"a-gzip", W/"a"'),
        ('"a-gzip-gzip"', '"a-gzip-gzip", "a-gzip"'),
        ('"a-gzip"\t', '"a-gzip", "a"'),
        ('"-gzip"', '"-gzip"'),
        ('"gzip"', '"gzip"'),
        ('"agzip"', '"agzip"'),
        ('"a-GZIP"', '"a-GZIP"'),
        ('"a-gzip" ', '"a-gzip", "a"'),
        ("a-gzip", "a-gzip"),
        ('"a", "b-gzip"', '"a", "b-gzip"'),
        ('w/"a-gzip"', 'w/"a-gzip"'),
    ],
)
def test_a_tag_that_is_marked_with_a_coding_is_sent_with_the_mark_and_without(
    tag: str, tags: str
) -> None:
    found = validator(("ETag", tag), ("Last-Modified", DATE))
    assert found == Validator(tag.strip(), DATE)
    assert conditions_of(found) == [
        (b"If-None-Match", tags.encode()),
        (b"If-Modified-Since", DATE.encode()),
    ]


@for_each(
    "tag",
    [b"", b"  ", b"*", b" * ", b'"' + b"a" * LONGEST, b'"a\x01"', b'"a\x7f"', b'"\x1b[31m"'],
)
def test_an_entity_tag_that_could_not_be_sent_back_is_left_out(tag: bytes) -> None:
    assert validator(("ETag", tag)) is None
    assert validator(("ETag", tag), ("Last-Modified", DATE)) == Validator(None, DATE)


def test_a_value_of_1024_bytes_is_kept() -> None:
    tag = '"' + "a" * (LONGEST - 2) + '"'
    assert LONGEST == 1024
    assert validator(("ETag", tag)) == Validator(tag)


def test_a_field_that_came_twice_is_left_out() -> None:
    assert validator(("ETag", '"a"'), ("etag", '"a"'), ("Last-Modified", DATE)) == Validator(
        None, DATE
    )


@for_each(
    "value",
    ["", " ", "*", "a" * 1025, '"a\r\nX-Evil: 1"', '"a\n"', '"a\0"', '"\u20ac"', '"\ud800"'],
)
def test_a_value_that_cannot_be_sent_is_left_out_of_the_request(value: str) -> None:
    assert conditions_of(Validator(value, value)) == []
    assert conditions_of(Validator(value, DATE)) == [(b"If-Modified-Since", DATE.encode())]
    assert conditions_of(Validator('"a"', value)) == [(b"If-None-Match", b'"a"')]


@given(st.binary(max_size=40), st.binary(max_size=40))
def test_whatever_is_kept_goes_back_in_the_bytes_it_came_in(tag: bytes, date: bytes) -> None:
    found = validator(("ETag", tag), ("Last-Modified", date))
    sent = dict(conditions_of(found)) if found else {}
    assert sent.get(b"If-None-Match", tag.strip(b" \t")) == tag.strip(b" \t")
    assert sent.get(b"If-Modified-Since", date.strip(b" \t")) == date.strip(b" \t")
    assert bool(sent) == (found is not None)


@given(st.text(), st.text())
def test_no_validator_breaks_a_request(tag: str, date: str) -> None:
    for name, value in conditions_of(Validator(tag, date)):
        assert name in (b"If-None-Match", b"If-Modified-Since")
        assert value
        assert not set(value) & {0, 10, 13}
