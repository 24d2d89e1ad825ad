"""The rota alone: whose turn it is, and what becomes of places that were left."""

from __future__ import annotations

import math

from trio_crawler.frontier.origin import Host
from trio_crawler.frontier.queues import Fifo
from trio_crawler.frontier.rota import Rota
from trio_crawler.policy.host_state import Manners
from trio_crawler.policy.politeness import Politeness


def hosts(count: int) -> list[Host]:
    return [Host(f"http://h{n}", Fifo(), Manners(Politeness()), None) for n in range(count)]


def test_the_one_with_fewest_in_flight_comes_first_then_the_one_that_waited_longest():
    rota, (one, two, three) = Rota(), hosts(3)
    one.manners.load.flying = 1
    for host in (one, two, three):
        rota.place(host, 0, 0)
    assert [rota.pop() for _ in range(4)] == [two, three, one, None]


def test_a_host_that_was_alone_is_judged_by_what_it_has_in_flight_when_another_comes():
    rota, (alone, other) = Rota(), hosts(2)
    rota.place(alone, 0, 0)
    alone.manners.load.flying = 3
    rota.place(alone, 0, 0)
    other.manners.load.flying = 2
    rota.place(other, 0, 0)
    assert [rota.pop(), rota.pop()] == [other, alone]


def test_a_host_that_rests_comes_when_it_has_rested():
    rota, (one, two) = Rota(), hosts(2)
    rota.place(one, 5, 0)
    rota.place(two, 3, 0)
    assert (rota.pop(), rota.wakes, rota.rested(2.9)) == (None, 3, None)
    assert (rota.rested(5), rota.rested(5), rota.wakes) == (two, one, math.inf)


def test_whoever_is_placed_anew_has_left_the_old_place():
    rota, (one,) = Rota(), hosts(1)
    rota.place(one, 5, 0)
    rota.place(one, 0, 0)
    assert (rota.pop(), rota.pop(), rota.rested(9)) == (one, None, None)
    rota.place(one, 0, 0)
    rota.remove(one)
    assert rota.pop() is None


def test_places_that_were_left_are_swept_out_and_nothing_rests_there_any_more():
    rota, many = Rota(), hosts(200)
    for until in (10, 0):
        for host in many:
            rota.place(host, until, 0)
    while rota.pop():
        pass
    assert rota.rested(11) is None
    assert rota.wakes == math.inf
