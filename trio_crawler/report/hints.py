"""Hints: at most three lines that say which option would have helped this crawl or check."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from heapq import nlargest
from itertools import chain, islice
from typing import TYPE_CHECKING, NamedTuple

from trio_crawler.ledger.join import Join
from trio_crawler.ledger.ledger import Ledger
from trio_crawler.ledger.rows import CHECKED, TRIED
from trio_crawler.page.urls import authority, without_userinfo
from trio_crawler.reason import REASONS, Reason
from trio_crawler.report.hosts import checks_by_host, robots_files
from trio_crawler.report.summary import Summary
from trio_crawler.report.visible import count, duration, readable, visible

if TYPE_CHECKING:
    from trio_crawler.policy.settings import HostStatistics
    from trio_crawler.report.facts import CrawlFacts

MOST = 3
"""The most lines of hints."""

# A crawl is slow after so many seconds, and waits for a host that takes this part of them.
_LONG, _MOST_OF = 10.0, 0.6
_HOSTS_READ = 10_000
# So many names may be wrong on one site.
_LEAST_NAMES = 3
_IGNORE_ROBOTS = "(--ignore-robots crawls anyway)"


class Run(NamedTuple):
    """What the hints about a crawl are taken from.

    `logins` has the sentences about origins that want a login, where the broken links do not have
    them.
    """

    ledger: Ledger
    summary: Summary
    join: Join
    facts: CrawlFacts
    logins: Mapping[str, str]


def hints(run: Run) -> list[str]:
    """Return the hints for a crawl, those that matter most first, at most three."""
    return list(islice(chain.from_iterable(hint(run) for hint in HINTS), MOST))


def barred(summary: Summary) -> list[str]:
    """Return the hosts whose robots.txt allows nothing, if no page was fetched."""
    blocked = {} if summary.pages else dict.fromkeys(summary.robots_blocked, "")
    return list(_robots_lines(blocked, "allows nothing of what is wanted"))


def _other_site(run: Run) -> Iterable[str]:
    urls = run.summary.urls
    for url, target in () if run.summary.pages else run.summary.off_site.items:
        where = readable(urls[target])
        yield f"{readable(url)} leads to {where}, another site: crawl it by its own URL"


def _offline(run: Run) -> Iterable[str]:
    """Yield a line if other hosts were asked for, and no name could be looked up."""
    names = set[str]()
    for url, row in run.ledger.ends(CHECKED):
        if row.flags & TRIED:
            if row.reason not in (Reason.NO_SUCH_HOST, Reason.DNS):
                return
            names.add(authority(url))
    if len(names) >= _LEAST_NAMES:
        yield f"Of {len(names):,} other hosts no name could be looked up: is this machine online?"


def _robots_lost(run: Run) -> Iterable[str]:
    lost = run.summary.robots_unavailable
    return _robots_lines({each: visible(lost[each]) for each in lost}, "could not be had")


def _cookies(run: Run) -> Iterable[str]:
    # Among many pages a loop is a broken link, and no login.
    if run.facts.cookies is False and 10 * len(run.join.loops) >= max(run.summary.pages, 1):
        yield (
            "A redirect loop may be the bounce to a login or a consent page that sets a cookie "
            "(--cookies stores cookies and sends them back)"
        )


def _logins(run: Run) -> Iterable[str]:
    return (f"{visible(origin)}: {advice}" for origin, advice in sorted(run.logins.items()))


def _refused(run: Run) -> Iterable[str]:
    """Yield a line for each host whose answers taught a delay."""
    refused = {
        host.name: f"{count(host.refused)} of {count(host.pages + host.failed, 'answer')} "
        f"{'was' if host.refused == 1 else 'were'} 429 or 503): one each {duration(host.delay)}"
        for host in run.facts.hosts.values()
        if host.refused and host.delay > host.asked
    }
    for who, why in robots_files(refused, "", "some answers were 429 or 503): slower ones"):
        yield f"{who} refused faster requests ({why}"


def _crawl_delays(run: Run) -> Iterable[str]:
    hosts, politeness = run.facts.hosts.values(), run.facts.politeness
    least = politeness.delay if politeness else math.inf
    delays = {host.name: f"{host.asked:g} s" for host in hosts if host.asked > least}
    for who, delay in robots_files(delays, "", "another delay"):
        yield f"robots.txt of {who} wants {delay} from request to request {_IGNORE_ROBOTS}"


def _waiting(run: Run) -> Iterable[str]:
    """Yield a line if a crawl took long, and one host could not be asked faster."""
    seconds, politeness = run.facts.statistics.seconds, run.facts.politeness
    if seconds < _LONG or politeness is None or politeness.adaptive:
        return

    # 0 where a directory does not know it.
    workers = run.facts.workers or math.inf
    checks = checks_by_host(run.ledger)

    def busy(host: HostStatistics) -> float:
        """Return about how many seconds the answers took, as many at once as may be."""
        answers = host.pages + host.failed + checks.get(host.name, 0)
        return answers * max(host.delay, host.latency / max(1, min(host.limit, workers)))

    hosts = nlargest(2, islice(run.facts.hosts.values(), _HOSTS_READ), key=busy)
    if not hosts or busy(slowest := hosts[0]) < _MOST_OF * seconds:
        return
    option = "--per-host, or --mine if it is yours, lets more requests run at once"
    if slowest.delay * slowest.limit > slowest.latency:
        if slowest.asked > politeness.delay or slowest.refused:
            # Another hint has told that the host asks for this.
            return
        of_checks = slowest.name in checks and not slowest.pages
        option = f"{'--check-delay' if of_checks else '--delay'} sets the time between requests"
    elif slowest.limit >= workers:
        option = "--max-tasks lets more requests run at once"
    elif 2 * busy(hosts[-1]) > busy(slowest) and len(hosts) > 1:
        # Several hosts share the tasks: more requests to one of them would not help.
        return
    share = f"{min(busy(slowest), seconds):,.0f} of {seconds:,.0f} s"
    yield f"{share} were waiting for {visible(slowest.name)} ({option})"


def _budgets(run: Run) -> Iterable[str]:
    met = run.summary.rejected + run.summary.skipped
    if run.facts.directory:
        # A line before says that a greater --max-pages goes on.
        del met[Reason.PAGE_BUDGET]
    return (about.hint for reason, about in REASONS.items() if about.hint and met[reason])


def _side_effects(run: Run) -> Iterable[str]:
    if not (number := run.summary.rejected[Reason.SIDE_EFFECT]):
        return
    verb = "was" if number == 1 else "were"
    # A program may reject them without credentials, too.
    how = "--follow-side-effects follows such links"
    why = ", as credentials are sent" if run.facts.credentials else ""
    if run.facts.credentials is None:
        why = ", as the fetch does not say that it sends no credentials"
        how = "Politeness(side_effects=True) follows such links"
    yield (
        f"{count(number, 'link')} that may change something (log out, delete, edit) {verb} not "
        f"followed{why} ({how})"
    )


HINTS: tuple[Callable[[Run], Iterable[str]], ...] = (
    _other_site,
    _offline,
    _robots_lost,
    _logins,
    _refused,
    _cookies,
    _crawl_delays,
    _waiting,
    _budgets,
    _side_effects,
)
"""The hints, those that matter most first."""


def _robots_lines(found: Mapping[str, str], how: str) -> Iterable[str]:
    for who, why in robots_files(found, "/", "other reasons"):
        yield f"robots.txt of {who} {how}{f': {why}' if why else ''} {_IGNORE_ROBOTS}"


def login_advice(wanted: Mapping[str, str], facts: CrawlFacts) -> dict[str, str]:
    """Return a sentence for each origin that answered with 401.

    `wanted` has the scheme of authentication that each of them wants, "" for Basic.
    """
    seeds = [f"{without_userinfo(seed)}/" for seed in facts.seeds] if wanted else []
    return {
        origin: _advice(
            origin,
            scheme,
            None if facts.authorized is None else origin in facts.authorized,
            not seeds or any(seed.startswith(f"{origin}/") for seed in seeds),
        )
        for origin, scheme in wanted.items()
    }


def _advice(wanting: str, scheme: str, is_authorized: bool | None, is_seed: bool) -> str:
    if scheme:
        return f"the server wants a login by {visible(scheme)}; --auth can only log in by Basic"
    if is_authorized is None:
        return "the server wants a user and a password, or refused those of --auth"
    if is_authorized:
        return "the server refused the user and the password that it was given"
    if is_seed:
        return "the server wants a user and a password: give --auth USER"
    where = f"crawl {visible(wanting)}/ by its own URL"
    return f"the server wants a user and a password: {where}, with --auth USER"
