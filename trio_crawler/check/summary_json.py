"""A check as one JSON document, for programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from trio_crawler.arguments import check_function, check_iterable, check_kind
from trio_crawler.check.facts import CheckFacts, NotChecked
from trio_crawler.check.finding import Finding, data_name_of, in_order
from trio_crawler.check.text import unasked
from trio_crawler.page.urls import NOWHERE, authority, is_web
from trio_crawler.policy.verdict import Verdict
from trio_crawler.report.visible import ascii_json

VERSION = 1
"""The version of the document's format."""

MOST_HOSTS = 1_000
"""The most hosts that are counted apart; those with the most findings are."""


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
    check_iterable("findings", findings, "findings")
    check_kind("facts", facts, CheckFacts, "a CheckFacts")
    check_function("path_of", path_of, "a function of a URL")
    return _json(findings, facts, path_of)


to_json.__module__ = "trio_crawler.check"


def _json(
    findings: Iterable[Finding], facts: CheckFacts, path_of: Callable[[str], str | None]
) -> Iterator[bytes]:
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
                "says": _unasked(kind, reason, facts.ended),
            }
            for (kind, reason), number in sorted(facts.not_checked.items())
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


def _unasked(kind: str, reason: str, ended: str) -> str:
    name, why, option = unasked(kind, reason, ended)
    return f"{name}, {why}{f' ({option})' if option else ''}"


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


def _counts(found: Iterable[Finding]) -> dict[str, dict[str, int]]:
    counts: dict[str, Counter[str]] = {key: Counter() for key in ("verdict", "code", "kind")}
    hosts: Counter[str] = Counter()
    for finding in found:
        for key, counter in counts.items():
            counter[getattr(finding, key)] += 1
        if name := _host(finding.url):
            hosts[name] += 1
    first = sorted(hosts.items(), key=lambda item: (-item[1], item[0]))[:MOST_HOSTS]
    told = {key: dict(sorted(counter.items())) for key, counter in counts.items()}
    by_verdict = {str(verdict): counts["verdict"][verdict] for verdict in _LISTED}
    return told | {"verdict": by_verdict, "host": dict(sorted(first))}


_LISTED = (Verdict.FAULT, Verdict.NOTE)


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
