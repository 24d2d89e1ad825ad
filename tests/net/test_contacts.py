"""Wherever pages and redirects lead, a crawl contacts no private address but its seed's own."""

from __future__ import annotations

import errno
import socket
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
from cases import for_each
from sites.over import Wired, over
from sites.raw import Server, html, raw_server, redirect, reply
from sites.webs import everything

from trio_crawler import Crawler, Failure, Limits, Outcome, Page, Reason
from trio_crawler.net.dial.addresses import AddressPolicy
from trio_crawler.net.dial.connector import Dialer, connect
from trio_crawler.page.urls import normalise

PUBLIC = "93.184.216.34"


@dataclass
class Internet:
    """Know names, connect to the seed's address alone, and write down every other attempt.

    The seed's server listens on loopback, whatever its address; `ports` has the true ports.
    """

    names: dict[str, list[list[str]]]
    own: str = "127.0.0.1"
    ports: dict[int, int] | None = None
    contacts: list[str] = field(default_factory=list)
    contacted: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        """Give what a name leads to: each time the next of its lists, in the end the last."""
        self.asked.append(host)
        if host in self.names:
            lists = self.names[host]
            return lists.pop(0) if len(lists) > 1 else lists[0]
        return [host.strip("[]")]

    async def connect(self, address: str, port: int) -> socket.socket:
        if address == self.own and (self.ports is None or port in self.ports):
            return await connect("127.0.0.1", self.ports[port] if self.ports else port)
        self.contacts.append(address)
        self.contacted.append(f"{address} {port}")
        raise ConnectionRefusedError(errno.ECONNREFUSED, "refused")

    def wire(self, *seeds: str, allowed: Sequence[str] = (), public_only: bool = False) -> Wired:
        wire = Wired(seeds=seeds)
        policy = AddressPolicy(map(normalise, seeds), allowed, public_only=public_only)
        wire.connector.dial = Dialer(policy, self.resolve, connect=self.connect)
        return wire


async def crawled(wire: Wired, *seeds: str) -> list[Outcome]:
    fetch = over(wire, timeout=10)
    crawler = Crawler(seeds, scope=everything, fetch=fetch, limits=Limits(max_tries=1))
    async with wire, crawler.outcomes() as outcomes:
        return [outcome async for outcome in outcomes]


NAMES = {
    "localhost": ["::1", "127.0.0.53"],
    "evil.test": ["10.0.0.1"],
    "several.test": ["192.168.0.1", "::1", "169.254.169.254"],
    "metadata.google.internal": ["169.254.169.254"],
    "mapped.test": ["::ffff:127.0.0.1"],
    "scoped.test": ["fe80::1%eth0"],
    "nonsense.test": ["not an address"],
}
HOSTS = [
    *("127.0.0.2", "127.255.255.254", "0x7f.2", "2130706434", "0177.0.0.2", "127.2"),
    *("[::1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::127.0.0.1]", "[::]", "0.0.0.0", "0"),
    *("169.254.169.254", "[fd00:ec2::254]", "100.100.100.200", "[::ffff:169.254.169.254]"),
    *("10.0.0.1", "172.16.0.1", "192.168.0.1", "100.64.0.1", "192.0.2.1", "198.18.0.1"),
    *("224.0.0.1", "255.255.255.255", "240.0.0.1", "[ff02::1]", "[fe80::1]", "[fd00::1]"),
    *("[64:ff9b::7f00:1]", "[2002:7f00:1::]", "[2001:0:7f00:1::]", "[fec0::1]"),
    *NAMES,
]


@pytest.mark.parametrize("way", ["link", "redirect", "base", "second redirect"])
@for_each("host", HOSTS)
async def test_a_private_address_is_not_contacted(host: str, way: str) -> None:
    internet = Internet({name: [addresses] for name, addresses in NAMES.items()})
    async with raw_server({}) as server:
        target = f"http://{host}:{server.port}/secret"
        base = f'<base href="{target}"><a href="secret">'.encode()
        ways = {
            "link": html(target),
            "redirect": redirect(target),
            "base": reply(200, {"Content-Type": "text/html"}, base),
            "second redirect": redirect("/again"),
        }
        async with raw_server({"/": ways[way], "/again": redirect(target)}) as own:
            outcomes = await crawled(internet.wire(own.url), own.url)
        failures = [outcome for outcome in outcomes if isinstance(outcome, Failure)]
    assert internet.contacts == []
    assert [failure.reason for failure in failures] == [Reason.BLOCKED_ADDRESS]
    assert failures[0].detail.isprintable()
    assert (server.connections, server.requests) == (0, [])


