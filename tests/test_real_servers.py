"""HTTP/1.1 and TLS as real servers speak them: each site is the same as over plain HTTP."""

from __future__ import annotations

import ssl
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import trio
from sites.servers import TLS, Authority, Certificate, Running, apache, haproxy, lighttpd, nginx
from sites.steps import until

from trio_crawler import (
    Crawler,
    Failure,
    HttpFetch,
    Limits,
    Page,
    Reason,
    Redirect,
    same_site,
)

pytestmark = pytest.mark.real

LISTEN, SECURE = "listen 127.0.0.1:@PORT@;", f"listen 127.0.0.1:@PORT@ ssl; {TLS}"
DEPTH = 3
"""Three clicks lead to 758 pages of the documentation of SQLite, two of which are missing."""


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


async def crawled(*urls: str, depth: int = DEPTH, **given: Any) -> dict[str, int]:
    """Return the status of each page of a crawl from the first URL."""
    found: dict[str, int] = {}
    async with HttpFetch(seeds=urls, **given) as fetch:
        limits = Limits(max_depth=depth)
        crawler = Crawler(urls[:1], scope=same_site(urls), limits=limits, workers=8, fetch=fetch)
        async with crawler.outcomes() as outcomes:
            async for outcome in outcomes:
                assert isinstance(outcome, Page | Redirect), outcome
                if isinstance(outcome, Page):
                    path = urlsplit(outcome.url).path
                    assert path not in found
                    found[path] = outcome.status
    return found


@pytest.fixture(scope="module")
def pages() -> dict[str, int]:
    """The status of each page over plain HTTP."""
    with nginx(f"server {{ {LISTEN} }}") as server:
        found = trio.run(crawled, server.url())
    assert len(found) > 500
    assert set(found.values()) == {200, 404}
    # robots.txt, which is missing, is no page.
    asked = {entry.target: entry.status for entry in server.log()}
    assert {target: status for target, status in asked.items() if target in found} == found
    assert server.connections() <= 4
    return found


Start = Callable[..., AbstractContextManager[Running]]

APACHE_TLS = """
<VirtualHost *:@PORT@>
SSLEngine on
SSLCertificateFile @CERTIFICATE@
SSLCertificateKeyFile @KEY@
</VirtualHost>
"""
LIGHTTPD = 'server.bind = "127.0.0.1"\nserver.port = @PORT@\n'
LIGHTTPD_TLS = """
ssl.engine = "enable"
ssl.pemfile = "@CERTIFICATE@"
ssl.privkey = "@KEY@"
"""


def server(*lines: str) -> Start:
    return partial(nginx, f"server {{ {' '.join(lines)} }}")


@contextmanager
def behind_haproxy(frontend: str, **certificate: Any) -> Iterator[Running]:
    text = f"""
frontend one
    bind 127.0.0.1:@PORT@ {frontend}
    default_backend two
backend two
    server one 127.0.0.1:@ORIGIN@
"""
    with (
        nginx(f"server {{ {LISTEN} }}") as origin,
        haproxy(text, origin=origin.port, **certificate) as front,
    ):
        yield front


V4, NAME, V6 = "http://127.0.0.1", "https://localhost", "http://[::1]"
APACHE, LIMITED = "Listen 127.0.0.1:@PORT@", "MaxKeepAliveRequests 10\nSetOutputFilter DEFLATE"
CLOSING = "keepalive_timeout 0;"

