"""The tables of the page on cost: what `table.py` recorded beside the goals, as Markdown.

A record has a row for each thing that was measured: when, where and how, and for each case of it
the values of all rounds. Times are seconds of CPU for 1,000 URLs unless a goal says otherwise.
Absolute figures hold for a machine on which `raw` takes `ANCHOR` seconds for 1,000 URLs of
linux-doc-6.1 with 10 workers: those of other machines, and of a busy one, are scaled by that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

ANCHOR = 0.392
FLAT = 0.15
"""How much more a URL may cost in a larger crawl, beyond what it then costs raw more."""

SITES = {
    "linux10": ("linux-doc-6.1", 10),
    "linux100": ("linux-doc-6.1", 100),
    "postgresql": ("postgresql-doc-15", 10),
    "apache": ("apache2-doc", 10),
    "python": ("python3-doc", 10),
    "jdk": ("openjdk-17-doc", 10),
    "rust": ("rust-doc", 10),
}
CRAWLERS = {
    "command": "`command`, with the scanner",
    "command-pure": "`command`, pure Python",
    "ours": "library, with the scanner",
    "ours-pure": "library, pure Python",
    "raw": "`raw`: Trio, httptools, lexbor",
    "go": "`go`: the standard library",
    "fast": "`fast`: aiohttp, good links",
    "chapter": "`chapter`: aiohttp, its expression",
    "httpx": "`httpx`: Trio and stock httpx",
    "wget": "`wget`, one connection",
    "scrapy": "`scrapy`, tuned",
}
SIZES = {"urls": (10_000, 100_000), "million": (10_000, 1_000_000)}
HOSTS = (1, 100, 1000)
SLOW = (100, 1000, 10_000)
UNKNOWN = "not measured"

Record = Mapping[str, Mapping[str, Any]]


class Figures:
    """Read figures of a record; a KeyError means that something was not measured."""

    def __init__(self, record: Record, *, pure: bool) -> None:
        self._record = record
        self.suffix = "-pure" if pure else ""

    def of(self, row: str, case: str, what: str = "cpu") -> float:
        """Return the median of the rounds, as measured."""
        return median(self._record[row]["figures"][case][what])

    def ours(self, row: str, case: str = "command", what: str = "cpu") -> float:
        """Return that of our crawler, with the scanner or without it."""
        if not (self.suffix or self._record[row]["scanner"]):
            raise KeyError("there was no compiled scanner")
        return self.of(row, case + self.suffix, what)

    def scaled(self, row: str, seconds: float) -> float:
        """Return the seconds that this would take where raw takes the anchor."""
        return seconds * ANCHOR / self._record[row]["raw"]


Value = Callable[[Figures], float]


@dataclass(frozen=True)
class Goal:
    """One figure and what it shall be, in pure Python and with the scanner."""

    what: str
    pure: float | None
    compiled: float
    value: Value
    form: str = "{:.2f}"
    at_least: bool = False

    def told(self, record: Record, *, pure: bool) -> tuple[str, str]:
        """Return the goal and the figure, which is bold if it does not meet the goal."""
        goal = self.pure if pure else self.compiled
        if goal is None:
            return "", ""
        sign = "≥" if self.at_least else "≤"
        wanted = f"{sign} {self.form.format(goal)}"
        try:
            value = self.value(Figures(record, pure=pure))
        except KeyError:
            return wanted, UNKNOWN
        told = self.form.format(value)
        # The reader sees rounded figures: those are compared.
        shown, limit = (_number(self.form.format(each)) for each in (value, goal))
        met = shown >= limit if self.at_least else shown <= limit
        return wanted, told if met else f"**{told}**"


def _number(told: str) -> float:
    return float(told.replace(",", "").rstrip("%"))


def _cpu(row: str) -> Value:
    return lambda figures: figures.scaled(row, figures.ours(row))


def _against(row: str, peer: str, ours: str = "command") -> Value:
    return lambda figures: figures.ours(row, ours) / figures.of(row, peer)


def _rate(row: str, *, scaled: bool) -> Value:
    def value(figures: Figures) -> float:
        rate = figures.ours(row, what="rate")
        return rate / figures.scaled(row, 1) if scaled else rate

    return value


def _added(case: str) -> Value:
    def value(figures: Figures) -> float:
        row = f"kept{figures.suffix}"
        return figures.scaled(row, figures.ours(row, case) - figures.ours(row, "plain"))

    return value


def _first_request(figures: Figures) -> float:
    return figures.scaled("start", figures.ours("start"))


def _help(figures: Figures) -> float:
    return figures.scaled("start", figures.of("start", "--help"))


def _dearer(ours: Sequence[tuple[str, str]], raw: Sequence[tuple[str, str]]) -> Value:
    """Return by how much a URL is dearer in larger crawls, without what it then costs raw more."""

    def value(figures: Figures) -> float:
        costs = [figures.ours(row, case) for row, case in ours]
        floor = [figures.of(row, case) for row, case in raw] or [1.0]
        return max(costs) / costs[0] - max(floor) / floor[0]

    return value


def _sizes(row: str) -> Value:
    ours, raw = ([(row, f"{size} {peer}") for size in SIZES[row]] for peer in ("ours", "raw"))
    return _dearer(ours, raw)


def _workers() -> Value:
    ours, raw = ([(f"slow{count}", peer) for count in SLOW] for peer in ("command", "raw"))
    return _dearer(ours, raw)


def _hosts() -> Value:
    return _dearer([("hosts", f"{count} ours") for count in HOSTS], [])


GOALS = (
    Goal("Linux, 10 workers, `command`", 0.54, 0.42, _cpu("linux10")),
    Goal("Linux, 100 workers, `command`", 0.54, 0.42, _cpu("linux100")),
    Goal("Linux, 10 workers, `command` / raw", 1.45, 1.12, _against("linux10", "raw")),
    Goal("Linux, 100 workers, `command` / raw", 1.45, 1.12, _against("linux100", "raw")),
    Goal("Linux, 10 workers, library / raw", None, 1.08, _against("linux10", "raw", "ours")),
    Goal("Linux, `command` / chapter", 0.52, 0.40, _against("linux10", "chapter")),
    Goal("Python, `command` / chapter", 0.52, 0.40, _against("python", "chapter")),
    Goal("JDK, `command` / chapter", 0.60, 0.45, _against("jdk", "chapter")),
    Goal("Rust, `command` / chapter", 0.60, 0.45, _against("rust", "chapter")),
    Goal("PostgreSQL, `command`", 0.58, 0.52, _cpu("postgresql")),
    Goal("Apache httpd, `command`", 0.70, 0.52, _cpu("apache")),
    Goal(
        "Answers after 200 ms, 100 workers, pages/s",
        475,
        475,
        _rate("slow100", scaled=False),
        "{:,.0f}",
        at_least=True,
    ),
    Goal(
        "Answers after 200 ms, 1,000 workers, pages/s",
        2000,
        2200,
        _rate("slow1000", scaled=True),
        "{:,.0f}",
        at_least=True,
    ),
    Goal("added by `-o`", 0.08, 0.08, _added("directory")),
    Goal("added by `--warc`", 0.27, 0.27, _added("warc")),
    Goal("added by `--warc`, compressed", 0.60, 0.60, _added("gz")),
    Goal("added by `-o`, `--jsonl` and `--warc`, compressed", 0.70, 0.70, _added("all")),
    Goal("CPU s to the first request", 0.25, 0.25, _first_request),
    Goal("CPU s of `--help`", 0.08, 0.08, _help),
    Goal("dearer with 100,000 URLs than with 10,000", FLAT, FLAT, _sizes("urls"), "{:+.0%}"),
    Goal("dearer with 1,000,000 URLs than with 10,000", FLAT, FLAT, _sizes("million"), "{:+.0%}"),
    Goal("dearer with up to 10,000 workers than with 100", FLAT, FLAT, _workers(), "{:+.0%}"),
    Goal("dearer with up to 1,000 hosts than with one", FLAT, FLAT, _hosts(), "{:+.0%}"),
)


def goals(record: Record) -> list[str]:
    """Return a table of the goals; in bold is what does not meet one."""
    lines = ["| figure | goal, pure Python | measured | goal, with the scanner | measured |"]
    lines.append("|---|---:|---:|---:|---:|")
    for goal in GOALS:
        cells = [*goal.told(record, pure=True), *goal.told(record, pure=False)]
        lines.append(f"| {goal.what} | {' | '.join(cells)} |")
    return lines


def crawlers(record: Record) -> list[str]:
    """Return a table of the cost of every crawler on every site, as measured."""
    rows = [row for row in SITES if row in record]
    heads = [f"{SITES[row][0]}, {SITES[row][1]} workers" for row in rows]
    lines = [f"| CPU s for 1,000 URLs | {' | '.join(heads)} |", "|---|" + "---:|" * len(rows)]
    for peer, name in CRAWLERS.items():
        each = [record[row]["figures"].get(peer) for row in rows]
        if any(each):
            cells = ["" if one is None else f"{median(one['cpu']):.3f}" for one in each]
            lines.append(f"| {name} | {' | '.join(cells)} |")
    counts = [_urls(record[row]["figures"]) for row in rows]
    return [*lines, f"| URLs | {' | '.join(counts)} |"]


BARS = {
    "command": ("trio_crawler", "#3d84c6"),
    "fast": ("a good loop on aiohttp", "#c77c11"),
    "chapter": ("the chapter, on aiohttp", "#7d848c"),
    "raw": ("a bare loop on Trio", "#2b9a66"),
}
BARRED = ("linux10", "postgresql", "apache", "python")
_STYLE = """<style>#cost { --own-ink: #16181a; }
@media (prefers-color-scheme: dark) { #cost { --own-ink: #e6e6e6; } }
#cost text { fill: var(--color-foreground-primary, var(--own-ink)); }
#cost text { font: 13px system-ui, sans-serif; } #cost .site { font-weight: 600; }
</style>"""
_LEFT, _LONGEST, _THICK = 190, 420, 18


def bars(record: Record) -> list[str]:
    """Return a picture of what a URL costs each crawler, as SVG; of each site the dearest is 1."""
    shapes, top = list[str](), 0
    for row in BARRED:
        costs = {peer: median(record[row]["figures"][peer]["cpu"]) for peer in BARS}
        shapes.append(f'<text class="site" x="0" y="{top + 14}">{SITES[row][0]}</text>')
        for peer, (name, colour) in BARS.items():
            top += _THICK + 4
            long = _LONGEST * costs[peer] / max(costs.values())
            shapes += (
                f'<text x="{_LEFT - 8}" y="{top + 14}" text-anchor="end">{name}</text>',
                f'<rect x="{_LEFT}" y="{top}" width="{long:.0f}" height="{_THICK}"'
                f' fill="{colour}"/>',
                f'<text x="{_LEFT + long + 6:.0f}" y="{top + 14}">{costs[peer]:.2f}</text>',
            )
        top += 2 * _THICK
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 680 {top}" id="cost" role="img"'
    label = ' aria-label="CPU seconds for 1,000 URLs, by site and crawler">'
    return [head + label, _STYLE, *shapes, "</svg>"]


def _urls(figures: Mapping[str, Mapping[str, Sequence[float]]]) -> str:
    """Return how many URLs all found, or in bold the least and the most."""
    found = sorted({int(count) for each in figures.values() for count in each["urls"]})
    return f"{found[0]:,}" if len(found) == 1 else f"**{found[0]:,} to {found[-1]:,}**"


def measurements(record: Record) -> list[str]:
    """Return when each row was measured, and on which machine."""
    lines = ["| row | date | commit | rounds | load before | raw |"]
    lines.append("|---|---|---|---:|---:|---:|")
    machines: dict[str, list[str]] = {}
    for row, how in record.items():
        when = f"{row} | {how['date']} | {how['commit']} | {how['rounds']}"
        lines.append(f"| {when} | {how['load']:.2f} | {how['raw']:.3f} |")
        scanner = "with" if how["scanner"] else "without"
        machines.setdefault(f"{how['on']}, {scanner} the scanner", []).append(f"`{row}`")
    return [*lines, "", *(f"- {on}: {', '.join(rows)}" for on, rows in machines.items())]
