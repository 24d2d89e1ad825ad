"""Real proxies: a crawl through each finds what one without it finds, and names its faults."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from sites.proxies import PASSWORD, USER, started
from sites.servers import TLS, Authority, free_port, nginx

from trio_crawler import Crawler, Failure, HttpFetch, Job, Limits, Page, Politeness, Redirect
from trio_crawler.model import Fault, Reason

pytestmark = pytest.mark.real

# Privoxy asks for no password.
PROXIES = [
    *(("squid", False), ("squid", True), ("tinyproxy", False), ("tinyproxy", True)),
    *(("privoxy", False), ("microsocks", False), ("microsocks", True)),
]
# Where it is seen what the proxy itself says: the others have no header for that.
SURE = [(name, scheme) for name in ("squid", "microsocks") for scheme in ("http", "https")]


@dataclass
class Site:
    """The URLs of a site by scheme, what verifies it, and what direct crawls found."""

    urls: dict[str, str]
    tls: ssl.SSLContext
    direct: dict[str, dict[str, object]] = field(default_factory=dict)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    authority = Authority(tmp_path_factory.mktemp("authority"))
    listen = f"listen @PORT@; listen @PORT2@ ssl; {TLS} keepalive_requests 1000000;"
    with nginx(f"server {{ {listen} }}", **authority.issue("127.0.0.1")) as server:
        urls = {"http": server.url(), "https": server.url("https", port=server.ports[1])}
        yield Site(urls, ssl.create_default_context(cafile=authority.file))


async def crawled(
    site: Site, scheme: str, proxy: str | None = None
) -> tuple[dict[str, object], int]:
    """Return the end of each URL, each tried once, and the connections that were made."""
    url = site.urls[scheme]
    limits = Limits(max_tries=1)
    async with HttpFetch(seeds=[url], tls=site.tls, proxy=proxy) as fetch:
        crawler = Crawler([url], fetch=fetch, workers=4, limits=limits)
        ends: dict[str, object] = {}
        async with crawler.outcomes() as outcomes:
            async for outcome in outcomes:
                assert isinstance(outcome, Page | Redirect), outcome
                ends[outcome.url] = outcome.status
        figures = fetch.statistics().wire
    assert figures is not None
    return ends, figures.made


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize(("name", "login"), PROXIES)
async def test_a_crawl_through_a_proxy_finds_what_one_without_it_finds_over_few_connections(
    site: Site, name: str, login: bool, scheme: str
) -> None:
    if scheme not in site.direct:
        site.direct[scheme], _ = await crawled(site, scheme)
    with started(name, login=login) as url:
        user = f"{USER}:{PASSWORD}@" if login else ""
        ends, made = await crawled(site, scheme, url.replace("//", f"//{user}"))
    assert len(ends) > 1000
    assert ends == site.direct[scheme]
    # tinyproxy ends the connection after each answer that it forwards.
    assert made <= (len(ends) + 1 if (name, scheme) == ("tinyproxy", "http") else 10)


@pytest.mark.parametrize(("name", "scheme"), [*SURE, ("tinyproxy", "https")], ids="-".join)
@pytest.mark.parametrize("user", ["", f"{USER}:wrong@"])
async def test_a_wrong_password_or_none_is_the_fault_of_the_proxy(
    site: Site, name: str, user: str, scheme: str
) -> None:
    with started(name, login=True) as url:
        proxy = url.replace("//", f"//{user}")
        async with HttpFetch(seeds=[*site.urls.values()], proxy=proxy) as fetch:
            answer = await fetch(Job(site.urls[scheme]))
    assert isinstance(answer, Fault), answer
    assert answer.reason is Reason.PROXY
    server = f"the proxy {url.partition('//')[2]}"
    way = "socks5" if name == "microsocks" else "http"
    what = "does not accept the user and the password in --proxy"
    if not user:
        what = f"wants a user and a password: give them in --proxy, as {way}://USER@HOST:PORT"
    assert answer.detail == f"{server} {what}"


@pytest.mark.parametrize(
    ("name", "scheme"), [*SURE, ("tinyproxy", "https"), ("privoxy", "https")], ids="-".join
)
async def test_a_site_that_the_proxy_cannot_reach_is_unreachable_and_the_proxy_is_named(
    name: str, scheme: str
) -> None:
    site = f"127.0.0.1:{free_port()}"
    url = f"{scheme}://{site}/"
    with started(name) as proxy:
        async with HttpFetch(seeds=[url], proxy=proxy) as fetch:
            crawler = Crawler([url], fetch=fetch, politeness=Politeness(robots=False))
            async with crawler.outcomes() as outcomes:
                ends = [outcome async for outcome in outcomes]
    (failure,) = ends
    assert isinstance(failure, Failure), failure
    refused = name in ("squid", "microsocks")
    assert failure.reason is (Reason.CONNECTION_REFUSED if refused else Reason.UNREACHABLE)
    named = f"the proxy {proxy.partition('//')[2]} cannot reach {site}: "
    assert failure.detail.startswith(named)
    assert failure.tries == 4
