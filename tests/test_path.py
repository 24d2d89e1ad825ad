"""The way of a URL through the crawler, counted in calls, in changes of file and in files."""

from __future__ import annotations

import pytest
from bench.path import measured


@pytest.mark.slow
@pytest.mark.merge
def test_a_url_takes_at_most_75_calls_in_15_files():
    found = measured()
    assert ("crawler.py", "Crawler.fetch") in found.functions
    assert found.calls <= 75
    assert found.changes <= 52
    assert found.files <= 15
