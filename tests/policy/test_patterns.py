from __future__ import annotations

import calendar
import re
import secrets
from time import process_time

import pytest
from cases import for_each
from hypothesis import given
from hypothesis import strategies as st

from trio_crawler.policy.news import Streak, fingerprint
from trio_crawler.policy.url_shapes import pattern, steps

UUID = "6fa459ea-ee8a-3ca4-894e-db77e160355e"
HASH = "9fceb02d0ae598e95dc970b74767f19372d61af8"
# A UUID, a long hexadecimal number, a number that is no percent-encoded character.
TOLD_APART = re.compile(
    r"[\dA-F]{8}(-[\dA-F]{4}){3}-[\dA-F]{12}|(?<![\dA-Z%])[\dA-F]{16,}(?![\dA-Z])"
    r"|(?<!%)(?<!%[\dA-F])\d+",
    re.IGNORECASE | re.ASCII,
)


@for_each(
    "url, expected",
    [
        ("http://h/", None),
        ("http://127.0.0.1:8000/a/b.html", None),
        ("http://h/caf%C3%A9/%D0%9F%d1%80", None),
        ("http://h/2031/03/", "http://h/0/0/"),
        ("http://h:81/a12-b3.html", "http://h:81/a0-b0.html"),
        ("http://h/%201%2027%d123", "http://h/%200%200%d10"),
        (f"http://h/item/{UUID}/x", "http://h/item/0/x"),
        (f"http://h/commit/{HASH}", "http://h/commit/0"),
        ("http://h/deadbeef", None),
        ("http://h/a?", "http://h/a?"),
        ("http://h/a1?year=2031&month=3&year=4", "http://h/a0?month&year"),
        ("http://h/a?x&y=1=2&=3", "http://h/a?&x&y"),
        ("http://h/a?f&e&d&c&b&a&f", "http://h/a?a&b&c&d&e&f"),
    ],
)
def test_a_url_is_folded_to_what_it_shares_with_others(url, expected):
    assert pattern(url) == expected


letters = st.text(st.sampled_from("0129afFx%-./=&?"), max_size=40)


@given(letters)
def test_each_url_is_folded_as_the_expression_for_numbers_would(rest):
    def plainly(url: str) -> str | None:
        path, mark, query = url.removeprefix("http://h").partition("?")
        folded, times = TOLD_APART.subn("0", path)
        names = "&".join(sorted({part.partition("=")[0] for part in query.split("&")}))
        many = mark or (times and re.search("[0-9]", path))
        return f"http://h{folded}{mark}{names}" if many else None

    for number in ("", UUID, HASH, "12345678", "2031-03"):
        assert pattern(f"http://h/{number}{rest}") == plainly(f"http://h/{number}{rest}")


def page(text: str, head: str = "") -> bytes:
    return (
        f"<!DOCTYPE html><html><head><title>A site</title>{head}</head>"
        f'<body><nav><a href="/">Home</a> <a href="/about">About us</a></nav>{text}</body></html>'
    ).encode()


def month(year: int, number: int) -> bytes:
    return page(calendar.HTMLCalendar().formatmonth(year, number))


def same(one: bytes, other: bytes, url: str = "http://h/2031/03/") -> bool:
    return fingerprint(url, one) == fingerprint(url, other)


def test_the_months_of_a_calendar_all_say_the_same():
    prints = {
        fingerprint(f"http://h/{year}/{number}/", month(year, number))
        for year in range(2020, 2040)
        for number in range(1, 13)
    }
    assert len(prints) == 1


def test_months_of_an_unknown_language_have_a_bounded_number_of_fingerprints():
    names = "janvier février mars avril mai juin juillet août septembre octobre novembre".split()
    prints = {
        fingerprint(f"http://h/{year}/", page(f"<h1>{name} {year}</h1>rien"))
        for year in range(1990, 2100)
        for name in names
    }
    assert len(prints) == len(names)


def test_what_stands_in_tags_does_not_count():
    one = page('<a class="today" href="/2031/04/" data-x="a b">next</a><!-- made in May -->')
    assert same(one, page('<a href="/cal?token=abc">next</a>', head='<meta content="x">'))


def test_tokens_do_not_make_a_page_new():
    def with_token() -> bytes:
        token = secrets.token_hex(16)
        return page(
            f'<input type=hidden name=csrf value="{secrets.token_urlsafe(30)}">'
            f'<script nonce="{secrets.token_urlsafe()}">window.state={{"csrf":"{token}"}}</script>'
            f"<p>Request {token} served.</p>"
        )

    assert len({fingerprint("http://h/?d=1", with_token()) for _ in range(50)}) == 1


