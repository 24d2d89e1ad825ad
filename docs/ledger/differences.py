"""Compare the ledgers of several interpreters: which rows say something else?"""

from __future__ import annotations

import re
from pathlib import Path

GENERATED = Path(__file__).resolve().parent.parent / "generated"
SIDES = ("asyncio of the chapter's time", "the best asyncio", "AnyIO", "Trio")


def recorded() -> dict[str, Path]:
    """Return the ledgers that there are, the oldest Python first."""
    found = {
        match[1]: path
        for path in GENERATED.glob("ledger-*.md")
        if (match := re.fullmatch(r"ledger-(\d+\.\d+)\.md", path.name))
    }
    return dict(sorted(found.items(), key=lambda item: int(item[0].split(".")[1])))


def cells(text: str) -> dict[str, tuple[str, ...]]:
    """Return what each question of a ledger was answered, by the four sides."""
    rows = [
        line.strip("| ").split(" | ") for line in text.splitlines() if "|" in line
    ]
    return {
        row[0]: tuple(row[1:]) for row in rows if len(row) == 5 and row[0] != "---"
    }


def differences(ledgers: dict[str, dict[str, tuple[str, ...]]]) -> str:
    """Return a table of the cells that are not the same in all the ledgers."""
    head = f"| | side | {' | '.join(f'Python {version}' for version in ledgers)} |"
    lines = [head, "| --- | --- |" + " --- |" * len(ledgers)]
    for question in dict.fromkeys(
        each for said in ledgers.values() for each in said
    ):
        for side, name in enumerate(SIDES):
            said = [
                each.get(question, ("",) * 4)[side] for each in ledgers.values()
            ]
            if len(set(said)) > 1:
                lines.append(f"| {question} | {name} | {' | '.join(said)} |")
    return "\n".join(lines) + "\n"
