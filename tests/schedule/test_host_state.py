"""When one host may be asked: every decision of its state, with times as plain seconds."""

from __future__ import annotations

import math
from collections.abc import Iterable

import pytest
from cases import for_each
from hypothesis import given
from hypothesis import strategies as st

from trio_crawler.model import Fault, Phase, Purpose, Reason
from trio_crawler.policy.answers import backoff, blames_host
from trio_crawler.policy.host_load import MAX_LIMIT
from trio_crawler.policy.settings import Politeness
from trio_crawler.schedule.host_state import (
    MAX_REST,
    RULES,
    TABLE,
    Event,
    FailureContext,
    HostState,
    State,
)

HALF = FailureContext(0.5)
TRIES, ENDLESS = 4, 10**9


def new(**politeness: float | bool) -> HostState:
    """Return the state of a host that was not asked yet."""
    return HostState(Politeness(**politeness))


def known(**politeness: float | bool) -> HostState:
    """Return the state of a host that has answered well, long ago."""
    host = new(**politeness)
    host.start(-1000)
    host.finish(-999)
    host.page_ok(1, -999)
    host.good = "http://a.test/good"
    return host


def fails(host: HostState, now: float, *, errand: bool = False, tries: int = ENDLESS) -> None:
    """Ask the host and get a trouble, in no time."""
    host.start(now)
    host.finish(now)
    if errand:
        host.miss(Event.ROBOTS_BAD, now, tries, HALF)
    else:
        host.page_bad(now, now, tries, HALF)


def bears(host: HostState, times: Iterable[float]) -> None:
    for now in times:
        fails(host, now, tries=TRIES)
        assert not is_lost(host)


def unproven(host: HostState) -> bool:
    """Whether a page that came before comes first, once the host has rested."""
    return host.prerequisite(0, max(host.free, 10**9)) is Purpose.PROBE


def is_lost(host: HostState) -> bool:
    return host.state is State.GIVEN_UP


def in_doubt(host: HostState, tries: int = 0) -> bool:
    """Whether robots.txt comes before a page that was tried so often, once the host has rested."""
    return host.prerequisite(tries, max(host.free, 10**9)) is Purpose.ROBOTS


def answers(host: HostState, seconds: float, now: float) -> None:
    """Let one answer, after so many seconds, come now to a host with an adaptive limit."""
    host.start(now - seconds)
    host.finish(now)
    host.page_ok(seconds, now)


def filled(host: HostState) -> int:
    """Start requests while there is room, and return how many are in flight."""
    while host.has_room:
        host.start(0)
    return host.load.in_flight


# What can be asked for.


@for_each("name", ["delay", "patience"])
@for_each("figure", [-1, -0.001, math.inf, math.nan])
def test_seconds_that_nobody_can_mean_are_refused_by_name(name, figure):
    with pytest.raises(ValueError, match=f"{name} must be 0 or more, and finite, not {figure}"):
        Politeness(**{name: figure})


def test_no_delay_no_patience_and_one_at_a_time_can_be_meant():
    politeness = Politeness(per_host=1, delay=0, patience=0)
    assert (politeness.per_host, politeness.delay, politeness.patience) == (1, 0, 0)


# Limit, delay and Retry-After.


def test_a_host_that_is_new_may_be_asked_at_once():
    assert new(delay=5).free == -math.inf


def test_a_slow_answer_costs_no_further_delay():
    host = new(delay=2)
    host.start(10)
    host.finish(17)
    assert host.free == 17


def test_an_answer_that_asks_for_nothing_shortens_no_rest():
    host = new()
    host.start(10)
    host.start(10)
    host.finish(130.125)
    host.finish(11)
    assert host.free == 130.125


def test_a_good_answer_shortens_no_rest_that_was_asked_for():
    host = new()
    host.start(10)
    host.finish(130.125)
    host.page_ok(1, 11)
    assert host.free == 130.125


# Rests.


def test_each_rest_is_twice_the_one_before_up_to_thirty_seconds():
    rests = [backoff(failures, MAX_REST, 0) for failures in range(1, 10)]
    assert rests == [0.25, 0.5, 1, 2, 4, 8, 15, 15, 15]


@for_each("failures", [1, 5, 10, 10**6])
@for_each("jitter", [0.0, 0.3, 0.999])
def test_chance_takes_away_up_to_half_of_a_rest(failures, jitter):
    whole = min(0.5 * 2 ** min(failures - 1, 99), MAX_REST)
    assert backoff(failures, MAX_REST, jitter) == pytest.approx(whole * (0.5 + jitter / 2))


def test_hosts_that_failed_together_come_back_apart():
    rests = []
    for number in range(1000):
        host = new()
        host.miss(Event.ROBOTS_BAD, 0, ENDLESS, FailureContext(number / 1000))
        rests.append(host.free)
    assert len(set(rests)) == 1000
    assert (min(rests), max(rests)) == (0.25, pytest.approx(0.5, abs=0.001))


