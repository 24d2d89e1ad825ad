"""Sitemaps in whole crawls, in virtual time."""

from __future__ import annotations

import gzip
import resource
import zlib
from collections.abc import Iterable

import httpx
import pytest
import trio
from cases import for_each
from sites.webs import everything

from trio_crawler import (
    Crawler,
    Fault,
    Job,
    Limits,
    Outcome,
    Page,
    Phase,
    Reason,
    Response,
    Sitemaps,
    Skipped,
    by_sitemap,
    including,
)
from trio_crawler.model import Listing, Purpose, Sitemap
from trio_crawler.testing import Web, html, redirect, robots

HOME = "http://site.test/"
OTHER = "http://other.test/"
ROBOTS = HOME + "robots.txt"
MAP = HOME + "sitemap.xml"
MEDIA = httpx.Headers({"content-type": "application/xml"})

Answer = Response | Fault


async def collect(crawler: Crawler) -> list[Outcome]:
    # No deadline: the clock would jump to it while a large sitemap is read in a thread.
    async with crawler.outcomes() as outcomes:
        found = [outcome async for outcome in outcomes]
    totals = crawler.statistics()
    ended = totals.pages + totals.redirects + totals.failures + totals.skipped
    assert totals.admitted == ended == len(found) == len({outcome.url for outcome in found})
    return found


def urlset(*urls: str, about: str = "") -> Response:
    """Make a sitemap of pages; `about` is said of each."""
    records = "".join(f"<url><loc>{url}</loc>{about}</url>" for url in urls)
    text = '<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">'
    return Response(200, MEDIA, f"{text}{records}</urlset>".encode())


def index(*urls: str) -> Response:
    """Make a sitemap of sitemaps."""
    records = "".join(f"<sitemap><loc>{url}</loc></sitemap>" for url in urls)
    return Response(200, MEDIA, f"<sitemapindex>{records}</sitemapindex>".encode())


def naming(*sitemaps: str) -> Response:
    """Make a robots.txt that names sitemaps."""
    return robots("User-agent: *", "Disallow: /secret", *(f"Sitemap: {url}" for url in sitemaps))


def pages(names: Iterable[object]) -> dict[str, Answer]:
    return {f"{HOME}{name}": html() for name in names}


def found(outcomes: list[Outcome]) -> set[str]:
    return {outcome.url.removeprefix(HOME) for outcome in outcomes if isinstance(outcome, Page)}


# Where they are found.


async def test_the_pages_of_a_sitemap_in_robots_txt_are_crawled(autojump_clock):
    web = Web(
        {ROBOTS: naming(MAP), MAP: urlset(HOME + "a", HOME + "b"), HOME: html("/a")} | pages("ab")
    )
    crawler = Crawler([HOME], fetch=web)
    outcomes = await collect(crawler)
    assert found(outcomes) == {"", "a", "b"}
    assert {outcome.url: outcome.referrer for outcome in outcomes}[HOME + "b"] == MAP
    assert crawler.sitemaps() == (Sitemap(MAP, "urlset", 2, 2, referrer=ROBOTS),)
    assert web.hits[MAP] == 1


async def test_the_pages_of_a_given_sitemap_are_crawled_without_any_seed(autojump_clock):
    web = Web({MAP: urlset(HOME + "a")} | pages("a"))
    crawler = Crawler([], fetch=web, sitemaps=Sitemaps(also=[MAP]), scope=everything)
    assert found(await collect(crawler)) == {"a"}
    assert crawler.sitemaps() == (Sitemap(MAP, "urlset", 1, 1),)


async def test_a_sitemap_is_no_outcome_and_takes_no_place_in_the_page_budget(autojump_clock):
    web = Web({MAP: urlset(HOME + "a"), HOME: html()} | pages("a"))
    crawler = Crawler([HOME], fetch=web, sitemaps=Sitemaps(also=[MAP]), limits=Limits(max_pages=2))
    assert found(await collect(crawler)) == {"", "a"}


