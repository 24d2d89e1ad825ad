"""Canonical URLs, the order of a crawl, and who it says it is; in virtual time."""

from __future__ import annotations

from collections.abc import Callable
from html import escape

import httpx
import pytest
from cases import for_each
from sites.webs import HOME, OTHER, collect

from trio_crawler import (
    Crawler,
    HttpxFetch,
    Job,
    Limits,
    Outcome,
    Page,
    Politeness,
    Reason,
    Response,
    Sitemaps,
    __version__,
    breadth_first,
    depth_first,
)
from trio_crawler.testing import Web, html, redirect, robots


def canonical(url: str, *links: str, header: str | None = None) -> Response:
    """Make a page that names another as its canonical one."""
    head = "" if header else f'<link rel="canonical" href="{escape(url)}">'
    headers = [("content-type", "text/html")] + [("Link", header)] * bool(header)
    anchors = "".join(f'<a href="{link}">{link}</a>' for link in links)
    text = f"<!doctype html><html><head><title>{url}</title>{head}</head><body>{anchors}</body>"
    return Response(200, httpx.Headers(headers), text.encode())


def paths(outcomes: list[Outcome]) -> set[str]:
    return {outcome.url.removeprefix(HOME) for outcome in outcomes}


def by_path(outcomes: list[Outcome]) -> dict[str, Page]:
    return {o.url.removeprefix(HOME): o for o in outcomes if isinstance(o, Page)}


# Recorded.


@for_each(
    "answer, expected",
    [
        (canonical("/a"), HOME + "a"),
        (canonical("HTTP://site.test:80/a/../b#part"), HOME + "b"),
        (canonical("http://other.test/x"), "http://other.test/x"),
        (canonical("", header='<http://site.test/h>; rel="canonical"'), HOME + "h"),
        (canonical("", header="</h>; rel=canonical"), HOME + "h"),
        (canonical("", header='</next>; rel="next", </h>; rel="canonical"'), HOME + "h"),
        (canonical("", header='</next>; rel="next"'), None),
        (canonical("javascript:alert(1)"), None),
        (canonical("http://[x"), None),
        (html("/a"), None),
    ],
)
async def test_the_canonical_url_of_a_page_is_recorded(autojump_clock, answer, expected):
    outcomes = await collect(
        Crawler([HOME], fetch=Web({HOME: answer}), sitemaps=Sitemaps(follow=False))
    )
    assert outcomes[0].canonical == expected


async def test_a_canonical_url_that_is_only_recorded_changes_nothing(autojump_clock):
    web = Web({HOME: canonical("/real", "/a"), "/a": html(), "/real": html()})
    outcomes = await collect(Crawler([HOME], fetch=web))
    assert paths(outcomes) == {"", "a"}
    assert by_path(outcomes)[""].duplicate_of is None


# Folded.


async def folded(site: dict[str, Response], *seeds: str, **options: object) -> dict[str, Page]:
    web = Web(site, delay=1)
    crawler = Crawler(seeds or [HOME], fetch=web, workers=1, fold_canonical=True, **options)
    return by_path(await collect(crawler))


async def test_an_alias_gives_way_to_its_canonical_page(autojump_clock):
    site = {HOME: html("/alias"), "/alias": canonical("/real"), "/real": html("/b")}
    pages = await folded(site)
    assert set(pages) == {"", "alias", "real", "b"}
    assert pages["alias"].duplicate_of == pages["alias"].folded_into == HOME + "real"
    # It is as far from the seed as its alias.
    assert (pages["real"].depth, pages["real"].referrer) == (1, HOME + "alias")


async def test_the_links_of_an_alias_are_followed(autojump_clock):
    site = {HOME: html("/alias"), "/alias": canonical("/real", "/a"), "/real": html("/b")}
    pages = await folded(site | {"/a": html(title="a"), "/b": html(title="b")})
    assert set(pages) == {"", "alias", "real", "a", "b"}
    assert (pages["alias"].links, pages["alias"].rejected) == ((HOME + "a",), ())
    assert (pages["a"].depth, pages["a"].referrer) == (2, HOME + "alias")


