"""The seventeen scenarios of the chapter's own tests, and the four pages on which it hangs.

All over sockets: what is asserted is what a caller is given and what the server was asked.
"""

from __future__ import annotations

import gzip
from collections.abc import Sequence

import httpx
import pytest
import trio
import trio.testing
from sites.raw import Request, Server, Site, html, raw_server, redirect, reply

from trio_crawler import (
    Crawler,
    Failure,
    Job,
    Limits,
    Outcome,
    Page,
    Politeness,
    Reason,
    Redirect,
    Response,
    excluding,
    same_site,
)
from trio_crawler.model import RejectedLink

NO_RETRY = Limits(max_tries=1)
# The chapter's crawler asks for no robots.txt.
PLAIN = Politeness(robots=False)


async def collect(crawler: Crawler) -> list[Outcome]:
    async with crawler.outcomes() as outcomes:
        return [outcome async for outcome in outcomes]


async def crawled(site: Site, limits: Limits | None = None) -> tuple[Server, dict[str, Outcome]]:
    """Crawl a site from its root; give the server and the outcomes by path."""
    async with raw_server(site) as server:
        with trio.fail_after(10):
            outcomes = await collect(Crawler([server.url], limits=limits, politeness=PLAIN))
    by_path = {outcome.url.removeprefix(server.url): outcome for outcome in outcomes}
    assert len(by_path) == len(outcomes)
    return server, by_path


async def refused_by(
    crawler_seeds: Sequence[str], links: Sequence[str], lenient: bool
) -> set[str]:
    """Tell which links of the first page are refused; every host answers, in memory."""

    async def every_host(job: Job) -> Response:
        await trio.lowlevel.checkpoint()
        anchors = "".join(f'<a href="{link}">x</a>' for link in links)
        return Response(200, httpx.Headers({"content-type": "text/html"}), anchors.encode())

    scope = same_site(crawler_seeds, lenient=lenient)
    crawler = Crawler(crawler_seeds, fetch=every_host, scope=scope)
    pages = [outcome for outcome in await collect(crawler) if isinstance(outcome, Page)]
    assert {page.url for page in pages} >= set(crawler_seeds)
    assert all(r.reason is Reason.OTHER_SITE for page in pages for r in page.rejected)
    return {r.url for page in pages for r in page.rejected}


# The seventeen.


async def test_a_linked_page_is_crawled():  # link
    server, outcomes = await crawled({"/": html("/foo"), "/foo": html()})
    home = outcomes[""]
    assert isinstance(home, Page)
    assert home.links == (server.url + "foo",)
    assert isinstance(outcomes["foo"], Page)
    assert server.targets == ["/", "/foo"]


async def test_two_pages_that_link_to_each_other_are_each_asked_for_once():  # link_cycle
    server, outcomes = await crawled({"/": html("/foo"), "/foo": html("/")})
    assert set(outcomes) == {"", "foo"}
    assert server.targets == ["/", "/foo"]


async def test_a_link_to_another_host_is_refused_and_never_asked_for():  # prohibited_host
    async with raw_server({"/": html()}) as other:
        elsewhere = other.url.replace("127.0.0.1", "localhost")
        server, outcomes = await crawled({"/": html(elsewhere)})
    home = outcomes[""]
    assert isinstance(home, Page)
    assert home.rejected == (RejectedLink(elsewhere, Reason.OTHER_SITE),)
    assert (server.targets, other.targets) == (["/"], [])


async def test_the_strict_rule_takes_www_for_the_same_host_and_nothing_else():
    links = ["http://www.example.com/", "http://foo.example.com/", "http://other.com/"]
    refused = await refused_by(["http://example.com/"], links, lenient=False)
    assert refused == set(links[1:])


async def test_the_lenient_rule_takes_all_hosts_of_one_domain_and_no_other():
    links = ["http://www.example.com/", "http://foo.example.com/", "http://other.com/"]
    refused = await refused_by(["http://example.com/"], links, lenient=True)
    assert refused == set(links[2:])


async def test_an_excluded_url_is_refused_and_never_asked_for():  # exclude
    async with raw_server({"/": html("/wanted", "/foo/x"), "/wanted": html()}) as server:
        scope = excluding("/foo")
        outcomes = await collect(Crawler([server.url], scope=scope, politeness=PLAIN))
    assert isinstance(outcomes[0], Page)
    assert outcomes[0].rejected == (RejectedLink(server.url + "foo/x", Reason.EXCLUDED),)
    assert server.targets == ["/", "/wanted"]


