"""Which job may start now: every decision of the scheduler, with times as plain seconds."""

from __future__ import annotations

import gc
import math
import tracemalloc
from collections import Counter
from collections.abc import Iterable
from itertools import pairwise

import pytest
from msgspec.structs import replace

from trio_crawler.model import Attempt, Fault, Job, Purpose, Reason, Response, Validator
from trio_crawler.policy.plan import Plan
from trio_crawler.policy.robots import ALLOW_ALL, FRESH, Rules
from trio_crawler.policy.settings import (
    HostStatistics,
    HostWait,
    Limits,
    Politeness,
    by_sitemap,
    depth_first,
)
from trio_crawler.schedule.host_scheduler import HostScheduler
from trio_crawler.schedule.origin import RUN, Turns
from trio_crawler.settlement import (
    ProbeAnswered,
    RobotsMissing,
    RobotsMoved,
    RobotsRules,
)

OK, AWAY, GONE = Response(200), Response(502), Response(404)
REFUSED = Fault(Reason.CONNECTION_REFUSED, "no program listens")
A, B = "http://a.test/", "http://b.test/"


def turns(*urls: str, **politeness: float | bool) -> HostScheduler:
    """Let some pages wait, with no robots.txt to obey."""
    plan = Plan(politeness=Politeness(robots=False, **politeness))
    return filled(HostScheduler(plan), *urls)


def obeying(*urls: str, **politeness: float | bool) -> HostScheduler:
    """Let some pages wait, each for the robots.txt of its origin."""
    return filled(HostScheduler(Plan(politeness=Politeness(**politeness))), *urls)


def filled(some: HostScheduler, *urls: str, now: float = 0) -> HostScheduler:
    for url in urls:
        some.put(Job(url), now)
    return some


def pages(start: str, count: int) -> list[str]:
    return [f"{start}{number}" for number in range(count)]


def sitemap(url: str) -> Job:
    return Job(url, purpose=Purpose.SITEMAP)


def take(some: HostScheduler, now: float = 0) -> list[str]:
    """Start all that may start now."""
    return [job.url for job in take_jobs(some, now)]


def take_jobs(some: HostScheduler, now: float = 0) -> list[Job]:
    jobs = []
    while (job := some.next(now)) is not None:
        jobs.append(job)
    return jobs


def take_one(some: HostScheduler, now: float = 0) -> str | None:
    job = some.next(now)
    return job and job.url


def answer(
    some: HostScheduler,
    urls: str | Iterable[str],
    with_: Response | Fault = OK,
    now: float = 0,
    *,
    seconds: float = 0,
    asked: float = 0,
) -> None:
    """Let the same answer come for each of these pages."""
    for url in [urls] if isinstance(urls, str) else urls:
        some.answered(Attempt(Job(url), with_, seconds), now, asked=asked)


def learn(
    some: HostScheduler,
    url: str,
    rules: Rules = ALLOW_ALL,
    now: float = 0,
    validator: Validator | None = None,
) -> None:
    """Let a robots.txt answer with these rules."""
    some.answered(Attempt(Job(url, purpose=Purpose.ROBOTS), OK, 0), now)
    some.learn(RobotsRules(url, rules, validator), now)


def miss(some: HostScheduler, url: str, trouble: Response | Fault, now: float = 0) -> None:
    """Let a robots.txt fail to come."""
    some.answered(Attempt(Job(url, purpose=Purpose.ROBOTS), trouble, 0), now)
    some.learn(RobotsMissing(url, trouble), now)


def statistics(some: HostScheduler, now: float = 0) -> HostStatistics:
    """Return the counts of the only host."""
    (host,) = some.hosts()
    return host.statistics(now)


def started_while_failing(
    some: HostScheduler, trouble: Response | Fault, until: float
) -> list[float]:
    """Let the only host fail from 0 on, whatever it is asked for; return when it was."""
    starts = []
    now = 0.0
    while now < until:
        for job in take_jobs(some, now):
            if job.blocked:
                continue
            starts.append(now)
            if job.purpose is Purpose.ROBOTS:
                miss(some, job.url, trouble, now)
            else:
                again(some, job, trouble, now)
        now = some.wake(now)
    return starts


def again(some: HostScheduler, job: Job, trouble: Response | Fault, now: float) -> None:
    """Let a page fail, and put it back to be tried again."""
    some.answered(Attempt(job, trouble, 0), now)
    some.put(replace(job, tries=job.tries + 1), now)


# One host.


def test_nothing_comes_out_of_nothing():
    some = turns()
    assert (some.next(0), some.heap.wakes, some.waiting) == (None, math.inf, 0)


