"""Credentials go to the seeds' own origins, and to nobody else."""

from __future__ import annotations

import json
import ssl
from collections.abc import Mapping, Sequence
from typing import Any

import httpx
import pytest
from cases import for_each
from sites.over import Wired, over
from sites.raw import Request, Server, html, raw_server, redirect, reply
from sites.webs import everything

from trio_crawler import Crawler, Limits, Outcome
from trio_crawler.model import Job
from trio_crawler.net.cookies import CookieStore
from trio_crawler.net.fetch import HttpFetch
from trio_crawler.net.httpx_fetch import HttpxFetch
from trio_crawler.net.tls import Security

trustme = pytest.importorskip("trustme")

SECRET = "s3cr3t"
BASIC = "czNjcjN0"
"""A piece of every Basic credential that holds the secret at the right place: see below."""

OWN: dict[str, Any] = {
    "headers": {"X-Token": SECRET, "Cookie": f"sid={SECRET}"},
    # Three bytes, so that base64 writes the secret by itself.
    "auth": ("us", SECRET),
}


async def home(host: str, port: int) -> Sequence[str]:
    """Let every name lead to this machine."""
    return ["127.0.0.1"]


def wired(*seeds: str) -> Wired:
    """Make a wire for which every name leads here, and no certificate has to convince."""
    trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    trusting.check_hostname = False
    trusting.verify_mode = ssl.CERT_NONE
    security = Security(trusting)
    return Wired(seeds=seeds, allow_private=["127.0.0.1"], security=security, resolve=home)


async def crawled(seed: str, **options: Any) -> list[Outcome]:
    """Crawl wherever it leads, with credentials for the seed."""
    async with wired(seed) as wire:
        fetch = over(wire, seeds=[seed], timeout=10, **{**OWN, **options})
        limits = Limits(max_tries=1)
        crawler = Crawler([seed], scope=everything, fetch=fetch, limits=limits)
        async with crawler.outcomes() as outcomes:
            return [outcome async for outcome in outcomes]


def leaks(request: Request) -> bool:
    return SECRET.encode() in request.head or BASIC.encode() in request.head


def told(server: Server, authority: str) -> list[bool]:
    """Say for each request to this host and port whether it had the secret."""
    return [leaks(one) for one in server.requests if one.headers["host"] == authority]


@pytest.fixture(scope="module")
def server_tls() -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    trustme.CA().issue_cert("h.test").configure_cert(context)
    return context


ELSEWHERE = [
    "http://h.test:{other}/",
    "http://www.h.test:{own}/",
    "http://test.:{own}/",
    "http://h.test.:{own}/",
    "http://h.test.evil.test:{own}/",
    "http://evilh.test:{own}/",
    "http://127.0.0.1:{own}/",
    "http://h.test@evil.test:{own}/",
    "http://h.test:{own}@evil.test:{own}/",
    "http://evil.test:{own}/?http://h.test:{own}/",
    "http://evil.test:{own}#@h.test:{own}/",
    "http://evil.test:{own}\\@h.test:{own}/",
    "//evil.test:{own}/h.test",
    "https://h.test:{tls}/",
    "https://evil.test:{tls}/",
]


@for_each("way", ["link", "redirect"])
@for_each("target", ELSEWHERE)
async def test_another_origin_learns_no_secret(
    server_tls: ssl.SSLContext, target: str, way: str
) -> None:
    challenge = reply(401, {"WWW-Authenticate": 'Basic realm="r"'})

    async def anywhere(request: Request, stream: Any) -> None:
        own = request.headers["host"].startswith("h.test:") and request.target == "/"
        port = int(request.headers["host"].rpartition(":")[2])
        await stream.send_all(pages["/"] if own and port == first.port else challenge)

    pages: dict[str, bytes] = {}
    async with (
        raw_server(anywhere) as first,
        raw_server(anywhere) as second,
        raw_server(anywhere, tls=server_tls) as third,
    ):
        link = target.format(own=first.port, other=second.port, tls=third.port)
        pages["/"] = html(link) if way == "link" else redirect(link)
        await crawled(f"http://h.test:{first.port}/")
    own = f"h.test:{first.port}"
    assert set(told(first, own)) == {True}
    others = [
        request
        for server in (first, second, third)
        for request in server.requests
        if server is not first or request.headers["host"] != own
    ]
    pages_asked = [request for request in others if request.target != "/robots.txt"]
    assert len(pages_asked) == 1, "the other origin was not asked"
    for request in others:
        assert not leaks(request)
        assert not {"cookie", "authorization", "x-token", "referer"} & set(request.headers)


