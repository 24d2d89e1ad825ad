"""A check as one file for programs: a JSON document, JUnit XML for servers of CI, SARIF 2.1.0."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple
from urllib.parse import quote
from xml.sax.saxutils import escape, quoteattr  # they write XML; nothing is parsed here

from trio_crawler.check.facts import CheckFacts, NotChecked, writer
from trio_crawler.check.finding import (
    Finding,
    PathOf,
    data_name_of,
    in_order,
    name_of,
    place,
    shortened,
)
from trio_crawler.check.text import not_checked, unasked
from trio_crawler.page.urls import NOWHERE, authority, is_web
from trio_crawler.policy.verdict import Verdict
from trio_crawler.report.codes import sentence
from trio_crawler.report.visible import ascii_json, count, visible

VERSION = 1
"""The version of the document's format."""

MOST_HOSTS = 1_000
"""The most hosts that are counted apart; those with the most findings are."""


@writer
def to_json(
    findings: Iterable[Finding],
    facts: CheckFacts,
    *,
    path_of: Callable[[str], str | None] = lambda url: None,
) -> Iterator[bytes]:
    """Yield a check as one JSON document in ASCII, each finding in a line of its own.

    `path_of` returns the path of a page's file, or None. The keys, in this order; all are always
    present, and all but the first, `counts` and `findings` come from `facts`:

    - `trio_crawler_check`: 1, the version of this format. A later version may add keys; it has
      another number if a key is left out or has another meaning;
    - `date` (RFC 3339, UTC), `version` (of the program), `command` (without secrets), `ended` (why
      the check ended early, or "");
    - `checked`: the number of distinct links checked, by kind;
    - `not_checked`: an array of objects with `kind`, `reason`, `number` and `says` (for people);
    - `listed`: the links of these that are shown, objects with `kind`, `reason`, `url`, `page`,
      `path`, `line`, `column`, `text` and `as_written` as below; null if none are wanted;
    - `recalled`: the number of URLs not asked for, since an earlier check found them fine;
    - `counts`: the number of findings, as objects by `verdict`, `code`, `kind`, and by `host` of
      the target, of at most 1,000 hosts;
    - `mended`: the entries of the baseline that were not found again, objects with `page`,
      `target` and `code`; null without a baseline;
    - `findings`: objects with `verdict` ("fault" or "note"), `code`, `says` (for people), `url`,
      `fragment`, `kind`, `external`, `page` (null for a seed), `path` (of the page's file, or
      null), `line` and `column` (0 if unknown), `text`, `as_written`, `detail`, `chain` (objects
      with `status` and `url`) and `fingerprint`. They are sorted by page, line and column.

    A finding says the same in two runs with the same `fingerprint`, whatever its line. All
    findings are in memory at once.

    >>> facts = CheckFacts(datetime(2026, 11, 28, tzinfo=UTC), checked={"a": 12})
    >>> document = json.loads(b"".join(to_json([], facts)))
    >>> document["date"], document["checked"], document["findings"]
    ('2026-11-28T00:00:00Z', {'a': 12}, [])
    """
    found = in_order(findings)
    listed = None if facts.listed is None else [_listed(each, path_of) for each in facts.listed]
    head = {
        "trio_crawler_check": VERSION,
        "date": facts.when,
        "version": facts.version,
        "command": facts.command,
        "ended": facts.ended,
        "checked": dict(sorted(facts.checked.items())),
        "not_checked": [
            {
                "kind": kind,
                "reason": reason,
                "number": number,
                "says": f"{name}, {why}{f' ({option})' if option else ''}",
            }
            for (kind, reason), number in sorted(facts.not_checked.items())
            for name, why, option in [unasked(kind, reason, facts.ended)]
        ],
        "listed": listed,
        "recalled": facts.recalled,
        "unlinked": facts.unlinked and [data_name_of(url, path_of) for url in facts.unlinked],
        "unread": sum(facts.unread.values()),
        "counts": _counts(found),
        "mended": (
            None if facts.mended is None else [known._asdict() for known in sorted(facts.mended)]
        ),
    }
    for number, (key, value) in enumerate(head.items()):
        yield f"{',' if number else '{'}{_encoded(key)}:{_encoded(value)}\n".encode()
    yield b',"findings":['
    for number, finding in enumerate(found):
        yield f"{',' if number else ''}\n{_encoded(_finding(finding, path_of))}".encode()
    yield b"\n]}\n"


