from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from trio_crawler.report.shortlist import Shortlist

items = st.lists(st.tuples(st.integers(), st.text()))


@given(items, st.none() | st.integers(0, 5))
def test_a_shortlist_keeps_the_least_in_order_and_counts_the_rest(
    added: list[tuple[int, str]], most: int | None
) -> None:
    shortlist: Shortlist[tuple[int, str]] = Shortlist(most)
    for item in added:
        shortlist.add(item)
    assert shortlist.items == sorted(added)[:most]
    assert shortlist.total == len(added)
    assert shortlist.beyond == len(added) - len(shortlist.items)
