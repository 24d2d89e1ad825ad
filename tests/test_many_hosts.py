"""Many hosts over sockets: a name under lookup holds no worker, and connections are used again."""

from __future__ import annotations

import math
import socket
import threading
from collections import Counter
from collections.abc import Sequence

import pytest
import trio
from sites.raw import Handler, Request, Server, html, raw_server

from trio_crawler import (
    Crawler,
    Failure,
    HttpFetch,
    Job,
    Limits,
    Outcome,
    Page,
    Phase,
    Politeness,
    Reason,
)
from trio_crawler.net.dial.addresses import AddressPolicy
from trio_crawler.net.dial.connector import Dialer, Resolver
from trio_crawler.net.errors import FetchError


class System:
    """The system's resolver: silent names get no answer until `over` is set."""

    def __init__(self) -> None:
        self.asked = Counter[str]()
        self.over = threading.Event()

    def __call__(self, name: bytes) -> Sequence[str]:
        host = name.decode()
        self.asked[host] += 1
        if host.startswith("silent"):
            assert self.over.wait(30)
            raise socket.gaierror(socket.EAI_AGAIN, "no answer")
        if host.startswith("unknown"):
            raise socket.gaierror(socket.EAI_NONAME, "no such name")
        return ["127.0.0.1"]


def fetch_of(server: Server, system: System, **options: int) -> HttpFetch:
    """Return a fetch for which all names lead to the server."""
    fetch = HttpFetch(**options)
    policy = AddressPolicy((), ["127.0.0.1"])
    fetch._network.wire.connector.dial = Dialer(policy, Resolver(system))
    return fetch


def homes(server: Server, count: int, kind: str = "well") -> list[str]:
    return [f"http://{kind}{number}.test:{server.port}/" for number in range(count)]


def site(count: int) -> Handler:
    """Return a handler for a site of so many pages, the same for each host."""

    async def answer(request: Request, stream: trio.abc.Stream) -> None:
        links = [f"/{number}" for number in range(1, count)] if request.target == "/" else []
        await stream.send_all(html(*links))

    return answer


@pytest.mark.parametrize("obeyed", [True, False])
async def test_names_without_an_answer_hold_none_of_the_workers(obeyed):
    system, found = System(), list[Outcome]()
    async with raw_server(site(10)) as server, fetch_of(server, system) as fetch:
        seeds = [*homes(server, 30, "silent"), *homes(server, 10)]
        gently = Politeness(robots=obeyed)
        crawler = Crawler(
            seeds, fetch=fetch, workers=4, politeness=gently, limits=Limits(max_tries=2)
        )
        with trio.fail_after(30):
            async with crawler.outcomes() as outcomes:
                async for outcome in outcomes:
                    found.append(outcome)
                    if len(found) == 100:
                        # All pages have come, and each silent name is still looked up.
                        assert {type(each) for each in found} == {Page}
                        system.over.set()
    failures = [each for each in found if isinstance(each, Failure)]
    assert [(each.reason, each.phase) for each in failures] == [(Reason.DNS, Phase.RESOLVE)] * 30
    # One lookup for each of the two tries, and none by a worker.
    assert {host: times for host, times in system.asked.items() if times > 1} == {
        f"silent{number}.test": 2 for number in range(30)
    }


@pytest.mark.parametrize("obeyed", [True, False])
async def test_a_name_that_does_not_exist_is_tried_twice(obeyed):
    system = System()
    async with raw_server(site(1)) as server, fetch_of(server, system) as fetch:
        (seed,) = homes(server, 1, "unknown")
        crawler = Crawler([seed], fetch=fetch, politeness=Politeness(robots=obeyed))
        async with crawler.outcomes() as outcomes:
            (outcome,) = [each async for each in outcomes]
    assert isinstance(outcome, Failure)
    assert (outcome.reason, outcome.phase) == (Reason.NO_SUCH_HOST, Phase.RESOLVE)
    assert outcome.detail == f"the name of unknown0.test:{server.port} is not known"
    assert system.asked == {"unknown0.test": 2}


async def test_a_lookup_of_a_fetch_serves_its_next_requests():
    system = System()
    async with raw_server(site(1)) as server, fetch_of(server, system) as fetch:
        well, unknown = homes(server, 1)[0], homes(server, 1, "unknown")[0]
        assert await fetch.lookup(well) == 60
        assert await fetch.lookup(unknown) == 60
        assert getattr(await fetch(Job(well)), "status", None) == 200
        assert getattr(await fetch(Job(unknown)), "reason", None) is Reason.NO_SUCH_HOST
        assert set(system.asked.values()) == {1}
        for url in (server.url, "http://[::1]/", "not a url", "http://a..b/"):
            assert await fetch.lookup(url) == math.inf
    assert set(system.asked.values()) == {1}
    with pytest.raises(RuntimeError, match="closed"):
        await fetch.lookup(well)


async def test_a_name_that_a_proxy_looks_up_is_not_looked_up_here():
    async with raw_server(site(1)) as server, HttpFetch(proxy=server.url) as fetch:
        assert await fetch.lookup("http://no-such-host.invalid/") == math.inf
        assert getattr(await fetch(Job("http://no-such-host.invalid/")), "status", 0) == 200


async def test_a_function_of_the_caller_is_not_asked_before_it_is_needed():
    asked = []

    async def resolve(host: str, port: int) -> list[str]:
        asked.append(host)
        raise FetchError(Reason.DNS, "no", Phase.RESOLVE)

    async with HttpFetch() as fetch:
        fetch._connector.dial = Dialer(AddressPolicy((), ()), resolve)
        assert await fetch.lookup("http://h.test/") == math.inf
    assert asked == []


async def test_with_few_idle_connections_each_still_serves_several_requests():
    """Twelve hosts of ten pages, two workers, and three idle connections."""
    async with raw_server(site(10)) as server:
        async with fetch_of(server, System(), max_idle=3) as fetch:
            gently = Politeness(robots=False)
            crawler = Crawler(homes(server, 12), fetch=fetch, workers=2, politeness=gently)
            assert (await crawler.crawl()).pages == 120
        # By turns one after the other each request would have a connection of its own.
        assert server.connections <= 40
