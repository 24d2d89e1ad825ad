"""The commands about a crawl that several processes share: worker, status, stop and drop."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
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
from trio_crawler.shared import Refused, SharedCounts, SharedFrontier, opened_store
from trio_crawler.store import DifferentCrawl, Unusable, merge

_REMEDY = "give another --crawl, or drop that one"


def joined(options: CrawlOptions, shared: Shared, typed: Collection[str]) -> CrawlOptions:
    """Return the options of a worker without URLs: those that define the crawl are stored.

    Those that were `typed` stay. Raises Refused if there is no such crawl.
    """

    async def read() -> dict[str, Any] | None:
        async with opened_store(shared.store, shared.crawl) as store:
            return await store.meaning()

    meaning = trio.run(read)
    if meaning is None:
        raise Refused("NONE")
    defining = {each.key: name for name, each in declared(CrawlOptions) if each.same_crawl}
    named = {defining.get(key, key): value for key, value in meaning.items()}
    # A list of URLs is read by the worker that has it.
    known = {each.name for each in fields(CrawlOptions)} - {*typed, "seed_stream"}
    stored: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in named.items()
        if name in known
    }
    return replace(options, **stored)


@asynccontextmanager
async def shared_frontier(options: CrawlOptions, plan: Plan) -> AsyncIterator[SharedFrontier]:
    """Connect to the store, and make the frontier of a worker.

    Raises Unusable for a store that cannot be used, and DifferentCrawl for options that are not
    those of the crawl.
    """
    shared = Shared(*options.shared or ("", ""))
    strands = shared.strands
    given = meaning_of(options, plan.seeds)
    async with opened_store(shared.store, shared.crawl) as store:
        stored = await store.meaning()
        if stored is not None:
            # A worker that joins has no list.
            compared = {key: value for key, value in given.items() if key != "list"}
            place, remedy = f"the shared crawl {visible(shared.crawl)}", [_REMEDY]
            if shared.silent:
                # The directory of `--processes`, in which this worker has its own.
                place, remedy = visible(str(Path(options.directory or "").parents[1])), []
            DifferentCrawl.check(place, stored, compared, *remedy)
            strands = stored.pop("strands", 1)
            if strands > 1 and (options.per_host < strands or options.delay or options.adaptive):
                need = f"--mine, or --per-host {strands} or more, and no --delay or --adaptive"
                raise Unusable(f"{place}: its hosts are divided in {strands}: give {need}")
        meaning = given if stored is None else stored
        frontier = SharedFrontier(
            store,
            meaning=meaning,
            directory=options.directory,
            settings=settings_of(options, plan),
            strands=strands,
            # A list is read by the worker that has it.
            seeds=shared.seeds and (not meaning.get("list") or options.seed_stream is not None),
        )
        async with frontier:
            yield frontier


def merged(directories: Sequence[str], output: str) -> int:
    """Join the directories of workers; print how many URLs they have."""

    def join() -> int:
        urls, twice = merge(output, directories, SIGNALS.check)
        both = f"; {twice:,} of them were in two directories" if twice else ""
        print(f"{urls:,} URLs in {visible(output)}{both}")
        return 0

    return guarded(join)


def asked(command: str, shared: Shared, *, as_json: bool = False) -> int:
    """Run "status", "stop" or "drop" about a crawl."""

    async def main() -> int:
        async with opened_store(shared.store, shared.crawl) as store:
            counts = await store.counts()
            if counts is None:
                raise Refused("NONE")
            if command == "status":
                _show(shared.crawl, counts, as_json)
            elif command == "stop":
                await store.stop()
            elif counts.workers:
                raise Unusable("this crawl has workers: stop it, and drop it when they have left")
            else:
                print(f"{await store.drop():,} keys removed")
        return 0

    return guarded(partial(trio.run, main))


def _show(crawl: str, counts: SharedCounts, as_json: bool) -> None:
    """Print how far a crawl is, and its workers."""
    over = counts.added == counts.done
    # One unit is that of the given URLs.
    admitted, done, out = counts.added - 1, counts.done - counts.seeded, counts.out
    waiting, workers = admitted - done - out, dict(zip(counts.workers, counts.hosts, strict=True))
    if as_json:
        told = {"crawl": crawl, "admitted": admitted, "done": done, "waiting": waiting}
        told |= {"with_workers": out, "seeded": counts.seeded, "over": over, "workers": workers}
        print(json.dumps(told))
        return
    ended = ", and the crawl is over" if over else ""
    seeds = "" if counts.seeded else ", and the given URLs are not all read"
    print(f"Crawl {visible(crawl)}: {_count(admitted, 'URL')} admitted{seeds}{ended}")
    print(f"{done:,} done, {waiting:,} waiting, {out:,} with workers")
    for name, hosts in workers.items():
        print(f"worker {visible(name)}: {_count(hosts, 'host')}")


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
