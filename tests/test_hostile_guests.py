"""Sites that mean harm, or are odd enough to do it: the crawl goes on, ends, and stays polite."""

from __future__ import annotations

import math
from functools import partial
from itertools import pairwise

import httpx
import pytest
import trio
from cases import examples, for_each
from hypothesis import given
from hypothesis import strategies as st
from sites import webs
from sites.webs import HOME, OTHER, ROBOTS, Answer, Log, Site, everything, site_of
from trio.testing import MockClock

from trio_crawler import (
    Crawler,
    Failure,
    Job,
    Limits,
    Page,
    Politeness,
    Reason,
    Response,
    Sitemaps,
    Skipped,
    excluding,
    with_prefix,
)
from trio_crawler.model import Purpose
from trio_crawler.policy.robots import FRESH
from trio_crawler.testing import Web, fault, html, redirect, robots

MAP = HOME + "s.xml"
SEGMENT = "(s(aaaaaaaaaaaaaaaaaaaaaaaa))"

# A long robots.txt is read in a thread.
collect = partial(webs.collect, within=math.inf)


def urlset(*urls: str) -> Response:
    return Response(200, httpx.Headers({"content-type": "text/plain"}), "\n".join(urls).encode())


def index(*urls: str) -> Response:
    records = "".join(f"<sitemap><loc>{url}</loc></sitemap>" for url in urls)
    media = httpx.Headers({"content-type": "application/xml"})
    return Response(200, media, f"<sitemapindex>{records}</sitemapindex>".encode())


def flaws(crawler: Crawler) -> dict[str, tuple[Reason, ...]]:
    records = {record.url: record.flaws for record in crawler.sitemaps()}
    assert len(records) == len(crawler.sitemaps())
    return records


# How sitemaps are spelled.


@for_each(
    "written, url",
    [
        ("http://site.test", HOME),
        ("http://site.test?x", HOME + "?x"),
        ("http:////site.test/s.xml", MAP),
        ("HTTP://Site.Test/S.xml", HOME + "S.xml"),
        ("http://site.test:80/s.xml", MAP),
        ("http://u:p@site.test/s.xml", MAP),
    ],
)
async def test_a_sitemap_is_asked_for_and_recorded_in_its_normal_spelling(
    autojump_clock, written, url
):
    log = Log(Web(site_of(1) | {ROBOTS: robots(f"Sitemap: {written}")}))
    crawler = Crawler([HOME], fetch=log)
    await collect(crawler)
    assert [asked for _, asked in log.of(Purpose.SITEMAP)] == [url]
    assert [record.url for record in crawler.sitemaps()] == [url]
    assert list(crawler.hosts) == ["site.test"]


PIECES = ["http://", "HTTPS://", "site.test", "[::1", "]", ":", "0", "@", "/", "?", "\\", ";", " "]


@given(st.lists(st.sampled_from(PIECES), min_size=1, max_size=6).map("".join))
@examples(50)
def test_whatever_a_robots_txt_calls_a_sitemap_or_a_page_links_to_the_crawl_goes_on(written):
    async def crawl() -> None:
        site = site_of(1) | {ROBOTS: robots(f"Sitemap: http://{written}", f"Sitemap: {written}")}
        web = Web(site | {HOME: html("/0", written, f"http://;jsessionid=x{written}")})
        found = await collect(Crawler([HOME], fetch=web))
        assert HOME + "0" in {outcome.url for outcome in found}

    trio.run(crawl, clock=MockClock(autojump_threshold=0))


# Links with sessions.


@for_each("scope", [None, everything])
@for_each(
    "link", ["http://;jsessionid=x/", f"http://{SEGMENT}/x", f"http://{SEGMENT};jsessionid=x/"]
)
async def test_a_link_whose_host_looks_like_a_session_id_does_no_harm(autojump_clock, link, scope):
    web = Web({HOME: html(link, "/0"), HOME + "0": html()})
    found = await collect(Crawler([HOME], fetch=web, scope=scope))
    assert HOME + "0" in {outcome.url for outcome in found}


@pytest.mark.parametrize(
    "link",
    ["/x/..;jsessionid=1/private", "/.;jsessionid=1/private", "/x/.%2e;jsessionid=1/private"],
)
async def test_what_a_session_id_hides_from_robots_txt_is_not_asked_for(autojump_clock, link):
    rules = {ROBOTS: robots("User-agent: *", "Disallow: /private")}
    web = Web({HOME: html(link)} | rules)
    (page,) = await collect(Crawler([HOME], fetch=web))
    assert page.rejected == ((HOME + link[1:], Reason.ROBOTS),)
    assert set(web.hits) == {HOME, ROBOTS}