def reached(server: Server) -> list[str]:
    return sorted(request.headers["host"] for request in server.requests)


async def test_a_name_that_is_bound_again_is_judged_again() -> None:
    internet = Internet({"turn.test": [[PUBLIC], ["127.0.0.2"]]})
    async with raw_server({}) as server:
        turn = f"http://turn.test:{server.port}/"
        async with raw_server({"/": html(turn + "a"), "/b": html()}) as own:
            wire = internet.wire(own.url)
            first = await crawled(wire, own.url)
            wire = internet.wire(own.url)
            second = await crawled(wire, own.url)
    assert internet.contacts == [PUBLIC]
    reasons = [outcome.reason for outcome in (*first, *second) if isinstance(outcome, Failure)]
    assert reasons == [Reason.CONNECTION_REFUSED, Reason.BLOCKED_ADDRESS]


async def test_each_connection_is_to_an_address_of_the_lookup_that_was_judged() -> None:
    page = reply(200, {"Content-Type": "text/html", "Connection": "close"}, b'<a href="/b">')
    internet = Internet({"h.test": [["127.0.0.1"]]})
    async with raw_server({"/": page, "/b": page}) as own:
        seed = f"http://h.test:{own.port}/"
        await crawled(internet.wire(seed), seed)
    # One lookup for each connection: nothing between the judging and the connecting asks again.
    assert internet.asked == ["h.test"] * own.connections
    assert own.targets == ["/robots.txt", "/", "/b"]


# What a seed opens, and what it does not.


def blocked(outcomes: Sequence[Outcome]) -> dict[str, str]:
    return {
        outcome.url: outcome.detail
        for outcome in outcomes
        if isinstance(outcome, Failure) and outcome.reason is Reason.BLOCKED_ADDRESS
    }


async def test_another_port_of_the_seeds_address_is_not_asked_unless_it_is_a_seed_too() -> None:
    async with raw_server({"/": html()}) as other, raw_server({"/": html(other.url)}) as own:
        found = await crawled(Internet({}).wire(own.url), own.url)
        assert other.connections == 0
        assert list(blocked(found)) == [other.url]
        assert f"only port {own.port}; name this URL as a seed" in blocked(found)[other.url]
        both = await crawled(Internet({}).wire(own.url, other.url), own.url, other.url)
    assert [type(outcome) for outcome in both] == [Page, Page]
    # Its robots.txt and the page.
    assert reached(other) == [f"127.0.0.1:{other.port}"] * 2


@for_each("answer", [[PUBLIC, "127.0.0.1"], ["127.0.0.1", "::1", PUBLIC]])
@for_each("host", ["seed.test", "SEED.test", "seed.test.", "127.0.0.1", "0x7f.1"])
async def test_a_seed_with_a_public_address_too_leads_to_nothing_inside(
    answer: list[str], host: str
) -> None:
    names = {"seed.test": [answer], "seed.test.": [answer]}
    async with raw_server({}) as inside:
        target = f"http://{host}:{inside.port}/"
        async with raw_server({"/": html(target)}) as own:
            internet = Internet(names, own=PUBLIC, ports={80: own.port})
            outcomes = await crawled(internet.wire("http://seed.test/"), "http://seed.test/")
    assert isinstance(outcomes[0], Page)
    # A name still has its public address.
    assert set(internet.contacts) == ({PUBLIC} if "test" in host else set())
    assert inside.connections == 0


@for_each("host", ["seed.test.", "127.0.0.1", "127.1", "[::1]", "other.test"])
async def test_what_a_seeds_name_opens_is_not_opened_for_another_host(host: str) -> None:
    names = {name: [["127.0.0.1"]] for name in ("seed.test", "seed.test.", "other.test")}
    site: dict[str, bytes] = {"/b": html()}
    async with raw_server(site) as own:
        site["/"] = html(f"http://{host}:{own.port}/a", "/b")
        seed = f"http://seed.test:{own.port}/"
        internet = Internet(names)
        outcomes = await crawled(internet.wire(seed), seed)
    assert internet.contacts == []
    assert own.targets == ["/robots.txt", "/", "/b"]
    assert len(blocked(outcomes)) == 1


