"""The golden facts of real documentation: what a crawl and a check of each site find.

    python tests/golden/documentation.py

writes them anew, for the packages that are installed.
"""

from __future__ import annotations

import json
import lzma
import subprocess
import sys
from functools import partial
from pathlib import Path

import trio

ROOT = Path(__file__).resolve().parents[2]
if __name__ == "__main__":
    sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from bench.roots import ROOTS  # noqa: E402
from golden.facts import Facts, facts_of  # noqa: E402
from sites.docs import serve_directory  # noqa: E402

from trio_crawler import Checks, Crawler, HttpFetch, Limits, Outcome, Politeness  # noqa: E402

FILE = Path(__file__).with_name("documentation.json.xz")
ORIGIN = "http://site.test/"
_FINE = ("Page 200", "Checked 200")


def version(package: str) -> str:
    """Return the version of a package of Debian, "" if it is not installed."""
    command = ["dpkg-query", "-W", "-f", "${Version}", package]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    return run.stdout if run.returncode == 0 else ""


async def _outcomes(url: str, *, checks: bool) -> list[Outcome]:
    # Links that lead to other hosts are not asked for: what these answer changes.
    wanted = Checks(fragments=True, assets=True, external=False) if checks else None
    async with HttpFetch(seeds=[url]) as fetch:
        crawler = Crawler(
            [url],
            fetch=fetch,
            checks=wanted,
            limits=Limits(max_pages=20_000),
            politeness=Politeness(nofollow=not checks),
        )
        async with crawler.outcomes() as outcomes:
            return [outcome async for outcome in outcomes]


def golden(root: Path) -> Facts:
    """Crawl and check the files below a folder; return what is not fine."""
    found: Facts = {}
    with serve_directory(root) as site:
        for way, checks in (("crawl", False), ("check", True)):
            outcomes = trio.run(partial(_outcomes, site.url, checks=checks))
            facts = facts_of(outcomes, checked=checks, seed=site.url)
            facts["urls"] = len(facts["ends"])
            facts["ends"] = {url: end for url, end in facts["ends"].items() if end not in _FINE}
            found[way] = json.loads(json.dumps(facts).replace(site.url, ORIGIN))
    return found


def read() -> Facts:
    """Return the golden facts by package, each with its version."""
    found: Facts = json.loads(lzma.decompress(FILE.read_bytes()))
    return found


if __name__ == "__main__":
    known = {
        package: {"version": version(package), **golden(root)}
        for package, root in ROOTS.items()
        if version(package) and root.is_dir()
    }
    FILE.write_bytes(lzma.compress(json.dumps(known).encode()))
