"""The links that were rejected, by reason and by the shape of their URLs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from heapq import nlargest, nsmallest

from trio_crawler.page.url_set import UrlSet
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

MOST_URLS = 1_000_000
"""The most rejected URLs that are each counted once. A URL takes 14 bytes."""

_NEW_HOSTS = "https://*"
_LISTED = 10
_LISTED_URLS = 1_000
_FEW = 20
# URLs that are kept in all groups together, before each group keeps half as many.
_KEPT_URLS = 100_000


class _Group:
    """The rejected URLs of one reason and shape: their count, and if they are listed, the first.

    `urls` has the smallest of the pages that link to each.
    """

    __slots__ = ("count", "urls")

    def __init__(self) -> None:
        self.count = 0
        self.urls: dict[str, str] = {}


class Rejections:
    """The rejected links of a crawl, by reason and by the shape of their URLs.

    Without `why` only those are counted that a rule against endless sites rejected, also after
    they were admitted. With it all are, and the first of each group are kept, of a group 1,000 and
    in all some 100,000, or with `full` every one. At most 10,000 groups are counted apart: when
    there are more, the smallest are counted together, by reason.

    A URL counts once for each reason; beyond 1,000,000 of them it counts once for each page that
    links to it, and `exact` is False.
    """

    def __init__(self, why: bool = False, full: bool = False) -> None:
        self._why = why
        self._full = full
        self._groups: dict[tuple[Reason, str], _Group] = {}
        self._seen = UrlSet()
        self._kept = 0
        self._most = _LISTED_URLS
        self.exact = True

    def __repr__(self) -> str:
        return f"<Rejections: {len(self._groups)} groups>"

    def add(self, referrer: str, url: str, reason: Reason) -> None:
        """Record a rejected link of a page; the `referrer` "" stands for no page."""
        if not self._why and reason not in OPTIONS:
            return
        key = f"{reason}\n{url}"
        known = key in self._seen
        if known and not self._why:
            return
        group = self._group(reason, _NEW_HOSTS if reason is Reason.TOO_MANY_HOSTS else url)
        if not known:
            group.count += 1
            if len(self._seen) < MOST_URLS:
                self._seen.add(key)
            else:
                self.exact = False
        if self._why:
            self._keep(group, url, referrer)

    def _group(self, reason: Reason, url: str) -> _Group:
        shape = url if url == _NEW_HOSTS else shape_of(url)
        found = self._groups.get((reason, shape))
        if found is None:
            if len(self._groups) >= MOST_GROUPS and shape != OTHERS:
                self._merge_the_smallest()
            found = self._groups[reason, shape] = _Group()
        return found

    def _keep(self, group: _Group, url: str, referrer: str) -> None:
        known = group.urls.get(url)
        if known is not None:
            group.urls[url] = min(referrer, known)
            return
        group.urls[url] = referrer
        self._kept += 1
        if self._full:
            return
        if len(group.urls) > 2 * self._most:
            self._cut(group)
        while self._kept > _KEPT_URLS and self._most > 1:
            self._most //= 2
            for each in self._groups.values():
                self._cut(each)

    def _cut(self, group: _Group) -> None:
        """Keep the smallest URLs: each that is among them at the end has always been."""
        if len(group.urls) > self._most:
            first = nsmallest(self._most, group.urls)
            self._kept -= len(group.urls) - len(first)
            group.urls = {url: group.urls[url] for url in first}

    def _merge_the_smallest(self) -> None:
        groups = self._groups
        apart = [key for key in groups if key[1] != OTHERS]
        for key in sorted(apart, key=lambda each: groups[each].count)[: MOST_GROUPS // 2]:
            small = groups.pop(key)
            other = groups.setdefault((key[0], OTHERS), _Group())
            other.count += small.count
            other.urls |= small.urls

    def by_rule(self, full: bool) -> list[str]:
        """Return a section of the links that a rule against endless sites rejected, by shape."""
        found = [
            (-group.count, reason, shape)
            for (reason, shape), group in self._groups.items()
            if reason in OPTIONS
        ]
        if not found:
            return []
        total, noun = -sum(number for number, _, _ in found), "URL" if self.exact else "link"
        lines = [f"Rejected as endless ({count(total, noun)})"]
        for number, reason, shape in sorted(found)[: None if full else _LISTED]:
            about = f" like {readable(shape)}" if shape else " of other shapes"
            lines.append(f"  {reason}: {count(-number, noun)}{about}; {OPTIONS[reason]}")
        if not full and len(found) > _LISTED:
            lines.append(f"  and {count(len(found) - _LISTED)} more shapes, use -v to list all")
        return lines

    def listed(self) -> list[str]:
        """Return a section of the rejected links by reason and shape, each with a page.

        Of each reason 1,000 are listed, and with `full` all. Links that are not URLs are left out:
        they are among the broken links.
        """
        reasons: defaultdict[Reason, dict[str, _Group]] = defaultdict(dict)
        for (reason, shape), group in self._groups.items():
            if reason is not Reason.BAD_URL:
                reasons[reason][shape] = group
        if not reasons:
            return []
        totals = {
            reason: sum(group.count for group in groups.values())
            for reason, groups in reasons.items()
        }
        lines = [f"Rejected ({count(sum(totals.values()))})"]
        for reason in sorted(reasons):
            lines.append(f"  {reason} ({count(totals[reason])})")
            if totals[reason] <= _FEW:
                urls = {
                    url: page
                    for each in reasons[reason].values()
                    for url, page in each.urls.items()
                }
                lines += (f"    {_from(url, urls[url])}" for url in sorted(urls))
            else:
                lines += self._by_shape(reasons[reason])
        return lines

    def _by_shape(self, groups: Mapping[str, _Group]) -> Iterator[str]:
        most = len(groups) if self._full else _LISTED_URLS
        shapes = nlargest(most, groups, key=lambda shape: (groups[shape].count, shape))
        each = max(1, min(self._most, _LISTED_URLS // len(shapes)))
        for shape in shapes:
            group = groups[shape]
            yield f"    {readable(shape) or 'other shapes'} ({count(group.count)})"
            urls = sorted(group.urls)
            listed = urls if self._full else urls[:each]
            yield from (f"      {_from(url, group.urls[url])}" for url in listed)
            if group.count > len(listed):
                yield f"      and {count(group.count - len(listed))} more, use -v to list all"
        if len(groups) > len(shapes):
            yield f"    and {count(len(groups) - len(shapes))} more shapes, use -v to list all"


def _from(url: str, page: str) -> str:
    return f"{readable(url)} from {readable(page)}" if page else readable(url)
