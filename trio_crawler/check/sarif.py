"""Findings as SARIF 2.1.0 (OASIS), which code scanning of GitHub and editors show."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from heapq import nsmallest
from typing import Any
from urllib.parse import quote

from trio_crawler.arguments import check_function, check_iterable, check_kind
from trio_crawler.check.facts import CheckFacts
from trio_crawler.check.finding import Finding, name_of, place, shortened
from trio_crawler.policy.verdict import Verdict
from trio_crawler.report.codes import sentence
from trio_crawler.report.visible import ascii_json

MOST_RESULTS = 25_000
"""The most results of a run; GitHub refuses a file with more, and shows the first 5,000."""

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
"""The address of the schema."""

_HOME = "https://pypi.org/project/trio-crawler/"
_ROOT = "%SRCROOT%"
_LEVELS = {Verdict.FAULT: "error", Verdict.NOTE: "note"}
# A whole number of 32 bits.
_MAX_PLACE = 2**31 - 2


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
    what is left out.

    >>> page, url = "https://e.org/", "https://e.org/x"
    >>> finding = Finding(verdict=Verdict.FAULT, url=url, code="404", page=page)
    >>> facts = CheckFacts(datetime(2026, 11, 28, tzinfo=UTC))
    >>> log = json.loads(b"".join(to_sarif([finding], facts, path_of=lambda page: "index.html")))
    >>> log["runs"][0]["results"][0]["ruleId"]
    '404'
    """
    check_iterable("findings", findings, "findings")
    check_kind("facts", facts, CheckFacts, "a CheckFacts")
    check_function("path_of", path_of, "a function of a URL")
    return _sarif(findings, facts, path_of)


to_sarif.__module__ = "trio_crawler.check"


def _sarif(
    findings: Iterable[Finding], facts: CheckFacts, path_of: Callable[[str], str | None]
) -> Iterator[bytes]:
    found, total = _first(findings)
    codes = sorted({finding.code for finding in found})
    index = {code: number for number, code in enumerate(codes)}
    # The keys of a file are in order, so that two can be compared.
    yield f'{{"$schema":"{SCHEMA}","version":"2.1.0","runs":[\n{{"tool":'.encode()
    yield ascii_json({"driver": _driver(codes, facts.version)})
    yield b',"columnKind":"unicodeCodePoints","properties":'
    yield ascii_json({"date": facts.when, "omitted": total - len(found)})
    yield b',\n"results":['
    seen: Counter[str] = Counter()
    for number, finding in enumerate(found):
        seen[finding.fingerprint] += 1
        result = _result(finding, index[finding.code], seen[finding.fingerprint], path_of)
        yield (b",\n" if number else b"\n") + ascii_json(result)
    yield b"\n]}\n]}\n"


def _first(findings: Iterable[Finding]) -> tuple[list[Finding], int]:
    """Return the first findings in order, faults before notes, and the number of all."""
    total = 0

    def counted() -> Iterator[Finding]:
        nonlocal total
        for finding in findings:
            total += 1
            yield finding

    return nsmallest(MOST_RESULTS, counted(), key=_rank), total


def _rank(finding: Finding) -> tuple[Any, ...]:
    return finding.verdict is Verdict.NOTE, *place(finding)


def _driver(codes: Iterable[str], version: str) -> dict[str, Any]:
    return {
        "name": "trio-crawler",
        "informationUri": _HOME,
        "version": version,
        "rules": [_rule(code) for code in codes],
    }


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


def _result(
    finding: Finding, rule: int, number: int, path_of: Callable[[str], str | None]
) -> dict[str, Any]:
    shown = f"{shortened(name_of(finding.target, path_of))}: {finding.told(path_of)}."
    return {
        "ruleId": finding.code,
        "ruleIndex": rule,
        "level": _LEVELS[finding.verdict],
        "message": {"text": _message(shown)},
        "locations": [{"physicalLocation": _location(finding, path_of)}],
        "partialFingerprints": {"primaryLocationLineHash": f"{finding.fingerprint}:{number}"},
    }


def _location(finding: Finding, path_of: Callable[[str], str | None]) -> dict[str, Any]:
    page = finding.url if finding.page is None else finding.page
    path = path_of(page)
    artifact = {"uri": _reference(page)} if path is None else {"uri": _file(path)}
    if path is not None:
        artifact["uriBaseId"] = _ROOT
    line = min(max(finding.line, 1), _MAX_PLACE)
    column = min(max(finding.column, 1), _MAX_PLACE)
    region = {"startLine": line, "startColumn": column, "endLine": line, "endColumn": column + 1}
    return {"artifactLocation": artifact, "region": region}


def _file(path: str) -> str:
    # A colon in the first part would be that of a scheme: it is escaped as well.
    return quote(path.encode(errors="replace"))


def _reference(url: str) -> str:
    """Return a text as a URI (RFC 3986); `normalise` leaves characters in a URL that has none."""
    return quote(url, safe="/:?#@!$&'()*+,;=%~", errors="replace")


def _message(text: str) -> str:
    """Return a text as a message without placeholders (3.11.5) and embedded links (3.11.6)."""
    return text.replace("{", "{{").replace("}", "}}").replace("](", "\\](")
