"""The rules that admit or reject each URL that was found, and canonical folding.

A folded page counts as a duplicate of the canonical URL that it names.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from math import inf

from trio_crawler.frontier.protocol import Frontier
from trio_crawler.model import Job, Outcome, Page, Reason, RejectedLink
from trio_crawler.page.urls import WEB, host, seen_key
from trio_crawler.policy.plan import Plan
from trio_crawler.policy.scope import is_of_urls, refusal
from trio_crawler.policy.side_effects import changes_something
from trio_crawler.policy.traps import Traps
from trio_crawler.policy.url_shapes import without_session

MAX_PORTS = 10
"""The most ports of one name that links are followed to, besides 80 and 443."""

# ▶ linux-doc: 2.8 of 3.8 links of a page lead out, most of them on each page.
_MOST_OUT = 1 << 15
# A URL may be judged again before it has entered the crawl; the traps must count it once. ▶ As a
# set of hashes the last ones take 9 MiB, and a third of the time of a `UrlSet`.
_REMEMBERED = 65_536


class Rules:
    """The scope, the limits, robots.txt and the traps of one crawl, applied to URLs.

    A link that is among the `out` is outside, unless it is too deep: then that is the reason.
    """

    def __init__(self, plan: Plan, frontier: Frontier) -> None:
        self._frontier = frontier
        self._scope = plan.scope
        self._max_depth = plan.limits.max_depth
        self._obey = plan.politeness.robots
        self._keeps_out = plan.politeness.side_effects is False
        self._use_traps = plan.traps != Traps.off()
        # Returns a URL without session ids; the same string object if there are none.
        self.without_session = without_session if plan.traps.session_ids else _unchanged
        # The last URLs that the traps let through: at least 65,536, at most twice as many.
        self._passed, self._passed_before = set[int](), set[int]()
        self._remember = is_of_urls(plan.scope)
        # The links out of the crawl as they were judged before, until there are too many.
        self.out: dict[str, RejectedLink] = {}
        # The explicit ports of each name; those of the seeds are allowed, however many they are.
        self._ports = defaultdict[str, set[str]](set)
        for name, port in filter(None, map(_port, plan.seeds)):
            self._ports[name].add(port)
        # The URLs that are checked of each name; counted only if they have a bound.
        self._max_checked = plan.checks.max_per_host
        self._checked: dict[str, int] = {}

    def restore(self, urls: Sequence[str]) -> None:
        """Record URLs that earlier runs admitted, so that the traps do not count them again."""
        if len(self._passed) >= _REMEMBERED:
            self._passed_before, self._passed = self._passed, set()
        self._passed.update(map(hash, urls))
        for url in urls:
            self._at_new_port(url)

    def rejection(self, job: Job) -> Reason | None:
        """Return why a new job is rejected; None if it is admitted. Then the traps count it."""
        return self.outside(job) or self.trapped(job)

    def outside(self, job: Job) -> Reason | None:
        """Return why a job is outside the crawl, by its URL and depth; None if it is inside."""
        if not job.url.startswith(WEB):
            return self._outside(job.url, Reason.OTHER_SCHEME)
        if job.depth > self._max_depth:
            return Reason.TOO_DEEP
        if (verdict := self._scope(job)) is not True:
            refused = refusal(verdict, self._scope, job)
            return self._outside(job.url, refused) if self._remember else refused
        if self._obey and self._frontier.hosts.disallows(job.url):
            return Reason.ROBOTS
        return Reason.SIDE_EFFECT if self._keeps_out and changes_something(job.url) else None

    def _outside(self, url: str, reason: Reason) -> Reason:
        if len(self.out) >= _MOST_OUT:
            self.out.clear()
        self.out[url] = RejectedLink(url, reason)
        return reason

    def trapped(self, job: Job) -> Reason | None:
        """Return why a job inside the crawl is rejected: by a limit, by a trap, or by its end.

        The traps count each job that they let through, once.
        """
        hosts = self._frontier.hosts
        if reason := hosts.rejection(job.url):
            return reason
        # Most URLs have no colon behind that of the scheme.
        if job.url.find(":", 8) > 0 and (reason := self._at_new_port(job.url)):
            return reason
        if self._use_traps:
            number = hash(job.url)
            if number not in self._passed and number not in self._passed_before:
                if reason := hosts.traps(job.url).rejection(job):
                    return reason
                if len(self._passed) >= _REMEMBERED:
                    self._passed_before, self._passed = self._passed, set()
                self._passed.add(number)
        return hosts.ended

    def unchecked(self, url: str) -> Reason | None:
        """Return why a URL outside the crawl is not checked; None if it is. Then it counts.

        The bound is not for the hosts of the crawl: a page may be too deep.
        """
        if (reason := self._at_new_port(url)) or self._max_checked == inf:
            return reason
        origin = self._frontier.hosts.known(url)
        if origin is not None and origin.crawled:
            return None
        count = self._checked.get(name := host(url), 0)
        if count >= self._max_checked:
            return Reason.CHECK_BUDGET
        self._checked[name] = count + 1
        return None

    def _at_new_port(self, url: str) -> Reason | None:
        """Return TOO_MANY_PORTS if a URL is at one more port of its name than may be."""
        if (found := _port(url)) is None:
            return None
        ports = self._ports[found[0]]
        if len(ports) >= MAX_PORTS and found[1] not in ports:
            return Reason.TOO_MANY_PORTS
        ports.add(found[1])
        return None


def _unchanged(url: str) -> str:
    return url


def _port(url: str) -> tuple[str, str] | None:
    """Return the name and the port of a normalised web URL; None for the port of its scheme."""
    start, end = url.index("/") + 2, url.index("/", 8)
    if url.find(":", start, end) < 0:
        return None
    name, _, port = url[start:end].rpartition(":")
    # An IPv6 address without a port ends with a bracket.
    return (name, port) if port.isdigit() else None


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