async def test_several_seeds_are_crawled_each_on_its_own_host():  # roots
    async with raw_server({"/": html("/b")}) as one, raw_server({"/": html("/c")}) as two:
        second = two.url.replace("127.0.0.1", "localhost")
        outcomes = await collect(Crawler([one.url, second], politeness=PLAIN))
    assert {o.url for o in outcomes} == {one.url, one.url + "b", second, second + "c"}
    assert (sorted(one.targets), sorted(two.targets)) == (["/", "/b"], ["/", "/c"])


async def test_a_seed_may_be_deep_in_its_site():  # deep_root
    async with raw_server({"/foo/bar": html("/baz"), "/baz": html()}) as server:
        totals = await Crawler([server.url + "foo/bar"], politeness=PLAIN).crawl()
    assert totals.pages == 2
    assert server.targets == ["/foo/bar", "/baz"]


async def test_a_redirect_is_an_outcome_and_so_is_its_target():  # redirect
    server, outcomes = await crawled({"/": redirect("/foo"), "/foo": html()})
    away = outcomes[""]
    assert isinstance(away, Redirect)
    assert (away.status, away.target, away.rejected) == (302, server.url + "foo", None)
    target = outcomes["foo"]
    assert isinstance(target, Page)
    assert (target.depth, target.referrer) == (0, server.url)
    assert server.targets == ["/", "/foo"]


async def test_redirects_that_lead_in_a_circle_end():  # redirect_cycle
    site = {"/": redirect("/foo"), "/foo": redirect("/bar"), "/bar": redirect("/foo")}
    server, outcomes = await crawled(site)
    assert server.targets == ["/", "/foo", "/bar"]
    assert [type(outcome) for outcome in outcomes.values()] == [Redirect] * 3


async def test_a_redirect_and_a_link_to_one_page_ask_for_it_once():  # redirect_join
    server, outcomes = await crawled(
        {"/": html("/foo", "/bar"), "/foo": redirect("/baz"), "/bar": redirect("/baz")}
        | {"/baz": html()}
    )
    assert sorted(server.targets) == ["/", "/bar", "/baz", "/foo"]
    assert isinstance(outcomes["baz"], Page)
    assert isinstance(outcomes["foo"], Redirect)
    assert isinstance(outcomes["bar"], Redirect)


async def test_no_more_requests_are_open_than_there_are_workers():  # max_tasks
    flying: list[int] = [0]
    peak = 0

    async def slowly(request: Request, stream: trio.abc.Stream) -> None:
        nonlocal peak
        flying[0] += 1
        peak = max(peak, flying[0])
        # Time enough for every worker that is free to get here.
        await trio.testing.wait_all_tasks_blocked(0.02)
        flying[0] -= 1
        await stream.send_all(html())

    leaves = [f"/{number}" for number in range(12)]
    async with raw_server({"/": html(*leaves), **dict.fromkeys(leaves, slowly)}) as server:
        totals = await Crawler([server.url], workers=3, politeness=PLAIN).crawl()
    assert totals.pages == 13
    assert peak == 3


def flaky(failures: int) -> Site:
    """Make a page on which the first so many requests find the connection closed."""
    left = failures

    async def answer(request: Request, stream: trio.abc.Stream) -> None:
        nonlocal left
        left -= 1
        if left >= 0:
            await stream.aclose()
        else:
            await stream.send_all(html())

    return {"/": answer}


@pytest.mark.parametrize("failures", [0, 1, 2])
async def test_a_page_is_tried_again_until_it_comes(failures):  # max_tries
    server, outcomes = await crawled(flaky(failures), Limits(max_tries=3))
    page = outcomes[""]
    assert isinstance(page, Page)
    assert page.tries == len(server.targets) == failures + 1


async def test_a_page_that_never_comes_is_tried_max_tries_times_and_fails():  # max_tries
    server, outcomes = await crawled(flaky(99), Limits(max_tries=2))
    failure = outcomes[""]
    assert isinstance(failure, Failure)
    assert (failure.reason, failure.tries, len(server.targets)) == (Reason.RESET, 2, 2)


