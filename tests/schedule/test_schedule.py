"""How near the schedule of many hosts comes to the bound that no schedule can beat.

The bound is the longer of two times: the one that the slowest host needs if it never waits for a
worker, and the one that all pages need if no worker ever waits.
"""

from __future__ import annotations

import pytest
from sites.simulated_web import TIMEOUT, Crawl, web

from trio_crawler import Job
from trio_crawler.policy.plan import Plan
from trio_crawler.schedule.host_scheduler import HostScheduler
from trio_crawler.schedule.origin import Share

HOST = "http://long.test/"
WORKERS = 60


def small(seed: int, silent: float = 0.0) -> Crawl:
    """Crawl 300 hosts."""
    return Crawl(web(300, seed=seed, silent=silent, largest=4000), WORKERS, seeds=40).run()


@pytest.mark.parametrize("seed", range(1, 4))
def test_300_hosts_of_all_sizes_take_at_most_a_quarter_longer_than_the_bound(seed):
    crawl = small(seed)
    assert sum(site.pages for site in crawl.sites) == sum(site.size for site in crawl.sites)
    assert 0 <= crawl.over <= 0.25


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 4))
@pytest.mark.parametrize("workers", [50, 200])
def test_3000_hosts_of_all_sizes_take_at_most_a_quarter_longer_than_the_bound(seed, workers):
    crawl = Crawl(web(3000, seed=seed), workers, seeds=200).run()
    assert len(crawl.ended) == sum(site.size for site in crawl.sites)
    assert 0 <= crawl.over <= 0.25


def test_a_host_needs_long_only_beside_others():
    scheduler = HostScheduler(Plan(workers=WORKERS))
    for number in range(500):
        scheduler.put(Job(f"{HOST}{number}"), 0.0)
    origin = scheduler.origin(HOST)
    origin.state.page_ok(0.1, 0.0)
    scheduler.moved(origin, 0.0)
    assert origin.share is Share.FAIR
    scheduler.put(Job("http://other.test/"), 0.0)
    scheduler.moved(origin, 0.0)
    assert origin.share is Share.LONG


@pytest.mark.slow
def test_the_last_of_3000_hosts_is_requested_soon_after_first_requests_alone_would_have_been():
    crawl = Crawl(web(3000, seed=1), workers=200, seeds=200).run()
    alone = sum(site.latency for site in crawl.sites) / 200
    assert crawl.first_requests[-1] <= 2 * alone
    assert crawl.first_requests[1500] <= alone


@pytest.mark.parametrize("seed", range(1, 4))
def test_a_host_that_needs_long_for_its_crawl_delay_hardly_waits_for_a_worker(seed):
    crawl = small(seed)
    # Those that wait for nothing but their delay, and for long.
    delayed = [site for site in crawl.sites if site.delay and site.least >= 20]
    assert delayed
    for site in delayed:
        assert site.ended - site.begun <= site.least + site.delay + 4


@pytest.mark.parametrize("seed", range(1, 4))
def test_hosts_that_hang_hold_at_most_a_quarter_of_the_workers_while_well_ones_wait(seed):
    crawl = small(seed, silent=0.25)
    assert len(crawl.kept_waiting) >= 20
    assert max(crawl.kept_waiting) < WORKERS // 4
    assert all(site.pages == site.size for site in crawl.sites if not site.silent)


@pytest.mark.parametrize("workers", [1, 2, 3, 4])
def test_hosts_that_hang_do_not_stop_a_crawl_with_few_workers(workers):
    sites = web(12, seed=3, silent=0.5, largest=40)
    crawl = Crawl(sites, workers, seeds=12).run()
    silent = [site for site in sites if site.silent]
    assert silent
    assert all(site.begun < crawl.now for site in sites)
    assert all(site.pages == site.size for site in sites if not site.silent)
    assert crawl.now <= 2 * TIMEOUT * len(silent) + sum(site.least * 4 for site in sites) + 60