def test_while_many_are_in_flight_to_a_host_that_failed_none_tries_it():
    host = known(per_host=8)
    filled(host)
    host.finish(10)
    host.page_bad(0, 10, ENDLESS, HALF)
    for _ in range(7):
        assert not host.has_room
        host.finish(11)
    assert host.has_room


def test_a_host_that_goes_away_fails_once_whatever_was_in_flight():
    host = known(per_host=64)
    for _ in range(64):
        host.start(5)
    for landing in range(64):
        host.finish(10 + landing)
        host.page_bad(5, 10 + landing, ENDLESS, HALF)
    assert host.failures == 1
    assert host.free == 73, "only landings, no rest, after the first"


def test_what_started_after_a_trouble_was_known_is_a_trouble_of_its_own():
    host = known()
    fails(host, 10)
    fails(host, 10.5)
    assert host.failures == 2


def test_while_it_may_be_the_urls_that_fail_a_rest_is_short():
    host = new()
    for now in range(0, 80, 10):
        fails(host, now)
        assert 0.25 <= host.free - now < 0.5
    fails(host, 90)
    assert 0.5 <= host.free - 90 < 1


def test_however_many_urls_fail_no_rest_is_longer_than_thirty_seconds():
    host = new()
    for now in range(0, 10_000, 100):
        fails(host, now)
    assert 15 <= host.free - now < 30


def test_while_robots_txt_fails_each_rest_is_twice_the_one_before():
    host = new()
    rests = []
    for now in range(0, 1000, 100):
        fails(host, now, errand=True)
        rests.append(host.free - now)
    wholes = [0.5, 1, 2, 4, 8, 16, 30, 30, 30, 30]
    assert all(whole / 2 <= rest <= whole for rest, whole in zip(rests, wholes, strict=True)), (
        rests
    )


# Doubt: was it the URLs, or the host?


def test_a_host_is_in_doubt_after_two_troubles_in_a_row():
    host = known()
    fails(host, 10)
    assert not in_doubt(host)
    fails(host, 20)
    assert in_doubt(host)


def test_a_good_answer_between_two_troubles_leaves_no_doubt():
    host = known()
    fails(host, 10)
    host.page_ok(1, 15)
    fails(host, 20)
    assert not in_doubt(host)


def test_a_host_that_never_answered_is_not_in_doubt():
    host = new()
    for now in range(10):
        fails(host, now)
    assert not in_doubt(host)


def test_no_url_is_tried_again_before_robots_txt_has_told_of_its_host():
    host = known()
    assert not in_doubt(host, 1)
    fails(host, 10)
    assert in_doubt(host, 1)
    host.robots_ok()
    assert not in_doubt(host, 1)
    fails(host, 20)
    assert in_doubt(host, 1)


def test_where_robots_txt_vouched_often_a_url_is_tried_again_without_it():
    host = known()
    for now in range(0, 3000, 1000):
        troubles_until_doubt(host, now)
        host.robots_ok()
    fails(host, 3000)
    assert not in_doubt(host, 1)


def test_a_good_answer_ends_the_doubt():
    host = known()
    fails(host, 10)
    fails(host, 20)
    host.page_ok(1, 30)
    assert (in_doubt(host), host.failures) == (False, 0)


def troubles_until_doubt(host: HostState, now: float) -> int:
    """Let URLs fail until the host is in doubt; return how many did."""
    count = 0
    while not in_doubt(host):
        count += 1
        fails(host, now + count)
    return count


def test_each_time_that_robots_txt_vouches_for_a_host_twice_as_many_troubles_bring_doubt():
    host = known()
    counts = []
    for now in range(0, 3000, 1000):
        counts.append(troubles_until_doubt(host, now))
        host.robots_ok()
    assert counts == [2, 4, 8]


def test_robots_txt_does_not_prove_enough_when_twenty_pages_failed_in_a_row():
    host = known()
    for now in range(20):
        assert not unproven(host)
        fails(host, now)
        host.robots_ok()
    assert unproven(host)


def test_a_page_that_came_again_proves_a_host_well_for_twice_as_many_failures():
    host = known()
    for most in (20, 40, 80):
        for now in range(most):
            assert not unproven(host)
            fails(host, now)
        assert unproven(host)
        host.probe_ok()
        assert (host.failures, in_doubt(host, 1), unproven(host)) == (0, False, False)


def test_a_new_page_makes_twenty_failures_enough_to_ask_for_proof_again():
    host = known()
    for now in range(20):
        fails(host, now)
    host.probe_ok()
    host.page_ok(1, 100)
    for now in range(200, 220):
        assert not unproven(host)
        fails(host, now)
    assert unproven(host)


