"""Hosts that share a server: together they get what one host gets."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise, permutations
from typing import Any

import trio
from hypothesis import given
from hypothesis import strategies as st
from sites.webs import HOME, collect

from trio_crawler import Checks, Crawler, HttpFetch, Job, Politeness, Response
from trio_crawler.model import Answer
from trio_crawler.net.turn import TURN
from trio_crawler.page.urls import host
from trio_crawler.schedule.origin import MOST
from trio_crawler.testing import html


class Net:
    """Hosts with addresses: how many requests each address has at once, and when they start."""

    def __init__(
        self, urls: Iterable[str], address_of: dict[str, Sequence[str]], seconds: float = 1
    ):
        self.urls = list(urls)
        self.address_of = address_of
        self.seconds = seconds
        self.flying: dict[str, int] = {}
        self.peaks: dict[str, int] = {}
        self.starts: dict[str, list[float]] = {}
        self.bad: dict[str, int] = {}
        self.asked: list[str] = []
        self.dials: dict[str, float] = {}
        self.lookups: dict[str, float] = {}

    async def lookup(self, url: str) -> float:
        await trio.sleep(self.lookups.get(url, 0.01))
        return math.inf

    def addresses(self, url: str) -> Sequence[str]:
        return self.address_of.get(host(url), ())

    async def __call__(self, job: Job) -> Answer:
        if job.url == HOME:
            return html(*self.urls)
        if job.url.endswith("/robots.txt"):
            return Response(404)
        at = (*self.addresses(job.url), host(job.url))[0]
        if (turn := TURN.get()) is not None and job.url in self.dials:
            turn.adopt()
            await trio.sleep(self.dials[job.url])
            await turn.wait()
            turn.start()
        self.asked.append(job.url)
        self.flying[at] = self.flying.get(at, 0) + 1
        self.peaks[at] = max(self.peaks.get(at, 0), self.flying[at])
        self.starts.setdefault(at, []).append(trio.current_time())
        await trio.sleep(self.seconds)
        self.flying[at] -= 1
        return Response(self.bad.get(job.url, 200))

    def gap(self, at: str) -> float:
        return min(after - before for before, after in pairwise(self.starts[at]))


def names(count: int, domain: str = "h{}.one.test") -> list[str]:
    return [f"http://{domain.format(number)}/" for number in range(count)]


async def crawled(net: Net, **more: Any) -> int:
    more.setdefault("scope", lambda job: True)
    return len(await collect(Crawler([HOME], fetch=net, workers=100, **more), within=math.inf))


async def test_a_hundred_names_of_one_server_get_as_many_requests_at_once_as_one(
    autojump_clock: Any,
) -> None:
    wrong = []
    for per_host in (1, 4):
        urls = [url + path for url in names(100) for path in ("", "a", "b")]
        net = Net(urls, {host(url): ["192.0.2.1"] for url in urls})
        assert await crawled(net, politeness=Politeness(per_host=per_host, robots=False)) == 301
        wrong += [] if net.peaks == {"192.0.2.1": per_host} else [(per_host, net.peaks)]
    assert not wrong


async def test_the_names_of_one_server_share_the_delay_of_a_check(autojump_clock: Any) -> None:
    urls = names(100)
    net = Net(urls, {host(url): ["192.0.2.1"] for url in urls}, 0.01)
    await crawled(net, scope=None, checks=Checks())
    assert net.peaks == {"192.0.2.1": 1}
    assert len(net.starts["192.0.2.1"]) == 100
    assert net.gap("192.0.2.1") > 0.499


async def test_unrelated_sites_of_a_large_server_get_sixteen_requests_at_once(
    autojump_clock: Any,
) -> None:
    urls = names(200, "www.site{}.com")
    net = Net(urls, {host(url): ["192.0.2.1"] for url in urls})
    await crawled(net, scope=None, checks=Checks())
    assert net.peaks == {"192.0.2.1": MOST}
    # Fewer at first: it has to be seen that they are many.
    assert max(net.starts["192.0.2.1"]) < 60


async def test_the_names_of_one_server_take_turns_at_its_delay(autojump_clock: Any) -> None:
    urls = [f"{url}{number}" for url in names(2) for number in range(40)]
    net = Net(urls, {host(url): ["192.0.2.1"] for url in urls}, 0.05)
    began = trio.current_time()
    await crawled(net, politeness=Politeness(per_host=1, delay=1, robots=False))
    assert {host(url) for url in net.asked[:3]} == {"h0.one.test", "h1.one.test"}
    assert trio.current_time() - began < 81


async def test_a_check_of_a_neighbour_neither_waits_for_the_site_nor_slows_it(
    autojump_clock: Any,
) -> None:
    own = [f"{HOME}{number}" for number in range(400)]
    checked = [f"http://neighbour.test/{number}" for number in range(3)]
    at = ["192.0.2.1"]
    net = Net([*checked, *own], {"site.test": at, "neighbour.test": at}, 0.2)
    began = trio.current_time()
    await crawled(net, scope=None, checks=Checks())
    assert max(map(net.asked.index, checked)) < 60
    assert trio.current_time() - began < 22


async def test_a_name_that_is_slow_to_connect_holds_its_server_for_five_seconds(
    autojump_clock: Any,
) -> None:
    urls = names(20)
    net = Net(urls, {host(url): ["192.0.2.1"] for url in urls}, 0.05)
    net.dials = dict.fromkeys(urls[:1], 30.0)
    began = trio.current_time()
    await crawled(net, politeness=Politeness(delay=0.3, robots=False))
    # The others take six seconds.
    assert sorted(net.starts["192.0.2.1"])[18] - began < 12


async def test_unrelated_sites_of_a_large_server_are_connected_to_side_by_side(
    autojump_clock: Any,
) -> None:
    urls = names(200, "www.site{}.com")
    net = Net(urls, {host(url): ["192.0.2.1"] for url in urls}, 0.1)
    net.dials = dict.fromkeys(urls, 0.3)
    began = trio.current_time()
    await crawled(net, scope=None, checks=Checks())
    # One after the other they take a minute.
    assert trio.current_time() - began < 12


async def test_a_server_is_known_by_each_address_of_the_names_that_joined_it(
    autojump_clock: Any,
) -> None:
    at = {"a.test": ["192.0.2.1"], "b.test": ["192.0.2.2", "192.0.2.1"], "c.test": ["192.0.2.2"]}
    urls = [f"http://{name}/" for name in at]
    for order in permutations(urls):
        net = Net(order, at)
        net.lookups = {url: 0.01 * (1 + number) for number, url in enumerate(order)}
        await crawled(net, politeness=Politeness(per_host=1, robots=False))
        starts = sorted(time for times in net.starts.values() for time in times)
        # Where the name with both comes last, the other two had met nowhere.
        assert order[-1] == urls[1] or all(b - a >= 1 for a, b in pairwise(starts)), order


async def test_the_hosts_of_two_servers_wait_for_none_of_the_other(autojump_clock: Any) -> None:
    urls = names(8)
    net = Net(urls, {host(url): [f"192.0.2.{number % 2}"] for number, url in enumerate(urls)})
    await crawled(net, politeness=Politeness(per_host=2, robots=False))
    assert net.peaks == {"192.0.2.0": 2, "192.0.2.1": 2}
    assert max(map(max, net.starts.values())) < 2.5


async def test_a_server_is_known_by_any_of_its_addresses(autojump_clock: Any) -> None:
    wrong = []
    for addresses in (
        ["192.0.2.1"],
        ["192.0.2.1", "198.51.100.{}"],
        ["198.51.100.{}", "192.0.2.1"],
        ["2001:db8::{}"],
        ["64:ff9b::192.0.2.1"],
    ):
        urls = names(20)
        at = {host(url): [a.format(n) for a in addresses] for n, url in enumerate(urls)}
        net = Net(urls, at)
        await crawled(net, politeness=Politeness(per_host=1, robots=False))
        whole = [time for starts in net.starts.values() for time in starts]
        wrong += [] if len(set(whole)) == 20 else [addresses]
    assert not wrong


async def test_machines_that_are_reached_by_one_gateway_are_servers_of_their_own(
    autojump_clock: Any,
) -> None:
    urls = names(20)
    at = {host(url): [f"64:ff9b::198.51.100.{number}"] for number, url in enumerate(urls)}
    net = Net(urls, at)
    await crawled(net, politeness=Politeness(per_host=1, robots=False))
    assert len({round(time, 2) for times in net.starts.values() for time in times}) == 1


async def test_the_ports_of_a_name_are_one_server_where_a_proxy_knows_its_address(
    autojump_clock: Any,
) -> None:
    urls = [f"http://a.test:{port}/" for port in range(8000, 8010)]
    net = Net(urls, {})
    await crawled(net, scope=None, checks=Checks())
    assert net.peaks == {"a.test": 1}
    assert net.gap("a.test") > 0.499


@given(
    st.lists(st.tuples(st.integers(0, 12), st.integers(0, 3), st.integers(0, 3)), max_size=60),
    st.integers(1, 4),
    st.sampled_from([0.0, 0.3]),
    st.sampled_from([200, 404, 429, 503]),
)
def test_every_url_is_asked_for_however_hosts_share_servers(
    found: list[tuple[int, int, int]], per_host: int, delay: float, status: int
) -> None:
    urls = list(dict.fromkeys(f"http://h{name}.test:{8000 + port}/{n}" for name, port, n in found))
    net = Net(urls, {f"h{name}.test": [f"192.0.2.{name % 3}"] for name in range(10)}, 0.2)
    net.bad = {url: status for url in urls if url.endswith("3")}
    polite = Politeness(per_host=per_host, delay=delay)

    async def main() -> None:
        assert await crawled(net, politeness=polite) == len(urls) + 1

    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))
    assert all(peak <= per_host for peak in net.peaks.values())
    assert not delay or all(
        net.gap(at) > delay - 1e-6 for at in net.starts if len(net.starts[at]) > 1
    )


async def test_http_fetch_tells_the_addresses_that_its_lookup_has_found() -> None:
    async with HttpFetch(seeds=["http://localhost/"]) as fetch:
        assert fetch.addresses("http://localhost/") == ()
        await fetch.lookup("http://localhost/")
        assert set(fetch.addresses("http://localhost:81/a")) <= {"127.0.0.1", "::1"}
        assert fetch.addresses("http://[::1]/") == ("::1",)
    async with HttpFetch(proxy="http://127.0.0.1:1") as fetch:
        assert await fetch.lookup("http://localhost/") == math.inf
        assert fetch.addresses("http://localhost/") == ()
