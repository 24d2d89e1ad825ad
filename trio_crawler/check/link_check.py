"""The link check: the links of the pages, joined with the ends of their URLs to findings."""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain, starmap
from typing import Any, NamedTuple

from trio_crawler.arguments import check_kind, check_whole
from trio_crawler.check.facts import NotChecked
from trio_crawler.check.finding import Finding, Hop, finding_of, placed
from trio_crawler.check.scheme_syntax import fault_of, note_of
from trio_crawler.check.spool import Spool
from trio_crawler.link import Link, LinkKind
from trio_crawler.model import Checked, Failure, Outcome, Page, Reason, Redirect, Skipped
from trio_crawler.page.fragments import fragment_keys, key_of, names_place
from trio_crawler.page.link_targets import Target
from trio_crawler.page.links import PageLinks, Source, pointed_of
from trio_crawler.page.url_set import UrlSet
from trio_crawler.page.urls import is_web, seen_key
from trio_crawler.policy.verdict import (
    Defect,
    Verdict,
    Verdicts,
    parse_patterns,
    parse_statuses,
)
from trio_crawler.report.url_table import UrlTable

__all__ = ["Defect", "LinkCheck", "Verdict", "Verdicts", "parse_patterns", "parse_statuses"]

_MOST_HOPS = 100
_NO_REQUEST = "no_request"
_FINE, _FINE_OUTSIDE = 1, 2
# The URLs that are remembered while all pages are looked through.
_RECENT = 32_768


class _End(NamedTuple):
    """The outcome of a URL that is not simply fine."""

    status: int | None
    reason: Reason | None
    detail: str
    target: int | None
    external: bool
    asked: bool
    referrer: str | None
    fragment: str = ""


class _Path(NamedTuple):
    """The numbers of a URL and of all that it redirects to, and the redirects.

    `has_fragment` is whether one of them has a fragment, which takes the place of that of a link
    (RFC 9110, 10.2.2).
    """

    numbers: list[int]
    hops: list[Hop]
    has_fragment: bool

    @property
    def last(self) -> int:
        """The number of the end."""
        return self.numbers[-1]


