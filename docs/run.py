"""Run a program of these pages against one of the sites, and print what both say.

    python docs/run.py plain reading/blocking.py

serves `docs/sites/plain.py`, runs `docs/reading/blocking.py` in another process with
the site's URL as its argument, and prints the program's output and what the site was
asked. What differs from run to run is written the same each time: the site is
`http://site/`, an address in memory is `0x...`, and of a traceback only the frames of
the programs here are kept.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

from sites.serving import Site, named, serving

DOCS = Path(__file__).resolve().parent
FRAME = re.compile(r'^([\s|+]*)File "([^"]+)", line (\d+), in (.+)$')
GROUP = re.compile(
    r"^\s*[|+] ?"
)  # what stands before each line of an exception group
START = (
    5.0  # seconds that a program on a busy machine may take to its first request
)
LIMIT = 60.0
# What httpx stands on says so when its task is cancelled in the very moment in which it
# begins to connect: whether that happens is chance.
CHANCE = "ignore:coroutine 'connect_tcp:RuntimeWarning"


def options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    add = parser.add_argument
    stop = "stop it when it has asked for nothing for so long"
    add(
        "--for",
        type=float,
        default=20,
        dest="patience",
        metavar="SECONDS",
        help=stop,
    )
    strike = "send it Ctrl-C so long after its first request"
    add("--interrupt", type=float, metavar="SECONDS", help=strike)
    add(
        "--hits", action="store_true", help="list how often each path was asked for"
    )
    chance = "leave out what the site was asked, where that is chance"
    add("--no-count", action="store_true", help=chance)
    add("site", help="a module of docs/sites")
    add("program", help="a program, relative to docs")
    rest = "go to the program, after the site's URL"
    add("arguments", nargs=argparse.REMAINDER, help=rest)
    return parser.parse_args(arguments)


def run(arguments: list[str]) -> str:
    """Run one program and return what is to be printed."""
    given = options(arguments)
    with serving(named(given.site)) as site:
        said, ended = child(given, site)
    lines = [*tidied(said, site.url), *ended]
    return "\n".join([*lines, *counted(site, given)]) + "\n"


def child(given: argparse.Namespace, site: Site) -> tuple[str, list[str]]:
    """Run the program; return all it wrote, and how it ended if not well."""
    path = os.pathsep.join([str(DOCS / "reading"), str(DOCS), str(DOCS.parent)])
    warnings = ",".join(filter(None, [os.environ.get("PYTHONWARNINGS"), CHANCE]))
    own = {"PYTHONPATH": path, "PYTHONWARNINGS": warnings, "NO_COLOR": "1"}
    process = subprocess.Popen(
        [
            sys.executable,
            "-u",
            str(DOCS / given.program),
            site.url,
            *given.arguments,
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, **own},
    )
    said, stopped = waited(process, given, site)
    if stopped:
        return said, [
            f"[still running {given.patience:g} s after its last request: stopped]"
        ]
    return said, [f"[exit {process.returncode}]"] if process.returncode else []


def waited(
    process: subprocess.Popen[str], given: argparse.Namespace, site: Site
) -> tuple[str, bool]:
    """Wait until the program ends or has to be stopped; return what it wrote, and which."""
    began, interrupted = time.monotonic(), False
    while True:
        try:
            return process.communicate(timeout=0.05)[0], False
        except subprocess.TimeoutExpired:
            now = time.monotonic()
        first, last = (
            (site.times[0], site.times[-1]) if site.times else (began + START,) * 2
        )
        if (
            given.interrupt is not None
            and not interrupted
            and now > first + given.interrupt
        ):
            process.send_signal(signal.SIGINT)
            interrupted = True
        if now > last + given.patience or now > began + LIMIT:
            process.kill()
            return process.communicate()[0], True


def tidied(said: str, url: str) -> list[str]:
    """Write what differs from run to run the same each time."""
    said = said.replace(url, "http://site/").replace(url.split("/")[2], "site")
    said = re.sub(r"0x[0-9a-f]{6,}", "0x...", said)
    return traced(said.splitlines())


def traced(lines: list[str]) -> list[str]:
    """Keep of each traceback the frames of the programs here, a line each, and the error."""
    kept: list[str] = []
    source = False  # below a frame: its line of code, and the marks under that
    for line in lines:
        frame = FRAME.match(line)
        source = bool(frame) or (source and is_source(line))
        if frame and Path(frame[2]).is_relative_to(DOCS):
            kept.append(
                f"{frame[1]}{Path(frame[2]).name}, line {frame[3]}, in {frame[4]}"
            )
        elif not source:
            kept.append(line.replace(f"{DOCS}/", ""))
    return kept


def is_source(line: str) -> bool:
    rest = GROUP.sub("", line)
    return not rest.strip() or rest.startswith("    ")


def counted(site: Site, given: argparse.Namespace) -> list[str]:
    """Say what the site was asked: the witness that belongs to neither side."""
    if given.no_count:
        return []
    if given.hits:
        return [
            f"site: {path} {count}x" for path, count in sorted(site.hits.items())
        ]
    requests, paths = site.hits.total(), len(site.hits)
    return [f"site: {many(requests, 'request')} for {many(paths, 'path')}"]


def many(count: int, noun: str) -> str:
    return f"{count} {noun}" + ("" if count == 1 else "s")


if __name__ == "__main__":
    # A shell's background jobs ignore Ctrl-C, and so would their children.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    print(run(sys.argv[1:]), end="")
