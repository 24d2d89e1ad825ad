"""Measure what the links and the text of a page cost with the compiled readers, and without.

    python tests/bench/scanner.py [ROOT ...] [--rounds 3]

No network: the HTML files below each ROOT are read with both, in turns in one process. `links` is
`scan_html`, or else `parse_html`, from text to hrefs without fragments, `page` is
`page.read.read`, from bytes to absolute URLs, and `text` is the digest of the text, which a crawl
directory stores. Figures are the least of the rounds, in us of CPU per page. Both must find the
same facts on every page: exit status 1 if they do not. Needs a C compiler, and `pip install -e .`
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

from trio_crawler.page import accelerator, charset
from trio_crawler.page.read import parse_html, read, scan_html
from trio_crawler.page.text_digest import page_text

DOC = Path("/usr/share/doc")
ROOTS = [
    DOC / "postgresql-doc-15/html",
    DOC / "python3-doc/html",
    DOC / "apache2-doc/manual",
    DOC / "sqlite3",
]
COMPILED = accelerator.scan, accelerator.text


def use(compiled: bool) -> None:
    """Read pages with the compiled readers, or in Python."""
    accelerator.scan, accelerator.text = COMPILED if compiled else (None, None)


def seconds(work: Callable[[], object]) -> float:
    """Return the CPU seconds that this takes."""
    started = time.process_time()
    work()
    return time.process_time() - started


def report(root: Path, rounds: int) -> bool:
    """Print a line about the pages below a directory; return whether both find the same."""
    shown, root = str(root), root.resolve()
    bodies = {
        f"http://127.0.0.1:8000/{path.relative_to(root)}": path.read_bytes()
        for path in sorted(root.rglob("*.html"))
    }
    texts = {
        url: charset.decode(body, charset.detect(body, "text/html", markup=True))[0]
        for url, body in bodies.items()
    }
    works: dict[str, Callable[[], object]] = {
        "links": lambda: [
            scan_html(text.encode(), url, "utf-8", 100_000)
            or scan_html(text, url, "utf-8", 100_000)
            or parse_html(text, url)
            for url, text in texts.items()
        ],
        "page": lambda: [read(body, "text/html", url) for url, body in bodies.items()],
        "text": lambda: [page_text(body, "text/html", "utf-8") for body in bodies.values()],
    }
    taken: dict[tuple[str, bool], list[float]] = {}
    facts = {}
    for _ in range(rounds):
        for compiled in (True, False):
            use(compiled)
            for name, work in works.items():
                taken.setdefault((name, compiled), []).append(seconds(work))
    for compiled in (True, False):
        use(compiled)
        facts[compiled] = [
            (read(body, "text/html", url), page_text(body, "text/html", "utf-8"))
            for url, body in bodies.items()
        ]
    use(compiled=True)
    given_up = sum(
        scan_html(text.encode(), url, "utf-8", 100_000) is None for url, text in texts.items()
    )
    differing = sum(one != other for one, other in zip(facts[True], facts[False], strict=True))
    us = {key: min(each) / len(bodies) * 1e6 for key, each in taken.items()}
    kilobytes = sum(map(len, bodies.values())) / len(bodies) / 1000
    costs = "".join(f"  {name} {us[name, True]:>6.1f} / {us[name, False]:>6.1f}" for name in works)
    print(
        f"{shown.removeprefix(f'{DOC}/'):<24}{len(bodies):>6} pages of {kilobytes:>5.1f} KB{costs}"
        f"  given up {given_up}, different {differing}",
        flush=True,
    )
    return not differing


def main() -> int:
    """Run what is asked for; return 0 if all pages were read alike."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("roots", nargs="*", type=Path, metavar="ROOT")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    if accelerator.scan is None:
        print("there are no compiled readers", file=sys.stderr)
        return 2
    roots = [root for root in options.roots or ROOTS if root.is_dir()]
    alike = [report(root, options.rounds) for root in roots]
    return 0 if all(alike) else 1


if __name__ == "__main__":
    sys.exit(main())
