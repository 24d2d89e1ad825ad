from __future__ import annotations

import random
import tracemalloc

from hypothesis import given
from hypothesis import strategies as st

from trio_crawler.report.link_graph import LinkGraph

nodes = st.integers(0, 20)
steps = st.lists(st.tuples(nodes, st.lists(nodes)) | nodes, max_size=60)


@given(steps, st.sets(nodes), st.integers(1, 8), st.integers(0, 3))
def test_no_link_to_a_target_that_is_needed_is_lost(
    taken: list[tuple[int, list[int]] | int], asked: set[int], block: int, free: int
) -> None:
    graph, added, closed = LinkGraph(block, free), [], set()
    for step in taken:
        if isinstance(step, tuple):
            graph.add(*step)
            added += [(step[0], target) for target in step[1]]
        else:
            graph.drop_links_to(step)
            closed.add(step)
    asked -= closed
    assert sorted(graph.links_to(asked)) == sorted(edge for edge in added if edge[1] in asked)


def test_links_to_dropped_targets_are_removed_as_new_links_are_added() -> None:
    graph = LinkGraph()
    for source in range(1_000):
        graph.add(source, range(1_000))
    assert len(graph) == 1_000_000
    for target in range(1_000):
        graph.drop_links_to(target)
    for source in range(1_000):
        graph.add(source, range(1_000))
    assert len(graph) < 600_000


def test_a_link_to_a_page_that_is_to_come_takes_less_than_5_bytes() -> None:
    chance = random.Random(1)
    targets = [chance.randrange(1_000_000) for _ in range(200_000)]
    graph = LinkGraph(free_blocks=0)
    graph.drop_links_to(1_000_000)
    tracemalloc.start()
    for source in range(10_000):
        graph.add(source, targets[20 * source : 20 * source + 20])
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(graph) == 200_000
    assert size < 5 * 200_000


def test_an_empty_graph_has_no_links() -> None:
    assert list(LinkGraph().links_to([])) == []
    assert list(LinkGraph().links_to([3])) == []
