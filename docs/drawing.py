"""Draw the records of a run: lanes of tasks over time, or the tree of tasks, as SVG."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from html import escape

from lanes import Record

WIDTH, LEFT, RIGHT = 380, 6, 18
LANE, BAR = 38, 16
WORDS = {
    "fetching": "fetching",
    "receiving": "waiting for a job",
    "sleeping": "sleeping",
    "joining": "waiting for the others",
    "sending": "waiting for the reader",
    "queueing": "waiting for room",
    "waiting": "waiting",
}
FATES = {
    "ended": "ended",
    "raised": "raised an error",
    "cancelled": "was cancelled",
    "still": "goes on",
}
BROAD = ("fetching", "sleeping")
COLOURS = {
    "fetching": "#3d84c6",
    "receiving": "#c77c11",
    "sleeping": "#8f6bd1",
    "joining": "#7d848c",
    "sending": "#2b9a66",
    "queueing": "#b0588f",
    "waiting": "#7d848c",
}
STYLE = """#ID {{ --own-ink: #16181a; --own-paper: #fff; --own-line: #ccc; }}
@media (prefers-color-scheme: dark) {{
#ID {{ --own-ink: #e6e6e6; --own-paper: #131416; --own-line: #444; }} }}
#ID .paper {{ fill: var(--color-background-primary, var(--own-paper)); }}
#ID text {{ fill: var(--color-foreground-primary, var(--own-ink)); }}
#ID text {{ font: 12px system-ui, sans-serif; }}
#ID .name {{ font-weight: 600; }}
#ID .grid {{ stroke: var(--color-background-border, var(--own-line)); }}
#ID .tie {{ stroke: var(--color-foreground-primary, var(--own-ink)); fill: none; }}
#ID .outlived {{ stroke: #d64545; stroke-width: 2; stroke-dasharray: 4 3; }}
#ID .ended {{ fill: var(--color-foreground-primary, var(--own-ink)); }}
#ID .raised, #ID .cancelled, #ID .still {{ stroke: #d64545; stroke-width: 2.5; fill: none; }}
#ID .still {{ stroke: #c77c11; }}
"""


Wait = tuple[float, float, str, str]


@dataclass
class Lane:
    """Hold what one task did: its waits as (from, to, kind, what), and how it ended."""

    name: str
    parent: int | None
    began: float
    waits: list[Wait] = field(default_factory=list)
    fate: str = "still"
    end: float = 0.0
    raised: str = ""
    order: float = 0  # of its end, among all ends

    @property
    def jobs(self) -> list[str]:
        return [what for _, _, kind, what in self.waits if kind == "fetching"]

    @property
    def label(self) -> str:
        return f"{self.name} {self.jobs[0]}" if self.jobs else self.name

    @property
    def ended(self) -> str:
        if self.fate == "still":
            last = self.waits[-1][2] if self.waits else ""
            now = last if last in BROAD else "waiting"
            return f"still {now} at {seconds(self.end)}"
        return f"{self.raised or self.fate} at {seconds(self.end)}"


def seconds(time: float) -> str:
    return f"{time:.1f}".removesuffix(".0") + " s"


def lanes(records: Iterable[Record], until: float) -> dict[int, Lane]:
    """Make lanes of records: those without a job first, then in the order of their first jobs."""
    made: dict[int, Lane] = {}
    for order, record in enumerate(each for each in records if each.time <= until):
        time, task, what = record.time, record.task, record.what
        lane = made.setdefault(task, Lane(record.where, record.parent, time))
        if lane.waits:
            began, _, kind, word = lane.waits.pop()
            if time - began > 0.01:
                lane.waits.append((began, time, kind, word))
        if what == "waits":
            kind, _, word = record.where.partition(" ")
            lane.waits.append((time, until, kind, word))
        elif what != "started":
            lane.fate, lane.end, lane.order = what, time, order
            lane.raised = record.where
    for lane in made.values():
        lane.waits = joined(lane.waits)
        if lane.fate == "still":
            lane.end, lane.order = until, math.inf
    return dict(sorted(made.items(), key=lambda each: place(each[1])))


def joined(waits: list[Wait]) -> list[Wait]:
    """Make one wait of those that follow each other and are the same, but for fetching."""
    made: list[Wait] = []
    for wait in waits:
        if made and made[-1][1:] == (wait[0], *wait[2:]) and wait[2] != "fetching":
            wait = (made.pop()[0], *wait[1:])
        made.append(wait)
    return made


def place(lane: Lane) -> tuple[bool, float, str, list[Wait]]:
    firsts = (began for began, _, kind, _ in lane.waits if kind == "fetching")
    return lane.parent is not None, next(firsts, -1.0), lane.label, lane.waits


Panel = tuple[str, list[Record]]


def timeline(
    name: str, title: str, panels: list[Panel], until: float, words: dict[str, str]
) -> str:
    """Draw the lanes of one or two runs over one axis of time."""
    parts: list[str] = []
    told: list[str] = []
    kinds: dict[str, None] = {}
    fates: set[str] = set()
    y = 4.0
    for heading, records in panels:
        made = [
            lane for lane in lanes(records, until).values() if lane.end > lane.began
        ]
        kinds.update(dict.fromkeys(wait[2] for lane in made for wait in lane.waits))
        fates |= {lane.fate for lane in made}
        if heading:
            parts.append(text(LEFT, y + 12, heading, "name"))
            y += 20
        top = y
        drawn: list[str] = []
        for lane in made:
            drawn += bars(lane, y, until, words)
            y += LANE
        parts += [*axis(top, y, until), *drawn]
        y += 18
        told += [f"{heading}:" if heading else "", *map(tell, made)]
    y = legend(
        parts, [kind for kind in WORDS if kind in kinds], {**WORDS, **words}, y
    )
    x = float(LEFT)
    for fate in [each for each in FATES if each in fates]:
        parts.append(mark(fate, x + (0 if fate == "still" else 7), y + 6))
        parts.append(text(x + 18, y + 10, FATES[fate], "word"))
        x += 26 + 6.6 * len(FATES[fate])
    return svg(name, title, " ".join(told).strip(), y + 20, parts)


def tell(lane: Lane) -> str:
    jobs = f" fetches {', '.join(lane.jobs)};" if lane.jobs else ""
    return f"{lane.label}:{jobs} {lane.ended}."


def across(time: float, until: float) -> float:
    return LEFT + time / until * (WIDTH - LEFT - RIGHT)


def bars(
    lane: Lane, y: float, until: float, words: dict[str, str]
) -> Iterator[str]:
    yield text(LEFT, y + 12, lane.label, "name")
    yield text(WIDTH - 4, y + 12, lane.ended, "fate", "end")
    low = y + 17
    for began, end, kind, what in lane.waits:
        left, right = across(began, until), across(end, until)
        height = BAR if kind in BROAD else 5
        top = low + (BAR - height) / 2
        shape = f'x="{left:.1f}" y="{top:.1f}" width="{right - left:.1f}" height="{height}"'
        colour = COLOURS[kind]
        yield f'<rect {shape} fill="{colour}" fill-opacity=".28" stroke="{colour}"/>'
        label = what if kind == "fetching" else words.get(what, "")
        if label and right - left > 6.6 * len(label) + 4:
            yield text((left + right) / 2, low + 12, label, "word", "middle")
    yield mark(lane.fate, across(lane.end, until), low + BAR / 2)


def mark(fate: str, x: float, y: float) -> str:
    if fate == "ended":
        return f'<circle class="ended" cx="{x:.1f}" cy="{y:.1f}" r="4.5"/>'
    a, b, c, d = x - 5, x + 5, y - 6, y + 6
    path = {
        "raised": f"M{a:.1f} {c:.1f}L{b:.1f} {d:.1f}M{a:.1f} {d:.1f}L{b:.1f} {c:.1f}",
        "cancelled": f"M{x:.1f} {y - 9:.1f}V{y + 9:.1f}",
        "still": f"M{x + 3:.1f} {c:.1f}L{x + 10:.1f} {y:.1f}L{x + 3:.1f} {d:.1f}",
    }[fate]
    return f'<path class="{fate}" d="{path}"/>'


def dot(fate: str, x: float, y: float) -> str:
    """Draw the mark of an end where no bar leads to it."""
    if fate == "cancelled":
        return f'<path class="cancelled" d="M{x - 4:.1f} {y - 4:.1f}h8v8h-8z"/>'
    return mark(fate, x - (6 if fate == "still" else 0), y)


def axis(top: float, bottom: float, until: float) -> Iterator[str]:
    step = next(
        each for each in (0.5, 1, 2, 5, 10, 20, 30, 60) if until / each <= 8
    )
    for n in range(int(until / step) + 1):
        x = across(n * step, until)
        yield f'<path class="grid" d="M{x:.1f} {top:.1f}V{bottom:.1f}"/>'
        yield text(
            x, bottom + 12, seconds(n * step), "tick", "middle" if n else "start"
        )


def legend(
    parts: list[str], kinds: list[str], words: dict[str, str], y: float
) -> float:
    """Add what the colours mean; return where the next line would be."""
    x = float(LEFT)
    y += 6
    for kind in kinds:
        wide = 26 + 6.6 * len(words[kind])
        if x + wide > WIDTH:
            x, y = LEFT, y + 16
        high = 10 if kind in BROAD else 5
        shape = f'x="{x:.1f}" y="{y + 6 - high / 2:.1f}" width="14" height="{high}"'
        colour = COLOURS[kind]
        parts.append(
            f'<rect {shape} fill="{colour}" fill-opacity=".28" stroke="{colour}"/>'
        )
        parts.append(text(x + 18, y + 10, words[kind], "word"))
        x += wide
    return y + 18


def tree(
    name: str, title: str, panels: list[Panel], until: float, words: dict[str, str]
) -> str:
    """Draw who started whom; a dashed line leads to a task that outlived the one that did."""
    parts: list[str] = []
    told: list[str] = []
    y = 8.0
    for heading, records in panels:
        made = lanes(records, until)
        if heading:
            parts.append(text(LEFT, y + 10, heading, "name"))
            y += 22
        y = branch(made, None, 0, y, parts, told)
    if any("outlived" in part for part in parts):
        parts.append(f'<path class="tie outlived" d="M{LEFT} {y + 8}h26"/>')
        parts.append(text(38, y + 12, "outlived the task that started it", "word"))
        y += 22
    return svg(name, title, " ".join(told).strip(), y, parts)


def branch(
    made: dict[int, Lane],
    parent: int | None,
    depth: int,
    y: float,
    parts: list[str],
    told: list[str],
) -> float:
    """Draw the tasks that one task started, and below each its own; return the next free line."""
    x = LEFT + 6 + 26 * depth
    above = y - 12
    for task, lane in made.items():
        if lane.parent != parent:
            continue
        outlived = parent is not None and lane.order > made[parent].order
        if parent is not None:
            kind = "tie outlived" if outlived else "tie"
            parts.insert(
                0,
                f'<path class="{kind}" d="M{x - 26:.1f} {above:.1f}V{y + 8:.1f}H{x - 6:.1f}"/>',
            )
        parts.append(dot(lane.fate, x, y + 8))
        parts.append(text(x + 12, y + 12, lane.label, "name"))
        parts.append(text(WIDTH - 4, y + 12, lane.ended, "fate", "end"))
        started = f" started by {made[parent].label}" if parent is not None else ""
        told.append(
            f"{lane.label}{started}: {lane.ended}{', which outlived it' * outlived}."
        )
        y = branch(made, task, depth + 1, y + 26, parts, told)
    return y


def text(x: float, y: float, words: str, kind: str, anchor: str = "start") -> str:
    where = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    return f'<text class="{kind}" {where}>{escape(words)}</text>'


def svg(name: str, title: str, told: str, height: float, parts: list[str]) -> str:
    """Put the parts on paper; the page's colours are taken where the page has some."""
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" id="picture-{name}" role="img" '
        f'viewBox="0 0 {WIDTH} {height:.0f}" '
        f'aria-labelledby="picture-{name}-title picture-{name}-desc">'
    )
    style = STYLE.format().replace("#ID", f"#picture-{name}")
    return "\n".join(
        [
            head,
            f'<title id="picture-{name}-title">{escape(title)}</title>',
            f'<desc id="picture-{name}-desc">{escape(told)}</desc>',
            f"<style>{style}</style>",
            f'<rect class="paper" width="{WIDTH}" height="{height:.0f}"/>',
            *parts,
            "</svg>\n",
        ]
    )
