"""What a crawl left out, or could not see: nofollow and robots.txt, and pages behind a login."""

from __future__ import annotations

import re
from collections import Counter
from typing import NamedTuple

from trio_crawler.ledger.ledger import Ledger, numbers_of
from trio_crawler.ledger.rows import DEEP, FOLDED, NO_URL, PAGE, REDIRECT, SKIPPED
from trio_crawler.model import Reason
from trio_crawler.page.urls import WEB, origin
from trio_crawler.reason import Kind, of_kind
from trio_crawler.report.readable import readable
from trio_crawler.report.visible import count, visible

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
_IS_LOGIN = re.compile(
    r"(?<![a-z]) (?:user|wp|web)? [-_:]? (?: log[-_]?(?:in|on) | sign[-_]?(?:in|on) ) (?![a-z])"
    r"| /(?:auth|sso|session|sessions|cas)(?![a-z])",
    re.IGNORECASE | re.VERBOSE,
).search
# Each of them has one of these.
_LOGIN_WORDS = ("log", "sign", "auth", "sso", "session", "cas")


class LeftOut(NamedTuple):
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
        return [
            f"{_SENTENCES[reason].format(**words)}: {_links(number)} not followed{beside}; "
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


def _links(number: int) -> str:
    more = " or more" if number >= _MAX_COUNTED else ""
    return f"{count(number)}{more} {'link' if number == 1 else 'links'}"


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
    words = [word for word in _LOGIN_WORDS if word in lower]
    return bool(words) and _IS_LOGIN(named) is not None


def _without_query(url: str) -> str:
    return url.partition("#")[0].partition("?")[0]


def _count(table: dict[tuple[str, str], tuple[int, str]], key: tuple[str, str], url: str) -> None:
    number, first = table.get(key, (0, url))
    if not number and len(table) >= _MAX_TARGETS:
        return
    # The shortest, then by the alphabet: of numbered pages this is the first, in any order of the
    # outcomes.
    table[key] = number + 1, min(first, url, key=lambda each: (len(each), each))
