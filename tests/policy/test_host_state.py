"""When one host may be asked: every decision of Manners, with times as plain seconds."""

from __future__ import annotations

import math
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trio_crawler.model import Fault, Phase, Reason, Response
from trio_crawler.policy.host_state import (
    LONGEST_REST,
    MOST_AT_ONCE,
    Manners,
    rest_after,
    troubled,
)
from trio_crawler.policy.politeness import Politeness


def manners(**politeness: float | bool) -> Manners:
    """Return the manners of a host that is not known yet."""
    return Manners(Politeness(**politeness))


def known(**politeness: float | bool) -> Manners:
    """Return the manners of a host that has answered well, long ago."""
    host = manners(**politeness)
    host.start(-1000)
    host.land(-999)
    host.succeed(1, -999, adaptive=False)
    return host


def fails(host: Manners, now: float, *, errand: bool = False) -> None:
    """Ask the host and get a trouble, in no time."""
    host.start(now)
    host.land(now)
    host.fail(now, now, adaptive=False, errand=errand)


def bears(host: Manners, times: Iterable[float]) -> None:
    for now in times:
        fails(host, now)
        assert not host.is_lost(now, patience=360, tries=4)


def answers(host: Manners, seconds: float, now: float) -> None:
    """Let one answer, after so many seconds, come now to a host with an adaptive limit."""
    host.start(now - seconds)
    host.land(now)
    host.succeed(seconds, now, adaptive=True)


def filled(host: Manners) -> int:
    """Start requests while there is room, and return how many are in flight."""
    while host.room:
        host.start(0)
    return host.load.flying


# What can be asked for.


@pytest.mark.parametrize("figure", [0, -1, math.nan])
def test_fewer_than_one_request_at_once_is_refused_by_name(figure):
    with pytest.raises(ValueError, match="per_host must be 1 or more, not"):
        Politeness(per_host=figure)


@pytest.mark.parametrize("name", ["delay", "patience"])
@pytest.mark.parametrize("figure", [-1, -0.001, math.inf, math.nan])
def test_seconds_that_nobody_can_mean_are_refused_by_name(name, figure):
    with pytest.raises(ValueError, match=f"{name} must be 0 or more seconds, not {figure}"):
        Politeness(**{name: figure})


def test_no_delay_no_patience_and_one_at_a_time_can_be_meant():
    politeness = Politeness(per_host=1, delay=0, patience=0)
    assert (politeness.per_host, politeness.delay, politeness.patience) == (1, 0, 0)


# Limit, delay and Retry-After.


@pytest.mark.parametrize("limit", [1, 4, 64])
def test_as_many_requests_are_in_flight_as_the_limit_says(limit):
    assert filled(manners(per_host=limit)) == limit


def test_there_is_room_again_when_an_answer_has_come():
    host = manners(per_host=2)
    filled(host)
    host.land(3)
    assert (host.room, host.load.flying) == (True, 1)


def test_a_host_that_is_new_may_be_asked_at_once():
    assert manners(delay=5).free == -math.inf


def test_the_next_request_starts_a_delay_after_the_last_start_whatever_was_answered():
    host = manners(delay=2)
    host.start(10)
    assert host.free == 12
    host.land(10.5)
    assert host.free == 12


def test_a_slow_answer_costs_no_further_delay():
    host = manners(delay=2)
    host.start(10)
    host.land(17)
    assert host.free == 17


def test_a_host_rests_until_the_time_that_it_asked_for():
    host = manners(delay=2)
    host.start(10)
    host.land(130.125)
    assert host.free == 130.125


def test_an_answer_that_asks_for_nothing_shortens_no_rest():
    host = manners()
    host.start(10)
    host.start(10)
    host.land(130.125)
    host.land(11)
    assert host.free == 130.125


def test_a_good_answer_shortens_no_rest_that_was_asked_for():
    host = manners()
    host.start(10)
    host.land(130.125)
    host.succeed(1, 11, adaptive=False)
    assert host.free == 130.125


# Rests.


def test_each_rest_is_twice_the_one_before_up_to_thirty_seconds():
    rests = [rest_after(failures, jitter=0) for failures in range(1, 10)]
    assert rests == [0.25, 0.5, 1, 2, 4, 8, 15, 15, 15]


@pytest.mark.parametrize("failures", [1, 5, 10, 10**6])
@pytest.mark.parametrize("jitter", [0.0, 0.3, 0.999])
def test_chance_takes_away_up_to_half_of_a_rest(failures, jitter):
    whole = min(0.5 * 2 ** min(failures - 1, 99), LONGEST_REST)
    assert rest_after(failures, jitter=jitter) == pytest.approx(whole * (0.5 + jitter / 2))


