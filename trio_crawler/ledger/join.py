"""What the ends and links of a ledger mean together: broken URLs with their referrers, orphans."""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from heapq import nsmallest
from typing import NamedTuple, TypeAlias

import msgspec

from trio_crawler.ledger.ledger import Ledger, Numbers, numbers_of
from trio_crawler.ledger.tables import FAILURE, NO_URL, PAGE, REDIRECT, ROBOTS, Row
from trio_crawler.model import Reason

LOOP = "redirect loop"

_MAX_HOPS_LISTED = 10

# A link that was rejected for one of these reasons still links its target, so the target is no
# orphan.
_EXISTING = (
    Reason.REL_NOFOLLOW,
    Reason.META_NOFOLLOW,
    Reason.HEADER_NOFOLLOW,
    Reason.DUPLICATE,
    Reason.TOO_DEEP,
    Reason.NOT_INCLUDED,
)

_Pairs: TypeAlias = "tuple[Numbers, Numbers]"
"""The sources and the targets of some links, side by side."""


class Referrer(NamedTuple):
    """A page that leads to a broken URL, and the redirects between the two.

    `page` is None for a seed, and the URL of a sitemap if only a sitemap leads there. `via` has
    the URLs from the one that the page links to up to the last one before the broken URL: the
    first 10 of a long chain, and `omitted` counts the others.
    """

    page: str | None
    via: tuple[str, ...] = ()
    omitted: int = 0


class Broken(msgspec.Struct, frozen=True):
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

    @property
    def is_seed(self) -> bool:
        """Whether only a seed leads to it."""
        return not self.omitted and all(each.page is None for each in self.referrers)


class BrokenEnd(NamedTuple):
    """Why a URL is broken."""

    url: str
    why: str
    detail: str = ""
    loop: tuple[int, ...] = ()


class _Path(NamedTuple):
    """The broken end that a URL leads to, and the number of redirects on the way."""

    hops: int
    end: int


