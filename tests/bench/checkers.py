"""Four link checkers: their commands, and what each tells, in one form.

A checker tells faults, and notes: all else that it lists, such as redirects.
"""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import ada_url

LOST = "no such fragment"
ROOT = Path(__file__).resolve().parents[2]
CONFIGURATION = """
[checking]
sslverify={authority}
maxrequestspersecond=10000
maxfilesizeparse=100000000
maxfilesizedownload=100000000
"""


class Row(NamedTuple):
    """One finding: the page, None if it is not told, the target, and the reason as it is told."""

    page: str | None
    target: str
    reason: str


@dataclass(frozen=True)
class Told:
    """What a checker told, the seconds of CPU of its processes, and those that passed."""

    faults: frozenset[Row]
    notes: frozenset[Row]
    cpu: float
    wall: float

    def targets(self, *, notes: bool = False) -> set[str]:
        """Return the targets of the faults, or of these and the notes."""
        return {row.target for row in (self.faults | self.notes if notes else self.faults)}


class Place(NamedTuple):
    """A site: the URL of its first page, all its pages and style sheets, and the authority."""

    url: str
    pages: Sequence[str]
    authority: Path
    external: bool = True
    small: bool = False


def installed() -> list[str]:
    """Return the names of the checkers that this machine has; ours is the first."""
    return ["ours", *(name for name in COMMANDS if name != "ours" and shutil.which(name))]


def told(name: str, place: Place, patience: float, kept: Path | None) -> Told | None:
    """Run a checker on a site; None if it takes longer than this many seconds.

    What it printed is stored in a file, if one is named.
    """
    with TemporaryDirectory() as home:
        # linkchecker reads it after it has given up the rights of root.
        Path(home).chmod(0o755)
        command = COMMANDS[name](place, Path(home))
        authority = str(place.authority)
        variables = ("SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE")
        environment = {**os.environ, **dict.fromkeys(variables, authority), "HOME": home}
        environment["PYTHONPATH"] = str(ROOT) if name == "ours" else ""
        began, output = time.perf_counter(), Path(home, "output")
        with output.open("wb") as file, Path(home, "errors").open("wb") as errors:
            child = subprocess.Popen(
                command, cwd=home, env=environment, stdout=file, stderr=errors
            )
            usage = _waited(child, began + patience)
        wall = time.perf_counter() - began
        if kept:
            shutil.copy(Path(home, "ours.json") if name == "ours" else output, kept)
        if usage is None:
            return None
        try:
            rows = list(READERS[name](output, Path(home)))
        except (OSError, ValueError):
            print(Path(home, "errors").read_text("utf-8", "replace")[-2000:], file=sys.stderr)
            raise
    faults = frozenset(row for is_fault, row in rows if is_fault)
    return Told(faults, frozenset(row for _, row in rows) - faults, usage, wall)


def _waited(child: subprocess.Popen[bytes], until: float) -> float | None:
    # Only wait4 says what one child used, with those that it waited for.
    while time.perf_counter() < until:
        pid, status, usage = os.wait4(child.pid, os.WNOHANG)
        if pid:
            child.returncode = os.waitstatus_to_exitcode(status)
            return usage.ru_utime + usage.ru_stime
        time.sleep(0.05)
    child.kill()
    child.wait()
    return None


def _ours(place: Place, home: Path) -> list[str]:
    kinds = "all" if place.external else "assets,fragments"
    return [
        *(sys.executable, "-m", "trio_crawler", "check", place.url, "--json", f"{home}/ours.json"),
        *("--check", kinds, "--check-delay", "0", "--allow-private", "127.0.0.0/8", "-q"),
    ]


def _linkinator(place: Place, home: Path) -> list[str]:
    command = ["linkinator", place.url, "--recurse", "--format", "json"]
    skip = [] if place.external else ["--skip", f"^https?://(?!{urlsplit(place.url).netloc})"]
    return [*command, "--check-css", "--check-fragments", *skip]


