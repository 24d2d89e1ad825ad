"""Which proxy is used for an origin: by the argument, and by the environment."""

from __future__ import annotations

import os

import pytest
from cases import for_each
from sites.over import Wired

from trio_crawler.arguments import ArgumentError
from trio_crawler.net.fetch import HttpFetch
from trio_crawler.net.proxy import Proxies, Proxy, bypass

# NO_PROXY, then hosts with their ports that are asked directly, then others that are not.
TABLE = [
    ("", "", "e.org:80 127.0.0.1:80 ::1/80"),
    ("*", "e.org:80 127.0.0.1:80 ::1/80", ""),
    ("x.org,*", "e.org:80", ""),
    (
        "e.org",
        "e.org:80 e.org:443 a.e.org:80 a.b.e.org:80 E.ORG:80",
        "ee.org:80 org:80 e.org.x:80",
    ),
    (".e.org", "e.org:80 a.e.org:80", "ee.org:80"),
    ("*.e.org", "e.org:80 a.e.org:80 a.b.e.org:80", "ee.org:80"),
    ("E.Org", "e.org:80 a.e.org:80", ""),
    ("e.org.", "e.org:80 e.org.:80 a.e.org:80", "org:80"),
    ("*.e.org.", "a.e.org:80 a.e.org.:80", "ee.org:80"),
    ("e.org", "e.org.:80 a.e.org.:80", ""),
    ("localhost.", "localhost:80 localhost.:8080", "127.0.0.1:80"),
    ("localhost", "localhost.:80", "127.0.0.1:80 ::1/80"),
    ("e.org:8080", "e.org:8080 a.e.org:8080", "e.org:80"),
    ("*.e.org:81", "a.e.org:81", "a.e.org:80"),
    ("a.org, b.org", "a.org:80 b.org:80", "c.org:80"),
    ("a.org b.org\tc.org", "a.org:80 b.org:80 c.org:80", "d.org:80"),
    (" , ,a.org,,", "a.org:80", "b.org:80"),
    ("127.0.0.1", "127.0.0.1:80", "127.0.0.2:80 x.127.0.0.1.org:80"),
    ("127.0.0.1:81", "127.0.0.1:81", "127.0.0.1:80"),
    ("127.0.0.0/8", "127.0.0.1:80 127.255.0.9:443", "128.0.0.1:80 ::1/80 e.org:80"),
    ("127.0.0.1/8", "127.9.9.9:80", "128.0.0.1:80"),
    ("10.0.0.0/8,192.168.0.0/16", "10.1.2.3:80 192.168.9.9:80", "11.0.0.1:80"),
    ("::1", "::1/80 ::1/8080", "::2/80"),
    ("[::1]", "::1/80 ::1/8080", "::2/80"),
    ("[::1]:8080", "::1/8080", "::1/80 ::2/8080"),
    ("0:0:0:0:0:0:0:1", "::1/80", "::2/80"),
    ("fe80::/10", "fe80::1/80 febf::1/80", "fec0::1/80 127.0.0.1:80"),
    ("[fe80::]/10", "fe80::1/80", "::1/80"),
    # What is no entry excludes nothing, and spoils no other.
    ("10.0.0.0/33", "", "10.0.0.1:80"),
    ("10.0.0.0/x,e.org", "e.org:80", "10.0.0.1:80"),
    ("e.org:99999999", "", "e.org:80"),
    ("e.org:http", "", "e.org:80"),
    (".", "", "e.org:80"),
    ("*.", "", "e.org:80"),
    ("[", "", "e.org:80 ::1/80"),
    ("http://e.org", "", "e.org:80"),
    ("e*.org", "", "e.org:80 ee.org:80"),
    ("/8", "", "127.0.0.1:80"),
]


def hosts(listed: str) -> list[tuple[str, int]]:
    found = [host.rpartition("/" if "/" in host else ":") for host in listed.split()]
    return [(host, int(port)) for host, _, port in found]


@for_each("no_proxy, direct, proxied", TABLE)
def test_no_proxy_is_read_as_usual(no_proxy: str, direct: str, proxied: str) -> None:
    bypasses = bypass(no_proxy)
    assert {host: bypasses(*host) for host in hosts(direct)} == dict.fromkeys(hosts(direct), True)
    assert not any(bypasses(*host) for host in hosts(proxied))


def test_a_long_no_proxy_is_read_in_time_in_proportion() -> None:
    bypasses = bypass(",".join(f"h{number}.test" for number in range(20_000)) + "[" * 20_000)
    assert bypasses("h19998.test", 80)


@pytest.fixture(autouse=True)
def nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.lower().endswith("_proxy") or name == "REQUEST_METHOD":
            monkeypatch.delenv(name)