def test_as_many_jobs_start_at_a_host_as_the_limit_says():
    some = turns(*pages(A, 5), per_host=3)
    assert take(some) == pages(A, 3)
    answer(some, A + "1")
    assert take(some) == [A + "3"]


def test_jobs_of_a_host_start_a_delay_apart_to_the_millisecond():
    some = turns(*pages(A, 3), delay=2)
    assert take(some, 10) == [A + "0"]
    assert some.heap.wakes == 12
    assert take(some, 11.999) == []
    assert take(some, 12) == [A + "1"]
    assert take(some, 13.999) == []
    assert take(some, 14) == [A + "2"]


def test_retry_after_holds_the_host_to_the_millisecond_and_no_other():
    some = turns(*pages(A, 4), *pages(B, 4), per_host=2)
    assert len(take(some)) == 4
    answer(some, A + "0", OK, 5, asked=120)
    answer(some, [A + "1", B + "0"], OK, 6)
    assert take(some, 6) == [B + "2"]
    assert some.heap.wakes == 125
    assert take(some, 124.999) == []
    assert take(some, 125) == [A + "2", A + "3"]


@pytest.mark.parametrize("order", [None, by_sitemap])
def test_urls_with_the_fewest_parameters_come_first_unless_the_caller_has_an_order(order):
    some = HostScheduler(Plan(order=order, politeness=Politeness(robots=False, per_host=9)))
    # A number alone goes on with a list, and counts as none.
    paths = ["", "?a;b", "?a=x&b", "?a", "b", "?a=x", "c?page=5", "d", "?a=5&b=5&c"]
    for path in paths:
        some.put(Job(A + path), 0)
    first = ["", "b", "c?page=5", "d", "?a", "?a=x", "?a;b", "?a=x&b", "?a=5&b=5&c"]
    assert take(some) == [A + path for path in (paths if order else first)]


def test_an_order_decides_which_job_of_a_host_comes_first():
    some = HostScheduler(Plan(order=depth_first, politeness=Politeness(robots=False)))
    for depth in (1, 3, 2):
        some.put(Job(f"{A}{depth}", depth), 0)
    assert take(some) == [A + "3", A + "2", A + "1"]


def test_http_and_https_of_one_host_share_its_limit():
    some = turns("http://a.test/1", "https://a.test/2", "https://a.test/3", per_host=2)
    assert take(some) == ["http://a.test/1", "https://a.test/2"]


def test_http_and_https_of_one_host_share_its_delay_and_its_retry_after():
    some = turns("http://a.test/1", "https://a.test/2", "http://a.test/3", delay=2)
    assert take(some, 10) == ["http://a.test/1"]
    assert take(some, 11.999) == []
    assert take(some, 12) == ["https://a.test/2"]
    answer(some, "https://a.test/2", OK, 12, asked=100)
    assert take(some, 111.999) == []
    assert take(some, 112) == ["http://a.test/3"]


def test_a_host_that_is_away_by_https_is_asked_by_http():
    some = turns("https://a.test/1", *pages(A, 3), per_host=1)
    assert take_one(some) == "https://a.test/1"
    answer(some, "https://a.test/1", REFUSED)
    for number in range(3):
        assert take(some) == [A + str(number)]
        answer(some, A + str(number), OK)


def test_another_port_is_another_host():
    some = turns("http://a.test/1", "http://a.test:81/2", per_host=1)
    assert len(take(some)) == 2


# Fair turns.


def test_hosts_have_their_turns_one_after_the_other():
    some = turns(*pages(A, 3), *pages(B, 3))
    assert [url[:14] for url in take(some)] == [A, B, A, B, A, B]


def test_a_slow_host_has_no_more_in_flight_than_a_fast_one():
    some = turns(*pages(A, 9), *pages(B, 9))
    in_flight = [take_one(some), take_one(some)]
    for number in range(3):
        fast = in_flight[1]
        assert fast is not None
        assert fast.startswith(B), "A has not answered yet, and has one in flight"
        answer(some, fast, OK, number)
        in_flight[1] = take_one(some, number)


def one_at_a_time(some: HostScheduler, count: int) -> list[str]:
    """Answer each job before the next one starts; return the origins that were asked."""
    asked = []
    for now in range(count):
        url = take_one(some, now)
        assert url
        asked.append(url.rpartition("/")[0])
        answer(some, url, OK, now)
    return asked


