"""How gently the command crawls, what it obeys, and what it says of that."""

from __future__ import annotations

import json
import re
import time

import click
import pytest
import trio
from cli.asked import pages
from sites.raw import Handler, Request, html, reply, threaded_raw_server

from trio_crawler.cli.main import command


@pytest.fixture
def crawl(capsys):
    """Run the command in this process; give its status and what it printed."""

    def run(*words: str) -> tuple[int, str, str]:
        status = command.main(list(words), standalone_mode=False)
        return status, *capsys.readouterr()

    return run


def robots(*lines: str) -> bytes:
    """Write a response with a robots.txt for everybody."""
    text = "\n".join(["User-agent: *", *lines, ""])
    return reply(200, {"Content-Type": "text/plain"}, text.encode())


# robots.txt.

PRIVATE = {
    "/": html("/a", "/no"),
    "/a": html(),
    "/no": html(),
    "/robots.txt": robots("Disallow: /no"),
}


def test_a_robots_txt_that_is_ignored_is_not_asked_for_and_the_report_says_so(crawl):
    with threaded_raw_server(PRIVATE) as server:
        status, out, _ = crawl("--ignore-robots", server.url)
    assert sorted(server.targets) == ["/", "/a", "/no"]
    assert out.startswith(f"Crawl of {server.url}: nothing is broken\nrobots.txt ignored\n\n")
    assert status == 0


def test_a_seed_that_robots_forbid_is_skipped_and_when_nothing_comes_that_is_status_3(crawl):
    site = {"/": html("/a"), "/a": html(), "/robots.txt": robots("Disallow: /")}
    with threaded_raw_server(site) as server:
        status, out, _ = crawl(server.url)
    assert server.targets == ["/robots.txt"]
    assert "\nSkipped: 1 robots\n" in out
    assert out.startswith(
        f"Crawl of {server.url}: no page was fetched\n"
        f"robots.txt of {server.url} allows nothing of what is wanted "
        "(--ignore-robots crawls anyway)\n\n"
    )
    assert status == 3


@pytest.mark.parametrize(
    ("words", "asked"),
    [([], ["/", "/no"]), (["--user-agent", "MyBot/2.0 (+http://my.test/)"], ["/"])],
)
def test_robots_txt_is_read_for_the_name_in_the_user_agent(words, asked, crawl):
    rules = reply(body=b"User-agent: mybot\nDisallow: /no\n")
    with threaded_raw_server({"/": html("/no"), "/no": html(), "/robots.txt": rules}) as server:
        crawl(*words, server.url)
    assert pages(server) == asked


# Not following.

SHY = {
    "/": reply(
        body=b'<a href="/a" rel="nofollow">a</a><a href="/b">b</a>',
        headers={"Content-Type": "text/html"},
    ),
    "/a": html(),
    "/b": reply(
        body=b'<meta name="robots" content="noindex, nofollow"><a href="/c">c</a>',
        headers={"Content-Type": "text/html"},
    ),
    "/c": html(),
}


def test_nofollow_is_ignored_when_that_is_wanted_and_the_report_says_so(crawl):
    with threaded_raw_server(SHY) as server:
        _, out, err = crawl("--ignore-nofollow", "-v", server.url)
    assert sorted(pages(server)) == ["/", "/a", "/b", "/c"]
    assert server.targets[0] == "/robots.txt"
    assert out.startswith(f"Crawl of {server.url}: nothing is broken\nnofollow ignored\n\n")
    assert f"{server.url}b (noindex)\n" in err


# Traps and duplicates.


def test_a_url_that_looks_like_a_trap_is_followed_only_without_traps(crawl):
    deep = "/x" * 15 + "/y" * 15
    site = {"/": html(deep), deep: html()}
    with threaded_raw_server(site) as server:
        _, out, _ = crawl("--why", server.url)
        assert pages(server) == ["/"]
        assert f"  deep_path (1)\n    {server.url.rstrip('/')}{deep} from {server.url}\n" in out
        crawl("--no-traps", server.url)
    assert pages(server)[1:] == ["/", deep]


