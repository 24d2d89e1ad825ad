"""Whatever call of SQLite or of the system fails: the crawl says so, and a resume is complete."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio
from durable.faults import OF_FILES, OF_SQLITE, Faults, Kind
from durable.small import Small, at_once, law

from trio_crawler import StoreError


async def told(crawl: Small) -> list[str]:
    """Run a crawl; return what it says in the end, if it cannot go on. Other errors are raised."""
    said: list[str] = []
    try:
        assert law(await crawl.run())
    except* StoreError as group:
        said += [str(error) for error in _leaves(group)]
    return said


def _leaves(group: BaseExceptionGroup[StoreError]) -> list[StoreError]:
    found: list[StoreError] = []
    for error in group.exceptions:
        found += _leaves(error) if isinstance(error, BaseExceptionGroup) else [error]
    return found


@pytest.fixture
def step(request: pytest.FixtureRequest) -> int:
    """Before a merge every fifth call fails, with `--all` each."""
    return 1 if request.config.getoption("--all") else 5


async def fail_at_each_call(
    home: Path, faults: Faults, kind: Kind, whole: Small, step: int
) -> None:
    at = 1 - step
    while True:
        at += step
        crawl = Small(home / f"at{at}")
        with faults.armed(kind, at):
            said = await told(crawl)
        if not faults.failed:
            break
        where = f"{kind.name} at call {at} ({faults.failed[0]})"
        for text in said:
            assert len(text.splitlines()) == 1, where
            assert str(home) in text, where
        assert len(set(said)) <= 1, where
        assert law(await crawl.run()), where
        assert crawl.complaints(whole, stops=1) == [], where
    assert at > 20


@pytest.mark.parametrize("kind", OF_SQLITE, ids=lambda kind: kind.name)
async def test_a_crawl_survives_a_fault_at_any_call_of_sqlite(
    memory, monkeypatch, autojump_clock, whole, kind, step
):
    monkeypatch.setattr(trio.to_thread, "run_sync", at_once)
    faults = Faults(monkeypatch, memory, sqlite=True)
    await fail_at_each_call(memory, faults, kind, whole, step)


@pytest.mark.parametrize("kind", OF_FILES, ids=lambda kind: kind.name)
async def test_a_crawl_survives_a_fault_at_any_call_for_a_file(
    memory, monkeypatch, autojump_clock, whole, kind, step
):
    monkeypatch.setattr(trio.to_thread, "run_sync", at_once)
    faults = Faults(monkeypatch, memory, sqlite=False)
    await fail_at_each_call(memory, faults, kind, whole, step)
