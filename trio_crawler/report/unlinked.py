"""Unlinked: what a crawl came upon without any page linking to it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from trio_crawler.model import Reason, Refused
from trio_crawler.page.urls import seen_key

# Links that are there, and were not followed; a sitemap may have the same URL. A tuple: a Reason
# is compared sooner than it is hashed.
_LINKED = (
    Reason.REL_NOFOLLOW,
    Reason.META_NOFOLLOW,
    Reason.HEADER_NOFOLLOW,
    Reason.DUPLICATE,
    Reason.TOO_DEEP,
)


class Unlinked:
    """Keep the numbers of URLs that were met otherwise than by a link: few, in most crawls.

    `numbers` gives each URL its number, in the order of their first mention; `onward` are the
    redirects. Both are the caller's, and grow.
    """

    def __init__(self, numbers: defaultdict[str, int], onward: Mapping[int, int]) -> None:
        self._numbers = numbers
        self._onward = onward
        self._alone: set[int] = set()
        self._good: set[int] = set()
        # Hashes, as such URLs can be many and are hardly ever asked for.
        self._linked: set[int] = set()

    def meet(self, url: str, good: bool = False, seed: bool = False) -> int:
        """Number a URL that an outcome is of, or that a redirect leads to."""
        known = len(self._numbers)
        number = self._numbers[url]
        if number == known and not seed:
            self._alone.add(number)
        if good and number in self._alone:
            self._good.add(number)
        return number

    def link(self, page: int, targets: Iterable[int], refused: Iterable[Refused]) -> None:
        """Note what a page links to."""
        if self._alone:
            own = page in self._alone
            self._alone.difference_update(targets)
            if own:
                self._alone.add(page)
        for url, why in refused:
            if why in _LINKED:
                self._linked.add(hash(seen_key(url)))

    def pages(self, seeds: Iterable[str]) -> Iterator[str]:
        """Give the good pages among those that no page links to, nor a seed leads to."""
        urls = list(self._numbers)
        alone = self._without_led(seeds)
        # A link may spell an escape in another way than the outcome does.
        linked = self._linked | {
            hash(seen_key(url))
            for number, url in enumerate(urls)
            if "%" in url and number not in alone
        }
        for number in alone & self._good:
            key = seen_key(urls[number])
            same = self._numbers.get(key, number)
            if same in alone and hash(key) not in linked:
                yield urls[number]

    def _without_led(self, seeds: Iterable[str]) -> set[int]:
        """Leave out the seeds, and what is led to by redirects from there or from linked URLs."""
        alone = self._alone.difference(
            self._numbers[seed] for seed in seeds if seed in self._numbers
        )
        for number in self._onward:
            while number not in alone and number in self._onward:
                number = self._onward[number]
                if number not in alone:
                    break
                alone.discard(number)
        return alone