def _linkchecker(place: Place, home: Path) -> list[str]:
    # It reads a page once for each of its fragments: hours for a site of many.
    plugin = "[AnchorCheck]" if place.small else ""
    Path(home, "rc").write_text(CONFIGURATION.format(authority=place.authority) + plugin)
    only = ["--check-extern"] if place.external else []
    return ["linkchecker", "-f", "rc", "--no-status", *only, "-o", "csv/utf-8", place.url]


def _lychee(place: Place, home: Path) -> list[str]:
    # It does not crawl: it gets all pages. Mail addresses it can only check by the internet.
    Path(home, "pages").write_text("\n".join(place.pages))
    only = [] if place.external else ["--include", urlsplit(place.url).netloc, "--exclude", "."]
    return [
        *("lychee", "--files-from", "pages", "--format", "json", "--include-fragments"),
        *("--no-progress", "--host-request-interval", "0ms", *only),
    ]


def _read_ours(output: Path, home: Path) -> Iterator[tuple[bool, Row]]:
    for each in json.loads(Path(home, "ours.json").read_bytes())["findings"]:
        target = each["url"] + (f"#{each['fragment']}" if each["fragment"] else "")
        reason = LOST if each["code"] == "missing_fragment" else each["code"]
        yield each["verdict"] == "fault", row(each["page"], target, reason)


def _read_linkinator(output: Path, home: Path) -> Iterator[tuple[bool, Row]]:
    for each in json.loads(output.read_bytes())["links"]:
        if each["state"] == "BROKEN":
            status = str(each.get("status") or "no answer")
            yield True, row(each.get("parent"), each["url"], LOST if status == "200" else status)


def _read_linkchecker(output: Path, home: Path) -> Iterator[tuple[bool, Row]]:
    with output.open(encoding="utf-8", newline="") as file:
        lines = (line for line in file if not line.startswith("#"))
        for each in csv.DictReader(lines, delimiter=";"):
            page, warning = each["parentname"] or None, each["warningstring"]
            target = each["urlname"]
            lost = warning.startswith("Anchor ")
            reason = LOST if lost else each["result"] if each["valid"] == "False" else warning
            base = each["base"] or page
            yield each["valid"] == "False" or lost, row(page, target, reason, base)


def _read_lychee(output: Path, home: Path) -> Iterator[tuple[bool, Row]]:
    said = json.loads(output.read_bytes())
    found = [(page, each) for page, rows in said["error_map"].items() for each in rows]
    reasons = {each["url"]: _lychee_reason(each) for _, each in found if not _is_repeated(each)}
    for page, each in found:
        yield True, row(page, each["url"], reasons.get(each["url"], "repeated"))
    for page, rows in said["timeout_map"].items():
        for each in rows:
            yield True, row(page, each["url"], "timeout")


def _is_repeated(each: dict[str, Any]) -> bool:
    return "cached" in each["status"].get("text", "")


def _lychee_reason(each: dict[str, Any]) -> str:
    reason = str(each["status"].get("code") or each["status"].get("text"))
    return LOST if "fragment" in reason else reason


def row(page: str | None, url: str, reason: str, base: str | None = None) -> Row:
    """Return a finding; only that of a fragment has the fragment in its target.

    The target is as the WHATWG URL Standard writes it, or the text if that is no URL.
    """
    try:
        url = ada_url.join_url(base, url) if base else ada_url.URL(url).href
    except ValueError:
        return Row(page, url, reason[:60])
    return Row(page, url if reason == LOST else url.partition("#")[0], reason[:60])


COMMANDS = {
    "ours": _ours,
    "linkinator": _linkinator,
    "linkchecker": _linkchecker,
    "lychee": _lychee,
}
READERS = {
    "ours": _read_ours,
    "linkinator": _read_linkinator,
    "linkchecker": _read_linkchecker,
    "lychee": _read_lychee,
}


def by_target(rows: Iterable[Row]) -> Mapping[str, set[Row]]:
    """Return rows by their target."""
    found: dict[str, set[Row]] = {}
    for row in rows:
        found.setdefault(row.target, set()).add(row)
    return found
