"""The delay of a host is kept between the first bytes of two requests, whatever comes between."""

from __future__ import annotations

import random
import ssl
from collections.abc import Callable
from itertools import pairwise

import httpx
import pytest
import trio
from bench.gaps import measured
from sites.raw import Request, hang_up, raw_server, reply, tunnel
from sites.webs import HOME, Log, site_of

from trio_crawler import (
    Crawler,
    Fault,
    HttpFetch,
    Job,
    Politeness,
    Reason,
    Response,
    SqliteFrontier,
)
from trio_crawler.engine.handler import fetch_once
from trio_crawler.frontier import Hosts, Plan, Settlement
from trio_crawler.model import Attempt, Fetch, Purpose
from trio_crawler.net.dial.addresses import AddressPolicy
from trio_crawler.net.dial.connector import Dialer, connect
from trio_crawler.net.turn import HOLD, TURN, Turn
from trio_crawler.policy.host_load import HostLoad
from trio_crawler.settlement import RobotsMoved
from trio_crawler.testing import Web, html, robots


def least(times: list[float]) -> float:
    """Return the least gap; a nanosecond more, since differences are not exact."""
    return min(after - before for before, after in pairwise(sorted(times))) + 1e-9


class Slow(Crawler):
    """A crawler whose workers take their time before each fetch."""

    pause: Callable[[], float] = float

    async def fetch(self, ask: Fetch, job: Job) -> Settlement | None:
        await trio.sleep(self.pause())
        return await super().fetch(ask, job)


@pytest.mark.parametrize("longest", [0.5, 3, 20])
async def test_slow_workers_bring_no_two_starts_together(autojump_clock, longest):
    log = Log(Web(site_of(100), delay=0.1))
    crawler = Slow([HOME], fetch=log, workers=20, politeness=Politeness(delay=2))
    chance = random.Random(7)
    crawler.pause = lambda: chance.uniform(0, longest)
    assert (await crawler.crawl()).pages == 101
    assert least([time for time, _ in log.asked]) >= 2


class Dialling:
    """A fetch that dials for a while before it writes, and reports when it does."""

    def __init__(self, web: Web, pause: Callable[[], float]) -> None:
        self.written: list[float] = []
        self._web = web
        self._pause = pause

    async def __call__(self, job: Job) -> Response | Fault:
        turn = TURN.get()
        if turn is None:
            return await self._web(job)
        turn.adopt()
        await trio.sleep(self._pause())
        await turn.wait()
        self.written.append(trio.current_time())
        turn.start()
        return await self._web(job)


@pytest.mark.parametrize("longest", [0.5, 3, 4 * HOLD])
async def test_a_slow_connection_delays_the_next_start(autojump_clock, longest):
    chance = random.Random(8)
    fetch = Dialling(Web(site_of(100), delay=0.1), lambda: chance.uniform(0, longest))
    crawler = Crawler([HOME], fetch=fetch, workers=20, politeness=Politeness(delay=1))
    assert (await crawler.crawl()).pages == 101
    assert len(fetch.written) == 102
    assert least(fetch.written) >= 1


async def test_a_connection_that_hangs_holds_the_others_for_some_seconds_only(autojump_clock):
    pauses = iter([0, 0, 1000.0])
    fetch = Dialling(Web(site_of(20), delay=0.1), lambda: next(pauses, 0))
    crawler = Crawler([HOME], fetch=fetch, politeness=Politeness(delay=1))
    await crawler.crawl()
    assert fetch.written[-2] <= 20 + HOLD + 3
    assert least(fetch.written) >= 1


async def test_a_fetch_that_asks_twice_waits_for_a_turn_of_its_own(autojump_clock):
    log = Log(Web(site_of(20), delay=0.1))

    async def twice(job: Job) -> Response | Fault:
        turn = TURN.get()
        assert turn is not None
        for _ in range(2):
            turn.adopt()
            await turn.wait()
            turn.start()
            answer = await log(job)
        return answer

    await Crawler([HOME], fetch=twice, politeness=Politeness(delay=1)).crawl()
    assert len(log.asked) == 44
    assert least([time for time, _ in log.asked]) >= 1


async def test_a_request_that_dials_while_a_retry_after_comes_waits_for_its_end(autojump_clock):
    """The second one is dialling when the first is answered, and is not written yet."""
    busy = Response(503, httpx.Headers({"Retry-After": "30"}))
    answers = iter([busy, *[html()] * 9])
    pauses = iter([0, 4])
    site = {HOME: lambda job: next(answers), HOME + "2": lambda job: next(answers)}
    fetch = Dialling(Web(site, delay=3), lambda: next(pauses, 0))
    gently = Politeness(delay=1, robots=False, per_host=2)
    figures = await Crawler([HOME, HOME + "2"], fetch=fetch, politeness=gently).crawl()
    assert figures.pages == 2
    assert fetch.written[0] == 0
    assert min(fetch.written[1:]) == 33
    assert least(fetch.written) >= 1


