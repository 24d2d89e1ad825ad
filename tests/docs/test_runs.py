"""Every command that a page shows is run, and prints what the page shows."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path

import comparative
import pytest
import run
from comparative import recording

DOCS = Path(run.__file__).parent
SHOWN = sorted(
    {found for page in DOCS.rglob("*.md") for found in comparative.shown(page.read_text())}
)


@pytest.mark.parametrize("command", SHOWN, ids=SHOWN)
def test_a_command_prints_what_the_page_shows(
    command: str, recorded: Callable[[Path, str], None]
) -> None:
    arguments = shlex.split(command)
    recorded(recording(arguments), run.run(arguments))


def test_every_recorded_output_is_shown_by_a_page(request: pytest.FixtureRequest) -> None:
    shown = {recording(shlex.split(command)) for command in SHOWN}
    kept = set((DOCS / "out").iterdir())
    if request.config.getoption("--update", default=False):
        for path in kept - shown:
            path.unlink()
        kept &= shown
    assert kept == shown
