"""Random webs of several hosts, crawled in any way: a good guest's promises hold every time."""

from __future__ import annotations

import math
import random
from collections import Counter
from dataclasses import dataclass, field

import httpx
import trio
from cases import examples
from hypothesis import given
from hypothesis import strategies as st
from sites.webs import everything
from trio.testing import MockClock

from trio_crawler import (
    Crawler,
    Failure,
    Fault,
    Job,
    Limits,
    Outcome,
    Page,
    Phase,
    Politeness,
    Reason,
    Redirect,
    Response,
    Sitemaps,
    Skipped,
    Traps,
    breadth_first,
    by_sitemap,
    depth_first,
)
from trio_crawler.model import Purpose
from trio_crawler.page.urls import authority, origin
from trio_crawler.policy.host_load import MAX_REFUSALS
from trio_crawler.testing import fault, html, redirect, robots

TROUBLES: list[Response | Fault] = [
    Fault(Reason.CONNECTION_REFUSED, "", Phase.CONNECT),
    Fault(Reason.DNS, "", Phase.RESOLVE),
    Fault(Reason.NO_SUCH_HOST, "", Phase.RESOLVE),
    Fault(Reason.TIMEOUT, "", Phase.WAIT),
    Fault(Reason.RESET, "", Phase.WAIT),
    Response(503),
    Response(500),
    Response(429),
    Fault(Reason.RESET, "", Phase.READ),
]
LONG_AGO = -math.inf


@dataclass
class Host:
    """One origin: what robots.txt says, when it is away, and what its pages are."""

    home: str
    disallowed: str = ""
    crawl_delay: float = 0.0
    rules: Response | Fault = field(default_factory=lambda: Response(404))
    troubled: int = 0
    trouble: Response | Fault = field(default_factory=lambda: Response(503))
    away: tuple[float, float] = (0.0, 0.0)
    # Then robots.txt is still answered, by a server in front.
    front: bool = False
    latency: float = 1.0
    pages: dict[str, Response | Fault] = field(default_factory=dict)


def world(chance: random.Random) -> dict[str, Host]:
    """Make a web of one to four hosts, two of which may be one host on two ports."""
    homes = ["http://a.test/", "http://b.test/", "http://a.test:8080/", "https://c.test/"]
    hosts = [host_of(home, chance) for home in homes[: chance.randint(1, 4)]]
    urls = [f"{host.home}{path}" for host in hosts for path in paths(host, chance)]
    for url in urls:
        host = next(host for host in hosts if url.startswith(host.home))
        host.pages[url] = page_of(url, urls, chance)
    for host in hosts:
        leaves = [f"{host.home}leaf/{n}" for n in range(chance.choice([0, 0, 60]))]
        host.pages |= dict.fromkeys(leaves, html())
        links = [*chance.sample(urls, min(len(urls), 6)), *leaves]
        host.pages[host.home] = html(*links, title=host.home)
        host.pages[host.home + "map.xml"] = listing(urls, hosts, chance)
        host.rules = rules_of(host, hosts, chance)
    return {host.home: host for host in hosts}


def host_of(home: str, chance: random.Random) -> Host:
    start = chance.choice([0, 3, 30])
    return Host(
        home,
        disallowed=chance.choice(["", "", "p1", "q/"]),
        crawl_delay=chance.choice([0, 0, 0, 0.5, 7]),
        troubled=chance.choice([0, 0, 0, 1, 3, 10**9]),
        trouble=chance.choice(TROUBLES),
        away=(start, start + chance.choice([0, 0, 0, 20, 300, 10**9])),
        front=chance.random() < 0.3,
        latency=chance.choice([0, 0.1, 1, 5]),
    )


def paths(host: Host, chance: random.Random) -> list[str]:
    return [f"{chance.choice(['p', 'q/', 'n?x='])}{n}" for n in range(chance.randint(0, 9))]


