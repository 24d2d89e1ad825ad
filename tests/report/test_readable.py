"""URLs are shown with their letters, and no reader is misled."""

from __future__ import annotations

import unicodedata
from urllib.parse import unquote

import httpx
import pytest
from cases import for_each
from hypothesis import given
from hypothesis import strategies as st

from trio_crawler import Page, normalise
from trio_crawler.report import Report, changes, one_line
from trio_crawler.report.visible import readable
from trio_crawler.store.changes import Change


def shown(path: str) -> str:
    """Return how the path or query of a URL is shown."""
    home = "http://h.test/"
    return readable(normalise(home + path)).removeprefix(home)


@for_each(
    "path",
    [
        "ünï/ß",
        "Łódź-țară.html?straße=œuvre&x=1",
        "đường/phố",
        "Глава-2/страница",
        "Ελλάδα",
        "საქართველო",
        "日本語/ページ/々人",
        "中文",
        "한국어",
        "ไทย",
        "हिन्दी",
        "a%20ü%2Fb",
    ],
)
def test_letters_of_one_script_are_shown(path: str) -> None:
    assert shown(path) == path


@for_each(
    "path",
    [
        # Another script in a Latin word, and whole words that look Latin, or like a number.
        "p%D0%B0ypal",
        "%D1%80%D0%B0%D1%83%D1%80a",
        "%D1%81%D0%BE%D1%80%D0%B0",
        "%D0%A1%D0%9E%D0%A1%D0%90",
        "%CE%BA%CE%B1%CE%B9",
        "201%D0%97",
        "%D0%B3%CE%BB",
        "%C3%BC%D0%B3",
        # The dotless i, kra, the long s and the phonetic g; Latin letters of other shapes.
        "l%C4%B1nk",
        "%C4%B8",
        "%C5%BF",
        "%C9%A1oogle",
        "%EF%BD%81",
        "%F0%9D%90%9A",
        # Like a slash, a dash, a dot.
        "%E2%81%84",
        "%EF%BC%8F",
        "%E3%83%8E",
        "%E4%B8%80",
        "%E2%80%90",
        "%C2%B7",
        # Bidi controls, right-to-left letters, invisible ones, lone or many marks.
        "a%E2%80%AEb",
        "%D7%A2%D7%91",
        "%D8%B9%D8%B1",
        "a%E2%80%8Bb%C3%BC",
        "%E3%85%A4",
        "%C2%AD%C3%BC",
        "e%CC%81",
        "%E0%A4%A8%E0%A4%BC",
        "%E0%B8%B4%E0%B8%81",
        "%E0%B8%81%E0%B9%88%E0%B9%88%E0%B9%88%E0%B9%88",
        # Digits of other scripts, emoji, controls, spaces.
        "%D9%A1",
        "%E0%A5%A7",
        "%F0%9F%91%8D",
        "%C2%85",
        "%C2%A0",
        # Not UTF-8, or in small letters, which a browser would not write.
        "%FC",
        "%C3",
        "%C3%BC%FC",
        "%ED%A0%80",
        "%C0%AF",
        "%c3%bc",
    ],
)
def test_all_else_stays_as_it_is(path: str) -> None:
    assert readable("http://h.test/" + path) == "http://h.test/" + path


@for_each(
    "text",
    [
        "http://xn--bcher-kva.test/",
        "http://xn--bcher-kva.test",
        "http://%C3%BC.test?%C3%BC",
        "mailto:%C3%BC@h.test",
        "foo://h/%C3%BC",
        "http://h.test/ü%C3%9F",
        "%C3%BC",
        "",
    ],
)
def test_a_host_and_what_is_no_normalised_url_are_not_decoded(text: str) -> None:
    assert readable(text) == text


def test_what_a_terminal_obeys_is_escaped_as_ever() -> None:
    assert readable("http://h.test/\x1b[2J%C3%BC\u202e") == "http://h.test/\\x1b[2J%C3%BC\\u202e"


scripts = st.sampled_from(
    "aZ09-._~/?&=+%äßłığſаяѕГβοΩ日一ノーん한ไ่ิกहिע١٣ع\u0301\u200b\u202e👍\uff21\u2044"
)
urls = st.text(scripts | st.characters(codec="utf-8"), max_size=30)


@given(urls)
def test_what_is_shown_leads_to_the_same_url(path: str) -> None:
    url = normalise("http://h.test/" + path)
    assert normalise(readable(url)) == url


@given(st.lists(st.sampled_from([*"aZ0%/2?", "%2", "%C3", "%BC", "%c3", "%D0%B3", "%25"])))
def test_escapes_of_all_kinds_lead_to_the_same_url(parts: list[str]) -> None:
    url = normalise("http://h.test/" + "".join(parts))
    assert normalise(readable(url)) == url


@given(urls)
def test_only_letters_and_marks_that_are_read_from_left_to_right_are_decoded(path: str) -> None:
    url = readable(normalise("http://h.test/" + path))
    for character in set(url):
        if not character.isascii():
            assert unicodedata.category(character) in ("Ll", "Lu", "Lo", "Lm", "Mn", "Mc")
            assert unicodedata.bidirectional(character) in ("L", "NSM")


@pytest.mark.slow
def test_every_letter_that_may_be_shown_is_one_and_is_itself_in_every_composed_text() -> None:
    for code in range(0x80, 0x110000):
        if not 0xD800 <= code < 0xE000 and (text := shown(chr(code))) == chr(code):
            assert text.isprintable()
            assert unicodedata.normalize("NFC", text) == text
            assert unicodedata.category(text)[0] == "L", hex(code)


@pytest.mark.slow
def test_a_long_url_is_shown_in_time_in_proportion_to_its_length() -> None:
    for part in ("a", "%C3", "%C3%BC", "%20a", "%D0%B0", "%E0%B8%81"):
        url = "http://h.test/" + part * 300_000
        # Backtracking would take hours.
        assert normalise(readable(url)) == url


def test_reports_and_lines_for_people_show_urls_so() -> None:
    url = normalise("http://h.test/ünï/ß")
    page = Page(url, 404, httpx.Headers(), b"", referrer=url)
    made = Report()
    made.add(page)
    assert "http://h.test/ünï/ß" in one_line(page)
    assert "http://h.test/ünï/ß (404)" in changes([Change(url, "gone", "404")], None)
    assert unquote(url) not in repr(page)
