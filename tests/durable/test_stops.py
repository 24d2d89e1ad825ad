"""Ctrl-C and SIGTERM: once, and what is in flight ends; twice, and all ends. All is resumed."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from random import Random

import pytest
from cli.command import wait_until
from durable import compare
from durable.crawls import Durable, assert_completed
from durable.server import Served, served
from durable.site import Site

SLOW = 60.0
"""Seconds that the server takes to answer."""


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    with served(Site(150, 3), 150, 3) as server:
        yield server


def test_after_one_signal_nothing_is_asked_for_twice(server, outcomes, tmp_path):
    server.begin(tmp_path / "log")
    crawl = Durable(server, tmp_path)
    random = Random()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGINT):
        started = crawl.start()
        # It is about any instant; each run asks for a part of the site.
        pages = random.randrange(1, 30)
        wait_until(lambda run=started.number, pages=pages: len(server.asked(run)) >= pages)
        started.send(number)
        run = started.ended()
        assert run.status in (128 + number, 1), run
        assert "Traceback" not in run.err
    assert_completed(crawl, outcomes)
    asked = {path: [a.run for a in server.asked() if a.path == path] for path in server.site.urls}
    assert compare.lost_at(asked, server.site) == {}


def test_after_one_signal_what_does_not_answer_is_given_up_in_five_seconds(
    server, outcomes, tmp_path
):
    number = signal.SIGINT
    server.begin(tmp_path / "log")
    server.slow_down(SLOW)
    crawl = Durable(server, tmp_path)
    started = crawl.start()
    wait_until(lambda: started.has_asked("/slow/"))
    started.send(number)
    # It ends long before the server answers.
    run = started.ended(patience=SLOW / 2)
    server.slow_down(0)
    assert run.status == 128 + number
    assert "Traceback" not in run.err
    assert_completed(crawl, outcomes)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_second_signal_ends_at_once(server, outcomes, tmp_path, number):
    server.begin(tmp_path / "log")
    server.slow_down(SLOW)
    crawl = Durable(server, tmp_path)
    started = crawl.start()
    wait_until(lambda: started.has_asked("/slow/"))
    started.send(number)
    wait_until(lambda: started.has_said("once more to stop at once"))
    started.send(number)
    run = started.ended(patience=SLOW / 2)
    server.slow_down(0)
    assert run.status == 128 + number
    assert "stopped at once by" in run.out
    assert "Traceback" not in run.err
    assert_completed(crawl, outcomes)
