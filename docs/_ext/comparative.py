"""Directives for pages that show nothing but files and recorded runs.

`pair` shows programs side by side, `run` a command and its output, `runs` several of these,
`step` a line of one program that becomes a line of the next, `picture` a drawing; `columns` puts
blocks beside each other. `pair` folds the lines that teach nothing. Where columns have no room
beside each other, each has a tab: that needs no script.
"""

from __future__ import annotations

import ast
import re
import shlex
from functools import cache
from html import escape, unescape
from importlib import import_module
from itertools import groupby
from pathlib import Path
from posixpath import normpath
from textwrap import dedent

from docutils import nodes
from docutils.parsers.rst import directives
from docutils.statemachine import StringList
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

DOCS = Path(__file__).resolve().parent.parent
FOLD = '<details class="fold"><summary>{}</summary><pre>\n{}\n</pre></details>'
MARK = re.compile(r"\((\d+)\)")
ROOMS = [
    f"trio_crawler.{name}"
    for name in "check frontier ledger model net report shared store testing".split()
]


def recording(arguments: list[str]) -> Path:
    """Return the file that holds what `run.py` printed for these arguments."""
    name = "_".join(each.strip("-").replace("/", ".") for each in arguments)
    return DOCS / "out" / f"{name.replace('.py', '')}.txt"


