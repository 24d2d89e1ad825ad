from __future__ import annotations

import pytest
from cases import for_each
from hypothesis import given
from hypothesis import strategies as st

from trio_crawler.page.urls import is_web, normalise, origin
from trio_crawler.policy.url_shapes import without_session

ID = "0a1b2c3d4e5f60718293a4b5c6d7e8f9"
UUID = "6fa459ea-ee8a-3ca4-894e-db77e160355e"
SEGMENT = "(S(lit3py55t21z5v55vlm25s55))"

WORDS = [
    "a",
    "b",
    "x=1",
    "sid=7",
    "",
    "=",
    "session",
    "Sid",
    "CFID=3",
    "a;b",
    "(S(x))",
    "%20",
    "?",
]
SESSIONS = [f"PHPSESSID={ID}", f"sid={ID}", f"zenid={ID}", f"session_id={UUID}", f"sessionid={ID}"]
paths = st.lists(
    st.sampled_from([*WORDS, SEGMENT, f";jsessionid={ID}", "x;jsessionid="]), max_size=5
)
queries = st.lists(st.sampled_from([*WORDS, *SESSIONS, f"CFTOKEN={ID}"]), max_size=5)
urls = st.builds(
    lambda names, parts: normalise("http://h/" + "/".join(names) + "?" + "&".join(parts)),
    paths,
    queries,
)


@for_each(
    "url, plain",
    [
        (f"http://h/a;jsessionid={ID}", "http://h/a"),
        (f"http://h/a;JSESSIONID={ID}.node1?b=1", "http://h/a?b=1"),
        (f"http://h/a;v=1;jsessionid={ID};w=2/b", "http://h/a;v=1;w=2/b"),
        (f"http://h/;jsessionid={ID}", "http://h/"),
        (f"http://h/a?PHPSESSID={ID}", "http://h/a"),
        (f"http://h/a?b=1&PHPSESSID={ID}&c=2", "http://h/a?b=1&c=2"),
        (f"http://h/a?phpsessid={ID}&c=%2F+", "http://h/a?c=%2F+"),
        ("http://h/a?ASPSESSIONIDQQBSCABC=LNLDMMOB&b", "http://h/a?b"),
        (f"http://h/a?jsessionid={ID}", "http://h/a"),
        (f"http://h/a?osCsid={ID}", "http://h/a"),
        (f"http://h/a?zenid={ID}", "http://h/a"),
        (f"http://h/a?sid={ID}", "http://h/a"),
        (f"http://h/a?SID={UUID}&t=1", "http://h/a?t=1"),
        (f"http://h/a?sessionid={ID}", "http://h/a"),
        (f"http://h/a?session_id={ID}", "http://h/a"),
        ("http://h/a?CFID=12345&b=1&CFTOKEN=8f2c4b-1", "http://h/a?b=1"),
        (f"http://h/{SEGMENT}/", "http://h/"),
        (f"http://h/app/{SEGMENT}/page.aspx?b=1", "http://h/app/page.aspx?b=1"),
        (f"http://h/{SEGMENT};jsessionid=1/a", "http://h/a"),
        (f"http://h/{SEGMENT}/a;jsessionid=1?b=1&sid={ID}", "http://h/a?b=1"),
    ],
)
def test_a_session_id_is_cut_out_and_the_rest_stays(url, plain):
    assert without_session(url) == plain


@for_each(
    "url",
    [
        "http://h/",
        "http://h/a/b.html?page=2&sort=name",
        "http://h/a;b=1/c(d)/e?f;g",
        "http://h/?sid=42",
        "http://h/?sid=understandingsystems",
        "http://h/?session_id=42&sessionid=monday-morning",
        f"http://h/?sidebar={ID}&mysid={ID}&id={ID}",
        f"http://h/?PHPSESSIDX={ID}&session={ID}",
        "http://h/?CFID=12345",
        "http://h/?CFTOKEN=12345",
        "http://h/(S(short))/a",
        f"http://h/{SEGMENT}",
        f"http://h/a?next=/b;jsessionid={ID}",
        f"http://h/{SEGMENT}x/a",
        "http://h/?",
        "http://h/?&&a",
        f"mailto:a;jsessionid={ID}?sid={ID}",
        f"javascript:f;jsessionid={ID}(S(x))",
        "http://;jsessionid=x/",
        "http://(s(aaaaaaaaaaaaaaaaaaaaaaaa))/x",
    ],
)
def test_what_only_looks_a_little_like_a_session_is_returned_itself(url):
    assert without_session(url) is url


HOSTS = ["h", ";jsessionid=x", "(s(aaaaaaaaaaaaaaaaaaaaaaaa))", "[::1]:81", "h;jsessionid=1.", "?"]
NAMES = [
    *WORDS,
    "..",
    ".",
    "%2e",
    "..;jsessionid=1",
    ".;jsessionid=",
    SEGMENT,
    f";jsessionid={ID}",
]


def is_url(text: str) -> bool:
    try:
        return is_web(normalise(text))
    except ValueError:
        return False


odd_urls = (
    st.builds(
        lambda scheme, host, names, parts: (
            f"{scheme}://{host}/{'/'.join(names)}?{'&'.join(parts)}"
        ),
        st.sampled_from(["http", "https"]),
        st.sampled_from(HOSTS),
        st.lists(st.sampled_from(NAMES), max_size=5),
        st.lists(st.sampled_from([*WORDS, *SESSIONS]), max_size=3),
    )
    .filter(is_url)
    .map(normalise)
)


@given(odd_urls)
def test_whatever_is_cut_the_url_is_normalised_and_of_the_same_origin(url):
    plain = without_session(url)
    assert normalise(plain) == plain
    assert origin(plain) == origin(url)
    assert without_session(plain) is plain


@pytest.mark.parametrize(
    ("url", "plain"),
    [
        ("http://h/x/..;jsessionid=1/private", "http://h/private"),
        ("http://h/a/b/..;jsessionid=1", "http://h/a/"),
        (f"http://;jsessionid=x/a;jsessionid={ID}", "http://;jsessionid=x/a"),
        (
            f"http://(s(aaaaaaaaaaaaaaaaaaaaaaaa))/{SEGMENT}/a",
            "http://(s(aaaaaaaaaaaaaaaaaaaaaaaa))/a",
        ),
    ],
)
def test_what_a_session_id_hid_is_resolved_and_the_host_stays(url, plain):
    assert without_session(url) == plain


@given(urls, st.sampled_from(SESSIONS), st.integers(0, 5))
def test_a_page_has_one_url_whatever_session_is_written_into_it(url, session, place):
    path, mark, query = without_session(url).partition("?")
    parts = query.split("&") if query else []
    plain = path + mark + query if query else path
    parts.insert(place, session)
    assert without_session(f"{path}?{'&'.join(parts)}") == plain