def test_patience_begins_anew_when_a_page_came_again():
    host = known()
    for now in range(0, 350, 10):
        fails(host, now)
    host.probe_ok()
    bears(host, range(350, 710, 10))


def test_a_robots_txt_asked_for_without_doubt_leaves_the_trust_as_it_was():
    host = known()
    host.robots_ok()
    host.robots_ok()
    assert troubles_until_doubt(host, 0) == 2


def test_a_good_page_makes_two_troubles_enough_for_doubt_again():
    host = known()
    troubles_until_doubt(host, 0)
    host.robots_ok()
    host.page_ok(1, 100)
    assert troubles_until_doubt(host, 200) == 2


# Given up.


def test_a_host_that_never_answered_is_lost_after_so_many_tries():
    host = new()
    bears(host, range(3))
    fails(host, 3, tries=TRIES)
    assert is_lost(host)


def test_a_host_that_never_answered_is_given_patience_if_our_network_may_be_down():
    host = new()
    for now in range(0, 360, 5):
        host.page_bad(now, now, TRIES, FailureContext(0.5, network_down=True))
        assert not is_lost(host)
    host.page_bad(360, 360, TRIES, FailureContext(0.5, network_down=True))
    assert is_lost(host)


def test_a_host_that_answered_before_is_not_lost_before_the_patience_ends():
    host = known()
    bears(host, range(100, 460, 5))
    fails(host, 460, tries=TRIES)
    assert is_lost(host)


def test_patience_begins_anew_after_a_good_answer():
    host = known()
    for now in range(0, 355, 5):
        fails(host, now, tries=TRIES)
    host.page_ok(1, 355)
    bears(host, range(360, 720, 5))


def test_even_without_patience_a_host_has_all_its_tries():
    host = known(patience=0)
    bears(host, range(3))
    fails(host, 3, tries=TRIES)
    assert is_lost(host)


def test_a_host_that_is_lost_stays_so_whatever_still_comes():
    host = known(patience=0)
    for now in range(TRIES):
        fails(host, now, tries=TRIES)
    host.page_ok(1, 10)
    host.robots_ok()
    host.probe_ok()
    fails(host, 20)
    assert is_lost(host)


@given(st.floats(0, 300), st.randoms(use_true_random=False))
def test_an_outage_of_five_minutes_loses_no_host(outage, chance):
    host, now, asked = known(), 0.0, 0
    while now <= outage:
        fails(host, now, errand=host.prerequisite(0, now) is Purpose.ROBOTS, tries=TRIES)
        asked += 1
        assert not is_lost(host)
        now = host.free + chance.random()
    assert asked <= 30, "and asks little: it rests longer each time"
    assert now - outage <= MAX_REST + 1, "and is asked again soon after it has ended"


# The table.


def test_every_state_but_given_up_has_a_rule_for_every_answer_and_rests_end():
    answers = set(Event) - {Event.TIME}
    alive = set(State) - {State.GIVEN_UP}
    assert {(state, event) for state in alive for event in answers} <= TABLE.keys()
    assert {state for state, event in TABLE if event is Event.TIME} == {State.RESTING}
    assert all(state is not State.GIVEN_UP for state, _ in TABLE)


def test_the_last_rule_for_a_state_and_an_event_has_no_condition():
    assert all(not rules[-1].condition for rules in TABLE.values())
    assert all(rule.condition for rules in TABLE.values() for rule in rules[:-1])


def test_every_state_can_be_reached_and_every_rule_has_a_reason_of_its_own():
    assert {rule.next for rule in RULES} == set(State)
    assert all(rule.why for rule in RULES)


# Adaptive.


def test_an_adaptive_limit_begins_at_the_limit_of_every_host():
    assert new(per_host=3, adaptive=True).limit == 3


def test_with_steady_answers_the_limit_grows_by_one_in_a_round():
    host = new(per_host=4, adaptive=True)
    for now in range(5):
        answers(host, 0.1, now)
    assert host.limit == 5
    for now in range(5, 11):
        answers(host, 0.1, now)
    assert host.limit == 6


def test_a_limit_grows_up_to_64():
    host = new(per_host=4, adaptive=True)
    for now in range(5000):
        answers(host, 0.1, now)
    assert (host.limit, filled(host)) == (MAX_LIMIT, 64)


def slow(host: HostState) -> None:
    """Let the host answer fast for long, and then slowly once."""
    for now in range(200):
        answers(host, 0.1, now)
    before = host.limit
    answers(host, 5, 300)
    assert host.limit == before // 2


def test_a_slow_answer_halves_the_limit():
    host = new(per_host=4, adaptive=True)
    slow(host)
    assert host.limit >= 8, "from 20 at least"