async def test_what_a_session_id_hides_from_the_scope_is_not_asked_for(autojump_clock):
    web = Web({HOME: html("/x/..;jsessionid=1/private")})
    (page,) = await collect(Crawler([HOME], fetch=web, scope=excluding("test/private")))
    assert [refused.reason for refused in page.rejected] == [Reason.EXCLUDED]
    assert set(web.hits) == {HOME}


# Ends while a long robots.txt is read in its thread.

LONG = robots("User-agent: *", *(f"Disallow: /{n:0>50}" for n in range(9_000)), f"Sitemap: {MAP}")


@pytest.mark.parametrize("ends", ["stop", "time", "pages"])
async def test_a_crawl_that_ends_while_a_long_robots_txt_is_read_ends_well(mock_clock, ends):
    # The clock jumps to the end while the thread is at work.
    mock_clock.autojump_threshold = 0
    site = site_of(3) | {ROBOTS: LONG, OTHER: html()}
    web = Web(site, delay=lambda job: 1.5 if job.url == OTHER else 1)
    limits = {"time": Limits(max_seconds=1.5), "pages": Limits(max_pages=1)}.get(ends)
    seeds = [OTHER, HOME] if ends == "pages" else [HOME]
    crawler = Crawler(seeds, fetch=web, limits=limits)
    async with trio.open_nursery() as nursery:
        if ends == "stop":
            nursery.start_soon(stop_after, crawler, 1.5)
        found = await collect(crawler)
    assert isinstance(found[-1], Skipped)
    assert web.hits[HOME] == web.hits[MAP] == 0
    assert trio.current_time() == 1.5


async def stop_after(crawler: Crawler, seconds: float) -> None:
    await trio.sleep(seconds)
    crawler.stop()


# Sitemaps without end.


def endless(web: Web) -> Web:
    """Let every sitemap be an index of twenty others."""

    class Endless(Web):
        async def __call__(self, job: Job) -> Answer:
            if job.purpose is not Purpose.SITEMAP:
                return await web(job)
            await trio.sleep(0.1)
            return index(*(f"{job.url}{number:02}" for number in range(20)))

    return Endless({})


@pytest.mark.parametrize("per_host", [1, 4])
async def test_endless_sitemap_indexes_do_not_starve_the_pages(autojump_clock, per_host):
    named = {ROBOTS: robots(f"Sitemap: {MAP}")}
    log = Log(endless(Web(site_of(20) | named, delay=0.1)))
    gently = Politeness(per_host=per_host, delay=1)
    async with Crawler([HOME], fetch=log, politeness=gently).outcomes() as outcomes:
        for _ in range(21):
            assert isinstance(await anext(outcomes), Page)
    # A page after each sitemap.
    assert len(log.of(Purpose.SITEMAP)) <= 22


async def test_a_hundred_sitemaps_and_a_crawl_delay_of_a_minute_do_not_hold_the_first_page(
    autojump_clock,
):
    maps = [f"{HOME}{n}.xml" for n in range(100)]
    rules = robots("User-agent: *", "Crawl-delay: 60", *(f"Sitemap: {url}" for url in maps))
    log = Log(Web(site_of(100) | {ROBOTS: rules} | dict.fromkeys(maps, urlset())))
    await collect(Crawler([HOME], fetch=log))
    assert log.times(HOME)[0] <= 120
    assert len(log.of(Purpose.SITEMAP)) == 100
    starts = [time for time, _ in log.asked]
    assert all(after - before >= 60 for before, after in pairwise(starts))


# A robots.txt that costs much.

WILD = robots("User-agent: *", *(f"Disallow: /*{n}*b*c*d" for n in range(200)))


async def test_other_tasks_run_while_thousands_of_links_are_judged():
    judged = since = most = 0

    def scope(job: Job) -> bool:
        nonlocal judged
        judged += 1
        return True

    async def tick() -> None:
        nonlocal since, most
        while True:
            most, since = max(most, judged - since), judged
            await trio.lowlevel.checkpoint()

    web = Web({HOME: html(*(f"/{n}/" for n in range(4_000))), ROBOTS: WILD})
    async with trio.open_nursery() as nursery:
        nursery.start_soon(tick)
        await Crawler([HOME], fetch=web, scope=scope, limits=Limits(max_pages=1)).crawl()
        nursery.cancel_scope.cancel()
    assert judged >= 4_000
    # Fifty at a time, and either task may go first.
    assert most <= 100


# What an index may name.


