"""Every frontier that a crawl can be given: in memory, in SQLite, shared, and of the guide."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import TypeAlias

from trio_crawler import Frontier, MemoryFrontier, SqliteFrontier
from trio_crawler.frontier.shared.frontier import SharedFrontier
from trio_crawler.frontier.shared.model import StoreModel

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
    yield SharedFrontier(StoreModel())


FRONTIERS = [in_memory, in_sqlite, of_the_guide, shared]
