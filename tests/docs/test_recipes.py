"""The recipes: each is run, and those for CI are files that a tool can read."""

from __future__ import annotations

import configparser
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import yaml
from sites import valkey
from sites.serving import named, serving

from trio_crawler.cli import demo
from trio_crawler.cli.main import main

ROOT = Path(__file__).resolve().parents[2]
RECIPES = ROOT / "docs/recipes"
COMMAND = Path(sys.executable).with_name("trio-crawler")
HOLE = "/ferry/timetable.html"


def read(name: str) -> Any:
    return yaml.safe_load((ROOT / name).read_text())


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Make the folder of a project that has built its site as ./public."""
    shutil.copytree(demo.SITE, tmp_path / "public")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/trio-crawler").symlink_to(COMMAND)
    return tmp_path


def shell(script: str, project: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a script as a runner does, where the command is installed."""
    path = f"{project / 'bin'}:{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", script],
        cwd=project,
        env=os.environ | {"PATH": path} | environment,
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_the_action_annotates_what_is_broken_and_writes_a_summary(project: Path) -> None:
    action = read("action.yml")
    install, check = (step for step in action["runs"]["steps"] if "run" in step)
    assert install["run"].endswith('install --quiet "$GITHUB_ACTION_PATH"')
    (project / "trio_crawler").symlink_to(project)
    summary = project / "summary.md"
    summary.touch()
    given = read("docs/recipes/github.yml")["jobs"]["links"]["steps"][-2]["with"]
    assert set(check["env"]) == {"WHAT", "OPTIONS"}
    result = shell(
        check["run"],
        project,
        WHAT=given["what"],
        OPTIONS=given["options"].replace(" --sarif", "\n--sarif"),
        RUNNER_TEMP=str(project),
        GITHUB_STEP_SUMMARY=str(summary),
    )
    assert result.returncode == 1
    assert "::error file=public/about.html,line=12,col=4" in result.stdout
    assert HOLE in summary.read_text()
    assert (project / "links.sarif").stat().st_size


def test_an_input_of_the_action_is_no_command(project: Path) -> None:
    check = read("action.yml")["runs"]["steps"][-1]
    (project / "trio_crawler").symlink_to(project)
    words = {"WHAT": "$(touch harm)", "OPTIONS": "--depth $(touch harm) `touch harm`"}
    result = shell(check["run"], project, RUNNER_TEMP=".", GITHUB_STEP_SUMMARY="s", **words)
    assert result.returncode == 2
    assert not (project / "harm").exists()


def test_the_workflow_may_upload_what_the_action_writes() -> None:
    workflow = read("docs/recipes/github.yml")
    assert workflow["permissions"] == {"contents": "read", "security-events": "write"}
    *_, check, upload = workflow["jobs"]["links"]["steps"]
    assert f"--sarif {upload['with']['sarif_file']}" in check["with"]["options"]


def test_the_job_of_gitlab_writes_the_report_that_it_keeps(project: Path) -> None:
    job = read("docs/recipes/gitlab.yml")["links"]
    install, _, check = job["script"]
    assert install.endswith("trio_crawler-*.whl")
    assert shell(check, project).returncode == 1
    assert HOLE in (project / job["artifacts"]["reports"]["junit"]).read_text()


def test_the_hook_checks_the_folder_that_is_named(project: Path) -> None:
    (hook,) = read(".pre-commit-hooks.yaml")
    (used,) = read("docs/recipes/pre-commit-config.yaml")["repos"][0]["hooks"]
    assert used["id"] == hook["id"]
    result = shell(shlex.join([*shlex.split(hook["entry"]), *used["args"]]), project)
    assert (result.returncode, HOLE in result.stdout) == (1, True)


@pytest.fixture
def site() -> Iterator[str]:
    with demo.served(0) as url:
        yield url


def test_the_lines_of_cron_find_new_faults_and_let_a_crawl_go_on(project: Path, site: str) -> None:
    text = (RECIPES / "crontab").read_text().replace("https://docs.example.org/", site)
    check, crawl = (line.split(maxsplit=5)[5] for line in text.splitlines() if line[0] != "#")
    (project / "known.jsonl").write_text('{"trio_crawler_baseline":1}\n')
    (project / "trio_crawler/.venv").mkdir(parents=True)
    (project / "trio_crawler/.venv/bin").symlink_to(project / "bin")
    found = shell(check, project, HOME=str(project))
    assert (found.returncode, HOLE in found.stdout) == (1, True)
    begun = shell(f"{crawl} --max-pages 1", project, HOME=str(project))
    assert "a greater --max-pages goes on" in begun.stdout


def test_the_image_runs_as_a_plain_user_and_its_commands_can_be_read(project: Path) -> None:
    text = (RECIPES / "Dockerfile").read_text()
    steps = [line.split(maxsplit=1) for line in text.splitlines() if line and line[0] != "#"]
    names = [name for name, _ in steps]
    assert names.index("USER") < names.index("ENTRYPOINT")
    for name, command in steps:
        assert (
            name != "RUN" or not shell(f"bash -n <<< {shlex.quote(command)}", project).returncode
        )
    words = yaml.safe_load(steps[-2][1]) + yaml.safe_load(steps[-1][1])
    assert shell(shlex.join(words), project).stdout.startswith("Usage: trio-crawler")