async def test_no_sitemap_is_read_when_none_are_wanted(autojump_clock):
    web = Web({ROBOTS: naming(MAP), MAP: urlset(HOME + "a"), HOME: html()})
    crawler = Crawler([HOME], fetch=web, sitemaps=Sitemaps(follow=False))
    assert found(await collect(crawler)) == {""}
    assert (web.hits[MAP], crawler.sitemaps()) == (0, ())


async def test_a_sitemap_that_robots_txt_and_an_index_and_the_caller_name_is_read_once(
    autojump_clock,
):
    top = HOME + "index.xml"
    web = Web({ROBOTS: naming(MAP, top, MAP), top: index(MAP, MAP), MAP: urlset(HOME)}, delay=1)
    crawler = Crawler([HOME], fetch=web, sitemaps=Sitemaps(also=[MAP]))
    await collect(crawler)
    assert (web.hits[MAP], web.hits[top]) == (1, 1)
    assert len(crawler.sitemaps()) == 2


async def test_a_sitemap_that_is_linked_is_a_page_too(autojump_clock):
    web = Web({MAP: urlset(HOME + "a"), HOME: html("/sitemap.xml")} | pages("a"))
    outcomes = await collect(Crawler([HOME], fetch=web, sitemaps=Sitemaps(also=[MAP])))
    assert found(outcomes) == {"", "a", "sitemap.xml"}
    assert web.hits[MAP] == 2


async def test_robots_txt_is_asked_before_a_given_sitemap(autojump_clock):
    asked: list[str] = []
    web = Web({ROBOTS: naming(), MAP: urlset()})

    async def ask(job: Job) -> Answer:
        asked.append(job.url)
        return await web(job)

    await collect(Crawler([], fetch=ask, sitemaps=Sitemaps(also=[MAP])))
    assert asked == [ROBOTS, MAP]


# Indexes.


async def test_three_levels_of_indexes_are_followed_and_a_fourth_is_named(autojump_clock):
    site: dict[str, Answer] = {f"{HOME}{n}.xml": index(f"{HOME}{n + 1}.xml") for n in range(5)}
    site[HOME + "0.xml"] = index(HOME + "1.xml", HOME + "pages.xml")
    site[HOME + "2.xml"] = index(HOME + "3.xml", HOME + "deep.xml")
    site |= {HOME + "pages.xml": urlset(HOME + "a"), HOME + "deep.xml": urlset(HOME + "b")}
    web = Web(site | pages("ab"))
    crawler = Crawler([], fetch=web, sitemaps=Sitemaps(also=[HOME + "0.xml"]), scope=everything)
    assert found(await collect(crawler)) == {"a", "b"}
    read = {record.url.removeprefix(HOME): record for record in crawler.sitemaps()}
    assert set(read) == {"0.xml", "1.xml", "2.xml", "3.xml", "pages.xml", "deep.xml"}
    assert read["3.xml"].flaws == (Reason.TOO_MANY_LEVELS,)
    assert (read["1.xml"].kind, read["1.xml"].referrer) == ("index", HOME + "0.xml")


async def test_a_sitemap_that_lists_itself_is_read_once(autojump_clock):
    web = Web({MAP: index(MAP, HOME + "b.xml"), HOME + "b.xml": urlset(HOME + "a")} | pages("a"))
    crawler = Crawler([], fetch=web, sitemaps=Sitemaps(also=[MAP]), scope=everything)
    assert found(await collect(crawler)) == {"a"}
    assert web.hits[MAP] == 1
    assert crawler.sitemaps()[0].flaws == (Reason.BAD_SITEMAP,)


async def test_two_sitemaps_that_list_each_other_are_read_once_each(autojump_clock):
    second = HOME + "second.xml"
    web = Web({MAP: index(second), second: index(MAP)}, delay=1)
    crawler = Crawler([], fetch=web, sitemaps=Sitemaps(also=[MAP]))
    assert await collect(crawler) == []
    assert (web.hits[MAP], web.hits[second]) == (1, 1)


