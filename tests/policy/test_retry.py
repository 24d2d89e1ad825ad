"""What is tried again, after how long, and what a server may ask for."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from itertools import pairwise

import httpx
import pytest
import trio
from cases import for_each
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from sites.webs import HOME, collect

from trio_crawler import (
    Crawler,
    Fault,
    Job,
    Limits,
    Page,
    Phase,
    Politeness,
    Reason,
    Redirect,
    Response,
)
from trio_crawler.model import Purpose
from trio_crawler.policy.answers import (
    MAX_DELAY,
    backoff,
    blames_host,
    delay_after,
    is_doubtful_by_head,
    is_silent,
    is_transient,
    quota_reset,
    retry_after,
    tries_of_host,
)
from trio_crawler.testing import Web, fault, html, redirect

NOW = datetime(2026, 11, 21, 12, 0, 0, tzinfo=UTC)
SILENCE = Fault(Reason.TIMEOUT, phase=Phase.WAIT)


def asking(*values: str, status: int = 503) -> Response:
    """Answer with a Retry-After field for each value."""
    fields = [(b"Retry-After", value.encode()) for value in values]
    return Response(status, httpx.Headers(fields))


# The backoff.


def test_each_delay_is_twice_the_one_before():
    assert [backoff(tries, MAX_DELAY, 0) for tries in (1, 2, 3)] == [0.25, 0.5, 1.0]


def test_chance_at_most_doubles_a_delay():
    delays = [backoff(1, MAX_DELAY, number / 1000) for number in range(1000)]
    assert 0.25 <= min(delays) < 0.27
    assert 0.48 < max(delays) <= 0.5


@pytest.mark.parametrize("tries", [11, 12, 1000, 10**6])
def test_no_delay_is_longer_than_five_minutes(tries):
    assert backoff(tries, MAX_DELAY, 0) == 150
    assert backoff(tries, MAX_DELAY, 0.999999) <= 300


# What passes.


@for_each(
    "status, passes",
    [
        *((status, False) for status in (200, 301, 400, 403, 404, 408, 410, 428, 430)),
        *((status, True) for status in (429, 502, 503, 504)),
        *((status, False) for status in (501, 505)),
    ],
)
def test_only_the_statuses_of_a_busy_or_absent_server_may_pass(status, passes):
    assert is_transient(Response(status)) is passes


@pytest.mark.parametrize("answer", [Response(500), Response(599), SILENCE], ids=repr)
def test_what_may_be_the_url_or_its_host_is_asked_for_once_more(answer):
    assert is_transient(answer)
    assert is_transient(answer, 1)
    assert not is_transient(answer, 2)


def test_a_server_that_began_to_answer_and_did_not_end_is_not_asked_again():
    assert not is_transient(Fault(Reason.TIMEOUT, phase=Phase.READ))


def test_a_name_that_does_not_exist_loses_a_host_without_patience_after_two_tries():
    nameless, unanswered = Fault(Reason.NO_SUCH_HOST), Fault(Reason.DNS)
    assert [tries_of_host(nameless, tries) for tries in (1, 2, 4)] == [1, 2, 2]
    for answer in (unanswered, Response(503), Fault(Reason.CONNECTION_REFUSED)):
        assert [tries_of_host(answer, tries) for tries in (1, 2, 4)] == [1, 2, 4]


def test_a_closed_port_of_a_host_that_answers_on_another_one_is_lost_after_two_tries():
    refused, unreachable = Fault(Reason.CONNECTION_REFUSED), Fault(Reason.UNREACHABLE)
    up = partial(tries_of_host, neighbour_up=True)
    assert [up(refused, tries) for tries in (1, 2, 4)] == [1, 2, 2]
    for answer in (unreachable, Response(503)):
        assert [up(answer, tries) for tries in (1, 2, 4)] == [1, 2, 4]


def test_what_broke_on_the_way_may_pass_and_what_the_server_is_will_not():
    passed = {reason for reason in Reason if is_transient(Fault(reason))}
    connection = {
        Reason.DNS,
        Reason.NO_SUCH_HOST,
        Reason.CONNECTION_REFUSED,
        Reason.UNREACHABLE,
        Reason.CONNECT_TIMEOUT,
    }
    assert passed == connection | {Reason.NO_SOCKETS, Reason.RESET, Reason.INCOMPLETE}
    waited = {reason for reason in Reason if is_transient(Fault(reason, phase=Phase.WAIT))}
    assert waited == passed | {Reason.TIMEOUT}


def test_an_answer_blames_the_host_unless_it_is_about_the_url() -> None:
    statuses = {status for status in range(100, 600) if blames_host(Response(status))}
    assert statuses == {429, *range(500, 600)} - {501, 505}
    late = Fault(Reason.TIMEOUT, phase=Phase.READ)
    assert [blames_host(answer) for answer in (SILENCE, late)] == [True, False]


def test_an_error_by_head_is_doubtful_unless_get_would_have_it_too() -> None:
    statuses = {status for status in range(100, 600) if is_doubtful_by_head(Response(status))}
    assert statuses == set(range(400, 600)) - {401, 429, 502, 503, 504}
    faults = {reason for reason in Reason if is_doubtful_by_head(Fault(reason))}
    assert faults == {Reason.RESET, Reason.INCOMPLETE, Reason.BAD_REPLY, Reason.TIMEOUT}


def test_silence_is_an_answer_that_has_not_begun_in_time() -> None:
    for reason in Reason:
        silent = {phase for phase in Phase if is_silent(Fault(reason, phase=phase))}
        late = reason in (Reason.TIMEOUT, Reason.CONNECT_TIMEOUT)
        assert silent == (set(Phase) - {Phase.READ} if late else set())
    assert {status for status in range(100, 600) if is_silent(Response(status))} == {504}


# Retry-After.


@for_each(
    "value, seconds",
    [
        ("0", 0),
        ("7", 7),
        (" 7\t", 7),
        ("007", 7),
        ("0000000007", 7),
        ("299", 299),
        ("300", 300),
        ("301", 300),
        ("3600", 300),
        ("86400", 300),
    ],
)
def test_seconds_are_honoured_up_to_five_minutes(value, seconds):
    assert retry_after(asking(value).headers, NOW) == seconds


@for_each(
    "value",
    [
        *("-1", "-0", "+5", "5.5", "5,5", "1e2", "nan", "inf", "0x10", "5s", "5 6", "5;", '"5"'),
        *("", " ", "soon", "1_0", "\u0665", "\u00b2"),
        *("86401", "1000000000", "9" * 5000, "0" * 5000),
    ],
)
def test_nonsense_is_as_if_it_were_not_there(value):
    assert retry_after(asking(value).headers, NOW) is None


@for_each(
    "fields, seconds",
    [
        ({"RateLimit": '"default";r=0;t=30'}, 30),
        ({"RateLimit": '"burst";r=0;t=2, "day";r=0;t=70;x=1, "week";r=5;t=90'}, 70),
        ({"RateLimit": "limit=100, remaining=0, reset=30"}, 30),
        ({"RateLimit-Remaining": "0", "RateLimit-Reset": "30"}, 30),
        ([("RateLimit-Remaining", "0"), ("RateLimit-Reset", "30")] * 2, 30),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "30"}, 30),
        ({"X-Rate-Limit-Remaining": " 0", "X-Rate-Limit-Reset": "30 "}, 30),
        ({"X-RATELIMIT-REMAINING": "0", "X-RATELIMIT-RESET": "301"}, 300),
        ({"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": f"{NOW.timestamp() + 40:.0f}"}, 40),
        ({"X-RateLimit-Remaining": "0", "X-RateLimit-Reset-After": "1.5"}, 1.5),
    ],
)
def test_a_host_whose_quota_is_used_up_rests_until_it_says(fields, seconds):
    assert quota_reset(httpx.Headers(fields), NOW) == seconds


@for_each(
    "fields",
    [
        {},
        {"X-Limit": "0"},
        {"RateLimit": '"default";r=1;t=30'},
        {"RateLimit": '"default";r=10;t=30'},
        {"RateLimit": "limit=0, remaining=7, reset=30"},
        {"RateLimit-Remaining": "1", "RateLimit-Reset": "30"},
        {"RateLimit-Remaining": "0"},
        {"RateLimit-Reset": "30"},
        *({"RateLimit-Remaining": "0", "RateLimit-Reset": each} for each in ("-1", "nan", "soon")),
        *({"RateLimit-Remaining": "0", "RateLimit-Reset": each} for each in ("9" * 5000, "86401")),
        {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1700000000"},
    ],
)
def test_a_quota_with_something_left_or_without_sense_asks_for_nothing(fields):
    assert quota_reset(httpx.Headers(fields), NOW) is None


async def test_no_page_is_asked_for_before_the_quota_of_its_host_is_there_again(autojump_clock):
    starts = []

    async def ask(job: Job) -> Response:
        if job.url.endswith("/robots.txt"):
            return Response(404)
        starts.append(trio.current_time())
        await trio.sleep(0.1)
        answer = html("/a", "/b", "/c")
        quota = {"RateLimit-Remaining": "0", "RateLimit-Reset": "5"}
        return replace(answer, headers=httpx.Headers([*answer.headers.items(), *quota.items()]))

    await collect(Crawler([HOME], fetch=ask, politeness=Politeness(per_host=1)))
    assert min(after - before for before, after in pairwise(starts)) >= 5


@for_each(
    "value, seconds",
    [
        ("Sat, 21 Nov 2026 12:01:30 GMT", 90),
        ("Saturday, 21-Nov-26 12:01:30 GMT", 90),
        ("Sat Nov 21 12:01:30 2026", 90),
        ("21 nov 2026 12:1:30", 90),
        ("Sat, 21 Nov 2026 13:00:00 GMT", 300),
        ("Sat, 21 Nov 2026 12:00:00 GMT", 0),
        ("Sat, 21 Nov 2026 11:59:59 GMT", 0),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
    ],
)
def test_a_date_in_each_form_of_http_is_a_wait_until_then(value, seconds):
    assert retry_after(asking(value).headers, NOW) == seconds


def test_of_several_fields_the_longest_that_means_something_counts():
    assert retry_after(asking("5", "nonsense", "20", "-3").headers, NOW) == 20
    date = "Sat, 21 Nov 2026 12:00:40 GMT"
    assert retry_after(asking("5", date, "1000000000").headers, NOW) == 40
    assert retry_after(asking("5, 20").headers, NOW) is None


@given(st.binary(max_size=200).filter(lambda value: b"\n" not in value and b"\r" not in value))
def test_whatever_the_field_holds_the_answer_is_none_or_a_wait_of_five_minutes_at_most(value):
    seconds = retry_after(httpx.Headers([(b"retry-after", value)]), NOW)
    assert seconds is None or 0 <= seconds <= 300


def test_a_server_that_asks_for_less_than_the_backoff_gets_the_backoff():
    assert 0.25 <= delay_after(asking("0"), 1, NOW, 0.5) <= 0.5
    assert 1 <= delay_after(asking("0"), 3, NOW, 0.5) <= 2
    assert 2 <= delay_after(asking("1"), 4, NOW, 0.5) <= 4
    assert delay_after(asking("9"), 3, NOW, 0.5) == 9
    assert 0.25 <= delay_after(fault(), 1, NOW, 0.5) <= 0.5


# In a crawl.


class Times:
    """A web of one page, without robots.txt, that answers one thing after another; notes when."""

    def __init__(self, *answers: Response | Fault) -> None:
        self.at: list[float] = []
        self._answers = list(answers)

    async def __call__(self, job: Job) -> Response | Fault:
        if job.purpose is not Purpose.PAGE:
            await trio.lowlevel.checkpoint()
            return Response(404)
        self.at.append(trio.current_time())
        await trio.lowlevel.checkpoint()
        return self._answers[min(len(self.at), len(self._answers)) - 1]


async def test_an_hour_is_cut_to_five_minutes_and_a_billion_seconds_to_the_backoff(
    autojump_clock,
):
    web = Times(asking("3600"), asking("1000000000"), html())
    await collect(Crawler([HOME], fetch=web, politeness=Politeness(robots=False)))
    assert web.at[1] == pytest.approx(300, abs=0.001)
    assert 0.5 <= web.at[2] - web.at[1] <= 1


async def test_the_only_worker_goes_on_at_another_host_while_a_url_waits_for_its_retry(
    autojump_clock,
):
    answers = iter([asking("200"), html()])
    busy = "http://busy.test/"
    leaves = {f"/{number}": html() for number in range(20)}
    web = Web({"/": html(*leaves), busy: lambda job: next(answers), **leaves}, delay=1)
    crawler = Crawler([HOME, busy], fetch=web, workers=1)
    ended: dict[str, float] = {}
    async with crawler.outcomes() as outcomes:
        async for outcome in outcomes:
            ended[outcome.url] = trio.current_time()
    assert max(at for url, at in ended.items() if url != busy) == pytest.approx(22, abs=0.1)
    assert ended[busy] == pytest.approx(1 + 200 + 1, abs=0.1)


@pytest.mark.parametrize("tries", [1, 2, 5])
async def test_the_last_of_max_tries_answers_becomes_the_page(autojump_clock, tries):
    web = Times(*(asking("1") for _ in range(tries - 1)), asking("1", status=504), html())
    crawler = Crawler([HOME], fetch=web, limits=Limits(max_tries=tries))
    (page,) = await collect(crawler)
    assert isinstance(page, Page)
    assert (page.status, page.tries, page.headers["retry-after"]) == (504, tries, "1")
    assert (len(web.at), crawler.statistics().retries) == (tries, tries - 1)


async def test_a_redirect_is_not_tried_again_whatever_it_asks_for(autojump_clock):
    headers = {"location": "/b", "retry-after": "9"}
    web = Web({"/": Response(302, httpx.Headers(headers)), "/b": redirect("/")})
    outcomes = await collect(Crawler([HOME], fetch=web))
    assert [type(outcome) for outcome in outcomes] == [Redirect, Redirect]
    assert set(web.hits.values()) == {1}
    assert trio.current_time() == 0


async def test_a_retry_that_would_come_after_max_seconds_is_not_waited_for(autojump_clock):
    web = Times(asking("5"), asking("60"))
    crawler = Crawler([HOME], fetch=web, limits=Limits(max_seconds=30))
    (page,) = await collect(crawler)
    assert (page.status, page.tries, trio.current_time()) == (503, 2, pytest.approx(5))


async def test_nothing_is_tried_again_once_the_crawl_was_stopped(autojump_clock):
    crawler = Crawler([HOME], fetch=Web({"/": asking("5")}, delay=2))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(crawler.crawl)
        await trio.sleep(1)
        crawler.stop()
    assert trio.current_time() == 2
    assert (crawler.statistics().pages, crawler.statistics().retries) == (1, 0)


async def test_a_url_that_waits_keeps_its_place_in_the_page_budget(autojump_clock):
    leaves = {f"/{number}": html() for number in range(9)}
    web = Web({"/": html(*leaves), **leaves, "/0": asking("1")}, delay=0.1)
    crawler = Crawler([HOME], fetch=web, limits=Limits(max_pages=5))
    outcomes = await collect(crawler)
    assert sum(isinstance(outcome, Page) for outcome in outcomes) == 5
    assert web.hits[HOME + "0"] == 4