@for_each(
    "seeds, target, contacted",
    [
        (["http://intranet/"], "https://intranet/", ["10.0.0.5 443"]),
        (["http://INTRANET/"], "https://Intranet/a", ["10.0.0.5 443"]),
        (["http://intranet/"], "https://www.intranet/", []),
        (["http://intranet/"], "https://intranet./", []),
        (["http://intranet/"], "http://intranet:8080/", []),
        (["http://intranet/"], "https://10.0.0.5/", []),
        (["http://intranet/", "https://www.intranet/"], "https://www.intranet/", ["10.0.0.5 443"]),
        (["http://10.0.0.5/"], "https://10.0.0.5/", ["10.0.0.5 443"]),
        (["http://10.0.0.5/"], "https://intranet/", []),
    ],
)
async def test_a_seed_may_redirect_to_its_own_name_by_https_and_nowhere_else(
    seeds: list[str], target: str, contacted: list[str]
) -> None:
    names = {name: [["10.0.0.5"]] for name in ("intranet", "intranet.", "www.intranet")}
    async with raw_server({"/": redirect(target)}) as own:
        internet = Internet(names, own="10.0.0.5", ports={80: own.port})
        outcomes = await crawled(internet.wire(*seeds), *seeds)
    assert sorted(set(internet.contacted)) == contacted
    if not contacted:
        [detail] = blocked(outcomes).values()
        assert "as a seed" in detail
        assert "with --allow-private" in detail
    else:
        assert blocked(outcomes) == {}


INSIDE = ["127.0.0.1", "10.0.0.1", "inside.test", "seed.test", "169.254.169.254", "[::1]"]


@for_each("host", INSIDE)
@for_each("way", ["robots", "other robots", "sitemap", "its redirect", "index"])
async def test_neither_robots_txt_nor_a_sitemap_leads_inside(way: str, host: str) -> None:
    names = {"seed.test": [[PUBLIC, "127.0.0.1"]], "inside.test": [["127.0.0.1"]]}
    async with raw_server({}) as inside:
        secret = f"http://{host}:{inside.port}/secret"
        index = f"<sitemapindex><sitemap><loc>{secret}</loc></sitemap></sitemapindex>".encode()
        sitemaps = {"sitemap": secret, "its redirect": "/moved", "index": "/index.xml"}
        robots = reply(200, {"Content-Type": "text/plain"}, b"")
        if way in sitemaps:
            line = f"Sitemap: {normalise(sitemaps[way], 'http://seed.test/')}\n".encode()
            robots = reply(200, {"Content-Type": "text/plain"}, line)
        site = {
            "/": html("http://public.test/"),
            "/robots.txt": redirect(secret) if "robots" in way else robots,
            "/moved": redirect(secret),
            "/index.xml": reply(200, {"Content-Type": "application/xml"}, index),
        }
        names["public.test"] = [[PUBLIC]]
        async with raw_server(site) as own:
            internet = Internet(names, own=PUBLIC, ports={80: own.port})
            seed = f"http://{'public' if way == 'other robots' else 'seed'}.test/"
            await crawled(internet.wire("http://seed.test/"), seed)
    assert "/robots.txt" in own.targets
    assert ("/index.xml" in own.targets) is (way == "index")
    assert set(internet.contacts) <= {PUBLIC}
    assert inside.connections == 0


async def test_with_public_only_not_even_the_seed_is_contacted() -> None:
    internet = Internet({"seed.test": [["127.0.0.1"]]})
    async with raw_server({"/": html()}) as own:
        seeds = [f"http://seed.test:{own.port}/", own.url]
        outcomes = await crawled(internet.wire(*seeds, public_only=True), *seeds)
    assert own.connections == 0
    assert {outcome.reason for outcome in outcomes} == {Reason.BLOCKED_ADDRESS}  # type: ignore[union-attr]
    assert all("--public-only" in outcome.detail for outcome in outcomes)  # type: ignore[union-attr]