def _listed(each: NotChecked, path_of: Callable[[str], str | None]) -> dict[str, Any]:
    link = each.link
    return {
        "kind": each.kind,
        "reason": each.reason,
        "url": data_name_of(link.url, path_of),
        "page": data_name_of(each.page, path_of),
        "path": path_of(each.page),
        "line": link.line,
        "column": link.column,
        "text": link.text,
        "as_written": link.as_written,
    }


def _counts(found: Sequence[Finding]) -> dict[str, dict[str, int]]:
    hosts = Counter(filter(None, (_host(each.url) for each in found)))
    first = sorted(hosts.items(), key=lambda item: (-item[1], item[0]))[:MOST_HOSTS]
    return {
        "verdict": {
            str(verdict): sum(each.verdict is verdict for each in found) for verdict in _LEVELS
        },
        "code": dict(sorted(Counter(each.code for each in found).items())),
        "kind": dict(sorted(Counter(each.kind for each in found).items())),
        "host": dict(sorted(first)),
    }


def _host(url: str) -> str:
    if url.startswith(NOWHERE):
        return ""
    return authority(url) if is_web(url) and url.find("/", len("https://")) > 0 else ""


def _finding(finding: Finding, path_of: Callable[[str], str | None]) -> dict[str, Any]:
    return {
        "verdict": finding.verdict,
        "code": finding.code,
        "says": finding.told(path_of),
        "url": data_name_of(finding.url, path_of),
        "fragment": finding.fragment,
        "kind": finding.kind,
        "external": finding.external,
        "page": finding.page and data_name_of(finding.page, path_of),
        "path": None if finding.page is None else path_of(finding.page),
        "line": finding.line,
        "column": finding.column,
        "text": finding.text,
        "as_written": finding.as_written,
        "detail": finding.detail,
        "chain": [
            {"status": hop.status, "url": data_name_of(hop.url, path_of)} for hop in finding.chain
        ],
        "fingerprint": finding.fingerprint,
    }


def _encoded(value: object) -> str:
    # In ASCII, so that no character can mislead the reader of a terminal.
    return ascii_json(value).decode()


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


@writer
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
        shown = path_of(case.target)
        target = case.target if shown is None else _text(shown[:_LONGEST_NAME])
        what = f"classname={name} name={quoteattr(target)}{file} time='0'"
        yield f"<testcase {what}>\n".encode()
        yield from _result(case, path_of)
        yield b"</testcase>\n"
    yield b"</testsuite>\n"


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


MOST_RESULTS = 25_000
"""The most results of a run; GitHub refuses a file with more, and shows the first 5,000."""

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
"""The address of the schema."""

_HOME = "https://pypi.org/project/trio-crawler/"
_ROOT = "%SRCROOT%"
_LEVELS = {Verdict.FAULT: "error", Verdict.NOTE: "note"}
# A whole number of 32 bits.
_MAX_PLACE = 2**31 - 2


