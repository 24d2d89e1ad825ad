"""What a crawl in memory takes for each URL that it has more."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

BENCH = Path(__file__).parent / "bench" / "memory.py"
FEW, MANY = 10_000, 100_000


def peak(site: str, how: str, count: int) -> int:
    """Crawl in a process of its own; return the most bytes that it had in use."""
    command = [sys.executable, BENCH, "--row", site, how, str(count)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert run.returncode == 0, run.stderr
    urls, most, _ = json.loads(run.stdout)
    assert urls == count
    return int(most)


# The tree lets nine of ten URLs wait for long. What does not grow, such as the window of URLs that
# wait as objects, is some 10 MiB: at 1,000,000 URLs the same crawls take less than half of this.
@pytest.mark.parametrize(("how", "most"), [("library", 100), ("report", 200)])
def test_a_url_takes_less_than_200_bytes_all_included(how: str, most: int) -> None:
    each = (peak("tree", how, MANY) - peak("tree", how, FEW)) / (MANY - FEW)
    assert each < most