async def test_a_crawl_delay_begins_with_the_request_for_robots_txt(autojump_clock):
    site = site_of(10) | {"/robots.txt": robots("User-agent: *", "Crawl-delay: 5")}
    fetch = Dialling(Web(site), lambda: 3)
    await Crawler([HOME], fetch=fetch).crawl()
    assert [b - a for a, b in pairwise(fetch.written)] == pytest.approx([8] * 11)


async def test_without_a_delay_no_job_has_a_turn(autojump_clock):
    turns: list[Turn | None] = []
    web = Web(site_of(20), delay=0.1)

    async def fetch(job: Job) -> Response | Fault:
        turns.append(TURN.get())
        return await web(job)

    await Crawler([HOME], fetch=fetch, politeness=Politeness(robots=False)).crawl()
    assert turns == [None] * 21


async def test_a_job_that_is_answered_without_a_start_has_started_then(autojump_clock):
    plan = Plan([HOME], politeness=Politeness(delay=2, robots=False))
    hosts = Hosts(plan, end=lambda reason: None)
    hosts.admit([Job(HOME), Job(HOME + "2")])
    first = hosts.next_job(False)
    assert first is not None
    await trio.sleep(4)
    assert hosts.next_job(False) is None
    hosts.answered(Attempt(first, Response(200), 4))
    await trio.sleep(1.9)
    assert hosts.next_job(False) is None
    await trio.sleep(0.1)
    assert hosts.next_job(False) == Job(HOME + "2")


async def test_a_robots_txt_that_another_host_leads_to_has_no_turn_in_common_with_its_own(
    autojump_clock,
):
    """Both are chosen before a worker asks for one of them."""
    hosts = Hosts(Plan([HOME]), end=lambda reason: None)
    hop = Job(HOME + "robots.txt", redirects=4, referrer="http://b.test/", purpose=Purpose.ROBOTS)
    hosts.admit([Job(HOME)])
    hosts.settled(Settlement(hop, learned=RobotsMoved(hop)))
    jobs = [hosts.next_job(False), hosts.next_job(False)]
    assert [job.url for job in jobs if job] == [HOME + "robots.txt"] * 2
    fetch = Dialling(Web({}, delay=1), lambda: 0.5)
    async with trio.open_nursery() as nursery:
        for job in jobs:
            assert job is not None
            nursery.start_soon(fetch_once, fetch, job, hosts.turns.get((job.purpose, job.url)))
    assert trio.current_time() == 0.5


async def test_a_cancelled_wait_for_a_turn_gives_it_to_the_next_job(autojump_clock):
    plan = Plan([HOME], politeness=Politeness(delay=2, robots=False))
    hosts = Hosts(plan, end=lambda reason: None)
    hosts.admit([Job(f"{HOME}{number}") for number in range(3)])
    first = hosts.next_job(False)
    assert first is not None
    turn = hosts.turns[first.purpose, first.url]
    turn.call()
    with trio.move_on_after(1) as scope:
        await turn.wait()
    assert scope.cancelled_caught
    await trio.sleep(1)
    assert hosts.next_job(False) is not None


async def test_a_deadline_does_not_run_while_a_request_waits_for_its_turn(autojump_clock):
    """It is sent again on a new connection, five seconds after the first time."""
    plan = Plan([HOME], politeness=Politeness(delay=5, robots=False))
    hosts = Hosts(plan, end=lambda reason: None)
    asked: list[tuple[float, str]] = []

    async def closing(request: Request, stream: trio.abc.Stream) -> None:
        asked.append((trio.current_time(), request.target))
        if len(asked) == 2:
            await hang_up(request, stream)
        else:
            await stream.send_all(reply(body=b"here"))

    # Real sockets and virtual time: jump only when both sides wait.
    autojump_clock.autojump_threshold = 0.05
    async with raw_server(closing) as server, HttpFetch(seeds=[server.url], timeout=1) as fetch:
        hosts.admit([Job(server.url + "1"), Job(server.url + "2")])
        dialled: list[float] = []

        async def dial(address: str, port: int):
            dialled.append(trio.current_time())
            return await connect(address, port)

        policy = AddressPolicy([server.url], ())
        fetch._network.wire.connector.dial = Dialer(policy, connect=dial)
        for _ in range(2):
            job = hosts.next_job(False)
            assert job is not None
            attempt = await fetch_once(fetch, job, hosts.turns.get((job.purpose, job.url)))
            assert getattr(attempt.answer, "body", attempt.answer) == b"here"
            hosts.answered(attempt)
            await trio.sleep(5)
        assert fetch.statistics().wire.retried == 1
    assert [target for _, target in asked] == ["/1", "/2", "/2"]
    assert dialled[-1] >= asked[1][0] + 5
    assert least([time for time, _ in asked]) >= 5


