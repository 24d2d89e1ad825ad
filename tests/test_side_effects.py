"""A crawl with credentials: it changes nothing on the site, and says if it is logged out."""

from __future__ import annotations

import json
import math
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any

import httpx
import pytest
import trio
from cases import for_each
from cli.asked import pages
from cli.command import here
from sites.raw import Request, html, redirect, threaded_raw_server
from sites.webs import HOME, collect

from trio_crawler import (
    Crawler,
    Fetch,
    HttpFetch,
    HttpxFetch,
    Job,
    Page,
    Politeness,
    Reason,
    Redirect,
    Sitemaps,
    Skipped,
    Statistics,
)
from trio_crawler.cli.main import report_command
from trio_crawler.model import Answer, Outcome, RejectedLink
from trio_crawler.net import CookieStore, wrapping
from trio_crawler.report import CrawlFacts, Report, Warc
from trio_crawler.testing import Web
from trio_crawler.testing import html as page
from trio_crawler.testing import redirect as moved

MEMBERS = [f"/member/{number}" for number in range(30)]


class Members:
    """A members' area: a cookie opens it, and "log out", the first link, ends the session."""

    def __init__(self) -> None:
        self.session = True

    async def __call__(self, request: Request, stream: trio.abc.Stream) -> None:
        await stream.send_all(self.answer(request.target, request.headers.get("cookie", "")))

    def answer(self, target: str, cookie: str) -> bytes:
        """Return the answer to a request."""
        if target == "/robots.txt":
            return html(status=404)
        if target == "/logout":
            self.session = False
            return redirect("/login?next=/")
        if target.startswith("/login"):
            return html(title="Please log in")
        if not self.session or SimpleCookie(cookie).get("sid") is None:
            return redirect(f"/login?next={target}")
        return html("/logout", *MEMBERS, title=f"Member page {target}")


COOKIE = ["--cookie", "sid=1", "--per-host", "1"]


def test_a_crawl_with_a_cookie_does_not_log_itself_out(tmp_path: Path, capsys) -> None:
    lines, members = tmp_path / "a.jsonl", Members()
    with threaded_raw_server(members) as server:
        assert here(*COOKIE, "--jsonl", str(lines), server.url) == 0
        asked = pages(server)
    out = capsys.readouterr().out
    assert sorted(asked) == sorted(["/", *MEMBERS])
    assert members.session
    assert "Rejected links: 31 side_effect (--why lists them)" in out
    assert out.endswith(
        "\n31 links that may change something (log out, delete, edit) were not followed, as "
        "credentials are sent (--follow-side-effects follows such links)\n"
    )
    assert "logged out" not in out
    records = map(json.loads, lines.read_text().splitlines())
    assert {record["kind"] for record in records} == {"page"}


def test_the_report_speaks_of_credentials_only_if_they_were_sent() -> None:
    report = Report()
    left = RejectedLink(f"{HOME}logout", Reason.SIDE_EFFECT)
    report.add(Page(HOME, 200, httpx.Headers(), b"", rejected=(left,)))
    for credentials, why in ((True, ", as credentials are sent"), (False, "")):
        facts = CrawlFacts(Statistics(), 1, seeds=[HOME], credentials=credentials)
        assert f" was not followed{why} (--follow-side-effects " in report.text(facts)


def test_a_crawl_that_logs_itself_out_says_so_and_so_does_the_report_of_its_directory(
    tmp_path: Path, capsys
) -> None:
    directory, members = str(tmp_path / "d"), Members()
    with threaded_raw_server(members) as server:
        here("-o", directory, *COOKIE, "--follow-side-effects", server.url)
        out = capsys.readouterr().out
        report_command.main([directory], standalone_mode=False)
        again = capsys.readouterr().out
    origin = server.url.rstrip("/")
    assert not members.session
    assert out.splitlines()[1] == (
        f"The crawl seems to be logged out: 31 of 32 URLs of {origin} lead to {origin}/login, "
        f"such as {origin}/logout"
    )
    assert out.splitlines()[:3] == again.splitlines()[:3]


# Which crawls keep out.


class LoginWeb(Web):
    """A web that says whether requests have credentials."""

    sends_credentials: Any = True