@pytest.mark.parametrize("delay", [0, 1])
async def test_a_list_whose_pages_all_name_the_first_one_gives_all_its_articles(
    autojump_clock, delay
):
    """400 articles, 20 a page; each page leads to its neighbours, the first and the last."""
    articles = {f"/article/{n}/": html(title=f"Article {n}") for n in range(400)}
    site = {"/": html("/list"), "/list": canonical("/list", *_entries(1))}
    site |= {f"/list?page={n}": canonical("/list", *_entries(n)) for n in range(1, 21)}
    web = Web(site | articles, delay=delay)
    pages = by_path(await collect(Crawler([HOME], fetch=web, fold_canonical=True)))
    found = {path for path in pages if path.startswith("article/")}
    assert found == {path[1:] for path in articles}
    aliases = {path for path, page in pages.items() if page.folded_into == HOME + "list"}
    assert aliases == {f"list?page={n}" for n in range(1, 21)}
    assert set(web.hits.values()) == {1}


def _entries(page: int) -> list[str]:
    """List the links of one page of a list: its articles, and its neighbours."""
    around = {1, max(page - 1, 1), min(page + 1, 20), 20}
    return [f"/article/{n}/" for n in range(20 * page - 20, 20 * page)] + [
        f"/list?page={n}" for n in sorted(around)
    ]


async def test_the_links_of_an_alias_that_is_the_copy_of_another_are_followed_once(
    autojump_clock,
):
    alias = canonical("/real", "?next", "/a")
    site = {f"/alias{n}": alias for n in range(3)} | {"/real": html("/b")}
    pages = await folded({HOME: html(*site)} | site)
    assert {path for path in pages if "?" in path} == {"alias0?next"}
    assert pages["alias1"].rejected == ((HOME + "alias1?next", Reason.DUPLICATE),)
    assert {pages[f"alias{n}"].duplicate_of for n in range(3)} == {HOME + "real"}


async def test_a_canonical_page_that_comes_after_its_copy_is_no_duplicate_of_it(autojump_clock):
    page = canonical("/real", "?own")
    pages = await folded({HOME: html("/alias"), "/alias": page, "/real": page})
    assert pages["alias"].duplicate_of == HOME + "real"
    assert (pages["real"].duplicate_of, pages["real"].rejected) == (None, ())
    assert {"alias?own", "real?own"} < set(pages)


async def test_a_page_that_names_itself_is_no_alias(autojump_clock):
    pages = await folded({HOME: canonical(HOME + "#top", "/a"), "/a": canonical("/%61", "/b")})
    assert set(pages) == {"", "a", "b"}
    assert not any(page.duplicate_of for page in pages.values())


async def test_many_aliases_of_one_page_fetch_it_once(autojump_clock):
    site = {f"/list?by={n}": canonical("/list", f"/?{n}") for n in range(20)}
    site |= {HOME: html(*site), "/list": html("/a")}
    pages = await folded(site)
    assert len(pages) == 1 + 20 + 20 + 2
    assert all(pages[f"list?by={n}"].duplicate_of == HOME + "list" for n in range(20))


@pytest.mark.parametrize("answer", [Response(404), redirect("/x"), html()])
async def test_a_page_is_not_folded_into_one_that_has_failed(autojump_clock, answer):
    site = {HOME: html("/real", "/x"), "/real": answer, "/x": html("/alias")}
    pages = await folded(site | {"/alias": canonical("/real")})
    failed = answer.status != 200
    assert pages["alias"].duplicate_of == (None if failed else HOME + "real")


async def test_a_canonical_page_that_is_known_already_is_not_fetched_again(autojump_clock):
    site = {HOME: html("/real", "/alias"), "/alias": canonical("/real"), "/real": html("/a")}
    pages = await folded(site)
    assert set(pages) == {"", "alias", "real", "a"}
    assert pages["alias"].duplicate_of == HOME + "real"