async def test_over_http_2_a_stream_that_is_refused_waits_for_its_turn(
    autojump_clock, client_tls, server_tls
):
    """The server goes away with the second stream unread, and the client asks again."""
    autojump_clock.autojump_threshold = 0.05
    two = pytest.importorskip("sites.two")
    asked: list[float] = []

    async def once(talk, number: int) -> None:
        asked.append(trio.current_time())
        if len(asked) == 2:
            talk.machine.close_connection(last_stream_id=number - 2)
            await talk.flush()
            return
        talk.machine.send_headers(number, [(":status", "200"), ("content-type", "text/html")])
        talk.left[number] = html("/2").body

    site = {"/": once, "/2": once}
    async with two.two_server(site, server_tls) as server:
        url = f"https://127.0.0.1:{server.port}/"
        async with HttpFetch(seeds=[url], tls=client_tls, http2=True) as fetch:
            gently = Politeness(delay=0.3, robots=False)
            totals = await Crawler([url], fetch=fetch, politeness=gently).crawl()
    assert totals.pages == 2
    assert len(asked) == 3
    assert least(asked) >= 0.3 - 1e-9


@pytest.fixture
def authority():
    return pytest.importorskip("trustme").CA()


@pytest.fixture
def client_tls(authority) -> ssl.SSLContext:
    context = ssl.create_default_context()
    authority.configure_trust(context)
    return context


@pytest.fixture
def server_tls(authority) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    return context


@pytest.mark.parametrize(
    "pauses", [[0.9, 0.1] * 4, [0, 4 * HOLD, 1] * 4, [0, HOLD + 2, 1.9, *[0] * 9]]
)
async def test_a_slow_dial_is_not_counted_as_the_start(autojump_clock, pauses):
    """No connection is kept, and some are not there when others may have their turn."""
    autojump_clock.autojump_threshold = 0.05
    dialled: list[float] = []
    written: list[float] = []

    async def dial(address: str, port: int):
        dialled.append(trio.current_time())
        await trio.sleep(pauses[len(dialled) - 1])
        return await connect(address, port)

    async def answer(request: Request, stream: trio.abc.Stream) -> None:
        written.append(trio.current_time())
        await stream.send_all(reply(headers={"Connection": "close"}, body=b"here"))

    async with raw_server(answer) as server:
        seeds = [f"{server.url}{number}" for number in range(len(pauses))]
        async with HttpFetch(seeds=seeds) as fetch:
            fetch._network.wire.connector.dial = Dialer(AddressPolicy(seeds, ()), connect=dial)
            gently = Politeness(delay=0.5, robots=False)
            totals = await Crawler(seeds, fetch=fetch, politeness=gently).crawl()
    assert totals.pages == len(dialled) == len(pauses)
    assert least(written) >= 0.5
    assert least(dialled) >= 0.5
    if max(pauses) < HOLD:
        # Neither does anybody connect before the delay has passed.
        gaps = [dial - write for write, dial in zip(written, dialled[1:], strict=False)]
        assert min(gaps) >= 0.5 - 1e-9


async def test_a_slow_lookup_is_not_counted_as_the_start(autojump_clock):
    """No connection is kept, and no lookup either: each request waits for one in its worker."""
    autojump_clock.autojump_threshold = 0.05
    pauses = iter([0, HOLD + 2, 1.9, 0, 3, 2 * HOLD, *[0] * 6])
    written: list[float] = []

    async def look_up(host: str, port: int) -> list[str]:
        await trio.sleep(next(pauses, 0))
        return ["127.0.0.1"]

    async def answer(request: Request, stream: trio.abc.Stream) -> None:
        written.append(trio.current_time())
        await stream.send_all(reply(headers={"Connection": "close"}, body=b"here"))

    async with raw_server(answer) as server:
        seeds = [f"http://slow.test:{server.port}/{number}" for number in range(12)]
        async with HttpFetch(seeds=seeds) as fetch:
            fetch._network.wire.connector.dial = Dialer(AddressPolicy(seeds, ()), look_up)
            gently = Politeness(delay=0.5, robots=False)
            totals = await Crawler(seeds, fetch=fetch, politeness=gently).crawl()
    assert totals.pages == 12
    assert least(written) >= 0.5