async def test_a_redirect_that_comes_back_finds_the_secret_at_home_only() -> None:
    async with raw_server({"/": reply()}) as server:
        seed = f"http://h.test:{server.port}/"
        away = f"http://evil.test:{server.port}/away"

        async def handler(request: Request, stream: Any) -> None:
            answers = {"/": redirect(away), "/away": redirect(seed + "back")}
            await stream.send_all(answers.get(request.target, reply()))

        async with raw_server(handler) as own:
            seed, away = (url.replace(str(server.port), str(own.port)) for url in (seed, away))
            await crawled(seed)
    assert [(request.target, leaks(request)) for request in own.requests] == [
        ("/robots.txt", True),
        ("/", True),
        ("/robots.txt", False),
        ("/away", False),
        ("/back", True),
    ]


@pytest.mark.parametrize(
    "spelling", ["http://H.TEST:{}/b", "//h.test:{}/b", "/b", "http://h.test:{}/x/../b"]
)
async def test_the_seeds_own_origin_gets_the_secret_however_it_is_spelt(spelling: str) -> None:
    pages: dict[str, bytes] = {}

    async def handler(request: Request, stream: Any) -> None:
        await stream.send_all(pages.get(request.target, reply()))

    async with raw_server(handler) as server:
        pages["/"] = html(spelling.format(server.port))
        await crawled(f"http://h.test:{server.port}/")
    assert [(request.target, leaks(request)) for request in server.requests] == [
        *(("/robots.txt", True), ("/", True), ("/b", True))
    ]
    assert server.requests[0].headers["authorization"] == "Basic dXM6czNjcjN0"


async def test_of_several_seeds_each_gets_the_secret() -> None:
    async with raw_server({}) as one, raw_server({}) as two, raw_server({}) as three:
        seeds = [one.url + "deep/page?q", two.url]
        async with HttpFetch(seeds=seeds, allow_private=["127.0.0.1"], **OWN) as fetch:
            for server in (one, two, three):
                await fetch(Job(server.url))
    assert [leaks(server.requests[0]) for server in (one, two, three)] == [True, True, False]


async def test_each_origin_gets_its_own_user_and_an_origin_without_one_gets_none() -> None:
    async with raw_server({}) as one, raw_server({}) as two, raw_server({}) as three:
        auth = {one.url + "deep/page?q": ("us", SECRET), two.url: ("a", "b")}
        seeds = [server.url for server in (one, two, three)]
        async with HttpFetch(seeds=seeds, headers={"X-A": "1"}, auth=auth) as fetch:
            for server in (one, two, three):
                await fetch(Job(server.url))
    sent = [server.requests[0].headers.get("authorization") for server in (one, two, three)]
    assert sent == ["Basic dXM6czNjcjN0", "Basic YTpi", None]
    assert [server.requests[0].headers["x-a"] for server in (one, two, three)] == ["1"] * 3