def test_hosts_that_were_never_asked_come_first_and_then_each_has_a_run_of_turns():
    hosts = [f"http://h{number}.test" for number in range(10)]
    asked = one_at_a_time(turns(*(f"{host}/{page}" for page in range(20) for host in hosts)), 200)
    assert asked[:10] == hosts
    assert Counter(asked) == dict.fromkeys(hosts, 20)
    # The connection of the last one is the likeliest to be open.
    assert asked[10] == hosts[-1]
    # One turn of ten goes to the run that waits longest, and then back.
    others = sum(one != other for one, other in pairwise(asked[10:]))
    assert others <= 190 // RUN + 2 * 190 // 10 + 10


def test_a_new_host_comes_before_the_run_of_another_goes_on():
    some = turns(*pages(A, 20), per_host=1)
    for number in range(3):
        assert take(some) == [A + str(number)]
        if number == 2:
            filled(some, B)
        answer(some, A + str(number))
    assert take_one(some) == B


def test_a_host_in_trouble_is_tried_as_soon_as_it_has_rested():
    some = turns(*pages(A, 9), *pages(B, 9), per_host=1)
    assert take(some) == [A + "0", B + "0"]
    answer(some, B + "0", OK, 0)
    answer(some, A + "0", AWAY, 0)
    taken = []
    for now in range(10, 19):
        taken.append(take_one(some, now))
        answer(some, taken[-1] or "", OK, now)
    assert taken[0] == A + "1"
    assert set(taken[1:]) <= {*pages(A, 9), *pages(B, 9)}
    assert B + "1" in taken


def test_a_host_that_has_rested_has_its_turn_before_the_run_of_another_is_over():
    some = turns(*pages(A, 9), *pages(B, 20), per_host=1)
    assert take(some) == [A + "0", B + "0"]
    answer(some, A + "0", OK, 0, asked=10)
    for now in range(1, 10):
        answer(some, B + str(now - 1), OK, now)
        assert take_one(some, now) == B + str(now)
    answer(some, B + "9", OK, 10)
    assert sorted(take(some, 10)) == [A + "1", B + "10"]


def test_http_and_https_of_a_host_have_their_runs_one_after_the_other():
    some = turns(*pages(A, 17), *pages("https://a.test/", 17), per_host=1, delay=0.4)
    schemes = [url.partition(":")[0] for url in one_at_a_time(some, 34)]
    assert Counter(schemes) == {"http": 17, "https": 17}
    assert sum(one != other for one, other in pairwise(schemes)) <= 12


# Failures.


def test_a_host_rests_after_a_trouble_and_is_then_tried_by_one():
    some = turns(*pages(A, 9), per_host=3)
    answer(some, take(some), AWAY, 1, seconds=1)
    assert statistics(some, 1).failures == 1, "they were in flight together"
    assert 1.25 <= some.heap.wakes < 1.5
    assert take(some, 1.249) == []
    assert take(some, 1.5) == [A + "3"]
    answer(some, A + "3", OK, 2)
    assert len(take(some, 2)) == 3


def test_a_page_that_is_not_there_is_no_trouble():
    some = turns(*pages(A, 9), per_host=1)
    for number in range(9):
        assert take_one(some) == A + str(number)
        answer(some, A + str(number), GONE)
    assert statistics(some).failures == 0


def doubting() -> HostScheduler:
    """Return turns of a host that has answered, and failed twice since then, at 1 and 2."""
    some = obeying(*pages(A, 9), per_host=1)
    assert take(some) == [A + "robots.txt"]
    learn(some, A + "robots.txt")
    for now in (1, 2):
        url = take_one(some, now)
        assert url
        answer(some, url, AWAY, now)
    return some


def test_while_robots_txt_fails_no_url_is_asked_for():
    some = doubting()
    now = 9.0
    for _ in range(5):
        assert take(some, now) == [A + "robots.txt"]
        miss(some, A + "robots.txt", AWAY, now)
        now = some.heap.wakes
    assert take(some, now) == [A + "robots.txt"]
    learn(some, A + "robots.txt", now=now)
    assert take(some, now) == [A + "2"]


def failed(count: int) -> tuple[HostScheduler, list[str]]:
    """Let so many pages fail, after one that came; return what else was asked for."""
    some = obeying(*pages(A, count + 5), per_host=1, patience=10**6)
    assert take(some) == [A + "robots.txt"]
    learn(some, A + "robots.txt")
    assert take(some) == [A + "0"]
    answer(some, A + "0")
    errands = []
    now = 1
    for _ in range(count):
        now += 99
        (job,) = take_jobs(some, now)
        if job.purpose is Purpose.ROBOTS:
            errands.append(job.url)
            learn(some, job.url, now=now)
            (job,) = take_jobs(some, now)
        answer(some, job.url, AWAY, now)
    return some, errands


