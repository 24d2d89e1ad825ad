"""Every command that a page shows is run, and prints what the page shows."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import comparative
import pytest
import run
from comparative import recording

DOCS = Path(run.__file__).parent
SHOWN = sorted(
    {found for page in DOCS.rglob("*.md") for found in comparative.shown(page.read_text())}
)


@pytest.fixture(scope="module")
def runs(request: pytest.FixtureRequest) -> Iterator[dict[str, Future[str]]]:
    """Run the commands of the tests that were chosen, three at a time: most of them wait."""
    mine = [item for item in request.session.items if item.path == request.path]
    chosen = [item.callspec.params["command"] for item in mine if hasattr(item, "callspec")]
    with ThreadPoolExecutor(3) as pool:
        yield {command: pool.submit(run.run, shlex.split(command)) for command in chosen}
        pool.shutdown(cancel_futures=True)


@pytest.mark.parametrize("command", SHOWN, ids=SHOWN)
def test_a_command_prints_what_the_page_shows(
    command: str, runs: dict[str, Future[str]], recorded: Callable[[Path, str], None]
) -> None:
    recorded(recording(shlex.split(command)), runs[command].result())


def test_every_recorded_output_is_shown_by_a_page(request: pytest.FixtureRequest) -> None:
    shown = {recording(shlex.split(command)) for command in SHOWN}
    kept = set((DOCS / "out").iterdir())
    if request.config.getoption("--update", default=False):
        for path in kept - shown:
            path.unlink()
        kept &= shown
    assert kept == shown
