"""The crawlers that benchmarks compare: how each is started, and what it says at its end.

Most are scripts `PEER_crawler.py URL... N`, which print what `tell` prints; nothing else in them
is there for our sake. `go` is compiled and prints the same. `command` and `wget` are programs as
their users run them: the URLs of the one are counted in a run that is not measured, those of the
other in its log.
"""

from __future__ import annotations

import atexit
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

HERE = Path(__file__).resolve().parent
CHECKOUT = HERE.parent.parent

PURE = {"TRIO_CRAWLER_PURE": "1"}
"""The environment in which our crawler reads links without its compiled scanner."""


@dataclass(frozen=True)
class Said:
    """What a crawler says at its end; None is what it does not say. `start_up` is in seconds."""

    urls: int | None = None
    failed: int = 0
    start_up: float | None = None
    found: Mapping[str, int] = field(default_factory=dict)


Start = Callable[[Sequence[str], int, Path, bool], Sequence[object]]
"""Return a command for URLs, workers, a directory of its own, and whether it lists the URLs."""


@dataclass(frozen=True, eq=False)
class Peer:
    """One crawler; `statuses` are the exit statuses of a crawl that went well."""

    name: str
    start: Start
    said: Callable[[bytes, Path], Said]
    environment: Mapping[str, str] = field(default_factory=dict)
    statuses: frozenset[int] = frozenset({0})
    lacks: Callable[[], str] = str
    """Return why it cannot run on this machine, or nothing."""


def _script(name: str) -> Start:
    return lambda urls, workers, home, listed: (
        sys.executable,
        HERE / f"{name}_crawler.py",
        *urls,
        workers,
    )


def _told(output: bytes, home: Path) -> Said:
    facts = json.loads(output)
    return Said(facts["urls"], facts["failed"], facts["start_up"], facts["found"] or {})


def command(urls: Sequence[str], workers: int, *options: object) -> Sequence[object]:
    """Return our command line, with all defaults but what makes it crawl what others crawl."""
    limits = ("--max-tasks", workers, "--per-host", workers, "--ignore-nofollow")
    return (sys.executable, "-m", "trio_crawler", "-q", *limits, *options, *urls)


def _command(urls: Sequence[str], workers: int, home: Path, listed: bool) -> Sequence[object]:
    return command(urls, workers, *(("--jsonl", "-") if listed else ()))


def said_by_command(output: bytes, home: Path) -> Said:
    """Read the outcomes of a run that lists them; of another nothing is known."""
    if not output.startswith(b"{"):
        return Said()
    lines = [json.loads(line) for line in output.splitlines()]
    return Said(len(lines), found={line["url"]: line.get("status") or 0 for line in lines})


def _go(urls: Sequence[str], workers: int, home: Path, listed: bool) -> Sequence[object]:
    return (_built(), *urls, workers)


@cache
def _built() -> Path:
    """Compile the crawler in Go, once for all runs."""
    home = TemporaryDirectory()
    atexit.register(home.cleanup)
    program = Path(home.name, "go_crawler")
    source = HERE / "go_crawler.go"
    subprocess.run(["go", "build", "-o", program, source], check=True, cwd=home.name)
    return program


def _wget(urls: Sequence[str], workers: int, home: Path, listed: bool) -> Sequence[object]:
    """Return a command that fetches one URL after the other, whatever the workers."""
    as_others = ("-e", "robots=off", "--follow-tags=a", "--tries=4", "--delete-after")
    where = ("-P", home / "files", "-o", home / "log", "--progress=dot:giga")
    return ("wget", "-r", "-l", "inf", "--no-parent", *as_others, *where, *urls)


_ASKED = re.compile(r"^--\d[^ ]* [^ ]*--  (\S+)\n|awaiting response\.\.\. (\d+)", re.MULTILINE)


def _logged(output: bytes, home: Path) -> Said:
    found: dict[str, int] = {}
    url = ""
    for asked, status in _ASKED.findall((home / "log").read_text(errors="replace")):
        url = asked or url
        found[url] = int(status or 0)
    return Said(len(found), list(found.values()).count(0), found=found)


def _without(what: str, found: Callable[[str], object]) -> Callable[[], str]:
    return lambda: "" if found(what) else f"{what} is not installed"


@cache
def accelerated() -> bool:
    """Whether our crawler has its compiled scanner of links here."""
    code = "from trio_crawler.page import accelerator as a; print(a.scan is not None)"
    return subprocess.check_output([sys.executable, "-c", code], cwd=CHECKOUT).strip() == b"True"


BROKEN_TOO = frozenset({0, 1})
"""Documentation may have broken links, which the command reports with 1."""

_ALL = (
    Peer("command", _command, said_by_command, statuses=BROKEN_TOO),
    Peer("command-pure", _command, said_by_command, PURE, BROKEN_TOO),
    Peer("ours", _script("ours"), _told),
    Peer("ours-pure", _script("ours"), _told, PURE),
    Peer("raw", _script("raw"), _told),
    Peer("floor", _script("floor"), _told),
    Peer("go", _go, _told, lacks=_without("go", shutil.which)),
    Peer("fast", _script("fast"), _told),
    Peer("chapter", _script("chapter"), _told),
    Peer("httpx", _script("httpx"), _told),
    # 8 is what wget says of a site with a broken link.
    Peer(
        "wget", _wget, _logged, {"LC_ALL": "C"}, frozenset({0, 8}), _without("wget", shutil.which)
    ),
    Peer("scrapy", _script("scrapy"), _told, lacks=_without("scrapy", find_spec)),
    Peer("lasting", _script("lasting"), _told),
)
PEERS: Mapping[str, Peer] = {peer.name: peer for peer in _ALL}


def present(names: Sequence[str]) -> list[str]:
    """Return those that can run here, and print a line about each that cannot."""
    for name in names:
        if reason := PEERS[name].lacks():
            print(f"{name} is left out: {reason}")
    return [name for name in names if not PEERS[name].lacks()]