def page_of(url: str, urls: list[str], chance: random.Random) -> Response | Fault:
    kind = chance.random()
    if kind < 0.1:
        return chance.choice([fault(Reason.TLS), fault(Reason.TOO_LARGE), *TROUBLES])
    if kind < 0.25:
        return redirect(chance.choice([*urls, "http://else.test/", "http://[x", url + "x"]))
    if kind < 0.35:
        return busy(chance)
    junk = ["http://else.test/", "mailto:a@b", "http://[x", "/robots.txt", "/map.xml"]
    links = [*chance.choices(urls, k=chance.randint(0, 8)), chance.choice(junk)]
    page = html(*links, title=chance.choice([url, "the same"]))
    if chance.random() < 0.2:
        head = f'<link rel="canonical" href="{chance.choice(urls)}">'.encode()
        return Response(200, page.headers, page.body.replace(b"<title>", head + b"<title>"))
    if chance.random() < 0.1:
        return Response(
            200, httpx.Headers([*page.headers.items(), ("X-Robots-Tag", "none")]), page.body
        )
    return page


def busy(chance: random.Random) -> Response:
    asked = chance.choice(["2", "10", "400", "-1", "soon"])
    return Response(chance.choice([429, 503]), httpx.Headers({"Retry-After": asked}))


def listing(urls: list[str], hosts: list[Host], chance: random.Random) -> Response:
    if chance.random() < 0.2:
        records = "".join(f"<sitemap><loc>{host.home}map.xml</loc></sitemap>" for host in hosts)
        return Response(200, body=f"<sitemapindex>{records}</sitemapindex>".encode())
    named = chance.sample(urls, min(len(urls), 5))
    records = "".join(
        f"<url><loc>{url}</loc><priority>{chance.random()}</priority></url>" for url in named
    )
    return Response(200, body=f"<urlset>{records}</urlset>".encode())


def rules_of(host: Host, hosts: list[Host], chance: random.Random) -> Response | Fault:
    kind = chance.random()
    if kind < 0.2:
        host.disallowed, host.crawl_delay = "", 0
        return Response(404)
    if kind < 0.3:
        # To a file that is not there, one hop away.
        host.disallowed, host.crawl_delay = "", 0
        return redirect(chance.choice(hosts).home + "nothing.txt")
    lines = ["User-agent: *", f"Disallow: /{host.disallowed}" if host.disallowed else "Disallow:"]
    if host.crawl_delay:
        lines.append(f"Crawl-delay: {host.crawl_delay}")
    if chance.random() < 0.5:
        lines.append(f"Sitemap: {chance.choice(hosts).home}map.xml")
    return robots(*lines)


@dataclass
class Way:
    """How the web is crawled."""

    workers: int
    politeness: Politeness
    limits: Limits
    traps: Traps | None
    sitemaps: bool
    order: object
    fold: bool
    stop: float
    reads: float


@st.composite
def ways(draw: st.DrawFn) -> Way:
    politeness = Politeness(
        per_host=draw(st.integers(1, 5)),
        delay=draw(st.sampled_from([0, 0, 0.25, 2])),
        adaptive=draw(st.booleans()),
        patience=draw(st.sampled_from([0, 60, 360])),
        robots=draw(st.sampled_from([True, True, False])),
        nofollow=draw(st.booleans()),
    )
    limits = Limits(
        max_pages=draw(st.sampled_from([math.inf, math.inf, 1, 5, 20])),
        max_depth=draw(st.sampled_from([math.inf, math.inf, 0, 1, 3])),
        max_seconds=draw(st.sampled_from([math.inf, math.inf, 0.5, 10, 100])),
        max_redirects=draw(st.sampled_from([10, 10, 0, 1])),
        max_tries=draw(st.sampled_from([4, 4, 1, 2])),
    )
    return Way(
        workers=draw(st.integers(1, 8)),
        politeness=politeness,
        limits=limits,
        traps=draw(st.sampled_from([Traps(), None])),
        sitemaps=draw(st.booleans()),
        order=draw(st.sampled_from([breadth_first, depth_first, by_sitemap, lambda job: job.url])),
        fold=draw(st.booleans()),
        stop=draw(st.sampled_from([math.inf, math.inf, 0, 2.5, 50, 400])),
        reads=draw(st.sampled_from([0, 0, 0, 3])),
    )


