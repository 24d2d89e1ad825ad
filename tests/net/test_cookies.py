"""What a crawl keeps of Set-Cookie, and to whom it is told again."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import httpx
import pytest
import trio
from cases import for_each
from hypothesis import example, given
from hypothesis import strategies as st

from trio_crawler.net.cookies import MAX_BYTES, MAX_COOKIES, MAX_HOSTS, CookieStore

URL = "http://a.test/"
SAFE = "https://a.test/"
NOW = datetime(2026, 11, 21, 12, 0, 0, tzinfo=UTC)


class Clock:
    """A clock that stands still until it is moved; the calendar goes with it."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def today(self) -> datetime:
        return NOW + timedelta(seconds=self.now)


class Store(CookieStore):
    """A store on a clock of its own that takes fields as text."""

    def __init__(self) -> None:
        self.time = Clock()
        super().__init__(clock=self.time, today=self.time.today)

    @property
    def kept(self) -> int:
        return sum(len(jar) for jar in self._jars.values())

    def said(self, url: str, *fields: str | bytes) -> Store:
        raw = [field.encode("latin-1") if isinstance(field, str) else field for field in fields]
        self.store(url, httpx.Headers([(b"Set-Cookie", field) for field in raw]))
        return self


def sent(url: str, field: str, to: str) -> str | None:
    """Give what one field, set by a URL, makes a request for another URL say."""
    return Store().said(url, field).cookies_for(to)


# What is understood.


@for_each(
    "field, header",
    [
        ("a=1", "a=1"),
        ("a=", "a="),
        ("a=b=c", "a=b=c"),
        ('a="x y"', 'a="x y"'),
        (" a \t = 1 ;", "a=1"),
        ("a=1; Path=/; HttpOnly; SameSite=Strict; Foo=bar; ;;", "a=1"),
        ("a=1;PATH=/", "a=1"),
        ("a=1, b=2", "a=1, b=2"),
        ("a=\xe9", "a=\xe9"),
    ],
)
def test_a_cookie_is_sent_back_as_it_was_set(field, header):
    assert sent(URL, field, URL) == header


def test_bytes_beyond_ascii_come_back_byte_for_byte():
    value = "a=é€".encode() + b"\xff"
    header = Store().said(URL, value).cookies_for(URL)
    assert header is not None
    assert header.encode("latin-1") == value


@for_each("field", ["", "=", "=1", " =1", "a", ";a=1", "; Path=/", "Secure"])
def test_what_has_no_name_and_value_is_no_cookie(field):
    assert sent(URL, field, URL) is None


@for_each("code", [*range(9), *range(10, 32), 127])
def test_a_control_character_anywhere_refuses_the_whole_cookie(code):
    for field in (b"a%c=1", b"a=1%c2", b"a=1; Path=/%c", b"a=1;%c"):
        assert Store().said(URL, field % code).cookies_for(URL) is None


def test_every_field_of_an_answer_is_taken_whatever_its_spelling():
    headers = httpx.Headers([(b"SET-COOKIE", b"a=1"), (b"x", b"y"), (b"set-cookie", b"b=2")])
    store = Store()
    store.store(URL, headers)
    assert store.cookies_for(URL) == "a=1; b=2"


def test_an_answer_without_cookies_leaves_nothing():
    store = Store()
    store.store(URL, httpx.Headers({"cookie": "a=1", "set-cookie2": "b=2"}))
    assert (store.kept, store.cookies_for(URL)) == (0, None)


# To whom.


@for_each(
    "domain",
    ["", "; Domain=a.test", "; Domain=.a.test", "; Domain=A.TEST", "; Domain=test", "; Domain="],
)
@for_each(
    "other",
    [
        *("http://b.test/", "http://www.a.test/", "http://test/", "http://xa.test/"),
        *("http://a.test./", "http://a.test.b.test/", "http://127.0.0.1/"),
    ],
)
def test_a_cookie_goes_back_to_exactly_the_host_that_set_it(domain, other):
    store = Store().said(URL, "a=1" + domain)
    assert store.cookies_for(URL) == "a=1"
    assert store.cookies_for(other) is None


