"""Every frontier that a crawl can be given: in memory, in SQLite, shared, and of the guide."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import TypeAlias

import trio
from sites import valkey
from sites.store_model import StoreModel

from trio_crawler import Frontier, MemoryFrontier, SqliteFrontier
from trio_crawler.shared.frontier import SharedFrontier
from trio_crawler.shared.message import SharedStore
from trio_crawler.shared.redis_store import opened_store

GUIDE = Path(__file__).parents[2] / "docs" / "guide"

Opened: TypeAlias = Callable[[], AbstractAsyncContextManager[Frontier]]


@asynccontextmanager
async def in_memory(directory: Path) -> AsyncIterator[Frontier]:
    yield MemoryFrontier()


@asynccontextmanager
async def in_sqlite(directory: Path) -> AsyncIterator[Frontier]:
    async with SqliteFrontier(directory) as frontier:
        yield frontier


@asynccontextmanager
async def of_the_guide(directory: Path) -> AsyncIterator[Frontier]:
    # Not at the top: the guide is no package.
    sys.path.insert(0, str(GUIDE))
    try:
        from frontier import MappingFrontier  # type: ignore[import-not-found]
    finally:
        sys.path.remove(str(GUIDE))
    yield MappingFrontier({})


@asynccontextmanager
async def shared(directory: Path) -> AsyncIterator[Frontier]:
    yield SharedFrontier(StoreModel(), meaning={})


@asynccontextmanager
async def on_a_server(directory: Path) -> AsyncIterator[Frontier]:
    with valkey.server(directory) as url:
        async with opened_store(url, "laws") as store:
            yield SharedFrontier(Awake(store), meaning={})


class Awake:
    """A store; no virtual clock jumps while it is asked."""

    def __init__(self, store: SharedStore) -> None:
        self._store = store

    async def call(self, command: str, message: bytes) -> bytes:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_spin)
            reply = await self._store.call(command, message)
            nursery.cancel_scope.cancel("the store has answered")
        return reply


async def _spin() -> None:
    while True:
        await trio.lowlevel.checkpoint()


FRONTIERS = [in_memory, in_sqlite, of_the_guide]
EVERY = [*FRONTIERS, shared, on_a_server]
"""Those as well that workers share: they check no links."""