def test_after_twenty_failures_in_a_row_a_page_that_came_is_asked_for_again():
    some, _ = failed(20)
    (job,) = take_jobs(some, 9999)
    assert (job.url, job.purpose) == (A + "0", Purpose.PROBE)
    assert take(some, 20_000) == []
    some.answered(Attempt(job, OK, 0), 20_000)
    assert take(some, 20_000) == []
    some.learn(ProbeAnswered(job.url, OK), 20_000)
    assert statistics(some, 20_000).failures == 0, "it was the URLs"
    assert take(some, 20_000) == [A + "21"]
    assert some.waiting == 3


def test_while_a_page_that_came_before_fails_no_other_is_asked_for():
    some, _ = failed(20)
    now = 9999.0
    for _ in range(5):
        (job,) = take_jobs(some, now)
        assert (job.url, job.purpose) == (A + "0", Purpose.PROBE)
        some.answered(Attempt(job, AWAY, 0), now)
        some.learn(ProbeAnswered(job.url, AWAY), now)
        assert some.heap.wakes > now
        now = some.heap.wakes


def test_where_no_page_ever_came_robots_txt_is_asked_for_less_often_too():
    some = obeying(*pages(A, 60), per_host=1, patience=10**6)
    asked = Counter[Purpose]()
    for now in range(0, 6000, 100):
        for job in take_jobs(some, now):
            asked[job.purpose] += 1
            if job.purpose is Purpose.ROBOTS:
                learn(some, job.url, now=now)
            else:
                answer(some, job.url, AWAY, now)
    assert asked[Purpose.ROBOTS] <= 6, "before all, and after 2, 4, 8, 16 and 32 failures"


def test_a_host_in_doubt_is_asked_for_robots_txt_even_if_that_is_not_obeyed():
    some = turns(*pages(A, 9), per_host=1)
    assert take_one(some) == A + "0"
    answer(some, A + "0", OK)
    for now in (1, 2):
        url = take_one(some, now)
        assert url
        answer(some, url, AWAY, now)
    assert take(some, 9) == [A + "robots.txt"]


def test_a_host_that_was_never_reached_is_given_up_after_its_tries_with_its_fault():
    some = obeying(*pages(A, 3))
    starts = started_while_failing(some, REFUSED, until=1000)
    assert len(starts) == 4
    assert starts[-1] < 4
    assert [job.blocked for job in take_jobs(some, 4)] == [REFUSED] * 3


def test_a_host_whose_server_is_there_is_given_up_after_two_tries_more():
    some = obeying(*pages(A, 3))
    starts = started_while_failing(some, AWAY, until=1000)
    assert len(starts) == 6
    assert starts[-1] < 16
    assert [job.blocked for job in take_jobs(some, 16)] == [Reason.ROBOTS_UNAVAILABLE] * 3


def test_a_host_whose_robots_txt_fails_for_good_is_given_up_at_once():
    some = obeying(A)
    assert take(some) == [A + "robots.txt"]
    miss(some, A + "robots.txt", Fault(Reason.TLS, "expired"))
    (job,) = take_jobs(some)
    assert (job.url, job.blocked) == (A, Fault(Reason.TLS, "expired"))


def test_without_robots_a_host_that_never_answered_is_given_up_after_its_tries_too():
    starts = started_while_failing(turns(*pages(A, 3), per_host=1), REFUSED, until=1000)
    assert len(starts) == 4


def test_max_tries_says_how_often_a_host_is_tried():
    plan = Plan(limits=Limits(max_tries=2), politeness=Politeness(per_host=1, robots=False))
    some = HostScheduler(plan)
    assert len(started_while_failing(filled(some, *pages(A, 3)), REFUSED, until=1000)) == 2


def test_the_jobs_of_a_host_that_was_given_up_come_out_at_once_all_of_them():
    some = turns(*pages(A, 30), per_host=1, delay=5)
    for now in (0, 10, 20, 30):
        answer(some, take(some, now), AWAY, now, asked=7)
    jobs = take_jobs(some, 30)
    assert [job.blocked for job in jobs] == [Reason.HOST_GIVEN_UP] * 26
    assert statistics(some, 30).given_up == {"http": Reason.HOST_GIVEN_UP}
    assert some.waiting == 0