class Join:
    """The join of a ledger, which does not grow any more.

    `redirects` has for each URL that redirects the URL that it leads to, `ends` the broken URLs,
    all by their numbers.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self.redirects: dict[int, int] = {}
        self.ends: dict[int, BrokenEnd] = {}
        usual, urls = ledger.usual, ledger.urls.urls
        for url, row in ledger.ends(REDIRECT):
            number = row.number
            if row.rejected is Reason.BAD_URL:
                self.ends[number] = BrokenEnd(url, Reason.BAD_URL, f"-> {urls[row.target]}")
            elif usual(row.target) != number or urls[row.target] == url:
                # A rejected target has no outcome, so it is not broken, unless it was admitted by
                # another path. Another spelling of the same URL is no loop, but the end: it counts
                # as seen.
                self.redirects[number] = usual(row.target)
        if ledger.errors > len(ledger.malformed):
            for url, row in ledger.ends(PAGE, FAILURE):
                if row.kind == FAILURE:
                    number = row.number
                    why = str(row.reason)
                    self.ends[number] = BrokenEnd(url, why, self._detail(number, row))
                elif row.status >= 400:
                    self.ends[row.number] = BrokenEnd(url, str(row.status))
        self.ends |= {
            number: BrokenEnd(urls[number], Reason.BAD_URL) for number in ledger.malformed
        }
        self.loops = self._loops()
        self.ends |= {
            loop[0]: BrokenEnd(ledger.url(loop[0]), LOOP, "", loop) for loop in self.loops
        }

    @property
    def problems(self) -> int:
        """The number of broken URLs."""
        return len(self.ends)

    def broken(
        self,
        limit: int | None = None,
        source: Callable[[str], str | None] = lambda url: None,
        most: int | None = None,
        among: Collection[int] | None = None,
        *,
        malformed: bool = True,
    ) -> list[Broken]:
        """Return the broken URLs, sorted, each with its first `limit` referrers or with all.

        With `most` only the first so many of them are returned, with `among` those with these
        numbers. Without `malformed` the hrefs that are not URLs are left out.

        `source` returns the sitemap that lists a URL without links; None for a seed.

        Broken are pages with a status of 400 or more, failures, loops of redirects, and hrefs
        that are not URLs. A redirect that leads to one of these is not listed itself; its
        referrers are listed under the broken URL. Skipped URLs, and redirects that leave the
        scope, are not broken.
        """
        ends = {
            number: end
            for number, end in self.ends.items()
            if malformed or number not in self._ledger.malformed
        }
        if among is not None:
            ends = {number: ends[number] for number in among if number in ends}
        if most is not None and len(ends) > most:
            first = nsmallest(most, ends, key=lambda number: ends[number].url)
            ends = {number: ends[number] for number in first}
        paths = _paths(ends, self.redirects)
        finder = _ReferrerFinder(self._ledger, self.redirects, paths, source)
        pairs = finder.group_links()
        found = (finder.broken(node, end, pairs[node], limit) for node, end in ends.items())
        return sorted(found, key=lambda broken: broken.url)

    def most_linked(self, number: int) -> list[int]:
        """Return the numbers of so many broken URLs, those that most pages lead to."""
        paths, pages = _paths(self.ends, self.redirects), Counter[int]()
        for _, hits in _links(self._ledger, paths):
            pages.update({paths[target].end for target in hits})
        return nsmallest(number, pages, key=lambda end: (-pages[end], self.ends[end].url))

    def malformed(self) -> dict[str, set[str]]:
        """Return the hrefs of each page that are not URLs."""
        found = defaultdict[str, set[str]](set)
        if self._ledger.malformed:
            urls = self._ledger.urls.urls
            for each in self._ledger.outlinks():
                if packed := each.rejected.get(Reason.BAD_URL):
                    found[urls[each.page]].update(urls[href] for href in numbers_of(packed))
        return found

    def unlinked(self, seeds: Iterable[str], sitemaps: Iterable[str] = ()) -> Iterable[str]:
        """Return the good pages (2xx, 304) that are not seeds and have no link to them, unordered.

        The target of a redirect from a linked URL or from a seed counts as linked. A page's link
        to itself does not count. A link counts also if it was not followed because of nofollow,
        because of its depth, or because its page is a duplicate. A sitemap has no links, although
        it may be a page as well.
        """
        ledger = self._ledger
        apart = set(map(ledger.number, sitemaps))
        usual, pages = ledger.usual, dict[int, str]()
        alone = set[int]()
        for url, row in ledger.ends(PAGE, REDIRECT):
            if row.referrer == NO_URL:
                continue
            found_on = ledger.end(row.referrer)
            # A page that led to it has a link to it.
            if found_on is None or found_on.kind != PAGE or found_on.number in apart:
                alone.add(row.number)
                if row.good:
                    pages[row.number] = url
        alone.difference_update(
            number for number in map(ledger.number, seeds) if number is not None
        )
        wanted = ledger.spellings(alone)
        for each in ledger.outlinks() if wanted else ():
            hits = wanted.intersection(each.followed)
            for reason in _EXISTING if each.rejected else ():
                if packed := each.rejected.get(reason):
                    hits |= wanted.intersection(numbers_of(packed))
            if hits:
                alone -= set(map(usual, hits)) - {usual(each.page)}
        for number in self.redirects:
            while number not in alone and number in self.redirects:
                number = self.redirects[number]
                if number not in alone:
                    break
                alone.discard(number)
        return (url for number, url in pages.items() if number in alone)

    def _detail(self, number: int, failure: Row) -> str:
        detail = self._ledger.details.get(number, "")
        if failure.flags & ROBOTS:
            return f"robots.txt: {detail}" if detail else "robots.txt"
        # The detail of a redirect too many names its target.
        no_target = detail or failure.target == NO_URL
        return detail if no_target else f"-> {self._ledger.urls.urls[failure.target]}"

    def _loops(self) -> list[tuple[int, ...]]:
        """Find the cycles among the redirects, each from its smallest URL on."""
        loops = []
        visited: dict[int, int] = {}
        for start in self.redirects:
            path = []
            node = start
            while node in self.redirects and node not in visited:
                visited[node] = start
                path.append(node)
                node = self.redirects[node]
            if path and visited.get(node) == start:
                loop = path[path.index(node) :]
                at = loop.index(min(loop, key=self._ledger.url))
                loops.append((*loop[at:], *loop[:at]))
        return loops


class _ReferrerFinder:
    """Find the pages that lead to a broken end, each with its shortest path."""

    def __init__(
        self,
        ledger: Ledger,
        redirects: Mapping[int, int],
        paths: dict[int, _Path],
        source: Callable[[str], str | None],
    ) -> None:
        self._ledger = ledger
        self._url = ledger.url
        self._source = source
        self._redirects = redirects
        self._paths = paths
        self._seeds: defaultdict[int, list[int]] = defaultdict(list)

    def group_links(self) -> dict[int, _Pairs]:
        """Return the links by the broken end that they lead to; record the URLs without links."""
        paths = self._paths
        pairs: dict[int, _Pairs] = {path.end: (array("I"), array("I")) for path in paths.values()}
        unlinked = set(paths)
        for source, hits in _links(self._ledger, paths) if paths else ():
            unlinked -= hits
            for target in hits:
                sources, targets = pairs[paths[target].end]
                sources.append(source)
                targets.append(target)
        for seed in unlinked.difference(self._redirects.values()):
            self._seeds[paths[seed].end].append(seed)
        # In a loop every URL is a target: a loop without a link to it began with a seed.
        for end, (sources, _) in pairs.items():
            if not sources and not self._seeds[end]:
                self._seeds[end].append(end)
        return pairs

    def broken(self, node: int, end: BrokenEnd, pairs: _Pairs, limit: int | None) -> Broken:
        """Describe one broken end, with up to `limit` referrers."""
        url = self._url
        started = sorted(self._seeds[node], key=url)
        seeds = [(self._source(url(start)), start) for start in started]
        pages = self._shortest(pairs)
        total = len(seeds) + len(pages)
        left = max((total if limit is None else limit) - len(seeds), 0)
        first = nsmallest(left, pages, key=url)
        listed = [*seeds, *((url(page), pages[page]) for page in first)][:limit]
        referrers = tuple(self._referrer(page, target) for page, target in listed)
        loop = tuple(map(url, end.loop))
        return Broken(end.url, end.why, end.detail, loop, referrers, total - len(listed))

    def _shortest(self, pairs: _Pairs) -> dict[int, int]:
        """Choose for each page the link with the fewest redirects, then the smallest URL."""
        chosen: dict[int, int] = {}
        for source, target in zip(*pairs, strict=True):
            known = chosen.setdefault(source, target)
            if known != target:
                chosen[source] = min(
                    known, target, key=lambda each: (self._paths[each].hops, self._url(each))
                )
        return chosen

    def _referrer(self, page: str | None, target: int) -> Referrer:
        hops = self._paths[target].hops
        via = []
        for _ in range(min(hops, _MAX_HOPS_LISTED)):
            via.append(self._url(target))
            target = self._redirects[target]
        return Referrer(page, tuple(via), hops - len(via))


def _links(ledger: Ledger, paths: Iterable[int]) -> Iterator[tuple[int, set[int]]]:
    """Yield each page with the URLs among the `paths` that it links to."""
    wanted, usual = ledger.spellings(paths), ledger.usual
    for each in ledger.outlinks():
        hits = wanted.intersection(each.followed)
        if packed := each.rejected.get(Reason.BAD_URL):
            hits |= wanted.intersection(numbers_of(packed))
        if hits:
            yield each.page, set(map(usual, hits))


def _paths(ends: Iterable[int], redirects: Mapping[int, int]) -> dict[int, _Path]:
    """Return the path of every URL that leads to an end, directly or by redirects.

    A redirect has one target, so a URL leads to at most one end.
    """
    sources: dict[int, list[int]] = {}
    for redirect, target in redirects.items():
        sources.setdefault(target, []).append(redirect)
    paths = {end: _Path(0, end) for end in ends}
    reached = list(paths)
    for node in reached:  # It grows during the loop.
        hops, end = paths[node]
        new = [redirect for redirect in sources.get(node, ()) if redirect not in paths]
        paths.update(dict.fromkeys(new, _Path(hops + 1, end)))
        reached.extend(new)
    return paths