class LinkCheck:
    """Judge every link of a crawl when its outcomes are known, by a policy.

    `add` records an outcome; they come in any order, but one with `again` comes after the one that
    it takes the place of. `findings` joins them: a link is a finding if its end, by way of
    redirects, is a note or a fault, and so is a fragment that names no place of its page. Then
    `checked` counts the links that were judged, each once for a kind, by that kind, and
    `not_checked` the others, by kind (or scheme) and reason; `listed` are the first `why` of each
    kind and reason, by the URL of their page. `recalled` counts the URLs that were not asked for,
    since an earlier walk had found them fine (see `Checks.max_age`).

    The body of a page is kept, packed to a fifth, since only the links of a finding are read with
    their places and texts; beyond 32 MiB the bodies and the links are in temporary files. A URL
    takes some 20 bytes, and one that is not fine 200. The caller calls `close`.
    """

    __module__ = "trio_crawler.check"

    def __init__(self, verdicts: Verdicts | None = None, *, why: int = 0) -> None:
        if verdicts is not None:
            check_kind("verdicts", verdicts, Verdicts, "a Verdicts")
        check_whole("why", why)
        self._verdicts = Verdicts() if verdicts is None else verdicts
        self._why = why
        self._numbers = UrlTable()
        self._pages, self._sources, self._targets = Spool(), Spool(), Spool()
        # The URLs that a redirect leads to.
        self._behind: set[int] = set()
        # By the number of a URL: one of the values above if it is fine, else its end.
        self._fine = bytearray()
        self._ends: dict[int, _End] = {}
        self._seeds: list[int] = []
        self.checked: Counter[str] = Counter()
        self.not_checked: Counter[tuple[str, str]] = Counter()
        self.listed: list[NotChecked] = []
        self.recalled = 0

    def __repr__(self) -> str:
        fine = len(self._fine) - self._fine.count(0)
        return f"<LinkCheck: {fine} URLs fine, {len(self._ends)} others>"

    def close(self) -> None:
        """Free the memory or the files of the links."""
        for spool in (self._pages, self._sources, self._targets):
            spool.close()

    def add(self, outcome: Outcome) -> None:
        """Record an outcome."""
        check_kind("outcome", outcome, Outcome, "an outcome")
        number = self._number(outcome.url)
        end = self._end(outcome)
        if outcome.referrer is None and not isinstance(outcome, Checked) and not outcome.again:
            self._seeds.append(number)
        if len(self._fine) <= number:
            self._fine.extend(bytes(number + 1 - len(self._fine)))
        self._ends.pop(number, None)
        self._fine[number] = 0
        if end is not None:
            self._ends[number] = end
        else:
            self._fine[number] = _FINE_OUTSIDE if isinstance(outcome, Checked) else _FINE
        if isinstance(outcome, Checked) and outcome.status is not None:
            self.recalled += not outcome.tries
        if isinstance(outcome, Page | Checked) and outcome.targets is not None:
            self._targets.append((number, array("Q", outcome.targets).tobytes()))
        if isinstance(outcome, Page):
            self._add_page(number, outcome)

    def knows(self, url: str) -> bool:
        """Whether an outcome of this URL was added."""
        check_kind("url", url, str, "a URL as a str")
        number = self._numbers.known(seen_key(url))
        return number is not None and self._is_known(number)

    def unlinked(self) -> Iterator[str]:
        """Yield the seeds that no other page leads to, by a link or by way of redirects."""
        alone, looked_at = dict.fromkeys(self._seeds), set[str]()
        for page, by_kind, _, _ in self._pages:
            for url, _, _ in chain.from_iterable(by_kind.values()):
                if url in looked_at:
                    continue
                number = self._numbers.known(seen_key(url))
                if number == page:
                    continue
                if len(looked_at) >= _RECENT:
                    looked_at.clear()
                looked_at.add(url)
                for each in () if number is None else self._path(number).numbers:
                    alone.pop(each, None)
        return (self._numbers.urls[number] for number in alone)

    def certain(self, outcome: Outcome) -> list[Finding]:
        """Return the faults that an outcome is already, before the others are known.

        These are the URL itself, if it is no redirect and none leads to it, and the links of a
        page that are malformed. `findings` has them too, with their places. The outcome must have
        been added.
        """
        check_kind("outcome", outcome, Outcome, "an outcome")
        found: list[Finding] = []
        number = self._number(outcome.url)
        end = self._ends.get(number)
        ends_here = end is not None and end.target is None and number not in self._behind
        if end is not None and ends_here and self._verdict(outcome.url, end) is Verdict.FAULT:
            code = str(end.status) if end.reason is None else end.reason.value
            about: dict[str, Any] = {"detail": end.detail, "external": end.external}
            link = Link(outcome.url)
            found.append(finding_of(outcome.referrer, link, Verdict.FAULT, code, **about))
        if isinstance(outcome, Page):
            rejected = {url for url, reason in outcome.rejected if reason is Reason.BAD_URL}
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
        missing = self._missing()
        told = set[int]()
        for number in self._seeds:
            yield from self._found(None, Link(self._numbers.urls[number]), number, told)
        counted = UrlSet()
        # Most links lead to URLs about which earlier links had nothing to tell: of these only the
        # fragments are looked at.
        silent_by_kind: defaultdict[str, dict[str, tuple[int, Collection[str]]]]
        silent_by_kind = defaultdict(dict)
        for page, by_kind, rejected, source in self._in_order() if self._why else self._pages:
            url, found, unasked = (
                self._numbers.urls[page],
                list[Finding](),
                dict[tuple[str, str], tuple[str, str]](),
            )
            for kind, targets in by_kind.items():
                silent = silent_by_kind[kind]
                for target, fragment, malformed in targets:
                    before = silent.get(target)
                    if before is None:
                        link = Link(target, LinkKind(kind), fragment, malformed=malformed)
                        here = list(
                            self._judged(url, link, rejected, missing, told, counted, unasked)
                        )
                        found += here
                        if not here:
                            if len(silent) >= _RECENT:
                                silent.clear()
                            silent[target] = self._lost_at(link, missing)
                    elif fragment in before[1]:
                        link = Link(target, LinkKind(kind), fragment)
                        found += self._lost(url, link, before[0])
            wanted = {each.url for each in found} | {target for _, target in unasked}
            links = self._links(source, wanted) if wanted else ()
            yield from placed(found, links)
            for link in links if unasked else ():
                if key := unasked.pop((link.kind, link.url), None):
                    self.listed.append(NotChecked(*key, url, link))
        yield from self._unlinked(told)

    def _in_order(self) -> Iterator[Any]:
        """Yield the pages by URL: the first that has a link is the same in each run."""
        urls = self._numbers.urls
        keys = [(urls[page], at) for at, (page, *_) in enumerate(self._pages)]
        return (self._pages[at] for _, at in sorted(keys))

    def _end(self, outcome: Outcome) -> _End | None:
        """Return the end of a URL; None if it is fine."""
        referrer = outcome.referrer
        target: int | None = None
        match outcome:
            case Page(status=status):
                end = _End(status, None, "", None, False, True, referrer)
            case Redirect(status=status):
                # A target outside of the crawl may be checked.
                target = self._number(outcome.target)
                self._behind.add(target)
                end = _End(status, None, "", target, False, True, referrer, outcome.fragment)
            case Failure(reason=reason, detail=detail, tries=tries):
                end = _End(None, reason, detail, None, False, tries > 0, referrer)
            case Skipped(reason=reason):
                end = _End(None, reason, "", None, False, False, referrer)
            case Checked():
                if outcome.target is not None and not outcome.reason:
                    target = self._number(outcome.target)
                    self._behind.add(target)
                asked = outcome.tries > 0
                about = (outcome.status, outcome.reason, outcome.detail)
                end = _End(*about, target, True, asked, referrer, outcome.fragment)
        fine = end.target is None and self._verdict(outcome.url, end) is Verdict.FINE
        return None if fine and (end.asked or isinstance(outcome, Page)) else end

    def _number(self, url: str) -> int:
        # Two spellings of one URL are one URL for the crawl.
        return self._numbers.number(seen_key(url.partition("#")[0]))

    def _verdict(self, url: str, end: _End) -> Verdict:
        status = None if end.reason is not None else end.status
        return self._verdicts.of(url, status=status, reason=end.reason, external=end.external)

    def _add_page(self, number: int, page: Page) -> None:
        found: Sequence[Link] = page.found
        rejected = {url: reason.value for url, reason in page.rejected}
        if not found:
            # The crawl has read the links without their places.
            found = [
                Link(url, LinkKind.A, text=page.anchors[url].text if url in page.anchors else "")
                for url in (*page.links, *(url for url, _ in page.rejected))
            ]
        if not found:
            return
        pointed = pointed_of(found)
        by_kind: defaultdict[str, list[Target]] = defaultdict(list)
        by_kind[LinkKind.A.value] = list(pointed.links)
        for kind, target in pointed.others:
            by_kind[kind.value].append(target)
        if isinstance(found, PageLinks):
            source = self._sources.append((tuple(found.source), None))
        else:
            # Plain values, which `marshal` can write.
            rows = [(link.url, str(link.kind), *link[2:]) for link in found]
            source = self._sources.append((None, rows))
        self._pages.append((number, dict(by_kind), rejected, source))

    def _links(self, source: int, wanted: Collection[str]) -> Sequence[Link]:
        """Return the links of a page to some URLs at least, with their places and texts."""
        response, rows = self._sources[source]
        return list(starmap(Link, rows)) if response is None else Source(*response).links(wanted)

    def _missing(self) -> Mapping[int, set[str]]:
        """Return by the number of a URL the fragments that name no place there."""
        by_url: defaultdict[int, set[str]] = defaultdict(set)
        recent: dict[str, set[str]] = {}
        for _, by_kind, _, _ in self._pages:
            for url, fragment, _ in chain.from_iterable(by_kind.values()):
                if not fragment:
                    continue
                fragments = recent.get(url)
                if fragments is None:
                    if len(recent) >= _RECENT:
                        recent.clear()
                    fragments = recent[url] = by_url[self._number(url)]
                fragments.add(fragment)
        wanted: defaultdict[int, set[str]] = defaultdict(set)
        for number, fragments in by_url.items():
            path = self._path(number)
            if not path.has_fragment:
                wanted[path.last] |= fragments
        missing: dict[int, set[str]] = {}
        for number, packed in self._targets:
            if number in wanted:
                keys = frozenset(array("Q", packed))
                # A page that was checked twice has its places last.
                missing[number] = {
                    fragment
                    for fragment in wanted[number]
                    if key_of(fragment) not in keys
                    and names_place(fragment)
                    and keys.isdisjoint(fragment_keys(fragment))
                }
        return missing

    def _path(self, number: int) -> _Path:
        """Return the way from a URL to its end."""
        numbers, hops, has_fragment = [number], list[Hop](), False
        while len(hops) < _MOST_HOPS and (end := self._ends.get(number)) is not None:
            if end.target is None:
                break
            hops.append(Hop(end.status or 0, self._numbers.urls[end.target]))
            has_fragment |= bool(end.fragment)
            number = end.target
            numbers.append(number)
        return _Path(numbers, hops, has_fragment)

    def _judged(
        self,
        page: str,
        link: Link,
        rejected: Mapping[str, str],
        missing: Mapping[int, set[str]],
        told: set[int],
        counted: UrlSet,
        unasked: dict[tuple[str, str], tuple[str, str]],
    ) -> Iterator[Finding]:
        """Yield the findings of one link, and count it."""
        key = f"{link.kind} {link.url}"
        first = key not in counted
        if first:
            counted.add(key)
        number = self._numbers.known(seen_key(link.url)) if is_web(link.url) else None
        if (skipped := self._why_not(link, number, rejected.get(link.url, ""))) is not None:
            self.not_checked[skipped] += first
            if first and self.not_checked[skipped] <= self._why:
                unasked[link.kind, link.url] = skipped
            yield from self._hidden(page, link, skipped[1])
            return
        self.checked[link.kind] += first
        if link.malformed or rejected.get(link.url) == Reason.BAD_URL:
            yield finding_of(page, link, Verdict.FAULT, Reason.BAD_URL)
        elif number is None:
            yield from self._coded(page, link, *_odd(link.url))
        else:
            yield from self._found(page, link, number, told)
            path = self._path(number) if link.fragment else None
            if path and not path.has_fragment and link.fragment in missing.get(path.last, ()):
                yield from self._lost(page, link, path.last)

    def _why_not(self, link: Link, number: int | None, rejected: str) -> tuple[str, str] | None:
        """Return kind (or scheme) and reason of a link that nothing was asked for, else None."""
        if link.malformed or rejected == Reason.BAD_URL:
            return None
        if not is_web(link.url):
            scheme = link.url.partition(":")[0].lower()
            return None if _odd(link.url)[1] else (scheme, Reason.OTHER_SCHEME)
        if link.kind == LinkKind.FORM:
            return link.kind, _NO_REQUEST
        if number is None or not self._is_known(number):
            return link.kind, rejected
        end = self._ends.get(number)
        if end is None or end.asked or end.reason is None:
            return None
        is_fault = self._verdict(link.url, end) is Verdict.FAULT
        return None if is_fault else (link.kind, end.reason)

    def _hidden(self, page: str, link: Link, reason: str) -> Iterator[Finding]:
        # Without it a search engine sees another page than its readers.
        if reason == Reason.ROBOTS and link.kind in (LinkKind.STYLE, LinkKind.SCRIPT):
            yield from self._coded(page, link, Reason.ROBOTS)

    def _coded(
        self, page: str, link: Link, code: Reason | Defect, detail: str = ""
    ) -> Iterator[Finding]:
        verdict = self._verdicts.of(link.url, reason=code)
        if verdict is not Verdict.FINE:
            yield finding_of(page, link, verdict, code, detail=detail)

    def _lost(self, page: str, link: Link, number: int) -> Iterator[Finding]:
        """Yield the finding of a fragment that names no place of its page."""
        named, external = f"{link.url}#{link.fragment}", self._is_external(number)
        code = Defect.MISSING_FRAGMENT
        verdict = self._verdicts.of(named, reason=code, external=external)
        if verdict is not Verdict.FINE:
            yield finding_of(page, link, verdict, code, external=external)

    def _lost_at(
        self, link: Link, missing: Mapping[int, Collection[str]]
    ) -> tuple[int, Collection[str]]:
        """Return the number of the end of a link, and the fragments that name no place there."""
        if link.malformed or link.kind == LinkKind.FORM or not is_web(link.url):
            return 0, ()
        number = self._numbers.known(seen_key(link.url))
        if number is None or not self._is_known(number):
            return 0, ()
        path = self._path(number)
        return path.last, () if path.has_fragment else missing.get(path.last, ())

    def _is_known(self, number: int) -> bool:
        return number in self._ends or (number < len(self._fine) and self._fine[number] > 0)

    def _is_external(self, number: int) -> bool:
        end = self._ends.get(number)
        return self._fine[number] == _FINE_OUTSIDE if end is None else end.external

    def _found(
        self, page: str | None, link: Link, number: int, told: set[int]
    ) -> Iterator[Finding]:
        """Yield the finding of a link to a URL that was asked for, if its end is one."""
        numbers, hops, _ = self._path(number)
        last = numbers[-1]
        end = self._ends.get(last)
        told.update(numbers)
        external = self._is_external(number)
        if end is not None:
            url = self._numbers.urls[last]
            verdict = self._verdict(url, end)
            if len(hops) >= _MOST_HOPS:
                verdict, code = Verdict.FAULT, Reason.TOO_MANY_REDIRECTS.value
            else:
                code = str(end.status) if end.reason is None else end.reason.value
            if verdict is not Verdict.FINE and self._verdicts.ignores(link.url):
                return
            if verdict is not Verdict.FINE:
                about: dict[str, Any] = {"chain": tuple(hops[:20]), "detail": end.detail}
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
            url = self._numbers.urls[number]
            if number in told or end.referrer is None:
                continue
            if end.asked or self._verdict(url, end) is Verdict.FAULT:
                yield from self._found(end.referrer, Link(url), number, told)


def _odd(url: str) -> tuple[Defect, str]:
    """Return what is odd about a URL that is no web URL, "" if nothing is."""
    scheme = url.partition(":")[0].lower()
    if scheme == "mailto":
        return Defect.BAD_MAILTO, fault_of(url) or ""
    return Defect.BAD_SCHEME, note_of(scheme) or ""