@contextmanager
def store(command: str, place: Path) -> Iterator[str]:
    """Run the server of a recipe; yield its URL."""
    name, *options = shlex.split(command)
    assert name == "valkey-server"
    with valkey.server(place, *options) as url:
        yield url


def test_workers_in_containers_share_a_crawl_and_their_directories_can_be_merged(
    project: Path, site: str
) -> None:
    services = read("docs/recipes/compose.yml")["services"]
    (command,) = services["worker"]["command"]
    (project / "crawl").mkdir()
    with store(services["store"]["command"], project) as url:
        words = command.replace("redis://store:6379/0", url).replace("$$", "$")
        words = words.replace("/crawl/", f"{project}/crawl/")
        words = words.replace("https://docs.example.org/ https://blog.example.org/", site)
        runs = [shell(words, project, HOSTNAME=name) for name in ("a1", "b2", "a1")]
    # The second has nothing left to do.
    assert [run.returncode for run in runs] == [1, 3, 1], runs
    comment = (RECIPES / "compose.yml").read_text().splitlines()[1]
    merge = comment.split("'")[1].replace("/crawl/", f"{project}/crawl/")
    assert "URLs in" in shell(merge, project).stdout


def test_a_worker_of_systemd_is_started_again_unless_its_options_are_wrong(
    project: Path, site: str, tmp_path: Path
) -> None:
    unit = configparser.ConfigParser(interpolation=None, strict=False)
    unit.optionxform = str  # type: ignore[assignment, method-assign]
    unit.read(RECIPES / "trio-crawler@.service")
    service = unit["Service"]
    compose = read("docs/recipes/compose.yml")["services"]["store"]["command"]
    with store(compose, project) as url:
        words = service["ExecStart"].replace("redis://store.example.org:6379/0", url)
        words = words.replace("/opt/trio-crawler/bin/", "").replace("%i", "one")
        words = words.replace("https://docs.example.org/ https://blog.example.org/", site)
        assert shell(words, project).returncode == 1
        wrong = shell(f"{words} --refresh", project)
    assert str(wrong.returncode) == service["RestartPreventExitStatus"]
    assert (project / "one/crawl.sqlite").is_file()
    assert service["SuccessExitStatus"] == str(128 + signal.SIGTERM)
    if systemd := shutil.which("systemd-analyze"):
        file = shutil.copy(
            RECIPES / "trio-crawler@.service", tmp_path / "trio-crawler@one.service"
        )
        line = [systemd, "verify", str(file)]
        told = subprocess.run(line, capture_output=True, text=True, check=False).stderr
        # The program is not where the unit has it.
        own = [each for each in told.splitlines() if each.startswith(file.name)]
        assert not [each for each in own if "is not executable" not in each]


def test_the_workflow_of_this_repository_runs_its_own_check() -> None:
    steps = read(".github/workflows/ci.yml")["jobs"]["check"]["steps"]
    assert steps[-1]["run"] == "bash .ci/run"
    assert (ROOT / ".ci/run").is_file()


# The page of recipes.

PAGE = (ROOT / "docs/guide/recipes.md").read_text().partition("## In CI")[0]
SITE = "https://docs.example.org/"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def handbook() -> Iterator[str]:
    with serving(named("handbook")) as site:
        yield site.url


def typed(line: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run a line of a shell; return what it prints. Our own command is run in this process."""
    assignment, ours, words = line.partition("trio-crawler ")
    if not ours:
        return subprocess.run(["bash", "-ec", line], text=True, capture_output=True).stdout
    for each in shlex.split(assignment):
        monkeypatch.setenv(*each.split("=", 1))
    # The site of a recipe is on loopback here.
    given = [*shlex.split(words), "--allow-private", "127.0.0.1"]
    monkeypatch.setattr(sys, "argv", ["trio-crawler", *given])
    said = StringIO()
    with redirect_stdout(said), redirect_stderr(said), pytest.raises(SystemExit) as end:
        main()
    assert end.value.code in (0, 1), said.getvalue()
    return said.getvalue()


@pytest.mark.parametrize("recipe", PAGE.split("\n## ")[1:], ids=lambda each: each.split("\n")[0])
def test_a_recipe_does_what_it_says(
    recipe: str, handbook: str, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project)
    said = ""
    for kind, block in BLOCK.findall(recipe.replace(SITE, handbook)):
        if kind == "python":
            with redirect_stdout(StringIO()) as printed:
                exec(compile(block, "recipes.md", "exec"), {"__name__": "__main__"})
            said = printed.getvalue()
        elif kind == "text":
            assert block == said
        for part in block.split("$ ")[1:] if kind == "console" else ():
            line, *rest = re.sub(r"\n {6,}", " ", part).splitlines()
            said = typed(line, monkeypatch)
            for shown in rest:
                assert shown in said
