"""What a crawl left out, or could not see.

Rejected links, by reason and by the shape of their URLs; links left out because of nofollow and
robots.txt; pages behind a login.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from heapq import nlargest

import msgspec

from trio_crawler.expressions import lazy
from trio_crawler.ledger.ledger import Ledger, numbers_of
from trio_crawler.ledger.tables import DEEP, FOLDED, NO_URL, PAGE, REDIRECT, SKIPPED
from trio_crawler.page.urls import WEB, origin
from trio_crawler.reason import REASONS, Kind, Reason, of_kind
from trio_crawler.report.shapes import OTHERS, shape_of
from trio_crawler.report.visible import count, more, readable, visible

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
    lines = [
        f"Rejected as endless ({count(groups.total(), 'URL')}{'' if ledger.exact else ' or more'})"
    ]
    for number, reason, shape in sorted(found)[: None if full else _LISTED]:
        about = f" like {readable(shape)}" if shape else " of other shapes"
        lines.append(f"  {reason}: {count(-number, 'URL')}{about}; {OPTIONS[reason]}")
    return lines + more(0 if full else len(found) - _LISTED, what="more shapes")


def _counted(ledger: Ledger) -> Counter[tuple[Reason, str]]:
    """Count the URLs that a rule against endless sites rejected, by rule and shape."""
    marks: defaultdict[Reason, bytearray] = defaultdict(lambda: bytearray(len(ledger.urls)))
    some = ledger.kinds[SKIPPED] or not OPTIONS.keys().isdisjoint(ledger.rejected)
    for reason, numbers, _ in _rejections(ledger) if some else ():
        for number in numbers if reason in OPTIONS else ():
            marks[reason][number] = 1
    groups = Counter[tuple[Reason, str]]()
    for number, url in enumerate(ledger.urls.urls) if marks else ():
        for reason, marked in marks.items():
            if marked[number]:
                groups[reason, _shape(reason, url)] += 1
                if len(groups) > MOST_GROUPS:
                    # The smaller half is counted together, by reason.
                    apart = [key for key in groups if key[1] != OTHERS]
                    for key in sorted(apart, key=groups.__getitem__)[: MOST_GROUPS // 2]:
                        groups[key[0], OTHERS] += groups.pop(key)
    return groups


def rejected_section(ledger: Ledger, full: bool) -> list[str]:
    """Return a section of the rejected links by reason and shape, each with a page.

    Of each reason 1,000 are listed, and with `full` all. Links that are not URLs are left out:
    they are among the broken links.
    """
    reasons = listed(ledger)
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


def listed(ledger: Ledger) -> dict[Reason, dict[str, dict[str, str]]]:
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
        yield from more(len(urls) - len(listed), "      ")
    yield from more(len(groups) - len(shapes), "    ", "more shapes")


def _from(url: str, page: str) -> str:
    return f"{readable(url)} from {readable(page)}" if page else readable(url)


_MAX_COUNTED = 100_000
_GUEST = of_kind(Kind.GUEST)
# These links would not have been followed anyway.
_OUTSIDE = of_kind(Kind.OUTSIDE)
_SENTENCES = {
    Reason.META_NOFOLLOW: "{asks} crawlers not to follow {its} links (robots meta nofollow)",
    Reason.HEADER_NOFOLLOW: "{asks} crawlers not to follow {its} links (X-Robots-Tag nofollow)",
    Reason.REL_NOFOLLOW: "{asks} crawlers not to follow links (rel=nofollow)",
    Reason.ROBOTS: "robots.txt disallows links{of}",
}
_START = {"asks": "The start page asks", "its": "its", "of": " of the start page"}
_STARTS = {"asks": "The start pages ask", "its": "their", "of": " of the start pages"}
_PAGES = {"asks": "Pages ask", "its": "their", "of": ""}

_FEWEST = 5
_MAX_TARGETS = 10_000
_IS_LOGIN = lazy(
    r"(?<![a-z]) (?:user|wp|web)? [-_:]? (?: log[-_]?(?:in|on) | sign[-_]?(?:in|on) ) (?![a-z])"
    r"| /(?:auth|sso|session|sessions|cas)(?![a-z])",
    re.IGNORECASE | re.VERBOSE,
)
# Each of them has one of these.
_LOGIN_WORDS = ("log", "sign", "auth", "sso", "session", "cas")


class LeftOut(msgspec.Struct, frozen=True):
    """The distinct links that were left out for the sake of the host, by reason.

    A link to a URL that was followed elsewhere does not count. At most 100,000 links are counted.
    `beyond` is whether more than the seeds was asked for, `all` whether the start pages have
    links, and all of them were left out; links that lead outside of the crawl do not count.
    """

    counts: Counter[Reason]
    beyond: bool
    all: bool

    def lines(self, seeds: int, pages: int) -> list[str]:
        """Return a line for each reason, if more links were left out than pages were fetched.

        Also if no URL but the `seeds` was fetched.
        """
        counts = self.counts
        if not pages or (self.beyond and counts.total() <= pages):
            return []
        words = _PAGES if self.beyond else _START if seeds == 1 else _STARTS
        beside = f", beside {count(pages, 'page')} fetched" if self.beyond else ""
        least = f"{count(_MAX_COUNTED)} or more links"
        return [
            f"{_SENTENCES[reason].format(**words)}: "
            f"{count(number, 'link') if number < _MAX_COUNTED else least} not followed{beside}; "
            + ("--ignore-robots" if reason is Reason.ROBOTS else "--ignore-nofollow")
            + (" follows it" if number == 1 else " follows them")
            for reason, number in sorted(counts.items(), key=lambda each: (-each[1], each[0]))
        ]


def left_out(ledger: Ledger) -> LeftOut:
    """Count the links that a crawl left out because it is a guest."""
    counts: Counter[Reason] = Counter()
    # The robots.txt of its host was not known when such a URL was found.
    for _, row in ledger.ends(SKIPPED):
        if row.flags & DEEP and row.reason is Reason.ROBOTS:
            counts[Reason.ROBOTS] += 1
    beyond = any(
        row.flags & DEEP and not (row.kind == SKIPPED and row.reason is Reason.ROBOTS)
        for _, row in ledger.ends()
    )
    if not counts and not any(ledger.rejected[reason] for reason in _GUEST):
        return LeftOut(counts, beyond, False)
    other, links = False, dict[int, Reason]()
    for each in ledger.outlinks():
        for name, packed in each.rejected.items():
            reason = Reason(name)
            other |= reason not in _GUEST and reason not in _OUTSIDE
            for number in map(ledger.usual, numbers_of(packed)) if reason in _GUEST else ():
                if number in links or len(links) < _MAX_COUNTED:
                    # The smallest, so that the order of the outcomes does not matter.
                    links[number] = min(reason, links.get(number, reason))
    wanted, followed = ledger.spellings(links), set[int]()
    for each in ledger.outlinks() if wanted else ():
        followed.update(map(ledger.usual, wanted.intersection(each.followed)))
    counts.update(
        reason
        for number, reason in links.items()
        if number not in followed and ledger.end(number) is None
    )
    everything = bool(ledger.kinds[PAGE] and counts and not beyond and not other)
    return LeftOut(counts, beyond, everything)


def logged_out(ledger: Ledger) -> list[str]:
    """Return a line for each host where most URLs lead to one page, but not all do.

    A target counts without its query: each page has its own `?next=`, and so the page of a login,
    which is not counted, has many URLs. At most 10,000 targets and originals are counted.
    """
    # By the origin of the URL, and the target or original: how many, and the first of them.
    redirects: dict[tuple[str, str], tuple[int, str]] = {}
    copies: dict[tuple[str, str], tuple[int, str]] = {}
    redirecting, every, good = Counter[str](), Counter[str](), Counter[str]()
    # In order, since near URLs are read at once.
    targets = {row.target for _, row in ledger.ends(PAGE, REDIRECT)} - {NO_URL}
    urls = {number: ledger.urls.urls[number] for number in sorted(targets)}
    for url, row in ledger.ends(PAGE, REDIRECT):
        if not url.startswith(WEB) or (row.kind == PAGE and (not row.good or _is_login(url))):
            continue
        home = origin(url)
        every[home] += 1
        if row.kind == REDIRECT:
            redirecting[home] += 1
            _count(redirects, (home, _without_query(urls[row.target])), url)
        elif row.target != NO_URL and not row.flags & FOLDED:
            _count(copies, (home, urls[row.target]), url)
        else:
            good[home] += 1

    def are_most(home: str, number: int, others: int) -> bool:
        return number >= _FEWEST and 2 * number > every[home] and good[home] >= others

    found = []
    for (home, target), (number, first) in redirects.items():
        alone = redirecting[home] == number
        if are_most(home, number, 1) and (alone or _is_login(target)):
            found.append((home, number, f"lead to {readable(target)}", first))
    for (home, original), (number, first) in copies.items():
        # The original itself is a good page.
        if are_most(home, number, 2):
            found.append((home, number, f"are the same page as {readable(original)}", first))
    return [
        f"The crawl seems to be logged out: {count(number)} of {count(every[home])} URLs "
        f"of {visible(home)} {what}, such as {readable(first)}"
        for home, number, what, first in sorted(found)
    ]


def _is_login(url: str) -> bool:
    named = _without_query(url)
    # ▶ The expression takes 6 us, the words together a fifth.
    lower = named.lower()
    return any(word in lower for word in _LOGIN_WORDS) and _IS_LOGIN.search(named) is not None


def _without_query(url: str) -> str:
    return url.partition("#")[0].partition("?")[0]


def _count(table: dict[tuple[str, str], tuple[int, str]], key: tuple[str, str], url: str) -> None:
    number, first = table.get(key, (0, url))
    if not number and len(table) >= _MAX_TARGETS:
        return
    # The shortest, then by the alphabet: of numbered pages this is the first, in any order of the
    # outcomes.
    table[key] = number + 1, min(first, url, key=lambda each: (len(each), each))
