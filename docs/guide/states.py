"""Draw the states of a host from the rules that the scheduler follows."""

from __future__ import annotations

from html import escape
from math import hypot

from trio_crawler.schedule.host_state import RULES, TABLE, Event, Rule, State

PLACES = {
    State.WELL: (90, 150),
    State.RESTING: (330, 60),
    State.TROUBLED: (250, 260),
    State.DOUBTED: (450, 260),
    State.GIVEN_UP: (590, 100),
}
KINDS = {
    "answer": (Event.PAGE_OK, Event.LIMIT, Event.ROBOTS_OK, Event.PROBE_OK),
    "failure": (Event.PAGE_BAD, Event.ROBOTS_BAD, Event.PROBE_BAD),
    "time": (Event.TIME,),
}
HALF, BEND = (52, 17), 18
STYLE = """#states { --own-ink: #16181a; --own-paper: #fff; }
@media (prefers-color-scheme: dark) {
#states { --own-ink: #e6e6e6; --own-paper: #131416; } }
#states text { fill: var(--color-foreground-primary, var(--own-ink)); }
#states text { font: 13px system-ui, sans-serif; }
#states rect { fill: var(--color-background-primary, var(--own-paper)); }
#states rect { stroke: var(--color-foreground-primary, var(--own-ink)); }
#states path { fill: none; stroke-width: 1.6; }
#states .answer { stroke: #2b9a66; } #states marker .answer { fill: #2b9a66; }
#states .failure { stroke: #d64545; } #states marker .failure { fill: #d64545; }
#states .time { stroke: #c77c11; } #states marker .time { fill: #c77c11; }
"""


def arrows() -> dict[tuple[State, State, str], list[Rule]]:
    """Return the rules of each arrow: from a state to another one, by a kind of event."""
    found: dict[tuple[State, State, str], list[Rule]] = {}
    for (state, event), rules in TABLE.items():
        kind = next(name for name, events in KINDS.items() if event in events)
        for rule in rules:
            found.setdefault((state, rule.next, kind), []).append(rule)
    return found


def edge(
    start: tuple[float, float], end: tuple[float, float]
) -> tuple[float, float]:
    """Return where the line from the middle of a box to another point leaves the box."""
    dx, dy = end[0] - start[0], end[1] - start[1]
    scale = min(HALF[0] / abs(dx) if dx else 9, HALF[1] / abs(dy) if dy else 9)
    return start[0] + dx * scale, start[1] + dy * scale


def curve(start: State, end: State, bend: float) -> str:
    """Return the path of an arrow, bent to one side."""
    (x, y), (to_x, to_y) = PLACES[start], PLACES[end]
    length = hypot(to_x - x, to_y - y)
    middle = (
        (x + to_x) / 2 - (to_y - y) / length * bend,
        (y + to_y) / 2 + (to_x - x) / length * bend,
    )
    first, last = edge((x, y), middle), edge((to_x, to_y), middle)
    points = [f"{a:.0f} {b:.0f}" for a, b in (first, middle, last)]
    return f"M{points[0]} Q{points[1]} {points[2]}"


def picture() -> str:
    """Draw the states, and an arrow for each kind of event that leads from one to another."""
    lines = [
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 680 330" id="states" role="img"'
        ' aria-label="The states of a host">',
        f"<style>{STYLE}</style>",
    ]
    for kind in KINDS:
        lines.append(
            f'<marker id="states-{kind}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7"'
            f' markerHeight="7" orient="auto"><path class="{kind}" d="M0 0 L8 4 L0 8 z"/>'
            "</marker>"
        )
    bends: dict[tuple[State, State], int] = {}
    for (start, end, kind), rules in arrows().items():
        if start is end:
            continue
        number = bends[start, end] = bends.get((start, end), 0) + 1
        words = sorted(
            {f"{rule.event}: {rule.condition or 'always'}" for rule in rules}
        )
        lines.append(
            f'<path class="{kind}" marker-end="url(#states-{kind})"'
            f' d="{curve(start, end, BEND * number)}"><title>{escape("; ".join(words))}'
            "</title></path>"
        )
    for state, (x, y) in PLACES.items():
        left, top = x - HALF[0], y - HALF[1]
        lines.append(
            f'<rect x="{left}" y="{top}" width="{2 * HALF[0]}" height="{2 * HALF[1]}" rx="6"/>'
        )
        lines.append(
            f'<text x="{x}" y="{y + 4}" text-anchor="middle">{state}</text>'
        )
    for number, kind in enumerate(KINDS):
        y = 280 + 18 * number
        lines.append(
            f'<path class="{kind}" marker-end="url(#states-{kind})" d="M20 {y} L60 {y}"/>'
        )
        lines.append(f'<text x="70" y="{y + 4}">{kind}</text>')
    return "\n".join([*lines, "</svg>"]) + "\n"


def table() -> str:
    """Write the rules as a table; of several rules for an event, the first that applies."""
    rows = [
        "| event | in these states | if | next state | why |",
        "|---|---|---|---|---|",
    ]
    for rule in RULES:
        states = (
            "all but *given up*" if len(rule.states) == 4 else f"*{rule.states[0]}*"
        )
        condition = rule.condition or "always"
        rows.append(
            f"| {rule.event} | {states} | {condition} | *{rule.next}* | {rule.why} |"
        )
    return "\n".join(rows) + "\n"


if __name__ == "__main__":
    print(table(), end="")