def test_slow_answers_that_were_in_flight_together_halve_the_limit_once():
    host = new(per_host=4, adaptive=True)
    slow(host)
    halved = host.limit
    for moment in range(10):
        answers(host, 5 + moment / 10, 300 + moment / 10)
    assert host.limit == halved


def test_slow_answers_to_what_started_later_halve_the_limit_again():
    host = new(per_host=4, adaptive=True)
    slow(host)
    halved = host.limit
    answers(host, 5, 306)
    assert host.limit == halved // 2


def test_a_limit_never_shrinks_below_one():
    host = new(per_host=4, adaptive=True)
    answers(host, 0.01, 0)
    for now in range(10, 1000, 10):
        answers(host, 5, now)
    assert (host.limit, filled(host)) == (1, 1)


def test_a_trouble_halves_the_limit_of_the_time_after_it():
    host = new(per_host=32, adaptive=True)
    host.start(0)
    host.finish(1)
    host.page_bad(0, 1, ENDLESS, HALF)
    assert host.limit == 1, "while it fails"
    host.page_ok(1, 2)
    assert host.limit == 16


def test_what_failed_together_halves_the_limit_once():
    host = new(per_host=32, adaptive=True)
    for _ in range(32):
        host.start(0)
    for _ in range(32):
        host.finish(1)
        host.page_bad(0, 1, ENDLESS, HALF)
    host.page_ok(1, 2)
    assert host.limit == 16


def test_without_adaptive_the_limit_stays_whatever_the_answers():
    host = new(per_host=4)
    for now in range(0, 1000, 10):
        host.page_ok(now / 100, now)
        assert host.limit == 4
    fails(host, 1000)
    host.page_ok(1, 1001)
    assert host.limit == 4


@given(st.lists(st.none() | st.floats(0.001, 30), max_size=100), st.integers(1, 64))
def test_no_more_requests_are_in_flight_than_the_limit_that_is_shown(answered, per_host):
    host = new(per_host=per_host, adaptive=True)
    now = 0.0
    for seconds in answered:
        now += 10
        if seconds is None:
            host.page_bad(now - 1, now, ENDLESS, HALF)
        else:
            host.page_ok(seconds, now)
        assert 1 <= host.limit <= MAX_LIMIT
        assert filled(host) == host.limit
        while host.load.in_flight:
            host.finish(now)


def test_latency_follows_what_answers_take():
    host = new()
    host.page_ok(1, 0)
    assert host.load.latency == 1
    for now in range(100):
        host.page_ok(3, now)
    assert host.load.latency == pytest.approx(3)


# http and https of one host.


def twins(**politeness: float | bool) -> tuple[HostState, HostState]:
    """Return the states of a host by http, and by https."""
    plain = new(**politeness)
    return plain, HostState(Politeness(**politeness), plain.load)


def test_a_trouble_by_https_is_none_by_http():
    plain, secure = twins(per_host=4)
    fails(secure, 10)
    assert (secure.failures, secure.limit) == (1, 1)
    assert (plain.failures, plain.limit, plain.free) == (0, 4, 10)


def test_an_origin_that_fails_is_tried_by_one_while_the_other_goes_on():
    plain, secure = twins(per_host=4)
    fails(secure, 10)
    plain.start(11)
    assert secure.has_room
    secure.start(11)
    assert (secure.has_room, plain.has_room) == (False, True)


# What is a trouble of the host.


@for_each(
    "reason, phase",
    [
        (Reason.DNS, Phase.RESOLVE),
        (Reason.NO_SUCH_HOST, Phase.RESOLVE),
        (Reason.CONNECTION_REFUSED, Phase.CONNECT),
        (Reason.UNREACHABLE, Phase.CONNECT),
        (Reason.CONNECT_TIMEOUT, Phase.CONNECT),
        (Reason.TIMEOUT, Phase.WAIT),
        (Reason.RESET, Phase.WAIT),
        (Reason.RESET, None),
    ],
)
def test_a_host_that_cannot_be_reached_or_says_nothing_is_in_trouble(reason, phase):
    assert blames_host(Fault(reason, phase=phase))


@for_each(
    "reason, phase",
    [
        (Reason.TOO_LARGE, Phase.READ),
        (Reason.TIMEOUT, Phase.READ),
        (Reason.RESET, Phase.READ),
        (Reason.INCOMPLETE, Phase.READ),
        (Reason.BAD_REPLY, Phase.WAIT),
        (Reason.BLOCKED_ADDRESS, Phase.RESOLVE),
        (Reason.NO_SOCKETS, Phase.CONNECT),
        (Reason.PROXY, Phase.CONNECT),
        (Reason.TLS, Phase.TLS),
    ],
)
def test_what_is_wrong_with_one_answer_or_with_us_is_no_trouble_of_the_host(reason, phase):
    assert not blames_host(Fault(reason, phase=phase))