def test_hosts_that_failed_together_come_back_apart():
    rests = [rest_after(4) for _ in range(1000)]
    assert 2 <= min(rests) < 2.1
    assert 3.9 < max(rests) < 4


def test_a_host_rests_after_a_trouble():
    host = known()
    fails(host, 10)
    assert 10.25 <= host.free < 10.5


def test_while_a_host_fails_one_request_at_a_time_tries_it():
    host = known(per_host=8)
    fails(host, 10)
    assert (host.limit, filled(host)) == (1, 1)


def test_while_many_are_in_flight_to_a_host_that_failed_none_tries_it():
    host = known(per_host=8)
    filled(host)
    host.land(10)
    host.fail(0, 10, adaptive=False)
    for _ in range(7):
        assert not host.room
        host.land(11)
    assert host.room


def test_a_good_answer_gives_back_the_whole_limit():
    host = known(per_host=8)
    fails(host, 10)
    host.start(11)
    host.land(12)
    host.succeed(1, 12, adaptive=False)
    assert (host.limit, filled(host)) == (8, 8)


def test_a_host_that_goes_away_fails_once_whatever_was_in_flight():
    host = known(per_host=64)
    for _ in range(64):
        host.start(5)
    for landing in range(64):
        host.land(10 + landing)
        host.fail(5, 10 + landing, adaptive=False)
    assert host.failures == 1
    assert host.free == 73, "only landings, no rest, after the first"


def test_what_started_after_a_trouble_was_known_is_a_trouble_of_its_own():
    host = known()
    fails(host, 10)
    fails(host, 10.5)
    assert host.failures == 2


def test_while_it_may_be_the_urls_that_fail_a_rest_is_short():
    host = manners()
    for now in range(0, 80, 10):
        fails(host, now)
        assert 0.25 <= host.free - now < 0.5
    fails(host, 90)
    assert 0.5 <= host.free - 90 < 1


def test_however_many_urls_fail_no_rest_is_longer_than_thirty_seconds():
    host = manners()
    for now in range(0, 10_000, 100):
        fails(host, now)
    assert 15 <= host.free - now < 30


def test_while_robots_txt_fails_each_rest_is_twice_the_one_before():
    host = manners()
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
    assert not host.doubtful(0)
    fails(host, 20)
    assert host.doubtful(0)


def test_a_good_answer_between_two_troubles_leaves_no_doubt():
    host = known()
    fails(host, 10)
    host.succeed(1, 15, adaptive=False)
    fails(host, 20)
    assert not host.doubtful(0)


def test_a_host_that_never_answered_is_not_in_doubt():
    host = manners()
    for now in range(10):
        fails(host, now)
    assert not host.doubtful(0)


def test_no_url_is_tried_again_before_robots_txt_has_told_of_its_host():
    host = known()
    assert not host.doubtful(1)
    fails(host, 10)
    assert host.doubtful(1)
    host.vouch()
    assert not host.doubtful(1)
    fails(host, 20)
    assert host.doubtful(1)


def test_where_robots_txt_vouched_often_a_url_is_tried_again_without_it():
    host = known()
    for now in range(0, 3000, 1000):
        troubles_until_doubt(host, now)
        host.vouch()
    fails(host, 3000)
    assert not host.doubtful(1)


def test_a_good_answer_ends_the_doubt():
    host = known()
    fails(host, 10)
    fails(host, 20)
    host.succeed(1, 30, adaptive=False)
    assert (host.doubtful(0), host.failures) == (False, 0)


def troubles_until_doubt(host: Manners, now: float) -> int:
    """Let URLs fail until the host is in doubt; return how many did."""
    count = 0
    while not host.doubtful(0):
        count += 1
        fails(host, now + count)
    return count


def test_each_time_that_robots_txt_vouches_for_a_host_twice_as_many_troubles_bring_doubt():
    host = known()
    counts = []
    for now in range(0, 3000, 1000):
        counts.append(troubles_until_doubt(host, now))
        host.vouch()
    assert counts == [2, 4, 8]


def test_robots_txt_does_not_prove_enough_when_twenty_pages_failed_in_a_row():
    host = known()
    for now in range(20):
        assert not host.unproven
        fails(host, now)
        host.vouch()
    assert host.unproven


def test_a_page_that_came_again_proves_a_host_well_for_twice_as_many_failures():
    host = known()
    for most in (20, 40, 80):
        for now in range(most):
            assert not host.unproven
            fails(host, now)
        assert host.doubtful(0)
        host.vouch(proven=True)
        assert (host.failures, host.doubtful(1), host.unproven) == (0, False, False)