async def test_an_endless_index_is_bounded(autojump_clock):
    def endless(job: Job) -> Answer:
        return index(*(f"{job.url}{n}" for n in range(5)))

    class Endless(Web):
        async def __call__(self, job: Job) -> Answer:
            self.hits[job.url] += 1
            return endless(job) if job.purpose is Purpose.SITEMAP else Response(404)

    web = Endless({})
    crawler = Crawler([], fetch=web, sitemaps=Sitemaps(also=[MAP]))
    await collect(crawler)
    assert len(crawler.sitemaps()) == 1 + 5 + 25 + 125


# What they look like.


def compressed(answer: Response) -> Response:
    media = httpx.Headers({"content-type": "application/gzip"})
    return Response(200, media, gzip.compress(answer.body, mtime=0))


RSS = "<rss version='2.0'><channel><item><link>http://site.test/a</link></item></channel></rss>"
ATOM = (
    '<feed xmlns="http://www.w3.org/2005/Atom">'
    '<entry><link href="http://site.test/a"/></entry></feed>'
)
FORMS = {
    "gzip": (compressed(urlset(HOME + "a")), "urlset", ()),
    "text": (Response(200, body=f"{HOME}a\n".encode()), "text", ()),
    "rss": (Response(200, MEDIA, RSS.encode()), "rss", ()),
    "atom": (Response(200, MEDIA, ATOM.encode()), "atom", ()),
    "cut": (Response(200, MEDIA, urlset(HOME + "a").body[:-9]), "urlset", (Reason.INCOMPLETE,)),
    "ampersand": (
        urlset(HOME + "a", HOME + "?b=1&c=2"),
        "urlset",
        (Reason.BAD_SITEMAP,),
    ),
}


@for_each("answer, kind, flaws", FORMS.values(), ids=FORMS)
async def test_every_form_of_sitemap_is_read(autojump_clock, answer, kind, flaws):
    crawler = Crawler(
        [], fetch=Web({MAP: answer} | pages("a")), sitemaps=Sitemaps(also=[MAP]), scope=everything
    )
    assert "a" in found(await collect(crawler))
    (record,) = crawler.sitemaps()
    assert (record.kind, record.flaws) == (kind, flaws)


NO_SITEMAPS = {
    "a page": (html("/a"), Reason.BAD_SITEMAP),
    "nothing": (Response(200), Reason.BAD_SITEMAP),
    "404": (Response(404, body=urlset(HOME + "a").body), Reason.BAD_STATUS),
    "500": (Response(500), Reason.BAD_STATUS),
    "a fault": (Fault(Reason.TLS, "expired", Phase.TLS), Reason.TLS),
    "a fault that passes": (Fault(Reason.RESET, "reset", Phase.READ), Reason.RESET),
    "an entity": (
        Response(200, MEDIA, b'<!DOCTYPE u [<!ENTITY a "b">]><urlset><url>&a;</url></urlset>'),
        Reason.BAD_SITEMAP,
    ),
}


@for_each("answer, reason", NO_SITEMAPS.values(), ids=NO_SITEMAPS)
async def test_what_is_no_sitemap_has_its_reason_and_the_crawl_goes_on(
    autojump_clock, answer, reason
):
    web = Web({MAP: answer, HOME: html("/b")} | pages("ab"))
    crawler = Crawler([HOME], fetch=web, sitemaps=Sitemaps(also=[MAP]))
    assert found(await collect(crawler)) == {"", "b"}
    (record,) = crawler.sitemaps()
    assert (record.admitted, record.flaws[0]) == (0, reason)
    assert record.detail
    assert web.hits[MAP] <= 4


async def test_a_sitemap_that_comes_at_the_second_try_is_read(autojump_clock):
    answers = iter([Response(503), Fault(Reason.RESET, "", Phase.WAIT)])
    web = Web({MAP: lambda job: next(answers, urlset(HOME + "a"))} | pages("a"))
    crawler = Crawler([], fetch=web, sitemaps=Sitemaps(also=[MAP]), scope=everything)
    assert found(await collect(crawler)) == {"a"}


