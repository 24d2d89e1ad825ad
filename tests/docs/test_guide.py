"""What the crawler's own pages say is generated from the crawler, or checked against it."""

from __future__ import annotations

import ast
import doctest
import importlib.util
import inspect
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from enum import Enum
from fnmatch import fnmatchcase
from functools import cache
from importlib import import_module
from io import StringIO
from pathlib import Path
from tempfile import mkdtemp
from textwrap import dedent
from types import ModuleType
from xml.etree import ElementTree

import click
import pytest
from bench import figures
from cases import for_each
from sites.valkey import server

import trio_crawler
from trio_crawler import check, frontier, ledger, model, net, report, shared, store, testing
from trio_crawler.cli.command import Command
from trio_crawler.cli.main import _COMMANDS as COMMANDS
from trio_crawler.cli.main import command
from trio_crawler.reason import REASONS, Kind, Reason
from trio_crawler.report.codes import _REMEDIES as REMEDIES
from trio_crawler.report.codes import explained
from trio_crawler.schedule.host_state import RULES
from trio_crawler.store import schema

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
GUIDE = DOCS / "guide"
GENERATED = DOCS / "generated"
PACKAGE = ROOT / "trio_crawler"
ROOMS = (check, frontier, ledger, model, net, report, shared, store, testing)

Record = Callable[[Path, str], None]