class Servers:
    """Answer for all hosts, and check at each request what they were promised."""

    def __init__(self, hosts: dict[str, Host], way: Way) -> None:
        self.hosts = hosts
        self.way = way
        self.asked: Counter[str] = Counter()
        self.crawler: Crawler | None = None
        self.ends = math.inf
        self._rules_asked: Counter[str] = Counter()
        self._known: dict[str, bool] = {}
        self._flying: Counter[str] = Counter()
        self._last: dict[str, float] = {}
        self._rests: dict[str, tuple[float, float]] = {}

    async def __call__(self, job: Job) -> Response | Fault:
        host, now = authority(job.url), trio.current_time()
        self.check(job, host, now)
        self._last[host] = now
        self._flying[host] += 1
        server = self.hosts.get(origin(job.url) + "/")
        await trio.sleep(server.latency if server else 0)
        self._flying[host] -= 1
        answer = self.answer(job, server)
        self.note(job, answer, host)
        return answer

    def check(self, job: Job, host: str, now: float) -> None:
        figures = self.crawler.statistics()
        ended = figures.pages + figures.redirects + figures.failures + figures.skipped
        assert figures.admitted == ended + figures.in_flight + figures.waiting
        assert min(figures.in_flight, figures.waiting) >= 0
        assert now <= self.ends
        assert now < self.way.limits.max_seconds
        most = 64 if self.way.politeness.adaptive else self.way.politeness.per_host
        assert self._flying[host] < most
        # What was handed to a worker at the very moment of the answer is on its way.
        asked_at, until = self._rests.get(host, (now, LONG_AGO))
        assert now >= until or now == asked_at
        gap = self.way.politeness.delay
        server = self.hosts.get(origin(job.url) + "/")
        if job.purpose is not Purpose.ROBOTS and self.way.politeness.robots and server:
            assert self._known.get(server.home), f"{job.url} before its robots.txt"
            gap = max(gap, server.crawl_delay)
        assert now - self._last.get(host, LONG_AGO) >= gap - 1e-6
        if job.purpose is Purpose.PAGE:
            self.asked[job.url] += 1
            # An answer that teaches a rate is no try.
            assert self.asked[job.url] <= self.way.limits.max_tries + MAX_REFUSALS
            if server and self.way.politeness.robots and server.disallowed:
                assert not job.url.startswith(server.home + server.disallowed)

    def answer(self, job: Job, server: Host | None) -> Response | Fault:
        if server is None:
            return Response(404)
        is_away = server.away[0] <= trio.current_time() < server.away[1]
        if is_away and not (server.front and job.url == server.home + "robots.txt"):
            return server.trouble
        if job.url == server.home + "robots.txt":
            if job.purpose is Purpose.ROBOTS:
                self._rules_asked[server.home] += 1
                if self._rules_asked[server.home] <= server.troubled:
                    return server.trouble
            return server.rules
        return server.pages.get(job.url, Response(404))

    def note(self, job: Job, answer: Response | Fault, host: str) -> None:
        """Keep what follows from an answer: rules that are known, and how long to rest."""
        if isinstance(answer, Fault):
            return
        if job.purpose is Purpose.ROBOTS:
            final = answer.status not in (302, 429) and answer.status < 500
            if final:
                self._known[origin(job.referrer or job.url) + "/"] = True
        asked = answer.headers.get("retry-after", "")
        if asked.isdigit():
            now = trio.current_time()
            until = now + min(int(asked), 300)
            self._rests[host] = max(self._rests.get(host, (now, until)), (now, until), key=_until)


def _until(rest: tuple[float, float]) -> float:
    return rest[1]


def crawled(hosts: dict[str, Host], way: Way) -> tuple[Crawler, Servers, list[Outcome]]:
    servers = Servers(hosts, way)
    outcomes: list[Outcome] = []

    async def stop_later(crawler: Crawler) -> None:
        await trio.sleep(way.stop)
        crawler.stop()
        servers.ends = trio.current_time()

    async def main() -> Crawler:
        crawler = servers.crawler = Crawler(
            hosts,
            scope=everything,
            limits=way.limits,
            politeness=way.politeness,
            traps=way.traps,
            sitemaps=Sitemaps(also=[f"{home}map.xml" for home in list(hosts)[:1] if way.sitemaps]),
            order=way.order,
            fold_canonical=way.fold,
            workers=way.workers,
            fetch=servers,
        )
        # It ends: nothing here takes ten days.
        with trio.fail_after(864_000):
            async with trio.open_nursery() as nursery:
                if way.stop < math.inf:
                    nursery.start_soon(stop_later, crawler)
                async with crawler.outcomes() as stream:
                    async for outcome in stream:
                        outcomes.append(outcome)
                        await trio.sleep(way.reads)
                nursery.cancel_scope.cancel()
        return crawler

    return trio.run(main, clock=MockClock(autojump_threshold=0)), servers, outcomes