@pytest.mark.parametrize("pauses", [[0.9, 0.1] * 4, [0, HOLD + 2, 1.9, *[0] * 9]])
async def test_the_request_to_the_site_is_the_start_and_not_the_one_for_a_tunnel(
    autojump_clock, client_tls, server_tls, pauses
):
    autojump_clock.autojump_threshold = 0.05
    tunnels: list[float] = []
    written: list[float] = []

    async def connects(request: Request, stream: trio.abc.Stream) -> None:
        tunnels.append(trio.current_time())
        await trio.sleep(pauses[len(tunnels) - 1])
        await tunnel(stream, site.port)

    async def answer(request: Request, stream: trio.abc.Stream) -> None:
        written.append(trio.current_time())
        await stream.send_all(reply(headers={"Connection": "close"}, body=b"here"))
        await stream.aclose()

    async with raw_server(answer, tls=server_tls) as site, raw_server(connects) as proxy:
        seeds = [f"{site.url}{number}" for number in range(len(pauses))]
        async with HttpFetch(seeds=seeds, tls=client_tls, proxy=proxy.url) as fetch:
            gently = Politeness(delay=0.5, robots=False)
            totals = await Crawler(seeds, fetch=fetch, politeness=gently).crawl()
    assert totals.pages == len(tunnels) == len(pauses)
    assert least(written) >= 0.5
    if max(pauses) < HOLD:
        gaps = [asked - write for write, asked in zip(written, tunnels[1:], strict=False)]
        assert min(gaps) >= 0.5 - 1e-9


@pytest.mark.slow
def test_of_ten_thousand_gaps_in_a_busy_process_none_is_too_short():
    # The server is a process like ours, which a busy machine may hold up for longer than 5 ms.
    for _ in range(3):
        ours, theirs, pages, again = measured(20, 500, 0.05, 0.03, 20)
        assert pages == 20 * 501
        assert again > 100
        assert len(ours) == len(theirs) > 10_000
        assert ours[0] >= 0.05
        if theirs[0] >= 0.045:
            return
    raise AssertionError(f"at the server the least gap is {theirs[0]:.4f} s")


@pytest.mark.slow
def test_of_some_gaps_in_a_busy_process_none_is_too_short():
    ours, _, pages, again = measured(8, 20, 0.05, 0.03, 4)
    assert pages == 8 * 21
    assert again > 5
    assert ours[0] >= 0.05


@pytest.mark.parametrize("given", [True, False])
async def test_a_crawl_that_is_resumed_waits_for_the_delay_first(autojump_clock, tmp_path, given):
    """The run before may have asked just before it was killed."""
    rules = robots("User-agent: *", "" if given else "Crawl-delay: 5")
    log = Log(Web(site_of(6) | {"/robots.txt": rules}, delay=0.1))
    gently = Politeness(delay=5 if given else 0)
    for seconds in (14.9, 10**6):
        async with SqliteFrontier(tmp_path) as frontier:
            with trio.move_on_after(seconds):
                await Crawler([HOME], fetch=log, frontier=frontier, politeness=gently).crawl()
    assert len(log.asked) == 8
    assert least([time for time, _ in log.asked]) >= 5


async def test_a_hurried_fetch_whose_response_has_begun_is_not_cut_short(autojump_clock):
    autojump_clock.autojump_threshold = 0.05

    async def answer(request: Request, stream: trio.abc.Stream) -> None:
        if request.target == "/mute":
            await trio.sleep(60)
        whole = reply(body=b"here")
        await stream.send_all(whole[:-2])
        await trio.sleep(5)
        await stream.send_all(whole[-2:])

    load = HostLoad(Politeness())
    async with raw_server(answer) as server, HttpFetch(seeds=[server.url], timeout=20) as fetch:
        turns = [Turn(load, None, hurry=2) for _ in range(2)]
        slow = await fetch_once(fetch, Job(server.url + "slow"), turns[0])
        mute = await fetch_once(fetch, Job(server.url + "mute"), turns[1])
    assert slow.answer.body == b"here"
    assert mute.answer.reason is Reason.TIMEOUT
    assert mute.answer.detail == "no answer in 2 seconds, while other URLs of its host wait"
    assert (mute.seconds, mute.job.tries) == (2, 1)


async def test_two_schemes_of_a_host_keep_the_longer_crawl_delay_together(autojump_clock):
    secure = HOME.replace("http:", "https:")
    site = site_of(20) | site_of(20, secure)
    site[HOME + "robots.txt"] = robots("User-agent: *", "Crawl-delay: 2")
    site[secure + "robots.txt"] = robots("User-agent: *", "Crawl-delay: 3")
    chance = random.Random(9)
    fetch = Dialling(Web(site, delay=0.1), lambda: chance.uniform(0, 4))
    totals = await Crawler([HOME, secure], fetch=fetch, workers=9).crawl()
    assert totals.pages == 42
    # When the second robots.txt was asked for, the first one had not been read.
    assert least(fetch.written[2:]) >= 3