def test_the_words_of_the_url_do_not_make_a_page_new():
    def results(words: str) -> int:
        body = page(f"<h1>Results for {words.replace('+', ' ').upper()}</h1>None.")
        return fingerprint(f"http://h/search?q={words}&page=2", body)

    assert results("red+shoes") == results("trilobites")


def test_chinese_pages_differ_by_what_they_say():
    assert not same(
        page("今天天气很好我们去公园吧今天天气很好"), page("明天可能下雨所以我们留在家里看书")
    )
    assert same(page("2031年3月 没有活动"), page("2030年12月 没有活动"))


def test_a_gallery_differs_by_its_pictures():
    assert not same(page('<img src="/DSC_0017.jpg">'), page('<img src="/DSC_0018.jpg">'))


def test_a_picture_drawn_for_the_date_does_not_make_a_page_new():
    assert same(page('<img src="/chart?day=17">'), page('<img src="/chart?day=18">'))


def test_of_a_huge_page_both_ends_count():
    filler = "<p>the same again" * 50_000
    assert not same(page(filler + "apples"), page(filler + "pears"))
    assert not same(page("apples" + filler), page("pears" + filler))
    assert same(page(filler + "apples" + filler), page(filler + "pears" + filler))


@pytest.mark.parametrize("body", [b"<" * 10**7, b"src=" * 10**6, b"a1 " * 10**6, b"\0" * 10**7])
def test_no_body_takes_half_a_second(body):
    start = process_time()
    fingerprint("http://h/1", body)
    assert process_time() - start < 0.5


def brings(harvest: Streak, bodies: list[bytes]) -> list[float]:
    barren = []
    for body in bodies:
        harvest.add("http://h/1", body)
        barren.append(harvest.barren)
    return barren


def words(start: int, count: int) -> list[bytes]:
    letters = str.maketrans("0123456789", "abcdefghij")
    return [page(str(number).translate(letters)) for number in range(start, start + count)]


def test_pages_that_say_nothing_new_are_counted_by_fours():
    assert brings(Streak(), [page("the same")] * 13) == [
        0,
        0,
        0,
        0,
        4,
        4,
        4,
        4,
        8,
        8,
        8,
        8,
        12,
    ]


def test_one_new_page_begins_the_count_again():
    harvest = Streak()
    assert brings(harvest, [page("the same")] * 20)[-1] == 16
    assert brings(harvest, words(0, 1)) == [0]


def test_pages_that_lead_as_far_as_those_before_are_counted_as_a_tenth():
    pages, found = Streak(), []
    for day in range(1_000, 1_017):
        links = [f"http://h/h?d={day + step}" for step in (-1, 1, 30)]
        pages.add(f"http://h/h?d={day}", page("Nothing"), 1.0, links)
        found.append(pages.steady)
    assert found[::4] == pytest.approx([0, 0, 0.4, 0.8, 1.2])
    pages.add("http://h/h?d=5", page("Nothing"), 1.0, ["http://h/h?d=0"])
    assert pages.steady == pytest.approx(1.2)
    for _ in range(4):
        pages.add("http://h/h?d=5", page("Nothing"), 1.0, ["http://h/h?d=0"])
    assert pages.steady == 0


@for_each(
    "url, links, expected",
    [
        ("/h?d=5", ["/h?d=4", "/h?d=6", "/h?d=35"], {(-1,), (1,), (30,)}),
        ("/h?d=-1", ["/h?d=-2", "/h?d=0", "/h?d=29"], {(-1,), (1,), (30,)}),
        ("/7-9/", ["/7-8/", "/7-10/", "/8-9/"], {(0, -1), (0, 1), (1, 0)}),
        ("/h?d=5", ["/h?d=5", "/h?d=4", "/h?d=6"], set()),
        ("/h?d=5", ["/h?d=6", "/h?d=7", "/h?d=8"], set()),
        ("/h?d=5", ["/h?d=4", "/h?d=6", "/g?d=35", "/h?e=7"], set()),
        ("/h?d=5", [], set()),
    ],
)
def test_steps_are_three_distances_at_least_and_go_both_ways(url, links, expected):
    found = steps(f"http://h{url}", [f"http://h{link}" for link in links])
    assert {distance for _, distance in found} == expected


def test_a_pattern_that_brought_enough_is_trusted():
    harvest = Streak()
    brings(harvest, words(0, 4 * 4_096))
    assert brings(harvest, [page("the same")] * 1_000)[-1] == 0
