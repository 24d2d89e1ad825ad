"""The directories of workers are merged: each URL has one outcome, the later one."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace
from store.batches import SITE, page

from trio_crawler.facts import PageFacts
from trio_crawler.model import Failure, Outcome, Reason, Redirect, Skipped
from trio_crawler.policy.settings import HostStatistics
from trio_crawler.store import DifferentCrawl, merge
from trio_crawler.store.errors import StoreError
from trio_crawler.store.history import History
from trio_crawler.store.runs import End
from trio_crawler.store.store import Store
from trio_crawler.store.writer import Batch

HOST = HostStatistics("site.test", 0, 0, 4, 0.5, 0.0, 0.25, 0, {}, pages=2, bytes=10)


def part(
    home: Path,
    name: str,
    ends: dict[int, tuple[float, Outcome]],
    *,
    how: End = End.FINISHED,
    depth: int = 1,
) -> Path:
    """Make the directory of a worker; of each number the time and the outcome."""
    with Store.open(home / name, meaning={"depth": depth}, settings={"seeds": [SITE]}) as store:
        batch = Batch()
        for number, (at, outcome) in ends.items():
            about = (outcome.depth, 10, outcome.referrer, None)
            batch.admitted.append((number, outcome.url, "page", *about))
            batch.settled.append((number, at, outcome))
        store.write(batch)
        store.end(how, [HOST], 2.0)
    return home / name


def outcomes(directory: Path) -> dict[str, Outcome]:
    with History(directory) as history:
        found = list(history.outcomes())
    return {outcome.url: outcome for outcome in found}


def test_the_outcomes_of_all_workers_are_in_the_merged_directory(tmp_path: Path) -> None:
    facts = PageFacts(fetched=1.0, h1=("A",))
    one = {3: (1.0, page("a", links=(f"{SITE}b",), facts=facts)), 1: (1.0, page(""))}
    two = {
        2: (2.0, Redirect(f"{SITE}r", 301, f"{SITE}a")),
        4: (1.0, Failure(f"{SITE}f", Reason.TIMEOUT)),
        5: (0.0, Skipped(f"{SITE}s", Reason.ROBOTS)),
    }
    parts = [part(tmp_path, "one", one), part(tmp_path, "two", two)]
    assert merge(tmp_path / "out", parts) == (5, 0)
    merged = outcomes(tmp_path / "out")
    assert merged == outcomes(parts[0]) | outcomes(parts[1])
    assert [*merged] == [SITE, f"{SITE}r", f"{SITE}a", f"{SITE}f", f"{SITE}s"]
    with History(tmp_path / "out") as history:
        (run,) = history.runs
        assert (run.how, run.seconds, run.settings) == (End.FINISHED, 2.0, {"seeds": [SITE]})
        assert history.hosts() == {"site.test": replace(HOST, pages=4, bytes=20)}
        assert history.statistics().pages == 2


@pytest.mark.parametrize("order", [1, -1])
def test_of_a_url_in_two_directories_the_later_outcome_counts(tmp_path: Path, order: int) -> None:
    early, late = page("a", title="early", links=(f"{SITE}b",)), page("a", title="late")
    skipped = Skipped(f"{SITE}s", Reason.STOPPED)
    parts = [
        part(tmp_path, "one", {1: (1.0, early), 2: (0.0, skipped)}),
        part(tmp_path, "two", {1: (2.0, late), 2: (1.0, page("s"))}),
    ]
    assert merge(tmp_path / "out", parts[::order]) == (2, 2)
    merged = outcomes(tmp_path / "out")
    assert merged == outcomes(parts[1])
    assert merged[early.url].links == ()


@pytest.mark.parametrize("last", [End.FINISHED, End.SPENT, End.STOPPED])
def test_the_merged_crawl_has_ended_as_the_workers_did_that_came_farthest(
    tmp_path: Path, last: End
) -> None:
    parts = [part(tmp_path, "one", {}, how=End.STOPPED), part(tmp_path, "two", {}, how=last)]
    merge(tmp_path / "out", parts)
    with History(tmp_path / "out") as history:
        assert [run.how for run in history.runs] == [last]


def test_other_crawls_and_a_directory_with_a_crawl_are_refused(tmp_path: Path) -> None:
    one, two = part(tmp_path, "one", {}), part(tmp_path, "two", {}, depth=2)
    with pytest.raises(DifferentCrawl, match="depth was 1, now it is 2"):
        merge(tmp_path / "out", [one, two])
    with pytest.raises(StoreError, match="it has a crawl already: give a new one"):
        merge(two, [one])
    with pytest.raises(StoreError, match="there is no crawl in it"):
        merge(tmp_path / "new", [tmp_path / "nowhere"])
    assert not (tmp_path / "new").exists()
