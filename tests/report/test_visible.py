from __future__ import annotations

import json
import sys
import unicodedata

import msgspec
from cases import for_each
from hypothesis import given
from hypothesis import strategies as st

from trio_crawler.report.visible import count, duration, json_visible, size, visible

# Written down again, by number, so that a slip in the pattern shows.
DANGEROUS = {
    *range(0x20),
    *range(0x7F, 0xA0),
    0x061C,
    *range(0x200B, 0x2010),
    *range(0x2028, 0x202F),
    0x2060,
    *range(0x2066, 0x206A),
    0xFEFF,
    *range(0xD800, 0xE000),
    *range(0xE0000, 0xE0080),
}
dangerous = st.sampled_from(sorted(DANGEROUS)).map(chr)
encodable_dangers = st.sampled_from(sorted(DANGEROUS - {*range(0xD800, 0xE000)})).map(chr)
encodable = st.text(st.characters(codec="utf-8") | encodable_dangers)
texts = st.text(st.one_of(st.characters(), dangerous, st.characters(categories=["Cs"])))


@for_each(
    "text, shown",
    [
        ("\x1b[2J", r"\x1b[2J"),
        ("a\tb\r\nc\x00\x7f", r"a\x09b\x0d\x0ac\x00\x7f"),
        ("\x9b31m\x85", r"\x9b31m\x85"),
        ("gpj.\u202eexe", r"gpj.\u202eexe"),
        ("\u2066\u200f\u061c\u2029", r"\u2066\u200f\u061c\u2029"),
        ("zero\u200bwidth\ufeff", r"zero\u200bwidth\ufeff"),
        ("\U000e0041", r"\U000e0041"),
        ("\ud83d", r"\ud83d"),
        ("a ##[stop-commands]x", r"a #\x23[stop-commands]x"),
        ("###vso[task.setvariable variable=a]b", r"##\x23vso[task.setvariable variable=a]b"),
    ],
)
def test_characters_that_steer_a_terminal_or_mislead_a_reader_are_escaped(
    text: str, shown: str
) -> None:
    assert visible(text) == shown


@for_each(
    "text",
    [
        "## title",
        "#[1]",
        "",
        "plain",
        "café",
        "cafe\u0301",
        "日本語",
        "عربى",
        "👍🏽",
        "a\\x1b",
        "\xa0",
        "❤\ufe0f",
    ],
)
def test_letters_of_every_script_and_emoji_stay(text: str) -> None:
    assert visible(text) == text


def test_every_dangerous_character_there_is_becomes_plain_ascii() -> None:
    for code in DANGEROUS:
        shown = visible(chr(code))
        assert shown.startswith("\\"), hex(code)
        assert shown.isascii(), hex(code)
        assert shown.isprintable(), hex(code)


def test_only_characters_without_a_shape_of_their_own_are_escaped() -> None:
    changed = {chr(code) for code in range(sys.maxunicode + 1) if visible(chr(code)) != chr(code)}
    kinds = {unicodedata.category(each) for each in changed}
    assert kinds <= {"Cc", "Cf", "Cs", "Zl", "Zp", "Cn"}
    assert {ord(each) for each in changed if unicodedata.category(each) == "Cn"} <= DANGEROUS


@given(texts)
def test_no_dangerous_character_gets_through(text: str) -> None:
    shown = visible(text)
    assert not DANGEROUS & set(map(ord, shown))
    assert shown.encode().decode() == shown
    assert visible(shown) == shown


@given(encodable)
def test_json_keeps_its_meaning_when_it_is_made_visible(text: str) -> None:
    encoded = json_visible(msgspec.json.encode({text: [text]}))
    assert json.loads(encoded) == {text: [text]}
    assert not DANGEROUS & set(map(ord, encoded.decode()))


def test_in_json_an_astral_character_is_written_as_its_two_surrogates() -> None:
    assert json_visible('"\U000e0041é"'.encode()) == '"\\udb40\\udc41é"'.encode()


# Numbers.


@for_each(
    "octets, written",
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (12_595, "12.3 KiB"),
        (1_048_575, "1.0 MiB"),
        (12_897_485, "12.3 MiB"),
        (5 << 30, "5.0 GiB"),
        (2048 << 40, "2,048.0 TiB"),
    ],
)
def test_sizes_are_written_in_binary_units(octets: int, written: str) -> None:
    assert size(octets) == written


@for_each(
    "seconds, written",
    [
        (0.0, "0 ms"),
        (0.0344, "34 ms"),
        (0.9994, "999 ms"),
        (0.9996, "1.00 s"),
        (1.234, "1.23 s"),
        (99.996, "100 s"),
        (1234.5, "1,234 s"),
    ],
)
def test_durations_are_written_in_ms_or_s(seconds: float, written: str) -> None:
    assert duration(seconds) == written


def test_a_noun_agrees_with_its_number() -> None:
    assert [count(number, "page") for number in (0, 1, 2, 6000)] == [
        "0 pages",
        "1 page",
        "2 pages",
        "6,000 pages",
    ]
    assert count(1_234_567) == "1,234,567"
