"""Check the commit that is checked out, in clones of it, by the steps of .ci/steps.toml.

.ci/run             what a merge needs
.ci/run --all       everything: interpreters, fuzzers, sanitizers, crash rigs, applications
.ci/run STEP...     these steps alone
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

CI = Path(__file__).resolve().parent
README = (CI.parent / "README.md").read_text()
LINE = re.compile(r"^ {4}(python3 -m venv .*) && (\S+ -m pytest .*)$", re.MULTILINE)
INSTALL, TEST = LINE.search(README).groups()
FIRST = re.search(r"^ {4}(python3 -m venv .* demo)$", README, re.MULTILINE)[1]
LIMIT, LONG_LIMIT = 900, 3600
"""Seconds that a step may take, and with `--all`."""


class Step(NamedTuple):
    name: str
    command: str
    environment: str
    wide: bool
    only: str | None


def interpreters() -> dict[str, str]:
    """Return the Pythons from 3.11 on that are here, by version, the oldest first."""
    found = {}
    for minor in range(11, 20):
        built = sorted(Path.home().glob(f".pyenv/versions/3.{minor}.*/bin/python3"))
        here = [*map(str, built), *filter(None, [shutil.which(f"python3.{minor}")])]
        found |= {f"3.{minor}": here[0]} if here else {}
    return found or {"first": sys.executable}


def steps(pythons: list[str]) -> list[Step]:
    """Return all steps."""
    tables = tomllib.loads((CI / "steps.toml").read_text())
    words = tables.pop("words") | {"readme": TEST, "first": FIRST}
    environments = {"first": pythons[:1], "others": pythons[1:], "floors": ["floors"]}
    return [
        Step(
            name if len(environments[kind]) < 2 else f"{name}-{environment}",
            table["command"].format(**words),
            environment,
            table.get("wide", False),
            table.get("only"),
        )
        for name, table in tables.items()
        for kind in [table.get("environment", "first")]
        for environment in environments[kind]
    ]


def floors() -> str:
    """Return the least version of each package that pyproject.toml declares, a line each."""
    project = tomllib.loads((CI.parent / "pyproject.toml").read_text())["project"]
    lines = [*project["dependencies"], *project["optional-dependencies"]["http2"]]
    return "\n".join(re.sub(r"(\[\w+\])?>=([\w.]+)(,[^;]*)?", r"==\2", line) for line in lines)


def prepare(clone: Path, python: str, packages: str) -> None:
    """Make a clone and its environment by README.md's own line, with uv if that is here."""
    clone.mkdir(exist_ok=True)
    copy = f"git -C {CI.parent} archive HEAD | tar -x"
    line = INSTALL.replace("python3", python, 1).replace("'.[test]'", packages)
    if shutil.which("uv"):
        line = line.replace(f"{python} -m venv", f"uv venv -q --allow-existing -p {python}")
        line = line.replace(".venv/bin/pip install --quiet", "uv pip install -q")
    # What is imported is compiled then, which is the smaller part of it.
    line = line.replace("install --quiet", "install --quiet --no-compile")
    subprocess.run(f"{copy} && {line}", shell=True, cwd=clone, check=True, timeout=LIMIT)


def run(work: Path, step: Step, limit: float) -> bool:
    """Run a step and say how it ended; its log is kept."""
    log, begun = work / f"{step.name}.log", time.monotonic()
    with log.open("wb") as out:
        child = subprocess.Popen(
            ["bash", "-c", step.command],
            cwd=work / step.environment,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            end = child.wait(limit)
        except subprocess.TimeoutExpired:
            end = f"not over after {limit} s"
            os.killpg(child.pid, signal.SIGKILL)
    told = [line for line in log.read_text(errors="replace").splitlines() if line[-2:] != "%]"]
    how, seconds = f"FAILED ({end})" if end else "ok", time.monotonic() - begun
    shown = told[-400 if end else -1 :]
    print(f"== {step.name}: {how}, {seconds:.0f} s", *shown, sep="\n", flush=True)
    return end == 0


def main(words: list[str]) -> int:
    begun, pythons = time.monotonic(), interpreters()
    everything = "--all" in words
    named = [word for word in words if word != "--all"]
    known = steps(list(pythons))
    if unknown := set(named) - {step.name for step in known}:
        print(f"no step is called {', '.join(unknown)}: {', '.join(step.name for step in known)}")
        return 2
    left_out = "merge" if everything else "all"
    chosen = [each for each in known if each.name in named or not (named or each.only == left_out)]
    limit = LONG_LIMIT if everything else LIMIT
    with (CI / "packages").open("rb") as script, open(os.devnull, "wb") as nowhere:
        packages = subprocess.Popen(["bash"], stdin=script, stdout=nowhere, stderr=nowhere)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ.pop("VIRTUAL_ENV", None)
    work = Path(tempfile.mkdtemp(prefix="trio-crawler-", dir="/tmp"))
    (work / "shared").symlink_to(CI.parents[1] / "shared")
    (work / "floors.txt").write_text(floors())
    first = next(iter(pythons))
    failed = []
    print(f"{', '.join(step.name for step in chosen)}: logs in {work}", flush=True)
    if chosen[0].name == "readme":
        # What it installs suffices for what it tests.
        prepare(work / first, pythons[first], "'.[test]'")
        print(f"== installed, {time.monotonic() - begun:.0f} s", flush=True)
        failed += [] if run(work, chosen.pop(0), limit) else ["readme"]
    wanted = {first: "'.[dev]'", "floors": "'.[test,http2]' -c ../floors.txt"}
    names = sorted({step.environment for step in chosen})
    with ThreadPoolExecutor(2) as pool:
        pythons_of = [pythons.get(name, pythons[first]) for name in names]
        packages_of = [wanted.get(name, "'.[test,docs]'") for name in names]
        list(pool.map(prepare, [work / name for name in names], pythons_of, packages_of))
    print(f"== installed, {time.monotonic() - begun:.0f} s", flush=True)
    packages.wait(limit)
    wide = [step for step in chosen if step.wide]
    for threads, some in ((1, wide), (2, [step for step in chosen if not step.wide])):
        with ThreadPoolExecutor(threads) as pool:
            ends = pool.map(lambda step: run(work, step, limit), some)
            failed += [step.name for step, end in zip(some, ends, strict=True) if not end]
    for clone in {step.environment for step in known}:
        shutil.rmtree(work / clone, ignore_errors=True)
    told = f"FAILED: {', '.join(failed)}" if failed else "ok"
    print(f"{told}, {time.monotonic() - begun:.0f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