@pytest.mark.parametrize("trouble", [Reason.CONNECTION_REFUSED, Reason.DNS])
async def test_a_given_sitemap_whose_host_is_not_there_is_told_of(autojump_clock, trouble):
    away = Fault(trouble, "not there", Phase.CONNECT)
    web = Web({OTHER + "robots.txt": away, OTHER + "s.xml": away, HOME: html()})
    crawler = Crawler([HOME], fetch=web, sitemaps=Sitemaps(also=[OTHER + "s.xml"]))
    assert found(await collect(crawler)) == {""}
    assert [record.flaws for record in crawler.sitemaps()] == [(trouble,)]


async def test_a_redirected_sitemap_is_read_where_it_is(autojump_clock):
    site = {MAP: redirect("/moved.xml"), HOME + "moved.xml": urlset(HOME + "a")} | pages("a")
    crawler = Crawler([], fetch=Web(site), sitemaps=Sitemaps(also=[MAP]), scope=everything)
    assert found(await collect(crawler)) == {"a"}
    assert [record.url for record in crawler.sitemaps()] == [HOME + "moved.xml"]


async def test_a_sitemap_redirected_in_a_circle_or_without_end_is_bounded(autojump_clock):
    site: dict[str, Answer] = {f"{HOME}{n}.xml": redirect(f"/{n + 1}.xml") for n in range(100)}
    web = Web(site | {MAP: redirect("/other.xml"), HOME + "other.xml": redirect(MAP)})
    crawler = Crawler([], fetch=web, sitemaps=Sitemaps(also=[MAP, HOME + "0.xml"]))
    assert await collect(crawler) == []
    assert web.hits.total() <= 2 + 11


# What is admitted.


async def test_a_sitemap_on_another_host_is_refused_with_its_reason(autojump_clock):
    theirs = OTHER + "s.xml"
    web = Web({ROBOTS: naming(theirs), theirs: urlset(HOME + "a"), HOME: html()})
    crawler = Crawler([HOME], fetch=web)
    assert found(await collect(crawler)) == {""}
    (record,) = crawler.sitemaps()
    assert (record.url, record.flaws, record.referrer) == (theirs, (Reason.OTHER_SITE,), ROBOTS)
    assert web.hits[theirs] == 0


@pytest.mark.parametrize("how", ["in scope", "given"])
async def test_a_sitemap_on_another_host_is_read_if_in_scope_or_given(autojump_clock, how):
    theirs = OTHER + "s.xml"
    site = {ROBOTS: naming(theirs), theirs: urlset(HOME + "a"), HOME: html()}
    web = Web(site | pages("a"))
    if how == "given":
        crawler = Crawler([HOME], fetch=web, sitemaps=Sitemaps(also=[theirs]))
    else:
        crawler = Crawler([HOME], fetch=web, scope=everything)
    assert found(await collect(crawler)) == {"", "a"}
    assert web.hits[theirs] == 1


async def test_a_sitemap_redirected_to_another_host_is_refused(autojump_clock):
    web = Web({ROBOTS: naming(MAP), MAP: redirect(OTHER + "s.xml"), HOME: html()})
    crawler = Crawler([HOME], fetch=web)
    await collect(crawler)
    assert web.hits[OTHER + "s.xml"] == 0
    assert [record.flaws for record in crawler.sitemaps()] == [(Reason.OTHER_SITE,)]


async def test_entries_that_robots_txt_or_the_scope_refuse_are_not_asked_for(autojump_clock):
    entries = [HOME + "a", HOME + "secret", OTHER, "ftp://site.test/x", HOME + "b/" * 30]
    web = Web({ROBOTS: naming(MAP), MAP: urlset(*entries), HOME: html()} | pages("a"))
    crawler = Crawler([HOME], fetch=web)
    assert found(await collect(crawler)) == {"", "a"}
    assert set(web.hits) == {ROBOTS, MAP, HOME, HOME + "a"}
    (record,) = crawler.sitemaps()
    assert record.admitted == 1
    assert crawler.listing(HOME + "secret") is None


