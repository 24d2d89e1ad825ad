"""No argument is accepted and ignored: each has an effect, or an error that names it."""

from __future__ import annotations

import inspect
import re
import ssl
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
import trio
from cases import for_each
from sites.raw import raw_server, reply, silence

from trio_crawler.model import Fault, Job, Reason, Response
from trio_crawler.net.cookies import CookieStore
from trio_crawler.net.fetch import HttpFetch
from trio_crawler.net.folder import FolderFetch
from trio_crawler.net.httpx_fetch import HttpxFetch

PAGE = reply(200, {"Set-Cookie": "id=1"}, b"page")
HOME = "http://h.test/"
FETCHES = (HttpFetch, HttpxFetch)
CLASSES = (*FETCHES, CookieStore, FolderFetch)

EFFECTS: dict[tuple[type, str], Callable[..., Awaitable[None]]] = {}


def effect(argument: str, *classes: type) -> Callable[[Any], Any]:
    """Enter a test of what an argument does in the table."""

    def enter(test: Any) -> Any:
        EFFECTS.update({(each, argument): test for each in classes})
        return test

    return enter


def arguments(made: type) -> Iterator[inspect.Parameter]:
    return iter(inspect.signature(made).parameters.values())


def needed(made: type) -> dict[str, Any]:
    """Return the arguments that a class cannot be made without."""
    some = {HttpxFetch: {"client_or_transport": transport()}, FolderFetch: {"folder": "."}}
    return some.get(made, {})


def transport(body: bytes = b"page") -> httpx.MockTransport:
    return httpx.MockTransport(lambda request: httpx.Response(200, content=body))


EVERY = [(made, argument) for made in CLASSES for argument in arguments(made)]
EACH = [pytest.param(*one, id=f"{one[0].__name__}-{one[1].name}") for one in EVERY]


# What cannot be used is refused at the call.


def test_each_argument_is_in_the_table_of_effects() -> None:
    assert {(made, argument.name) for made, argument in EVERY} == set(EFFECTS)


@for_each("made, argument", EACH)
def test_a_value_of_the_wrong_type_is_refused_by_a_sentence_that_names_the_argument(
    made: type, argument: inspect.Parameter
) -> None:
    with pytest.raises(TypeError) as caught:
        made(**{**needed(made), argument.name: object()})
    sentence = str(caught.value)
    assert argument.name in sentence
    assert sentence.isprintable()


@for_each("made, argument", EACH)
def test_none_is_the_default_or_refused(made: type, argument: inspect.Parameter) -> None:
    if argument.default is None:
        made(**{**needed(made), argument.name: None})
        return
    with pytest.raises(TypeError, match=argument.name):
        made(**{**needed(made), argument.name: None})