@pytest.mark.parametrize(
    ("named", "reason"),
    [
        (HOME + "private/logout?now", Reason.ROBOTS),
        ("http://site.test:6379/x", Reason.NOT_INCLUDED),
        ("https://site.test/s.xml", None),
        (OTHER + "s.xml", Reason.NOT_INCLUDED),
    ],
)
async def test_an_index_opens_no_door_that_a_link_would_not(autojump_clock, named, reason):
    rules = robots("User-agent: *", "Disallow: /private", f"Sitemap: {MAP}")
    web = Web({HOME: html(), ROBOTS: rules, MAP: index(named), named: urlset(HOME)})
    crawler = Crawler([HOME], fetch=web, scope=with_prefix(HOME))
    await collect(crawler)
    assert web.hits[named] == (reason is None)
    assert flaws(crawler) == {MAP: (), named: (reason,) if reason else ()}


async def test_an_index_names_a_disallowed_sitemap_of_another_port_in_vain(autojump_clock):
    port = "http://site.test:81/"
    secret = port + "private/s.xml"
    rules = {port + "robots.txt": robots("User-agent: *", "Disallow: /private")}
    web = Web({HOME: html(), MAP: index(secret), secret: urlset(HOME)} | rules)
    crawler = Crawler([HOME], fetch=web, sitemaps=Sitemaps(also=[MAP]))
    await collect(crawler)
    assert web.hits[secret] == 0
    assert flaws(crawler)[secret] == (Reason.ROBOTS,)


@pytest.mark.parametrize("how", ["named", "redirected", "redirected here"])
async def test_a_robots_txt_opens_no_door_that_another_keeps_shut(autojump_clock, how):
    home = HOME if how == "redirected here" else OTHER
    secret = home + "private/s.xml"
    named = {ROBOTS: robots(f"Sitemap: {secret if how == 'named' else MAP}")}
    if home == HOME:
        named = {ROBOTS: robots("User-agent: *", "Disallow: /private", f"Sitemap: {MAP}")}
    shut = {OTHER + "robots.txt": robots("User-agent: *", "Disallow: /private")}
    web = Web({HOME: html(), secret: urlset(HOME), MAP: redirect(secret)} | named | shut)
    crawler = Crawler([HOME], fetch=web, scope=everything)
    await collect(crawler)
    assert web.hits[secret] == 0
    assert flaws(crawler) == {secret: (Reason.ROBOTS,)}


@pytest.mark.parametrize("scope", [None, everything])
async def test_a_given_sitemap_is_followed_to_another_host_only_in_scope(autojump_clock, scope):
    web = Web({HOME: html(), MAP: redirect(OTHER + "s.xml"), OTHER + "s.xml": urlset(HOME)})
    crawler = Crawler([HOME], fetch=web, sitemaps=Sitemaps(also=[MAP]), scope=scope)
    await collect(crawler)
    assert web.hits[OTHER + "s.xml"] == (scope is everything)
    assert flaws(crawler) == {OTHER + "s.xml": () if scope else (Reason.OTHER_SITE,)}


# One host's sitemaps and those of others.


@pytest.mark.parametrize("trouble", ["crawl-delay", "retry-after"])
async def test_a_host_that_rests_does_not_hold_the_sitemaps_of_others(autojump_clock, trouble):
    homes = [f"http://host{n}.test/" for n in range(20)]
    site: Site = {}
    for home in homes:
        site |= {home: html(), home + "robots.txt": robots(f"Sitemap: {home}s.xml")}
        site |= {home + "s.xml": urlset(home + "a")}
    first = homes[0]
    if trouble == "crawl-delay":
        maps = [f"Sitemap: {first}{n}.xml" for n in range(100)]
        site[first + "robots.txt"] = robots("User-agent: *", "Crawl-delay: 60", *maps)
    else:
        site[first + "s.xml"] = Response(503, httpx.Headers({"retry-after": "300"}))
    log = Log(Web(site, delay=1))
    await collect(Crawler(homes, fetch=log, workers=40))
    others = [time for time, url in log.of(Purpose.SITEMAP) if not url.startswith(first)]
    assert len(others) == 19
    assert max(others) <= 30


async def test_a_host_that_rests_while_its_sitemap_waits_does_not_hold_the_next_one(
    autojump_clock,
):
    first, second, third = homes = [f"http://host{n}.test/" for n in range(3)]
    site: Site = {}
    for home in homes:
        site |= {home: html(), home + "robots.txt": robots(f"Sitemap: {home}s.xml")}
        site |= {home + "s.xml": urlset(home)}
    site[second] = Response(503, httpx.Headers({"retry-after": "300"}))
    # The first is read for ten seconds, the other two wait, and one of them must rest.
    waits = {first + "s.xml": 10, second + "robots.txt": 1, third + "robots.txt": 3}
    log = Log(Web(site, delay=lambda job: waits.get(job.url, 0.5)))
    await collect(Crawler(homes, fetch=log))
    assert log.times(first + "s.xml")[0] < 1
    assert log.times(second)[0] == 1
    assert log.times(third + "s.xml")[0] < 12
    assert log.times(second + "s.xml")[0] > 300


