"""A refresh asks for a few pages twice, and then knows what differs at each fetch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from random import Random

import httpx
import pytest
import trio
from cases import for_each

from trio_crawler import Crawler, Fault, History, Job, Politeness, Reason, Response, SqliteFrontier
from trio_crawler.model import Page
from trio_crawler.net.wrapping import Recorder, recording
from trio_crawler.store import Change

HOME = "http://site.test/"
HTML = httpx.Headers({"content-type": "text/html; charset=utf-8"})
QUOTES = ("All men by nature desire to know.", "Know thyself.", "Nothing endures but change.")

# Each returns what an application writes at its nth answer.
NOISE: dict[str, Callable[[int], str]] = {
    "a token": lambda n: f"<p>Your request: <code>{n:08x}</code>",
    "a captcha": lambda n: f"<p>Type this:</p><pre>{n * 7919 % 10_000:04}</pre><p>Thank you.</p>",
    "an age": lambda n: f"<table><tr><td>Started<td>{n} minutes<td>up</table>",
    "a quotation": lambda n: f"<h2>Quotation</h2><q>{n} {QUOTES[n % 3]}</q><cite>{n}</cite><hr>",
    "a title": lambda n: f"<title>({n}) Inbox</title>",
    "a link": lambda n: f"<p>See also <a rel=nofollow href='/random/{n}'>{n}</a>.",
    "a number of lines": lambda n: "<ul>" + f"<li>{n}" * (1 + n % 3) + "</ul><p>End.",
}


class Application:
    """A site of numbered articles that writes `noise` into each page, anew at each answer.

    `texts` are the texts of articles that were edited. `asked` are the paths of all requests.
    """

    def __init__(self, noise: Callable[[int], str], articles: int = 45) -> None:
        self.noise = noise
        self.articles = articles
        self.texts: dict[str, str] = {}
        self.asked: list[str] = []
        self.second: Callable[[], Response | Fault] | None = None

    async def __call__(self, job: Job) -> Response | Fault:
        await trio.sleep(0.01)
        path = "/" + job.url.removeprefix(HOME)
        self.asked.append(path)
        if path == "/robots.txt":
            return Response(404)
        if job.repeat and self.second is not None:
            return self.second()
        if path == "/":
            links = "".join(f"<li><a href=/p/{n}>{n}</a>" for n in range(self.articles))
            return Response(200, HTML, f"<title>Home</title>{links}".encode())
        text = self.texts.get(path, f"The text of article {path}.")
        body = f"<h1>{path}</h1>{self.noise(len(self.asked))}<p>{text}<p>It ends.<p>Imprint"
        return Response(200, HTML, f"<html>{body}</html>".encode())

    async def walk(self, directory: Path, **about: object) -> list[str]:
        """Walk through the site, and return the paths that were asked for."""
        self.asked, before = [*self.asked], len(self.asked)
        async with SqliteFrontier(directory, refresh=True) as frontier:
            await Crawler([HOME], fetch=self, frontier=frontier, **about).crawl()
        return self.asked[before:]


def changes(directory: Path) -> dict[str, list[Change]]:
    found: dict[str, list[Change]] = {}
    with History(directory) as history:
        for change in history.changes():
            found.setdefault(change.kind, []).append(change)
    return found


def asked_twice(paths: list[str]) -> int:
    return sum(times - 1 for times in Counter(paths).values())


@pytest.mark.parametrize("noise", NOISE.values(), ids=NOISE)
async def test_a_site_without_edits_has_no_change_although_each_answer_differs(
    noise: Callable[[int], str], tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    site = Application(noise)
    await site.walk(tmp_path)
    for _ in range(2):
        await site.walk(tmp_path)
        found = changes(tmp_path)
        assert set(found) == {"unchanged"}
        noisy = [change for change in found["unchanged"] if "differs at each" in change.detail]
        assert len(noisy) == site.articles


async def test_an_edit_is_told_between_pages_of_noise(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    site = Application(lambda n: "".join(noise(n) for noise in NOISE.values()))
    await site.walk(tmp_path)
    site.texts["/p/7"] = "Another text."
    await site.walk(tmp_path)
    found = changes(tmp_path)
    assert [change.url for change in found["changed"]] == [f"{HOME}p/7"]
    assert found["changed"][0].detail.startswith("text: ")
    assert set(found) == {"changed", "unchanged"}


async def test_an_edit_of_the_page_that_is_asked_for_twice_is_told(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    site = Application(NOISE["a captcha"], articles=1)
    await site.walk(tmp_path)
    site.texts["/p/0"] = "Another text."
    assert asked_twice(await site.walk(tmp_path)) == 1
    assert [change.url for change in changes(tmp_path)["changed"]] == [f"{HOME}p/0"]


async def test_an_edit_next_to_the_noise_is_told(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    site = Application(lambda n: f"<pre>{n}</pre>")
    await site.walk(tmp_path)
    site.texts["/p/7"] = "Another text."
    await site.walk(tmp_path)
    assert [change.url for change in changes(tmp_path)["changed"]] == [f"{HOME}p/7"]


async def test_one_page_in_twenty_of_a_shape_is_asked_for_twice_in_a_refresh_and_none_else(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    site = Application(NOISE["a token"], articles=100)
    assert asked_twice(await site.walk(tmp_path)) == 0
    assert asked_twice(await site.walk(tmp_path)) == 5
    with History(tmp_path) as history:
        assert [history.repeated(walk) for walk in (1, 2)] == [0, 5]
        # Each page has one outcome, and a second request is no retry.
        statistics = history.statistics()
        assert (statistics.admitted, statistics.pages, statistics.retries) == (101, 101, 0)
        assert {outcome.tries for outcome in history.outcomes() if isinstance(outcome, Page)} == {
            1
        }


async def test_a_site_that_answers_alike_is_asked_once(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    site = Application(lambda n: f"<p>Generated in 0.{n:03} seconds<!-- {n} -->")
    await site.walk(tmp_path)
    assert asked_twice(await site.walk(tmp_path)) == 0
    assert set(changes(tmp_path)) == {"unchanged"}


async def test_each_request_waits_for_its_turn(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    site = Application(NOISE["a token"], articles=30)
    await site.walk(tmp_path)
    times: list[float] = []

    class Timed(Application):
        async def __call__(self, job: Job) -> Response | Fault:
            times.append(trio.current_time())
            return await site(job)

    timed = Timed(site.noise)
    before = len(site.asked)
    await timed.walk(tmp_path, politeness=Politeness(delay=2.0))
    assert asked_twice(site.asked[before:]) == 2
    assert min(late - early for early, late in pairwise(times)) >= 2.0 - 1e-9


BAD: dict[str, Callable[[], Response | Fault]] = {
    "a fault": lambda: Fault(Reason.RESET),
    "an error": lambda: Response(503),
    "a redirect": lambda: Response(302, httpx.Headers({"location": "/elsewhere"})),
    "not modified": lambda: Response(304),
    "another type": lambda: Response(200, httpx.Headers({"content-type": "image/png"}), b"x"),
    "a cut body": lambda: Response(200, HTML, b"<p>x", flaw=Reason.TOO_LARGE),
    "a large body": lambda: Response(200, HTML, b"<p>" + b"x" * 300_000),
}


@for_each("second", BAD.values(), ids=BAD)
async def test_the_first_answer_is_the_outcome_whatever_the_second_is(
    second: Callable[[], Response | Fault],
    tmp_path: Path,
    autojump_clock: trio.testing.MockClock,
) -> None:
    site = Application(NOISE["a token"], articles=3)
    await site.walk(tmp_path)
    site.second = second
    assert asked_twice(await site.walk(tmp_path)) == 1
    with History(tmp_path) as history:
        assert {outcome.status for outcome in history.outcomes()} == {200}
        assert history.statistics().pages == 4


async def test_a_page_whose_host_is_given_up_before_the_second_request_has_its_first_outcome(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    site = Application(NOISE["a token"], articles=3)
    await site.walk(tmp_path)
    dead = False

    class Dying(Application):
        async def __call__(self, job: Job) -> Response | Fault:
            nonlocal dead
            answer = await site(job)
            if dead:
                return Fault(Reason.CONNECTION_REFUSED)
            dead = job.url.endswith("/p/0")
            return answer

    await Dying(site.noise).walk(tmp_path, workers=1)
    with History(tmp_path) as history:
        outcomes = {outcome.url: outcome for outcome in history.outcomes()}
    first = outcomes[f"{HOME}p/0"]
    assert isinstance(first, Page)
    assert (first.status, first.title) == (200, None)
    assert first.size > 0


async def test_the_exchange_to_archive_is_that_of_the_outcome(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    site = Application(NOISE["a number of lines"], articles=1)
    await site.walk(tmp_path)
    recorder = Recorder(lambda exchange: b"")
    async with SqliteFrontier(tmp_path, refresh=True) as frontier:
        fetch = recording(site, recorder)
        await Crawler([HOME], fetch=fetch, frontier=frontier).crawl()
    with History(tmp_path) as history:
        sizes = {page.url: page.size for page in history.outcomes() if isinstance(page, Page)}
        assert history.repeated() == 1
    exchange = recorder.pop(f"{HOME}p/0")
    assert exchange is not None
    assert exchange.size == sizes[f"{HOME}p/0"]


class Killed(BaseException):
    pass


async def test_a_run_that_is_killed_at_the_second_request_loses_nothing(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    site = Application(NOISE["a token"], articles=60)
    await site.walk(tmp_path)
    random, kills = Random(3), 0

    class Struck(Application):
        async def __call__(self, job: Job) -> Response | Fault:
            nonlocal kills
            if job.repeat and kills < 4:
                # At any moment of the second request.
                await trio.sleep(random.uniform(0, 0.02))
                kills += 1
                raise Killed
            return await site(job)

    struck, before = Struck(site.noise), len(site.asked)
    for _ in range(4):
        async with SqliteFrontier(tmp_path, refresh=kills == 0) as frontier:
            with pytest.raises(BaseExceptionGroup) as raised:
                await Crawler([HOME], fetch=struck, frontier=frontier).crawl()
            assert raised.value.split(Killed)[1] is None
    async with SqliteFrontier(tmp_path) as frontier:
        await Crawler([HOME], fetch=struck, frontier=frontier).crawl()
    with History(tmp_path) as history:
        statistics = history.statistics()
        assert (history.walks, statistics.admitted, statistics.pages) == (2, 61, 61)
        assert history.repeated() == 3
        urls = [outcome.url for outcome in history.outcomes()]
    assert len(urls) == len(set(urls))
    assert set(changes(tmp_path)) == {"unchanged"}
    # Of each run at most the URLs in flight are asked for again.
    assert asked_twice(site.asked[before:]) <= 4 * 10 + 3
