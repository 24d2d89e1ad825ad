"""Arguments of a wrong kind, and calls after the end, are refused by a sentence."""

from __future__ import annotations

import pytest
from cases import for_each
from store.batches import page, walk

from trio_crawler import History
from trio_crawler.store.store import Store


@pytest.mark.parametrize("directory", [None, 7, b"crawl"])
def test_a_history_refuses_anything_but_a_path(directory):
    with pytest.raises(TypeError) as refused:
        History(directory)
    assert str(refused.value) == f"directory must be a path as a str or Path, not {directory!r}"


@for_each(
    "call, error, sentence",
    [
        (lambda h: h.outcomes("1"), TypeError, "walk must be a whole number, not '1'"),
        (lambda h: h.statistics(True), TypeError, "walk must be a whole number, not True"),
        (lambda h: h.sitemaps(0), ValueError, "walk must be 1 or more, not 0"),
        (
            lambda h: h.listing(None),
            TypeError,
            "url must be a URL as a str or httpx.URL, not None",
        ),
        (lambda h: h.listing("u", walk=1.0), TypeError, "walk must be a whole number, not 1.0"),
        (lambda h: h.owns(3), TypeError, "path must be a path as a str or Path, not 3"),
    ],
)
def test_a_history_refuses_arguments_by_their_name(tmp_path, call, error, sentence):
    walk(tmp_path, [page("a")])
    with History(tmp_path) as history, pytest.raises(error) as refused:
        call(history)
    assert str(refused.value) == sentence


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


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((None, bytes), "path must be a path as a str or Path, not None"),
        (("x", b"record"), "encode must be a function from an outcome to bytes, not b'record'"),
        (("x", bytes, b"head"), "head must be a function that returns bytes, not b'head'"),
        (("x", bytes, bytes, None), "rest must be a function that returns bytes, not None"),
    ],
)
def test_a_stream_is_refused_arguments_by_their_name(tmp_path, arguments, sentence):
    with Store.open(tmp_path) as store:
        with pytest.raises(TypeError) as refused:
            store.stream(*arguments)
        assert str(refused.value) == sentence


def test_a_stream_takes_outcomes_only(tmp_path):
    with Store.open(tmp_path) as store:
        stream = store.stream(tmp_path / "x", lambda outcome: b"")
        with pytest.raises(TypeError) as refused:
            stream.add("https://a.test/")
        assert str(refused.value) == "outcome must be an outcome, not 'https://a.test/'"
