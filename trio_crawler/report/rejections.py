"""The links that were rejected, by reason and by the shape of their URLs."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
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


def _rejections(ledger: Ledger) -> Iterator[tuple[Reason, Iterable[int], int]]:
    """Yield the numbers of rejected URLs, with the reason and the number of what leads there."""
    for each in ledger.outlinks():
        for reason, packed in each.rejected.items():
            yield Reason(reason), numbers_of(packed), each.page
    for _, row in ledger.ends(REDIRECT):
        if row.rejected:
            yield row.rejected, (row.target,), row.number
    for _, row in ledger.ends(SKIPPED):
        # The rule ended only after the URL was let through.
        if row.reason and row.reason in OPTIONS:
            yield row.reason, (row.number,), row.referrer


def _shape(reason: Reason, url: str) -> str:
    return _NEW_HOSTS if reason is Reason.TOO_MANY_HOSTS else shape_of(url)


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
    for reason, numbers, _ in _rejections(ledger):
        for number in numbers if reason in OPTIONS else ():
            marks[reason][number] = 1
    groups = Counter[tuple[Reason, str]]()
    for number, url in enumerate(ledger.urls.urls) if marks else ():
        for reason, marked in marks.items():
            if marked[number]:
                groups[reason, _shape(reason, url)] += 1
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
    reasons = _listed(ledger)
    totals = {reason: sum(map(len, shapes.values())) for reason, shapes in reasons.items()}
    if not totals:
        return []
    lines = [f"Rejected ({count(sum(totals.values()))})"]
    for reason in sorted(totals):
        lines.append(f"  {reason} ({count(totals[reason])})")
        shapes = reasons[reason]
        if totals[reason] <= _FEW:
            rows = sorted(row for urls in shapes.values() for row in urls.items())
            lines += (f"    {_from(url, page)}" for url, page in rows)
        else:
            lines += _by_shape(shapes, full)
    return lines


def _listed(ledger: Ledger) -> dict[Reason, dict[str, dict[str, str]]]:
    """Return the rejected URLs by reason and shape, each with the smallest page that has it."""
    urls = ledger.urls.urls
    found: defaultdict[Reason, dict[int, str]] = defaultdict(dict)
    for reason, numbers, by in _rejections(ledger):
        if reason is not Reason.BAD_URL:
            pages, page = found[reason], "" if by == NO_URL else ledger.url(by)
            for number in numbers:
                pages[number] = min(page, pages.get(number, page))
    groups: defaultdict[Reason, defaultdict[str, dict[str, str]]]
    groups = defaultdict(lambda: defaultdict(dict))
    for reason, pages in found.items():
        for number in sorted(pages):
            url = urls[number]
            groups[reason][_shape(reason, url)][url] = pages[number]
    return {reason: dict(shapes) for reason, shapes in groups.items()}


def _by_shape(groups: Mapping[str, Mapping[str, str]], full: bool) -> Iterator[str]:
    most = len(groups) if full else _LISTED_URLS
    shapes = nlargest(most, groups, key=lambda shape: (len(groups[shape]), shape))
    each = max(1, _LISTED_URLS // len(shapes))
    for shape in shapes:
        urls = sorted(groups[shape])
        yield f"    {readable(shape) or 'other shapes'} ({count(len(urls))})"
        listed = urls if full else urls[:each]
        yield from (f"      {_from(url, groups[shape][url])}" for url in listed)
        if len(urls) > len(listed):
            yield f"      and {count(len(urls) - len(listed))} more, use -v to list all"
    if len(groups) > len(shapes):
        yield f"    and {count(len(groups) - len(shapes))} more shapes, use -v to list all"


def _from(url: str, page: str) -> str:
    return f"{readable(url)} from {readable(page)}" if page else readable(url)