LOOSE = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
LOOSE.check_hostname = False
LOOSE.verify_mode = ssl.CERT_NONE
OWN: dict[str, Any] = {"seeds": [HOME], "auth": ("me", "secret")}
WRONG: list[tuple[tuple[type, ...], dict[str, Any], str]] = [
    *(((HttpFetch,), {"seeds": [url]}, "seeds") for url in ("h.test", "ftp://h/", "")),
    ((HttpFetch, HttpxFetch), {"user_agent": ""}, "user_agent"),
    ((HttpFetch, HttpxFetch), {"user_agent": "a\r\nb"}, "user_agent"),
    ((HttpFetch, HttpxFetch), {"user_agent": "\ud800"}, "user_agent"),
    ((HttpFetch, HttpxFetch), {"contact": "me"}, "contact"),
    ((HttpFetch, HttpxFetch), {"headers": {"X-A": "1"}}, "name the seeds"),
    ((HttpFetch,), {"request": lambda job: {}}, "name the seeds"),
    ((HttpFetch,), {"origin_headers": {"h.test": {}}}, "origin_headers"),
    ((HttpFetch,), {"origin_headers": {HOME: {"a b": "secret"}}}, "origin_headers"),
    ((HttpFetch,), {"origin_headers": {HOME: {}, f"{HOME}a": {}}}, "origin_headers"),
    ((HttpFetch,), {**OWN, "origin_headers": {HOME: {"authorization": "secret"}}}, "auth"),
    ((HttpFetch, HttpxFetch), {"auth": ("me", "secret")}, "name the seeds"),
    ((HttpFetch, HttpxFetch), {**OWN, "headers": {"a b": "1"}}, "headers"),
    ((HttpFetch, HttpxFetch), {**OWN, "headers": {"Host": "h"}}, "headers"),
    ((HttpFetch, HttpxFetch), {**OWN, "headers": {"authorization": "x"}}, "auth"),
    ((HttpFetch, HttpxFetch), {**OWN, "auth": ("a:b", "secret")}, "auth"),
    ((HttpFetch, HttpxFetch), {**OWN, "auth": ("me", "secret\n")}, "auth"),
    *((FETCHES, {"timeout": value}, "timeout") for value in (0, -1, float("nan"))),
    *(((*FETCHES, FolderFetch), {"max_bytes": value}, "max_bytes") for value in (0, -1)),
    *(((FolderFetch,), {"folder": path}, "^folder") for path in ("", "/none", __file__, "a\0b")),
    *(
        ((FolderFetch,), {"base_url": url}, "^base_url")
        for url in ("h.test", "ftp://h/", f"{HOME}?a")
    ),
    ((HttpFetch,), {"allow_private": ["intranet"]}, "allow_private"),
    ((HttpFetch,), {"allow_private": ["10.0.0.1/8"]}, "allow_private"),
    ((HttpFetch,), {"allow_private": ["fe80::1%eth0"]}, "allow_private"),
    ((HttpFetch,), {"allow_private": ["10.0.0.0/8"], "public_only": True}, "public_only"),
    *(
        ((HttpFetch,), {"insecure_hosts": [host]}, "insecure_hosts")
        for host in ("", "https://h/", "h:443", "h/a", "*", "*.h.test", "me@h", "a b", "1.2.3.999")
    ),
    ((HttpFetch,), {"tls": LOOSE, "insecure_hosts": ["h.test"]}, "insecure_hosts"),
    *(
        ((HttpFetch,), {"cacert": path}, "^cacert must be a file of certificates in PEM")
        for path in ("", "/", "/no/such/file", __file__, "a\0b")
    ),
    ((HttpFetch,), {"tls": LOOSE, "cacert": __file__}, "cacert and tls exclude"),
    ((HttpFetch,), {"tls": ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)}, "tls"),
    ((HttpFetch,), {"client_cert": __file__}, "client_cert .* name the seeds"),
    (
        (HttpFetch,),
        {"seeds": [HOME], "tls": LOOSE, "client_cert": __file__},
        "client_cert and tls exclude",
    ),
    *(
        ((HttpFetch,), {"seeds": [HOME], "client_cert": path}, "^client_cert: ")
        for path in ("", "/", "/no/such/file", __file__, "a\0b", (__file__, "/none"))
    ),
    *(
        ((HttpFetch,), {"proxy": url}, "proxy")
        for url in ("", "h.test", "ftp://h/", "http://h.test:99999", "http://a..b/")
    ),
    ((HttpFetch,), {"proxy": "http://h.test", "trust_env": True}, "trust_env"),
    ((HttpxFetch,), {"seeds": [HOME]}, "seeds would have no effect"),
    ((HttpxFetch,), {**OWN, "client_or_transport": httpx.AsyncClient(auth=("a", "b"))}, "auth"),
    ((HttpFetch,), {"max_idle": -1}, "max_idle"),
]


@for_each(
    "made, given, named",
    [(made, given, named) for classes, given, named in WRONG for made in classes],
)
def test_a_value_that_cannot_be_used_is_refused_by_a_sentence_that_names_the_argument(
    made: type, given: dict[str, Any], named: str
) -> None:
    with pytest.raises(ValueError, match=named) as caught:
        made(**{**needed(made), **given})
    assert str(caught.value).isprintable()
    assert "secret" not in str(caught.value)


def test_only_an_async_client_or_an_async_transport_is_taken() -> None:
    wanted = r"^client_or_transport must be an httpx\.AsyncClient or an httpx\.AsyncBaseTransport"
    others: dict[object, str] = {
        httpx.Client(verify=LOOSE): "<httpx.Client object",
        httpx.AsyncClient: "<class 'httpx.AsyncClient'>",
        "http://h/": "'http://h/'",
        None: "None",
    }
    for given, what in others.items():
        with pytest.raises(TypeError, match=f"{wanted}, not {re.escape(what)}"):
            HttpxFetch(given)  # type: ignore[arg-type]


@pytest.mark.parametrize("made", FETCHES)
async def test_a_fetch_that_is_closed_fetches_no_more(made: type) -> None:
    async with made(**needed(made)) as fetch:
        pass
    with pytest.raises(RuntimeError, match=f"^this {made.__name__} is closed"):
        await fetch(Job(HOME))