@pytest.mark.parametrize("robots", [True, False])
def test_an_outage_of_five_minutes_loses_no_job(robots):
    some = (obeying if robots else turns)(*pages(A, 20))
    if robots:
        assert take(some) == [A + "robots.txt"]
        learn(some, A + "robots.txt")
    else:
        answer(some, take_one(some) or "", OK)
    started_while_failing(some, REFUSED, until=300)
    waiting = some.waiting
    now, done = some.heap.wakes, 0
    assert now < 331
    while done < waiting:
        for job in take_jobs(some, now):
            assert not job.blocked
            if job.purpose is Purpose.ROBOTS:
                learn(some, job.url, now=now)
            else:
                some.answered(Attempt(job, OK, 0), now)
                done += 1
        now += 0.001
    assert now < 332, "and they go on as soon as the host is back"


def test_an_outage_uses_up_few_tries_of_each_job():
    some = obeying(*pages(A, 20))
    assert take(some) == [A + "robots.txt"]
    learn(some, A + "robots.txt")
    asked = Counter[str]()
    now = 0.0
    while now < 300:
        for job in take_jobs(some, now):
            asked[job.url] += 1
            if job.purpose is Purpose.ROBOTS:
                miss(some, job.url, REFUSED, now)
            else:
                again(some, job, REFUSED, now)
        now = some.wake(now)
    del asked[A + "robots.txt"]
    assert max(asked.values()) <= 2


def test_the_last_worker_is_kept_for_a_host_that_answered_a_moment_ago():
    some = turns(*pages(A, 9), B)
    assert take(some) == [A + "0", B, A + "1", A + "2", A + "3"]
    answer(some, [A + "0", A + "1"], OK, 1)
    answer(some, B, OK, 2)
    assert some.next(3, last=True) is None
    filled(some, B + "new", now=4)
    job = some.next(4, last=True)
    assert job
    assert job.url == B + "new"


@pytest.mark.parametrize("seconds", [10, 1000])
def test_the_last_worker_is_not_kept_for_a_host_that_answered_long_ago(seconds):
    some = turns(*pages(A, 9), B)
    assert len(take(some)) == 5
    answer(some, [A + "0", B], OK, 1)
    assert some.next(1 + seconds, last=True) is not None


def test_the_last_worker_is_kept_for_nobody_where_there_is_but_one_host():
    some = turns(*pages(A, 9), "https://a.test/")
    for _ in range(2):
        answer(some, some.next(0).url, OK)
    assert some.next(0)
    assert some.next(0, last=True) is not None


# Robots.


def test_robots_txt_of_an_origin_is_asked_for_once_and_before_all_else_there():
    some = obeying(*pages(A, 9))
    assert take(some) == [A + "robots.txt"]
    assert take(some, 99) == []
    learn(some, A + "robots.txt", now=100)
    assert take(some, 100) == pages(A, 4)


def test_other_hosts_do_not_wait_for_a_robots_txt():
    some = obeying(A)
    assert take(some) == [A + "robots.txt"]
    filled(some, B)
    assert take(some) == [B + "robots.txt"]
    learn(some, B + "robots.txt")
    assert take(some) == [B]


def test_each_origin_of_a_host_waits_for_its_own_robots_txt():
    some = obeying("http://a.test/1", "https://a.test/2")
    assert take(some) == ["http://a.test/robots.txt", "https://a.test/robots.txt"]
    learn(some, "http://a.test/robots.txt")
    assert take(some) == ["http://a.test/1"]
    learn(some, "https://a.test/robots.txt")
    assert take(some) == ["https://a.test/2"]


def test_a_robots_txt_that_is_a_day_old_is_asked_for_again_with_its_validator():
    some = obeying(A)
    assert take(some) == [A + "robots.txt"]
    learn(some, A + "robots.txt", validator=Validator('"1"'))
    assert take(some) == [A]
    answer(some, A)
    filled(some, A + "new", now=FRESH + 1)
    (job,) = take_jobs(some, FRESH + 1)
    assert (job.url, job.validator) == (A + "robots.txt", Validator('"1"'))


def test_a_job_that_robots_disallows_comes_out_refused_and_is_not_waited_for():
    some = obeying(A + "no1", A + "no2", A + "yes", A + "no3", per_host=1, delay=10)
    assert take(some) == [A + "robots.txt"]
    learn(some, A + "robots.txt", Rules({"/no": False}))
    jobs = take_jobs(some, 10)
    assert [(job.url, job.blocked) for job in jobs] == [
        (A + "no1", Reason.ROBOTS),
        (A + "no2", Reason.ROBOTS),
        (A + "yes", None),
    ]
    answer(some, A + "yes", OK, 11)
    (job,) = take_jobs(some, 20)
    assert job.blocked is Reason.ROBOTS
    assert statistics(some, 20).rest == 0, "it was not asked"
    assert statistics(some, 20).in_flight == 0


