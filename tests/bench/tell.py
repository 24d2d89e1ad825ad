"""What a crawl says at its end: one line of JSON, for `peers.py` to read."""

from __future__ import annotations

import json
import os
from collections import Counter


def tell(urls: int, failed: int, start_up: float, wall: float, statuses: dict[str, int]) -> None:
    """Print the URLs found, the attempts that failed, the CPU seconds before, and the seconds.

    With BENCH_FOUND in the environment all of `statuses` follow, 0 for what never answered.
    """
    found = statuses if "BENCH_FOUND" in os.environ else {}
    counts = Counter(statuses.values())
    facts = {"urls": urls, "failed": failed, "start_up": start_up, "wall": wall}
    print(json.dumps({**facts, "statuses": counts, "found": found}))
