"""Findings for GitHub: Markdown for the summary of a step of Actions, or a comment; annotations.

Annotations are shown beside the lines of a file.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from urllib.parse import quote

from trio_crawler.check.facts import CheckFacts, writer
from trio_crawler.check.finding import Finding, in_order, name_of, shortened
from trio_crawler.check.text import not_checked
from trio_crawler.model import Reason
from trio_crawler.page.urls import is_web
from trio_crawler.policy.verdict import Verdict
from trio_crawler.report.codes import is_status
from trio_crawler.report.visible import count

MAX_BYTES = 1024 * 1024
"""The most bytes of a summary: GitHub shows none that is larger."""

_LEAST_BYTES = 4_096
_MAX_URL = 2_000
_END = 200
_REASONS = 20
# What can begin a construct of GitHub's Markdown within a line; the last two are those of URLs
# that it makes links.
_SPECIAL = re.compile(r"[$&*<>@\[\\\]_`|~]|:(?=/)|(?<=www)\.", re.I)
# The characters that a link's target has as they are; others are percent-encoded.
_IN_TARGET = "/:?#@!$&'()*+,;=%~[]"
_COLUMNS = "| Line | Finding | Link | |\n| ---: | --- | --- | --- |\n"


@writer
def to_markdown(
    findings: Iterable[Finding],
    facts: CheckFacts,
    *,
    path_of: Callable[[str], str | None] = lambda url: None,
    max_bytes: int = MAX_BYTES,
) -> Iterator[bytes]:
    """Yield a summary in GitHub's Markdown: the counts of `facts`, and a table for each page.

    Pages with the most faults come first, then those with the most notes. At most `max_bytes` are
    yielded, 1 MiB by default, at least 4 KiB; the end says how many findings are left out. The
    heading of a page is what `path_of` returns for it, else its URL. No text of a page or a server
    has an effect as Markdown or HTML. All findings are in memory at once.

    >>> facts = CheckFacts(datetime(2026, 11, 28, tzinfo=UTC), version="1.0")
    >>> print(b"".join(to_markdown([], facts)).decode().strip())
    ## Links: 0 faults, 0 notes
    <BLANKLINE>
    - 0 links checked on 2026-11-28T00:00:00Z by trio-crawler 1.0
    """
    pages: defaultdict[str | None, list[Finding]] = defaultdict(list)
    for finding in in_order(findings):
        pages[finding.page].append(finding)
    left = max(max_bytes, _LEAST_BYTES) - _END
    for part in _head(list(pages.values()), facts):
        left -= len(part)
        yield part
    faults = {
        page: sum(each.verdict is Verdict.FAULT for each in found) for page, found in pages.items()
    }
    written = 0
    for page, found in sorted(
        pages.items(), key=lambda item: (-faults[item[0]], -len(item[1]), item[0] or "")
    ):
        table = _table(page, found, path_of)
        heading = next(table)
        for number, row in enumerate(table):
            size = len(row) + (0 if number else len(heading))
            if size > left:
                more = sum(map(len, pages.values())) - written
                yield f"\nLeft out here: {count(more, 'finding')}.\n".encode()
                return
            if not number:
                yield heading
            yield row
            left, written = left - size, written + 1


def _head(pages: list[list[Finding]], facts: CheckFacts) -> Iterator[bytes]:
    verdicts = [finding.verdict for found in pages for finding in found]
    counts = ", ".join(
        count(verdicts.count(verdict), verdict) for verdict in (Verdict.FAULT, Verdict.NOTE)
    )
    yield f"## Links: {counts}\n\n".encode()
    lines = [
        f"{count(facts.total, 'link')} checked on {facts.when} by trio-crawler {facts.version}"
    ]
    lines += [facts.ended, f"command: {facts.command}" if facts.command else ""]
    if facts.recalled:
        lines.append(f"{count(facts.recalled, 'external URL')} fine in an earlier check")
    if facts.mended:
        lines.append(f"{count(len(facts.mended), 'finding')} of the baseline mended")
    told = not_checked(facts)
    lines += [f"not checked: {line.strip()}" for line in told[1 : _REASONS + 1]]
    if more := len(told) - 1 - _REASONS:
        lines += [f"not checked: {count(more, 'kind')} more"] if more > 0 else []
    yield "".join(f"- {escaped(shortened(line))}\n" for line in lines if line).encode()


def _table(
    page: str | None, findings: list[Finding], path_of: Callable[[str], str | None]
) -> Iterator[bytes]:
    """Yield the heading of a page, and a row for each finding, those with a fault first."""
    name = "Seeds" if page is None else escaped(shortened(path_of(page) or page))
    yield f"\n### {name}\n\n{_COLUMNS}".encode()
    for finding in sorted(findings, key=lambda finding: finding.verdict is Verdict.NOTE):
        line = str(finding.line) if finding.line else ""
        text = f" “{escaped(shortened(finding.text))}”" if finding.text.strip() else ""
        what = f"{finding.verdict} {finding.code if is_status(finding.code) else ''}".rstrip()
        says = escaped(finding.told(path_of))
        yield f"| {line} | {what} | {_link(finding, path_of)}{text} | {says} |\n".encode()


def _link(finding: Finding, path_of: Callable[[str], str | None]) -> str:
    target = finding.target
    shown = escaped(shortened(name_of(target, path_of)))
    if (
        path_of(target) is not None
        or not is_web(target)
        or len(target) > _MAX_URL
        or finding.code == Reason.BAD_URL
    ):
        return shown
    quoted = quote(target, safe=_IN_TARGET, errors="replace").replace("##", "#%23")
    quoted = quoted.replace("&", "&amp;")
    return f"[{shown}](<{quoted}>)"


def escaped(text: str) -> str:
    """Return a line of text as Markdown that shows the same text."""
    return _SPECIAL.sub(r"\\\g<0>", text)


SHOWN = 10
"""The most annotations of each kind that GitHub shows for a step."""

_COMMANDS = {Verdict.FAULT: "error", Verdict.NOTE: "notice"}


@writer
def to_annotations(
    findings: Iterable[Finding], *, path_of: Callable[[str], str | None] = lambda url: None
) -> Iterator[bytes]:
    r"""Yield findings as workflow commands of GitHub Actions: `::error file=,line=,col=::message`.

    A fault is an error, a note is a notice. GitHub shows ten of each for a step. So the first ten
    of each are yielded, by page and line; if there are more, a line of the log counts them.
    `path_of` returns the path of a page's file, relative to the repository; for None the
    annotation has no place, and its message begins with the page. All findings are in memory at
    once.

    >>> page, url = "https://e.org/", "https://e.org/x"
    >>> finding = Finding(verdict=Verdict.FAULT, url=url, code="404", page=page)
    >>> print(*to_annotations([finding], path_of=lambda page: "index.html"))
    b'::error file=index.html,title=fault 404::index.html: There is no such file\n'
    """
    found = in_order(findings)
    rest: dict[Verdict, int] = {}
    for verdict in _COMMANDS:
        every = [finding for finding in found if finding.verdict is verdict]
        for finding in every[:SHOWN]:
            yield _annotation(finding, path_of)
        if every[SHOWN:]:
            rest[verdict] = len(every) - SHOWN
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
    # The path of a file may have bytes that are no UTF-8.
    plain = {key: text.encode(errors="replace").decode() for key, text in values.items() if text}
    escaped = {
        key: _data(text).replace(":", "%3A").replace(",", "%2C") for key, text in plain.items()
    }
    properties = ",".join(f"{key}={text}" for key, text in escaped.items())
    message = f"{shortened(name_of(finding.target, path_of))}: {finding.told(path_of)}"
    if page is not None and path is None:
        where = f":{finding.line}:{finding.column}" if finding.line else ""
        message = f"{shortened(page)}{where}: {message}"
    return f"::{_COMMANDS[finding.verdict]} {properties}::{_data(message)}\n".encode()


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
