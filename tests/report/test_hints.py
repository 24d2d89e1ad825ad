"""Hints: a site for each, the option that would have helped, and never more than three lines."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from trio_crawler import Checks, Crawler, Fault, Limits, Politeness, Reason, Response
from trio_crawler.report import CrawlFacts, Report
from trio_crawler.testing import Web, html, redirect, robots

LINKS = [f"/{n}" for n in range(300)]
PAGES = {"/": html(*LINKS), **{path: html(title=path) for path in LINKS}}
OTHER = [f"http://other.test{path}" for path in LINKS]
LOGIN = {"WWW-Authenticate": "Basic realm=x"}
MORE_AT_ONCE = "(--per-host, or --mine if it is yours, lets more requests run at once)"


async def hinted(web: Web, *, cpu: float = 0.0, **arguments: Any) -> list[str]:
    """Crawl a web; return the hints about the crawl."""
    crawler = Crawler([web.url], fetch=web, **arguments)
    report = Report()
    async with crawler.outcomes() as outcomes:
        async for outcome in outcomes:
            report.add(outcome)
    facts = CrawlFacts(
        crawler.statistics(),
        crawler.plan.workers,
        seeds=[web.url],
        politeness=crawler.plan.politeness,
        hosts=crawler.hosts,
        authorized=(),
        cookies=False,
        credentials=False,
        cpu=cpu,
    )
    hints = report.hints(facts)
    # The report of a crawl ends with them, but for passwords, which stand with the broken links.
    assert all(hint in report.text(facts) for hint in hints if "a password" not in hint)
    return hints


@pytest.mark.parametrize(
    ("delay", "arguments", "hint"),
    [
        (0.2, {}, f"15 of 15 s were waiting for site.test {MORE_AT_ONCE}"),
        (0.1, {}, ""),
        # The answers waited for the crawl.
        (0.2, {"cpu": 14.0}, ""),
        (0.2, {"politeness": Politeness(per_host=10)}, ""),
        (
            0.01,
            {"politeness": Politeness(delay=0.1)},
            "30 of 30 s were waiting for site.test (--delay sets the time between requests)",
        ),
        (0.2, {"politeness": Politeness(adaptive=True)}, ""),
    ],
)
async def test_a_crawl_that_waited_most_of_its_time_for_one_host_says_which_option_sets_that(
    autojump_clock, delay, arguments, hint
):
    found = await hinted(Web(PAGES, delay=delay), **arguments)
    assert found == ([hint] if hint else [])


THREE = [f"http://{name}.test{path}" for name in "abc" for path in LINKS]
NO_ENTRY = dict.fromkeys(OTHER, html()) | {
    "http://other.test/robots.txt": robots("User-agent: *", "Disallow: /")
}


@pytest.mark.parametrize(
    ("site", "arguments", "told"),
    [
        # More requests to one host would only take the tasks of another.
        ({"/": html(*THREE), **dict.fromkeys(THREE, html())}, {"scope": lambda job: True}, ""),
        (PAGES, {"workers": 3}, "(--max-tasks lets more requests run at once)"),
        (PAGES, {"politeness": Politeness(per_host=3), "workers": 3}, "(--max-tasks lets more"),
        # No URL of the other host was asked for.
        (
            {"/": html("/a", *OTHER), "/a": html(), **NO_ENTRY},
            {"checks": Checks(external=True, robots=True), "limits": Limits(max_tries=1)},
            "",
        ),
        (
            {"/": html(*OTHER), **dict.fromkeys(OTHER, html())},
            {"checks": Checks(external=True, delay=1), "politeness": Politeness(per_host=1)},
            "(--check-delay sets",
        ),
    ],
)
async def test_a_hint_blames_a_host_only_if_its_option_would_help(
    autojump_clock, site, arguments, told
):
    found = await hinted(Web(site, delay=0.3), **arguments)
    assert len(found) == bool(told)
    assert told in "".join(found)


async def test_a_check_that_waited_for_another_host_names_the_delay_of_checks(autojump_clock):
    web = Web({"/": html(*OTHER), **dict.fromkeys(OTHER, html())}, delay=0.01)
    found = await hinted(web, checks=Checks(external=True, delay=1))
    assert found == [
        "299 of 299 s were waiting for other.test (--check-delay sets the time between requests)"
    ]


SITES: dict[str, tuple[Any, dict[str, Any], str]] = {
    "a login": ({"/": Response(401, httpx.Headers(LOGIN), b"")}, {}, "give --auth USER"),
    "a loop": ({"/": html("/a"), "/a": redirect("/b"), "/b": redirect("/a")}, {}, "(--cookies"),
    "a page budget": (PAGES, {"limits": Limits(max_pages=10)}, "after --max-pages (a greater"),
    "a crawl-delay": (
        {**PAGES, "/robots.txt": robots("User-agent: *", "Crawl-delay: 1")},
        {},
        "robots.txt of site.test wants 1 s from request to request (--ignore-robots",
    ),
    "another site": ({"/": redirect("http://other.test/")}, {}, "crawl it by its own URL"),
}


@pytest.mark.parametrize("name", SITES)
async def test_a_site_where_an_option_helps_has_one_hint_that_names_it(autojump_clock, name):
    site, arguments, hint = SITES[name]
    (found,) = await hinted(Web(site), **arguments)
    assert hint in found


async def test_of_many_hints_the_three_that_matter_most_are_told(autojump_clock):
    loops = {f"/loop{n}": redirect(f"/back{n}") for n in range(40)}
    loops |= {f"/back{n}": redirect(f"/loop{n}") for n in range(40)}
    site = PAGES | loops | {"/": html("/in", *loops, *LINKS)}
    site |= {"/in": Response(401, httpx.Headers(LOGIN), b"")}
    site |= {"/robots.txt": robots("User-agent: *", "Crawl-delay: 1")}
    found = await hinted(Web(site, delay=0.3), limits=Limits(max_pages=200))
    words = ("--auth", "--cookies", "--ignore-robots")
    assert len(found) == 3
    assert [word for word, hint in zip(words, found, strict=True) if word in hint] == [*words]


NAMES = [f"https://{name}.test/" for name in ("a", "b", "c")]
UNKNOWN = dict.fromkeys(NAMES, Fault(Reason.NO_SUCH_HOST))


@pytest.mark.parametrize(
    ("others", "hint"),
    [
        (UNKNOWN, "Of 3 other hosts no name could be looked up: is this machine online?"),
        (UNKNOWN | {NAMES[0]: html()}, ""),
        (dict.fromkeys(NAMES[:2], Fault(Reason.NO_SUCH_HOST)), ""),
    ],
)
async def test_a_check_that_could_look_up_no_name_asks_whether_the_machine_is_online(
    autojump_clock, others, hint
):
    web = Web({"/": html(*others), **others})
    found = await hinted(web, checks=Checks(external=True))
    assert found == ([hint] if hint else [])