# How each server is started, and its URL without the port.
SERVERS: dict[str, tuple[Start, str]] = {
    "nginx, IPv6": (server("listen [::1]:@PORT@;"), V6),
    "nginx, gzip": (server(LISTEN, "gzip on; gzip_types *;"), V4),
    "nginx, TLS 1.2": (server(SECURE, "ssl_protocols TLSv1.2;"), NAME),
    "nginx, TLS 1.3": (server(SECURE, "ssl_protocols TLSv1.3;"), NAME),
    "nginx, TLS, IPv6": (server(SECURE.replace("127.0.0.1", "[::1]")), "https://[::1]"),
    "nginx, 3 requests a connection": (server(LISTEN, "keepalive_requests 3;"), V4),
    "nginx, 1 request a connection": (server(LISTEN, CLOSING), V4),
    "nginx, TLS 1.2, 1 request a connection": (
        server(SECURE, CLOSING, "ssl_protocols TLSv1.2;"),
        NAME,
    ),
    "nginx, TLS 1.3, 1 request a connection": (server(SECURE, CLOSING), NAME),
    "Apache": (partial(apache, APACHE), V4),
    "Apache, deflate, 10 requests a connection": (partial(apache, f"{APACHE}\n{LIMITED}"), V4),
    "Apache, TLS": (partial(apache, APACHE + APACHE_TLS), NAME),
    "lighttpd": (partial(lighttpd, LIGHTTPD), V4),
    "lighttpd, TLS": (partial(lighttpd, LIGHTTPD + LIGHTTPD_TLS), NAME),
    "haproxy": (partial(behind_haproxy, ""), V4),
    "haproxy, TLS": (partial(behind_haproxy, "ssl crt @BOTH@"), NAME),
}


@pytest.mark.parametrize(("start", "url"), SERVERS.values(), ids=SERVERS)
async def test_each_server_gives_the_pages_that_plain_http_gives(
    start: Start, url: str, pages: dict[str, int], authority: Authority
) -> None:
    certificate = authority.issue("127.0.0.1", "::1", "localhost")
    with start(**certificate) as server:
        found = await crawled(f"{url}:{server.port}/", cacert=authority.file)
        # A server may write its log later, and lose what it has not written when it ends.
        await until(lambda: pages.keys() <= {entry.target for entry in server.log()})
    assert found == pages
    # No request is made twice, and none is lost.
    assert set(server.statuses().values()) == {1}
    assert pages.items() <= {entry.target: entry.status for entry in server.log()}.items()


async def test_a_site_that_redirects_all_to_https_is_the_same(
    pages: dict[str, int], authority: Authority
) -> None:
    servers = (
        "server { listen 127.0.0.1:@PORT@; return 301 https://localhost:@PORT2@$request_uri; }"
        f"server {{ {SECURE.replace('@PORT@', '@PORT2@')} }}"
    )
    with nginx(servers, **authority.issue("localhost")) as server:
        first = server.url(host="localhost")
        second = server.url("https", "localhost", server.ports[1])
        assert await crawled(first, second, cacert=authority.file) == pages


async def test_a_limit_of_connections_costs_no_page(tmp_path: Path) -> None:
    names = [f"{number}.html" for number in range(6)]
    (tmp_path / "index.html").write_text("".join(f"<a href={name}>a</a>" for name in names))
    for name in names:
        (tmp_path / name).write_text("a" * 40_000)
    limit = "limit_conn_zone $binary_remote_addr zone=one:1m;"
    # A page takes a third of a second, so that requests meet.
    text = f"{limit} server {{ {LISTEN} limit_conn one 2; limit_rate 30k; }}"
    with nginx(text, root=tmp_path) as running:
        found = await crawled(running.url())
    assert found == dict.fromkeys(["/", *(f"/{name}" for name in names)], 200)
    assert any(entry.status == 503 for entry in running.log())


async def test_connections_over_tls_are_kept(authority: Authority) -> None:
    with server(SECURE)(**authority.issue("localhost")) as running:
        await crawled(running.url("https", "localhost"), depth=1, cacert=authority.file)
    assert running.connections() <= 4


