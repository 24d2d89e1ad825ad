"""The links that were rejected, by reason and by the shape of their URLs."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping
from heapq import nlargest

from trio_crawler.ledger.ledger import Ledger, numbers_of
from trio_crawler.ledger.rows import NO_URL, REDIRECT, SKIPPED
from trio_crawler.reason import REASONS, Reason
from trio_crawler.report.exclusion import OTHERS, shape_of
from trio_crawler.report.readable import readable
from trio_crawler.report.visible import count

OPTIONS: Mapping[Reason, str] = {
    reason: about.option for reason, about in REASONS.items() if about.option
}
"""The rules against endless sites, each with the option that changes it."""

MOST_GROUPS = 10_000
"""The most groups that are counted apart."""

_NEW_HOSTS = "https://*"
_LISTED = 10
_LISTED_URLS = 1_000
_FEW = 20


class _Groups:
    """The rejected URLs of each reason, by shape: the numbers of the URLs.

    At most 10,000 groups are counted apart: when there are more, the smallest are counted
    together, by reason.
    """

    def __init__(self, ledger: Ledger, reasons: Collection[Reason]) -> None:
        self.by_reason: defaultdict[Reason, dict[str, list[str]]] = defaultdict(dict)
        # By the reason and the number of a URL the smallest of the pages that link to it.
        self.pages: dict[tuple[Reason, str], str] = {}
        self._size = 0
        found = _found(ledger, reasons)
        urls = ledger.urls.urls
        for reason, pages in found.items():
            for number in sorted(pages):
                url = urls[number]
                self._add(reason, url)
                self.pages[reason, url] = pages[number]

    def _add(self, reason: Reason, url: str) -> None:
        shape = _NEW_HOSTS if reason is Reason.TOO_MANY_HOSTS else shape_of(url)
        groups = self.by_reason[reason]
        if shape not in groups:
            if self._size >= MOST_GROUPS and shape != OTHERS:
                self._merge_the_smallest()
            groups[shape] = []
            self._size += 1
        groups[shape].append(url)

    def _merge_the_smallest(self) -> None:
        sizes = {
            (reason, shape): len(urls)
            for reason, groups in self.by_reason.items()
            for shape, urls in groups.items()
            if shape != OTHERS
        }
        for reason, shape in sorted(sizes, key=sizes.__getitem__)[: MOST_GROUPS // 2]:
            groups = self.by_reason[reason]
            groups.setdefault(OTHERS, []).extend(groups.pop(shape))
        self._size = sum(map(len, self.by_reason.values()))


def _found(ledger: Ledger, reasons: Collection[Reason]) -> dict[Reason, dict[int, str]]:
    """Return by reason and number the rejected URLs, each with the smallest page that has it."""
    urls = ledger.urls.urls
    found: defaultdict[Reason, dict[int, str]] = defaultdict(dict)

    def add(reason: Reason, numbers: Collection[int], page: str) -> None:
        known = found[reason]
        for number in numbers:
            known[number] = min(page, known.get(number, page))

    for each in ledger.outlinks():
        for name, packed in each.rejected.items():
            if (reason := Reason(name)) in reasons:
                add(reason, numbers_of(packed), urls[each.page])
    for url, row in ledger.ends(REDIRECT):
        if (rejected := row.rejected) and rejected in reasons:
            add(rejected, (row.target,), url)
    for _, row in ledger.ends(SKIPPED):
        # The rule ended only after the URL was let through.
        if (left := row.reason) and left in OPTIONS and left in reasons:
            add(left, (row.number,), "" if row.referrer == NO_URL else urls[row.referrer])
    return found


def endless_section(ledger: Ledger, full: bool) -> list[str]:
    """Return a section of the links that a rule against endless sites rejected, by shape."""
    groups = _counted(ledger)
    found = [(-number, reason, shape) for (reason, shape), number in groups.items()]
    if not found:
        return []
    total, more = groups.total(), "" if ledger.exact else " or more"
    lines = [f"Rejected as endless ({count(total, 'URL')}{more})"]
    for number, reason, shape in sorted(found)[: None if full else _LISTED]:
        about = f" like {readable(shape)}" if shape else " of other shapes"
        lines.append(f"  {reason}: {count(-number, 'URL')}{about}; {OPTIONS[reason]}")
    if not full and len(found) > _LISTED:
        lines.append(f"  and {count(len(found) - _LISTED)} more shapes, use -v to list all")
    return lines


def _counted(ledger: Ledger) -> Counter[tuple[Reason, str]]:
    """Count the URLs that a rule against endless sites rejected, by rule and shape."""
    marks: defaultdict[Reason, bytearray] = defaultdict(lambda: bytearray(len(ledger.urls)))
    if any(ledger.rejected[reason] for reason in OPTIONS):
        for each in ledger.outlinks():
            for name, packed in each.rejected.items():
                if (reason := Reason(name)) in OPTIONS:
                    for number in numbers_of(packed):
                        marks[reason][number] = 1
        for _, row in ledger.ends(REDIRECT):
            if (rejected := row.rejected) and rejected in OPTIONS:
                marks[rejected][row.target] = 1
    for _, row in ledger.ends(SKIPPED):
        # The rule ended only after the URL was let through.
        if (left := row.reason) and left in OPTIONS:
            marks[left][row.number] = 1
    groups = Counter[tuple[Reason, str]]()
    for number, url in enumerate(ledger.urls.urls) if marks else ():
        for reason, marked in marks.items():
            if marked[number]:
                new_host = reason is Reason.TOO_MANY_HOSTS
                groups[reason, _NEW_HOSTS if new_host else shape_of(url)] += 1
                if len(groups) > MOST_GROUPS:
                    _merge(groups)
    return groups


def _merge(groups: Counter[tuple[Reason, str]]) -> None:
    """Count the smaller half of the groups together, by reason."""
    apart = [key for key in groups if key[1] != OTHERS]
    for key in sorted(apart, key=groups.__getitem__)[: MOST_GROUPS // 2]:
        groups[key[0], OTHERS] += groups.pop(key)


def rejected_section(ledger: Ledger, full: bool) -> list[str]:
    """Return a section of the rejected links by reason and shape, each with a page.

    Of each reason 1,000 are listed, and with `full` all. Links that are not URLs are left out:
    they are among the broken links.
    """
    groups = _Groups(ledger, [reason for reason in Reason if reason is not Reason.BAD_URL])
    totals = {
        reason: sum(map(len, shapes.values())) for reason, shapes in groups.by_reason.items()
    }
    if not totals:
        return []
    lines = [f"Rejected ({count(sum(totals.values()))})"]
    for reason in sorted(totals):
        lines.append(f"  {reason} ({count(totals[reason])})")
        shapes = groups.by_reason[reason]
        pages = {url: groups.pages[reason, url] for urls in shapes.values() for url in urls}
        if totals[reason] <= _FEW:
            lines += (f"    {_from(url, pages[url])}" for url in sorted(pages))
        else:
            lines += _by_shape(shapes, pages, full)
    return lines


def _by_shape(
    groups: Mapping[str, list[str]], pages: Mapping[str, str], full: bool
) -> Iterator[str]:
    most = len(groups) if full else _LISTED_URLS
    shapes = nlargest(most, groups, key=lambda shape: (len(groups[shape]), shape))
    each = max(1, _LISTED_URLS // len(shapes))
    for shape in shapes:
        urls = sorted(groups[shape])
        yield f"    {readable(shape) or 'other shapes'} ({count(len(urls))})"
        listed = urls if full else urls[:each]
        yield from (f"      {_from(url, pages[url])}" for url in listed)
        if len(urls) > len(listed):
            yield f"      and {count(len(urls) - len(listed))} more, use -v to list all"
    if len(groups) > len(shapes):
        yield f"    and {count(len(groups) - len(shapes))} more shapes, use -v to list all"


def _from(url: str, page: str) -> str:
    return f"{readable(url)} from {readable(page)}" if page else readable(url)
