"""robots.txt, nofollow and X-Robots-Tag in whole crawls, in virtual time."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise

import httpx
import pytest
import trio
from cases import for_each
from sites.webs import HOME, OTHER, ROBOTS, Answer, Log, collect, everything, site_of

from trio_crawler import (
    Crawler,
    Failure,
    Fault,
    Job,
    Limits,
    Page,
    Phase,
    Politeness,
    Reason,
    Redirect,
    Response,
    Skipped,
)
from trio_crawler.model import Purpose
from trio_crawler.policy.robots import FRESH, MAX_BYTES
from trio_crawler.testing import Web, html, redirect, robots

NO_SECRETS = robots("User-agent: *", "Disallow: /secret")


def with_header(answer: Response, name: str, value: str) -> Response:
    return Response(
        answer.status, httpx.Headers([*answer.headers.items(), (name, value)]), answer.body
    )


# Before anything else.


@pytest.mark.parametrize("workers", [1, 50])
async def test_robots_txt_is_the_first_thing_asked_for_at_an_origin_and_asked_once(
    autojump_clock, workers
):
    origins = [HOME, "https://site.test/", "http://site.test:8080/", OTHER]
    site = {origin + "robots.txt": NO_SECRETS for origin in origins}
    for origin in origins:
        site |= site_of(30, origin)
    web = Web(site, delay=1)
    log = Log(web)
    seeds = [f"{origin}{n}" for n in range(30) for origin in origins]
    gently = Politeness(per_host=50)
    crawler = Crawler(seeds, fetch=log, workers=workers, politeness=gently)
    await collect(crawler)
    for origin in origins:
        asked = [(at, job) for at, job in log.asked if job.url.startswith(origin)]
        assert (asked[0][1].url, asked[0][1].purpose) == (origin + "robots.txt", Purpose.ROBOTS)
        # Nothing else until it has answered.
        assert min(at for at, _ in asked[1:]) >= asked[0][0] + 1
        assert web.hits[origin + "robots.txt"] == 1
    assert crawler.statistics().pages == 120


async def test_robots_txt_is_no_outcome(autojump_clock):
    crawler = Crawler([HOME], fetch=Web(site_of(3) | {ROBOTS: NO_SECRETS}))
    outcomes = await collect(crawler)
    assert ROBOTS not in {outcome.url for outcome in outcomes}
    assert crawler.statistics().admitted == 4


async def test_a_robots_txt_that_is_linked_is_a_page_too(autojump_clock):
    log = Log(
        Web({HOME: html("/robots.txt"), ROBOTS: robots("User-agent: *", "Disallow: /robots")})
    )
    outcomes = await collect(Crawler([HOME], fetch=log))
    assert [outcome.url for outcome in outcomes] == [HOME, ROBOTS]
    assert isinstance(outcomes[1], Page)
    assert [job.purpose for _, job in log.asked if job.url == ROBOTS] == [
        Purpose.ROBOTS,
        Purpose.PAGE,
    ]


async def test_a_robots_txt_that_is_a_seed_is_a_page_too(autojump_clock):
    (page,) = await collect(Crawler([ROBOTS], fetch=Web({ROBOTS: NO_SECRETS})))
    assert page.body == NO_SECRETS.body


# What it allows.


async def test_a_seed_that_is_disallowed_is_skipped_and_not_asked_for(autojump_clock):
    web = Web({ROBOTS: NO_SECRETS, HOME: html()})
    outcomes = await collect(Crawler([HOME, HOME + "secret/1"], fetch=web))
    assert sorted((outcome.url, type(outcome)) for outcome in outcomes) == [
        (HOME, Page),
        (HOME + "secret/1", Skipped),
    ]
    assert {o.reason for o in outcomes if isinstance(o, Skipped)} == {Reason.ROBOTS}
    assert web.hits[HOME + "secret/1"] == 0


async def test_a_link_that_is_disallowed_is_refused_on_its_page(autojump_clock):
    web = Web({ROBOTS: NO_SECRETS, HOME: html("/secret", "/open"), "/open": html("/secret?1")})
    outcomes = await collect(Crawler([HOME], fetch=web))
    assert [outcome.rejected for outcome in outcomes] == [
        ((HOME + "secret", Reason.ROBOTS),),
        ((HOME + "secret?1", Reason.ROBOTS),),
    ]
    assert outcomes[0].links == (HOME + "open",)
    assert not [url for url in web.hits if "secret" in url]


async def test_a_redirect_to_a_disallowed_url_is_not_followed(autojump_clock):
    web = Web({ROBOTS: NO_SECRETS, HOME: redirect("/secret")})
    (outcome,) = await collect(Crawler([HOME], fetch=web))
    assert isinstance(outcome, Redirect)
    assert (outcome.target, outcome.rejected) == (HOME + "secret", Reason.ROBOTS)
    assert not [url for url in web.hits if "secret" in url]


async def test_a_link_to_a_host_whose_rules_are_not_known_yet_is_skipped_by_them_later(
    autojump_clock,
):
    site = {HOME: html(OTHER + "secret", OTHER), OTHER: html()}
    web = Web(site | {OTHER + "robots.txt": NO_SECRETS})
    outcomes = await collect(Crawler([HOME], fetch=web, scope=everything))
    assert {outcome.url: type(outcome) for outcome in outcomes} == {
        HOME: Page,
        OTHER: Page,
        OTHER + "secret": Skipped,
    }
    assert web.hits[OTHER + "secret"] == 0


@pytest.mark.parametrize(
    ("agent", "allowed"),
    [
        ("goodbot", {"a", "b"}),
        ("GoodBot/2.1 (+http://bot.test/)", {"a", "b"}),
        ("badbot", set()),
        (None, {"a"}),
    ],
)
async def test_the_group_is_that_of_the_agent(autojump_clock, agent, allowed):
    rules = robots(
        "User-agent: *", "Disallow: /b", "User-agent: goodbot", "Disallow:",
        "User-agent: badbot", "Disallow: /",
    )  # fmt: skip
    web = Web({ROBOTS: rules, "/a": html(), "/b": html()})
    crawler = Crawler([HOME + "a", HOME + "b"], fetch=web, politeness=Politeness(agent=agent))
    await collect(crawler)
    assert {url.removeprefix(HOME) for url in web.hits} - {"robots.txt"} == allowed


async def test_the_default_agent_is_trio_crawler(autojump_clock):
    web = Web({ROBOTS: robots("User-agent: trio_crawler", "Disallow: /"), HOME: html()})
    (skipped,) = await collect(Crawler([HOME], fetch=web))
    assert (type(skipped), skipped.reason) == (Skipped, Reason.ROBOTS)


# Where it is not there.


@for_each("status", [204, 400, 401, 403, 404, 410, 451])
async def test_a_status_of_4xx_allows_everything(autojump_clock, status):
    # What a page of an error says is not read.
    answer = Response(status, httpx.Headers(), b"User-agent: *\nDisallow: /\n" * (status > 299))
    web = Web(site_of(5) | {ROBOTS: answer})
    assert (await Crawler([HOME], fetch=web).crawl()).pages == 6
    assert web.hits[ROBOTS] == 1


TROUBLES = {
    "429": Response(429),
    "500": Response(500),
    "502": Response(502),
    "503": Response(503),
    "refused": Fault(Reason.CONNECTION_REFUSED, "no", Phase.CONNECT),
    "reset": Fault(Reason.RESET, "no", Phase.READ),
    "dns": Fault(Reason.DNS, "no", Phase.RESOLVE),
    "connect_timeout": Fault(Reason.CONNECT_TIMEOUT, "no", Phase.CONNECT),
}


def at_first(times: int, trouble: Answer, then: Answer) -> Callable[[Job], Answer]:
    """Answer so many times with trouble."""
    answers = iter([trouble] * times)
    return lambda job: next(answers, then)


@pytest.mark.parametrize("trouble", TROUBLES)
async def test_as_long_as_robots_txt_cannot_be_had_nothing_else_is_asked_for(
    autojump_clock, trouble
):
    rules = at_first(3, TROUBLES[trouble], NO_SECRETS)
    site = site_of(20) | {ROBOTS: rules, HOME + "secret": html()}
    log = Log(Web(site, delay=0.1))
    crawler = Crawler([HOME, HOME + "secret"], fetch=log, workers=50)
    outcomes = await collect(crawler)
    assert log.urls[:4] == [ROBOTS] * 4
    assert log.urls.count(ROBOTS) == 4
    assert crawler.statistics().pages == 21
    assert {o.url for o in outcomes if isinstance(o, Skipped)} == {HOME + "secret"}
    # Half a second, one and two, halved at random, behind three answers.
    assert 1.75 - 1e-6 <= log.times(ROBOTS)[3] - 0.3 <= 3.5 + 1e-6


@pytest.mark.parametrize("trouble", TROUBLES)
async def test_a_robots_txt_that_never_answers_ends_its_host_after_few_requests(
    autojump_clock, trouble
):
    site = site_of(20) | {OTHER + "robots.txt": TROUBLES[trouble]}
    site[HOME] = html(OTHER, OTHER + "1", *(f"/{n}" for n in range(20)))
    log = Log(Web(site, delay=0.1))
    outcomes = await collect(Crawler([HOME], fetch=log, scope=everything))
    ended = [outcome for outcome in outcomes if outcome.url.startswith(OTHER)]
    assert len(ended) == 2
    answer = TROUBLES[trouble]
    if isinstance(answer, Response):
        expected = (Skipped, Reason.ROBOTS_UNAVAILABLE)
    else:
        expected = (Failure, answer.reason)
    assert {(type(outcome), outcome.reason) for outcome in ended} == {expected}
    assert {url for url in log.urls if url.startswith(OTHER)} == {OTHER + "robots.txt"}
    assert len(log.times(OTHER + "robots.txt")) <= 6
    assert sum(isinstance(outcome, Page) for outcome in outcomes) == 21
    assert trio.current_time() <= 32


@pytest.mark.parametrize("reason", [Reason.TLS, Reason.BAD_REPLY, Reason.TOO_LARGE])
async def test_a_fault_that_will_not_pass_is_not_waited_for(autojump_clock, reason):
    log = Log(Web({ROBOTS: Fault(reason, "so it is")}))
    (failure,) = await collect(Crawler([HOME], fetch=log))
    assert (type(failure), failure.reason) == (Failure, reason)
    assert log.urls == [ROBOTS]


# Redirects.


def chain(length: int, last: Answer) -> dict[str, Answer]:
    """Lead from robots.txt over so many redirects, in turns on two hosts, to an answer."""
    urls = [ROBOTS, *(f"{(OTHER, HOME)[n % 2]}r{n}" for n in range(length))]
    hops = {url: redirect(target) for url, target in pairwise(urls)}
    return hops | {urls[-1]: last}


@pytest.mark.parametrize("length", [1, 5])
async def test_five_redirects_are_followed_on_the_way_to_robots_txt(autojump_clock, length):
    log = Log(Web(site_of(3) | chain(length, NO_SECRETS), delay=1))
    outcomes = await collect(Crawler([HOME, HOME + "secret"], fetch=log))
    assert {o.url for o in outcomes if isinstance(o, Skipped)} == {HOME + "secret"}
    assert [job.purpose for _, job in log.asked[: length + 1]] == [Purpose.ROBOTS] * (length + 1)
    assert min(log.times(HOME)) == length + 1
    # Neither scope nor robots.txt of the other host is asked.
    assert OTHER + "robots.txt" not in log.urls


async def test_with_the_sixth_redirect_everything_is_allowed(autojump_clock):
    log = Log(Web(site_of(3) | chain(6, NO_SECRETS) | {HOME + "secret": html()}, delay=1))
    outcomes = await collect(Crawler([HOME, HOME + "secret"], fetch=log))
    assert all(isinstance(outcome, Page) for outcome in outcomes)
    assert f"{HOME}r5" not in log.urls


@pytest.mark.parametrize("target", ["http://[x", "ftp://site.test/robots.txt", ROBOTS])
async def test_a_robots_txt_redirected_to_nowhere_or_itself_allows_everything(
    autojump_clock, target
):
    log = Log(Web(site_of(3) | {ROBOTS: redirect(target)}))
    assert (await Crawler([HOME], fetch=log).crawl()).pages == 4
    assert len(log.times(ROBOTS)) <= 6


async def test_two_hosts_whose_robots_txt_lead_to_each_other_are_both_crawled(autojump_clock):
    site = site_of(5) | site_of(5, OTHER)
    site |= {ROBOTS: redirect(OTHER + "robots.txt"), OTHER + "robots.txt": redirect(ROBOTS)}
    crawler = Crawler([HOME, OTHER], fetch=Web(site, delay=1))
    assert len(await collect(crawler)) == 12
    assert crawler.statistics().pages == 12


@pytest.mark.parametrize("trouble", ["503", "refused"])
async def test_a_robots_txt_redirected_to_a_host_in_trouble_is_waited_for_in_bounds(
    autojump_clock, trouble
):
    site = site_of(5) | {ROBOTS: redirect(OTHER + "robots.txt")}
    log = Log(Web(site | {OTHER + "robots.txt": TROUBLES[trouble]}, delay=0.1))
    outcomes = await collect(Crawler([HOME], fetch=log))
    assert not [outcome for outcome in outcomes if isinstance(outcome, Page)]
    assert set(log.urls) == {ROBOTS, OTHER + "robots.txt"}
    assert len(log.urls) <= 12


# As long as it is fresh.


def dated(answer: Response, etag: str) -> Response:
    return with_header(answer, "ETag", etag)


async def test_a_robots_txt_is_asked_for_again_after_a_day_and_conditionally(autojump_clock):
    def answer(job: Job) -> Response:
        return Response(304) if job.validator else dated(NO_SECRETS, '"v1"')

    site = site_of(60) | {ROBOTS: answer}
    site[HOME + "50"] = html("/secret")
    log = Log(Web(site, delay=1))
    crawler = Crawler([HOME], fetch=log, politeness=Politeness(delay=3600))
    outcomes = await collect(crawler)
    jobs = [job for _, job in log.asked if job.url == ROBOTS]
    assert [job.validator and job.validator.etag for job in jobs] == [None, '"v1"', '"v1"']
    times = log.times(ROBOTS)
    for before, after in pairwise(times):
        # Not sooner, and before the next page that is asked for.
        assert FRESH < after - before <= FRESH + 2 * 3600 + 1
    # The rules are still there.
    assert crawler.statistics().pages == 61
    pages = {outcome.url: outcome for outcome in outcomes}
    assert pages[HOME + "50"].rejected == ((HOME + "secret", Reason.ROBOTS),)


async def test_new_rules_hold_from_then_on_for_what_waits(autojump_clock):
    rules = at_first(1, robots(""), robots("User-agent: *", "Disallow: /5"))
    log = Log(Web(site_of(60) | {ROBOTS: rules}, delay=1))
    crawler = Crawler([HOME], fetch=log, politeness=Politeness(delay=3600))
    outcomes = await collect(crawler)
    assert len(log.times(ROBOTS)) == 3
    skipped = {outcome.url for outcome in outcomes if isinstance(outcome, Skipped)}
    assert skipped == {f"{HOME}5{n}" for n in range(10)}
    assert not skipped & set(log.urls)


async def test_a_day_later_a_robots_txt_in_trouble_holds_as_it_was_and_is_asked_for_again(
    autojump_clock,
):
    troubled = iter([NO_SECRETS] + [Response(503)] * 4)
    rules = {ROBOTS: lambda job: next(troubled, NO_SECRETS)}
    site = site_of(30) | rules | {"/29": html("/secret")}
    log = Log(Web(site, delay=1))
    crawler = Crawler([HOME], fetch=log, politeness=Politeness(delay=3600))
    outcomes = await collect(crawler)
    assert len(outcomes) == crawler.statistics().pages == 31
    assert log.urls.count(ROBOTS) == 6
    pages = {outcome.url: outcome for outcome in outcomes}
    assert pages[HOME + "29"].rejected == ((HOME + "secret", Reason.ROBOTS),)


async def test_rules_that_were_forgotten_while_they_were_asked_for_are_asked_for_whole(
    autojump_clock,
):
    # Nearly all that one file may have, and more of them than are kept.
    longest = (f"Disallow: /{number}{'x' * 16_000}" for number in range(30))
    long = robots("User-agent: *", "Disallow: /secret", *longest)
    others = [f"http://other{number}.test/" for number in range(8)]
    web = Web(
        site_of(30)
        | {HOME + "29": html("/secret")}
        | {ROBOTS: lambda job: Response(304) if job.validator else dated(long, '"v1"')}
        | {origin + "robots.txt": long for origin in others}
        | {origin: html() for origin in others}
    )
    asked_again = trio.Event()

    async def meanwhile(job: Job) -> Answer:
        """Let the files of the others come while that of the first is asked for again."""
        if job.url == ROBOTS and job.validator:
            asked_again.set()
            await trio.sleep(100)
        elif job.purpose is Purpose.ROBOTS and job.url != ROBOTS:
            await asked_again.wait()
        return await web(job)

    log = Log(meanwhile)
    crawler = Crawler([HOME, *others], fetch=log, politeness=Politeness(delay=3600))
    pages = {outcome.url: outcome for outcome in await collect(crawler, math.inf)}
    assert crawler.statistics().pages == 31 + 8
    assert pages[HOME + "29"].rejected == ((HOME + "secret", Reason.ROBOTS),)
    validators = [job.validator for _, job in log.asked if job.url == ROBOTS]
    assert [validator and validator.etag for validator in validators] == [None, '"v1"', None]


# Not obeyed.


async def test_without_robots_none_is_asked_for_and_everything_is_allowed(autojump_clock):
    site = site_of(5) | {ROBOTS: robots("User-agent: *", "Disallow: /", "Crawl-delay: 9")}
    log = Log(Web(site, delay=1))
    crawler = Crawler([HOME], fetch=log, politeness=Politeness(robots=False))
    assert len(await collect(crawler)) == 6
    assert ROBOTS not in log.urls
    assert trio.current_time() == 3


async def test_without_robots_the_file_is_still_what_tells_whether_a_host_is_there(
    autojump_clock,
):
    broken = {f"{HOME}{n}": html(status=500) for n in (1, 2)}
    site = site_of(20) | broken | {ROBOTS: robots("User-agent: *", "Disallow: /")}
    log = Log(Web(site, delay=1))
    gently = Politeness(robots=False, per_host=1)
    outcomes = await collect(Crawler([HOME], fetch=log, politeness=gently))
    # After two troubles in a row, once; what it says is not obeyed.
    assert log.urls[:5] == [HOME, HOME + "0", HOME + "1", HOME + "2", ROBOTS]
    assert log.urls.count(ROBOTS) <= 2
    assert len([outcome for outcome in outcomes if isinstance(outcome, Page)]) == 21


# Whatever it holds.

RULES = "User-agent: *\nDisallow: /secret\n"
HOSTILE = {
    "NUL bytes": b"\0" * 1000 + RULES.encode(),
    "NUL bytes between": RULES.replace("\n", "\n\0\0\n").encode(),
    "UTF-16": RULES.encode("utf-16"),
    "UTF-16 without a mark": RULES.encode("utf-16-le"),
    "a mark before": b"\xef\xbb\xbf" + RULES.encode(),
    "HTML": b"<!doctype html><html><body><h1>Disallow: /</h1></body></html>",
    "random bytes": bytes(range(256)) * 400,
    "nothing": b"",
    "one long line": b"Disallow: /" + b"*a" * 100_000,
}


@for_each("body", HOSTILE.values(), ids=HOSTILE)
async def test_whatever_robots_txt_holds_the_crawl_goes_on(body):
    web = Web(site_of(5) | {ROBOTS: Response(200, body=body)})
    assert (await Crawler([HOME], fetch=web).crawl()).pages == 6


@pytest.mark.parametrize("name", ["NUL bytes between", "UTF-16", "a mark before"])
async def test_rules_in_an_odd_encoding_are_obeyed(name):
    web = Web({ROBOTS: Response(200, body=HOSTILE[name]), HOME: html("/secret")})
    (page,) = await collect(Crawler([HOME], fetch=web))
    assert page.rejected == ((HOME + "secret", Reason.ROBOTS),)


async def test_of_a_robots_txt_of_100_mb_only_the_first_500_kib_are_read():
    within = b"User-agent: *\nDisallow: /secret\n#" + b"x" * MAX_BYTES + b"\n"
    body = within + b"Disallow: /\n" * ((100_000_000 - len(within)) // 12)
    web = Web(site_of(5) | {ROBOTS: Response(200, body=body)})
    crawler = Crawler([HOME, HOME + "secret"], fetch=web)
    with trio.fail_after(5):
        outcomes = await collect(crawler)
    assert crawler.statistics().pages == 6
    assert {o.url for o in outcomes if isinstance(o, Skipped)} == {HOME + "secret"}


# Stopped while it is under way.


@pytest.mark.parametrize("seconds", [0.5, 1.5, 2.5])
@pytest.mark.parametrize(
    "answer", [NO_SECRETS, robots("Sitemap: /s.xml"), redirect("/r"), Response(503)]
)
async def test_a_crawl_that_is_stopped_while_robots_txt_is_under_way_ends(
    autojump_clock, answer, seconds
):
    site = site_of(5) | {ROBOTS: answer, HOME + "r": NO_SECRETS}
    crawler = Crawler([HOME], fetch=Web(site, delay=1), limits=Limits(max_seconds=seconds))
    outcomes = await collect(crawler)
    assert all(isinstance(outcome, (Page, Skipped)) for outcome in outcomes)
    assert trio.current_time() <= 1 + seconds


async def test_a_crawl_that_is_stopped_while_the_file_of_a_second_host_is_under_way_ends(
    autojump_clock,
):
    rules = {ROBOTS: NO_SECRETS, OTHER + "robots.txt": robots(f"Sitemap: {OTHER}s.xml")}
    web = Web(
        {HOME: html(OTHER)} | rules, delay=lambda job: 10 if job.url.startswith(OTHER) else 1
    )
    crawler = Crawler([HOME], fetch=web, scope=everything)
    async with crawler.outcomes() as outcomes:
        await anext(outcomes)
        with trio.move_on_after(3):
            await anext(outcomes)
        crawler.stop()
        (skipped,) = [outcome async for outcome in outcomes]
    assert (skipped.url, skipped.reason) == (OTHER, Reason.STOPPED)


# What pages, headers and links say of not following.


def page_with(head: str = "", *anchors: str, header: str | None = None) -> Response:
    headers = [("content-type", "text/html")] + [("X-Robots-Tag", header)] * bool(header)
    text = f"<!doctype html><html><head><title>t</title>{head}</head><body>{''.join(anchors)}"
    return Response(200, httpx.Headers(headers), text.encode())


def link(url: str, rel: str = "") -> str:
    return f'<a rel="{rel}" href="{url}">x</a>' if rel else f'<a href="{url}">x</a>'


META = '<meta name="robots" content="{}">'
FORMS = {
    "link": (page_with("", link("/a", "nofollow")), Reason.REL_NOFOLLOW),
    "link among others": (page_with("", link("/a", "noopener NoFollow")), Reason.REL_NOFOLLOW),
    "meta": (page_with(META.format("NoFollow"), link("/a")), Reason.META_NOFOLLOW),
    "meta none": (page_with(META.format("none"), link("/a")), Reason.META_NOFOLLOW),
    "header": (page_with("", link("/a"), header="nofollow"), Reason.HEADER_NOFOLLOW),
    "header none": (page_with("", link("/a"), header="none"), Reason.HEADER_NOFOLLOW),
}


@for_each("page, reason", FORMS.values(), ids=FORMS)
async def test_each_form_of_nofollow_is_obeyed_with_a_reason_of_its_own(
    autojump_clock, page, reason
):
    web = Web({HOME: page, "/a": html()})
    (home,) = await collect(Crawler([HOME], fetch=web))
    assert (home.links, home.rejected) == ((), ((HOME + "a", reason),))
    assert web.hits[HOME + "a"] == 0


@for_each("page, reason", FORMS.values(), ids=FORMS)
async def test_nofollow_may_be_ignored(autojump_clock, page, reason):
    web = Web({HOME: page, "/a": html()})
    outcomes = await collect(Crawler([HOME], fetch=web, politeness=Politeness(nofollow=False)))
    assert [outcome.url for outcome in outcomes] == [HOME, HOME + "a"]
    assert outcomes[0].rejected == ()


async def test_nofollow_is_obeyed_though_robots_txt_is_not(autojump_clock):
    web = Web({HOME: FORMS["link"][0], "/a": html()})
    (home,) = await collect(Crawler([HOME], fetch=web, politeness=Politeness(robots=False)))
    assert home.rejected == ((HOME + "a", Reason.REL_NOFOLLOW),)


@for_each(
    "header, followed",
    [
        ("otherbot: nofollow", True),
        ("mybot: nofollow", False),
        ("MyBot: noindex, nofollow", False),
        ("otherbot: noindex, nofollow", True),
        ("unavailable_after: 25 Jun 2030 15:00:00 PST, nofollow", False),
    ],
)
async def test_an_x_robots_tag_for_another_agent_does_not_count(autojump_clock, header, followed):
    web = Web({HOME: page_with("", link("/a"), header=header), "/a": html()})
    await collect(Crawler([HOME], fetch=web, politeness=Politeness(agent="mybot/1.0")))
    assert web.hits[HOME + "a"] == followed


@pytest.mark.parametrize(("name", "followed"), [("mybot", False), ("otherbot", True)])
async def test_a_meta_element_for_another_agent_does_not_count(autojump_clock, name, followed):
    head = f'<meta name="{name}" content="nofollow">'
    web = Web({HOME: page_with(head, link("/a")), "/a": html()})
    await collect(Crawler([HOME], fetch=web, politeness=Politeness(agent="mybot/1.0")))
    assert web.hits[HOME + "a"] == followed


async def test_noindex_is_recorded_and_the_links_are_followed(autojump_clock):
    page = page_with(META.format("noindex, noarchive"), link("/a"), header="noindex, nosnippet")
    outcomes = await collect(Crawler([HOME], fetch=Web({HOME: page, "/a": html()})))
    assert [outcome.url for outcome in outcomes] == [HOME, HOME + "a"]
    assert set(outcomes[0].robots) == {"noindex", "noarchive", "nosnippet"}
    assert len(outcomes[0].robots) == 3
    assert outcomes[1].robots == ()


@pytest.mark.parametrize("nofollow_first", [True, False])
async def test_a_url_that_is_linked_elsewhere_without_nofollow_is_crawled(
    autojump_clock, nofollow_first
):
    site = {HOME: html("/n", "/f"), "/n": FORMS["link"][0], "/f": html("/a"), "/a": html()}
    late = HOME + ("f" if nofollow_first else "n")
    web = Web(site, delay=lambda job: 5 if job.url == late else 1)
    outcomes = await collect(Crawler([HOME], fetch=web))
    assert {outcome.url for outcome in outcomes} == {HOME, HOME + "n", HOME + "f", HOME + "a"}
    pages = {outcome.url: outcome for outcome in outcomes}
    assert pages[HOME + "a"].referrer == HOME + "f"


async def test_a_url_linked_twice_on_one_page_once_without_nofollow_is_crawled(autojump_clock):
    web = Web({HOME: page_with("", link("/a", "nofollow"), link("/a")), "/a": html()})
    assert len(await collect(Crawler([HOME], fetch=web))) == 2