# What each argument does: the table.


async def fetched(made: type, *urls: str, answer: Any = PAGE, **given: Any) -> list[Any]:
    """Fetch some paths of a server, one after the other, and return what came."""
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(raw_server(lambda *asked: _send(answer, *asked)))
        if made is HttpFetch:
            fetch: Any = HttpFetch(**{"seeds": [server.url], **given})
        else:
            tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            client = httpx.AsyncClient(verify=tls, trust_env=False)
            await stack.enter_async_context(client)
            seeds = {"seeds": [server.url]} if given.keys() & {"headers", "auth"} else {}
            fetch = HttpxFetch(client, **{**seeds, **given})
        await stack.enter_async_context(fetch)
        return [await fetch(Job(server.url + url)) for url in urls or ("",)]


async def _send(answer: Any, request: Any, stream: trio.abc.Stream) -> None:
    await (answer(request, stream) if callable(answer) else stream.send_all(answer))


async def head(made: type, **given: Any) -> bytes:
    """Return the head of the last of two requests."""
    answers = await fetched(made, "a", "b", **given)
    assert all(isinstance(answer, Response) for answer in answers), answers
    sent: bytes = answers[-1].request
    return sent


async def reason(made: type, **given: Any) -> Reason | None:
    """Return why a fetch failed, None if it did not."""
    [answer] = await fetched(made, **given)
    return answer.reason if isinstance(answer, Fault) else None


@effect("seeds", HttpFetch)
async def seeds_open_their_addresses() -> None:
    assert await reason(HttpFetch) is None
    assert await reason(HttpFetch, seeds=[]) is Reason.BLOCKED_ADDRESS


@effect("allow_private", HttpFetch)
async def addresses_that_are_allowed_are_connected_to() -> None:
    assert await reason(HttpFetch, seeds=[], allow_private=["127.0.0.0/8"]) is None


@effect("public_only", HttpFetch)
async def not_even_seeds_open_their_addresses() -> None:
    assert await reason(HttpFetch, public_only=True) is Reason.BLOCKED_ADDRESS


@effect("seeds", HttpxFetch)
async def seeds_of_a_client_choose_who_gets_the_headers() -> None:
    heads = []
    async with HttpxFetch(transport(), seeds=[HOME], headers={"X-A": "1"}) as fetch:
        for url in (HOME, "http://other.test/"):
            answer = await fetch(Job(url))
            assert isinstance(answer, Response)
            heads.append(answer.request)
    assert [b"X-A: 1" in head for head in heads] == [True, False]


@effect("client_or_transport", HttpxFetch)
async def the_transport_answers() -> None:
    for body in (b"one", b"two"):
        answer = await HttpxFetch(transport(body))(Job(HOME))
        assert isinstance(answer, Response)
        assert answer.body == body


@effect("user_agent", *FETCHES)
async def the_user_agent_is_sent(made: type) -> None:
    assert b"User-Agent: trio_crawler/" in await head(made)
    assert b"User-Agent: me/1\r\n" in await head(made, user_agent="me/1")


@effect("contact", *FETCHES)
async def the_contact_is_sent_in_from(made: type) -> None:
    assert b"From:" not in await head(made)
    assert b"From: me@example.org\r\n" in await head(made, contact="me@example.org")


@effect("headers", *FETCHES)
async def headers_are_sent(made: type) -> None:
    assert b"X-A: 1\r\n" in await head(made, headers={"X-A": "1"})


@effect("auth", *FETCHES)
async def credentials_are_sent(made: type) -> None:
    assert b"Authorization: Basic YTpi\r\n" in await head(made, auth=("a", "b"))


@effect("origin_headers", HttpFetch)
async def headers_are_sent_to_an_origin_that_is_no_seed() -> None:
    async with raw_server({"/": reply()}) as one, raw_server({"/": reply()}) as two:
        own = {one.url: {"X-Token": "1", "Accept": "text/html"}}
        how = {"allow_private": ["127.0.0.1"], "seeds": [two.url], "headers": {"X-A": "2"}}
        async with HttpFetch(origin_headers={**own, two.url: {"X-A": "3"}}, **how) as fetch:
            await fetch(Job(one.url))
            await fetch(Job(two.url))
    sent, other = (server.requests[0].head for server in (one, two))
    assert b"\r\nX-Token: 1\r\n" in sent
    assert sent.count(b"\r\nAccept: ") == sent.count(b"\r\nAccept: text/html\r\n") == 1
    assert b"X-A" not in sent
    assert b"\r\nX-A: 3\r\n" in other
    assert b"X-Token" not in other
    assert HttpFetch(origin_headers={HOME: {"Cookie": "a=b"}}).sends_credentials
    assert not HttpFetch(origin_headers={HOME: {"X-A": "1"}}).sends_credentials


