"""The link check: the links of a ledger, joined with the ends of their URLs to findings."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Self

from trio_crawler.arguments import ArgumentError, check_kind, check_whole, public
from trio_crawler.check.facts import NotChecked, Unasked
from trio_crawler.check.finding import (
    Finding,
    Hop,
    detail_of,
    finding_of,
    mailto_fault,
    note_of,
    placed,
)
from trio_crawler.ledger.ledger import Ledger, numbers_of
from trio_crawler.ledger.tables import CHECKED, NO_URL, OWN_FRAGMENT, PAGE, REDIRECT, TRIED, Row
from trio_crawler.link import Link, LinkKind
from trio_crawler.model import Outcome, Page, Reason
from trio_crawler.page.fragments import Places, has_place
from trio_crawler.page.link_targets import fragments_in
from trio_crawler.page.links import pointed_of
from trio_crawler.page.urls import is_web
from trio_crawler.policy.verdict import (
    Defect,
    Verdict,
    Verdicts,
    parse_patterns,
    parse_statuses,
)

__all__ = ["Defect", "LinkCheck", "Verdict", "Verdicts", "parse_patterns", "parse_statuses"]

_MOST_HOPS = 100
_NO_REQUEST = "no_request"
# ▶ Python 3.11 finds a member of an enumeration in 0.1 us, and one by its value in 1 us.
_FORM = LinkKind.FORM
_OUTSIDE = (Reason.OTHER_SITE, Reason.NOT_INCLUDED)
_KIND_OF = {kind.value: kind for kind in LinkKind}
_FINE, _FINE_OUTSIDE = 1, 2
# Of a link that was looked at: nothing is to be told of it, or something is.
_SILENT, _TOLD = 1, 2


class _Path(NamedTuple):
    """The numbers of a URL and of all that it redirects to, and the redirects.

    `has_fragment` is whether one of them has a fragment, which takes the place of that of a link
    (RFC 9110, 10.2.2).
    """

    numbers: list[int]
    hops: list[Hop]
    has_fragment: bool


@public("trio_crawler.check")
class LinkCheck:
    """Judge every link of a crawl when its outcomes are known, by the policy `verdicts`.

    `add` records an outcome; they come in any order, but one with `again` comes after the one that
    it takes the place of. `findings` joins them: a link is a finding if its end, by way of
    redirects, is a note or a fault, and so is a fragment that names no place of its page. Then
    `checked` counts the links that were judged, each once for a kind, by that kind, and
    `not_checked` the others, by kind (or scheme) and reason; `listed` are the first `why` of each
    kind and reason, by the URL of their page. `recalled` counts the URLs that were not asked for,
    since an earlier walk had found them fine (see `Checks.max_age`).

    Of a page the tags and texts of its links are kept, else its body, since only the links of a
    finding are read with their places: the first 32 MiB as they are, the others packed to a fifth,
    and beyond 32 MiB of these in a temporary file. A URL takes some 80 bytes. With a `ledger` the
    check is about what that has, and `add` adds to it; it must be one with `checks`. The caller
    calls `close`, or uses the check as a context manager.

    >>> web = Web({"/": html("/gone", "/a#b"), "/a": html()})
    >>> async def faults() -> list[str]:
    ...     check = LinkCheck()
    ...     async with Crawler([web.url], fetch=web, checks=Checks()).outcomes() as outcomes:
    ...         async for outcome in outcomes:
    ...             check.add(outcome)
    ...     return sorted(f"{each.line}: {each.target} {each.code}" for each in check.findings())
    >>> trio.run(faults)
    ['1: http://site.test/a#b missing_fragment', '1: http://site.test/gone 404']
    """

    def __init__(
        self, verdicts: Verdicts | None = None, *, why: int = 0, ledger: Ledger | None = None
    ) -> None:
        if verdicts is not None:
            check_kind("verdicts", verdicts, Verdicts, "a Verdicts")
        check_whole("why", why)
        check_kind("ledger", ledger, Ledger | None, "a Ledger or None")
        if ledger is not None and not ledger.checks:
            raise ArgumentError("ledger", " must be a Ledger(checks=True)")
        self._verdicts = Verdicts() if verdicts is None else verdicts
        self._why = why
        self._ledger = Ledger(checks=True) if ledger is None else ledger
        # By the number of a URL: one of the values above if it is fine, else its end.
        self._fine = bytearray()
        self._ends: dict[int, Row] = {}
        self._seeds: list[int] = []
        self._judged_changes = -1
        self.checked: Counter[str] = Counter()
        self.not_checked: Counter[tuple[str, str]] = Counter()
        self.listed: list[NotChecked] = []
        self.recalled = 0

    def __repr__(self) -> str:
        return f"<LinkCheck: {self._ledger!r}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Free the memory or the files of the links."""
        self._ledger.close()

    def add(self, outcome: Outcome) -> None:
        """Record an outcome."""
        self._ledger.add(outcome)

    def knows(self, url: str) -> bool:
        """Whether an outcome of this URL was added."""
        check_kind("url", url, str, "a URL as a str")
        return self._ledger.knows(url)

    def unlinked(self) -> Iterator[str]:
        """Yield the seeds that no other page leads to, by a link or by way of redirects."""
        self._judge_ends()
        usual, linked = self._ledger.usual, set[int]()
        # What no page is known to link to: seeds, and redirects that may lead to them.
        alone = self._ledger.spellings({*self._seeds, *self._ends})
        for each in self._ledger.outlinks():
            if each.pointed is not None:
                numbers = numbers_of(b"".join(each.pointed.kinds.values()))
                if found := alone.intersection(numbers):
                    page = usual(each.page)
                    found = {number for number in found if usual(number) != page}
                    linked |= found
                    alone -= found
        linked = set(map(usual, linked))
        for number in linked & self._ends.keys():
            linked.update(self._path(number).numbers)
        return (self._ledger.url(each) for each in self._seeds if each not in linked)

    def certain(self, outcome: Outcome) -> list[Finding]:
        """Return the faults that an outcome is already, before the others are known.

        These are the URL itself, if it is no redirect and was not found by one, and the links of a
        page that are malformed. `findings` has them too, with their places. The outcome must have
        been added.
        """
        check_kind("outcome", outcome, Outcome, "an outcome")
        found: list[Finding] = []
        row = self._ledger.end(self._ledger.urls.number(outcome.url))
        if row is not None and row.kind != REDIRECT and not self._is_fine(outcome.url, row):
            behind = None if row.referrer == NO_URL else self._ledger.end(row.referrer)
            leads_on = row.kind == CHECKED and row.target != NO_URL
            by_redirect = behind is not None and behind.kind in (REDIRECT, CHECKED)
            verdict = self._verdict(outcome.url, row)
            if verdict is Verdict.FAULT and not (leads_on or by_redirect):
                about = outcome.referrer, Link(outcome.url), verdict, _code(row)
                detail, external = self._detail(row, outcome.url), row.kind == CHECKED
                found.append(finding_of(*about, detail=detail, external=external))
        if isinstance(outcome, Page):
            rejected = {url for url, reason in outcome.rejected if reason is Reason.BAD_URL}
            # To read the places and texts of links takes as long as the rest of a check.
            if rejected or pointed_of(outcome.found).malformed:
                found += (
                    finding_of(outcome.url, link, Verdict.FAULT, Reason.BAD_URL)
                    for link in outcome.found
                    if link.malformed or link.url in rejected
                )
        return found

    def findings(self) -> Iterator[Finding]:
        """Yield the notes and faults, page by page, those of seeds first; count the others."""
        self.checked.clear()
        self.not_checked.clear()
        self.listed.clear()
        self._judge_ends()
        missing = self._missing()
        told = set[int]()
        for number in self._seeds:
            yield from self._found(None, Link(self._ledger.url(number)), number, told)
        urls, fine, malformed = self._ledger.urls.urls, self._fine, self._ledger.malformed
        # Most links lead to URLs about which earlier links had nothing to tell.
        known: defaultdict[str, bytearray] = defaultdict(lambda: bytearray(len(urls)))
        # The others, by kind, number and why they were rejected, as their first page has them.
        bad: dict[tuple[str, int, str], tuple[tuple[str, str] | None, list[Finding]]] = {}
        unasked = Unasked(self._ledger, self._why)
        for each in self._ledger.outlinks():
            pointed = each.pointed
            if pointed is None:
                continue
            page, found = "", list[Finding]()
            rejected: dict[int, str] | None = None
            for kind, packed in pointed.malformed.items():
                page, marks = page or urls[each.page], known[f"{kind} malformed"]
                for number in numbers_of(packed):
                    self.checked[kind] += not marks[number]
                    marks[number] = _TOLD
                    link = Link(urls[number], _KIND_OF[kind], malformed=True)
                    found.append(finding_of(page, link, Verdict.FAULT, Reason.BAD_URL))
            for kind, packed in pointed.kinds.items():
                marks, numbers = known[kind], numbers_of(packed)
                if self._why:
                    unasked.again(kind, numbers, each)
                for number in {number for number in numbers if marks[number] != _SILENT}:
                    # A check sends no form.
                    if fine[number] and kind != _FORM and number not in malformed:
                        self.checked[kind] += 1
                        marks[number] = _SILENT
                        continue
                    page = page or urls[each.page]
                    if rejected is None:
                        rejected = {
                            number: reason
                            for reason, others in each.rejected.items()
                            for number in numbers_of(others)
                        }
                    first, why = not marks[number], rejected.get(number, "")
                    if (judged := bad.get((kind, number, why))) is None:
                        judged = self._judged(page, kind, number, why, told)
                        if judged[1]:
                            bad[kind, number, why] = judged
                    skipped, here = judged
                    if skipped is None:
                        self.checked[kind] += first
                    else:
                        self.not_checked[skipped] += first
                        if self._why:
                            unasked.add(skipped, kind, number, each)
                    marks[number] = _TOLD if here else marks[number] or _SILENT
                    found += here
                named = pointed.fragments.get(kind, {}) if kind != _FORM else {}
                if named and not missing.keys().isdisjoint(named):
                    for number in filter(missing.__contains__, named):
                        last, lost = missing[number]
                        external = self._is_external(last)
                        for fragment in lost.intersection(fragments_in(named[number])):
                            page = page or urls[each.page]
                            link = Link(urls[number], _KIND_OF[kind], fragment)
                            code = Defect.MISSING_FRAGMENT
                            found += self._coded(page, link, code, external=external)
            if found:
                wanted: dict[str, dict[str, set[str] | None]] = {}
                for fault in found:
                    of_kind = wanted.setdefault(fault.kind, {})
                    if fault.code != Defect.MISSING_FRAGMENT:
                        of_kind[fault.url] = None
                    elif (places := of_kind.setdefault(fault.url, set())) is not None:
                        places.add(fault.fragment)
                links = self._ledger.source(pointed.source, wanted)
                yield from placed(found, page, links)
        self.listed += unasked.listed()
        yield from self._unlinked(told)

    def _judge_ends(self) -> None:
        """Divide the ends into those that are fine and the others."""
        ledger = self._ledger
        if self._judged_changes == ledger.changes:
            return
        self._judged_changes = ledger.changes
        self._fine, self._ends, self._seeds = bytearray(len(ledger.urls)), {}, []
        self.recalled = 0
        for url, row in ledger.ends():
            number = row.number
            if self._is_fine(url, row):
                self._fine[number] = _FINE_OUTSIDE if row.kind == CHECKED else _FINE
            else:
                self._ends[number] = row
            if row.kind == CHECKED:
                self.recalled += row.status > 0 and not row.flags & TRIED
            elif row.referrer == NO_URL:
                self._seeds.append(number)

    def _is_fine(self, url: str, row: Row) -> bool:
        asked = row.kind == PAGE or row.flags & TRIED
        if not asked or row.kind == REDIRECT or (row.kind == CHECKED and row.target != NO_URL):
            return False
        return self._verdict(url, row) is Verdict.FINE

    def _verdict(self, url: str, row: Row) -> Verdict:
        status = row.status if row.status and row.reason is None else None
        return self._verdicts.of(
            url, status=status, reason=row.reason, external=row.kind == CHECKED
        )

    def _missing(self) -> Mapping[int, tuple[int, set[str]]]:
        """Return by the number of a URL its end, and the fragments that name no place there.

        Where a page refreshes to others, none of them has such a place: scripts of some pages take
        the fragment along, and no author gives them any.
        """
        ledger = self._ledger
        named: defaultdict[int, set[str]] = defaultdict(set)
        refreshes, ways = dict[int, int](), dict[int, list[int]]()
        for each in ledger.outlinks():
            if each.pointed is None:
                continue
            for target in numbers_of(each.pointed.kinds.get(LinkKind.REFRESH, b"")):
                refreshes[ledger.usual(each.page)] = ledger.usual(target)
            for by_number in each.pointed.fragments.values():
                for number, fragments in by_number.items():
                    named[number].update(fragments_in(fragments))
        wanted: defaultdict[int, set[str]] = defaultdict(set)
        for number, of_url in named.items():
            path = self._path(ledger.usual(number))
            if not path.has_fragment:
                way = ways[number] = [path.numbers[-1]]
                while way[-1] in refreshes and len(way) < _MOST_HOPS:
                    onward = self._path(refreshes[way[-1]]).numbers[-1]
                    if onward in way:
                        break
                    way.append(onward)
                for page in way:
                    wanted[page] |= of_url
        missing: dict[int, set[str]] = {}
        for number, places in ledger.places() if wanted else ():
            if number in wanted:
                rest = wanted[number]
                if isinstance(places, Places):
                    rest = rest.difference(places.names)
                # A page that was checked twice has its places last.
                missing[number] = {each for each in rest if not has_place(places, each)}
        found: dict[int, tuple[int, set[str]]] = {}
        for number, (end, *others) in ways.items():
            lost = missing.get(end, set())
            for page in others:
                lost = lost & missing.get(page, set())
            if lost:
                found[number] = end, lost
        return found

    def _path(self, number: int) -> _Path:
        """Return the way from a URL to its end."""
        numbers, hops, has_fragment = [number], list[Hop](), False
        while len(hops) < _MOST_HOPS and (end := self._ends.get(number)) is not None:
            if end.kind not in (REDIRECT, CHECKED) or end.target == NO_URL:
                break
            target = self._ledger.usual(end.target)
            if target == number and self._ledger.urls.urls[end.target] != self._ledger.url(number):
                # Another spelling of the same URL, which is asked for once.
                break
            number = target
            hops.append(Hop(end.status, self._ledger.url(number)))
            has_fragment |= bool(end.flags & OWN_FRAGMENT)
            numbers.append(number)
        return _Path(numbers, hops, has_fragment)

    def _judged(
        self, page: str, kind: str, number: int, rejected: str, told: set[int]
    ) -> tuple[tuple[str, str] | None, list[Finding]]:
        """Return why a link was not checked, else None, and its findings but for a fragment."""
        usual = self._ledger.usual(number)
        end = self._ends.get(usual)
        if rejected in _OUTSIDE and not (end or self._fine[usual] or kind == _FORM):
            # Most links that are looked at: nothing else is made for these.
            return (_KIND_OF[kind], rejected), []
        url = self._ledger.urls.urls[number]
        link = Link(url, _KIND_OF[kind])
        if rejected == Reason.BAD_URL:
            return None, [finding_of(page, link, Verdict.FAULT, Reason.BAD_URL)]
        if not is_web(url):
            name, _, rest = url.partition(":")
            is_mail = (scheme := name.lower()) == "mailto"
            code = Defect.BAD_MAILTO if is_mail else Defect.BAD_SCHEME
            if detail := mailto_fault(rest) if is_mail else note_of(scheme):
                return None, list(self._coded(page, link, code, detail=detail))
            return (scheme, Reason.OTHER_SCHEME), []
        if kind == _FORM:
            return (link.kind, _NO_REQUEST), []
        skipped: str | None = None
        if end is None:
            skipped = None if self._fine[usual] else rejected
        elif not end.flags & TRIED and self._verdict(url, end) is not Verdict.FAULT:
            skipped = end.reason
        if skipped is None:
            return None, list(self._found(page, link, usual, told))
        # Without it a search engine sees another page than its readers.
        hidden = skipped == Reason.ROBOTS and kind in (LinkKind.STYLE, LinkKind.SCRIPT)
        return (link.kind, skipped), list(self._coded(page, link, Reason.ROBOTS)) if hidden else []

    def _coded(
        self, page: str, link: Link, code: Reason | Defect, **about: Any
    ) -> Iterator[Finding]:
        """Yield the finding of a link, or of its fragment, that says what is wrong by its code."""
        named = f"{link.url}#{link.fragment}" if link.fragment else link.url
        verdict = self._verdicts.of(named, reason=code, external=about.get("external", False))
        if verdict is not Verdict.FINE:
            yield finding_of(page, link, verdict, code, **about)

    def _detail(self, end: Row, url: str) -> str:
        return self._ledger.details.get(end.number) or detail_of(url, _code(end))

    def _is_external(self, number: int) -> bool:
        end = self._ends.get(number)
        return self._fine[number] == _FINE_OUTSIDE if end is None else end.kind == CHECKED

    def _found(
        self, page: str | None, link: Link, number: int, told: set[int]
    ) -> Iterator[Finding]:
        """Yield the finding of a link to a URL that was asked for, if its end is one."""
        numbers, hops, _ = self._path(number)
        end = self._ends.get(last := numbers[-1])
        told.update(numbers)
        external = self._is_external(number)
        if end is not None:
            verdict, code = self._verdict(self._ledger.url(last), end), _code(end)
            if len(hops) >= _MOST_HOPS:
                verdict, code = Verdict.FAULT, Reason.TOO_MANY_REDIRECTS.value
            if verdict is not Verdict.FINE:
                if not self._verdicts.ignores(link.url):
                    detail, chain = self._detail(end, self._ledger.url(last)), tuple(hops[:20])
                    about: dict[str, Any] = {"detail": detail, "chain": chain}
                    yield finding_of(page, link, verdict, code, external=external, **about)
                return
        if hops:
            yield from self._redirected(page, link, hops, external)

    def _redirected(
        self, page: str | None, link: Link, hops: Sequence[Hop], external: bool
    ) -> Iterator[Finding]:
        """Yield the finding of a link whose redirects lead to a good end, if they are one."""
        url, worst, code = link.url, Verdict.FINE, ""
        for hop in hops:
            verdict = self._verdicts.of(url, status=hop.status, external=external)
            if verdict > worst:
                worst, code = verdict, str(hop.status)
            url = hop.url
        about: dict[str, Any] = {"external": external, "chain": tuple(hops[:20])}
        scheme = url.partition(":")[0]
        if scheme in ("file", "javascript", "data"):
            code = Reason.BAD_LOCATION
            worst = self._verdicts.of(link.url, reason=code, external=external)
            about["detail"] = f"the redirect leads to a {scheme}: URL, which browsers refuse"
        if worst is not Verdict.FINE:
            yield finding_of(page, link, worst, code, **about)

    def _unlinked(self, told: set[int]) -> Iterator[Finding]:
        """Yield the findings of URLs that no page links to, such as those of a sitemap."""
        for number, end in self._ends.items():
            if number in told or end.referrer == NO_URL:
                continue
            url = self._ledger.url(number)
            asked = end.kind in (PAGE, REDIRECT) or end.flags & TRIED
            if asked or self._verdict(url, end) is Verdict.FAULT:
                by = self._ledger.urls.urls[end.referrer]
                yield from self._found(by, Link(url), number, told)


def _code(end: Row) -> str:
    return str(end.status) if end.reason is None else end.reason.value