@for_each(
    "url, domain",
    [
        (URL, "b.test"),
        (URL, "www.a.test"),
        (URL, "xa.test"),
        (URL, "est"),
        (URL, "a.test."),
        (URL, "..a.test"),
        (URL, "\xe9.test"),
        ("http://127.0.0.1/", "0.0.1"),
        ("http://127.0.0.1/", "1"),
        ("http://[::1]/", "1]"),
        ("http://[::1]/", "::1"),
    ],
)
def test_a_domain_that_the_host_is_not_in_refuses_the_cookie(url, domain):
    assert sent(url, f"a=1; Domain={domain}", url) is None


@for_each("host", ["127.0.0.1", "[::1]", "xn--bcher-kva.test", "a.b2", "localhost"])
def test_a_host_may_name_itself_as_the_domain_and_has_its_own_cookies_on_any_port(host):
    store = Store().said(f"http://{host}:8080/", f"a=1; Domain={host}")
    assert store.cookies_for(f"http://{host}/") == "a=1"
    assert store.cookies_for(f"https://{host}:8443/x?y") == "a=1"


def test_the_suffix_of_a_name_that_ends_in_a_digit_is_a_domain_it_is_in():
    assert sent("http://a.b2/", "a=1; Domain=b2", "http://a.b2/") == "a=1"


def test_a_secure_cookie_is_sent_by_https_only_and_one_without_the_word_also_in_the_clear():
    store = Store().said(SAFE, "s=1; Secure", "p=2")
    assert store.cookies_for(SAFE) == "s=1; p=2"
    assert store.cookies_for(URL) == "p=2"


def test_what_came_in_the_clear_cannot_set_a_secure_cookie():
    assert sent(URL, "a=1; Secure", SAFE) is None


@pytest.mark.parametrize("field", ["a=evil", "a=evil; Path=/x/y", "a=; Max-Age=0; Path=/x"])
def test_what_came_in_the_clear_cannot_hide_change_or_delete_a_secure_cookie(field):
    store = Store().said("https://a.test/x/", "a=good; Secure; Path=/x")
    store.said("http://a.test/x/y", field)
    assert store.cookies_for("https://a.test/x/y") == "a=good"


@pytest.mark.parametrize("field", ["a=new", "a=new; Secure"])
def test_what_came_by_https_may_change_a_secure_cookie(field):
    store = Store().said(SAFE, "a=old; Secure").said(SAFE, field)
    assert store.cookies_for(SAFE) == "a=new"


def test_a_cookie_in_the_clear_may_have_the_name_of_a_secure_one_on_another_path():
    store = Store().said(SAFE, "a=good; Secure; Path=/x").said(URL, "a=2; Path=/xy", "b=3")
    assert store.cookies_for("https://a.test/xy") == "a=2; b=3"
    assert store.cookies_for("https://a.test/x") == "a=good; b=3"


@for_each(
    "url, field, kept",
    [
        (SAFE, "__Secure-a=1; Secure", True),
        (SAFE, "__secure-a=1; Secure; Domain=a.test", True),
        (SAFE, "__Secure-a=1", False),
        (URL, "__Secure-a=1; Secure", False),
        (SAFE, "__Host-a=1; Secure; Path=/", True),
        (SAFE, "__HOST-a=1; Secure; Path=/", True),
        (SAFE, "__Host-a=1; Secure; Path=/x", False),
        (SAFE, "__Host-a=1; Secure", False),
        (SAFE, "__Host-a=1; Path=/", False),
        (SAFE, "__Host-a=1; Secure; Path=/; Domain=a.test", False),
        (URL, "__Host-a=1; Secure; Path=/", False),
        (URL, "__Hos-a=1", True),
    ],
)
def test_a_name_that_promises_something_keeps_it(url, field, kept):
    assert (sent(url, field, url) is not None) is kept


# Paths.


@for_each(
    "set_by, asked, goes",
    [
        ("/", "/", True),
        ("/", "/x", True),
        ("/x", "/", True),
        ("/x/", "/x", True),
        ("/x/", "/x/", True),
        ("/x/y", "/x", True),
        ("/x/y", "/x/", True),
        ("/x/y", "/xy", False),
        ("/x/y?/z/", "/x/q", True),
        ("/x/y?/z/", "/x/y?/z/", True),
        ("/x/y/z", "/x/y", True),
        ("/x/y/z", "/x/z", False),
    ],
)
def test_without_a_path_a_cookie_is_for_the_directory_it_came_from(set_by, asked, goes):
    answer = sent("http://a.test" + set_by, "a=1", "http://a.test" + asked)
    assert (answer is not None) is goes