def copy(canonical: str) -> bytes:
    """Write a response with a page that names a canonical one."""
    text = f'<link rel="canonical" href="{canonical}"><a href="/{len(canonical)}">more</a>'
    return reply(body=text.encode(), headers={"Content-Type": "text/html"})


CANON = {
    "/": html("/print"),
    "/print": copy("/article"),
    "/article": html("/last"),
    "/8": html(title="More"),
    "/last": html(title="The end"),
}


def test_a_page_is_folded_into_its_canonical_one_when_that_is_wanted(crawl, tmp_path):
    told = tmp_path / "told.jsonl"
    with threaded_raw_server(CANON) as server:
        status, out, err = crawl("--canonical", "-v", "--jsonl", str(told), server.url)
    site = server.url.rstrip("/")
    assert sorted(pages(server)) == ["/", "/8", "/article", "/last", "/print"]
    assert f"\nDuplicates (1)\n  {site}/print = {site}/article\n" in out
    assert f"{site}/print (same as {site}/article)\n" in err
    records = {r["url"]: r for r in map(json.loads, told.read_text().splitlines())}
    assert records[f"{site}/print"]["duplicate_of"] == f"{site}/article"
    assert "duplicate_of" not in records[f"{site}/article"]
    assert status == 0


# How much at once, how often, and in which order.


class Crowd:
    """A page that comes when so many ask for it at once; `most` is how many ever did."""

    def __init__(self, wanted: int) -> None:
        self.most = 0
        self._inside = 0
        self._wanted = wanted
        self._there = trio.Event()

    async def __call__(self, request: Request, stream: trio.abc.Stream) -> None:
        self._inside += 1
        self.most = max(self.most, self._inside)
        if self.most >= self._wanted:
            self._there.set()
        await self._there.wait()
        for _ in range(20):
            # Who comes too many has the time to come.
            await trio.lowlevel.checkpoint()
        self._inside -= 1
        await stream.send_all(html())


@pytest.mark.parametrize(
    ("words", "most"),
    [([], 4), (["--per-host", "1"], 1), (["--per-host", "7"], 7), (["--mine"], 10)],
)
def test_so_many_urls_of_a_host_are_fetched_at_once_and_no_more(words, most, crawl):
    crowd, leaves = Crowd(most), [f"/{number}" for number in range(15)]
    with threaded_raw_server({"/": html(*leaves), **dict.fromkeys(leaves, crowd)}) as server:
        _, out, _ = crawl(*words, server.url)
    assert crowd.most == most
    assert len(pages(server)) == 16
    assert f"workers=10, per host {most})\n" in out


class Clock:
    """A page that notes when it was asked for."""

    def __init__(self, answer: bytes) -> None:
        self.at: list[float] = []
        self._answer = answer

    async def __call__(self, request: Request, stream: trio.abc.Stream) -> None:
        self.at.append(time.monotonic())
        await stream.send_all(self._answer)


def clocked(site: dict[str, bytes]) -> tuple[Clock, dict[str, bytes | Handler]]:
    """Let the leaves of a site be told by one clock."""
    leaves = [f"/{number}" for number in range(4)]
    clock = Clock(html())
    return clock, {"/": html(*leaves), **dict.fromkeys(leaves, clock), **site}


@pytest.mark.parametrize(
    ("words", "site"),
    [
        (["--delay", "0.1"], {}),
        (["--delay", "0.01"], {"/robots.txt": robots("Crawl-delay: 0.1")}),
    ],
)
def test_a_delay_spaces_the_starts_and_a_full_report_tells_it(words, site, crawl):
    clock, site = clocked(site)
    with threaded_raw_server(site) as server:
        _, out, _ = crawl(*words, "-v", server.url)
    # The server sees each start some milliseconds late.
    assert clock.at[3] - clock.at[0] > 0.28
    assert re.search(
        rf"^    127.0.0.1:{server.port}: \d.*, limit 4, delay 0.1 s$", out, re.MULTILINE
    )


