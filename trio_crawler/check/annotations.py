"""Findings as annotations of GitHub Actions, which shows them beside the lines of a file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from heapq import nsmallest

from trio_crawler.arguments import check_function, check_iterable
from trio_crawler.check.finding import Finding, name_of, place, shortened
from trio_crawler.policy.verdict import Verdict
from trio_crawler.report.visible import count

SHOWN = 10
"""The most annotations of each kind that GitHub shows for a step."""

_COMMANDS = {Verdict.FAULT: "error", Verdict.NOTE: "notice"}


def to_annotations(
    findings: Iterable[Finding], *, path_of: Callable[[str], str | None] = lambda url: None
) -> Iterator[bytes]:
    """Yield findings as workflow commands of GitHub Actions: `::error file=,line=,col=::message`.

    A fault is an error, a note is a notice. GitHub shows ten of each for a step. So the first ten
    of each are yielded, by page and line; if there are more, a line of the log counts them.
    `path_of` returns the path of a page's file, relative to the repository; for None the
    annotation has no place, and its message begins with the page.
    """
    check_iterable("findings", findings, "findings")
    check_function("path_of", path_of, "a function of a URL")
    return _annotations(findings, path_of)


to_annotations.__module__ = "trio_crawler.check"


def _annotations(
    findings: Iterable[Finding], path_of: Callable[[str], str | None]
) -> Iterator[bytes]:
    found: dict[Verdict, list[Finding]] = {verdict: [] for verdict in _COMMANDS}
    totals = dict.fromkeys(_COMMANDS, 0)
    for finding in findings:
        verdict = finding.verdict
        totals[verdict] += 1
        found[verdict].append(finding)
        if len(found[verdict]) > 100 * SHOWN:
            found[verdict] = nsmallest(SHOWN, found[verdict], key=place)
    for verdict in _COMMANDS:
        for finding in nsmallest(SHOWN, found[verdict], key=place):
            yield _annotation(finding, path_of)
    rest = {verdict: total - SHOWN for verdict, total in totals.items() if total > SHOWN}
    if rest:
        more = " and ".join(count(number, verdict) for verdict, number in rest.items())
        yield f"{more} more: GitHub shows {SHOWN} annotations of each kind for a step\n".encode()


def _annotation(finding: Finding, path_of: Callable[[str], str | None]) -> bytes:
    page = finding.page
    path = None if page is None else path_of(page)
    values = {
        "file": path or "",
        "line": str(finding.line) if path and finding.line else "",
        "col": str(finding.column) if path and finding.line and finding.column else "",
        "title": f"{finding.verdict} {finding.code}",
    }
    properties = ",".join(f"{key}={_property(text)}" for key, text in values.items() if text)
    message = f"{shortened(name_of(finding.target, path_of))}: {finding.told(path_of)}"
    if page is not None and path is None:
        where = f":{finding.line}:{finding.column}" if finding.line else ""
        message = f"{shortened(page)}{where}: {message}"
    return f"::{_COMMANDS[finding.verdict]} {properties}::{_data(message)}\n".encode()


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    # The path of a file may have bytes that are no UTF-8.
    plain = text.encode(errors="replace").decode()
    return _data(plain).replace(":", "%3A").replace(",", "%2C")
