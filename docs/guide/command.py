"""Run `python -m trio_crawler` on the site, with the arguments that follow.

Where the word "then" stands among them another command begins, in the same
directory, which is gone at the end; of such commands only the last paragraph of the
report is shown. The site's URL is added to each but `report`. Times, dates and rates
are printed as `...`, and so are all but the slowest of the pages called slow: they
differ from run to run.
"""

from __future__ import annotations

import re
import sys
from contextlib import chdir, redirect_stderr, redirect_stdout
from io import StringIO
from tempfile import TemporaryDirectory

from trio_crawler.cli import main

TIMES = [
    (re.compile(r"^ *\d+ ms|^ *[\d.]+ s(?=  http)", re.MULTILINE), "   ..."),
    (re.compile(r"in [\d.]+ m?s \([\d,.]+ URLs/s"), "in ... s (... URLs/s"),
    (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC"), "..."),
    (re.compile(r"Link check, .*"), "Link check, ..., trio_crawler ..."),
    (re.compile(r'"seconds":[\d.e-]+'), '"seconds":...'),
]
SLOWEST = re.compile(r"(Slowest pages\n.*\n)(?:   \.\.\. .*\n)+")


def command(url: str, words: list[str], *, short: bool) -> None:
    """Run one command; print it, what it wrote, and its exit status."""
    words = words if words[:1] == ["report"] else [*words, url]
    print("$ python -m trio_crawler", *words, flush=True)
    sys.argv = ["trio-crawler", *words]
    written = StringIO()
    status: object = 0
    with redirect_stdout(written), redirect_stderr(written):
        try:
            main()
        except SystemExit as end:
            status = end.code
    before, _, last = tidied(written.getvalue()).rpartition("\n\n")
    shown = f"[...]\n{last}" if short and before else f"{before}\n\n{last}".lstrip()
    print(shown, f"[exit status {status}]", sep="", flush=True)


def tidied(said: str) -> str:
    """Write `...` for what differs from run to run."""
    for pattern, instead in TIMES:
        said = pattern.sub(instead, said)
    return SLOWEST.sub(r"\1   ... (others)\n", said)


def commands(words: list[str]) -> list[list[str]]:
    """Divide the words at each "then"."""
    several: list[list[str]] = [[]]
    for word in words:
        if word == "then":
            several.append([])
        else:
            several[-1].append(word)
    return several


if __name__ == "__main__":
    site, *arguments = sys.argv[1:]
    with TemporaryDirectory() as directory, chdir(directory):
        several = commands(arguments)
        for words in several:
            command(site, words, short=len(several) > 1)