@for_each(
    "path, asked, goes",
    [
        ("/x", "/x", True),
        ("/x", "/x/", True),
        ("/x", "/x/y", True),
        ("/x", "/x?q", True),
        ("/x", "/xy", False),
        ("/x", "/", False),
        ("/x", "/X", False),
        ("/x/", "/x", False),
        ("/x/", "/x/y", True),
        ("/", "/anything", True),
        ("x", "/dir/y", True),
        ("", "/dir/y", True),
        ("x", "/", False),
        ("/other", "/other", True),
        ("/" + "p" * 1024, "/dir/", True),
        ("/" + "p" * 1024, "/", False),
    ],
)
def test_a_path_is_matched_by_whole_segments_and_one_without_slash_is_the_directory(
    path, asked, goes
):
    answer = sent("http://a.test/dir/page", f"a=1; Path={path}", "http://a.test" + asked)
    assert (answer is not None) is goes


def test_longer_paths_come_first_and_then_what_was_created_first():
    store = Store().said(URL, "c=1; Path=/", "b=2; Path=/x/y", "a=3; Path=/x", "d=4; Path=/")
    store.said(URL, "c=5; Path=/")
    assert store.cookies_for("http://a.test/x/y") == "b=2; a=3; c=5; d=4"


def test_one_name_on_two_paths_is_two_cookies_and_on_the_same_path_one():
    store = Store().said(URL, "a=1; Path=/", "a=2; Path=/x", "a=3; Path=/")
    assert store.cookies_for("http://a.test/x") == "a=2; a=3"


def test_of_an_attribute_the_last_one_counts():
    assert sent(URL, "a=1; Path=/x; Path=/y", "http://a.test/y") == "a=1"
    assert sent(URL, "a=1; Domain=b.test; Domain=a.test", URL) == "a=1"
    assert sent(URL, "a=1; Max-Age=0; Max-Age=5", URL) == "a=1"


# Its end.


@for_each(
    "field",
    [
        "Max-Age=60",
        "max-age=060",
        "Expires=Sat, 21 Nov 2026 12:01:00 GMT",
        "expires=Saturday, 21-Nov-26 12:01:00 GMT",
        "EXPIRES=Sat Nov 21 12:01:00 2026",
        "Max-Age=60; Expires=Thu, 01 Jan 1970 00:00:00 GMT",
        "Expires=Thu, 01 Jan 1970 00:00:00 GMT; Max-Age=60",
        "Max-Age=60; Max-Age=soon",
        "Expires=Sat, 21 Nov 2026 12:01:00 GMT; Expires=never",
    ],
)
def test_a_cookie_ends_to_the_second_and_max_age_comes_before_expires(field):
    store = Store().said(URL, f"a=1; {field}")
    store.time.now = 59.9
    assert store.cookies_for(URL) == "a=1"
    store.time.now = 60
    assert store.cookies_for(URL) is None
    assert store.said(URL, "b=2").kept == 1


@for_each(
    "field", ["Expires=never", "Expires=", "Expires", "Max-Age=", "Max-Age=1.5", "Max-Age=+5"]
)
def test_a_bad_end_is_none_and_the_cookie_lives_as_long_as_the_store(field):
    store = Store().said(URL, f"a=1; {field}")
    store.time.now = 1e9
    assert store.cookies_for(URL) == "a=1"


@pytest.mark.parametrize(
    "field",
    ["Max-Age=99999999999", f"Max-Age={'9' * 1000}", "Expires=Fri, 31 Dec 9999 23:59:59 GMT"],
)
def test_no_end_is_further_than_400_days(field):
    store = Store().said(URL, f"a=1; {field}")
    store.time.now = 400 * 86_400 - 1
    assert store.cookies_for(URL) == "a=1"
    store.time.now += 1
    assert store.cookies_for(URL) is None


@for_each(
    "field",
    [
        "Max-Age=0",
        "Max-Age=-1",
        f"Max-Age=-{'9' * 1000}",
        "Expires=Thu, 01 Jan 1970 00:00:00 GMT",
        "Expires=Sat, 21 Nov 2026 12:00:00 GMT",
    ],
)
def test_an_end_in_the_past_deletes_the_cookie_of_that_name_and_path_only(field):
    store = Store().said(URL, "a=1; Path=/", "a=2; Path=/x", "b=3")
    store.said(URL, f"a=; Path=/; {field}")
    assert store.cookies_for("http://a.test/x") == "a=2; b=3"