def test_an_adaptive_limit_can_be_seen_in_a_full_report(crawl):
    leaves = [f"/{number}" for number in range(20)]
    with threaded_raw_server({"/": html(*leaves), **dict.fromkeys(leaves, html())}) as server:
        _, plain, _ = crawl("-v", server.url)
        _, out, _ = crawl("--adaptive", "--per-host", "2", "-v", server.url)
    assert "\nHosts (1): 21 pages, " in out
    assert re.search(rf"^    127.0.0.1:{server.port}: 21 pages, .*, limit \d$", out, re.MULTILINE)
    assert ", per host 2, adaptive)\n" in out
    assert "\nHosts" not in plain


def test_a_host_that_fails_for_longer_than_the_patience_is_given_up(crawl):
    leaves = [f"/{number}" for number in range(6)]
    busy = reply(503, {"Retry-After": "0"})
    site = {"/": html(*leaves), **dict.fromkeys(leaves, busy), "/robots.txt": robots()}
    words = ["--patience", "0", "--max-tries", "2", "--max-tasks", "1"]
    with threaded_raw_server(site) as server:
        status, out, _ = crawl(*words, server.url)
    gone = int(re.search(r"host_given_up, (\d) URLs not asked for\n", out)[1])
    assert 0 < gone == 6 - len(set(pages(server)) - {"/"})
    assert f"\nSkipped: {gone} host_given_up\n" in out
    assert status == 1


BRANCHES = {path: html(f"{path}/1", title=path) for path in ("/a", "/b", "/c", "/d")}
LISTED = (
    "<url><loc>{0}d</loc><priority>0.1</priority></url>"
    "<url><loc>{0}c</loc><priority>1</priority></url>"
)


@pytest.mark.parametrize(
    ("order", "pairs"),
    [
        ("breadth", [("/d", "/c"), ("/b", "/d/1")]),
        ("depth", [("/d", "/c"), ("/d/1", "/b")]),
        ("sitemap", [("/c", "/a"), ("/b", "/a/1"), ("/b/1", "/d")]),
    ],
)
def test_urls_are_asked_for_in_the_order_that_was_wanted(order, pairs, crawl):
    site = {"/": html("/a", "/b"), **BRANCHES}
    with threaded_raw_server(site) as server:
        listed = f"<urlset>{LISTED.format(server.url)}</urlset>"
        site["/map"] = reply(body=listed.encode(), headers={"Content-Type": "text/xml"})
        crawl("--order", order, "--sitemap", "/map", "--per-host", "1", server.url)
    at = {target: number for number, target in enumerate(pages(server))}
    assert len(at) == 10
    assert [(first, then) for first, then in pairs if at[first] > at[then]] == []


# Who asks.


def test_from_is_said_to_everybody(crawl):
    with (
        threaded_raw_server({"/": html()}) as other,
        threaded_raw_server({"/": html(other.url)}) as server,
    ):
        crawl("--from", "me@example.org", "--allow-private", "127.0.0.1", server.url)
        crawl(other.url)
    told = [request.headers.get("from") for request in (*server.requests, *other.requests)]
    assert told == ["me@example.org"] * 4 + [None] * 2


# One's own site.


def test_for_its_owner_a_crawl_leaves_nothing_out_that_robots_txt_and_nofollow_rule_out(crawl):
    hidden = b"<a href=/no rel=nofollow>hidden</a>"
    site = {
        **PRIVATE,
        "/": reply(200, {"Content-Type": "text/html"}, hidden),
        "/robots.txt": robots("Crawl-delay: 10", "Disallow: /no"),
    }
    with threaded_raw_server(site) as server:
        status, out, _ = crawl("--mine", server.url)
    assert server.targets == ["/", "/no"]
    assert out.startswith(f"Crawl of {server.url}: nothing is broken\nrobots.txt ignored\n")
    assert status == 0


@pytest.mark.parametrize(
    "words", [["--per-host", "4"], ["--delay", "1"], ["--adaptive"], ["--lenient"]]
)
def test_what_an_owner_sets_is_set_once(words):
    with pytest.raises(click.UsageError, match=f"use --mine or {words[0]}, not both"):
        command.main(["--mine", *words, "http://127.0.0.1:1/"], standalone_mode=False)
