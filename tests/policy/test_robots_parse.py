"""Robots text: product tokens, groups, delays, sitemaps, and bytes that are no such text."""

from __future__ import annotations

import codecs

import pytest
from cases import for_each
from hypothesis import example, given
from hypothesis import strategies as st

from trio_crawler.policy.robots import ALLOW_ALL, MAX_BYTES, MAX_DELAY, parse_rules, product_token


def free(text: str | bytes, token: str = "bot", paths: str = "abcd") -> str:
    """Give those of the one-letter paths that a robots.txt allows."""
    rules = parse_rules(text.encode() if isinstance(text, str) else text, token)
    return "".join(path for path in paths if rules.allows(f"http://h.example/{path}"))


@for_each(
    "user_agent, token",
    [
        ("trio_crawler/0.1 (+https://example.org/)", "trio_crawler"),
        ("My-Bot", "My-Bot"),
        ("  MyBot/1.0", "MyBot"),
        ("My Bot/1.0", "My"),
        ("MJ12bot/1.4", "MJ"),
        ("Mozilla/5.0 (compatible; MyBot/1.0; +http://e.org/)", "MyBot"),
        ("mozilla/5.0 (Linux; like Gecko; compatible;  MyBot/2.1) Chrome/1 Safari/2", "MyBot"),
        ("Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0", "Mozilla"),
        ("Mozilla/5.0 (compatible; 12)", "Mozilla"),
        ("MyBot/1.0 (compatible; Googlebot/2.1)", "MyBot"),
        ("008/0.83", ""),
        ("*", ""),
        ("", ""),
        ("Ünser", ""),
    ],
)
def test_the_product_token_is_the_name_in_front_or_the_one_a_browsers_comment_hides(
    user_agent, token
):
    assert product_token(user_agent) == token


@for_each(
    "text, allowed",
    [
        ("", "abcd"),
        ("Disallow: /a", "abcd"),
        ("User-agent: *\nDisallow: /a", "bcd"),
        ("User-agent: *\nDisallow:", "abcd"),
        ("User-agent: *\nAllow: /a", "abcd"),
        ("User-agent: other\nDisallow: /", "abcd"),
        ("User-agent: *\nDisallow: /a\nUser-agent: bot\nDisallow: /b", "acd"),
        ("User-agent: bot\nDisallow: /b\nUser-agent: *\nDisallow: /a", "acd"),
        ("User-agent: bot\nUser-agent: *\nDisallow: /a", "bcd"),
        ("User-agent: *\nDisallow: /a\nUser-agent: bot", "abcd"),
        ("User-agent: *\nDisallow: /a\nUser-agent: bot\nDisallow:", "abcd"),
        (
            "User-agent: bot\nDisallow: /a\nUser-agent: x\nDisallow: /\n"
            "User-agent: BOT\nDisallow: /b",
            "cd",
        ),
        (
            "User-agent: *\nDisallow: /a\nUser-agent: x\nDisallow: /\nUser-agent: *\nDisallow: /b",
            "cd",
        ),
        ("User-agent: bot/2.0 x\nDisallow: /a\nUser-agent: *\nDisallow: /", "bcd"),
        ("User-agent: bot*\nDisallow: /a\nUser-agent: *\nDisallow: /", "bcd"),
        ("User-agent: Mozilla/5.0 (compatible; bot/2.0)\nDisallow: /a", "bcd"),
        ("User-agent: * # all\nDisallow: /a # this", "bcd"),
        ("User-agent: * all\nDisallow: /a", "bcd"),
        ("User-agent: *bot\nDisallow: /", "abcd"),
        ("User-agent: robot\nDisallow: /", "abcd"),
        ("User-agent: bots\nDisallow: /", "abcd"),
        ("User-agent: bo\nDisallow: /", "abcd"),
        ("User-agent: *\nDisallow: /a\nUser-agent:\nDisallow: /", "bcd"),
        ("User-agent: bot\n\nDisallow: /a\n\nDisallow: /b", "cd"),
        ("User-agent: bot\nSitemap: http://e.org/s\nFoo: bar\nUser-agent: x\nDisallow: /a", "bcd"),
        ("User-agent: bot\nCrawl-delay: 5\nUser-agent: x\nDisallow: /a", "bcd"),
        ("User-agent: bot\nDisallow: /a\nCrawl-delay: 5\nUser-agent: x\nDisallow: /b", "bcd"),
        ("uSER-aGENT : bot \n \t dISALLOW\t:\t/a\t", "bcd"),
        ("user-agent bot\ndisallow /a\nallow /", "bcd"),
        ("user-agent: bot\ndisallow /a /b", "abcd"),
        ("User-agent: bot\nDisallow: a\nDisallow: http://h.example/b", "abcd"),
    ],
)
def test_all_groups_of_the_agent_count_together_or_else_those_of_everyone(text, allowed):
    assert free(text) == allowed


