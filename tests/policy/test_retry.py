from __future__ import annotations

from trio_crawler.policy.retry import delay_before


def test_each_delay_is_twice_the_one_before():
    assert [delay_before(tries, jitter=0) for tries in (1, 2, 3)] == [0.25, 0.5, 1.0]


def test_chance_at_most_doubles_a_delay():
    delays = [delay_before(1) for _ in range(1000)]
    assert 0.25 <= min(delays) < max(delays) <= 0.5
