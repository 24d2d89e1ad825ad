"""The links of a crawl: broken links with their referrers, and good pages without a link to them.

URLs are numbered (about 20 bytes each, besides the compressed text), and a link is a pair of
numbers. Most targets are good pages; their referrers are not needed, so links to them are dropped.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import nsmallest
from typing import NamedTuple

from trio_crawler.model import (
    Failure,
    Outcome,
    Page,
    Purpose,
    Reason,
    Redirect,
    RejectedLink,
    Skipped,
)
from trio_crawler.page.urls import seen_key
from trio_crawler.report.left_out import LeftOut
from trio_crawler.report.link_graph import LinkGraph, Pairs
from trio_crawler.report.summary import EARLY, is_good
from trio_crawler.report.twins import TlsTwins
from trio_crawler.report.url_table import UrlTable

LOOP = "redirect loop"

_MAX_HOPS_LISTED = 10

# A link that was rejected for one of these reasons still links its target, so the target is no
# orphan. A tuple, since comparing a Reason is faster than hashing it.
_EXISTING = (
    Reason.REL_NOFOLLOW,
    Reason.META_NOFOLLOW,
    Reason.HEADER_NOFOLLOW,
    Reason.DUPLICATE,
    Reason.TOO_DEEP,
    Reason.NOT_INCLUDED,
)


class Referrer(NamedTuple):
    """A page that leads to a broken URL, and the redirects between the two.

    `page` is None for a seed, and the URL of a sitemap if only a sitemap leads there. `via` has
    the URLs from the one that the page links to up to the last one before the broken URL: the
    first 10 of a long chain, and `omitted` counts the others.
    """

    page: str | None
    via: tuple[str, ...] = ()
    omitted: int = 0


@dataclass(frozen=True, slots=True)
class Broken:
    """A URL without a good page, and its referrers.

    `why` is the status (400 or more), the reason of a failure, "bad_url" for an href that is not
    a URL, or "redirect loop". A loop is listed once, under the smallest of its URLs, and `loop`
    has all its URLs, that one first. `referrers` has each page once, by its shortest path, seeds
    first; `omitted` counts the referrers that are left out.
    """

    url: str
    why: str
    detail: str = ""
    loop: tuple[str, ...] = ()
    referrers: tuple[Referrer, ...] = ()
    omitted: int = 0


class _BrokenEnd(NamedTuple):
    why: str
    detail: str = ""
    loop: tuple[int, ...] = ()


_MALFORMED = _BrokenEnd(Reason.BAD_URL)


class _Path(NamedTuple):
    """The broken end that a URL leads to, and the number of redirects on the way."""

    hops: int
    end: int


class Links:
    """The links of a crawl, collected outcome by outcome, in an empty `graph`.

    The outcomes come in any order, except that one with `again` follows the redirect of its URL.
    """

    def __init__(self, graph: LinkGraph | None = None) -> None:
        self._numbers = UrlTable()
        self._graph = LinkGraph() if graph is None else graph
        self._redirects: dict[int, int] = {}
        self._ends: dict[int, _BrokenEnd] = {}
        self._unlinked = UnlinkedPages(self._numbers, self._redirects)
        self.twins = TlsTwins()
        self.left_out = LeftOut(self._numbers.knows)

    def __repr__(self) -> str:
        urls, links, ends = len(self._numbers), len(self._graph), len(self._ends)
        return f"<Links urls={urls} links={links} broken={ends}>"

    def add(self, outcome: Outcome) -> None:
        """Record one outcome; each URL has one, or with `again` another one after a redirect."""
        if outcome.again:
            number = self._numbers.number(outcome.url)
            self._redirects.pop(number, None)
            self._ends.pop(number, None)
        self.left_out.add(outcome)
        match outcome:
            case Page():
                self._add_page(outcome)
            case Redirect():
                self._add_redirect(outcome)
            case Failure():
                number = self._numbers.number(outcome.url)
                self._ends[number] = _BrokenEnd(outcome.reason, _detail(outcome))
                self.twins.add_failure(number, outcome)
            # At the early end of a crawl there may be very many, and no other links come.
            case Skipped() if outcome.reason not in EARLY:
                self._graph.drop_links_to(self._numbers.number(outcome.url))

    @property
    def problems(self) -> int:
        """The number of broken URLs, without the cost of finding their referrers."""
        twins = sum(number in self._ends for number in self.twins.numbers)
        return len(self._ends) - twins + len(self._loops())

    @property
    def loops(self) -> int:
        """The number of redirect loops."""
        return len(self._loops())

    def unlinked(self, seeds: Iterable[str]) -> Iterable[str]:
        """Return the good pages (2xx, 304) that are not seeds and have no link to them, unordered.

        The target of a redirect from a linked URL or from a seed counts as linked. A page's link
        to itself does not count. A link counts also if it was not followed because of nofollow,
        because of its depth, or because its page is a duplicate.
        """
        return self._unlinked.find(seeds)

    def broken(
        self,
        limit: int | None = None,
        source: Callable[[str], str | None] = lambda url: None,
        most: int | None = None,
        among: Collection[str] | None = None,
        *,
        twins: bool = False,
        malformed: bool = True,
    ) -> list[Broken]:
        """Return the broken URLs, sorted, each with its first `limit` referrers or with all.

        With `most` only the first so many of them are returned, with `among` those of these URLs.
        URLs among the `TlsTwins` are left out; with `twins` they are returned, and no others.
        Without `malformed` the hrefs that are not URLs are left out.

        `source` returns the sitemap that lists a URL without links; None for a seed.

        Broken are pages with a status of 400 or more, failures, loops of redirects, and hrefs
        that are not URLs. A redirect that leads to one of these is not listed itself; its
        referrers are listed under the broken URL. Skipped URLs, and redirects that leave the
        scope, are not broken.
        """
        ends = self._all_ends(twins=twins)
        if not malformed:
            ends = {number: end for number, end in ends.items() if end != _MALFORMED}
        if among is not None:
            numbers = map(self._numbers.known, among)
            ends = {number: ends[number] for number in numbers if number in ends}
        if most is not None and len(ends) > most:
            first = nsmallest(most, ends, key=self._numbers.urls.__getitem__)
            ends = {number: ends[number] for number in first}
        paths = _paths(ends, self._redirects)
        finder = _ReferrerFinder(self._numbers.urls, self._redirects, paths, source)
        pairs = finder.group_links(self._graph)
        found = (finder.broken(node, end, pairs[node], limit) for node, end in ends.items())
        return sorted(found, key=lambda broken: broken.url)

    def malformed(self) -> dict[str, set[str]]:
        """Return the hrefs of each page that are not URLs."""
        bad = {number for number, end in self._ends.items() if end == _MALFORMED}
        found = defaultdict[str, set[str]](set)
        if bad:
            urls = self._numbers.urls
            for page, href in self._graph.links_to(bad):
                found[urls[page]].add(urls[href])
        return found

    def ends(self) -> Iterator[tuple[str, str]]:
        """Yield URL and `why` of each broken URL, in any order."""
        urls = self._numbers.urls
        return ((urls[number], end.why) for number, end in self._all_ends().items())

    def _all_ends(self, *, twins: bool = False) -> dict[int, _BrokenEnd]:
        """Return the broken URLs that are no `TlsTwins`, or with `twins` those that are."""
        apart = self.twins.numbers
        if twins:
            return {number: self._ends[number] for number in apart if number in self._ends}
        ends = self._ends | {loop[0]: _BrokenEnd(LOOP, "", loop) for loop in self._loops()}
        return {number: end for number, end in ends.items() if number not in apart}

    def _add_page(self, page: Page) -> None:
        number = self._unlinked.record(page.url, is_good(page), page.referrer is None)
        if is_good(page):
            self.twins.add_page(page)
        if page.status < 400:
            self._graph.drop_links_to(number)
        else:
            self._ends[number] = _BrokenEnd(str(page.status))
        targets = self._numbers.numbers(page.links)
        if page.folded_into is not None:
            # The crawl requested the canonical page as if this page linked to it.
            targets.append(self._numbers.number(page.folded_into))
        self._graph.add(number, targets)
        self._unlinked.record_links(number, targets, page.rejected)
        malformed = [href for href, reason in page.rejected if reason is Reason.BAD_URL]
        if malformed:
            ids = self._numbers.numbers(malformed)
            self._graph.add(number, ids)
            self._ends.update(dict.fromkeys(ids, _MALFORMED))

    def _add_redirect(self, redirect: Redirect) -> None:
        number = self._unlinked.record(redirect.url, seed=redirect.referrer is None)
        if redirect.rejected is Reason.BAD_URL:
            self._ends[number] = _BrokenEnd(Reason.BAD_URL, f"-> {redirect.target}")
        else:
            # A rejected target has no outcome, so it is not broken, unless it was admitted by
            # another path. Requests have no fragment.
            target = redirect.target.partition("#")[0]
            self._redirects[number] = self._unlinked.record(target)

    def _loops(self) -> list[tuple[int, ...]]:
        """Find the cycles among the redirects, each from its smallest URL on."""
        loops = []
        visited: dict[int, int] = {}
        for start in self._redirects:
            path = []
            node = start
            while node in self._redirects and node not in visited:
                visited[node] = start
                path.append(node)
                node = self._redirects[node]
            if path and visited.get(node) == start:
                loops.append(path[path.index(node) :])
        return self._from_smallest(loops)

    def _from_smallest(self, loops: list[list[int]]) -> list[tuple[int, ...]]:
        if not loops:
            return []
        urls = self._numbers.urls
        firsts = [loop.index(min(loop, key=urls.__getitem__)) for loop in loops]
        return [(*loop[at:], *loop[:at]) for loop, at in zip(loops, firsts, strict=True)]


class _ReferrerFinder:
    """Find the pages that lead to a broken end, each with its shortest path."""

    def __init__(
        self,
        urls: Sequence[str],
        redirects: Mapping[int, int],
        paths: dict[int, _Path],
        source: Callable[[str], str | None],
    ) -> None:
        self._urls = urls
        self._source = source
        self._redirects = redirects
        self._paths = paths
        self._seeds: defaultdict[int, list[int]] = defaultdict(list)

    def group_links(self, graph: LinkGraph) -> dict[int, Pairs]:
        """Return the links by the broken end that they lead to; record the URLs without links."""
        paths = self._paths
        pairs: dict[int, Pairs] = {path.end: (array("I"), array("I")) for path in paths.values()}
        unlinked = set(paths)
        for source, target in graph.links_to(paths):
            unlinked.discard(target)
            sources, targets = pairs[paths[target].end]
            sources.append(source)
            targets.append(target)
        self._find_seeds(unlinked, pairs)
        return pairs

    def broken(self, node: int, end: _BrokenEnd, pairs: Pairs, limit: int | None) -> Broken:
        """Describe one broken end, with up to `limit` referrers."""
        urls = self._urls
        started = sorted(self._seeds[node], key=urls.__getitem__)
        seeds = [(self._source(urls[start]), start) for start in started]
        pages = self._shortest(pairs)
        total = len(seeds) + len(pages)
        left = max((total if limit is None else limit) - len(seeds), 0)
        first = nsmallest(left, pages, key=urls.__getitem__)
        listed = [*seeds, *((urls[page], pages[page]) for page in first)][:limit]
        referrers = tuple(self._referrer(page, target) for page, target in listed)
        loop = tuple(urls[each] for each in end.loop)
        return Broken(urls[node], end.why, end.detail, loop, referrers, total - len(listed))

    def _find_seeds(self, unlinked: set[int], pairs: dict[int, Pairs]) -> None:
        for seed in unlinked.difference(self._redirects.values()):
            self._seeds[self._paths[seed].end].append(seed)
        # In a loop every URL is a target: a loop without a link to it began with a seed.
        for end, (sources, _) in pairs.items():
            if not sources and not self._seeds[end]:
                self._seeds[end].append(end)

    def _shortest(self, pairs: Pairs) -> dict[int, int]:
        """Choose for each page the link with the fewest redirects, then the smallest URL."""
        chosen: dict[int, int] = {}
        for source, target in zip(*pairs, strict=True):
            known = chosen.setdefault(source, target)
            if known != target:
                chosen[source] = min(known, target, key=self._rank)
        return chosen

    def _rank(self, target: int) -> tuple[int, str]:
        return self._paths[target].hops, self._urls[target]

    def _referrer(self, page: str | None, target: int) -> Referrer:
        hops = self._paths[target].hops
        via = []
        for _ in range(min(hops, _MAX_HOPS_LISTED)):
            via.append(self._urls[target])
            target = self._redirects[target]
        return Referrer(page, tuple(via), hops - len(via))


def _paths(ends: Iterable[int], redirects: Mapping[int, int]) -> dict[int, _Path]:
    """Return the path of every URL that leads to an end, directly or by redirects.

    A redirect has one target, so a URL leads to at most one end.
    """
    sources = _sources(redirects)
    paths = {end: _Path(0, end) for end in ends}
    reached = list(paths)
    for node in reached:  # It grows during the loop.
        hops, end = paths[node]
        new = [redirect for redirect in sources.get(node, ()) if redirect not in paths]
        paths.update(dict.fromkeys(new, _Path(hops + 1, end)))
        reached.extend(new)
    return paths


def _sources(redirects: Mapping[int, int]) -> dict[int, list[int]]:
    sources: dict[int, list[int]] = {}
    for redirect, target in redirects.items():
        sources.setdefault(target, []).append(redirect)
    return sources


def _detail(failure: Failure) -> str:
    if failure.about is Purpose.ROBOTS:
        return f"robots.txt: {failure.detail}" if failure.detail else "robots.txt"
    # The detail of a redirect too many names its target.
    return failure.detail or (f"-> {failure.target}" if failure.target else "")


class UnlinkedPages:
    """The URLs that were first found in another way than by a link; most crawls have few.

    `numbers` maps each URL to its number, in the order of their first mention; `redirects` maps
    the number of a redirect to the number of its target. The caller adds to both.
    """

    def __init__(self, numbers: UrlTable, redirects: Mapping[int, int]) -> None:
        self._numbers = numbers
        self._redirects = redirects
        self._unlinked: set[int] = set()
        self._good: set[int] = set()
        # Hashes, since such URLs can be many and are rarely needed.
        self._rejected: set[int] = set()

    def record(self, url: str, good: bool = False, seed: bool = False) -> int:
        """Record the URL of an outcome, or the target of a redirect; return its number."""
        known = len(self._numbers)
        number = self._numbers.number(url)
        if number == known and not seed:
            self._unlinked.add(number)
        if good and number in self._unlinked:
            self._good.add(number)
        return number

    def record_links(
        self, page: int, targets: Iterable[int], rejected: Iterable[RejectedLink]
    ) -> None:
        """Record the links of a page, and the rejected ones among them."""
        if self._unlinked:
            own = page in self._unlinked
            self._unlinked.difference_update(targets)
            if own:
                self._unlinked.add(page)
        for url, why in rejected:
            if why in _EXISTING:
                self._rejected.add(hash(seen_key(url)))

    def find(self, seeds: Iterable[str]) -> Iterator[str]:
        """Yield the good pages that neither a page nor a seed leads to."""
        urls = self._numbers.urls
        unlinked = self._without_reachable(seeds)
        # The escapes of a link may be spelled otherwise than those of the outcome.
        linked = self._rejected | {
            hash(seen_key(url))
            for number, url in enumerate(urls)
            if "%" in url and number not in unlinked
        }
        for number in unlinked & self._good:
            key = seen_key(urls[number])
            same = self._numbers.known(key)
            if (number if same is None else same) in unlinked and hash(key) not in linked:
                yield urls[number]

    def _without_reachable(self, seeds: Iterable[str]) -> set[int]:
        """Return the unlinked URLs without seeds, and without targets of linked redirects."""
        unlinked = self._unlinked.difference(
            number for seed in seeds if (number := self._numbers.known(seed)) is not None
        )
        for number in self._redirects:
            while number not in unlinked and number in self._redirects:
                number = self._redirects[number]
                if number not in unlinked:
                    break
                unlinked.discard(number)
        return unlinked
