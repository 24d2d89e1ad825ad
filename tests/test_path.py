"""The way of one URL through the crawler, counted in calls and in changes of file."""

from __future__ import annotations

from bench.path import changes, followed


def test_one_url_takes_at_most_100_calls_and_60_changes_of_file():
    calls = followed()
    assert {"settle", "fetch", "outcomes"} & {name.rpartition(".")[2] for _, name in calls}
    assert len(calls) <= 100
    assert changes(calls) <= 60
