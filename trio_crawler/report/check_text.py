"""The report of a link check for people: by the page that an author mends, or by target."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from operator import attrgetter

from trio_crawler.arguments import (
    check_flag,
    check_function,
    check_iterable,
    check_kind,
    check_whole,
)
from trio_crawler.model import Reason
from trio_crawler.policy.verdict import Defect, Verdict
from trio_crawler.report.check_facts import CheckFacts
from trio_crawler.report.finding import Finding, Identity, in_order
from trio_crawler.report.readable import readable
from trio_crawler.report.visible import count, visible

_MOST_GROUPS = 40
_MOST_LINES = 10
_MOST_MENDED = 20
_MAX_TEXT = 60
_OF_FILES = frozenset({Reason.BLOCKED_ADDRESS, Reason.BAD_REPLY})

_Shown = Callable[[str], str]


def check_report(
    findings: Iterable[Finding],
    facts: CheckFacts,
    *,
    by_target: bool = False,
    full: bool = False,
    known: int = 0,
    shown: _Shown = lambda url: url,
) -> str:
    """Return a link check as text, without a line end after its last line.

    The findings are listed by page, or with `by_target` by the URL that they lead to, most of
    them first. Of each the first ten are listed, and the first forty such groups, with `full` all.
    `known` counts the findings of the baseline, which are left out. `shown` returns the text to
    show for a URL. Text from the web is escaped (see `visible`).
    """
    check_iterable("findings", findings, "findings")
    check_kind("facts", facts, CheckFacts, "a CheckFacts")
    check_function("shown", shown, "a function of a URL")
    check_flag("by_target", by_target)
    check_flag("full", full)
    check_whole("known", known)
    found = in_order(findings)
    named, shown = shown, lambda url: readable(named(url))
    groups = _by_target(found) if by_target else _by_page(found)
    listed = groups if full else groups[:_MOST_GROUPS]
    parts: list[list[str]] = [_head(facts)]
    for name, members in listed:
        parts.append(_group(name, members, by_target, full, shown))
    if rest := groups[len(listed) :]:
        number = sum(len(members) for _, members in rest)
        where = count(len(rest), "target" if by_target else "page")
        parts.append([f"and {count(number, 'link')} of {where} more, use -v to list all"])
    parts += [_not_checked(facts.not_checked), _mended(facts.mended, full, shown)]
    parts.append([_totals(found, facts, known)])
    return "\n\n".join("\n".join(part) for part in parts if part)


def _head(facts: CheckFacts) -> list[str]:
    lines = [f"Link check, {facts.when}, trio_crawler {facts.version}"]
    if facts.command:
        lines.append(f"  {visible(facts.command)}")
    if facts.ended:
        lines.append(f"  It ended early: {visible(facts.ended)}")
    return lines


_Group = tuple[str | None, list[Finding]]


def _by_page(found: Sequence[Finding]) -> list[_Group]:
    """Return the findings of each page, the pages with the most faults first."""
    return _groups(found, attrgetter("page"))


def _by_target(found: Sequence[Finding]) -> list[_Group]:
    """Return the findings of each target, those with the most faults first."""
    return _groups(sorted(found, key=_bad), _bad)


def _bad(finding: Finding) -> str:
    """Return what is wrong: the place in a page that is there, else the page."""
    return finding.target if finding.code == Defect.MISSING_FRAGMENT else finding.url


def _groups(ordered: Iterable[Finding], key: Callable[[Finding], str | None]) -> list[_Group]:
    groups = [(name, list(rows)) for name, rows in groupby(ordered, key)]
    return sorted(groups, key=_rank)


def _rank(group: _Group) -> tuple[int, int, str]:
    faults = sum(each.verdict is Verdict.FAULT for each in group[1])
    return -faults, -len(group[1]), group[0] or ""


def _group(
    name: str | None, members: Sequence[Finding], by_target: bool, full: bool, shown: _Shown
) -> list[str]:
    lines = ["(given)" if name is None else shown(name)]
    if by_target:
        lines[0] += f": {_why(members[0], shown)}"
    rows = [_of_page(each, shown) if by_target else _of_target(each, shown) for each in members]
    # A menu has the same bad link twice on each page.
    counted = Counter(rows)
    listed = list(counted) if full else list(counted)[:_MOST_LINES]
    for row in listed:
        times = f" ({counted[row]} times)" if counted[row] > 1 else ""
        lines.append(f"  {row}{times}")
    if rest := len(counted) - len(listed):
        lines.append(f"  and {count(rest)} more, use -v to list all")
    return lines


def _of_target(finding: Finding, shown: _Shown) -> str:
    about = f" {_quoted(finding.text)}" if finding.text else ""
    return f"{_place(finding)}{_why(finding, shown)}: {shown(finding.target)}{about}"


def _of_page(finding: Finding, shown: _Shown) -> str:
    page = "(given)" if finding.page is None else shown(finding.page)
    about = f" {_quoted(finding.text)}" if finding.text else ""
    return f"{page}{':' if finding.line else ''}{_place(finding).strip()}{about}"


def _place(finding: Finding) -> str:
    return f"{finding.line}:{finding.column} " if finding.line else ""


def _why(finding: Finding, shown: _Shown) -> str:
    note = "note " if finding.verdict is Verdict.NOTE else ""
    onward = f" -> {shown(finding.chain[-1].url)}" if finding.chain else ""
    # The code is about servers; in a folder it was a symbolic link, a pipe or a device.
    detail = (
        f" ({visible(finding.detail)})" if finding.code in _OF_FILES and finding.detail else ""
    )
    return f"{note}{finding.code}{detail}{onward}"


def _quoted(text: str) -> str:
    return f'"{visible(text[:_MAX_TEXT])}{"…" if len(text) > _MAX_TEXT else ""}"'


_OPTIONS = {
    "no_request": "a check sends no form",
    "other_scheme": "no request is made for this scheme",
    "other_site": "--check external asks for them",
    "not_included": "--check external asks for them",
    "too_deep": "--check external or a greater --depth asks for them",
    "excluded": "--exclude leaves them out",
    "robots": "--ignore-robots asks for them all the same",
    "duplicate": "--no-traps asks for them",
    "side_effect": "--follow-side-effects asks for them",
    "": "--check assets asks for them",
}


def _not_checked(counts: Mapping[tuple[str, str], int]) -> list[str]:
    """List what was not checked, by kind and reason, with the option that would."""
    rows = [(number, kind, reason) for (kind, reason), number in counts.items() if number]
    if not rows:
        return []
    lines = [f"Not checked ({count(sum(number for number, *_ in rows), 'link')})"]
    for number, kind, reason in sorted(rows, key=lambda row: (-row[0], row[1:])):
        why = f", {reason}" if reason else ""
        option = f" ({_OPTIONS[reason]})" if reason in _OPTIONS else ""
        lines.append(f"  {count(number)} {visible(kind)}{why}{option}")
    return lines


def _mended(mended: Sequence[Identity] | None, full: bool, shown: _Shown) -> list[str]:
    """List the entries of the baseline that were not found again."""
    if not mended:
        return []
    listed = mended if full else mended[:_MOST_MENDED]
    lines = [f"Mended since the baseline ({count(len(mended))})"]
    lines += [f"  {each.code} {shown(each.target)} on {shown(each.page)}" for each in listed]
    if rest := len(mended) - len(listed):
        lines.append(f"  and {count(rest)} more, use -v to list all")
    return lines


def _totals(found: Sequence[Finding], facts: CheckFacts, known: int) -> str:
    faults = sum(each.verdict is Verdict.FAULT for each in found)
    notes = len(found) - faults
    beside = f", {count(known)} known from the baseline" if known else ""
    recalled = (
        f"{count(facts.recalled, 'external URL')} not asked again: fine in an earlier check\n"
        if facts.recalled
        else ""
    )
    return recalled + (
        f"{count(facts.total, 'link')} checked: {count(faults, 'fault')}, "
        f"{count(notes, 'note')}{beside}"
    )


check_report.__module__ = "trio_crawler.report"
