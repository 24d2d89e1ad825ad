"""The clock of the day is set back or forward by a day in the middle of a crawl."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from cli.command import wait_until
from durable.crawls import Durable, assert_equal
from durable.server import Served, served
from durable.site import Site

from trio_crawler import History

DAY = 86_400


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    with served(Site(150, 5), 150, 5) as server:
        yield server


def clock(home: Path, by: int, after: float) -> dict[str, str]:
    return {"LD_PRELOAD": str(home / "clock.so"), "CLOCK_BY": str(by), "CLOCK_AFTER": str(after)}


def sane(crawl: Durable) -> bool:
    """Tell whether nothing took a day, or less than no time."""
    with History(crawl.directory) as history:
        spans = [run.seconds for run in history.runs]
        spans += [getattr(outcome, "seconds", 0.0) for outcome in history.outcomes()]
        spans.append(history.statistics().seconds)
        return all(0 <= span < 120 for span in spans)


@pytest.mark.parametrize("by", [-DAY, DAY, 400 * DAY], ids=["back", "forward", "for a year"])
def test_a_clock_that_is_set_in_the_middle_of_a_crawl_does_it_no_harm(
    server, outcomes, preloaded, tmp_path, by
):
    server.begin(tmp_path / "log")
    crawl = Durable(server, tmp_path)
    # In the middle of a run, and back again before the next.
    started = crawl.start(**clock(preloaded, by, 0.6))
    wait_until(lambda: len(server.asked()) > 100)
    started.killed()
    assert crawl.run().whole
    assert_equal(crawl, outcomes)
    assert sane(crawl)