def test_a_crawl_delay_holds_from_the_start_of_robots_txt_on():
    some = obeying(*pages(A, 2))
    assert take(some, 10) == [A + "robots.txt"]
    learn(some, A + "robots.txt", Rules({}, delay=3), now=11)
    assert take(some, 12.999) == []
    assert take(some, 13) == [A + "0"]
    assert take(some, 15.999) == []
    assert take(some, 16) == [A + "1"]


def test_the_longer_of_two_delays_holds():
    some = obeying(*pages(A, 2), delay=5)
    assert take(some) == [A + "robots.txt"]
    learn(some, A + "robots.txt", Rules({}, delay=3))
    assert statistics(some).delay == 5


def test_the_longest_delay_of_the_origins_of_a_host_holds():
    some = obeying("http://a.test/1", "https://a.test/2", per_host=1)
    assert take(some) == ["http://a.test/robots.txt"]
    learn(some, "http://a.test/robots.txt", Rules({}, delay=7))
    assert take(some, 6.999) == []
    assert take(some, 7) == ["https://a.test/robots.txt"]
    learn(some, "https://a.test/robots.txt", Rules({}, delay=3), now=7)
    assert take(some, 13.999) == []
    assert take(some, 14) == ["http://a.test/1"]
    answer(some, "http://a.test/1", now=14)
    assert take(some, 20.999) == []
    assert take(some, 21) == ["https://a.test/2"]


def hop(url: str, asked: str) -> Job:
    return Job(url, redirects=4, referrer=asked, purpose=Purpose.ROBOTS)


def test_what_a_robots_txt_leads_to_is_asked_for_while_its_host_waits():
    some = obeying(A, B)
    assert take(some) == [A + "robots.txt", B + "robots.txt"]
    some.answered(Attempt(Job(A + "robots.txt", purpose=Purpose.ROBOTS), Response(301), 0), 1)
    some.learn(RobotsMoved(hop(B + "rules", A + "robots.txt")), 1)
    some.learn(RobotsMoved(hop(A + "rules", A + "robots.txt")), 1)
    assert sorted(take(some, 1)) == [A + "rules", B + "rules"]


def test_a_hop_is_as_polite_to_its_host_as_any_job():
    some = turns(B, per_host=1, delay=5)
    assert take(some, 10) == [B]
    some.learn(RobotsMoved(hop(B + "rules", A + "robots.txt")), 11)
    assert take(some, 20) == []
    answer(some, B, OK, 21, asked=9)
    assert take(some, 29.999) == []
    assert take(some, 30) == [B + "rules"]


def test_a_hop_to_a_host_that_was_given_up_comes_out_refused():
    some = turns(*pages(B, 4), per_host=1)
    started_while_failing(some, REFUSED, until=99)
    some.learn(RobotsMoved(hop(B + "rules", A + "robots.txt")), 100)
    job = take_jobs(some, 100)[0]
    assert (job.url, job.blocked) == (B + "rules", REFUSED)


def test_a_hop_that_fails_says_nothing_of_the_host_it_leads_to():
    some = turns(B)
    assert take(some) == [B]
    some.learn(RobotsMoved(hop(B + "rules", A + "robots.txt")), 0)
    (job,) = take_jobs(some)
    some.answered(Attempt(job, AWAY, 0), 1)
    assert statistics(some, 1).failures == 0


# Sitemaps.


def test_a_sitemap_comes_before_the_pages_of_its_host():
    some = turns(*pages(A, 2))
    some.put(sitemap(A + "map"), 0)
    assert take(some) == [A + "map", *pages(A, 2)]


def test_one_sitemap_at_a_time_is_asked_for_whatever_its_host():
    some = turns(A)
    for url in (A + "map", B + "map", A + "map2"):
        some.put(sitemap(url), 0)
    assert take(some) == [A + "map", A]
    assert some.waiting == 2
    some.answered(Attempt(sitemap(A + "map"), OK, 0), 1)
    assert take(some, 1) == [], "it is read still"
    some.sitemap_done(2)
    assert take(some, 2) == [B + "map"]
    some.answered(Attempt(sitemap(B + "map"), OK, 0), 3)
    some.sitemap_done(3)
    assert take(some, 3) == [A + "map2"]


def test_robots_txt_comes_before_a_sitemap():
    some = obeying()
    some.put(sitemap(A + "map"), 0)
    assert take(some) == [A + "robots.txt"]
    learn(some, A + "robots.txt")
    assert take(some) == [A + "map"]


