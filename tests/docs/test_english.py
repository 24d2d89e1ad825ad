"""The English of the pages that teach: plain words, and "you" for the reader."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# Clauses that hide the actor, and words that no one says.
HARD = re.compile(
    r"\b(?:whoever|nobody|(?:of|by|in) which)\b"
    r"|(?:^|[.:;] )What (?:is|was|it|the|a|has|you|came)\b",
    re.IGNORECASE,
)
YOU = re.compile(r"\byou(?:r|rself)?\b", re.IGNORECASE)
PAGES = "index trio four done enough failures errata mutations guide/tutorial guide/check"
FOLDERS = ("failures", "reading")
PLAIN = [
    "README.md",
    *(f"docs/{name}.md" for name in PAGES.split()),
    *(
        str(page.relative_to(ROOT))
        for each in FOLDERS
        for page in sorted((ROOT / "docs" / each).glob("*.md"))
    ),
]
# Pages that tell the reader what to do.
TO_YOU = ["README.md", "docs/trio.md", "docs/four.md", "docs/done.md", "docs/enough.md"]


def prose(name: str) -> str:
    """Return a page without listings, directives, addresses and tables of figures."""
    text = (ROOT / name).read_text()
    text = re.sub(r"^(`{3,}|:{3,}).*?^\1$", "", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"^ {4}.*$", "", text, flags=re.MULTILINE)
    return re.sub(r"\]\([^)]*\)", "]", text)


@pytest.mark.parametrize("name", PLAIN)
def test_a_page_that_teaches_is_in_plain_words(name: str) -> None:
    text = prose(name)
    assert len(HARD.findall(text)) * 1000 <= len(text.split()), HARD.findall(text)


@pytest.mark.parametrize("name", TO_YOU)
def test_a_page_that_teaches_speaks_to_its_reader(name: str) -> None:
    text = prose(name)
    assert len(YOU.findall(text)) * 100 >= len(text.split())
