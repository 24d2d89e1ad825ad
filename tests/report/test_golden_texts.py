"""The sections of a report read as they are recorded in texts/; `pytest --update` renews these."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from report.crawls import CRAWLS

TEXTS = Path(__file__).parent / "texts"
OPTIONS = {"report": {}, "full": {"full": True, "why": True}}


@pytest.mark.parametrize("name", CRAWLS)
@pytest.mark.parametrize("option", OPTIONS)
def test_a_report_reads_as_it_is_recorded(
    name: str, option: str, recorded: Callable[[Path, str], None]
) -> None:
    text = CRAWLS[name].text(**OPTIONS[option])
    plain = CRAWLS[name].text()
    # A long list, of which the other text has the first lines, is as long as it is.
    if option == "report" or len(text) < 3 * len(plain):
        recorded(TEXTS / f"{name}.{option}.txt", f"{text}\n")


@pytest.mark.parametrize("name", CRAWLS)
def test_a_report_does_not_depend_on_the_order_of_the_outcomes(name: str) -> None:
    crawl = CRAWLS[name]
    shuffled = Random(name).sample(crawl.outcomes, len(crawl.outcomes))
    mixed = type(crawl)(shuffled, crawl.facts)
    assert mixed.text(why=True, full=True) == crawl.text(why=True, full=True)