@effect("request", HttpFetch)
async def headers_are_made_for_each_request() -> None:
    def signed(job: Job) -> dict[str, str]:
        return {"Authorization": f"of {job.url}", "Accept": "text/html"}

    async def token(job: Job) -> list[tuple[str, str]]:
        await trio.lowlevel.checkpoint()
        return [("X-Token", f"{job.tries}")]

    sent = await head(HttpFetch, request=signed)
    assert re.search(rb"\r\nAuthorization: of http://127.0.0.1:\d+/b\r\n", sent)
    assert sent.count(b"\r\nAccept: ") == sent.count(b"\r\nAccept: text/html\r\n") == 1
    assert b"\r\nX-Token: 0\r\n" in await head(HttpFetch, request=token)
    # Not at the origins of others.
    asked: list[str] = []
    async with raw_server({"/": reply()}) as server:
        how = {"allow_private": ["127.0.0.1"], "request": lambda job: asked.append(job.url) or {}}
        async with HttpFetch(seeds=["http://other.test/"], **how) as fetch:
            await fetch(Job(server.url))
            assert fetch.sends_credentials
    assert asked == []


@pytest.mark.parametrize(
    ("made", "why"),
    [
        (None, "the result of request must be several pairs"),
        ({"a b": "x"}, "the result of request: a header needs a name"),
        ({"Host": "x"}, "the result of request: the header Host is set by the crawler"),
        (
            {"X-A": "secret\r\nX-B: 1"},
            "the value of the header X-A must be one line",
        ),
    ],
)
async def test_headers_that_cannot_be_sent_are_a_bug_of_the_function_that_makes_them(
    made: Any, why: str
) -> None:
    async with HttpFetch(seeds=[HOME], request=lambda job: made) as fetch:
        with pytest.raises((TypeError, ValueError), match=why) as caught:
            await fetch(Job(HOME))
    assert "secret" not in str(caught.value)


@effect("cookies", *FETCHES)
async def cookies_are_stored_and_sent(made: type) -> None:
    # A client has cookies of its own.
    assert made is HttpxFetch or b"Cookie:" not in await head(made)
    assert b"Cookie: id=1\r\n" in await head(made, cookies=CookieStore())


@effect("timeout", *FETCHES)
async def the_timeout_ends_a_fetch(made: type) -> None:
    [answer] = await fetched(made, answer=silence, timeout=0.05)
    assert isinstance(answer, Fault)
    assert answer.reason is Reason.TIMEOUT
    assert answer.detail.startswith("the limit of 0.05 seconds")


@effect("max_bytes", *FETCHES)
async def a_body_of_more_bytes_is_cut(made: type) -> None:
    for most, flaw in ((4, None), (3, Reason.TOO_LARGE)):
        [answer] = await fetched(made, max_bytes=most)
        assert isinstance(answer, Response)
        assert (answer.body, answer.flaw) == (b"page"[:most], flaw)


@effect("bodies", *FETCHES)
async def a_body_of_a_type_that_a_crawl_does_not_read_is_left(made: type) -> None:
    large = bytes(70_000)
    for given, flaw in (({}, None), ({"bodies": False}, Reason.NOT_READ)):
        [answer] = await fetched(
            made, answer=reply(200, {"Content-Type": "image/png"}, large), **given
        )
        assert isinstance(answer, Response)
        assert (answer.body, answer.flaw) == (b"" if flaw else large, flaw)


def served_by(authority: Any) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    return context


async def trusted(authority: Any, **given: Any) -> bool:
    """Whether a fetch accepts the certificate of a server."""
    async with (
        raw_server(_page, tls=served_by(authority)) as server,
        HttpFetch(seeds=[server.url], **given) as fetch,
    ):
        answer = await fetch(Job(server.url))
    assert isinstance(answer, Response) or answer.reason is Reason.TLS
    return isinstance(answer, Response)


@effect("insecure_hosts", HttpFetch)
async def the_certificate_of_an_insecure_host_is_not_verified(authority: Any) -> None:
    assert await trusted(authority, insecure_hosts=["127.0.0.1"])
    assert not await trusted(authority, insecure_hosts=["h.test"])