def test_a_new_page_makes_twenty_failures_enough_to_ask_for_proof_again():
    host = known()
    for now in range(20):
        fails(host, now)
    host.vouch(proven=True)
    host.succeed(1, 100, adaptive=False)
    for now in range(200, 220):
        assert not host.unproven
        fails(host, now)
    assert host.unproven


def test_patience_begins_anew_when_a_page_came_again():
    host = known()
    for now in range(0, 350, 10):
        fails(host, now)
    host.vouch(proven=True)
    bears(host, range(350, 710, 10))


def test_a_robots_txt_asked_for_without_doubt_leaves_the_trust_as_it_was():
    host = known()
    host.vouch()
    host.vouch()
    assert troubles_until_doubt(host, 0) == 2


def test_a_good_page_makes_two_troubles_enough_for_doubt_again():
    host = known()
    troubles_until_doubt(host, 0)
    host.vouch()
    host.succeed(1, 100, adaptive=False)
    assert troubles_until_doubt(host, 200) == 2


# Given up.


def test_a_host_that_never_answered_is_lost_after_so_many_tries():
    host = manners()
    bears(host, range(3))
    fails(host, 3)
    assert host.is_lost(3, patience=360, tries=4)


def test_a_host_that_answered_before_is_not_lost_before_the_patience_ends():
    host = known()
    bears(host, range(100, 460, 5))
    fails(host, 460)
    assert host.is_lost(460, patience=360, tries=4)


def test_patience_begins_anew_after_a_good_answer():
    host = known()
    for now in range(0, 355, 5):
        fails(host, now)
    host.succeed(1, 355, adaptive=False)
    bears(host, range(360, 720, 5))


def test_even_without_patience_a_host_has_all_its_tries():
    host = known()
    for now in range(3):
        fails(host, now)
        assert not host.is_lost(now, patience=0, tries=4)
    fails(host, 3)
    assert host.is_lost(3, patience=0, tries=4)


@given(st.floats(0, 300), st.randoms(use_true_random=False))
def test_an_outage_of_five_minutes_loses_no_host(outage, chance):
    host, now, asked = known(), 0.0, 0
    while now <= outage:
        fails(host, now, errand=host.doubtful(0))
        asked += 1
        assert not host.is_lost(now, Politeness().patience, tries=4)
        now = host.free + chance.random()
    assert asked <= 30, "and asks little: it rests longer each time"
    assert now - outage <= LONGEST_REST + 1, "and is asked again soon after it has ended"


# Adaptive.


def test_an_adaptive_limit_begins_at_the_limit_of_every_host():
    assert manners(per_host=3, adaptive=True).limit == 3


def test_with_steady_answers_the_limit_grows_by_one_in_a_round():
    host = manners(per_host=4, adaptive=True)
    for now in range(5):
        answers(host, 0.1, now)
    assert host.limit == 5
    for now in range(5, 11):
        answers(host, 0.1, now)
    assert host.limit == 6


def test_answers_within_twice_the_best_time_are_steady():
    host = manners(per_host=4, adaptive=True)
    answers(host, 0.1, 0)
    for now in range(1, 20):
        answers(host, 0.2, now)
    assert host.limit > 4


def test_a_limit_grows_up_to_64():
    host = manners(per_host=4, adaptive=True)
    for now in range(5000):
        answers(host, 0.1, now)
    assert (host.limit, filled(host)) == (MOST_AT_ONCE, 64)


def slow(host: Manners) -> None:
    """Let the host answer fast for long, and then slowly once."""
    for now in range(200):
        answers(host, 0.1, now)
    before = host.limit
    answers(host, 5, 300)
    assert host.limit == before // 2


def test_a_slow_answer_halves_the_limit():
    host = manners(per_host=4, adaptive=True)
    slow(host)
    assert host.limit >= 8, "from 20 at least"


def test_slow_answers_that_were_in_flight_together_halve_the_limit_once():
    host = manners(per_host=4, adaptive=True)
    slow(host)
    halved = host.limit
    for moment in range(10):
        answers(host, 5 + moment / 10, 300 + moment / 10)
    assert host.limit == halved


def test_slow_answers_to_what_started_later_halve_the_limit_again():
    host = manners(per_host=4, adaptive=True)
    slow(host)
    halved = host.limit
    answers(host, 5, 306)
    assert host.limit == halved // 2


def test_a_limit_never_shrinks_below_one():
    host = manners(per_host=4, adaptive=True)
    answers(host, 0.01, 0)
    for now in range(10, 1000, 10):
        answers(host, 5, now)
    assert (host.limit, filled(host)) == (1, 1)


def test_a_trouble_halves_the_limit_of_the_time_after_it():
    host = manners(per_host=32, adaptive=True)
    host.start(0)
    host.land(1)
    host.fail(0, 1, adaptive=True)
    assert host.limit == 1, "while it fails"
    host.succeed(1, 2, adaptive=False)
    assert host.limit == 16


