"""Who links to what: every broken link with the pages that lead to it, and what no page links to.

URLs are numbered (about 60 bytes each beside the string) and a link is a pair of numbers. Most
links turn out to be sound, and then nobody asks where they came from: those are dropped.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from heapq import nsmallest
from itertools import count
from typing import NamedTuple, TypeAlias

from trio_crawler.model import Failure, Outcome, Page, Reason, Redirect, Skipped
from trio_crawler.report.edges import Edges
from trio_crawler.report.indexable import is_well
from trio_crawler.report.unlinked import Unlinked

LOOP = "redirect loop"

_HOPS_TOLD = 10


class Referrer(NamedTuple):
    """Name a page that leads to a broken URL, and the redirects between the two.

    `page` is None when a seed leads there, and the URL of a sitemap when only that does. `via`
    begins with what the page links to and ends before the broken URL; of a long chain it holds
    the first 10, and `beyond` counts the rest.
    """

    page: str | None
    via: tuple[str, ...] = ()
    beyond: int = 0


@dataclass(frozen=True, slots=True)
class Broken:
    """A URL that gives no good page, and who leads to it.

    `why` is the status (from 400 on), the reason of a failure, "bad_url" for an href that is
    no URL, or "redirect loop"; a loop is told once, by the least of its URLs, and `loop` holds
    them all from that one on. `referrers` has each page once, by its shortest way, seeds first;
    `beyond` counts those that are left out.
    """

    url: str
    why: str
    detail: str = ""
    loop: tuple[str, ...] = ()
    referrers: tuple[Referrer, ...] = ()
    beyond: int = 0


class _End(NamedTuple):
    why: str
    detail: str = ""
    loop: tuple[int, ...] = ()


class _Way(NamedTuple):
    """The end that a URL leads to, by so many redirects."""

    hops: int
    end: int


# The pages that lead to an end, and what each of them links to, side by side.
_Pairs: TypeAlias = "tuple[array[int], array[int]]"


class Links:
    """Gather the links of a crawl, outcome by outcome, in any order."""

    def __init__(self) -> None:
        self._ids: defaultdict[str, int] = defaultdict(count().__next__)
        self._edges = Edges()
        self._next: dict[int, int] = {}
        self._ends: dict[int, _End] = {}
        self._unlinked = Unlinked(self._ids, self._next)

    def __repr__(self) -> str:
        urls, links, ends = len(self._ids), len(self._edges), len(self._ends)
        return f"<Links urls={urls} links={links} broken={ends}>"

    def add(self, outcome: Outcome) -> None:
        """Take in one outcome; each URL has one."""
        match outcome:
            case Page():
                self._add_page(outcome)
            case Redirect():
                self._add_redirect(outcome)
            case Failure():
                self._ends[self._ids[outcome.url]] = _End(outcome.reason, _detail(outcome))
            case Skipped():
                self._edges.close(self._ids[outcome.url])

    @property
    def problems(self) -> int:
        """Count what `broken` would list, without looking for who links to it."""
        return len(self._ends) + len(self._loops())

    def orphans(self, seeds: Iterable[str]) -> Iterable[str]:
        """Give the good pages (2xx, 304) that are no seed and that no page links to, in any order.

        What a linked URL or a seed redirects to counts as linked. A page's link to itself does
        not count; one that was not followed for the sake of nofollow, of depth, or because the
        page is a duplicate, does.
        """
        return self._unlinked.pages(seeds)

    def broken(
        self, most: int | None = None, source: Callable[[str], str | None] = lambda url: None
    ) -> list[Broken]:
        """List what is broken, sorted by URL, each with its first `most` referrers or with all.

        `source` tells of a URL to which no page links which sitemap it is from; None for a seed.

        Broken are pages with a status from 400 on, failures, loops of redirects, and hrefs
        that are no URL. A redirect that leads to one of these is not listed itself: the pages
        that link to it are, under the end it leads to. What was skipped, or leads out of the
        scope, is not broken.
        """
        ends = self._ends | {loop[0]: _End(LOOP, "", loop) for loop in self._loops()}
        teller = _Teller(list(self._ids), self._next, _ways(ends, self._next), source)
        pairs = teller.gather(self._edges)
        found = (teller.broken(node, end, pairs[node], most) for node, end in ends.items())
        return sorted(found, key=lambda broken: broken.url)

    def _add_page(self, page: Page) -> None:
        me = self._unlinked.meet(page.url, is_well(page), page.referrer is None)
        if page.status < 400:
            self._edges.close(me)
        else:
            self._ends[me] = _End(str(page.status))
        targets = array("I", [*map(self._ids.__getitem__, page.links)])
        if page.canonical is not None and page.canonical == page.duplicate_of:
            # It was folded: its canonical page was asked for as if it were linked.
            targets.append(self._ids[page.canonical])
        self._edges.add(me, targets)
        self._unlinked.link(me, targets, page.refused)
        malformed = [href for href, reason in page.refused if reason is Reason.BAD_URL]
        if malformed:
            ids = [self._ids[href] for href in malformed]
            self._edges.add(me, ids)
            self._ends.update(dict.fromkeys(ids, _End(Reason.BAD_URL)))

    def _add_redirect(self, redirect: Redirect) -> None:
        me = self._unlinked.meet(redirect.url, seed=redirect.referrer is None)
        if redirect.refused is Reason.BAD_URL:
            self._ends[me] = _End(Reason.BAD_URL, f"-> {redirect.target}")
        else:
            # A target that was refused has no outcome, and so no fault, unless another way to
            # it was admitted. A fragment is for the browser: what was asked for has none.
            self._next[me] = self._unlinked.meet(redirect.target.partition("#")[0])

    def _loops(self) -> list[tuple[int, ...]]:
        """Find the cycles among the redirects, each from its least URL on."""
        loops = []
        met: dict[int, int] = {}
        for start in self._next:
            walk = []
            node = start
            while node in self._next and node not in met:
                met[node] = start
                walk.append(node)
                node = self._next[node]
            if walk and met.get(node) == start:
                loops.append(walk[walk.index(node) :])
        return self._turn(loops)

    def _turn(self, loops: list[list[int]]) -> list[tuple[int, ...]]:
        if not loops:
            return []
        urls = list(self._ids)
        leasts = [loop.index(min(loop, key=urls.__getitem__)) for loop in loops]
        return [(*loop[at:], *loop[:at]) for loop, at in zip(loops, leasts, strict=True)]


class _Teller:
    """Put names to numbers, and say by which way each page leads to an end."""

    def __init__(
        self,
        urls: list[str],
        onward: Mapping[int, int],
        ways: dict[int, _Way],
        source: Callable[[str], str | None],
    ) -> None:
        self._urls = urls
        self._source = source
        self._next = onward
        self._ways = ways
        self._seeds: defaultdict[int, list[int]] = defaultdict(list)

    def gather(self, edges: Edges) -> dict[int, _Pairs]:
        """Sort the edges by the end they lead to; what no edge leads to must be a seed."""
        ways = self._ways
        pairs: dict[int, _Pairs] = {way.end: (array("I"), array("I")) for way in ways.values()}
        unlinked = set(ways)
        for source, target in edges.leading_to(ways):
            unlinked.discard(target)
            sources, targets = pairs[ways[target].end]
            sources.append(source)
            targets.append(target)
        self._find_seeds(unlinked, pairs)
        return pairs

    def broken(self, node: int, end: _End, pairs: _Pairs, most: int | None) -> Broken:
        """Tell one end, with as many referrers as are asked for."""
        urls = self._urls
        started = sorted(self._seeds[node], key=urls.__getitem__)
        seeds = [(self._source(urls[start]), start) for start in started]
        pages = self._shortest(pairs)
        total = len(seeds) + len(pages)
        left = max((total if most is None else most) - len(seeds), 0)
        first = nsmallest(left, pages, key=urls.__getitem__)
        told = [*seeds, *((urls[page], pages[page]) for page in first)][:most]
        referrers = tuple(self._referrer(page, target) for page, target in told)
        loop = tuple(urls[each] for each in end.loop)
        return Broken(urls[node], end.why, end.detail, loop, referrers, total - len(told))

    def _find_seeds(self, unlinked: set[int], pairs: dict[int, _Pairs]) -> None:
        for seed in unlinked.difference(self._next.values()):
            self._seeds[self._ways[seed].end].append(seed)
        # In a loop every URL is a target: one that nothing leads to was begun by a seed.
        for end, (sources, _) in pairs.items():
            if not sources and not self._seeds[end]:
                self._seeds[end].append(end)

    def _shortest(self, pairs: _Pairs) -> dict[int, int]:
        """Choose for each page the link with the fewest redirects, then the least URL."""
        chosen: dict[int, int] = {}
        for source, target in zip(*pairs, strict=True):
            known = chosen.setdefault(source, target)
            if known != target:
                chosen[source] = min(known, target, key=self._rank)
        return chosen

    def _rank(self, target: int) -> tuple[int, str]:
        return self._ways[target].hops, self._urls[target]

    def _referrer(self, page: str | None, target: int) -> Referrer:
        hops = self._ways[target].hops
        via = []
        for _ in range(min(hops, _HOPS_TOLD)):
            via.append(self._urls[target])
            target = self._next[target]
        return Referrer(page, tuple(via), hops - len(via))


def _ways(ends: Iterable[int], onward: Mapping[int, int]) -> dict[int, _Way]:
    """Tell of every URL that leads to an end, by redirects or by none, which one and how far.

    A redirect has one target, so a URL leads to one end at most.
    """
    before = _backward(onward)
    ways = {end: _Way(0, end) for end in ends}
    reached = list(ways)
    for node in reached:  # grows as it goes
        hops, end = ways[node]
        fresh = [redirect for redirect in before.get(node, ()) if redirect not in ways]
        ways.update(dict.fromkeys(fresh, _Way(hops + 1, end)))
        reached.extend(fresh)
    return ways


def _backward(onward: Mapping[int, int]) -> dict[int, list[int]]:
    before: dict[int, list[int]] = {}
    for redirect, target in onward.items():
        before.setdefault(target, []).append(redirect)
    return before


def _detail(failure: Failure) -> str:
    target = failure.target
    if not target or target in failure.detail:
        return failure.detail
    return f"{failure.detail} -> {target}".lstrip()