async def test_entries_of_another_host_are_judged_by_its_own_robots_txt(autojump_clock):
    site = {MAP: urlset(OTHER + "secret", OTHER + "a"), OTHER + "a": html()}
    web = Web(site | {OTHER + "robots.txt": naming()})
    crawler = Crawler([], fetch=web, sitemaps=Sitemaps(also=[MAP]), scope=everything)
    outcomes = await collect(crawler)
    assert {o.url: type(o) for o in outcomes} == {OTHER + "secret": Skipped, OTHER + "a": Page}
    assert web.hits[OTHER + "secret"] == 0


async def test_the_depth_of_an_entry_is_one(autojump_clock):
    site = {ROBOTS: naming(MAP), MAP: urlset(HOME + "a"), HOME: html(), HOME + "a": html("/b")}
    outcomes = await collect(Crawler([HOME], fetch=Web(site | pages("b"))))
    assert {o.url.removeprefix(HOME): o.depth for o in outcomes} == {"": 0, "a": 1, "b": 2}


@pytest.mark.parametrize(("depth", "expected"), [(0, {""}), (1, {"", "a"}), (2, {"", "a", "b"})])
async def test_a_depth_limit_holds_for_entries_too(autojump_clock, depth, expected):
    site = {ROBOTS: naming(MAP), MAP: urlset(HOME + "a"), HOME: html(), HOME + "a": html("/b")}
    web = Web(site | pages("b"))
    outcomes = await collect(Crawler([HOME], fetch=web, limits=Limits(max_depth=depth)))
    assert found(outcomes) == expected


async def test_with_a_depth_limit_an_entry_found_late_is_still_crawled(autojump_clock):
    """The sitemap comes when the crawl has long passed the level of its entries."""
    site = {HOME: html("/b"), HOME + "b": html("/c"), HOME + "c": html("/d")}
    site |= {ROBOTS: naming(MAP), MAP: urlset(HOME + "a"), HOME + "a": html("/e")}
    web = Web(site | pages("de"), delay=lambda job: 100 if job.url == MAP else 1)
    outcomes = await collect(Crawler([HOME], fetch=web, limits=Limits(max_depth=3)))
    assert found(outcomes) == {"", "a", "b", "c", "d", "e"}


# What they say.


async def test_what_a_sitemap_says_of_a_url_is_known(autojump_clock):
    about = "<lastmod>2026-01-05</lastmod><priority>0.8</priority>"
    web = Web({MAP: urlset(HOME, HOME + "a", about=about), HOME: html("/b")} | pages("ab"))
    crawler = Crawler([HOME], fetch=web, sitemaps=Sitemaps(also=[MAP]))
    await collect(crawler)
    said = Listing(MAP, "2026-01-05", 0.8)
    # Of the seed, too, though it was known before.
    assert [crawler.listing(HOME + name) for name in ("", "a", "b")] == [said, said, None]
    assert crawler.listing(HOME + "%61") == said
    assert crawler.sitemaps() == (Sitemap(MAP, "urlset", 2, 1),)


async def test_the_first_sitemap_that_lists_a_url_counts(autojump_clock):
    low = urlset(HOME + "a", about="<priority>0.1</priority>")
    high = urlset(HOME + "a", about="<priority>0.9</priority>")
    web = Web({HOME + "1.xml": low, HOME + "2.xml": high} | pages("a"), delay=1)
    given = [HOME + "1.xml", HOME + "2.xml"]
    crawler = Crawler([], fetch=web, sitemaps=Sitemaps(also=given), scope=everything)
    await collect(crawler)
    assert crawler.listing(HOME + "a") == Listing(HOME + "1.xml", None, 0.1)
    assert [record.admitted for record in crawler.sitemaps()] == [1, 0]


