"""Run the chapter's published program on two sites and record its report.

    python docs/reading/beside/original.py PYTHON crawl.py

PYTHON is a Python 3.6 with aiohttp 0.22.5; crawl.py is `crawler/code/crawl.py` of
the repository aosabook/500lines. Its reports go to docs/generated/original.txt;
seconds, speed and date are left out.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(DOCS))

from sites.serving import named, serving  # noqa: E402


def report(command: list[str], name: str) -> str:
    """Return what the program reports of one site, and what the site was asked."""
    with serving(named(name)) as site:
        said = subprocess.run(
            [*command, "-q", "--max_tasks", "4", site.url],
            capture_output=True, check=True, text=True, timeout=60,
        ).stdout.replace(site.url, "http://site/")  # fmt: skip
    said = re.sub(r" in [0-9.]+ secs (\(.*?\)) .*", r" in … secs \1", said)
    said = re.sub(r"Date: .*\n", "", said)
    asked = f"site: {site.hits.total()} requests for {len(site.hits)} paths"
    command = f"$ python3.6 crawl.py -q --max_tasks 4 http://site/  # {name}"
    return f"{command}\n{said}{asked}\n"


if __name__ == "__main__":
    reports = [report(sys.argv[1:3], name) for name in ("plain", "redirects")]
    target = DOCS / "generated" / "original.txt"
    target.parent.mkdir(exist_ok=True)
    target.write_text("\n".join(reports))
