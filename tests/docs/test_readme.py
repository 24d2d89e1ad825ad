"""README.md: short, true, and each command and program in it runs."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
import terminal
from cases import for_each
from cli.command import crawl

from trio_crawler import Politeness
from trio_crawler.cli import demo
from trio_crawler.cli.main import command

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "README.md").read_text()
LINKS = re.findall(r'(?:\]\(|src=")([^)"]+)', TEXT)
COMMANDS = re.findall(
    r"^ {4}(\S.*)$", re.sub(r"```.*?```", "", TEXT, flags=re.DOTALL), re.MULTILINE
)
PROGRAMS = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    with demo.served(0) as url:
        yield url


def test_readme_is_short_and_has_a_picture() -> None:
    assert len(TEXT.split()) <= 900
    assert TEXT.index("docs/terminal.svg") < TEXT.index("## ")


@for_each("link", [link for link in LINKS if "://" not in link])
def test_every_link_of_readme_leads_to_a_file(link: str) -> None:
    assert (ROOT / link).is_file()


def test_every_command_of_readme_is_run(site: str) -> None:
    # By .ci/run: the two lines that make an environment.
    made = [line for line in COMMANDS if line.startswith("python3 -m venv")]
    assert [line.split()[-1] for line in made] == ["demo", "loadfile"]
    rest = [shlex.split(line) for line in COMMANDS if line not in made]
    assert [words[:2] for words in rest] == [[".venv/bin/trio-crawler", "check"]] * len(rest)
    for words in rest:
        given = words[2].replace("https://example.org/", site)
        result = crawl("check", given.replace("./public", str(demo.SITE)))
        assert result.returncode == 1
        assert "/ferry/timetable.html" in result.stdout


@for_each("program", PROGRAMS)
def test_every_program_of_readme_runs(
    program: str, site: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "http://127.0.0.1:8000/" in program
    run = compile(program.replace("http://127.0.0.1:8000/", site), "README.md", "exec")
    exec(run, {"__name__": "__main__"})
    assert f"{site}visit.html Plan a visit" in capsys.readouterr().out


def test_the_program_of_the_first_page_stands_in_that_of_readme() -> None:
    page = (ROOT / "docs/index.md").read_text()
    block = page.partition("```python\n")[2].partition("```")[0]
    lines = block.replace("https://docs.example.org/", "http://127.0.0.1:8000/").splitlines()
    assert "\n".join(f"    {line}" for line in lines) in PROGRAMS[0]


def test_the_figures_of_readme_are_those_of_the_pages_that_prove_them() -> None:
    page = (ROOT / "docs/guide/checkers.md").read_text()
    rows = {
        line.split(" | ")[0].strip("| "): re.findall(r"[\d.]+", line.partition(" | ")[2])
        for line in page.splitlines()
        if line.startswith("|")
    }
    found = rows["67 faults of the tests' own site"]
    alarms = rows["false alarms"]
    cpu = rows["Python, with 4,000 links to other hosts"]
    # There: ours, linkinator, linkchecker, lychee; here lychee is the second.
    for name, (ours, linkinator, linkchecker, lychee) in {
        "seeded faults found, of 67": found,
        "false alarms there": alarms,
        "CPU seconds for Python's documentation": cpu,
    }.items():
        assert f"| {name} | {ours} | {lychee} | {linkinator} | {linkchecker} |" in TEXT
    least, most = min(found[1:]), max(found[1:])
    fewest, worst = min(alarms[1:]), max(alarms[1:])
    assert f"find {least} to {most} there, with {fewest} to {worst} false alarms" in TEXT
    assert f"{found[0]} of 67 faults" in TEXT
    assert f"at most {Politeness().per_host} requests at once" in TEXT
    faults = len((demo.SITE / "_faults").read_text().splitlines())
    assert f"hides {['five', 'six', 'seven'][faults - 5]} faults" in TEXT
    given = {each.name: each.default for each in command.params}
    assert f"a page gets {given['timeout']:.0f} s and {given['max_bytes'] // 2**20} MiB" in TEXT


def test_the_failures_are_as_many_as_the_pages_say() -> None:
    assert len([*(ROOT / "docs/failures").glob("*.md")]) == 19
    assert "through nineteen failures" in TEXT
    said = {"index": "nineteen pairs", "four": "nineteen bad places", "failures": "Eighteen more"}
    for name, words in said.items():
        assert words in (ROOT / f"docs/{name}.md").read_text()


def test_the_account_and_the_calendar_of_readme_are_those_of_the_demo(site: str) -> None:
    told = crawl("-v", site)
    assert f"`{re.findall('^admitted .*$', told.stdout, re.MULTILINE)[0]}`" in TEXT
    months = len(re.findall(r"^200 .*/calendar/", told.stderr, re.MULTILINE))
    assert f"calendar without an end gets {months} pages" in " ".join(TEXT.split())


def test_the_terminal_of_readme_is_what_two_runs_show() -> None:
    def masked(svg: str) -> list[str]:
        lines = re.findall(r"<text [^>]*>(.*)</text>", svg)
        # How many pages and URLs there were when Ctrl-C came is chance.
        chance = ("in flight", "goes on")
        numbers = re.compile(r"\d+")
        return [
            numbers.sub("0", line) if any(each in line for each in chance) else line
            for line in lines
        ]

    shown = masked((ROOT / "docs/terminal.svg").read_text())
    anew = masked(terminal.drawn(terminal.transcript()))
    assert anew == shown