async def test_by_sitemap_takes_what_has_a_high_priority_first(autojump_clock):
    ranks = {"low": 0.1, "high": 1.0, "none": None, "fair": 0.7}
    records = "".join(
        f"<url><loc>/{name}</loc>{'' if rank is None else f'<priority>{rank}</priority>'}</url>"
        for name, rank in ranks.items()
    )
    answer = Response(200, MEDIA, f"<urlset>{records}</urlset>".encode())
    site = {ROBOTS: naming(MAP), MAP: answer, HOME: html("/linked")} | pages([*ranks, "linked"])
    web = Web(site, delay=1)
    crawler = Crawler([HOME], fetch=web, workers=1, order=by_sitemap)
    order = [outcome.url.removeprefix(HOME) for outcome in await collect(crawler)]
    # What no sitemap lists counts as 0.5, and a seed comes before what is linked.
    assert order == ["high", "fair", "", "none", "linked", "low"]


async def test_a_redirected_entry_hands_its_priority_on(autojump_clock):
    record = b"<url><loc>/old</loc><priority>1.0</priority></url><url><loc>/a</loc></url>"
    site = {ROBOTS: naming(MAP), MAP: Response(200, MEDIA, b"<urlset>" + record + b"</urlset>")}
    web = Web(site | {HOME: html(), HOME + "old": redirect("/new")} | pages(["new", "a"]), delay=1)
    crawler = Crawler([HOME], fetch=web, workers=1, order=by_sitemap)
    order = [outcome.url.removeprefix(HOME) for outcome in await collect(crawler)]
    # When it is found the worker has its next job, the seed.
    assert order == ["old", "", "new", "a"]


# Bounds.


async def test_a_page_budget_is_met_exactly_with_a_sitemap_of_many(autojump_clock):
    web = Web(
        {MAP: urlset(*(f"{HOME}{n}" for n in range(1000))), HOME: html()} | pages(range(1000))
    )
    crawler = Crawler(
        [HOME], fetch=web, sitemaps=Sitemaps(also=[MAP]), limits=Limits(max_pages=20)
    )
    with trio.fail_after(10**7):
        outcomes = await collect(crawler)
    assert len(found(outcomes)) == 20
    assert web.hits.total() == 21


@pytest.mark.parametrize("seconds", [0.5, 1.5, 2.5, 3.5])
async def test_a_crawl_that_is_stopped_with_sitemaps_under_way_ends(autojump_clock, seconds):
    maps = [f"{HOME}{n}.xml" for n in range(5)]
    site: dict[str, Answer] = {MAP: index(*maps), ROBOTS: naming(MAP), HOME: html("/a")}
    site |= {url: urlset(HOME + "a", HOME + "b") for url in maps}
    web = Web(site | pages("ab"), delay=1)
    crawler = Crawler([HOME], fetch=web, limits=Limits(max_seconds=seconds))
    async with crawler.outcomes() as outcomes:
        assert all([isinstance(outcome, (Page, Skipped)) async for outcome in outcomes])
    totals = crawler.statistics()
    assert totals.admitted == totals.pages + totals.skipped
    assert trio.current_time() <= seconds + 1


@pytest.mark.parametrize("spent", [1, 2, 3])
async def test_a_page_budget_that_is_spent_with_sitemaps_under_way_ends_the_crawl(
    autojump_clock, spent
):
    web = Web(
        {MAP: urlset(HOME + "z"), ROBOTS: naming(MAP), HOME: html("/a", "/b")} | pages("abz"),
        delay=lambda job: 50 if job.url == MAP else 1,
    )
    crawler = Crawler([HOME], fetch=web, limits=Limits(max_pages=spent))
    with trio.fail_after(10**7):
        outcomes = await collect(crawler)
    assert len(found(outcomes)) == spent
    # The sitemap was in flight, and finishes.
    assert trio.current_time() <= 52


