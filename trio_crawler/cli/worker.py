"""The commands about a crawl that several processes share: worker, status, stop and drop."""

from __future__ import annotations

from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager
from dataclasses import fields, replace
from functools import partial
from typing import Any

import trio

from trio_crawler.cli.build import Plan
from trio_crawler.cli.declaration import declared
from trio_crawler.cli.directory import meaning_of, settings_of
from trio_crawler.cli.exit import guarded
from trio_crawler.cli.options import CrawlOptions
from trio_crawler.cli.shared_options import Shared
from trio_crawler.cli.signals import SIGNALS
from trio_crawler.report import visible
from trio_crawler.shared import Refused, SharedFrontier, opened_store
from trio_crawler.store import DifferentCrawl, Unusable, merge

_REMEDY = "give another --crawl, or drop that one"
_BUDGET = "max_pages"


def joined(options: CrawlOptions, shared: Shared, given: Collection[str]) -> CrawlOptions:
    """Return the options of a worker without URLs: those that define the crawl are stored.

    Raises Refused if there is no such crawl, and DifferentCrawl if an option that was `given` has
    another value.
    """

    async def read() -> dict[str, Any] | None:
        async with opened_store(shared.store, shared.crawl) as store:
            return await store.meaning()

    meaning = trio.run(read)
    if meaning is None:
        raise Refused("NONE")
    defining = {each.key: name for name, each in declared(CrawlOptions) if each.same_crawl}
    known = {each.name for each in fields(CrawlOptions)}
    named = {defining.get(key, key): value for key, value in meaning.items()}
    stored: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in named.items()
        # A list of URLs is read by the worker that has it.
        if name in known and name != "seed_stream"
    }
    typed = {
        key: value
        for key, value in _meaning(options, ()).items()
        if defining.get(key, key) in given
    }
    _check(shared, meaning, typed)
    return replace(options, **stored)


def _meaning(options: CrawlOptions, seeds: Sequence[str]) -> dict[str, Any]:
    # The page budget is that of all workers.
    return {**meaning_of(options, seeds), _BUDGET: options.max_pages}


def _check(shared: Shared, stored: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    # A worker that joins has no list.
    compared = {key: value for key, value in given.items() if key != "list"}
    place = f"the shared crawl {visible(shared.crawl)}"
    DifferentCrawl.check(place, stored, compared, _REMEDY)


@asynccontextmanager
async def shared_frontier(options: CrawlOptions, plan: Plan) -> AsyncIterator[SharedFrontier]:
    """Connect to the store, and make the frontier of a worker.

    Raises Unusable for a store that cannot be used, and DifferentCrawl for options that are not
    those of the crawl.
    """
    shared = Shared(*options.shared or ("", ""))
    given = _meaning(options, plan.seeds)
    async with opened_store(shared.store, shared.crawl) as store:
        stored = await store.meaning()
        if stored is not None:
            _check(shared, stored, given)
        frontier = SharedFrontier(
            store,
            meaning=given if stored is None else stored,
            directory=options.directory,
            settings=settings_of(options, plan),
        )
        async with frontier:
            yield frontier


def _asked(ask: Callable[[Any], Awaitable[int]], shared: Shared) -> int:
    async def main() -> int:
        async with opened_store(shared.store, shared.crawl) as store:
            return await ask(store)

    return guarded(partial(trio.run, main))


def merged(directories: Sequence[str], output: str) -> int:
    """Join the directories of workers; print how many URLs they have."""

    def join() -> int:
        urls, twice = merge(output, directories, SIGNALS.check)
        both = f"; {twice:,} of them were in two directories" if twice else ""
        print(f"{urls:,} URLs in {visible(output)}{both}")
        return 0

    return guarded(join)


def status(shared: Shared) -> int:
    """Print the counts of a crawl, and its workers."""
    return _asked(partial(_status, shared.crawl), shared)


async def _status(crawl: str, store: Any) -> int:
    counts = await store.counts()
    if counts is None:
        raise Refused("NONE")
    left = counts.added - counts.done
    over = "" if left else ", and the crawl is over"
    # One unit is that of the given URLs.
    admitted, done, out = counts.added - 1, counts.done - counts.seeded, counts.out
    seeds = "" if counts.seeded else ", and the given URLs are not all read"
    print(f"Crawl {visible(crawl)}: {admitted:,} URLs admitted{seeds}{over}")
    print(f"{done:,} done, {admitted - done - out:,} waiting, {out:,} with workers")
    for name, hosts in zip(counts.workers, counts.hosts, strict=True):
        print(f"worker {visible(name)}: {hosts:,} hosts")
    return 0


def stop(shared: Shared) -> int:
    """Let all workers end early."""
    return _asked(_stop, shared)


async def _stop(store: Any) -> int:
    if await store.meaning() is None:
        raise Refused("NONE")
    await store.stop()
    return 0


def drop(shared: Shared) -> int:
    """Remove a crawl that no worker has."""
    return _asked(_drop, shared)


async def _drop(store: Any) -> int:
    counts = await store.counts()
    if counts is None:
        raise Refused("NONE")
    if counts.workers:
        raise Unusable("this crawl has workers: stop it, and drop it when they have left")
    print(f"{await store.drop():,} keys removed")
    return 0