def shown(page: str) -> list[str]:
    """Return the commands that a page shows, with what they print."""
    several = re.findall(r"^```\{runs\}\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    lines = "".join(several).splitlines()
    rows = [
        line.partition(" | ")[0]
        for line in lines
        if not line.startswith("program ")
    ]
    return re.findall(r"\{run\} (.+)", page) + rows


class Shows(SphinxDirective):
    """Show files of docs/: a page is built again when one of them changes."""

    def read(self, name: str) -> str:
        path = DOCS / name
        if not path.is_file():
            raise self.error(f"there is no docs/{name}")
        self.env.note_dependency(str(path))
        return path.read_text()


class Pair(Shows):
    """Show one to three programs side by side, their `# (1)` marks linked."""

    required_arguments = 1
    final_argument_whitespace = True
    option_spec = dict.fromkeys(("titles", "only"), directives.unchanged)
    has_content = False

    def read(self, name: str) -> str:
        """Return a program, or the part of it that `only` names."""
        only = self.options.get("only", "").split()
        if code := part(super().read(name), only):
            return code
        raise self.error(f"docs/{name} has none of {only}")

    def run(self) -> list[nodes.Node]:
        names = self.arguments[0].split()
        titles = self.options.get("titles", "").split("|")
        titles += [""] * (len(names) - len(titles))
        codes = [self.read(name) for name in names]
        number = self.env.new_serialno("pair")
        twins = Twins(codes, f"pair-{number}")
        columns = [
            figure(code, name, title.strip(), twins, column)
            for column, (code, name, title) in enumerate(
                zip(codes, names, titles, strict=False)
            )
        ]
        titles = [
            title.strip() or name
            for title, name in zip(titles, names, strict=False)
        ]
        html = f"{tabs(titles, f'pair-{number}-tab')}{''.join(columns)}"
        html = f'<div class="pair tabs">{html}</div>'
        return [nodes.raw("", html, format="html", tab=titles[0])]


def tabs(titles: list[str], prefix: str) -> str:
    """Return what chooses one of the columns, where only one has room."""
    if len(titles) < 2:
        return ""
    return "".join(
        f'<input type="radio" name="{prefix}" id="{prefix}-{n}"{" checked" * (n == 0)}>'
        f'<label for="{prefix}-{n}">{escape(title)}</label>'
        for n, title in enumerate(titles)
    )


def part(code: str, names: list[str]) -> str:
    """Return the functions and classes of these names, or without names the whole."""
    lines = code.splitlines(keepends=True)
    found = {
        node.name: (
            min(at.lineno for at in (node, *node.decorator_list)),
            node.end_lineno,
        )
        for node in ast.walk(ast.parse(code))  # a method comes after all functions
        if hasattr(node, "decorator_list") and node.name in names
    }
    pieces = [
        dedent("".join(lines[at - 1 : end])) for at, end in sorted(found.values())
    ]
    return "\n".join(pieces) if names else code


def marks(code: str) -> list[list[str]]:
    """Return the numbers of the marks of each line."""
    return [MARK.findall(line.partition("# (")[2] and line[line.rindex("# (") :])
            for line in code.splitlines()]  # fmt: skip


class Twins:
    """Know where each mark of some columns leads: to the next column that has it too."""

    def __init__(self, codes: list[str], prefix: str) -> None:
        self.codes = codes
        self._has = [{n for line in marks(code) for n in line} for code in codes]
        self._prefix = prefix
        self._named: set[str] = set()

    def place(self, column: int, number: str) -> str:
        return f"{self._prefix}-{column}-{number}"

    def twin(self, column: int, number: str) -> str | None:
        count = len(self._has)
        others = [(column + step) % count for step in range(1, count)]
        having = [other for other in others if number in self._has[other]]
        return self.place(having[0], number) if having else None

    def link(self, column: int, number: str) -> str:
        """Return the mark as a link; the first of its number in a column is its place."""
        twin, own = self.twin(column, number), self.place(column, number)
        if twin is None:
            return f"({number})"
        name = "" if own in self._named else f' id="{own}"'
        self._named.add(own)
        return f'<a class="mark"{name} href="#{twin}">({number})</a>'


def figure(code: str, name: str, title: str, twins: Twins, column: int) -> str:
    """Return one column: a caption, and the code, its marks linked to the next."""
    lines = highlight(code, PythonLexer(), HtmlFormatter(nowrap=True)).splitlines()
    body = [
        linked(line, twins, column) if found else line
        for line, found in zip(lines, marks(code), strict=False)
    ]
    caption = f"<strong>{escape(title)}</strong> " if title else ""
    parts = [
        FOLD.format(why, text) if why else f"<pre>\n{text}\n</pre>"
        for why, start, end in folds(code, twins.codes)
        for text in ["\n".join(body[start:end])]
    ]
    return (
        f'<figure class="panel"><figcaption>{caption}<code>docs/{escape(name)}</code></figcaption>'
        f'<div class="highlight">{"".join(parts)}</div></figure>'
    )


def folds(code: str, codes: list[str]) -> list[tuple[str, int, int]]:
    """Return the parts of a program: how a folded one is called, and its lines."""
    lines, found, rows, start = code.splitlines(), marks(code), [], 0
    for statement in ast.parse(code).body:
        end = statement.end_lineno or 0
        text = "\n".join(lines[start:end]).strip()
        marked = any(found[start:end])
        why = "" if marked else teaches_nothing(statement, text, codes)
        while why and end < len(lines) and not lines[end]:
            end += 1
        rows.append((why, start, end))
        start = end
    if all(why for why, *_ in rows):
        return [("", 0, len(lines))]
    groups = [list(group) for _, group in groupby(rows, lambda row: row[0])]
    return [(group[0][0], group[0][1], group[-1][2]) for group in groups]


def teaches_nothing(statement: ast.stmt, text: str, codes: list[str]) -> str:
    """Say what a statement is that a reader may pass over."""
    match statement:
        case ast.Expr(ast.Constant(), lineno=1) | ast.Import() | ast.ImportFrom():
            return "imports"
        case ast.If(test=ast.Compare(left=ast.Name("__name__")), body=[ast.Expr()]):
            return "start"
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            if len(codes) > 1 and all(f"\n\n{text}\n" in other for other in codes):
                return f"{name}: the same in both"
    return ""


def linked(line: str, twins: Twins, column: int) -> str:
    """Make each mark of a line a link to its twin."""
    before, _, rest = line.rpartition("# (")
    return f"{before}# {MARK.sub(lambda found: twins.link(column, found[1]), '(' + rest)}"


class Run(Shows):
    """Show a command and what it printed; `tests/docs` runs it and compares."""

    required_arguments = 1
    final_argument_whitespace = True
    option_spec = {"title": directives.unchanged}  # noqa: RUF012

    def run(self) -> list[nodes.Node]:
        arguments = shlex.split(self.arguments[0])
        path = recording(arguments)
        if not path.is_file():
            raise self.error(
                f"nothing is recorded for {arguments}: pytest tests/docs --update"
            )
        said = self.read(str(path.relative_to(DOCS)))
        text = f"{typed(arguments)}\n{said}"
        program = next(
            Path(word).name for word in arguments if word.endswith(".py")
        )
        tab = self.options.get("title", f"{program} prints")
        block = nodes.literal_block(
            text, text, language="text", classes=["run"], tab=tab
        )
        if "title" not in self.options:
            return [block]
        title = nodes.paragraph("", self.options["title"], classes=["run-title"])
        return [nodes.container("", title, block)]


def typed(arguments: list[str]) -> str:
    """Return the lines that a reader types: a user's program is shown as it is."""
    at = next(at for at, word in enumerate(arguments) if word.endswith(".py"))
    program, words = arguments[at], arguments[at + 1 :]
    if not program.startswith("guide/"):
        return f"$ python docs/run.py {shlex.join(arguments)}"
    if program != "guide/command.py":
        return f"$ python docs/{shlex.join([program, 'http://site/', *words])}"
    runs = [shlex.split(run) for run in shlex.join(words).split(" then ")]
    return "\n".join(
        f"$ trio-crawler {shlex.join([*run, 'http://site/'])}" for run in runs
    )


class Step(Shows):
    """Show a line of one program and what it becomes in another; both must be."""

    required_arguments = 2
    has_content = True

    def run(self) -> list[nodes.Node]:
        lines = [line for line in self.content if line.strip()]
        for line in lines:
            name = self.arguments["-+".index(line[0])]
            if line[1:].strip() not in [
                each.strip() for each in self.read(name).splitlines()
            ]:
                raise self.error(f"docs/{name} has no line {line[1:].strip()!r}")
        head = [
            f"{sign} {normpath(f'docs/{name}')}"
            for sign, name in zip(("---", "+++"), self.arguments, strict=True)
        ]
        text = "\n".join([*head, *lines])
        return [nodes.literal_block(text, text, language="diff")]


class Picture(Shows):
    """Show docs/pictures/NAME.svg inline: so it takes the page's colours."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        svg = self.read(f"pictures/{self.arguments[0]}.svg")
        title = unescape(svg.partition('-title">')[2].partition("<")[0])
        drawing = nodes.raw("", svg[svg.index("<svg") :], format="html", tab=title)
        if not self.content:
            raise self.error(
                "a picture needs a caption: it says what is to be seen"
            )
        caption = nodes.container(classes=["caption"])
        self.state.nested_parse(self.content, self.content_offset, caption)
        return [nodes.container("", drawing, caption, classes=["picture"])]


class Columns(SphinxDirective):
    """Put the blocks in it beside each other where the window is wide enough."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        holder = nodes.container(classes=["side-by-side", "tabs"])
        self.state.nested_parse(self.content, self.content_offset, holder)
        prefix = f"columns-{self.env.new_serialno('columns')}"
        chosen = tabs([tab(block) for block in holder], prefix)
        panels = [nodes.container("", block, classes=["panel"]) for block in holder]
        holder[:] = [nodes.raw("", chosen, format="html"), *panels]
        return [holder]


class Runs(Columns):
    """Show runs beside each other, one a line, or a program and its run: what, then a title."""

    def run(self) -> list[nodes.Node]:
        lines: list[str] = []
        for line in self.content:
            what, _, title = line.partition(" | ")
            kind, option = (
                ("pair", "titles")
                if what.startswith("program ")
                else ("run", "title")
            )
            about = [f":{option}: {title}"] if title else []
            lines += [
                f"```{{{kind}}} {what.removeprefix('program ')}",
                *about,
                "```",
                "",
            ]
        self.content = StringList(lines, self.content.source(0))
        return super().run()


def tab(block: nodes.Node) -> str:
    """Return what a column is called: the title of what it shows first."""
    for node in block.findall(nodes.Element):
        if isinstance(node, nodes.caption):
            return node.astext()
        if "tab" in node:
            return node["tab"]
    raise ValueError(f"a column needs a title: {block}")


OPTION = re.compile(r"(--[a-z][\w-]*)( .*)?|([A-Za-z_][\w.]*)(\(.*\))?", re.DOTALL)


def names() -> dict[str, str]:
    """Return the full names of all that the package exports, and of the reasons."""
    package = import_module("trio_crawler")
    found = {
        str(reason): f"trio_crawler.Reason.{reason.name}"
        for reason in package.Reason
    }
    for room in (*ROOMS, "trio_crawler"):
        found |= {name: f"{room}.{name}" for name in import_module(room).__all__}
    return {
        name: full
        for name, full in found.items()
        if not name.islower() or "_" in name
    }


def link_names(app: Sphinx, doctree: nodes.document) -> None:
    """Let each option and each name that a page of the guide mentions lead to its place."""
    where, known = app.env.docname, names()
    for literal in list(doctree.findall(nodes.literal)):
        found = OPTION.fullmatch(literal.astext())
        inside = isinstance(literal.parent, nodes.reference | nodes.title)
        # The first column of these tables is about other tools.
        cell = literal.parent.parent
        inside |= (
            where == "guide/coming"
            and cell in getattr(cell.parent, "children", [])[:1]
        )
        if not found or inside or not where.startswith("guide/"):
            continue
        kind, target = ("std", "option"), found[1]
        if not target:
            own, _, rest = found[3].partition(".")
            kind, target = (
                ("py", "obj"),
                ".".join(filter(None, (known.get(own), rest))),
            )
        if target and target != found[3]:
            link = addnodes.pending_xref(
                refdomain=kind[0], reftype=kind[1], reftarget=target, refdoc=where
            )
            literal.replace_self(link)
            link += literal


@cache
def tests_of(path: str) -> dict[str, str]:
    """Return the source of each function of a file of tests, by its name."""
    lines = (DOCS.parent / path).read_text().splitlines()
    return {
        node.name: "\n".join(lines[min(at.lineno for at in (node, *node.decorator_list)) - 1 :
                                   node.end_lineno])
        for node in ast.walk(ast.parse("\n".join(lines)))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }  # fmt: skip


def fold_proofs(app: Sphinx, doctree: nodes.document) -> None:
    """Show the tests that prove a sentence, in its place, when the reader asks for them."""
    for listed in list(doctree.findall(nodes.bullet_list)):
        files = [each.astext().partition(": ") for each in listed]
        if not all(each[0].startswith("tests/") and each[1] for each in files):
            continue
        count, html = 0, ""
        for path, _, names in files:
            app.env.note_dependency(str(DOCS.parent / path))
            html += f"<p><code>{path}</code></p>"
            for name in names.split(", "):
                count += 1
                html += FOLD.format(name, escape(tests_of(path)[name]))
        head = (
            f"{count} test proves it" if count == 1 else f"{count} tests prove it"
        )
        html = f'<details class="proofs"><summary>{head}</summary>{html}</details>'
        listed.replace_self(nodes.raw("", html, format="html"))


def without_contents(
    app: Sphinx,
    name: str,
    template: str,
    context: dict[str, object],
    doctree: object,
) -> None:
    """Leave the page's own contents out where two programs need the width."""
    if name.startswith(("index", "trio", "four", "done", "failures", "reading/")):
        context["furo_hide_toc"] = True


def setup(app: Sphinx) -> dict[str, bool]:
    for name, kind in {
        "pair": Pair, "run": Run, "step": Step, "picture": Picture, "columns": Columns,
        "runs": Runs,
    }.items():  # fmt: skip
        app.add_directive(name, kind)
    app.connect("doctree-read", link_names)
    # Before the links to their files make downloads of these.
    app.connect("doctree-read", fold_proofs, priority=400)
    # After the theme's own, which decides by the length of the page.
    app.connect("html-page-context", without_contents, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
