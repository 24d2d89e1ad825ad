"""The links of a page: which are followed and why the others are not."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import AbstractContextManager
from hashlib import sha1
from itertools import filterfalse
from math import inf

import msgspec
import trio
from msgspec.structs import replace

from trio_crawler.frontier.protocol import Frontier
from trio_crawler.link import ASSET_KINDS, PAGE_KINDS, Link, LinkKind
from trio_crawler.model import (
    Anchor,
    Attempt,
    Job,
    Outcome,
    Page,
    Purpose,
    Reason,
    RejectedLink,
    Response,
)
from trio_crawler.page import media
from trio_crawler.page.fragments import names_place
from trio_crawler.page.html.head import canonical_in_headers
from trio_crawler.page.link_targets import Pointed, fragments_in
from trio_crawler.page.links import STYLE_SHEET, PageLinks, pointed_of
from trio_crawler.page.read import Facts
from trio_crawler.page.urls import WEB, host, is_web, seen_key, without_userinfo
from trio_crawler.policy.answers import header_directives, meta_directives
from trio_crawler.policy.plan import Plan
from trio_crawler.policy.scope import is_of_urls, refusal
from trio_crawler.policy.settings import CHECKED
from trio_crawler.policy.traps import HostTraps, Traps
from trio_crawler.policy.url_shapes import changes_something, without_session

# The server has no such page; it may have one after another error.
_GONE = frozenset({400, 404, 410})
# Links that are judged at once, before other tasks can run.
_CHUNK = 50
# The same if no link is judged: some 3 ms.
_SLICE = 5_000

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
        self.use_traps = plan.traps != Traps.off()
        # Returns a URL without session ids; the same string object if there are none.
        self.without_session = without_session if plan.traps.session_ids else lambda url: url
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
        if self.use_traps:
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
        # 304: it has not changed.
        good = isinstance(outcome, Page) and (outcome.ok or outcome.status == 304)
        self._succeeded[seen_key(url)] = good

    def restore(self, outcomes: Iterable[Outcome]) -> None:
        """Record the outcomes of earlier runs."""
        for outcome in outcomes:
            self.record(outcome.url, outcome)
            if isinstance(outcome, Page) and outcome.folded_into:
                self._folded[seen_key(outcome.url)] = seen_key(outcome.folded_into)


class About(msgspec.Struct, frozen=True):
    """Facts about a page that decide on its links: canonical URL, robots directives, original.

    `reason` is why no new link of the page is followed, None if links are followed. `successors`
    has the job for the canonical URL if that is new. `traps` are the traps of the host, None if
    the plan has none, and `digest` the SHA-1 of the body, None unless it was needed.
    """

    canonical: str | None
    robots: tuple[str, ...]
    duplicate_of: str | None
    folded_into: str | None
    reason: Reason | None
    successors: list[Job]
    traps: HostTraps | None
    digest: bytes | None


class Judged(msgspec.Struct, frozen=True):
    """The links of a page: the admitted ones, the rejected ones, and the jobs for new ones."""

    links: tuple[str, ...]
    rejected: tuple[RejectedLink, ...]
    successors: list[Job]
    anchors: Mapping[str, Anchor] = {}
    found: Sequence[Link] = ()


class Links:
    """Decide which links of each page are followed."""

    def __init__(
        self, plan: Plan, frontier: Frontier, rules: Rules, folding: CanonicalFolding
    ) -> None:
        self._frontier = frontier
        self._rules = rules
        self._folding = folding
        self._redirects, self._max_depth = plan.limits.max_redirects, plan.limits.max_depth
        self._agent = plan.agent
        self._nofollow = plan.politeness.nofollow
        self._checks, self._fragments = plan.checks.external, plan.checks.fragments
        self._assets = plan.checks.assets
        # Links of the kind `A` are read in any case.
        self._kinds = PAGE_KINDS - {LinkKind.A} | (ASSET_KINDS if plan.checks.assets else set())
        self._listed_only = plan.sitemaps.only

    def about(self, attempt: Attempt, response: Response, facts: Facts) -> About:
        """Return the facts about a page that decide on its links; `response` is its answer."""
        job, headers, names = attempt.job, response.headers, attempt.names
        header = header_directives(headers, self._agent) if "x-robots-tag" in names else ()
        meta = meta_directives(facts.meta_robots) if facts.meta_robots else ()
        canonical = facts.canonical
        if "link" in names:
            fields = headers.get_list("link")
            canonical = canonical_in_headers(fields, job.url) or canonical
        successors: list[Job] = []
        folded_into = None
        if self._folding.folds:
            successors, folded_into = self._folding.fold(job, canonical)
        traps = self._frontier.hosts.traps(job.url) if self._rules.use_traps else None
        original = None
        # After a 304 only the SHA-1 of the body is known.
        digest, body = facts.digest, response.body
        whole = digest or (response.status < 300 and response.flaw is None)
        if traps is not None and whole:
            if body and self._frontier.hosts.by_digest and "html" in facts.content_type:
                # ▶ The hash of 40 KB takes 10 us, SHA-1 25, and that is stored.
                digest = sha1(body, usedforsecurity=False).digest()
            original = traps.original(job.url, body, facts.content_type, digest)
        if original is not None and self._folding.is_alias(original, job.url):
            # This is the canonical page; its copy came first.
            original = None
        reason = Reason.DUPLICATE if original else None
        if self._nofollow and "nofollow" in meta:
            reason = Reason.META_NOFOLLOW
        if self._nofollow and "nofollow" in header:
            reason = Reason.HEADER_NOFOLLOW
        robots = tuple(dict.fromkeys((*header, *meta))) if header or meta else ()
        duplicate_of = folded_into or original
        return About(
            canonical, robots, duplicate_of, folded_into, reason, successors, traps, digest
        )

    def unread(self, size: int) -> AbstractContextManager[None]:
        """Return a block in which a body of this size waits to be read."""
        return self._frontier.hosts.unread(size)

    def onward(
        self, job: Job, purpose: Purpose | None = None, fragment: str = ""
    ) -> tuple[Reason | None, list[Job]]:
        """Return why the target of a redirect is rejected, None if not, and the job for it.

        A target outside of the crawl is checked, if links are, with the `purpose` of the check
        that led to it. If a page led to it, any link to that page may name a place there, unless
        the `fragment` of the redirect counts instead.
        """
        rejected: Reason | None = None
        if not self._frontier.known([job.url]):
            rejected = self._rules.rejection(job)
        # A login that leads back has brought a cookie.
        elif self._rules.use_traps and job.referrer is not None and not job.again:
            self._frontier.hosts.traps(job.referrer).record_nothing(job.referrer)
        if rejected is None:
            return None, [job]
        if not self._checks or rejected not in CHECKED:
            return rejected, []
        if unchecked := self._rules.unchecked(job.url):
            return unchecked, []
        own = Purpose.FRAGMENTS if self._fragments and not fragment else Purpose.CHECK
        check = replace(job, purpose=purpose or own)
        return rejected if purpose is None else None, [check]

    async def judge(self, job: Job, response: Response, facts: Facts, about: About) -> Judged:
        """Return the links of a page, admitted and rejected."""
        found = facts.found
        links = self._with_found(facts) if found else facts.links
        known = self._frontier.known(links) if len(links) <= _SLICE else await self._known(links)
        # ▶ `dict[str, RejectedLink]()` would take 0.7 us.
        rejected: dict[str, RejectedLink] = {}
        anchors, successors = facts.anchors, about.successors
        if len(known) < len(links):
            new = list(filterfalse(known.__contains__, links))
            renamed: dict[str, str] = {}
            if not self._checks and job.depth < self._max_depth:
                out = self._rules.out
                # ▶ Most links out of a site are on each of its pages.
                rejected = {url: out[url] for url in new if url in out}
            if len(rejected) < len(new):
                await self._judge(job, facts, about.reason, new, successors, rejected, renamed)
            if renamed:
                named = (renamed.get(url, url) for url in links if url not in rejected)
                links = tuple(dict.fromkeys(named))
                anchors = {renamed.get(url, url): anchor for url, anchor in anchors.items()}
                found = tuple(
                    [link._replace(url=renamed.get(link.url, link.url)) for link in found]
                )
            elif rejected:
                links = tuple([url for url in links if url not in rejected])
        leads_on = "html" in facts.content_type or (links and facts.content_type == STYLE_SHEET)
        if about.traps is not None and response.status < 300 and leads_on:
            on = [each.url for each in successors if each.purpose is Purpose.PAGE]
            about.traps.record_links(job.url, response.body, on, links, depth=job.depth)
        elif about.traps is not None and response.status in _GONE:
            about.traps.record_nothing(job.url)
        with_reasons = tuple(rejected.values())
        if facts.malformed:
            shown = dict.fromkeys(map(without_userinfo, facts.malformed))
            with_reasons = (*(RejectedLink(href, Reason.BAD_URL) for href in shown), *with_reasons)
        return Judged(links, with_reasons, successors, anchors, found)

    async def _known(self, urls: Sequence[str]) -> AbstractSet[str]:
        """Return those of many `urls` that were admitted; a checkpoint for each few of them."""
        known = set[str]()
        for start in range(0, len(urls), _SLICE):
            known |= self._frontier.known(urls[start : start + _SLICE])
            await trio.lowlevel.checkpoint()
        return known

    def _with_found(self, facts: Facts) -> tuple[str, ...]:
        """Return the links of a page, with those of all kinds that are asked for.

        Links of the kind `A` that are not among them yet stand in a frame's `srcdoc`.
        """
        kinds, pointed = self._kinds, _pointed(facts).kinds
        # A page with a frame's `srcdoc` is not scanned.
        framed = not isinstance(facts.found, PageLinks)
        found: dict[str, object] = dict.fromkeys(facts.links)
        if framed:
            found |= dict.fromkeys(filter(is_web, pointed.get(LinkKind.A, ())))
        for kind, urls in pointed.items():
            if kind in kinds:
                found |= urls
        return tuple(found)

    def _parts(self, facts: Facts) -> set[str]:
        """Return the URLs of the parts of a page; its robots directives are not about them."""
        if not self._assets:
            return set()
        pointed = _pointed(facts).kinds.items()
        return {url for kind, urls in pointed if kind in ASSET_KINDS for url in urls}

    async def _judge(
        self,
        job: Job,
        facts: Facts,
        reason: Reason | None,
        new: Sequence[str],
        successors: list[Job],
        rejected: dict[str, RejectedLink],
        renamed: dict[str, str],
    ) -> None:
        """Add a job to `successors` for each `new` link that is followed.

        The others are added to `rejected`, which may have some of them, and is then in their
        order. A link that is followed without its session id is added to `renamed`.
        """
        nofollow = facts.nofollow if self._nofollow else frozenset()
        parts = self._parts(facts)
        named: frozenset[str] = frozenset()
        # The parts of a page have its depth, but those of a style sheet have one more.
        part_depth = job.depth + (facts.content_type not in media.MARKUP)
        if self._checks and self._fragments:
            named = _named(facts)
        before = dict(rejected)
        rejected.clear()
        for count, url in enumerate(new, 1):
            if not count % _CHUNK:
                # A robots.txt full of wildcards may take 3 ms for a link.
                await trio.lowlevel.checkpoint()
            if url in before:
                rejected[url] = before[url]
                continue
            depth = part_depth if url in parts else job.depth + 1
            successor = Job(url, depth, self._redirects, job.url)
            # Checked first: of several reasons, "outside" is the most useful one in a report.
            rejection = self._rules.outside(successor)
            if rejection is None:
                plain = self._rules.without_session(url)
                if plain is not url:
                    renamed[url] = plain
                    if self._frontier.known([plain]):
                        continue
                    successor = replace(successor, url=plain)
                    # The URL without its session id may be outside.
                    rejection = self._rules.outside(successor)
                if rejection is None and self._listed_only:
                    rejection = Reason.NOT_INCLUDED
                if url not in parts:
                    own = url in nofollow and reason in (None, Reason.DUPLICATE)
                    rejection = rejection or (Reason.REL_NOFOLLOW if own else reason)
                elif reason is Reason.DUPLICATE:
                    rejection = rejection or reason
                rejection = rejection or self._rules.trapped(successor)
            if rejection is None:
                successors.append(successor)
            else:
                rejected[url] = RejectedLink(url, rejection)
                too_deep = url in parts and rejection is Reason.TOO_DEEP
                leads_out = self._checks and rejection in CHECKED
                if not (too_deep or leads_out):
                    continue
                if (unchecked := self._rules.unchecked(url)) is not None:
                    rejected[url] = RejectedLink(url, unchecked)
                else:
                    purpose = Purpose.FRAGMENTS if url in named else Purpose.CHECK
                    successors.append(replace(successor, purpose=purpose))


def _pointed(facts: Facts) -> Pointed:
    """Return what a page points to; after a 304 only its links are known."""
    return pointed_of(facts.found) if facts.pointed is None else facts.pointed


def _named(facts: Facts) -> frozenset[str]:
    """Return the URLs whose pages are to have the places that fragments name."""
    return frozenset(
        url
        for urls in _pointed(facts).kinds.values()
        for url, named in urls.items()
        if named and any(map(names_place, fragments_in(named)))
    )