@writer
def to_sarif(
    findings: Iterable[Finding],
    facts: CheckFacts,
    *,
    path_of: Callable[[str], str | None] = lambda url: None,
) -> Iterator[bytes]:
    """Yield `findings` as SARIF 2.1.0 in ASCII: a rule for each code, and a line for each result.

    A fault is an error, a note is a note; date and version are those of `facts`. `path_of` returns
    the path of a page's file, with slashes and relative to the root of the repository. GitHub
    shows only results in such files; for None the place is the URL of the page, for a seed its
    own. A finding without a line is told at the first.

    `primaryLocationLineHash` is the fingerprint of the finding and its number among equal ones, so
    that an alert stays the same when lines move. At most 25,000 results are written: the limit of
    GitHub for a run, beside 10 MB in gzip. Faults go before notes, and `properties.omitted` counts
    what is left out. All findings are in memory at once.

    >>> page, url = "https://e.org/", "https://e.org/x"
    >>> finding = Finding(verdict=Verdict.FAULT, url=url, code="404", page=page)
    >>> facts = CheckFacts(datetime(2026, 11, 28, tzinfo=UTC))
    >>> log = json.loads(b"".join(to_sarif([finding], facts, path_of=lambda page: "index.html")))
    >>> log["runs"][0]["results"][0]["ruleId"]
    '404'
    """
    every = sorted(findings, key=lambda each: (each.verdict is Verdict.NOTE, *place(each)))
    found = every[:MOST_RESULTS]
    codes = sorted({finding.code for finding in found})
    index = {code: number for number, code in enumerate(codes)}
    # The keys of a file are in order, so that two can be compared.
    yield f'{{"$schema":"{SCHEMA}","version":"2.1.0","runs":[\n{{"tool":'.encode()
    rules = [_rule(code) for code in codes]
    about = {"name": "trio-crawler", "informationUri": _HOME, "version": facts.version}
    yield ascii_json({"driver": {**about, "rules": rules}})
    yield b',"columnKind":"unicodeCodePoints","properties":'
    yield ascii_json({"date": facts.when, "omitted": len(every) - len(found)})
    yield b',\n"results":['
    seen: Counter[str] = Counter()
    for number, finding in enumerate(found):
        seen[finding.fingerprint] += 1
        result = _found(finding, index[finding.code], seen[finding.fingerprint], path_of)
        yield (b",\n" if number else b"\n") + ascii_json(result)
    yield b"\n]}\n]}\n"


def _rule(code: str) -> dict[str, Any]:
    text = {"text": f"{sentence(code)}."}
    return {
        "id": code,
        "name": f"link-{code.replace('_', '-')}",
        "shortDescription": text,
        "fullDescription": text,
        "help": text,
        "properties": {"tags": ["links"], "precision": "high", "problem.severity": "warning"},
    }


def _found(
    finding: Finding, rule: int, number: int, path_of: Callable[[str], str | None]
) -> dict[str, Any]:
    shown = f"{shortened(name_of(finding.target, path_of))}: {finding.told(path_of)}."
    # Without placeholders (3.11.5) and embedded links (3.11.6).
    shown = shown.replace("{", "{{").replace("}", "}}").replace("](", "\\](")
    return {
        "ruleId": finding.code,
        "ruleIndex": rule,
        "level": _LEVELS[finding.verdict],
        "message": {"text": shown},
        "locations": [{"physicalLocation": _location(finding, path_of)}],
        "partialFingerprints": {"primaryLocationLineHash": f"{finding.fingerprint}:{number}"},
    }


def _location(finding: Finding, path_of: Callable[[str], str | None]) -> dict[str, Any]:
    page = finding.url if finding.page is None else finding.page
    path = path_of(page)
    if path is None:
        # A URI (RFC 3986); `normalise` leaves characters in a URL that has none.
        uri = quote(page, safe="/:?#@!$&'()*+,;=%~", errors="replace")
        artifact = {"uri": uri}
    else:
        # A colon in the first part would be that of a scheme: it is escaped as well.
        artifact = {"uri": quote(path.encode(errors="replace")), "uriBaseId": _ROOT}
    line = min(max(finding.line, 1), _MAX_PLACE)
    column = min(max(finding.column, 1), _MAX_PLACE)
    region = {"startLine": line, "startColumn": column, "endLine": line, "endColumn": column + 1}
    return {"artifactLocation": artifact, "region": region}
