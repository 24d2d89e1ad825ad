"""Draw the rooms of the package from their imports, and the path of a URL through them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape

STYLE = """#ID { --own-ink: #16181a; --own-paper: #fff; --own-line: #bbb; }
@media (prefers-color-scheme: dark) {
#ID { --own-ink: #e6e6e6; --own-paper: #131416; --own-line: #444; } }
#ID text { fill: var(--color-foreground-primary, var(--own-ink)); }
#ID text { font: 13px system-ui, sans-serif; }
#ID rect { fill: var(--color-background-primary, var(--own-paper)); }
#ID rect, #ID .way { stroke: var(--color-foreground-primary, var(--own-ink)); }
#ID path { fill: none; stroke: var(--color-foreground-muted, var(--own-line)); }
#ID circle { fill: #3d84c6; } #ID .waits { fill: #c77c11; }
"""
WIDE, HIGH, ROW = 96, 28, 74


def svg(name: str, label: str, size: tuple[int, int], lines: Iterable[str]) -> str:
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size[0]} {size[1]}" id="{name}"'
    about = f'{head} role="img" aria-label="{label}">\n<style>{STYLE.replace("ID", name)}</style>'
    return "\n".join([about, *lines, "</svg>"]) + "\n"


def text(x: float, y: float, words: str, more: str = "") -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}"{more}>{escape(words)}</text>'


def house(uses: Mapping[str, frozenset[str]]) -> str:
    """Draw each room above those that it uses; a line that others imply is left out."""
    rooms = {
        room: {each for each in used if uses[each]}
        for room, used in uses.items()
        if used
    }

    def below(room: str) -> set[str]:
        return set().union(*({each} | below(each) for each in rooms[room]))

    def floor(room: str) -> int:
        return max((floor(each) + 1 for each in rooms[room]), default=0)

    rows: dict[int, list[str]] = {}
    for room in rooms:
        rows.setdefault(floor(room), []).append(room)
    width = 7 * WIDE
    height = ROW * len(rows) + 40
    place = {
        room: (width * (at + 1) / (len(row) + 1), height - 60 - ROW * (level + 0.5))
        for level, row in rows.items()
        for at, room in enumerate(row)
    }
    lines, boxes = [], []
    for room, (x, y) in place.items():
        implied = set().union(*(below(each) for each in rooms[room]))
        for each in sorted(rooms[room] - implied):
            to_x, to_y = place[each]
            # A line that passes a floor goes around its rooms.
            bend = f"Q{to_x:.0f} {y:.0f} " if to_y - y > ROW else "L"
            lines.append(
                f'<path d="M{x:.0f} {y:.0f} {bend}{to_x:.0f} {to_y:.0f}"/>'
            )
        boxes.append(f'<rect x="{x - WIDE / 2:.0f}" y="{y - HIGH / 2:.0f}" rx="5"')
        boxes[-1] += f' width="{WIDE}" height="{HIGH}"/>'
        boxes.append(text(x, y + 4, room, ' text-anchor="middle"'))
    ground = ", ".join(sorted(set(uses) - set(rooms)))
    boxes += [
        f'<rect x="8" y="{height - 44}" rx="5" width="{width - 16}" height="{HIGH}"/>'
    ]
    boxes += [
        text(
            width / 2,
            height - 26,
            f"used by all: {ground}",
            ' text-anchor="middle"',
        )
    ]
    return svg(
        "house",
        "The rooms, each above those that it uses",
        (width, height),
        lines + boxes,
    )


def path(stations: list[tuple[str, str, bool, str]], rooms: list[str]) -> str:
    """Draw the stations of a URL: its room, its function, whether it waits, and what it does."""
    step, top, column = 24, 70, 46
    places = [(column * (rooms.index(room) + 0.5), top + step * at)
              for at, (room, *_) in enumerate(stations)]  # fmt: skip
    lines = [
        text(
            column * (at + 0.5),
            top - 16,
            room,
            f' transform="rotate(-40 {column * (at + 0.5)} {top - 16})"',
        )
        for at, room in enumerate(rooms)
    ]
    lines.append(
        f'<path class="way" d="M{" L".join(f"{x:.0f} {y}" for x, y in places)}"/>'
    )
    for (x, y), (_, name, waits, told) in zip(places, stations, strict=True):
        kind = ' class="waits"' if waits else ""
        lines.append(
            f'<circle cx="{x:.0f}" cy="{y}" r="5"{kind}><title>{escape(name)}</title></circle>'
        )
        lines.append(text(column * len(rooms) + 10, y + 4, told))
    size = (column * len(rooms) + 480, top + step * len(stations))
    return svg("path", "The path of one URL", size, lines)