async def test_the_usual_port_may_be_said_or_left_out_in_a_seed() -> None:
    seen: list[httpx.Request] = []

    def handler(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(200)

    transport = httpx.MockTransport(handler)
    fetch = HttpxFetch(transport, seeds=["http://h.test:80/", "https://h.test:443"], **OWN)
    for url in ("http://h.test/", "https://h.test/", "http://h.test:443/", "https://h.test:80/"):
        await fetch(Job(url))
    assert ["x-token" in request.headers for request in seen] == [True, True, False, False]


@pytest.mark.parametrize("way", ["seed", "link", "redirect"])
async def test_a_password_in_a_url_is_sent_to_nobody_and_kept_nowhere(way: str) -> None:
    pages: dict[str, bytes] = {}

    async def handler(request: Request, stream: Any) -> None:
        await stream.send_all(pages.get(request.target, html()))

    async with raw_server(handler) as server:
        url = f"http://us:{SECRET}@127.0.0.1:{server.port}/a"
        pages["/"] = html(url) if way == "link" else redirect(url)
        seed = url if way == "seed" else server.url
        outcomes = await crawled(seed, headers={}, auth=None)
        assert "/a" in server.targets
        assert not any(map(leaks, server.requests))
    kept = [
        (one.url, getattr(one, "links", ()), one.referrer, getattr(one, "target", ""))
        for one in outcomes
    ]
    assert SECRET not in json.dumps(kept)


async def test_a_url_with_a_password_is_not_asked_for_as_it_stands() -> None:
    async with raw_server({}) as server, HttpFetch(seeds=[server.url]) as fetch:
        answer = await fetch(Job(f"http://us:{SECRET}@127.0.0.1:{server.port}/"))
    assert server.requests == []
    assert SECRET not in repr(answer)


async def test_cookies_of_a_store_go_to_the_host_that_set_them() -> None:
    # A cookie for all of "test" would reach everybody.
    cookies = [("Set-Cookie", f"sid={SECRET}"), ("Set-Cookie", f"all={SECRET}; Domain=test")]

    async def handler(request: Request, stream: Any) -> None:
        hosts = [
            f"http://{name}:{server.port}/b" for name in ("h.test", "www.h.test", "evil.test")
        ]
        page = html(*hosts).replace(
            b"\r\n",
            b"\r\n"
            + b"".join(b"%b: %b\r\n" % (name.encode(), text.encode()) for name, text in cookies),
            1,
        )
        await stream.send_all(page if request.target == "/" else reply())

    async with raw_server(handler) as server:
        await crawled(
            f"http://h.test:{server.port}/", headers={}, auth=None, cookies=CookieStore()
        )
    by_host = {one.headers["host"].split(":")[0]: leaks(one) for one in server.requests[1:]}
    assert by_host == {"h.test": True, "www.h.test": False, "evil.test": False}


async def test_a_cookie_of_the_users_and_one_of_the_store_are_sent_as_one_header() -> None:
    async with raw_server({"/": reply(200, {"Set-Cookie": "b=2"})}) as server:
        own = {"Cookie": "a=1"}
        async with HttpFetch(seeds=[server.url], headers=own, cookies=CookieStore()) as fetch:
            for _ in range(2):
                await fetch(Job(server.url))
    assert [request.headers["cookie"] for request in server.requests] == ["a=1", "a=1; b=2"]
    assert server.requests[1].head.lower().count(b"cookie:") == 1


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_through_a_proxy_too_only_the_seeds_get_the_secret(scheme: str) -> None:
    async with raw_server(lambda request, stream: stream.send_all(reply(502))) as proxy:
        seed = f"{scheme}://h.test/"
        async with HttpFetch(seeds=[seed], proxy=proxy.url, **OWN) as fetch:
            for url in (seed, f"{scheme}://evil.test/", f"{scheme}://h.test:81/"):
                await fetch(Job(url))
    # What is for an https origin is not shown to the proxy.
    assert [leaks(request) for request in proxy.requests] == [scheme == "http", False, False]
    assert len(proxy.requests) == 3


def test_nothing_that_is_printed_holds_the_secret() -> None:
    fetch = HttpFetch(seeds=["http://h.test/"], **OWN)
    shown = [repr(fetch), str(fetch), repr(fetch.statistics()), repr(CookieStore())]
    assert not any(SECRET in text or BASIC in text for text in shown)


@for_each(
    "auth, wrong",
    [
        ({"http://other.test/": ("us", SECRET)}, "auth: http://other.test/ is not the origin"),
        ({"https://h.test/": ("us", SECRET)}, "auth: https://h.test/ is not the origin"),
        ({f"http://us:{SECRET}@[/": ("us", SECRET)}, "auth: not an http or https URL"),
        (
            {"http://h.test/": ("us", SECRET), "http://h.test:80/a": ("us", SECRET)},
            "auth must have one user for http://h.test/, not two",
        ),
        ({"http://h.test/": ("us", f"{SECRET}\n")}, "auth must be text without control"),
    ],
)
def test_users_that_no_seed_or_more_than_one_would_get_are_refused(
    auth: dict[str, tuple[str, str]], wrong: str
) -> None:
    with pytest.raises(ValueError, match=wrong) as caught:
        HttpFetch(seeds=["http://h.test/"], auth=auth)
    assert SECRET not in str(caught.value)


def test_a_user_of_a_url_must_be_a_pair_of_strings() -> None:
    with pytest.raises(TypeError, match=r"write \(user, password\)") as caught:
        HttpFetch(seeds=["http://h.test/"], auth={"http://h.test/": SECRET})  # type: ignore
    assert SECRET not in str(caught.value)


async def test_a_user_and_password_outside_ascii_are_sent_in_utf_8() -> None:
    async with (
        raw_server({}) as server,
        HttpFetch(seeds=[server.url], auth=("J\xf6rg", "\u20ac")) as fetch,
    ):
        await fetch(Job(server.url))
    assert server.requests[0].headers["authorization"] == "Basic SsO2cmc64oKs"


def test_headers_are_given_as_a_mapping_or_as_pairs() -> None:
    own: list[Mapping[str, str] | Sequence[tuple[str, str]]] = [{"X-A": "1"}, [("X-A", "1")]]
    for headers in own:
        assert repr(HttpFetch(seeds=["http://h.test/"], headers=headers))