async def test_a_page_is_read_in_the_charset_that_its_header_names():  # encoding
    body = '<!doctype html><title>Zürich</title><a href="/straße">x</a>'.encode("latin-1")
    header = {"Content-Type": "text/html; charset=iso-8859-1"}
    server, outcomes = await crawled({"/": reply(200, header, body)})
    page = outcomes[""]
    assert isinstance(page, Page)
    assert page.title == "Zürich"
    assert "/straße" in page.text
    assert page.flaws == ()
    assert server.targets == ["/", "/stra%C3%9Fe"]


async def test_a_page_that_says_it_is_xhtml_is_searched_for_links():  # content_type
    header = {"Content-Type": "application/xhtml+xml; charset=utf-8"}
    site = {"/": reply(200, header, b'<html><a href="/foo">x</a></html>'), "/foo": html()}
    server, outcomes = await crawled(site)
    page = outcomes[""]
    assert isinstance(page, Page)
    assert page.content_type == "application/xhtml+xml"
    assert server.targets == ["/", "/foo"]


async def test_links_in_a_body_that_is_not_html_are_not_followed():  # non_html
    picture = reply(200, {"Content-Type": "image/png"}, b'<a href="/foo">x</a>')
    server, outcomes = await crawled({"/": picture})
    page = outcomes[""]
    assert isinstance(page, Page)
    assert (page.content_type, page.links) == ("image/png", ())
    assert server.targets == ["/"]


async def test_links_that_are_not_http_are_refused_as_such():  # non_http
    links = ["mailto:someone@example.com", "ftp://127.0.0.1/", "javascript:void(0)"]
    server, outcomes = await crawled({"/": html(*links)})
    page = outcomes[""]
    assert isinstance(page, Page)
    assert {link.reason for link in page.rejected} == {Reason.OTHER_SCHEME}
    assert len(page.rejected) == 3
    assert server.targets == ["/"]


# The four pages on which the chapter's crawler waits for ever, and then the page after each.


async def test_a_redirect_that_names_no_target_fails_and_the_crawl_goes_on():
    server, outcomes = await crawled({"/": html("/bad", "/ok"), "/bad": reply(302), "/ok": html()})
    failure = outcomes["bad"]
    assert isinstance(failure, Failure)
    assert failure.reason is Reason.BAD_LOCATION
    assert "302" in failure.detail
    assert isinstance(outcomes["ok"], Page)
    assert sorted(server.targets) == ["/", "/bad", "/ok"]


CUT_SHORT = {
    "length": reply(200, {"Content-Type": "text/html", "Content-Length": "999"}, b"<a href=/x>"),
    "chunks": reply(
        200, {"Content-Type": "text/html", "Transfer-Encoding": "chunked"}, b"ff\r\n<a href=/x>"
    ),
    "gzip": reply(
        200,
        {"Content-Type": "text/html", "Content-Encoding": "gzip"},
        gzip.compress(b"x" * 99, mtime=0)[:20],
    ),
}


@pytest.mark.parametrize("kind", CUT_SHORT)
async def test_a_body_that_is_cut_short_fails_and_the_crawl_goes_on(kind):
    site = {"/": html("/bad", "/ok"), "/bad": CUT_SHORT[kind], "/ok": html()}
    server, outcomes = await crawled(site, NO_RETRY)
    failure = outcomes["bad"]
    assert isinstance(failure, Failure)
    assert failure.reason is Reason.INCOMPLETE
    assert isinstance(outcomes["ok"], Page)
    assert sorted(server.targets) == ["/", "/bad", "/ok"]


async def test_a_page_that_does_not_fit_its_charset_is_read_with_a_flaw():
    header = {"Content-Type": "text/html; charset=utf-8"}
    bad = reply(200, header, b'<!doctype html><title>\xff\xfe!</title><a href="/next">x</a>')
    server, outcomes = await crawled({"/": bad, "/next": html()})
    page = outcomes[""]
    assert isinstance(page, Page)
    assert page.flaws == (Reason.BAD_CHARSET,)
    assert page.title == "\ufffd\ufffd!"
    assert server.targets == ["/", "/next"]


async def test_a_link_that_is_no_url_is_refused_and_the_others_are_followed():
    server, outcomes = await crawled({"/": html("http://[x", "/next"), "/next": html()})
    page = outcomes[""]
    assert isinstance(page, Page)
    assert page.rejected == (RejectedLink("http://[x", Reason.BAD_URL),)
    assert server.targets == ["/", "/next"]