async def test_a_spent_budget_does_not_wait_for_a_sitemap_that_is_to_be_tried_again(
    autojump_clock,
):
    busy = Response(503, httpx.Headers({"retry-after": "300"}))
    web = Web(site_of(20) | {OTHER + "s.xml": busy}, delay=0.1)
    crawler = Crawler(
        [HOME], fetch=web, limits=Limits(max_pages=3), sitemaps=Sitemaps(also=[OTHER + "s.xml"])
    )
    await collect(crawler)
    assert web.hits[OTHER + "s.xml"] == 1
    assert crawler.statistics().pages == 3
    assert trio.current_time() < 2


# Links of a page that was folded into another one, which may not come.


def alias(target: str, *, head: str = "") -> Response:
    """Make a page with links that names another as its canonical one."""
    links = '<a href=/ok>a</a><a rel=nofollow href=/no>b</a><a href="/s;jsessionid=1">c</a>'
    text = f'<!doctype html><title>a</title>{head}<link rel=canonical href="{target}">{links}'
    return Response(200, httpx.Headers({"content-type": "text/html"}), text.encode())


@pytest.mark.parametrize(
    ("target", "answer"),
    [
        (HOME + "real", html()),
        (HOME + "real", Response(404)),
        (HOME + "real", redirect("/alias")),
        (OTHER + "real", fault(Reason.DNS)),
    ],
    ids=["page", "404", "redirect", "given up"],
)
async def test_what_a_folded_page_links_to_is_followed_whether_or_not_the_canonical_one_comes(
    autojump_clock, target, answer
):
    site = {HOME: html("/alias"), "/alias": alias(target), target: answer}
    dead = {OTHER + "robots.txt": fault(Reason.DNS)}
    web = Web(site | dead | dict.fromkeys(["/ok", "/no", "/s"], html()))
    found = await collect(Crawler([HOME], fetch=web, scope=everything, fold_canonical=True))
    pages = {outcome.url for outcome in found if isinstance(outcome, Page) and outcome.ok}
    assert pages - {HOME + "real"} == {HOME, HOME + "alias", HOME + "ok", HOME + "s"}
    assert not web.hits[HOME + "s;jsessionid=1"]


async def test_what_a_folded_page_with_nofollow_links_to_is_never_followed(autojump_clock):
    page = alias("/real", head="<meta name=robots content=nofollow>")
    web = Web({HOME: html("/alias"), "/alias": page, "/real": Response(404)})
    await collect(Crawler([HOME], fetch=web, fold_canonical=True))
    assert set(web.hits) == {HOME, HOME + "alias", HOME + "real"}


# A caller that takes its time.


async def test_a_host_with_a_delay_is_asked_in_time_although_the_caller_is_slow(autojump_clock):
    a, b, c, d = (f"http://{name}.test/" for name in "abcd")
    answered = trio.Event()

    class Meeting(Web):
        async def __call__(self, job: Job) -> Answer:
            if job.url == b:
                # While the links of c are judged: then the worker of b chooses before that of c.
                await answered.wait()
            answer = await super().__call__(job)
            if job.url == c:
                answered.set()
            return answer

    waits = {b: 0.0, c: 0.3, d: 90.0}
    site = {b: html(), c: html(*(f"/{n}" for n in range(500))), d: html()}
    log = Log(Meeting(site, delay=lambda job: waits.get(job.url, 40.0)))
    gently = Politeness(delay=0.7, robots=False)
    seeds = [d, b, c, a + "1", a + "2"]
    limits = Limits(max_depth=0)
    crawler = Crawler(seeds, fetch=log, workers=3, politeness=gently, limits=limits)
    async with crawler.outcomes() as outcomes:
        async for _ in outcomes:
            await trio.sleep(60)
    assert log.times(a + "1") == [0.3]
    assert log.times(a + "2") == [1.0]


# A robots.txt in trouble a day later.


