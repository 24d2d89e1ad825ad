"""The command is killed with -9 at random instants: the short form of rigs/kills.py."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest
from durable import strike
from durable.crawls import (
    Durable,
    assert_completed,
    assert_equal,
    kill_again_and_again,
    whole_crawl,
)
from durable.server import Served, served
from durable.site import Site

SEED = 7


def test_a_crawl_that_is_killed_again_and_again_loses_nothing_and_writes_nothing_twice(tmp_path):
    with served(Site(300, SEED), 300, SEED) as server:
        first, outcomes = whole_crawl(server, tmp_path)
        assert_equal(first, outcomes)
        startup = server.asked(1)[0].seconds - first.runs[0].begun
        seconds = first.runs[0].seconds - startup
        # At other instants each time: what is wrong is told. A crawl may end before the first one.
        for attempt in range(9):
            killed = Durable(server, tmp_path / f"killed{attempt}")
            server.begin(tmp_path / f"log{attempt}")
            if kill_again_and_again(killed, Random(), 5, startup, seconds):
                break
        else:
            pytest.fail("each crawl has ended before the first kill")
        assert_completed(killed, outcomes)
        # Once it is whole, the command only tells so.
        run = killed.run()
        assert run.whole
        assert server.asked(run.number) == []


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    with served(Site(30, SEED), 30, SEED) as server:
        yield server


@pytest.mark.parametrize("blow", strike.BLOWS, ids=lambda blow: blow.name)
def test_the_command_ends_well_when_struck_at_a_call_to_the_disk(
    server, outcomes, tmp_path, preloaded, blow
):
    # A crawl makes some 250 calls, half of them while it makes the database.
    at = Random().randrange(1, 200)
    crawl = Durable(server, tmp_path / f"struck{at}")
    server.begin(tmp_path / "log")
    env = strike.environment(preloaded / "strike.so", crawl.home, at, blow)
    run = crawl.run(**env)
    if not run.whole:
        assert list(strike.told(run, blow)) == []
    assert_completed(crawl, outcomes)
