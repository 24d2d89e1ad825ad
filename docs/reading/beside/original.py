"""Run the chapter's published program on the Pythons of its time, and record its reports.

    python docs/reading/beside/original.py PYTHON3.6 PYTHON3.8 crawl.py

The first has aiohttp 0.22.5, the second 3.8.6; crawl.py is `crawler/code/crawl.py` of
the repository aosabook/500lines. The reports go to docs/generated/original.txt and
original-hangs.txt; seconds, speed and date are left out.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from signal import SIGINT

DOCS = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(DOCS))

from sites.serving import named, serving  # noqa: E402

LEFT_OUT = r"Date: .*\n|http://site/\d* 200.*\n|^\n| in [\d.]+ secs .*"


def report(python: str, crawl: str, version: str, name: str) -> str:
    """Return what the program says of one site, after five seconds and at its end."""
    command = [python, crawl, "-q", "--max_tasks", "4"]
    head = f"$ python{version} crawl.py -q --max_tasks 4 http://site/  # {name}\n"
    with serving(named(name)) as site:
        running = subprocess.Popen(
            [*command, site.url], stdout=-1, stderr=-1, text=True
        )
        try:
            said, hung = running.communicate(timeout=5)[0], False
        except subprocess.TimeoutExpired:
            running.send_signal(SIGINT)
            said, error = running.communicate(timeout=9)
            (worker,) = re.findall(
                r"^future: .*\n(?:^[ T].*\n|\n)*^(\w+Error: .*)", error, re.M
            )
            hung = True
        said = said.replace(site.url, "http://site/")
        asked = f"site: {site.hits.total()} requests for {len(site.hits)} paths"
    if hung:
        said = re.sub(LEFT_OUT, "", said, flags=re.M)
        return (
            f"{head}[after 5 s: nothing printed; Ctrl-C]\n{said}{worker}\n{asked}\n"
        )
    said = re.sub(r" in [0-9.]+ secs (\(.*?\)) .*", r" in … secs \1", said)
    return head + re.sub(r"Date: .*\n", "", said) + f"{asked}\n"


if __name__ == "__main__":
    old, newer, crawl = sys.argv[1:]
    good = [report(old, crawl, "3.6", name) for name in ("plain", "redirects")]
    hangs = [
        report(old, crawl, "3.6", "liar"),
        report(newer, crawl, "3.8", "plain"),
    ]
    for name, reports in {"original": good, "original-hangs": hangs}.items():
        (DOCS / "generated" / f"{name}.txt").write_text("\n".join(reports))
