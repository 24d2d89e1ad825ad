"""Each line of the mutation page is there, and to change it breaks what the page shows."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
sys.path.insert(0, str(DOCS / "mutations"))

import trial  # noqa: E402 - its folder is no package
from table import MUTATIONS, Mutation  # noqa: E402

Trial: TypeAlias = tuple[str, str]
NUMBERS = range(len(MUTATIONS))


@pytest.fixture(scope="module")
def tried() -> Iterator[Callable[[int], Trial]]:
    """Start the trials; return a function that waits for one of them."""
    command = [sys.executable, "-W", "error", str(DOCS / "mutations" / "trial.py")]
    done: list[Trial] = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None

        def wait(number: int) -> Trial:
            while len(done) <= number:
                sound, broken = json.loads(process.stdout.readline())  # type: ignore[union-attr]
                done.append((sound, broken))
            return done[number]

        yield wait
        process.stdout.close()
        process.terminate()


@pytest.mark.parametrize("number", NUMBERS, ids=[each.question for each in MUTATIONS])
def test_a_changed_line_breaks_what_held_before(
    number: int, tried: Callable[[int], Trial]
) -> None:
    sound, broken = tried(number)
    assert sound
    assert broken
    assert sound != broken
    for sign in ("Error", "Enough", "Stuck"):
        # Only a probe that raises by itself shows an exception of the sound crawler.
        assert sign not in sound or MUTATIONS[number].probe in ("reader_raises", "scope_bug")


def test_the_page_shows_what_the_trials_said(
    tried: Callable[[int], Trial], recorded: Callable[[Path, str], None]
) -> None:
    purposes = probes()
    rows = [row(MUTATIONS[n], tried(n), purposes) for n in NUMBERS]
    recorded(DOCS / "generated" / "mutations.md", "\n".join(rows))


def test_a_line_that_is_not_there_exactly_once_is_an_error(tmp_path: Path) -> None:
    home = trial.copied(tmp_path)
    wrong = Mutation("?", "frontier/memory.py", "self._unfinished = 2", "pass", "small", "")
    with pytest.raises(ValueError, match="0 lines"):
        trial.changed(home, wrong)


def test_every_probe_shows_what_some_line_is_for() -> None:
    used = {each.probe for each in MUTATIONS}
    helpers = {"virtual", "raised", "path", "timed"}
    assert set(probes()) - helpers == used


def probes() -> dict[str, str]:
    """Return what each probe does, in its own words."""
    tree = ast.parse((DOCS / "mutations" / "probes.py").read_text())
    functions = (each for each in tree.body if isinstance(each, ast.FunctionDef))
    return {each.name: ast.get_docstring(each) or "" for each in functions}


def row(mutation: Mutation, outputs: Trial, purposes: dict[str, str]) -> str:
    """Write one section of the page: the question, the line, and what the probe said of both."""
    sound, broken = (each.rstrip("\n") for each in outputs)
    return f"""## {mutation.question}

{mutation.answer}

```diff
--- trio_crawler/{mutation.file}
- {mutation.line}
+ {mutation.becomes}
```

The probe `{mutation.probe}`: {purposes[mutation.probe]}

::::{{columns}}

```{{code-block}} text
:caption: as it is
{sound}
```

```{{code-block}} text
:caption: with the line changed
{broken}
```

::::
"""