SITE = {
    "/": page("/item/5/delete/", "/leads", "/a"),
    "/leads": moved("/logout"),
    "/a": page("/b?action=edit"),
    "/logout": page(),
    "/item/5/delete/": page(),
    "/b?action=edit": page(),
}


async def refused(fetch: Fetch, seed: str = HOME, **politeness: Any) -> set[str]:
    crawler = Crawler(
        [seed], fetch=fetch, politeness=Politeness(**politeness), sitemaps=Sitemaps(follow=False)
    )
    found = set()
    for outcome in await collect(crawler):
        if isinstance(outcome, Redirect) and outcome.rejected is Reason.SIDE_EFFECT:
            found.add(outcome.target.removeprefix(HOME))
        elif isinstance(outcome, Page):
            links = (url for url, reason in outcome.rejected if reason is Reason.SIDE_EFFECT)
            found.update(url.removeprefix(HOME) for url in links)
    return found


ALL = {"item/5/delete/", "logout", "b?action=edit"}


@for_each(
    "kind, asked, expected",
    [
        (Web, None, set()),
        (Web, False, ALL),
        (Web, True, set()),
        (LoginWeb, None, ALL),
        (LoginWeb, False, ALL),
        (LoginWeb, True, set()),
    ],
)
async def test_links_with_side_effects_are_refused_by_default_only_with_credentials(
    autojump_clock, kind, asked, expected
) -> None:
    web = kind(SITE, delay=1)
    assert await refused(web, side_effects=asked) == expected
    assert {url.removeprefix(HOME) for url in web.hits}.isdisjoint(expected)


async def test_a_fetch_that_does_not_say_whether_it_sends_credentials_follows_none(
    autojump_clock,
) -> None:
    for inner, known in ((Web(SITE), set()), (LoginWeb(SITE), ALL)):

        async def silent(job: Job, inner: Web = inner) -> Answer:
            return await inner(job)

        assert await refused(silent) == ALL
        assert set(inner.hits).isdisjoint(HOME + path for path in ALL)
        assert await refused(wrapping(inner)(silent)) == known
    report = Report()
    report.add(good("", rejected=(RejectedLink(HOME + "logout", Reason.SIDE_EFFECT),)))
    hint = report.text(CrawlFacts(Statistics(), 1, seeds=[HOME], credentials=None))
    assert "not followed, as the fetch does not say that it sends no credentials" in hint
    assert "(Politeness(side_effects=True) follows such links)" in hint


async def test_a_wrapper_has_what_its_fetch_has() -> None:
    async with HttpFetch(seeds=[HOME], user_agent="me/1", auth=("a", "b")) as inner:

        @wrapping(inner)
        async def fetch(job: Job) -> Answer:
            return await inner(job)

        about: Any = fetch
        assert (about.user_agent, about.sends_credentials) == ("me/1", True)
        assert about.lookup == inner.lookup
        assert await about.lookup("http://127.0.0.1/") == math.inf
        assert not hasattr(fetch, "random")


async def test_a_seed_with_side_effects_is_fetched(autojump_clock) -> None:
    web = LoginWeb({"/logout": page("/"), "/": page("/logout")})
    assert await refused(web, f"{HOME}logout") == set()
    assert set(web.hits) == {HOME, f"{HOME}logout"}


async def test_the_fetch_of_an_archive_says_the_same(autojump_clock) -> None:
    assert await refused(Warc().recording(LoginWeb(SITE))) == ALL
    assert await refused(Warc().recording(Web(SITE))) == set()


async def test_a_fetch_that_says_something_else_is_an_error() -> None:
    fetch = LoginWeb({})
    fetch.sends_credentials = "yes"
    with pytest.raises(TypeError, match="the sends_credentials of fetch must be True or False"):
        Crawler([HOME], fetch=fetch)


@pytest.mark.parametrize("value", [1, "yes", []])
def test_side_effects_are_true_false_or_none(value: Any) -> None:
    with pytest.raises(TypeError, match="side_effects must be True, False or None"):
        Politeness(side_effects=value)


