"""Outlinks: which links of a page are followed, and why the others are not."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace
from itertools import starmap
from typing import NamedTuple

import trio

from trio_crawler.model import Anchor, Job, Outcome, Page, Reason, Refused, Response
from trio_crawler.page.html.head import canonical_in_headers
from trio_crawler.page.read import Facts
from trio_crawler.page.urls import seen_key, without_userinfo
from trio_crawler.policy.limits import Limits
from trio_crawler.policy.robots.directives import header_directives, meta_directives
from trio_crawler.policy.traps.sessions import without_session
from trio_crawler.policy.traps.watch import Watch

_LINK, _ROBOTS = b"link", b"x-robots-tag"
_LENGTHS = (len(_LINK), len(_ROBOTS))
_MOST_HELD = 100_000
# Links that are judged before others have their turn.
_TURN = 50


class Found(NamedTuple):
    """Hold what a page says of URLs, its own and others, and the jobs that follow from it."""

    links: tuple[str, ...]
    refused: tuple[Refused, ...]
    successors: list[Job]
    canonical: str | None = None
    robots: tuple[str, ...] = ()
    duplicate_of: str | None = None
    anchors: Mapping[str, Anchor] = {}


class Outlinks:
    """Judge the links of pages.

    `knows` tells which URLs need no judging any more. Of the others `outside` refuses those that
    nobody may link to; `trapped` counts the rest, and refuses what there is too much of. What is
    said of not following, for everybody or for `agent`, is obeyed if `nofollow`. With a `watch`
    session ids are cut out of links, and what only a duplicate links to is not followed. With
    `fold` a page that names another as its canonical one counts as a duplicate of that.
    """

    def __init__(
        self,
        limits: Limits,
        knows: Callable[[Collection[str]], AbstractSet[str]],
        outside: Callable[[Job], Reason | None],
        trapped: Callable[[Job], Reason | None] = lambda job: None,
        agent: str = "",
        nofollow: bool = True,
        watch: Watch | None = None,
        fold: bool = False,
    ) -> None:
        self._limits = limits
        self._knows = knows
        self._outside = outside
        self._trapped = trapped
        self._agent = agent
        self._nofollow = nofollow
        self._watch = watch
        self.folds = fold
        # Two pages that name each other must not both be folded.
        self._folded: set[str] = set()
        # If the canonical page does not come, the links of those folded into it are followed.
        self._came: dict[str, bool] = {}
        self._held: defaultdict[str, list[tuple[Job, list[str]]]] = defaultdict(list)
        self._holding = 0

    async def of(self, job: Job, response: Response, facts: Facts) -> Found:
        """Judge the links of the page that came for a job."""
        said = {name.lower() for name, _ in response.headers.raw if len(name) in _LENGTHS}
        header = header_directives(response.headers, self._agent) if _ROBOTS in said else ()
        meta = meta_directives(facts.meta_robots) if facts.meta_robots else ()
        canonical = self._canonical(job, response, facts) if _LINK in said else facts.canonical
        successors, duplicate_of = self._duplicate(job, response, facts, canonical)
        reason = self._reason(header, meta, duplicate_of)
        renamed: dict[str, str] = {}
        links, refused = await self._judge(job, facts, reason, successors, renamed)
        anchors = facts.anchors
        if renamed:
            anchors = {renamed.get(url, url): anchor for url, anchor in anchors.items()}
        if self._watch is not None and "html" in facts.content_type and response.status < 300:
            self._watch.led(job.url, response.body, [found.url for found in successors])
        if self.folds and duplicate_of:
            self._hold(job, seen_key(duplicate_of), refused)
        robots = tuple(dict.fromkeys((*header, *meta)))
        return Found(links, refused, successors, canonical, robots, duplicate_of, anchors)

    def _canonical(self, job: Job, response: Response, facts: Facts) -> str | None:
        named = canonical_in_headers(response.headers.get_list("link"), job.url)
        return named or facts.canonical

    def _duplicate(
        self, job: Job, response: Response, facts: Facts, canonical: str | None
    ) -> tuple[list[Job], str | None]:
        """Return which page this one is a duplicate of, and the job for it if it is new."""
        room = self._holding < _MOST_HELD
        if self.folds and room and canonical and self._is_other(job, canonical):
            target = Job(canonical, job.depth, self._limits.max_redirects, job.url)
            known = canonical in self._knows([canonical])
            if known or not (self._outside(target) or self._trapped(target)):
                self._folded.add(seen_key(job.url))
                return ([] if known else [target]), canonical
        return [], self._copied(job, response, facts)

    def _copied(self, job: Job, response: Response, facts: Facts) -> str | None:
        """Return the first page that said the very same, if nothing new follows from this one."""
        if self._watch is None:
            return None
        if facts.digest is not None:
            return self._watch.saw_again(job.url, facts.digest, facts.content_type)
        if not 200 <= response.status < 300:
            return None
        return self._watch.saw(job.url, response.body, facts.content_type)

    def _is_other(self, job: Job, canonical: str) -> bool:
        """Tell whether a page may be folded into its canonical one, which may yet come."""
        key = seen_key(canonical)
        free = key not in self._folded and self._came.get(key, True)
        return free and key != seen_key(job.url)

    def _hold(self, job: Job, first: str, refused: Iterable[Refused]) -> None:
        """Keep what only stands back for another page, until that has come."""
        links = [self._plain(link.url) for link in refused if link.reason is Reason.DUPLICATE]
        if links and first not in self._came:
            self._held[first].append((job, links))
            self._holding += len(links)

    def ended(self, job: Job, *, well: bool) -> list[Job]:
        """Note how a job ended; return what pages that were folded into it then link to.

        To be called for each job if this `folds`.
        """
        key = seen_key(job.url)
        self._came[key] = well
        held = self._held.pop(key, [])
        self._holding -= sum(len(links) for _, links in held)
        return [] if well else [link for alias, links in held for link in self._new(alias, links)]

    def recall(self, outcome: Outcome) -> None:
        """Take over what an outcome of an earlier run has said of canonical pages."""
        key = seen_key(outcome.url)
        self._came[key] = came_well(outcome)
        self._holding -= sum(len(links) for _, links in self._held.pop(key, []))
        first = outcome.duplicate_of if isinstance(outcome, Page) else None
        if isinstance(outcome, Page) and first and first == outcome.canonical:
            self._folded.add(key)
            job = Job(outcome.url, outcome.depth, referrer=outcome.referrer)
            self._hold(job, seen_key(first), outcome.refused)

    def _new(self, page: Job, links: Collection[str]) -> Iterator[Job]:
        known = self._knows(links)
        for url in links:
            job = Job(url, page.depth + 1, self._limits.max_redirects, page.url)
            if url not in known and not (self._outside(job) or self._trapped(job)):
                yield job

    def _reason(
        self, header: Iterable[str], meta: Iterable[str], duplicate_of: str | None
    ) -> Reason | None:
        """Return why no new link of a page is to be followed."""
        if self._nofollow and "nofollow" in header:
            return Reason.HEADER_NOFOLLOW
        if self._nofollow and "nofollow" in meta:
            return Reason.META_NOFOLLOW
        return Reason.DUPLICATE if duplicate_of else None

    async def _judge(
        self,
        job: Job,
        facts: Facts,
        reason: Reason | None,
        successors: list[Job],
        renamed: dict[str, str],
    ) -> tuple[tuple[str, ...], tuple[Refused, ...]]:
        """Add a job to `successors` for each link that is new and to be followed.

        Links that go by another URL are added to `renamed`.
        """
        known = self._knows(facts.links)
        marked = facts.nofollow if self._nofollow else frozenset()
        refused: dict[str, Reason] = {}
        fresh = [url for url in facts.links if url not in known]
        for number, url in enumerate(fresh, 1):
            if not number % _TURN:
                # A robots.txt full of wildcards may take 3 ms for a link.
                await trio.lowlevel.checkpoint()
            successor = Job(url, job.depth + 1, self._limits.max_redirects, job.url)
            # That a link leads elsewhere says more than any other reason.
            against = self._outside(successor)
            if against is None:
                if (plain := self._plain(url)) is not url:
                    renamed[url] = plain
                    if plain in known or self._knows([plain]):
                        continue
                    successor = replace(successor, url=plain)
                    # What was cut may have hidden where it leads.
                    against = self._outside(successor)
                unwanted = Reason.REL_NOFOLLOW if url in marked else None
                against = against or _stronger(reason, unwanted) or self._trapped(successor)
            if against is None:
                successors.append(successor)
            else:
                refused[url] = against
        return _kept(facts.links, refused, renamed), _refused(facts.malformed, refused)

    def _plain(self, url: str) -> str:
        return url if self._watch is None else without_session(url)


def _stronger(reason: Reason | None, unwanted: Reason | None) -> Reason | None:
    """Choose between what a page says of all its links and what it says of one."""
    # What is only held back for another page may yet be followed.
    return (unwanted or reason) if reason is Reason.DUPLICATE else (reason or unwanted)


def came_well(outcome: Outcome) -> bool:
    """Tell whether a page came, or is known to be what it was before (304)."""
    return isinstance(outcome, Page) and (outcome.ok or outcome.status == 304)


def _kept(
    links: tuple[str, ...], refused: Collection[str], renamed: dict[str, str]
) -> tuple[str, ...]:
    if renamed:
        links = tuple(dict.fromkeys(renamed.get(url, url) for url in links if url not in refused))
    elif refused:
        links = tuple([url for url in links if url not in refused])
    return links


def _refused(malformed: Collection[str], refused: dict[str, Reason]) -> tuple[Refused, ...]:
    good = tuple(starmap(Refused, refused.items()))
    if not malformed:
        return good
    shown = dict.fromkeys(map(without_userinfo, malformed))
    return (*(Refused(href, Reason.BAD_URL) for href in shown), *good)
