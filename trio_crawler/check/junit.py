"""Findings as JUnit XML, which Jenkins, GitLab and other servers of CI show as tests."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from typing import NamedTuple
from xml.sax.saxutils import escape, quoteattr  # they write XML; nothing is parsed here

from trio_crawler.arguments import check_function, check_iterable, check_kind
from trio_crawler.check.facts import CheckFacts
from trio_crawler.check.finding import Finding, PathOf, in_order, shortened
from trio_crawler.check.text import not_checked
from trio_crawler.policy.verdict import Verdict
from trio_crawler.report.visible import count, visible

MOST_CASES = 25_000
"""The most test cases for links; GitLab reads at most 30 MB and 250,000 objects of a file."""

_MOST_PLACES = 20
_LONGEST_NAME = 2_000
_SEEDS = "(seeds)"
# XML 1.0, 2.2 has neither; `visible` has escaped the control characters and the surrogates.
_NO_CHARACTERS = re.compile("[\ufffe\uffff]")


class _Case(NamedTuple):
    """The findings of one target on one page, in the order of their places."""

    page: str | None
    target: str
    findings: list[Finding]

    @property
    def fails(self) -> bool:
        return any(finding.verdict is Verdict.FAULT for finding in self.findings)


def to_junit(
    findings: Iterable[Finding],
    facts: CheckFacts,
    *,
    path_of: Callable[[str], str | None] = lambda url: None,
) -> Iterator[bytes]:
    """Yield a file of JUnit XML: a suite for each page, a test case for each of its bad links.

    The first test case is the check itself, with the date and the counts of `facts`, and passes,
    so that no file is without one. A case
    with a fault fails; one with nothing but notes is skipped, and its message is the note. The
    same target at several places of a page is one case, since GitLab reads only the first of
    several cases with one name. The name of a case is the target, its class the page, both as
    `path_of` names them: neither has a line, so that a server knows the case again. `file` is the
    path of the page.

    At most 25,000 such cases are written, those that fail first; the case of the check says how
    many are left out. All findings are in memory at once.

    >>> facts = CheckFacts(datetime(2026, 11, 28, tzinfo=UTC))
    >>> print(b"".join(to_junit([], facts)).decode().splitlines()[1])
    <testsuites name='trio-crawler' tests='1' failures='0' errors='0' skipped='0'>
    """
    check_iterable("findings", findings, "findings")
    check_kind("facts", facts, CheckFacts, "a CheckFacts")
    check_function("path_of", path_of, "a function of a URL")
    return _junit(findings, facts, path_of)


to_junit.__module__ = "trio_crawler.check"


def _junit(
    findings: Iterable[Finding], facts: CheckFacts, path_of: Callable[[str], str | None]
) -> Iterator[bytes]:
    cases = _cases(findings)
    first = sorted(range(len(cases)), key=lambda at: not cases[at].fails)[:MOST_CASES]
    kept = [cases[at] for at in sorted(first)]
    yield _tag("<?xml version='1.0' encoding='UTF-8'?>\n<testsuites name='trio-crawler'", kept, 1)
    yield _tag(f"<testsuite name='check' timestamp='{facts.when[:-1]}'", [], 1)
    yield f"<testcase classname='check' name='links' time='0'>\n{_about(facts)}".encode()
    if omitted := len(cases) - len(kept):
        more = f"{count(omitted, 'test case')} more: the file has only the first {MOST_CASES:,}"
        yield f"<system-err>{more}</system-err>\n".encode()
    yield b"</testcase>\n</testsuite>\n"
    for page, suite in groupby(kept, key=lambda case: case.page):
        yield from _suite(page, list(suite), path_of)
    yield b"</testsuites>\n"


def _cases(findings: Iterable[Finding]) -> list[_Case]:
    by_target: dict[tuple[str | None, str], list[Finding]] = {}
    for finding in in_order(findings):
        # Names that differ only behind the end that is written would be one for a server.
        target = _text(finding.target[:_LONGEST_NAME])
        by_target.setdefault((finding.page, target), []).append(finding)
    keys = sorted(by_target, key=lambda key: (key[0] is not None, key[0] or "", key[1]))
    return [_Case(*key, by_target[key]) for key in keys]


def _suite(page: str | None, cases: list[_Case], path_of: PathOf) -> Iterator[bytes]:
    path = None if page is None else path_of(page)
    name = _quoted(_SEEDS if page is None else page if path is None else path)
    yield _tag(f"<testsuite name={name}", cases)
    file = "" if path is None else f" file={_quoted(path)}"
    for case in cases:
        what = f"classname={name} name={quoteattr(_named(case, path_of))}{file} time='0'"
        yield f"<testcase {what}>\n".encode()
        yield from _result(case, path_of)
        yield b"</testcase>\n"
    yield b"</testsuite>\n"


def _named(case: _Case, path_of: PathOf) -> str:
    """Return the target of a case as people see it."""
    path = path_of(case.target)
    return case.target if path is None else _text(path[:_LONGEST_NAME])


def _result(case: _Case, path_of: PathOf) -> Iterator[bytes]:
    worst = max(case.findings, key=lambda finding: finding.verdict)
    message = quoteattr(_text(worst.told(path_of)))
    if not case.fails:
        yield f"<skipped message={message}/>\n<system-out>".encode()
    else:
        yield f"<failure type={quoteattr(worst.code)} message={message}>".encode()
    lines = [_place(finding, path_of) for finding in case.findings[:_MOST_PLACES]]
    if more := len(case.findings) - _MOST_PLACES:
        lines += [f"and {count(more, 'more place')}"] if more > 0 else []
    yield "\n".join(map(escape, lines)).encode()
    yield b"</failure>\n" if case.fails else b"</system-out>\n"


def _place(finding: Finding, path_of: PathOf) -> str:
    where = f"line {finding.line}, column {finding.column}: " if finding.line else ""
    what = f" ({finding.kind})" if finding.kind else ""
    written = f" {_text(finding.as_written)!r}" if finding.as_written else ""
    return f"{where}{_text(finding.told(path_of))}{what}{written}"


def _tag(start: str, cases: list[_Case], passed: int = 0) -> bytes:
    failures = sum(case.fails for case in cases)
    numbers = f"tests='{len(cases) + passed}' failures='{failures}' errors='0'"
    return f"{start} {numbers} skipped='{len(cases) - failures}'>\n".encode()


def _about(facts: CheckFacts) -> str:
    lines = [f"{count(facts.total, 'link')} checked by trio-crawler {facts.version}"]
    lines += [facts.command, facts.ended]
    lines += [f"not checked: {line.strip()}" for line in not_checked(facts)[1:]]
    told = "\n".join(shortened(_text(line)) for line in lines if line)
    return f"<system-out>{escape(told)}</system-out>\n"


def _quoted(text: str) -> str:
    return quoteattr(_text(text[:_LONGEST_NAME]))


def _text(text: str) -> str:
    """Return a text of characters that XML can have, in one line."""
    return _NO_CHARACTERS.sub("\ufffd", visible(text))