async def test_one_sitemap_at_a_time_is_asked_for(autojump_clock):
    maps = [f"http://host{n}.test/s.xml" for n in range(20)]
    web = Web(dict.fromkeys(maps, urlset()), delay=1)
    await Crawler([], fetch=web, sitemaps=Sitemaps(also=maps), workers=20).crawl()
    assert web.peak == 1
    assert trio.current_time() == 20


async def test_a_slow_sitemap_does_not_hold_the_pages(autojump_clock):
    site = {HOME: html(*(f"/{n}" for n in range(40))), MAP: urlset(HOME + "late")}
    web = Web(site | pages([*range(40), "late"]), delay=lambda job: 29 if job.url == MAP else 1)
    done = 0.0
    async with Crawler([HOME], fetch=web, sitemaps=Sitemaps(also=[MAP])).outcomes() as outcomes:
        async for outcome in outcomes:
            done = max(done, 0 if "late" in outcome.url else trio.current_time())
    assert done <= 1 + 40 / 3 + 1
    assert trio.current_time() <= 31


# These have no virtual time, for their sitemaps are read in threads.


def bomb(megabytes: int) -> bytes:
    """Pack a sitemap of one page and so much white space, without ever having it in memory."""
    piece = b" " * 1_000_000
    packer = zlib.compressobj(level=1, wbits=31)
    packed = [packer.compress(b"<urlset><url><loc>/a</loc></url>")]
    packed += [packer.compress(piece) for _ in range(megabytes)]
    return b"".join([*packed, packer.flush()])


async def test_a_bomb_of_gzip_is_read_in_bounds():
    web = Web({MAP: Response(200, body=bomb(100))} | pages("a"))
    crawler = Crawler([], fetch=web, sitemaps=Sitemaps(also=[MAP]), scope=everything)
    before = resource.getrusage(resource.RUSAGE_SELF)
    assert found(await collect(crawler)) == {"a"}
    after = resource.getrusage(resource.RUSAGE_SELF)
    assert [record.flaws for record in crawler.sitemaps()] == [(Reason.TOO_LARGE,)]
    assert after.ru_utime - before.ru_utime < 3
    # KiB: a fraction of the 50 MiB that are unpacked.
    assert after.ru_maxrss - before.ru_maxrss < 25 * 1024


async def test_a_billion_laughs_cost_nothing():
    entities = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
    text = (
        f'<!DOCTYPE u [<!ENTITY l0 "lol">{entities}]><urlset><url><loc>/&l9;</loc></url></urlset>'
    )
    web = Web({MAP: Response(200, MEDIA, text.encode())})
    crawler = Crawler([], fetch=web, sitemaps=Sitemaps(also=[MAP]), scope=everything)
    with trio.fail_after(1):
        assert await collect(crawler) == []
    assert crawler.sitemaps()[0].flaws == (Reason.BAD_SITEMAP,)


async def test_50_000_entries_are_looked_at_and_no_more():
    body = "\n".join(f"{HOME}{n}" for n in range(60_000)).encode()
    web = Web({MAP: Response(200, body=body)})
    crawler = Crawler([], fetch=web, sitemaps=Sitemaps(also=[MAP]), scope=including("000$"))
    totals = await crawler.crawl()
    assert totals.admitted == totals.pages == 49
    (record,) = crawler.sitemaps()
    assert (record.entries, record.admitted) == (60_000, 49)
    assert record.flaws == (Reason.TOO_MANY_ENTRIES,)


async def test_what_a_sitemap_names_and_may_not_is_on_its_record(autojump_clock):
    rules = robots("User-agent: *", "Disallow: /secret")
    entries = urlset(HOME + "a", HOME + "secret", OTHER + "x")
    web = Web({ROBOTS: rules, MAP: entries, HOME: html()} | pages("a"))
    crawler = Crawler([HOME], fetch=web, sitemaps=Sitemaps(also=[MAP]))
    await collect(crawler)
    (record,) = crawler.sitemaps()
    assert (record.entries, record.admitted) == (3, 1)
    assert record.rejected == (
        (HOME + "secret", Reason.ROBOTS),
        (OTHER + "x", Reason.OTHER_SITE),
    )