async def test_a_context_that_offers_http_2_is_asked_by_http_1_1(authority: Authority) -> None:
    context = ssl.create_default_context(cafile=authority.file)
    context.set_alpn_protocols(["h2", "http/1.1"])
    text = server(SECURE.replace(" ssl;", " ssl http2;"))
    with text(**authority.issue("localhost")) as running:
        found = await crawled(running.url("https", "localhost"), depth=1, tls=context)
    assert set(found.values()) == {200}
    assert {entry.protocol for entry in running.log()} == {"HTTP/1.1"}


# Servers that cannot be trusted, or that want something else.


async def failure(url: str, **given: Any) -> str:
    """Return the detail of the only outcome of a crawl, which fails by TLS; it is tried once.

    The status of a page instead.
    """
    async with (
        HttpFetch(seeds=[url], **given) as fetch,
        Crawler([url], fetch=fetch).outcomes() as outcomes,
    ):
        [outcome] = [outcome async for outcome in outcomes]
    if isinstance(outcome, Page):
        return str(outcome.status)
    assert isinstance(outcome, Failure), outcome
    assert (outcome.reason, outcome.tries <= 1) == (Reason.TLS, True)
    return outcome.detail.replace(f":{urlsplit(url).port}", "")


def long_ago(authority: Authority) -> Certificate:
    return authority.issue("localhost", not_after=datetime(2001, 1, 1, tzinfo=UTC))


def far_off(authority: Authority) -> Certificate:
    begin, end = (datetime(year, 1, 1, tzinfo=UTC) for year in (2200, 2201))
    return authority.issue("localhost", not_before=begin, not_after=end)


def below(authority: Authority) -> Authority:
    return Authority(authority.file.parent, authority)


BAD: dict[str, tuple[Callable[[Authority], Certificate], str]] = {
    "expired": (long_ago, "has expired"),
    "not yet valid": (far_off, "cannot be trusted: certificate is not yet valid"),
    "self-signed": (
        lambda authority: Authority(authority.file.parent).issue_self(),
        "cannot be trusted: it is self-signed; name it with --cacert",
    ),
    "private authority": (
        lambda authority: Authority(authority.file.parent).issue("localhost"),
        "cannot be trusted: its authority is not known, or the server leaves out a certificate "
        "in between; name its authority with --cacert",
    ),
    "wrong host": (
        lambda authority: authority.issue("other.test"),
        "cannot be trusted: Hostname mismatch, certificate is not valid for 'localhost'.",
    ),
    "no intermediate": (
        lambda authority: below(authority).issue("localhost", chain=False),
        "cannot be trusted: its authority is not known, or the server leaves out a certificate "
        "in between; name its authority with --cacert",
    ),
}


@pytest.mark.parametrize(("issue", "told"), BAD.values(), ids=BAD)
async def test_a_certificate_that_cannot_be_trusted_is_told_in_one_sentence(
    issue: Callable[[Authority], Certificate], told: str, authority: Authority
) -> None:
    with server(SECURE)(**issue(authority)) as running:
        url = running.url("https", "localhost")
        detail = await failure(url, cacert=authority.file)
        insecure = await crawled(url, depth=0, insecure_hosts=["localhost"])
    assert detail == f"the certificate of localhost {told}"
    assert insecure == {"/": 200}


def signed_by_itself(at: Path) -> Certificate:
    """Make a certificate for localhost as small devices have it."""
    certificate, key = at / "own.pem", at / "own.key"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=device"]
    command += ["-addext", "subjectAltName=DNS:localhost"]
    command += ["-keyout", str(key), "-out", str(certificate)]
    subprocess.run(command, check=True, capture_output=True, timeout=30)
    return Certificate(certificate, key, certificate)


async def test_a_certificate_is_believed_when_what_the_sentence_says_is_done(
    authority: Authority, tmp_path: Path
) -> None:
    middle = below(authority)
    own = signed_by_itself(tmp_path)
    for certificate, named in (
        (middle.issue("localhost"), authority.file),
        (middle.issue("localhost", chain=False), middle.file),
        (own, own.certificate),
    ):
        with server(SECURE)(**certificate) as running:
            url = running.url("https", "localhost")
            assert "--cacert" in await failure(url)
            assert await crawled(url, depth=0, cacert=named) == {"/": 200}


