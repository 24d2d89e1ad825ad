"""Crawls beside traps: they end, find every good page, and say where they turned back."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from itertools import pairwise

import httpx
import pytest
import trio
from sites.webs import HOME, collect

from trio_crawler import Crawler, Job, Limits, Outcome, Page, Reason, Response, Skipped, Traps
from trio_crawler.model import Purpose
from trio_crawler.testing import Web, html, redirect

GOOD = [f"{HOME}good/{name}" for name in map("page{}".format, range(50))]

NAVIGATION = "".join(
    f"<li>{word}</li>"
    for word in "home news shop blog help press jobs about legal terms map".split()
)

Maze = Callable[[str], Response | None]


class Site:
    """Fifty good pages, one leading to the next two, beside what a function answers."""

    def __init__(self, maze: Maze, entrance: str) -> None:
        self.hits: Counter[str] = Counter()
        self._maze = maze
        self._entrance = entrance

    async def __call__(self, job: Job) -> Response:
        await trio.lowlevel.checkpoint()
        if job.purpose is Purpose.ROBOTS:
            return Response(404)
        self.hits[job.url] += 1
        if job.url == HOME:
            return html(self._entrance, *GOOD[:10])
        if job.url in GOOD:
            number = GOOD.index(job.url)
            return html(*GOOD[2 * number : 2 * number + 12], self._entrance, title=job.url)
        return self._maze(job.url.removeprefix(HOME)) or Response(404)

    @property
    def trapped(self) -> int:
        """Count the requests behind the entrance."""
        return self.hits.total() - sum(self.hits[url] for url in [HOME, *GOOD])


def reasons(outcomes: list[Outcome]) -> set[Reason]:
    return {reason for page in outcomes if isinstance(page, Page) for _, reason in page.rejected}


def calendar(path: str) -> Response | None:
    """Show a month, with its days and the months around it."""
    name, _, rest = path.partition("/")
    if name != "calendar":
        return None
    year, month, *day = map(int, rest.split("/"))
    if day:
        return html(f"/calendar/{year}/{month}", title=f"Nothing on {day[0]}.{month}.{year}")
    days = [f"/calendar/{year}/{month}/{n}" for n in range(1, 29)]
    before, after = (year, month - 1) if month > 1 else (year - 1, 12), (year, month + 1)
    if month == 12:
        after = (year + 1, 1)
    around = [f"/calendar/{y}/{m}" for y, m in (before, after, (year + 1, month))]
    return html(*around, *days, title=f"Month {month} of {year}")


def counter(path: str) -> Response | None:
    """Lead from each number to twice as many."""
    if not path.startswith("list?page="):
        return None
    number = int(path.partition("=")[2])
    return html(f"/list?page={2 * number}", f"/list?page={2 * number + 1}", title="More")


def offsets(path: str) -> Response | None:
    """Show a day, counted from today, with the days around it and those a month and a year on."""
    if not path.startswith("h?d="):
        return None
    day = int(path.partition("=")[2])
    return html(*(f"/h?d={day + step}" for step in (-1, 1, 30, 365)), title=f"Day {day}")


def relative(path: str) -> Response | None:
    """Whatever is asked for below /docs/, the same page answers, with a relative link."""
    return html("docs/index.html", "guide/", title="Docs") if path.startswith("docs/") else None


FACETS = [f"{name}=1" for name in ("brand", "colour", "price", "shop", "size", "stock")]


def facets(path: str) -> Response | None:
    """Add one more facet at either end, in any order."""
    page, _, query = path.partition("?")
    if page != "shop":
        return None
    chosen = [facet for facet in query.split("&") if facet]
    more = [facet for facet in FACETS if facet not in chosen]
    links = [f"/shop?{'&'.join([*chosen, facet])}" for facet in more]
    links += [f"/shop?{'&'.join([facet, *chosen])}" for facet in more]
    return html(*links, title=f"Found: {query}")


def sessions(path: str) -> Response | None:
    """Give each visit of a page a session of its own, in each of its links."""
    page = path.partition("?")[0]
    if not page.startswith("app/"):
        return None
    fresh = f"{random.getrandbits(128):032x}"
    return html(*(f"/app/{n}?PHPSESSID={fresh}" for n in "abcde"), title=page)


def same(path: str) -> Response | None:
    """Say the same whatever is asked for, with links that are relative."""
    text = html("x", "y", "z/", "../w/", title="All the same")
    return text if path.startswith("any/") else None


def fresh_names(path: str) -> Response | None:
    """Lead to five new names from each page, all of which say the same."""
    if not path.startswith("random/"):
        return None
    chance = random.Random(path)
    return html(*(f"/random/{chance.getrandbits(64):016x}" for _ in range(5)), title="Random")


def long_names(path: str) -> Response | None:
    """Make each URL longer than the one before."""
    if not path.startswith("long?"):
        return None
    return html(f"/{path}{'y' * 400}", title=path[-10:])


def deep(path: str) -> Response | None:
    """Go one directory deeper, under another name each time."""
    return html(f"{chr(97 + path.count('/'))}/", title=path) if path.startswith("deep/") else None


# What it is, where it begins, why it ends, and after how many requests at most. A pattern of URLs
# is left after 100 pages that lead on without anything new (of mere numbers, so soon only in these
# tests), and some more until it is looked at; what these link to has been admitted by then.
MAZES = {
    "a calendar": (calendar, "/calendar/2026/1", {Reason.NOTHING_NEW}, 4_000),
    "a calendar by distance": (offsets, "/h?d=0", {Reason.NOTHING_NEW}, 2_000),
    "a counter": (counter, "/list?page=1", {Reason.NOTHING_NEW}, 2 * 220),
    "a relative path": (relative, "/docs/", {Reason.REPEATED_PATH, Reason.DUPLICATE}, 100),
    "permuted facets": (facets, "/shop?brand=1", {Reason.PERMUTED_QUERY}, 2**6),
    "session ids": (sessions, "/app/a", set(), 5),
    "one body everywhere": (same, "/any/", {Reason.DUPLICATE}, 200),
    "random names": (fresh_names, "/random/0", {Reason.NOTHING_NEW}, 5 * 220),
    "longer and longer URLs": (long_names, "/long?y", {Reason.LONG_URL}, 6),
    "deeper and deeper paths": (deep, "/deep/", {Reason.DEEP_PATH}, 20),
}


@pytest.mark.parametrize(("maze", "entrance", "expected", "most"), MAZES.values(), ids=MAZES)
async def test_a_trap_beside_fifty_good_pages_costs_none_of_them_and_the_crawl_ends(
    autojump_clock, maze, entrance, expected, most
):
    site = Site(maze, entrance)
    # Whatever goes wrong, this test ends.
    traps = Traps(barren_numbers=200)
    crawler = Crawler([HOME], fetch=site, limits=Limits(max_pages=5000), traps=traps)
    outcomes = await collect(crawler)
    assert {outcome.url for outcome in outcomes} >= {HOME, *GOOD}
    assert 1 <= site.trapped <= most
    assert not [outcome for outcome in outcomes if isinstance(outcome, Skipped)]
    assert reasons(outcomes) & (expected or {Reason.NOTHING_NEW}) == expected


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["a calendar", "a counter", "random names", "session ids", "one body everywhere"]
)
async def test_without_traps_every_url_is_followed(autojump_clock, name):
    maze, entrance, _, most = MAZES[name]
    site = Site(maze, entrance)
    crawler = Crawler([HOME], fetch=site, traps=Traps.off(), limits=Limits(max_pages=4200))
    outcomes = await collect(crawler)
    assert site.trapped > most
    assert crawler.statistics().pages == 4200
    assert {outcome.url for outcome in outcomes} >= {HOME, *GOOD}
    assert reasons(outcomes) <= {Reason.PAGE_BUDGET}


async def test_all_traps_together_cost_no_good_page(autojump_clock):
    def all_of_them(path: str) -> Response | None:
        if path == "maze":
            return html(*(entrance for _, entrance, _, _ in MAZES.values()))
        return next(filter(None, (maze(path) for maze, _, _, _ in MAZES.values())), None)

    site = Site(all_of_them, "/maze")
    outcomes = await collect(
        Crawler(
            [HOME], fetch=site, limits=Limits(max_pages=10_000), traps=Traps(barren_numbers=200)
        )
    )
    assert {outcome.url for outcome in outcomes} >= {HOME, *GOOD}
    assert site.trapped <= sum(most for _, _, _, most in MAZES.values())


@pytest.mark.parametrize("hops", [20, 1_000_000])
async def test_by_default_a_calendar_by_distance_gets_at_most_2000_requests(autojump_clock, hops):
    site = Site(offsets, "/h?d=5000")
    outcomes = await collect(Crawler([HOME], fetch=site, traps=Traps(max_hops=hops)))
    assert {outcome.url for outcome in outcomes} >= {HOME, *GOOD}
    assert 1_000 <= site.trapped <= 2_000
    assert reasons(outcomes) == {Reason.NOTHING_NEW}


def chain(number: int) -> list[int]:
    return [number - 1, number + 1]


def next_ten(number: int) -> list[int]:
    return list(range(number + 1, number + 11))


def with_ends(number: int) -> list[int]:
    return [0, number - 10, number - 1, number + 1, number + 10, 1_999]


def children(number: int) -> list[int]:
    return [number // 3, *range(3 * number + 1, 3 * number + 4)]


@pytest.mark.parametrize("leads_to", [chain, next_ten, with_ends, children])
async def test_a_site_of_2000_pages_that_differ_in_numbers_alone_loses_none(
    autojump_clock, leads_to
):
    def show(path: str) -> Response | None:
        number = int(path.partition("=")[2] or 0)
        here = [f"/list?id={there}" for there in leads_to(number) if 0 <= there < 2_000]
        return html(*here, title=f"Item {number}")

    site = Site(show, "/list?id=0")
    outcomes = await collect(Crawler([HOME], fetch=site, traps=Traps(max_hops=5_000)))
    assert site.trapped == 2_000
    assert not reasons(outcomes)


@pytest.mark.parametrize("first", [1, 15_000, 150_000, 200_000, 2_000_000])
async def test_numbers_that_look_like_dates_lose_no_page(autojump_clock, first):
    """Lists of ten pages by number, all of which say the same but for numbers."""

    def show(path: str) -> Response | None:
        kind, _, number = path.partition("/")
        if kind == "list":
            items = [f"/item/{first + 10 * int(number) + at}" for at in range(10)]
            return html(f"/list/{int(number) + 1}", *items, title=f"Page {number}")
        # An item leads to the next one of its kind, as in a shop.
        return html(f"/item/{int(number) + 1}", title=f"Item {number}") if number else None

    site = Site(lambda path: show(path) if _within(path, first) else None, "/list/0")
    outcomes = await collect(Crawler([HOME], fetch=site))
    found = [outcome for outcome in outcomes if isinstance(outcome, Page) and outcome.ok]
    assert sum("/item/" in page.url for page in found) == 2_000
    assert not reasons(outcomes)


def _within(path: str, first: int) -> bool:
    kind, _, number = path.partition("/")
    return number.isdecimal() and int(number) < (200 if kind == "list" else first + 2_000)


async def test_seeds_are_fetched_whatever_their_parameters_bring(autojump_clock):
    seeds = [f"{HOME}list?tag=t{'x' * number}" for number in range(60)]
    web = Web({f"/list?tag=t{'x' * number}": html(title="The same") for number in range(60)})
    outcomes = await collect(Crawler(seeds, fetch=web))
    assert sum(isinstance(outcome, Page) for outcome in outcomes) == 60


def photo(name: str) -> Response:
    """Return a page with a title, a heading and an image, beside a navigation of ten texts."""
    body = f"<title>{name} - Photos</title>{NAVIGATION}<h1>{name}</h1><img src=/{name}.jpg>"
    return Response(200, httpx.Headers({"Content-Type": "text/html"}), body.encode())


async def test_a_gallery_of_photos_with_nothing_but_their_titles_loses_none(autojump_clock):
    chance = random.Random(1)
    names = ["".join(chance.choices("abcdefghijklmnop", k=8)) for _ in range(200)]
    photos = {f"{HOME}photo?of={name}": photo(name) for name in names}
    outcomes = await collect(Crawler([HOME], fetch=Web({HOME: html(*photos), **photos})))
    assert sum(isinstance(outcome, Page) for outcome in outcomes) == 201


async def test_links_whose_parameter_brought_nothing_are_skipped_when_their_turn_comes(
    autojump_clock,
):
    links = [f"/list?tag=t{'x' * number}" for number in range(400)]
    web = Web({"/": html(*links)} | {link: html(title="The same") for link in links})
    outcomes = await collect(Crawler([HOME], fetch=web))
    skipped = [outcome for outcome in outcomes if isinstance(outcome, Skipped)]
    assert {outcome.reason for outcome in skipped} == {Reason.BARREN_QUERY}
    assert 350 < len(skipped) < 380
    assert len(outcomes) == 401


async def test_breadth_first_finds_the_good_pages_before_it_goes_into_the_trap(autojump_clock):
    """The good pages are 4 links from home at most; behind that the calendar has thousands."""
    site = Site(calendar, "/calendar/2026/1")
    crawler = Crawler(
        [HOME], fetch=site, traps=Traps.off(), workers=1, limits=Limits(max_pages=700)
    )
    outcomes = await collect(crawler)
    assert {outcome.url for outcome in outcomes} >= {HOME, *GOOD}
    depths = [outcome.depth for outcome in outcomes if isinstance(outcome, Page)]
    assert depths == sorted(depths)
    assert depths[-1] > max(page.depth for page in outcomes if page.url in GOOD)


# One figure each.


async def test_more_links_from_a_seed_than_a_bound_are_refused(autojump_clock):
    site = {f"/{'abcdefghijklmnopqrstuvwxyz'[n]}": html() for n in range(26)}
    names = list(site)
    site |= {name: html(after) for name, after in pairwise(names)}
    web = Web(site | {"/": html("/a")})
    outcomes = await collect(Crawler([HOME], fetch=web, traps=Traps(max_hops=20)))
    assert len(outcomes) == 21
    assert outcomes[-1].rejected == ((HOME + "u", Reason.TOO_MANY_HOPS),)
    assert len(await collect(Crawler([HOME], fetch=web))) == 27
    assert len(await collect(Crawler([HOME], fetch=web, limits=Limits(max_depth=24)))) == 25


async def test_a_chain_of_random_names_that_brings_nothing_ends(autojump_clock):
    def onward(path: str) -> Response | None:
        if not path.startswith("far/"):
            return None
        chance = random.Random(path)
        return html(f"/far/{''.join(chance.choices('abcdefgh', k=12))}", title="Come in")

    site = Site(onward, "/far/abcdefghijkl")
    outcomes = await collect(Crawler([HOME], fetch=site, limits=Limits(max_pages=2_000)))
    assert {outcome.url for outcome in outcomes} >= {HOME, *GOOD}
    # Each page has the name of the next one as its only new text.
    assert 1_000 < site.trapped < 1_050
    assert reasons(outcomes) == {Reason.TOO_MANY_HOPS}


async def test_redirects_that_change_the_url_for_ever_end(autojump_clock):
    class Endless(Web):
        async def __call__(self, job: Job) -> Response:
            if job.purpose is Purpose.ROBOTS:
                return Response(404)
            self.hits[job.url] += 1
            return redirect(f"{job.url}x")

    web = Endless({})
    outcomes = await collect(Crawler([HOME], fetch=web))
    assert web.hits.total() == len(outcomes) == 11
    assert outcomes[-1].reason is Reason.TOO_MANY_REDIRECTS


async def test_a_page_that_redirects_to_itself_with_a_session_is_read_once(autojump_clock):
    """The server hands out its session by a redirect, and answers where it leads."""
    given = HOME + "?PHPSESSID=0123456789abcdef0123456789abcdef"
    web = Web({HOME: redirect(given), given: html("/a"), "/a": redirect(given)})
    outcomes = await collect(Crawler([HOME], fetch=web))
    assert {outcome.url for outcome in outcomes} == {HOME, given, HOME + "a"}


# Copies.


async def test_a_copy_is_recorded_and_its_links_are_not_followed(autojump_clock):
    copy = html("/a?1", title="The same")
    web = Web({"/": html("/1", "/2"), "/1": copy, "/2": copy, "/a?1": html()}, delay=1)
    outcomes = await collect(Crawler([HOME], fetch=web, workers=1))
    pages = {page.url.removeprefix(HOME): page for page in outcomes}
    assert pages["1"].duplicate_of is None
    assert pages["2"].duplicate_of == HOME + "1"
    assert len(outcomes) == 4


async def test_links_that_only_a_copy_has_seen_are_refused_with_a_reason(autojump_clock):
    """A query leads on from the page itself: that is where copies differ."""
    copy = html("?next", title="The same")
    web = Web({"/": html("/1", "/2"), "/1": copy, "/2": copy}, delay=1)
    outcomes = await collect(Crawler([HOME], fetch=web, workers=1))
    pages = {page.url.removeprefix(HOME): page for page in outcomes}
    assert set(pages) == {"", "1", "2", "1?next"}
    assert pages["2"].rejected == ((HOME + "2?next", Reason.DUPLICATE),)


async def test_a_link_that_a_copy_shares_with_another_page_is_followed_from_there(autojump_clock):
    copy = html("?next", title="The same")
    site = {"/": html("/1", "/2", "/late"), "/1": copy, "/2": copy, "/late": html("/2?next")}
    outcomes = await collect(Crawler([HOME], fetch=Web(site, delay=1), workers=1))
    pages = {page.url.removeprefix(HOME): page for page in outcomes}
    assert pages["2?next"].referrer == HOME + "late"