def test_what_failed_together_halves_the_limit_once():
    host = manners(per_host=32, adaptive=True)
    for _ in range(32):
        host.start(0)
    for _ in range(32):
        host.land(1)
        host.fail(0, 1, adaptive=True)
    host.succeed(1, 2, adaptive=False)
    assert host.limit == 16


def test_without_adaptive_the_limit_stays_whatever_the_answers():
    host = manners(per_host=4)
    for now in range(0, 1000, 10):
        host.succeed(now / 100, now, adaptive=False)
        assert host.limit == 4
    fails(host, 1000)
    host.succeed(1, 1001, adaptive=False)
    assert host.limit == 4


@given(st.lists(st.none() | st.floats(0.001, 30), max_size=100), st.integers(1, 64))
def test_no_more_requests_are_in_flight_than_the_limit_that_is_shown(answered, per_host):
    host = manners(per_host=per_host, adaptive=True)
    now = 0.0
    for seconds in answered:
        now += 10
        if seconds is None:
            host.fail(now - 1, now, adaptive=True)
        else:
            host.succeed(seconds, now, adaptive=True)
        assert 1 <= host.limit <= MOST_AT_ONCE
        assert filled(host) == host.limit
        while host.load.flying:
            host.land(now)


def test_latency_follows_what_answers_take():
    host = manners()
    host.succeed(1, 0, adaptive=False)
    assert host.load.latency == 1
    for now in range(100):
        host.succeed(3, now, adaptive=False)
    assert host.load.latency == pytest.approx(3)


# http and https of one host.


def twins(**politeness: float | bool) -> tuple[Manners, Manners]:
    """Return the manners of a host by http, and by https."""
    plain = manners(**politeness)
    return plain, Manners(Politeness(**politeness), plain.load)


def test_the_two_origins_of_a_host_share_its_limit():
    plain, secure = twins(per_host=4)
    for host in (plain, secure, secure, plain):
        assert host.room
        host.start(0)
    assert (plain.room, secure.room) == (False, False)
    plain.land(1)
    assert (plain.room, secure.room) == (True, True)


def test_the_two_origins_of_a_host_share_its_delay_and_its_retry_after():
    plain, secure = twins(delay=2)
    plain.start(10)
    assert secure.free == 12
    plain.land(130.125)
    assert secure.free == 130.125


def test_a_trouble_by_https_is_none_by_http():
    plain, secure = twins(per_host=4)
    fails(secure, 10)
    assert (secure.failures, secure.limit) == (1, 1)
    assert (plain.failures, plain.limit, plain.free) == (0, 4, 10)


def test_an_origin_that_fails_is_tried_by_one_while_the_other_goes_on():
    plain, secure = twins(per_host=4)
    fails(secure, 10)
    plain.start(11)
    assert secure.room
    secure.start(11)
    assert (secure.room, plain.room) == (False, True)


# What is a trouble of the host.


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504, 599])
def test_a_status_that_speaks_of_the_server_is_a_trouble(status):
    assert troubled(Response(status))


@pytest.mark.parametrize("status", [200, 204, 301, 304, 400, 403, 404, 410, 451, 499, 501, 505])
def test_a_status_that_speaks_of_the_url_is_none(status):
    assert not troubled(Response(status))


@pytest.mark.parametrize(
    ("reason", "phase"),
    [
        (Reason.DNS, Phase.RESOLVE),
        (Reason.REFUSED, Phase.CONNECT),
        (Reason.UNREACHABLE, Phase.CONNECT),
        (Reason.CONNECT_TIMEOUT, Phase.CONNECT),
        (Reason.TIMEOUT, Phase.WAIT),
        (Reason.RESET, Phase.WAIT),
        (Reason.RESET, None),
    ],
)
def test_a_host_that_cannot_be_reached_or_says_nothing_is_in_trouble(reason, phase):
    assert troubled(Fault(reason, phase=phase))


@pytest.mark.parametrize(
    ("reason", "phase"),
    [
        (Reason.TOO_LARGE, Phase.READ),
        (Reason.TIMEOUT, Phase.READ),
        (Reason.RESET, Phase.READ),
        (Reason.INCOMPLETE, Phase.READ),
        (Reason.BAD_REPLY, Phase.WAIT),
        (Reason.BLOCKED_ADDRESS, Phase.RESOLVE),
        (Reason.NO_SOCKETS, Phase.CONNECT),
        (Reason.TLS, Phase.TLS),
    ],
)
def test_what_is_wrong_with_one_answer_or_with_us_is_no_trouble_of_the_host(reason, phase):
    assert not troubled(Fault(reason, phase=phase))