@examples(150)
@given(st.integers(0, 2**32), ways())
def test_whatever_the_web_is_and_however_it_is_crawled_the_promises_hold(seed, way):
    crawler, servers, outcomes = crawled(world(random.Random(seed)), way)
    totals = crawler.statistics()
    counts = Counter(type(outcome) for outcome in outcomes)
    # One outcome for each URL, and they add up.
    assert len({outcome.url for outcome in outcomes}) == len(outcomes) == totals.admitted
    assert (totals.in_flight, totals.waiting) == (0, 0)
    figures = (totals.pages, totals.redirects, totals.failures, totals.skipped)
    assert figures == (counts[Page], counts[Redirect], counts[Failure], counts[Skipped])
    assert totals.pages + totals.failures <= way.limits.max_pages
    assert crawler.frontier.statistics().unsettled == 0
    # What was never asked for is skipped, or its host was never reached.
    known = {outcome.url for outcome in outcomes}
    assert set(servers.asked) <= known
    for outcome in outcomes:
        if isinstance(outcome, Skipped):
            assert servers.asked[outcome.url] == 0
        elif isinstance(outcome, (Page, Redirect)):
            assert outcome.tries <= way.limits.max_tries
            asked = servers.asked[outcome.url]
            assert max(outcome.tries, 1) <= asked <= outcome.tries + MAX_REFUSALS
        if isinstance(outcome, Page):
            # Nothing that a page leads to disappears.
            assert set(outcome.links) <= known
        elif isinstance(outcome, Redirect) and outcome.rejected is None:
            assert outcome.target in known
        if outcome.depth > way.limits.max_depth:
            raise AssertionError(f"{outcome.url} is too deep")


@examples(25)
@given(st.integers(0, 2**32), st.integers(1, 8), st.integers(1, 5), st.booleans())
def test_whatever_is_away_for_five_minutes_no_page_is_lost(seed, workers, per_host, sitemaps):
    """Every host has answered before it goes away, and then comes back."""
    chance = random.Random(seed)
    hosts = world(chance)
    for host in hosts.values():
        since = chance.choice([9, 14])
        host.troubled, host.latency, host.crawl_delay = 0, 1, 0
        host.away = (since, since + 300)
        if not isinstance(host.rules, Response) or host.rules.status != 404:
            host.rules = robots("")
        host.disallowed = ""
        calm = [url for url, page in host.pages.items() if not page_is_calm(page)]
        host.pages |= {url: html(*chance.choices(list(host.pages), k=3)) for url in calm}
        host.pages |= {f"{host.home}leaf{n}": html() for n in range(20 * per_host)}
        host.pages[host.home] = html(*(url for url in host.pages if url != host.home))
        host.trouble = chance.choice([TROUBLES[0], TROUBLES[1], TROUBLES[4], TROUBLES[3]])
        host.front = False
    way = Way(
        workers=workers, politeness=Politeness(per_host=per_host), limits=Limits(),
        traps=Traps.off(), sitemaps=sitemaps, order=breadth_first, fold=False, stop=math.inf,
        reads=0,
    )  # fmt: skip
    _, _, outcomes = crawled(hosts, way)
    bad = [
        o
        for o in outcomes
        if not isinstance(o, (Page, Redirect)) or getattr(o, "status", 0) >= 500
    ]
    expected = {
        url for host in hosts.values() for url in host.pages if not url.endswith("map.xml")
    }
    assert not bad
    assert expected <= {outcome.url for outcome in outcomes}


def page_is_calm(page: Response | Fault) -> bool:
    return isinstance(page, Response) and page.status == 200
