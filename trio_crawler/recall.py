"""Recall: teach what judges URLs what it has learned in earlier runs of the same crawl."""

from __future__ import annotations

from itertools import chain

from trio_crawler.engine.links import Outlinks
from trio_crawler.frontier.protocol import Past
from trio_crawler.policy.traps.watch import Watch


def recall(past: Past, watch: Watch | None, outlinks: Outlinks) -> None:
    """Go through what earlier runs have left; to be called before the crawl goes on.

    Of a million URLs that takes some seconds, so it is for a thread.
    """
    if watch is not None:
        watch.recall(chain.from_iterable(past.urls))
        watch.recall_copies(past.bodies)
    if outlinks.folds:
        for outcome in past.outcomes:
            outlinks.recall(outcome)