def loaded(path: Path) -> ModuleType:
    """Import a file that belongs to no package."""
    spec = importlib.util.spec_from_file_location(f"shown_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


DRAWN = loaded(GUIDE / "house.py")

# The path of one URL.


def test_one_url_passes_every_station_in_the_order_that_the_page_shows(recorded: Record) -> None:
    path = loaded(GUIDE / "path.py")
    calls = path.followed()
    assert {call.place for call in calls} >= set(path.STATIONS)
    # As the page says: some 350 functions on the way.
    assert 300 < len(calls) < 400
    stations = [(re.split(r"/|\.py", place)[0], place.split()[1], waits, path.STATIONS[place])
                for place, waits in calls if place in path.STATIONS]  # fmt: skip
    rooms = [room for room in reversed(floors()) if room in {each[0] for each in stations}]
    recorded(GENERATED / "path.svg", DRAWN.path(stations, rooms))


# The house.


@cache
def floors() -> tuple[str, ...]:
    """Read the floors from the test that holds the imports to them."""
    names: list[str] = []
    for node in ast.parse((ROOT / "tests/test_package.py").read_text()).body:
        if isinstance(node, ast.Assign | ast.AugAssign):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            if isinstance(target, ast.Name) and target.id == "FLOORS":
                names += ast.literal_eval(node.value)
    return tuple(names)


def modules(floor: str) -> list[Path]:
    return sorted([*PACKAGE.glob(f"{floor}.py"), *PACKAGE.glob(f"{floor}/**/*.py")])


@cache
def uses(floor: str) -> frozenset[str]:
    """Name the other floors that the modules of one import."""
    found: set[str] = set()
    for module in modules(floor):
        for node in ast.walk(ast.parse(module.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module == "trio_crawler":
                names = {f"trio_crawler.{each.name}" for each in node.names}
                found |= {home(name)[0].split(".")[1] for name in names & set(public())}
            elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith(
                "trio_crawler."
            ):
                found.add((node.module or "").split(".")[1])
    return frozenset(found & set(floors()) - {floor})


def purpose(floor: str) -> str:
    """Return what a room says of itself."""
    path = PACKAGE / floor / "__init__.py"
    path = path if path.exists() else PACKAGE / f"{floor}.py"
    said = (ast.get_docstring(ast.parse(path.read_text())) or "").splitlines()[0]
    name, colon, rest = said.partition(": ")
    return rest if colon and name.lower().split()[-1] in (floor, floor.rstrip("s")) else said


def house() -> str:
    """List the floors, the highest first."""
    rows = ["| room | modules | what it is |", "|---|---|---|"]
    for floor in reversed(floors()):
        words = purpose(floor)
        rows.append(f"| `{floor}` | {len(modules(floor))} | {words[0].upper()}{words[1:]} |")
    return "\n".join(rows) + "\n"


def test_the_house_is_drawn_from_its_imports(recorded: Record) -> None:
    for floor in floors():
        below = set(floors()[: floors().index(floor)])
        assert floor == "cli" or uses(floor) <= below
    recorded(GENERATED / "floors.md", house())
    recorded(
        GENERATED / "house.svg", DRAWN.house({room: uses(room) for room in reversed(floors())})
    )


def test_the_states_of_a_host_are_drawn_from_the_rules_of_the_scheduler(recorded: Record) -> None:
    states = loaded(GUIDE / "states.py")
    shown = {(start, end) for start, end, _ in states.arrows()}
    assert shown == {(state, rule.next) for rule in RULES for state in rule.states}
    recorded(GENERATED / "host-states.md", states.table())
    recorded(GENERATED / "host-states.svg", states.picture())
    ElementTree.fromstring(states.picture())


# The reference.

REFERENCE = {page: page.read_text() for page in sorted((GUIDE / "reference").glob("*.md"))}


def public() -> Iterator[str]:
    """Name all that somebody may import, as the reference names it."""
    yield from (f"trio_crawler.{name}" for name in trio_crawler.__all__)
    for room in ROOMS:
        more = set(room.__all__) - set(trio_crawler.__all__)
        yield from (f"{room.__name__}.{name}" for name in sorted(more))


def value(name: str) -> object:
    home, _, own = name.rpartition(".")
    return getattr(import_module(home), own)


def is_plain(name: str) -> bool:
    """Tell whether a name is that of a value or a type alias, whose docstring Python drops."""
    found = value(name)
    return not (inspect.isclass(found) or inspect.isfunction(found))


def declaration(module: str, name: str) -> tuple[str, str]:
    """Find where a name is assigned; return what to, and the docstring behind it."""
    path = Path(inspect.getfile(import_module(module)))
    # A room whose names are imported late says in a stub where they are.
    stub = path.with_suffix(".pyi")
    tree = ast.parse((stub if stub.exists() else path).read_text()).body
    for node, following in zip(tree, [*tree[1:], None], strict=True):
        if isinstance(node, ast.ImportFrom):
            own = {each.asname or each.name: each.name for each in node.names}
            if name in own and node.module:
                within = f"{module}." if node.level else ""
                return declaration(within + node.module, own[name])
        if isinstance(node, ast.AnnAssign | ast.Assign):
            target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
            if isinstance(target, ast.Name) and target.id == name and node.value:
                return ast.unparse(node.value), docstring(following)
    raise LookupError(f"{name} is not assigned in {module}")


def listed(head: object) -> str:
    """Return the columns that a head of CSV names."""
    assert isinstance(head, bytes)
    return ", ".join(f"`{name}`" for name in head.decode().strip().split(","))


def docstring(node: ast.stmt | None) -> str:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return inspect.cleandoc(str(node.value.value))
    return ""


def home(name: str) -> tuple[str, str]:
    """Return the module of a public name that has its declaration, or imports it from there."""
    module, _, own = name.rpartition(".")
    if module == "trio_crawler":
        stub = (PACKAGE / "__init__.pyi").read_text()
        found = re.search(rf"^from \.([\w.]+) import {own} as", stub, re.MULTILINE)
        assert found, f"{own} is not in the stub"
        module = f"trio_crawler.{found[1]}"
    return module, own


PLAIN = [name for name in public() if is_plain(name)]


@pytest.mark.parametrize("name", PLAIN)
def test_what_has_no_docstring_of_its_own_is_told_from_the_source(
    name: str, recorded: Record
) -> None:
    declared, said = declaration(*home(name))
    assert said, f"{name} has no docstring"
    if isinstance(value(name), bytes | str):
        head = f"```{{py:data}} {name}\n:type: {type(value(name)).__name__}"
        if isinstance(value(name), bytes):
            said += " They are " + listed(value(name)) + "."
    else:
        head = f"```{{py:type}} {name}\n:canonical: {declared}"
    recorded(GENERATED / f"{name.removeprefix('trio_crawler.')}.md", f"{head}\n\n{said}\n```\n")


@for_each("name", sorted(set(public()) - set(PLAIN)))
def test_every_public_name_says_what_it_is(name: str) -> None:
    found = value(name)
    assert inspect.getdoc(found)
    for own, member in vars(found).items() if inspect.isclass(found) else ():
        if not own.startswith("_") and isinstance(inspect.unwrap(member), FUNCTIONS):
            assert inspect.getdoc(member), f"{name}.{own}"


FUNCTIONS = (type(public), property, classmethod, staticmethod)


# The first page of the reference tells of these, for all arguments.
ANY = {"ArgumentError", "TypeError", "ValueError"}


def callables(name: str) -> Iterator[tuple[str, Callable[..., object], str]]:
    """Yield what a public name lets somebody call, and all that is said of its parameters."""
    found, said = value(name), inspect.getdoc(value(name)) or ""
    if not inspect.isclass(found):
        yield name, found, said
        return
    for own, member in vars(found).items():
        method = inspect.unwrap(getattr(member, "__func__", member))
        if inspect.isfunction(method) and not own.startswith("_"):
            yield f"{name}.{own}", method, f"{said} {inspect.getdoc(method)}"
    if not issubclass(found, BaseException | Enum) and not getattr(found, "_is_protocol", False):
        yield name, found, said


@for_each("name", sorted(set(public()) - set(PLAIN)))
def test_a_public_name_tells_of_each_parameter_and_of_each_error_by_its_name(name: str) -> None:
    for what, each, said in callables(name):
        taken = set(inspect.signature(each).parameters) - {"self", "cls"}
        own = vars(each) if inspect.isclass(each) else {"__init__": each}
        code = own.get("__post_init__", own.get("__init__"))
        written = inspect.isfunction(code) and code.__code__.co_filename.endswith(".py")
        source = inspect.getsource(code) if written else ""
        raised = re.findall(r"^ +raise ([A-Z]\w+)\(", source, re.MULTILINE)
        taken |= {error for error in raised if error not in ANY}
        assert {one for one in taken if not re.search(rf"\b{one}\b", said)} == set(), what


def named(page: Path) -> list[str]:
    """Return the names that a page of the reference has."""
    text = page.read_text()
    names = re.findall(r"^\.\. auto\w+:: ([\w.]+)", text, re.MULTILINE)
    included = re.findall(r"^```\{include\} \.\./\.\./generated/(.+)\.md", text, re.MULTILINE)
    made = {"options", "reasons", "database"}
    return names + [f"trio_crawler.{name}" for name in included if name not in made]


def test_every_public_name_is_on_one_page_of_the_reference() -> None:
    assert Counter(name for page in REFERENCE for name in named(page)) == Counter(public())


# The examples.

BLOCK = re.compile(r"^```(?:pycon|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PAIR = re.compile(r"^:::\{pair\} (\S+)$", re.MULTILINE)
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def example(name: str) -> str:
    """Return what the docstrings of a name show of its use."""
    found = value(name)
    members = vars(found).values() if inspect.isclass(found) else ()
    kept = [found] if not is_plain(name) else []
    texts = [inspect.getdoc(each) or "" for each in [*kept, *members] if hasattr(each, "__doc__")]
    return "\n\n".join(text for text in texts if ">>>" in text)


EXAMPLES_OF = {name: example(name) for name in public()}


@pytest.fixture
def run_example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], str]]:
    """Return what runs an example, in an empty folder, and says how it differs from the page."""
    begin = BLOCK.findall(REFERENCE[GUIDE / "reference/index.md"])[0]
    names: dict[str, object] = {"__name__": "__main__"}
    exec(compile(begin, "index.md", "exec"), names)

    def told(text: str) -> str:
        monkeypatch.chdir(mkdtemp(dir=tmp_path))
        said = StringIO()
        test = doctest.DocTestParser().get_doctest(text, dict(names), "example", None, 0)
        doctest.DocTestRunner(optionflags=FLAGS).run(test, out=said.write)
        return said.getvalue()

    return told


@for_each("name", [name for name in EXAMPLES_OF if EXAMPLES_OF[name]])
def test_the_example_of_a_docstring_is_true(name: str, run_example: Callable[[str], str]) -> None:
    wrong = run_example(EXAMPLES_OF[name])
    assert not wrong, wrong


@for_each("page", [page for page in REFERENCE if "```pycon" in REFERENCE[page]])
def test_the_examples_of_a_page_of_the_reference_are_true(
    page: Path, run_example: Callable[[str], str], tmp_path: Path
) -> None:
    text = "\n".join(block for block in BLOCK.findall(REFERENCE[page]) if ">>>" in block)
    with ExitStack() as stack:
        if (given := "redis://127.0.0.1:6379/0") in text:
            (home := tmp_path / "server").mkdir()
            text = text.replace(given, stack.enter_context(server(home)))
        wrong = run_example(text)
        assert not wrong, wrong


@for_each("page", [page for page in REFERENCE if named(page)])
def test_every_public_name_has_an_example_on_its_page(page: Path) -> None:
    text = REFERENCE[page]
    shown = [*BLOCK.findall(text), *(EXAMPLES_OF[name] for name in named(page))]
    code = [each.source for block in shown for each in doctest.DocTestParser().get_examples(block)]
    code += [(DOCS / program).read_text() for program in PAIR.findall(text)]
    words = set(re.findall(r"\w+", "\n".join(code)))
    assert {name.rpartition(".")[2] for name in named(page)} <= words


def remedy(reason: Reason) -> str:
    """Say what mends a link that ends for a reason, or lets the crawl follow it."""
    about = REASONS[reason]
    if about.unasked:
        way = about.way or about.option
        if way.startswith("--") or "--" not in about.unasked:
            return f"{way[:1].upper()}{way[1:]}." if way else ""
        return (
            ": ".join(filter(None, (f"{about.unasked[0].upper()}{about.unasked[1:]}", way))) + "."
        )
    return "" if about.kind is Kind.FLAW and reason not in REMEDIES else explained(reason)[1]


def reasons() -> Iterator[str]:
    """Yield all reasons in their groups, which the comments of their declaration name."""
    declared = (PACKAGE / "reason.py").read_text().partition("class Reason")[2].split("\n\n\n")[0]
    for line in re.sub(r"\n    # (?=[a-z])", " ", declared).splitlines():
        if found := re.match(r"    # ([A-Z].+?)(?:[:,] (.+?))?[.;] ?(.*)", line):
            yield f"## {found[1]}\n"
            parts = [
                re.sub("^which", "it", part).rstrip(".") for part in found.groups()[1:] if part
            ]
            yield "".join(f"{part[0].upper()}{part[1:]}. " for part in parts)
        if found := re.match(r"    ([A-Z]\w+) = ", line):
            reason = Reason[found[1]]
            yield f'\n```{{py:attribute}} trio_crawler.Reason.{reason.name}\n:value: "{reason}"\n'
            yield f"{REASONS[reason].sentence}. {remedy(reason)}".strip() + "\n```\n"
    yield "## Other codes of a check\n\n| code | what it says | what mends it |\n|---|---|---|"
    for code in sorted({*REMEDIES, "301", "302", "500"} - set(Reason)):
        says, mends = explained(code)
        yield f"| `{code}` | {says} | {mends} |"


def test_every_reason_is_told_with_its_cause_and_its_remedy(recorded: Record) -> None:
    text = "\n".join(reasons())
    assert all(f"trio_crawler.Reason.{reason.name}\n" in text for reason in Reason)
    recorded(
        GENERATED / "reasons.md", re.sub(r"--[a-z][\w-]+(?: external)?", r"`\g<0>`", text) + "\n"
    )


def database() -> Iterator[str]:
    """Yield what the schema says of itself: its lists of columns as tables, its queries as SQL."""
    for part in inspect.cleandoc(schema.__doc__ or "").split("\n\n"):
        rows = re.findall(r"^    (\w+) +(.+(?:\n {5,}.+)*)", part, re.MULTILINE)
        if part.startswith("    ") and rows[0][0].islower():
            yield "| name | columns |\n|---|---|"
            yield (
                "\n".join(f"| `{name}` | {' '.join(told.split())} |" for name, told in rows) + "\n"
            )
        else:
            yield f"```sql\n{dedent(part)}\n```\n" if part.startswith("    ") else part + "\n"


def test_the_views_and_tables_of_a_directory_are_told_as_the_schema_tells_them(
    recorded: Record,
) -> None:
    recorded(GENERATED / "database.md", "\n".join(database()))


# The options.


def entry(member: click.Option, context: click.Context) -> tuple[str, str]:
    """Return the names of an option and what it does, as the help says it."""
    names, effect = member.get_help_record(context) or ("", "")
    effect = effect.replace("  ", " ").replace("<", "&lt;").replace("*", "\\*")
    effect = re.sub(r"(?<!\S)(--[\w-]+|rel=nofollow)", r"`\1`", effect)
    return names.replace(" / ", ", "), effect


def options(words: str, of: click.Command, known: dict[str, str]) -> str:
    """Write each option of a command as an object, in their groups, if it is not known yet."""
    context = of.make_context(of.name, [], resilient_parsing=True)
    shown = [each for each in of.get_params(context) if isinstance(each, click.Option)]
    groups = of.groups(context) if isinstance(of, Command) else {"": shown}
    rows = [] if of is command else [f"## `{words}`", "", f"```{{program}} {words}\n```", ""]
    same = []
    for heading, members in groups.items():
        told = dict(filter(all, (entry(member, context) for member in members)))
        told.pop("-h, --help", None)
        new = {names: effect for names, effect in told.items() if known.get(names) != effect}
        known |= {names: effect for names, effect in new.items() if names not in known}
        same += [names.split(", ")[-1].split()[0] for names in told if names not in new]
        rows += [f"## {heading}", ""] if of is command else []
        for names, effect in new.items():
            rows += [f"```{{option}} {names}", effect, "```", ""]
    if len(same) < 0.8 * len(known):
        rows += ["As above: " + ", ".join(f"`{name}`" for name in same) + ".", ""] if same else []
    else:
        rows += ["It has the options above, too.", ""]
    return "\n".join(rows)


def test_the_options_are_told_from_their_declarations(recorded: Record) -> None:
    commands = {name: of for name, of in COMMANDS.items() if name not in ("crawl", "completion")}
    known: dict[str, str] = {}
    parts = [options(f"trio-crawler {name}".strip(), of, known)
             for name, of in {"": command, **commands}.items()]  # fmt: skip
    recorded(GENERATED / "options.md", "\n".join(parts).strip() + "\n")


def test_no_option_is_missing_from_the_page() -> None:
    page = (GENERATED / "options.md").read_text()
    for each in COMMANDS.values():
        for parameter in each.params:
            assert all(name in page for name in parameter.opts if name.startswith("--"))


def test_each_option_of_ours_that_another_tool_is_compared_with_is_there() -> None:
    tables = (GUIDE / "coming.md").read_text()
    ours = " ".join(re.findall(r"^\|.+?\| (.+?)(?: \||$)", tables, re.MULTILINE))
    named = set(re.findall(r"`(--[\w-]+)", ours)) | set(re.findall(r" (--[\w-]+)", ours))
    assert len(named) > 50
    params = [each for of in COMMANDS.values() for each in of.params]
    assert named <= {name for each in params for name in (*each.opts, *each.secondary_opts)}


def tools() -> Iterator[tuple[str, list[str]]]:
    """Yield each tool with all of its options, as recorded."""
    text = (ROOT / "tests/docs/other_tools.txt").read_text().partition("\n\n")[2]
    for part in text.split("\n\n"):
        name, *lines = part.split("\n")
        yield name, " ".join(lines).split()


@pytest.mark.parametrize(("tool", "theirs"), list(tools()))
def test_each_option_of_another_tool_stands_in_one_row_with_what_to_use_or_why_not(
    tool: str, theirs: list[str]
) -> None:
    name, version = tool.split()
    table = (GUIDE / "coming.md").read_text().partition(f"\n## {name}\n")[2].partition("\n## ")[0]
    assert f"Version {version}." in table
    rows = [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("| ")]
    told = [word for row in rows for word in re.findall(r"`([-A-Z]\S*?)[` ]", row[0])]
    found = {each: sum(fnmatchcase(each, word) for word in told) for each in theirs}
    assert {each: times for each, times in found.items() if times != 1} == {}
    assert [row for row in rows if row[1].startswith("none") and len(row[1]) < 20] == []


# The tutorial.

EXAMPLES = sorted(path for path in GUIDE.glob("*.py"))


@for_each("example", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_is_shown_and_run_by_a_page(example: Path) -> None:
    pages = "".join(page.read_text() for page in GUIDE.rglob("*.md"))
    assert f"guide/{example.name}" in pages
    lines = example.read_text().splitlines()
    assert max(map(len, lines)) <= 99


@for_each(
    "example",
    [path for path in EXAMPLES if path.stem not in ("command", "path", "states", "house")],
)
def test_an_example_uses_only_what_is_public(example: Path) -> None:
    for node in ast.walk(ast.parse(example.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("trio_crawler"):
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            assert names <= set(public())


def test_the_command_of_the_tutorial_prints_no_time_and_keeps_what_is_the_same() -> None:
    tidied = loaded(GUIDE / "command.py").tidied
    said = "Slowest pages\n    501 ms  http://site/a\n    1.2 s  http://site/b\n\nFinished 2 URLs"
    assert tidied(f"{said} in 0.613 s (3.3 URLs/s, workers=10)") == (
        "Slowest pages\n   ...  http://site/a\n   ... (others)\n\n"
        "Finished 2 URLs in ... s (... URLs/s, workers=10)"
    )


# Figures and commands that were recorded.


@pytest.fixture
def record() -> figures.Record:
    return json.loads((ROOT / "tests/bench/recorded.json").read_text())


def test_the_picture_on_the_page_on_cost_is_made_from_its_record(
    record: figures.Record, recorded: Record
) -> None:
    recorded(GENERATED / "cost-bars.svg", "\n".join(figures.bars(record)) + "\n")


@pytest.mark.parametrize("table", [figures.goals, figures.crawlers, figures.measurements])
def test_the_page_on_cost_is_made_from_its_record(
    table: Callable[[figures.Record], list[str]], record: figures.Record, recorded: Record
) -> None:
    name = f"cost-{table.__name__}.md"
    assert f"{{include}} ../generated/{name}" in (GUIDE / "cost.md").read_text()
    recorded(GENERATED / name, "\n".join(table(record)) + "\n")


def test_the_page_on_when_asyncio_is_enough_has_the_figures_of_the_table_of_costs() -> None:
    measured = (GENERATED / "reading_cost.md").read_text()
    names = ("asyncio task", "Trio task", "asyncio connection", "Trio connection")
    rows = [*names, "asyncio, `TaskGroup`", "Trio, nursery"]
    rows += ["the chapter's crawler, asyncio", "its Trio form"]
    figures = [re.findall(rf"^\| {name} \| (\S+ \w+) \|", measured, re.MULTILINE) for name in rows]
    shown = re.findall(r"\| ([\d.]+ (?:KiB|µs)) (?=\|)", (DOCS / "enough.md").read_text())
    assert [[figure] for figure in shown] == figures


def measured(**cases: float) -> dict[str, object]:
    """Return a row of a record, raw having taken twice what the figures are anchored to."""
    cpu = {case.replace("_", "-"): {"cpu": [seconds]} for case, seconds in cases.items()}
    return {"raw": 2 * figures.ANCHOR, "scanner": True, "figures": cpu}


def test_a_goal_that_is_not_met_is_bold_and_figures_are_scaled_to_the_machine() -> None:
    goal = next(each for each in figures.GOALS if each.what == "PostgreSQL, `command`")
    row = {"postgresql": measured(command=1.06, command_pure=1.16)}
    assert goal.told(row, pure=True) == ("≤ 0.58", "0.58")
    assert goal.told(row, pure=False) == ("≤ 0.52", "**0.53**")


def test_a_goal_for_a_rate_is_not_met_by_less() -> None:
    goal = next(each for each in figures.GOALS if "1,000 workers, pages/s" in each.what)
    row = measured(command=1, command_pure=1)
    row["figures"] = {"command": {"rate": [1090]}, "command-pure": {"rate": [1010]}}
    assert goal.told({"slow1000": row}, pure=True) == ("≥ 2,000", "2,020")
    assert goal.told({"slow1000": row}, pure=False) == ("≥ 2,200", "**2,180**")


def test_a_url_may_become_dearer_with_the_crawl_by_what_raw_does() -> None:
    goal = next(each for each in figures.GOALS if "with 100,000 URLs" in each.what)
    sizes = {"10000 ours": 1.0, "100000 ours": 1.3, "10000 raw": 1.0, "100000 raw": 1.2}
    assert goal.told({"urls": measured(**sizes)}, pure=False) == ("≤ +15%", "+10%")
    rounded = sizes | {"100000 ours": 1.354}
    assert goal.told({"urls": measured(**rounded)}, pure=False) == ("≤ +15%", "+15%")
    flat = sizes | {"100000 raw": 0.5}
    assert goal.told({"urls": measured(**flat)}, pure=False) == ("≤ +15%", "**+30%**")


def test_what_was_not_measured_is_said_so_and_so_is_the_scanner_that_was_not_there() -> None:
    row = measured(command=0.4, command_pure=0.4) | {"scanner": False}
    goal = next(each for each in figures.GOALS if each.what == "PostgreSQL, `command`")
    assert goal.told({}, pure=True) == ("≤ 0.58", figures.UNKNOWN)
    assert goal.told({"postgresql": row}, pure=False) == ("≤ 0.52", figures.UNKNOWN)
    assert goal.told({"postgresql": row}, pure=True) == ("≤ 0.58", "0.20")


def test_the_page_says_in_bold_that_crawlers_found_different_urls() -> None:
    row = measured()
    row["figures"] = {name: {"cpu": [1.0], "urls": [7]} for name in ("command", "raw")}
    assert figures.crawlers({"linux10": row})[-1] == "| URLs | 7 |"
    row["figures"]["raw"]["urls"] = [6]
    assert figures.crawlers({"linux10": row})[-1] == "| URLs | **6 to 7** |"


@pytest.mark.parametrize("page", ["cost.md", "promises.md", "architecture.md"])
def test_every_file_that_a_page_names_is_there(page: str) -> None:
    for name in re.findall(
        r"`(?:python )?((?:tests|docs)/[\w/.]+\.py)", (GUIDE / page).read_text()
    ):
        assert (ROOT / name).is_file(), name
