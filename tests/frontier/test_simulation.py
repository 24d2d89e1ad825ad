"""A million URLs of ten thousand hosts in virtual time, against the ideal schedule.

The bound that no schedule beats is the longer of two times: all work shared among workers that
never wait, and the host that takes longest if it never waits for a worker. Turns are fair, so a
host that is huge gets no more of scarce workers than others do, and must go on alone at the end:
a crawl comes near the bound where one of the two times is much the longer, and where they are
alike it takes up to both, one after the other. `tests/bench/schedule.py` prints such crawls, and
what a decision costs.
"""

from __future__ import annotations

import pytest
from bench.schedule import Crawled, cost, cost_table, crawled, schedule_table, sizes

pytestmark = pytest.mark.slow


def shown(run: Crawled) -> Crawled:
    """Print a crawl, for `pytest -s`."""
    print("\n" + schedule_table([run]))
    return run


def test_a_million_urls_of_ten_thousand_hosts_take_no_more_than_5_percent_above_the_ideal():
    run = shown(crawled(hosts=10_000, urls=1_000_000, workers=1000, seed=1))
    assert run.urls == 1_000_000
    assert 0 <= run.over <= 0.05


def test_where_the_workers_are_few_they_are_busy_95_percent_of_the_time():
    run = shown(crawled(hosts=1000, urls=50_000, workers=10, seed=1, steepness=0.4))
    assert run.bound == run.work / run.workers
    assert 0 <= run.over <= 0.05
    assert run.busy >= 0.95


@pytest.mark.parametrize("workers", [20, 100])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_no_crawl_takes_longer_than_all_its_work_and_then_its_longest_host(workers, seed):
    run = shown(crawled(hosts=500, urls=10_000, workers=workers, seed=seed))
    assert run.over >= 0
    assert run.makespan <= run.work / run.workers + run.longest


def test_a_host_takes_less_than_a_kibibyte_and_a_waiting_url_a_few_bytes():
    # Where the tables of a dict have just grown, a host takes the most.
    measured = cost(hosts=22_000, decisions=1000)
    print("\n" + cost_table([measured]))
    assert measured.host < 1024
    assert measured.url < 16


def test_the_simulated_hosts_are_of_all_sizes():
    urls = sizes(10_000, 1_000_000)
    assert sum(urls) == 1_000_000
    assert urls[0] == max(urls) > 500 * urls[5000]
    assert min(urls) > 1
