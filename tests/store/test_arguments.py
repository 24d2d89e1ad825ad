"""Arguments of a wrong kind, and calls after the end, are refused by a sentence."""

from __future__ import annotations

import pytest
from cases import for_each
from store.batches import page, walk

from trio_crawler import History
from trio_crawler.store.store import Store


@for_each(
    "call",
    [
        lambda history: history.runs,
        lambda history: history.walks,
        lambda history: history.meaning,
        lambda history: history.owns("x"),
        lambda history: history.outcomes(),
        lambda history: history.statistics(1),
        lambda history: history.sitemaps(),
        lambda history: history.listing("https://a.test/"),
        lambda history: history.hosts(),
        lambda history: list(history.changes()),
    ],
)
def test_a_history_that_is_closed_says_so(tmp_path, call):
    walk(tmp_path, [page("a")])
    with History(tmp_path) as history:
        pass
    with pytest.raises(RuntimeError) as refused:
        call(history)
    path = tmp_path / "crawl.sqlite"
    assert str(refused.value) == f"{path}: it is closed: open the directory again"


def test_outcomes_that_are_being_read_end_with_the_history(tmp_path):
    walk(tmp_path, [page(str(number)) for number in range(1_000)])
    with History(tmp_path) as history:
        outcomes = history.outcomes()
        next(outcomes)
    with pytest.raises(RuntimeError, match="it is closed"):
        list(outcomes)


def test_a_stream_takes_outcomes_only(tmp_path):
    with Store.open(tmp_path) as store:
        stream = store.stream(tmp_path / "x", lambda outcome: b"")
        with pytest.raises(TypeError) as refused:
            stream.add("https://a.test/")
        assert str(refused.value) == "outcome must be an outcome, not 'https://a.test/'"
