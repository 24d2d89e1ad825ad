"""What a response tells of its request: the head, as it was sent."""

from __future__ import annotations

import httpx
from cases import for_each
from sites.raw import raw_server, redirect, reply

from trio_crawler.model import Job, Purpose, Response, Validator
from trio_crawler.net.cookies import CookieStore
from trio_crawler.net.fetch import HttpFetch
from trio_crawler.net.httpx_fetch import HttpxFetch

SITE = {
    "/": reply(body=b"home"),
    "/away": redirect("/"),
    "/gone": reply(404, body=b"gone"),
    "/robots.txt": reply(404, body=b"none"),
    "/cookie": reply(headers={"Set-Cookie": "id=1"}),
    "/unchanged": reply(304),
}


async def sent(fetch: HttpFetch, url: str, **about: object) -> bytes:
    answer = await fetch(Job(url, **about))  # type: ignore[arg-type]
    assert isinstance(answer, Response), answer
    return answer.request


@for_each("path", ["/", "/away", "/gone", "/unchanged", "/missing?a=b&c"])
async def test_the_head_of_the_request_is_the_one_the_server_got(asked, path: str) -> None:
    async with asked(SITE) as (server, url, fetch):
        head = await sent(fetch, url.rstrip("/") + path)
        # The proxy is asked for the whole URL; what is told is what the site is asked for.
        got = server.requests[-1].head.replace(b"GET http://h.test/", b"GET /")
        if asked.way != "client":
            assert head == got
        # h11 sends Host first, wherever a client has put it.
        assert sorted(head.split(b"\r\n")) == sorted(got.split(b"\r\n"))
        assert head.startswith(b"GET %s HTTP/1.1\r\n" % path.encode())
        assert head.endswith(b"\r\n\r\n")


async def test_what_a_request_adds_stands_in_its_head() -> None:
    async with raw_server(SITE) as server:
        options = {"headers": {"X-Key": "1"}, "auth": ("me", "secret"), "cookies": CookieStore()}
        async with HttpFetch(seeds=[server.url], **options) as fetch:
            await sent(fetch, server.url + "cookie")
            validator = Validator('"tag"', None)
            head = await sent(fetch, server.url, validator=validator)
            assert head == server.requests[-1].head
            for line in (
                b"X-Key: 1",
                b"Cookie: id=1",
                b'If-None-Match: "tag"',
                b"Authorization: ",
            ):
                assert b"\r\n" + line in head


async def test_the_request_for_a_robots_txt_that_is_an_error_is_told() -> None:
    async with raw_server(SITE) as server, HttpFetch(seeds=[server.url]) as fetch:
        head = await sent(fetch, server.url + "robots.txt", purpose=Purpose.ROBOTS)
        assert head == server.requests[-1].head


async def test_a_kept_connection_tells_each_request_by_itself() -> None:
    async with raw_server(SITE) as server, HttpFetch(seeds=[server.url]) as fetch:
        heads = [await sent(fetch, server.url + path) for path in ("", "gone", "")]
        assert server.connections == 1
        assert heads == [request.head for request in server.requests]


async def test_a_client_that_has_to_ask_twice_tells_what_it_asked_at_last() -> None:
    challenge = reply(401, {"WWW-Authenticate": 'Digest realm="r", nonce="n", qop="auth"'})

    async def site(request, stream) -> None:
        known = "authorization" in request.headers
        await stream.send_all(reply(body=b"in") if known else challenge)

    auth = httpx.DigestAuth("me", "secret")
    async with raw_server(site) as server, httpx.AsyncClient(auth=auth, trust_env=False) as client:
        head = await sent(HttpxFetch(client), server.url)
        assert len(server.requests) == 2
        assert sorted(head.split(b"\r\n")) == sorted(server.requests[-1].head.split(b"\r\n"))
        assert b"\r\nAuthorization: Digest " in head


async def test_a_client_whose_authentication_makes_a_new_request_tells_that() -> None:
    class Signed(httpx.Auth):
        def auth_flow(self, request):
            yield httpx.Request("GET", request.url, headers={"X-Signed": "1"})

    async with (
        raw_server(SITE) as server,
        httpx.AsyncClient(auth=Signed(), trust_env=False) as own,
    ):
        head = await sent(HttpxFetch(own), server.url)
        assert head == server.requests[-1].head
        assert b"\r\nX-Signed: 1\r\n" in head


async def test_a_transport_of_the_caller_tells_what_it_was_given() -> None:
    given: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        given.append(request)
        return httpx.Response(200, content=b"body")

    head = await sent(HttpxFetch(httpx.MockTransport(answer)), "http://h.test/a|b?c")
    assert head.startswith(b"GET /a|b?c HTTP/1.1\r\nHost: h.test\r\n")
    lines = [b"%s: %s" % field for field in given[0].headers.raw]
    assert head.split(b"\r\n")[1:] == [*lines, b"", b""]