@pytest.mark.parametrize("length", [2, 3, 7])
async def test_pages_that_name_each_other_in_a_circle_do_not_lose_their_links(
    autojump_clock, length
):
    site = {f"/{n}": canonical(f"/{(n + 1) % length}", "/a", "/b") for n in range(length)}
    for seeds in ([f"{HOME}{n}" for n in range(length)], [f"{HOME}{n}" for n in (1, 0)]):
        pages = await folded(site | {"/a": html(title="a"), "/b": html(title="b")}, *seeds)
        assert {"a", "b"} < set(pages)
        assert sum(page.duplicate_of is not None for page in pages.values()) == length - 1


@pytest.mark.parametrize("seed", [HOME, "https://site.test/"])
async def test_a_canonical_url_that_leads_back_to_its_page_does_not_lose_its_links(
    autojump_clock, seed
):
    """Pages that say http, on a server that redirects all http to https."""
    secure = "https://site.test/"
    site = {secure: canonical(HOME, "/a"), HOME: redirect(secure), secure + "a": html()}
    crawler = Crawler([seed], fetch=Web(site, delay=1), fold_canonical=True)
    assert secure + "a" in {outcome.url for outcome in await collect(crawler)}


@pytest.mark.parametrize("seed", [HOME, HOME + "index.html"])
async def test_a_home_page_that_is_redirected_to_its_alias_does_not_lose_its_links(
    autojump_clock, seed
):
    site = {HOME: redirect("/index.html"), "/index.html": canonical(HOME, "/a"), "/a": html()}
    assert "a" in await folded(site, seed)


@for_each(
    "target, options",
    [
        (OTHER, {}),
        ("ftp://site.test/", {}),
        (HOME + "secret", {}),
        (HOME + "x" * 3000, {}),
        (HOME + "excluded", {"scope": lambda job: "ex" not in job.url}),
    ],
)
async def test_a_canonical_url_that_is_not_admitted_does_not_fold(autojump_clock, target, options):
    rules = {"/robots.txt": robots("User-agent: *", "Disallow: /secret")}
    pages = await folded({HOME: canonical(target, "/a"), "/a": html()} | rules, **options)
    assert set(pages) == {"", "a"}
    assert pages[""].duplicate_of is None


async def test_a_canonical_page_behind_a_redirect_is_reached(autojump_clock):
    site = {HOME: canonical("/moved", "/x"), "/moved": redirect("/real"), "/real": html("/a")}
    assert {"real", "a"} < set(await folded(site))


async def test_a_canonical_page_needs_no_more_depth_than_its_alias(autojump_clock):
    site = {HOME: html("/alias"), "/alias": canonical("/real"), "/real": html("/deep")}
    assert set(await folded(site, limits=Limits(max_depth=1))) == {"", "alias", "real"}


async def test_nofollow_of_an_alias_keeps_its_own_reason(autojump_clock):
    alias = canonical("/real", "/a")
    alias.headers["X-Robots-Tag"] = "nofollow"
    pages = await folded({HOME: html("/alias"), "/alias": alias, "/real": html()})
    assert pages["alias"].rejected == ((HOME + "a", Reason.HEADER_NOFOLLOW),)


# The order.

TREE = {
    "/": html("/a", "/b"),
    "/a": html("/a1", "/a2"),
    "/b": html("/b1", "/b2"),
    "/a1": html("/a1x"),
    **dict.fromkeys(["/a2", "/b1", "/b2", "/a1x"], html()),
}


def shortest_first(job: Job) -> tuple[int, str]:
    return -len(job.url), job.url


ORDERS = {
    "breadth": (breadth_first, ["", "a", "b", "a1", "a2", "b1", "b2", "a1x"]),
    # While a page is read its worker has the next job: that is what it goes on with.
    "depth": (depth_first, ["", "a", "b", "a1", "a2", "a1x", "b1", "b2"]),
    "mine": (shortest_first, ["", "a", "b", "a1", "a2", "a1x", "b1", "b2"]),
    "letters": (
        lambda job: tuple(-ord(c) for c in job.url),
        ["", "b", "a", "b2", "b1", "a2", "a1", "a1x"],
    ),
}