@effect("tls", HttpFetch)
async def certificates_are_verified_by_the_given_context(
    authority: Any, client_tls: ssl.SSLContext
) -> None:
    assert not await trusted(authority)
    assert await trusted(authority, tls=client_tls)


@effect("cacert", HttpFetch)
async def certificates_are_verified_against_the_authorities_of_a_file(authority: Any) -> None:
    stranger = type(authority)()
    with authority.cert_pem.tempfile() as own, stranger.cert_pem.tempfile() as other:
        assert await trusted(authority, cacert=own)
        assert not await trusted(authority, cacert=other)


@effect("client_cert", HttpFetch)
async def a_certificate_is_shown_to_the_hosts_of_the_seeds(authority: Any) -> None:
    wanting = served_by(authority)
    authority.configure_trust(wanting)
    wanting.verify_mode = ssl.CERT_OPTIONAL
    shown: list[bool] = []

    async def answer(request: Any, stream: Any) -> None:
        shown.append(bool(stream.inner.getpeercert()))
        await stream.send_all(PAGE)

    certificate = authority.issue_cert("client").private_key_and_cert_chain_pem
    with authority.cert_pem.tempfile() as own, certificate.tempfile() as path:
        for seed, given in (("", None), ("", path), ("https://h.test/", path)):
            async with (
                raw_server(answer, tls=wanting) as server,
                HttpFetch(
                    seeds=[seed or server.url],
                    allow_private=["127.0.0.1"],
                    cacert=own,
                    client_cert=given,
                ) as fetch,
            ):
                await fetch(Job(server.url))
    assert shown == [False, True, False]


@effect("http2", HttpFetch)
async def a_server_is_asked_by_http_2(authority: Any, client_tls: ssl.SSLContext) -> None:
    two = pytest.importorskip("sites.two")
    for http2 in (False, True):
        async with two.two_server({"/": two.answer(b"two")}, served_by(authority)) as server:
            url = f"https://127.0.0.1:{server.port}/"
            async with HttpFetch(seeds=[url], tls=client_tls, http2=http2, timeout=1) as fetch:
                answer = await fetch(Job(url))
        assert isinstance(answer, Response) is http2


@effect("proxy", HttpFetch)
async def a_proxy_is_asked_instead() -> None:
    async with raw_server(_page) as proxy, HttpFetch(proxy=proxy.url) as fetch:
        await fetch(Job(HOME))
    assert proxy.targets == [HOME]


async def test_with_a_proxy_too_allow_private_opens_the_addresses_that_stand_in_urls() -> None:
    url = "http://10.0.0.1/"
    async with raw_server(_page) as proxy:
        for allowed, expected in (([], Reason.BLOCKED_ADDRESS), (["10.0.0.0/8"], None)):
            async with HttpFetch(proxy=proxy.url, allow_private=allowed) as fetch:
                answer = await fetch(Job(url))
            assert getattr(answer, "reason", None) is expected
    assert proxy.targets == [url]


async def test_with_a_proxy_too_seeds_open_their_own_addresses_and_ports_only() -> None:
    seeds = ["http://10.0.0.1:81/", "http://169.254.169.254/"]
    other = ["http://10.0.0.1/", "http://10.0.0.1:82/", "http://169.254.169.254/"]
    async with raw_server(_page) as proxy:
        for public_only in (False, True):
            async with HttpFetch(seeds=seeds, proxy=proxy.url, public_only=public_only) as fetch:
                answers = [await fetch(Job(url)) for url in (seeds[0], *other)]
            reasons = [getattr(answer, "reason", None) for answer in answers]
            own = Reason.BLOCKED_ADDRESS if public_only else None
            assert reasons == [own, *[Reason.BLOCKED_ADDRESS] * 3]
    assert proxy.targets == [seeds[0]]


@effect("trust_env", HttpFetch)
async def a_proxy_of_the_environment_is_asked_instead(monkeypatch: pytest.MonkeyPatch) -> None:
    async with raw_server(_page) as proxy:
        monkeypatch.setenv("http_proxy", proxy.url)
        async with HttpFetch(seeds=[proxy.url], trust_env=True) as fetch:
            await fetch(Job(HOME))
        async with HttpFetch(allow_private=["127.0.0.0/8"]) as fetch:
            await fetch(Job("http://127.0.0.9:1/"))
    assert proxy.targets == [HOME]