def test_robots_txt_keeps_nobody_from_a_sitemap_that_it_names():
    some = obeying()
    some.put(sitemap(A + "map"), 0)
    assert take(some) == [A + "robots.txt"]
    learn(some, A + "robots.txt", Rules({"/": False}))
    (job,) = take_jobs(some)
    assert (job.url, job.blocked) == (A + "map", None)


# The end.


def test_emptying_lets_every_admitted_job_out_once_as_it_is():
    some = obeying(*pages(A, 9), *pages(B, 9), per_host=2, delay=5)
    assert take(some) == [A + "robots.txt", B + "robots.txt"]
    learn(some, B + "robots.txt", Rules({"/7": False}))
    assert take(some, 5) == [B + "0"]
    for url in (A + "map", B + "map"):
        some.put(sitemap(url), 5)
    jobs = list(some.empty())
    assert len(jobs) == 9 + 8 + 2
    assert Counter(job.url for job in jobs) == Counter(
        [*pages(A, 9), *pages(B, 9)[1:], A + "map", B + "map"]
    )
    assert not any(job.blocked for job in jobs)
    assert some.waiting == 0
    assert take(some, 99) == []


def test_emptying_leaves_out_what_a_robots_txt_was_redirected_to():
    some = obeying(A)
    assert take(some) == [A + "robots.txt"]
    some.answered(Attempt(Job(A + "robots.txt", purpose=Purpose.ROBOTS), Response(301), 0), 1)
    some.learn(RobotsMoved(hop(A + "rules", A + "robots.txt")), 1)
    assert [job.url for job in some.empty()] == [A]


# Counts and memory.


def test_a_host_has_one_record_for_both_its_schemes():
    some = turns(*pages(A, 2), *pages(A.replace("http", "https"), 3), *pages(B, 1), per_host=3)
    assert len(take(some, 0)) == 4
    counts = [host.statistics(0) for host in some.hosts()]
    assert [(each.name, each.waiting, each.in_flight) for each in counts] == [
        ("a.test", 2, 3),
        ("b.test", 0, 1),
    ]
    assert some.host("b.test") is not None
    assert some.host("c.test") is None


def test_a_host_tells_of_itself():
    some = turns(*pages(A, 9), per_host=2, delay=4)
    assert take(some, 10) == [A + "0"]
    answer(some, A + "0", OK, 11, seconds=1)
    assert statistics(some, 12) == HostStatistics(
        name="a.test",
        waiting=8,
        in_flight=0,
        limit=2,
        delay=4,
        rest=2,
        latency=1,
        failures=0,
        given_up={},
        pages=1,
        waits_for=HostWait.REST,
        asked=4,
    )


def test_a_host_counts_its_pages_their_bytes_and_the_requests_that_failed():
    some = obeying(*pages(A, 9))
    take(some)
    miss(some, A + "robots.txt", REFUSED)
    assert (statistics(some).pages, statistics(some).failed) == (0, 1)
    some = turns(*pages(A, 9))
    answers = [
        Response(200, body=b"12345"),
        Response(404, body=b"123"),
        Response(301, body=b"1"),
        Response(304),
        AWAY,
        Response(429),
        REFUSED,
        Fault(Reason.INCOMPLETE, "it ended"),
    ]
    for number, each in enumerate(answers):
        take(some, 100 * number)
        answer(some, f"{A}{number}", each, 100 * number)
    counts = statistics(some)
    assert (counts.pages, counts.bytes, counts.failed, counts.failures) == (3, 8, 4, 3)


def test_both_schemes_of_a_host_count_together():
    twin = A.replace("http", "https")
    some = turns(A, twin)
    take(some)
    for url in (A, twin):
        answer(some, url, Response(200, body=b"123"))
    assert (statistics(some).pages, statistics(some).bytes) == (2, 6)


def test_a_host_tells_what_its_jobs_wait_for():
    assert statistics(turns(*pages(A, 3))).waits_for is HostWait.TURN
    some = obeying(*pages(A, 3), per_host=2)
    assert take(some) == [A + "robots.txt"]
    assert statistics(some).waits_for is HostWait.ROBOTS
    learn(some, A + "robots.txt")
    assert statistics(some).waits_for is HostWait.TURN
    take(some)
    assert statistics(some).waits_for is HostWait.ANSWER
    answer(some, A + "0", AWAY, 1)
    assert statistics(some, 1).waits_for is HostWait.ANSWER
    answer(some, A + "1", AWAY, 1)
    assert statistics(some, 1).waits_for is HostWait.REST
    assert statistics(some, 99).waits_for is HostWait.TURN
    some = turns(A, delay=5)
    take(some)
    assert statistics(some).waits_for is HostWait.NOTHING
    filled(some, B)
    assert next(iter(some.hosts())).statistics(0).waits_for is HostWait.NOTHING
    filled(some, A + "1")
    answer(some, A, OK, 1)
    assert next(iter(some.hosts())).statistics(1).waits_for is HostWait.REST