@pytest.mark.parametrize("token", ["", "Foo Bar", "*"])
def test_an_agent_without_a_name_goes_by_the_groups_of_everyone(token):
    text = "User-agent: *\nDisallow: /a\nUser-agent: Foo\nDisallow: /b\nUser-agent:\nDisallow: /c"
    assert free(text, token) == "bcd"


@for_each("end", ["\n", "\r", "\r\n", "\n\n", "\n\r"])
def test_lines_end_as_they_like(end):
    assert free(end.join(["User-agent: *", "Disallow: /a", "Disallow: /b"])) == "cd"


@for_each(
    "encode",
    [
        lambda text: b"\xef\xbb\xbf" + text.encode(),
        lambda text: text.encode("utf-16"),
        lambda text: b"\xfe\xff" + text.encode("utf-16-be"),
        lambda text: text.encode("utf-32"),
        lambda text: text.encode("utf-16-le"),
        lambda text: text.encode("utf-16-be"),
        lambda text: text.replace("/", "\0/").encode() + b"\0",
    ],
)
def test_byte_order_marks_utf_16_and_nul_bytes_do_not_matter(encode):
    assert free(encode("User-agent: *\nDisallow: /a\nDisallow: /b")) == "cd"


@pytest.mark.parametrize("mark", [b"\xef", b"\xef\xbb", b"\xef\xbb\xbf"])
def test_the_byte_order_mark_of_utf_8_may_be_cut_as_in_googles_parser(mark):
    assert free(mark + b"User-agent: *\nDisallow: /a") == "bcd"


@given(st.binary(max_size=6))
@example(b"\xff\xfe\x80")
@example(b"\xfe\xff\xd8")
def test_no_bytes_in_the_first_line_change_the_rules_of_the_others(rubbish):
    if b":" not in rubbish and len(rubbish.split()) != 2:
        rules = rubbish.replace(b"\0", b"") + b"\nUser-agent: *\nDisallow: /a\n"
        assert free(rules) == "bcd"


@given(st.text(max_size=20).filter(lambda text: "\0" not in text))
def test_a_comment_in_utf_16_says_nothing(comment):
    line = "# " + "".join(comment.splitlines())
    for coding in ("utf-16", "utf-16-le", "utf-16-be"):
        mark = b"" if coding == "utf-16" else codecs.BOM_UTF16_LE
        mark = codecs.BOM_UTF16_BE if coding == "utf-16-be" else mark
        text = f"{line}\nUser-agent: *\nDisallow: /a".encode(coding)
        assert free(mark + text) == "bcd"


def test_each_line_that_is_no_utf_8_is_latin_1():
    text = b"# \xff\nUser-agent: *\nDisallow: /\xfc\nDisallow: /" + "ö".encode()
    rules = parse_rules(text, "bot")
    assert not rules.allows("http://h.example/%C3%BC")
    assert not rules.allows("http://h.example/%C3%B6")


def test_a_page_served_in_place_of_a_robots_txt_allows_everything():
    page = "<!doctype html>\n<title>404: Not found</title>\n<p>User-agent: *<br>\nDisallow: /</p>"
    assert parse_rules(page.encode(), "bot") is ALLOW_ALL


@for_each(
    "value, delay",
    [
        ("5", 5.0),
        ("0.5", 0.5),
        (".5", 0.5),
        ("5.", 5.0),
        ("  7  # seconds", 7.0),
        ("0", 0.0),
        ("60", 60.0),
        ("61", MAX_DELAY),
        ("9" * 5_000, MAX_DELAY),
        ("-1", 0.0),
        ("nan", 0.0),
        ("inf", 0.0),
        ("1e2", 0.0),
        ("1_0", 0.0),
        ("\u0665", 0.0),
        ("5s", 0.0),
        (".", 0.0),
        ("", 0.0),
    ],
)
def test_a_crawl_delay_is_a_number_of_seconds_up_to_60_or_nonsense(value, delay):
    assert parse_rules(f"User-agent: *\nCrawl-delay: {value}".encode(), "bot").delay == delay