async def test_a_robots_txt_in_trouble_after_a_day_is_asked_for_every_ten_minutes(autojump_clock):
    rules = robots("User-agent: *", "Disallow: /no")

    def answer(job: Job) -> Answer:
        return rules if trio.current_time() < FRESH else Response(500)

    log = Log(Web(site_of(1_000) | {ROBOTS: answer, "/999": html("/no")}))
    found = await collect(Crawler([HOME], fetch=log, politeness=Politeness(delay=100)))
    assert len(found) == 1_001
    assert found[-1].rejected == ((HOME + "no", Reason.ROBOTS),)
    first, *later = log.times(ROBOTS)
    assert first == 0
    assert len(later) > 10
    assert all(600 <= after - before <= 800 for before, after in pairwise(later))


# Records.


async def test_a_sitemap_that_redirects_to_itself_leaves_a_record(autojump_clock):
    first, second = HOME + "1.xml", HOME + "2.xml"
    web = Web({MAP: redirect(MAP), first: redirect(second), second: redirect(first)}, delay=1)
    crawler = Crawler([], fetch=web, sitemaps=Sitemaps(also=[MAP, first]))
    await collect(crawler)
    assert all(count == 1 for count in web.hits.values())
    assert flaws(crawler) == {MAP: (Reason.BAD_SITEMAP,), second: (Reason.BAD_SITEMAP,)}
    assert crawler.sitemaps()[0].detail == f"redirects to {MAP}, which was found before"


async def test_a_url_that_a_sitemap_spells_in_three_ways_is_admitted_once(autojump_clock):
    web = Web({MAP: urlset(HOME + "~a", HOME + "%7ea", HOME + "%7Ea", HOME + "b")})
    crawler = Crawler([], fetch=web, sitemaps=Sitemaps(also=[MAP]), scope=everything)
    await collect(crawler)
    (record,) = crawler.sitemaps()
    assert (record.entries, record.admitted) == (4, 2)


def in_trouble(pages: int, *named: str) -> Site:
    """Make a site whose robots.txt is asked for again and again, as most of its pages fail."""
    site = site_of(pages) | {ROBOTS: robots(*(f"Sitemap: {url}" for url in named))}
    return site | {f"{HOME}{n}": Response(500) for n in range(pages) if n % 30}


async def test_a_robots_txt_that_is_read_again_repeats_no_record(autojump_clock):
    web = Web(in_trouble(100, OTHER + "s.xml", MAP))
    crawler = Crawler([HOME], fetch=web)
    await collect(crawler)
    assert web.hits[ROBOTS] > 3
    assert flaws(crawler) == {OTHER + "s.xml": (Reason.OTHER_SITE,), MAP: (Reason.BAD_STATUS,)}


def with_rules(homes: list[str], lines: Response) -> Site:
    site: Site = {}
    for home in homes:
        site |= {home: html("/a"), home + "a": html("/no"), home + "robots.txt": lines}
    return site


@pytest.mark.parametrize("delay", [0, 3])
async def test_many_hosts_with_rules_of_the_usual_length_are_crawled_to_the_end(
    autojump_clock, delay
):
    homes = [f"http://host{n}.test/" for n in range(20)]
    lines = robots("User-agent: *", f"Disallow: /{'x' * 30}", "Disallow: /no")
    web, found = Web(with_rules(homes, lines), delay=1), []
    crawler = Crawler(homes, fetch=web, politeness=Politeness(delay=delay))
    with trio.move_on_after(1_000):
        found = await collect(crawler)
    assert [type(outcome) for outcome in found] == [Page] * 40
    assert not any(web.hits[home + "no"] for home in homes)


async def test_hosts_with_more_rules_than_are_kept_are_asked_for_them_a_few_times_at_most(
    autojump_clock,
):
    homes = [f"http://host{n}.test/" for n in range(30)]
    long = [f"Disallow: /{n}{'x' * 16_000}" for n in range(28)]
    web = Web(with_rules(homes, robots("User-agent: *", "Disallow: /no", *long)), delay=1)

    async def bounded(job: Job) -> Answer:
        assert web.hits[job.url] < 10, "asked for the same again and again"
        return await web(job)

    found = await collect(Crawler(homes, fetch=bounded))
    assert {outcome.url for outcome in found} >= set(homes)
    assert not any(web.hits[home + "no"] for home in homes)


async def test_a_host_that_is_given_up_with_a_sitemap_says_so(autojump_clock):
    dead = {OTHER + "robots.txt": fault(Reason.DNS)}
    crawler = Crawler(
        [HOME, OTHER], fetch=Web(site_of(1) | dead), sitemaps=Sitemaps(also=[OTHER + "s.xml"])
    )
    found = await collect(crawler)
    assert [outcome.url for outcome in found if isinstance(outcome, Failure)] == [OTHER]
    assert flaws(crawler) == {OTHER + "s.xml": (Reason.DNS,)}
