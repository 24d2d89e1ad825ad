from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trio_crawler.report import edges as module
from trio_crawler.report.edges import Edges

nodes = st.integers(0, 20)
steps = st.lists(st.tuples(nodes, st.lists(nodes)) | nodes, max_size=60)


@given(steps, st.sets(nodes), st.integers(1, 8), st.integers(0, 3))
def test_no_edge_to_an_open_target_is_ever_lost(
    taken: list[tuple[int, list[int]] | int], asked: set[int], block: int, free: int
) -> None:
    edges, added, closed = Edges(), [], set()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_BLOCK", block)
        patch.setattr(module, "_FREE", free)
        for step in taken:
            if isinstance(step, tuple):
                edges.add(*step)
                added += [(step[0], target) for target in step[1]]
            else:
                edges.close(step)
                closed.add(step)
    asked -= closed
    assert sorted(edges.leading_to(asked)) == sorted(edge for edge in added if edge[1] in asked)


def test_edges_to_closed_targets_are_dropped_as_new_ones_come() -> None:
    edges = Edges()
    for source in range(1_000):
        edges.add(source, range(1_000))
    assert len(edges) == 1_000_000
    for target in range(1_000):
        edges.close(target)
    for source in range(1_000):
        edges.add(source, range(1_000))
    assert len(edges) < 600_000


def test_nothing_is_asked_of_no_edges() -> None:
    assert list(Edges().leading_to([])) == []
    assert list(Edges().leading_to([3])) == []