OLD = "ssl_protocols TLSv1; ssl_ciphers ALL:@SECLEVEL=0;"
WANTING = "ssl_client_certificate @AUTHORITY@; ssl_verify_client on;"
WANTS = "localhost wants a certificate of the client; name one with --client-cert"
APACHE_WANTING = APACHE_TLS.replace(
    "</V", "SSLCACertificateFile @AUTHORITY@\nSSLProtocol @VERSION@\nSSLVerifyClient require\n</V"
)
APACHE_LATER = APACHE_WANTING.replace(
    "SSLVerifyClient require", "<Location />\nSSLVerifyClient require\n</Location>"
)
LIGHTTPD_WANTING = """
ssl.ca-file = "@AUTHORITY@"
ssl.verifyclient.activate = "enable"
ssl.verifyclient.enforce = "enable"
ssl.openssl.ssl-conf-cmd = ("MinProtocol" => "@VERSION@", "MaxProtocol" => "@VERSION@")
"""

ODD: dict[str, tuple[Start, str, str]] = {
    "name unknown": (
        server("listen 127.0.0.1:@PORT@ ssl; ssl_reject_handshake on;"),
        "https",
        "localhost has no site of this name",
    ),
    "TLS 1.0 only": (
        server(SECURE, OLD),
        "https",
        "localhost and the crawler have no version of TLS in common; "
        "it may be too old for TLS 1.2",
    ),
    "TLS on an HTTP port": (
        server(LISTEN),
        "https",
        "localhost does not speak TLS on this port",
    ),
}


@pytest.mark.parametrize(("start", "scheme", "told"), ODD.values(), ids=ODD)
async def test_a_server_that_speaks_otherwise_is_told_in_one_sentence(
    start: Start, scheme: str, told: str, authority: Authority
) -> None:
    with start(**authority.issue("localhost")) as running:
        assert await failure(running.url(scheme, "localhost"), cacert=authority.file) == told


WANTERS: dict[str, Start] = {
    "nginx": server(SECURE, WANTING, "ssl_protocols @VERSION@;"),
    "Apache": partial(apache, APACHE + APACHE_WANTING),
    "Apache, by the path": partial(apache, APACHE + APACHE_LATER),
    "lighttpd": partial(lighttpd, LIGHTTPD + LIGHTTPD_TLS + LIGHTTPD_WANTING),
    "haproxy": partial(
        behind_haproxy,
        "ssl crt @BOTH@ ca-file @AUTHORITY@ verify required "
        "ssl-min-ver @VERSION@ ssl-max-ver @VERSION@",
    ),
}


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
@pytest.mark.parametrize("start", WANTERS.values(), ids=WANTERS)
async def test_a_server_that_wants_a_certificate_of_the_client_says_so_and_gets_it(
    start: Start, version: str, pages: dict[str, int], authority: Authority
) -> None:
    certificate = {**authority.issue("localhost"), "authority": authority.file}
    client = authority.issue("client")
    with start(**certificate, version=version) as running:
        url = running.url("https", "localhost")
        detail = await failure(url, cacert=authority.file)
        both = {"cacert": authority.file, "client_cert": (client.certificate, client.key)}
        found = await crawled(url, depth=1, **both)
    if start == WANTERS["nginx"] or (version, start) == (
        "TLSv1.3",
        WANTERS["Apache, by the path"],
    ):
        # It says so in a page for people, whose status is what a program can read.
        assert detail in ("400", "403")
    elif version == "TLSv1.2":
        # The alert does not say why the handshake failed.
        assert detail.endswith("or a certificate of the client (--client-cert)")
    else:
        assert detail == WANTS
    assert len(found) > 30
    assert found.items() <= pages.items()