def test_a_cookie_that_ended_and_is_set_anew_is_a_new_one():
    store = Store().said(URL, "a=1; Max-Age=5", "b=2")
    store.time.now = 5
    assert store.said(URL, "a=3").cookies_for(URL) == "b=2; a=3"


# The bounds.


def test_a_host_keeps_fifty_cookies_the_ones_not_set_for_longest_going_first():
    store = Store().said(URL, *(f"n{number}=x" for number in range(MAX_COOKIES)))
    store.said(URL, "n0=y", "new=1")
    header = store.cookies_for(URL)
    assert header is not None
    names = [pair.partition("=")[0] for pair in header.split("; ")]
    assert len(names) == store.kept == 50
    assert "n0" in names
    assert "n1" not in names


def test_a_host_keeps_8_kib():
    store = Store().said(URL, *(f"n{number}={'x' * 2000}" for number in range(10)))
    header = store.cookies_for(URL)
    assert header is not None
    assert 3 * 2000 < len(header) <= MAX_BYTES
    assert [pair[:3] for pair in header.split("; ")] == ["n6=", "n7=", "n8=", "n9="]


@pytest.mark.parametrize(
    ("size", "kept"), [(4095, True), (4096, False), (10_000, False), (60_000, False)]
)
def test_a_pair_of_more_than_4096_bytes_is_refused_and_costs_no_other_cookie(size, kept):
    store = Store().said(URL, "b=1", f"a{'x' * (size // 2)}={'y' * (size - size // 2)}")
    header = store.cookies_for(URL) or ""
    assert header.startswith("b=1")
    assert ("; a" in header) is kept


def test_a_directory_of_great_length_keeps_no_cookie_and_costs_no_other_cookie():
    store = Store().said(URL, "b=1").said(f"{URL}{'d' * 20_000}/x", "a=1")
    assert store.kept == 1


def test_so_many_hosts_have_cookies_and_the_ones_not_heard_of_for_longest_go_first():
    store = Store()
    for number in range(MAX_HOSTS):
        store.said(f"http://h{number}.test/", "a=1")
    store.said("http://h0.test/", "b=2").said("http://new.test/", "a=1")
    assert store.kept == MAX_HOSTS + 1
    assert store.cookies_for("http://h0.test/") == "a=1; b=2"
    assert store.cookies_for("http://h1.test/") is None
    assert store.cookies_for("http://h2.test/") == "a=1"


# Whatever comes.


attributes = st.sampled_from(
    ["Path=/", "Path=/x", "Secure", "Domain=a.test", "Domain=b.test", "Max-Age=0", "Max-Age=9"]
)
fields = st.one_of(
    st.binary(max_size=60),
    st.builds(
        lambda name, value, more: "; ".join([f"{name}={value}", *more]).encode("latin-1"),
        st.text(st.characters(max_codepoint=255), max_size=8),
        st.text(st.characters(max_codepoint=255), max_size=8),
        st.lists(attributes, max_size=4),
    ),
)
urls = st.sampled_from([URL, SAFE, "http://a.test/x/y", "https://b.test/x"])


@given(st.lists(st.tuples(urls, fields), max_size=40), urls)
@example([(URL, b"a=1"), (SAFE, b"a=2; Secure")], URL)
def test_whatever_servers_say_what_is_sent_is_one_clean_header_within_the_bounds(answers, url):
    store = Store()
    for came_from, field in answers:
        store.said(came_from, field)
        store.time.now += 1
    header = store.cookies_for(url)
    assert header is None or (header and len(header) <= MAX_BYTES + 3 * MAX_COOKIES)
    assert header is None or not set(header.encode("latin-1")) & {*range(9), *range(10, 32), 127}


async def test_in_a_crawl_the_clock_is_that_of_trio(autojump_clock):
    store = CookieStore()
    store.store(URL, httpx.Headers({"set-cookie": "a=1; Max-Age=3600"}))
    await trio.sleep(3599)
    assert store.cookies_for(URL) == "a=1"
    await trio.sleep(1)
    assert store.cookies_for(URL) is None
