"""Tables of URLs in few bytes."""

from __future__ import annotations

import tracemalloc

from hypothesis import given
from hypothesis import strategies as st

from trio_crawler.ledger.tables import TextList, UrlTable


@given(st.lists(st.lists(st.text(max_size=5) | st.just("\ud800\n"), max_size=9), max_size=30))
def test_numbers_and_urls_are_those_of_a_dict(portions):
    table, model = UrlTable(), dict[str, int]()
    for urls in portions:
        for url in urls:
            model.setdefault(url, len(model))
        assert list(table.numbers(urls)) == [model[url] for url in urls]
    assert len(table) == len(model)
    assert list(table.urls) == list(model)
    assert [table.number(url) for url in model] == list(model.values())
    assert {url: table.known(url) for url in model} == model
    assert table.known("another") is None


def test_texts_come_back_from_every_block():
    texts, wanted = TextList(), [f"https://site.test/{n}/{'q' * (n % 900)}" for n in range(3_000)]
    for text in wanted:
        texts.append(text)
    assert list(texts) == wanted
    assert [texts[n] for n in range(3_000)] == wanted


def test_long_urls_that_are_alike_take_less_than_100_bytes_each():
    table = UrlTable()
    tracemalloc.start()
    for number in range(20_000):
        table.number(f"https://site.test/{number}x{'q' * 1_900}")
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert size < 100 * 20_000