async def order_of(order: Callable[[Job], object]) -> list[str]:
    crawler = Crawler([HOME], fetch=Web(TREE, delay=1), workers=1, order=order)
    return [outcome.url.removeprefix(HOME) for outcome in await collect(crawler)]


@pytest.mark.parametrize("name", ORDERS)
async def test_an_order_says_which_job_of_a_host_comes_next(autojump_clock, name):
    order, expected = ORDERS[name]
    assert await order_of(order) == expected


async def test_a_bug_in_an_order_ends_the_crawl(autojump_clock):
    def buggy(job: Job) -> int:
        raise LookupError("a bug")

    with pytest.raises(ExceptionGroup) as caught:
        await order_of(buggy)
    assert caught.value.subgroup(LookupError)


@pytest.mark.parametrize("order", [depth_first, lambda job: 0, lambda job: job.url])
async def test_whatever_the_order_every_page_is_fetched_once(autojump_clock, order):
    web = Web(TREE, delay=1)
    outcomes = await collect(Crawler([HOME], fetch=web, order=order))
    assert paths(outcomes) == {path.lstrip("/") for path in TREE}
    assert set(web.hits.values()) == {1}


# Who asks.


class Server:
    """Answer requests as a transport of httpx does, and keep them."""

    def __init__(self, rules: str = "") -> None:
        self.requests: list[httpx.Request] = []
        self.rules = rules
        self.transport = httpx.MockTransport(self.answer)

    def answer(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        if request.url.path == "/robots.txt":
            if request.headers.get("if-none-match") == '"v1"':
                return httpx.Response(304)
            return httpx.Response(200, headers={"ETag": '"v1"'}, text=self.rules)
        links = "".join(f"<a href=/{n}>" for n in range(40)) * (request.url.path == "/")
        return httpx.Response(200, headers={"content-type": "text/html"}, text=links)


async def test_every_request_names_the_project_its_version_and_where_to_read_about_it(
    autojump_clock,
):
    server = Server()
    async with HttpxFetch(server.transport) as fetch:
        await Crawler([HOME], fetch=fetch).crawl()
    assert len(server.requests) == 42
    (agent,) = {request.headers["user-agent"] for request in server.requests}
    assert agent.startswith(f"trio_crawler/{__version__} (+https://")


async def test_the_user_agent_and_a_contact_may_be_given_and_robots_txt_is_read_for_it(
    autojump_clock,
):
    server = Server("User-agent: *\nDisallow: /\nUser-agent: mybot\nDisallow: /1")
    given = {"user_agent": "MyBot/1.0 (+http://bot.test/)", "contact": "me@bot.test"}
    async with HttpxFetch(server.transport, **given) as fetch:
        totals = await Crawler([HOME], fetch=fetch).crawl()
    assert {request.headers["user-agent"] for request in server.requests} == {given["user_agent"]}
    assert {request.headers["from"] for request in server.requests} == {"me@bot.test"}
    # All but /1 and /10 to /19.
    assert (totals.pages, totals.rejected) == (1 + 29, 11)


async def test_the_agent_of_the_politeness_is_what_robots_txt_is_read_for(autojump_clock):
    server = Server("User-agent: *\nDisallow: /\nUser-agent: mybot\nDisallow: /1")
    async with HttpxFetch(server.transport) as fetch:
        crawler = Crawler([HOME], fetch=fetch, politeness=Politeness(agent="mybot"))
        assert (await crawler.crawl()).pages == 30


async def test_a_crawl_that_lasts_asks_for_robots_txt_by_its_entity_tag(autojump_clock):
    server = Server("User-agent: *\nDisallow: /1")
    async with HttpxFetch(server.transport) as fetch:
        crawler = Crawler([HOME], fetch=fetch, politeness=Politeness(delay=3600))
        totals = await crawler.crawl()
    asked = [request for request in server.requests if request.url.path == "/robots.txt"]
    assert [request.headers.get("if-none-match") for request in asked] == [None, '"v1"']
    assert totals.pages == 30