@for_each(
    "given, sends",
    [
        ({}, False),
        ({"headers": {"X-Key": "1"}}, False),
        ({"headers": {"cookie": "a=1"}}, True),
        ({"headers": {"AUTHORIZATION": "Bearer x"}}, True),
        ({"auth": ("user", "password")}, True),
        ({"cookies": CookieStore()}, True),
    ],
)
async def test_a_fetch_knows_whether_it_sends_credentials(given: Any, sends: bool) -> None:
    async with HttpFetch(seeds=[HOME], **given) as fetch:
        assert fetch.sends_credentials is sends
    transport = httpx.MockTransport(lambda request: httpx.Response(200))
    seeds = {"seeds": [HOME]} if "cookies" not in given and given else {}
    async with HttpxFetch(transport, **seeds, **given) as other:
        assert other.sends_credentials is sends


@pytest.mark.parametrize(
    ("given", "sends"),
    [
        ({}, False),
        ({"cookies": {"a": "1"}}, True),
        ({"headers": {"Authorization": "Bearer x"}}, True),
        ({"auth": ("user", "password")}, True),
    ],
)
async def test_the_credentials_of_a_client_count(given: Any, sends: bool) -> None:
    async with httpx.AsyncClient(**given) as client, HttpxFetch(client) as fetch:
        assert fetch.sends_credentials is sends


# Logged out.


def told(*outcomes: Outcome, credentials: bool | None = True) -> str:
    report = Report()
    for outcome in outcomes:
        report.add(outcome)
    facts = CrawlFacts(Statistics(), 1, seeds=[HOME], credentials=credentials)
    first = report.text(facts).partition("\n\n")[0].splitlines()[1:]
    return "\n".join(line for line in first if "logged out" in line)


def good(path: str, **more: Any) -> Page:
    return Page(HOME + path, 200, httpx.Headers(), b"", **more)


def login(number: int, to: str = "login") -> list[Outcome]:
    return [Redirect(f"{HOME}m/{n}", 302, f"{HOME}{to}?next={n}") for n in range(number)]


SAID = "The crawl seems to be logged out: "


@pytest.mark.parametrize(
    ("outcomes", "expected"),
    [
        ([good(""), *login(5)], f"5 of 6 URLs of http://site.test lead to {HOME}login"),
        (
            [good(""), *login(9, "users/sign_in"), Redirect(f"{HOME}x", 302, f"{HOME}y")],
            f"9 of 11 URLs of http://site.test lead to {HOME}users/sign_in",
        ),
        ([good(""), *login(9, "")], f"9 of 10 URLs of http://site.test lead to {HOME}"),
        (
            [good("a"), good("b"), *(good(str(n), duplicate_of=f"{HOME}b") for n in range(5))],
            f"5 of 7 URLs of http://site.test are the same page as {HOME}b",
        ),
    ],
)
def test_most_urls_of_a_host_that_become_one_are_told(outcomes, expected) -> None:
    line = told(*outcomes)
    assert line.startswith(f"{SAID}{expected}, such as ")
    assert line == told(*reversed(outcomes))
    assert told(*outcomes, credentials=False) == told(*outcomes, credentials=None) == ""


def test_a_page_of_the_login_for_each_url_does_not_count() -> None:
    pages = [good(f"login?next={n}", duplicate_of=f"{HOME}login?next=0") for n in range(9)]
    line = told(good(""), *login(9), *pages, good("accounts/LogIn"))
    assert line.startswith(f"{SAID}9 of 10 URLs of http://site.test lead to {HOME}login, such as")


@for_each(
    "outcomes",
    [
        [good(""), *login(4)],
        [*(good(str(n)) for n in range(9)), *login(9)],
        login(9),
        [good(""), *login(9, "home"), *login(1, "x")],
        [good("b"), *(good(str(n), duplicate_of=f"{HOME}b") for n in range(9))],
        [good("a"), good("b"), *(good(str(n), folded_into=f"{HOME}b") for n in range(9))],
        [Skipped(f"{HOME}{n}", Reason.STOPPED) for n in range(9)],
    ],
    ids=["few", "half", "never in", "no login", "one page", "canonical", "skipped"],
)
def test_other_crawls_are_not_called_logged_out(outcomes) -> None:
    assert told(*outcomes) == ""
