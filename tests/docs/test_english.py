"""The English of the pages: plain words, and "you" for the reader."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# Clauses that hide the actor, and words that no one says; a question may begin with "What".
HARD = re.compile(
    r"\b(?:whoever|nobody|(?:of|by|in) which)\b"
    r"|(?:^(?-i:W)|[.:;]\sW)hat\s(?![^.]*\?)\w",
    re.IGNORECASE | re.MULTILINE,
)
YOU = re.compile(r"\byou(?:r|rself)?\b", re.IGNORECASE)
MADE = {ROOT / "docs" / folder for folder in ("generated", "_build")}
PLAIN = ["README.md"] + [
    str(page.relative_to(ROOT))
    for page in sorted((ROOT / "docs").rglob("*.md"))
    if not MADE & set(page.parents)
]
# Pages that tell the reader what to do.
PAGES = "trio four done enough guide/tutorial guide/check guide/lasting guide/asyncio"
PAGES += " guide/recipes guide/rules guide/facts guide/machines guide/contributing"
TO_YOU = ["README.md", *(f"docs/{name}.md" for name in PAGES.split())]


def prose(name: str) -> str:
    """Return a page without listings, directives, addresses and tables of figures."""
    text = (ROOT / name).read_text()
    text = re.sub(r"^(`{3,}|:{3,}).*?^\1$", "", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"^ {4}.*$", "", text, flags=re.MULTILINE)
    return re.sub(r"\]\([^)]*\)", "]", text)


@pytest.mark.parametrize("name", PLAIN)
def test_a_page_is_in_plain_words(name: str) -> None:
    text = prose(name)
    assert len(HARD.findall(text)) * 1000 <= len(text.split()), HARD.findall(text)


@pytest.mark.parametrize("name", TO_YOU)
def test_a_page_of_use_or_learn_speaks_to_its_reader(name: str) -> None:
    text = prose(name)
    assert len(YOU.findall(text)) * 100 >= len(text.split())
