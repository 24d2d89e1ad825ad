"""Canonical folding: a page counts as a duplicate of the canonical URL that it names."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator

from trio_crawler.engine.rules import Rules
from trio_crawler.frontier.protocol import Frontier
from trio_crawler.model import Job, Outcome, Page, Reason, RejectedLink
from trio_crawler.page.urls import seen_key
from trio_crawler.policy.plan import Plan

_MAX_HELD = 100_000


class CanonicalFolding:
    """Fold each page into the canonical URL that it names, if that is another URL (RFC 6596).

    The links of a folded page are held, and followed only if the canonical page fails. With
    `Plan.fold_canonical` false no page is folded.
    """

    def __init__(self, plan: Plan, frontier: Frontier, rules: Rules) -> None:
        self.folds = plan.fold_canonical
        self._redirects = plan.limits.max_redirects
        self._frontier = frontier
        self._rules = rules
        # The folded pages: of two pages that name each other, only one may be folded.
        self._folded: set[str] = set()
        # By seen key of a URL: whether its fetch succeeded; the links of pages folded into it.
        self._succeeded: dict[str, bool] = {}
        self._held: defaultdict[str, list[tuple[Job, list[str]]]] = defaultdict(list)
        self._held_links = 0

    def fold(self, job: Job, canonical: str | None) -> tuple[list[Job], str | None]:
        """Decide whether to fold a page; return the job for the canonical URL, and that URL.

        The list is empty if the canonical URL is not new. The URL is None if the page is not
        folded.
        """
        if not (self.folds and canonical and self._held_links < _MAX_HELD):
            return [], None
        key = seen_key(canonical)
        if key == seen_key(job.url) or key in self._folded or not self._succeeded.get(key, True):
            return [], None
        target = Job(canonical, job.depth, self._redirects, job.url)
        known = canonical in self._frontier.known([canonical])
        if not known and self._rules.rejection(target):
            return [], None
        self._folded.add(seen_key(job.url))
        return ([] if known else [target]), canonical

    def hold(self, job: Job, canonical: str, rejected: Iterable[RejectedLink]) -> None:
        """Hold the links of a folded page until its canonical page is settled."""
        key = seen_key(canonical)
        links = [
            self._rules.without_session(link.url)
            for link in rejected
            if link.reason is Reason.DUPLICATE
        ]
        if links and key not in self._succeeded:
            self._held[key].append((job, links))
            self._held_links += len(links)

    def record(self, url: str, outcome: Outcome) -> list[Job]:
        """Record the outcome of a URL; if it failed, return jobs for the links held for it."""
        if not self.folds:
            return []
        key = seen_key(url)
        success = self._succeeded[key] = _is_success(outcome)
        held = self._held.pop(key, [])
        self._held_links -= sum(len(links) for _, links in held)
        return [] if success else [link for page, links in held for link in self._new(page, links)]

    def restore(self, outcomes: Iterable[Outcome]) -> None:
        """Record the outcomes of earlier runs."""
        for outcome in outcomes if self.folds else ():
            key = seen_key(outcome.url)
            self._succeeded[key] = _is_success(outcome)
            self._held_links -= sum(len(links) for _, links in self._held.pop(key, []))
            if isinstance(outcome, Page) and outcome.folded_into:
                self._folded.add(key)
                job = Job(outcome.url, outcome.depth, referrer=outcome.referrer)
                self.hold(job, outcome.folded_into, outcome.rejected)

    def _new(self, page: Job, links: Collection[str]) -> Iterator[Job]:
        known = self._frontier.known(links)
        for url in links:
            job = Job(url, page.depth + 1, self._redirects, page.url)
            if url not in known and not self._rules.rejection(job):
                yield job


def _is_success(outcome: Outcome) -> bool:
    """Whether a page was fetched, or has not changed (304)."""
    return isinstance(outcome, Page) and (outcome.ok or outcome.status == 304)
