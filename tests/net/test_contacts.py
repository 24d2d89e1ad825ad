"""Wherever pages and redirects lead, a crawl contacts no private address but its seed's own."""

from __future__ import annotations

import errno
import socket
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
from sites.over import over
from sites.raw import Server, html, raw_server, redirect, reply
from sites.webs import everything

from trio_crawler import Crawler, Failure, Limits, Outcome, Page, Reason
from trio_crawler.net.addresses import AddressPolicy
from trio_crawler.net.dial import Dialer, connect
from trio_crawler.net.wire import Wire

PUBLIC = "93.184.216.34"


@dataclass
class Internet:
    """Know names, connect to the seed's address alone, and write down every other attempt."""

    names: dict[str, list[list[str]]]
    own: str = "127.0.0.1"
    contacts: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        """Give what a name leads to: each time the next of its lists, in the end the last."""
        self.asked.append(host)
        if host in self.names:
            lists = self.names[host]
            return lists.pop(0) if len(lists) > 1 else lists[0]
        return [host.strip("[]")]

    async def connect(self, address: str, port: int) -> socket.socket:
        if address == self.own:
            return await connect(address, port)
        self.contacts.append(address)
        raise ConnectionRefusedError(errno.ECONNREFUSED, "refused")

    def wire(self, *seeds: str, allowed: Sequence[str] = ()) -> Wire:
        wire = Wire(seeds=seeds)
        policy = AddressPolicy(seeds, allowed)
        wire.dial = Dialer(policy, self.resolve, connect=self.connect)
        return wire


async def crawled(wire: Wire, seed: str) -> list[Outcome]:
    fetch = over(wire, timeout=10)
    crawler = Crawler([seed], scope=everything, fetch=fetch, limits=Limits(max_tries=1))
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
@pytest.mark.parametrize("host", HOSTS)
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


async def test_of_the_addresses_of_a_name_only_the_public_ones_are_contacted() -> None:
    internet = Internet({"mixed.test": [["10.0.0.1", PUBLIC, "::1", "2606:4700::1111"]]})
    async with raw_server({"/": html("http://mixed.test/")}) as own:
        await crawled(internet.wire(own.url), own.url)
    assert sorted(internet.contacts) == ["2606:4700::1111", PUBLIC]


async def test_a_seeds_name_that_is_bound_again_leads_nowhere_new() -> None:
    # Connection: close, so that each page is dialled for.
    page = reply(200, {"Content-Type": "text/html", "Connection": "close"}, b'<a href="/b">')
    internet = Internet({"h.test": [["127.0.0.1"], ["127.0.0.2"]]})
    async with raw_server({"/": page, "/b": page}) as own:
        seed = f"http://h.test:{own.port}/"
        outcomes = await crawled(internet.wire(seed), seed)
    assert internet.contacts == []
    assert [type(outcome) for outcome in outcomes] == [Page, Failure]
    assert own.targets == ["/robots.txt", "/"]


async def test_each_connection_is_to_an_address_of_the_lookup_that_was_judged() -> None:
    page = reply(200, {"Content-Type": "text/html", "Connection": "close"}, b'<a href="/b">')
    internet = Internet({"h.test": [["127.0.0.1"]]})
    async with raw_server({"/": page, "/b": page}) as own:
        seed = f"http://h.test:{own.port}/"
        await crawled(internet.wire(seed), seed)
    # One lookup for each connection: nothing between the judging and the connecting asks again.
    assert internet.asked == ["h.test"] * own.connections
    assert own.targets == ["/robots.txt", "/", "/b"]


async def test_what_is_allowed_by_name_of_its_network_is_contacted() -> None:
    internet = Internet({"evil.test": [["10.0.0.1"]]})
    links = (
        "http://10.1.2.3/",
        "http://evil.test/",
        "http://[::ffff:10.0.0.9]/",
        "http://11.0.0.1/",
    )
    async with raw_server({"/": html(*links, "http://192.168.0.1/")}) as own:
        outcomes = await crawled(internet.wire(own.url, allowed=["10.0.0.0/8"]), own.url)
    assert sorted(internet.contacts) == ["10.0.0.1", "10.1.2.3", "11.0.0.1", "::ffff:a00:9"]
    blocked = [
        outcome.url
        for outcome in outcomes
        if isinstance(outcome, Failure) and outcome.reason is Reason.BLOCKED_ADDRESS
    ]
    assert blocked == ["http://192.168.0.1/"]


async def test_another_port_of_the_seeds_own_address_may_be_asked() -> None:
    # A site and its own other servers: it is the address that is opened.
    async with raw_server({"/": html()}) as other, raw_server({"/": html(other.url)}) as own:
        outcomes = await crawled(Internet({}).wire(own.url), own.url)
    assert [type(outcome) for outcome in outcomes] == [Page, Page]
    # Its robots.txt and the page.
    assert reached(other) == [f"127.0.0.1:{other.port}"] * 2