async def _page(request: Any, stream: trio.abc.Stream) -> None:
    await stream.send_all(PAGE)


@effect("max_idle", HttpFetch)
async def so_many_idle_connections_of_a_fetch_are_kept() -> None:
    async with raw_server(_page) as server:
        for most, made in ((None, 1), (1, 1), (0, 2)):
            async with HttpFetch(seeds=[server.url], max_idle=most) as fetch:
                for _ in range(2):
                    assert isinstance(await fetch(Job(server.url)), Response)
                wire = fetch.statistics().wire
                assert wire is not None
                assert wire.made == made


@effect("clock", CookieStore)
async def cookies_expire_by_the_given_clock() -> None:
    now = 0.0
    store = CookieStore(clock=lambda: now)
    store.store(HOME, httpx.Headers({"Set-Cookie": "a=1; Max-Age=10"}))
    assert store.cookies_for(HOME) == "a=1"
    now = 11.0
    assert store.cookies_for(HOME) is None


@effect("today", CookieStore)
async def dates_are_read_by_the_given_calendar() -> None:
    until = httpx.Headers({"Set-Cookie": "a=1; Expires=Sat, 21 Nov 2026 19:00:00 GMT"})
    for year, found in ((2026, "a=1"), (2027, None)):
        moment = datetime(year, 1, 1, tzinfo=UTC)
        store = CookieStore(clock=lambda: 0.0, today=lambda moment=moment: moment)
        store.store(HOME, until)
        assert store.cookies_for(HOME) == found


async def from_folder(tmp_path: Path, path: str, **given: Any) -> Any:
    """Return the answer from a folder of a page and an image."""
    (tmp_path / "a.html").write_bytes(b"page")
    (tmp_path / "a.png").write_bytes(b"image")
    (tmp_path / "sub").mkdir(exist_ok=True)
    (tmp_path / "sub" / "a.html").write_bytes(b"sub")
    fetch = FolderFetch(**{"folder": tmp_path, "base_url": HOME, **given})
    return await fetch(Job(HOME + path))


@effect("folder", FolderFetch)
async def the_folder_has_the_files(tmp_path: Path) -> None:
    assert (await from_folder(tmp_path, "a.html")).body == b"page"
    assert (await from_folder(tmp_path, "a.html", folder=tmp_path / "sub")).body == b"sub"


@effect("base_url", FolderFetch)
async def the_files_are_below_the_base(tmp_path: Path) -> None:
    assert (await from_folder(tmp_path, "docs/a.html")).status == 404
    found = await from_folder(tmp_path, "docs/a.html", base_url=f"{HOME}docs")
    assert found.body == b"page"


@effect("clean_urls", FolderFetch)
async def html_may_be_left_off(tmp_path: Path) -> None:
    assert (await from_folder(tmp_path, "a")).status == 404
    assert (await from_folder(tmp_path, "a", clean_urls=True)).body == b"page"


@effect("max_bytes", FolderFetch)
async def a_file_of_more_bytes_is_cut(tmp_path: Path) -> None:
    for most, flaw in ((4, None), (3, Reason.TOO_LARGE)):
        found = await from_folder(tmp_path, "a.html", max_bytes=most)
        assert (found.body, found.flaw) == (b"page"[:most], flaw)


@effect("bodies", FolderFetch)
async def a_file_that_a_crawl_does_not_read_is_left(tmp_path: Path) -> None:
    assert (await from_folder(tmp_path, "a.png")).body == b"image"
    found = await from_folder(tmp_path, "a.png", bodies=False)
    assert (found.body, found.flaw) == (b"", Reason.NOT_READ)


@effect("other", FolderFetch)
async def other_urls_go_to_the_other_fetch(tmp_path: Path) -> None:
    given: dict[str, Any] = {"base_url": "http://other.test/"}
    assert (await from_folder(tmp_path, "", **given)).reason is Reason.BLOCKED_ADDRESS
    assert (await from_folder(tmp_path, "", **given, other=HttpxFetch(transport()))).status == 200


@pytest.mark.parametrize(("made", "argument"), EACH)
async def test_each_argument_has_an_effect(
    made: type, argument: inspect.Parameter, request: pytest.FixtureRequest
) -> None:
    test = EFFECTS[made, argument.name]
    wanted = inspect.signature(test).parameters
    given = {"made": made} if "made" in wanted else {}
    await test(**given, **{name: request.getfixturevalue(name) for name in wanted.keys() - given})