@for_each(
    "text, delay",
    [
        ("Crawl-delay: 5", 0),
        ("User-agent: *\nCrawl-delay: 5\nUser-agent: bot\nDisallow: /a", 0),
        ("User-agent: x\nCrawl-delay: 5\nUser-agent: bot\nDisallow: /a", 0),
        ("User-agent: bot\nCrawl-delay: 5\nUser-agent: x\nCrawl-delay: 9\nDisallow: /a", 5),
        ("User-agent: bot\nDisallow: /a\nCrawl-delay: 5\nUser-agent: x\nCrawl-delay: 9", 5),
        ("User-agent: bot\nUser-agent: x\nCRAWL-DELAY: 5", 5),
        ("User-agent: bot\nCrawl-delay: 5\nCrawl-delay: 3\nCrawl-delay: -1", 5),
        ("User-agent: bot\nDisallow: /a\nUser-agent: x\nCrawl-delay: 5", 0),
        (
            "User-agent: bot\nDisallow: /a\nUser-agent: x\nDisallow: /\n"
            "User-agent: bot\nCrawl-delay: 5",
            5,
        ),
    ],
)
def test_a_crawl_delay_is_for_the_agents_named_right_before_it(text, delay):
    assert parse_rules(text.encode(), "bot").delay == delay


def test_sitemaps_are_taken_from_anywhere_once_each_and_in_order():
    text = (
        "Sitemap: http://h.example/1\nUser-agent: x\nSITEMAP : HTTPS://other.example/2?a=b # it\n"
        "Disallow: /\nsitemap:http://h.example/1\nSitemap: /3\nSitemap: ftp://h.example/4\n"
        "Sitemap: http://\nSitemap: http://[/\nSitemap:\nSitemap: http://h.example/ü\r\n"
    )
    rules = parse_rules(text.encode(), "bot")
    assert rules.sitemaps == (
        "http://h.example/1",
        "HTTPS://other.example/2?a=b",
        "http://h.example/ü",
    )
    assert rules.allows("http://h.example/a")


def test_no_more_than_a_thousand_sitemaps_are_taken():
    text = "".join(f"Sitemap: http://h.example/{number // 2}\n" for number in range(5_000))
    found = parse_rules(text.encode(), "bot").sitemaps
    assert found == tuple(f"http://h.example/{number}" for number in range(1_000))


@pytest.mark.parametrize("end", [b"\n", b"\r"])
def test_what_begins_after_500_kib_does_not_count_nor_does_a_line_that_may_be_cut(end):
    head, last = b"User-agent: *\nDisallow: /a\n", b"\nDisallow: /b"
    body = head + b"#" * (MAX_BYTES - len(head) - len(last) - 1) + last
    assert free(body + end) == "cd"
    assert free(body + end + b"Disallow: /c" + end) == "cd"
    assert free(body + b"b" + end + b"Disallow: /c" + end) == "bcd"
    assert free(body) == "cd"
    assert free(body.replace(b"#", b"##", 1)) == "bcd"


def test_a_line_counts_up_to_16_663_bytes():
    path = "/" + "x" * (16_663 - len("Disallow: /"))
    for more in ("", "y", "y" * 20_000):
        rules = parse_rules(f"User-agent: *\nDisallow: {path}{more}\n".encode(), "bot")
        assert not rules.allows(f"http://h.example{path}")
        assert rules.allows(f"http://h.example{path[:-1]}")


@given(st.binary(max_size=300), st.text(max_size=8))
@example(b"User-agent: *\nDisallow: /\xed\xa0\x80", "")
@example(b"\xff\xfe\x00", "bot")
@example("User-agent: *\nDisallow: /\ud800".encode("utf-16", "surrogatepass"), "bot")
def test_no_bytes_raise(body, token):
    rules = parse_rules(b"User-agent: *\nDisallow: /x*" + body, token)
    assert rules.allows("http://h.example/robots.txt")
    parse_rules(body, token).allows("http://h.example/a")
