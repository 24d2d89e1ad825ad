"""The heap of hosts alone: which has its turn, and what becomes of places that were left."""

from __future__ import annotations

import math

from trio_crawler.policy.host_load import HostLoad
from trio_crawler.policy.settings import Politeness
from trio_crawler.schedule.host_heap import HostHeap
from trio_crawler.schedule.host_state import HostState
from trio_crawler.schedule.origin import Host, Origin
from trio_crawler.schedule.queues import FifoQueue


def origins(count: int) -> list[Origin]:
    made = []
    for number in range(count):
        load = HostLoad(Politeness())
        host = Host(f"h{number}", load)
        state = HostState(Politeness(), load)
        made.append(Origin(f"http://h{number}", host, FifoQueue(), state))
    return made


def test_the_one_with_fewest_in_flight_comes_first_then_the_one_that_waited_longest():
    heap, (one, two, three) = HostHeap(), origins(3)
    one.host.load.in_flight = 1
    for host in (one, two, three):
        heap.place(host, 0, 0)
    assert [heap.pop() for _ in range(4)] == [two, three, one, None]


def test_a_host_that_was_alone_is_judged_by_what_it_has_in_flight_when_another_comes():
    heap, (alone, other) = HostHeap(), origins(2)
    heap.place(alone, 0, 0)
    alone.host.load.in_flight = 3
    heap.place(alone, 0, 0)
    other.host.load.in_flight = 2
    heap.place(other, 0, 0)
    assert [heap.pop(), heap.pop()] == [other, alone]


def test_a_host_that_rests_comes_when_it_has_rested():
    heap, (one, two) = HostHeap(), origins(2)
    heap.place(one, 5, 0)
    heap.place(two, 3, 0)
    assert (heap.pop(), heap.wakes, heap.pop_rested(2.9)) == (None, 3, None)
    assert (heap.pop_rested(5), heap.pop_rested(5), heap.wakes) == (two, one, math.inf)


def test_an_origin_that_is_placed_anew_has_left_its_old_place():
    heap, (one,) = HostHeap(), origins(1)
    heap.place(one, 5, 0)
    heap.place(one, 0, 0)
    assert (heap.pop(), heap.pop(), heap.pop_rested(9)) == (one, None, None)
    heap.place(one, 0, 0)
    heap.remove(one)
    assert heap.pop() is None


def test_places_that_were_left_are_swept_out_and_nothing_rests_there_any_more():
    heap, many = HostHeap(), origins(200)
    for until in (10, 0):
        for host in many:
            heap.place(host, until, 0)
    while heap.pop():
        pass
    assert heap.pop_rested(11) is None
    assert heap.wakes == math.inf
