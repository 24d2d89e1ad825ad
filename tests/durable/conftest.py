"""What the tests of durable crawls share."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import trio
from durable import strike
from durable.crawls import whole_crawl
from durable.server import Served
from durable.small import Small
from durable.small import whole_crawl as whole_small_crawl

from trio_crawler import Outcome

_MEMORY = "/dev/shm"


def pytest_itemcollected(item: pytest.Item) -> None:
    item.add_marker("process")


@pytest.fixture
def memory() -> Iterator[Path]:
    """Give a directory that needs no disk, where there is one: hundreds of crawls wait for it."""
    with TemporaryDirectory(dir=_MEMORY if os.access(_MEMORY, os.W_OK) else None) as name:
        yield Path(name)


@pytest.fixture
async def whole(memory: Path, autojump_clock: trio.testing.MockClock) -> Small:
    """Make a small crawl that nothing has stopped; the test must ask for the clock, too."""
    return await whole_small_crawl(Small(memory / "whole"))


@pytest.fixture(scope="module")
def outcomes(server: Served, tmp_path_factory: pytest.TempPathFactory) -> list[Outcome]:
    """Crawl what the module's `server` serves by the command, which nothing has stopped."""
    return whole_crawl(server, tmp_path_factory.mktemp("whole"))[1]


@pytest.fixture(scope="session")
def preloaded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the directory of what can be preloaded; without a compiler the test is skipped."""
    if strike.compiler() is None:
        pytest.skip("no C compiler")
    home = tmp_path_factory.mktemp("preloaded")
    for name in ("strike", "clock"):
        strike.built(home, name)
    return home