def test_a_host_whose_pages_all_fail_waits_for_a_probe():
    some = turns(*pages(A, 60))
    now = 0.0
    assert take_one(some) == A + "0"
    answer(some, A + "0", OK, now)
    seen = set()
    while now < 400 and HostWait.PROBE not in seen:
        for job in take_jobs(some, now):
            seen.add(statistics(some, now).waits_for)
            some.answered(Attempt(job, AWAY, 0), now)
            if job.purpose is Purpose.PROBE:
                some.learn(ProbeAnswered(job.url, AWAY), now)
            elif job.purpose is Purpose.ROBOTS:
                some.learn(RobotsRules(job.url, ALLOW_ALL, None), now)
        now += 1
    assert {HostWait.PROBE, HostWait.ROBOTS} <= seen


def test_a_host_that_was_given_up_waits_only_for_workers():
    some = turns(*pages(A, 50))
    now = 0.0
    while True:
        answer(some, take(some, now), REFUSED, now)
        if statistics(some, now).given_up:
            break
        now += 60
    assert statistics(some, now).waiting
    assert statistics(some, now).rest > 0
    assert statistics(some, now).waits_for is HostWait.TURN


def test_a_retry_in_flight_counts_also_when_no_other_one_waits():
    some = turns(A)
    answer(some, take(some))
    some.put(Job(A + "slow", tries=1), 0)
    assert take(some) == [A + "slow"]
    filled(some, *pages(A, 40)).put(Job(A + "other", tries=1), 0)
    for _ in range(12):
        started = take(some)
        assert len(started) == 3
        assert A + "other" not in started
        answer(some, started)
    answer(some, A + "slow")
    assert A + "other" in take(some)


def test_where_urls_hang_each_first_try_but_one_in_flight_is_hurried():
    some = turns(*pages(A, 3))
    hanging = some.origin(A)
    hanging.state.answered, hanging.state.hung = True, 4
    given = Turns(lambda origin: None, hurried=True)
    for page in pages(A, 3):
        given.give(hanging, Job(page))
    assert [url for _, url in given.out] == pages(A, 3)[1:]


def test_the_hosts_can_be_read_in_slices_while_others_are_found():
    some = turns(*(f"http://h{number}.test/" for number in range(100)))
    found = iter(some.hosts())
    first = [next(found).host.name for _ in range(40)]
    filled(some, *(f"http://new{number}.test/" for number in range(500)))
    rest = [origin.host.name for origin in found]
    assert first + rest == [f"h{number}.test" for number in range(100)]


def test_hosts_are_told_of_in_the_order_in_which_they_were_met():
    some = turns(B, A, B + "1")
    assert [origin.host.name for origin in some.hosts()] == ["b.test", "a.test"]


def test_only_what_waits_is_counted():
    some = obeying(*pages(A, 3))
    some.put(sitemap(B + "map"), 0)
    assert some.waiting == 4
    assert len(take(some)) == 2, "two robots.txt, which nobody put"
    assert some.waiting == 4
    learn(some, A + "robots.txt")
    assert len(take(some)) == 3
    assert some.waiting == 1


@pytest.mark.slow
@pytest.mark.parametrize("delay", [0, 0.001])
def test_a_crawl_takes_no_more_memory_the_longer_it_goes_on(delay):
    some = turns(delay=delay)
    for number in range(10):
        filled(some, *[f"http://h{number}.test/"] * 3)
    now = 0.0
    in_flight = [some.next(now) for _ in range(10)]
    tracemalloc.start()
    for number in range(10_000):
        now += 0.01
        job = in_flight[number % 10]
        assert job
        some.answered(Attempt(job, OK, 0.1), now)
        some.put(job, now)
        in_flight[number % 10] = some.next(now)
    grown, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert grown < 200_000, "20 bytes for each of 10,000 decisions"


def test_a_host_takes_less_than_a_kibibyte():
    jobs = [Job(f"http://h{number}.test/") for number in range(2000)]
    some = obeying(delay=1)
    tracemalloc.start()
    for job in jobs:
        some.put(job, 0)
    for url in take(some):
        learn(some, url)
    # Python keeps up to 2,000 free tuples, until the next collection.
    gc.collect()
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert size / len(jobs) < 1024