@pytest.mark.parametrize(
    ("variables", "http", "https"),
    [
        ({}, None, None),
        ({"http_proxy": "p:1"}, 1, None),
        ({"HTTP_PROXY": "p:1"}, 1, None),
        ({"https_proxy": "p:1"}, None, 1),
        ({"all_proxy": "p:1"}, 1, 1),
        ({"ALL_PROXY": "p:1", "HTTPS_PROXY": "p:2"}, 1, 2),
        ({"http_proxy": "p:1", "HTTP_PROXY": "p:2"}, 1, None),
        ({"http_proxy": "", "HTTP_PROXY": "p:2"}, None, None),
        ({"http_proxy": " p:1 "}, 1, None),
        ({"http_proxy": "http://p:1/path"}, 1, None),
        ({"http_proxy": "p"}, 80, None),
        ({"http_proxy": "https://p", "all_proxy": "socks5://p"}, 443, 1080),
        ({"all_proxy": "socks5h://p:9"}, 9, 9),
        ({"HTTP_PROXY": "p:1", "REQUEST_METHOD": "GET"}, None, None),
        ({"http_proxy": "p:1", "REQUEST_METHOD": "GET"}, 1, None),
        ({"all_proxy": "p:1", "no_proxy": "h.test"}, None, None),
        ({"all_proxy": "p:1", "NO_PROXY": "*.test"}, None, None),
        ({"all_proxy": "p:1", "no_proxy": "", "NO_PROXY": "*"}, 1, 1),
        ({"ftp_proxy": "ftp://p"}, None, None),
    ],
)
def test_the_variables_are_read_as_by_other_programs(
    variables: dict[str, str],
    http: int | None,
    https: int | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    proxies = Proxies(trust_env=True)
    ports = [
        None if (found := proxies((scheme, "h.test", port))) is None else found.port
        for scheme, port in (("http", 80), ("https", 443))
    ]
    assert ports == [http, https]


@for_each(
    "url, expected",
    [
        ("http://p.test", Proxy("http", "p.test", 80)),
        ("HTTP://P.Test:80", Proxy("http", "p.test", 80)),
        ("https://p.test:8443/", Proxy("https", "p.test", 8443)),
        ("socks5://[::1]", Proxy("socks5", "::1", 1080)),
        ("socks5h://u:secret@1.2.3.4:9", Proxy("socks5h", "1.2.3.4", 9, "u", "secret")),
        ("http://u%40:%3A%2F@p", Proxy("http", "p", 80, "u@", ":/")),
        ("http://u@p", Proxy("http", "p", 80, "u")),
        ("http://b\xfccher.test:1", Proxy("http", "xn--bcher-kva.test", 1)),
        ("http://a_b.c.:1", Proxy("http", "a_b.c.", 1)),
    ],
)
def test_a_proxy_is_read_from_its_url(url: str, expected: Proxy) -> None:
    found = Proxies(url)(("http", "h.test", 80))
    assert found == expected
    assert expected.password == "" or expected.password not in repr(found)


UNFIT = [
    *("nonsense", "ftp://h/", "user:secret@h", "://secret", "", "http://", "socks4://h", "h:1"),
    *("http://a_b..c:1", "http://xn--a:1", f"http://{'a' * 64}.test", "http://[::1", "http://a b"),
    *(
        "http://h.test:0",
        "http://127.0.0.1:99999",
        "http://h:-1",
        "http://h:x",
        "socks5://h:65536",
    ),
    *(
        "http://u%3Av:secret@h",
        "http://u:secret%0A@h",
        "http://h/path",
        "http://h/?q",
        "http://h#f",
    ),
    *("socks5://:secret@h", "socks5://me@h", f"socks5://me:{'secret' * 50}@h"),
]


@for_each("url", UNFIT)
@for_each("made", [HttpFetch, Wired])
def test_a_proxy_that_cannot_be_meant_is_refused_without_its_password(
    url: str, made: type
) -> None:
    with pytest.raises(ArgumentError, match=r"^proxy must be a URL such as") as caught:
        made(proxy=url)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("name", ["http_proxy", "HTTPS_PROXY", "all_proxy"])
@pytest.mark.parametrize(
    "url", ["ftp://x", "http://127.0.0.1:99999", "h:0", "http://u:secret@a..b"]
)
def test_the_variable_with_such_a_proxy_is_named_as_it_is_set(
    name: str, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, url)
    with pytest.raises(ArgumentError, match=f"^{name} must be a URL such as") as caught:
        HttpFetch(trust_env=True)
    assert "secret" not in str(caught.value)


def test_a_proxy_and_those_of_the_environment_exclude_each_other() -> None:
    with pytest.raises(ValueError, match=r"^proxy and trust_env exclude each other"):
        HttpFetch(proxy="http://127.0.0.1:1", trust_env=True)


def test_a_proxy_of_another_type_is_a_type_error() -> None:
    with pytest.raises(TypeError, match=r"^proxy must be a URL as a str or httpx\.URL, not int"):
        HttpFetch(proxy=3128)  # type: ignore[arg-type]
