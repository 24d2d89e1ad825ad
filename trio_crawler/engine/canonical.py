"""Canonical folding: a page counts as a duplicate of the canonical URL that it names."""

from __future__ import annotations

from collections.abc import Iterable

from trio_crawler.engine.rules import Rules
from trio_crawler.frontier.protocol import Frontier
from trio_crawler.model import Job, Outcome, Page
from trio_crawler.page.urls import seen_key
from trio_crawler.policy.plan import Plan


class CanonicalFolding:
    """Fold each page into the canonical URL that it names, if that is another URL (RFC 6596).

    The links of a folded page are followed as those of any other page: many lists name their first
    page as the canonical one of all others. With `Plan.fold_canonical` false no page is folded.
    """

    def __init__(self, plan: Plan, frontier: Frontier, rules: Rules) -> None:
        self.folds = plan.fold_canonical
        self._redirects = plan.limits.max_redirects
        self._frontier = frontier
        self._rules = rules
        # By seen key, the folded pages and what they were folded into: of two pages that name each
        # other, only one may be folded.
        self._folded: dict[str, str] = {}
        # By seen key of a URL: whether its fetch succeeded.
        self._succeeded: dict[str, bool] = {}

    def fold(self, job: Job, canonical: str | None) -> tuple[list[Job], str | None]:
        """Decide whether to fold a page; return the job for the canonical URL, and that URL.

        The list is empty if the canonical URL is not new. The URL is None if the page is not
        folded.
        """
        if not (self.folds and canonical):
            return [], None
        key, own = seen_key(canonical), seen_key(job.url)
        if key == own or key in self._folded or not self._succeeded.get(key, True):
            return [], None
        target = Job(canonical, job.depth, self._redirects, job.url)
        known = canonical in self._frontier.known([canonical])
        if not known and self._rules.rejection(target):
            return [], None
        self._folded[own] = key
        return ([] if known else [target]), canonical

    def is_alias(self, url: str, canonical: str) -> bool:
        """Whether a page was folded into this canonical URL."""
        return bool(self._folded) and self._folded.get(seen_key(url)) == seen_key(canonical)

    def record(self, url: str, outcome: Outcome) -> None:
        """Record the outcome of a URL: no page is folded into one that failed."""
        if self.folds:
            self._succeeded[seen_key(url)] = _is_success(outcome)

    def restore(self, outcomes: Iterable[Outcome]) -> None:
        """Record the outcomes of earlier runs."""
        for outcome in outcomes if self.folds else ():
            self.record(outcome.url, outcome)
            if isinstance(outcome, Page) and outcome.folded_into:
                self._folded[seen_key(outcome.url)] = seen_key(outcome.folded_into)


def _is_success(outcome: Outcome) -> bool:
    """Whether a page was fetched, or has not changed (304)."""
    return isinstance(outcome, Page) and (outcome.ok or outcome.status == 304)
