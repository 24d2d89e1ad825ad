"""The sections of the report: each is a heading and its lines, or no line if it is empty."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from trio_crawler.arguments import (
    check_flag,
    check_iterable,
    check_kind,
    check_number,
    check_whole,
    public,
)
from trio_crawler.ledger.tables import PAGE, TextList
from trio_crawler.model import Reason, Sitemap, Statistics
from trio_crawler.net.statistics import WireStatistics
from trio_crawler.page.urls import authority, without_userinfo
from trio_crawler.report.summary import FirstItems, Summary
from trio_crawler.report.visible import count, duration, more, readable, size, visible

if TYPE_CHECKING:
    from trio_crawler.ledger.join import Join
    from trio_crawler.ledger.ledger import Ledger
    from trio_crawler.report.summary import CrawlFacts
    from trio_crawler.store.changes import Change

_MAX_CHANGES = 20
_CHANGES = ("new", "changed", "gone")
_NOT_CHECKED = (
    "Not checked: links to other sites, images, styles, scripts and #fragments "
    "(--check all checks them)"
)


def section(
    title: str, found: FirstItems[Any], lines: Iterable[str], about: str = ""
) -> list[str]:
    """Return a heading with the total, the lines, and how many are omitted; nothing for 0."""
    if not found.total:
        return []
    return [
        f"{title} ({count(found.total)}){about}",
        *(f"  {line}" for line in lines),
        *more(found.omitted),
    ]


def heading(facts: CrawlFacts, verdict: str) -> list[str]:
    """Return the heading: the first seed and the verdict, the unverified hosts, the ignored rules.

    A password in a seed is left out.
    """
    seeds, insecure = facts.seeds, ", ".join(map(visible, facts.insecure))
    lines = [f"Certificates not verified: {insecure}"] if insecure else []
    if facts.politeness and not facts.politeness.robots:
        lines.append("robots.txt ignored")
    if facts.politeness and not facts.politeness.nofollow:
        lines.append("nofollow ignored")
    if not seeds:
        return [f"Crawl: {verdict}", *lines]
    others = f" and {count(len(seeds) - 1, 'more seed')}" if len(seeds) > 1 else ""
    return [f"Crawl of {readable(without_userinfo(seeds[0]))}{others}: {verdict}", *lines]


# Problems.


def lists(of: Summary) -> list[Callable[[], list[str]]]:
    """Return the sections of redirects, flaws, bodies that were cut, and duplicates."""
    urls = of.urls
    redirects = (
        f"{status} {readable(url)} -> {readable(urls[target])}"
        + (f" ({reason})" if reason else "")
        for url, status, target, reason in of.redirects.items
    )
    flaws = (f"{why} {readable(url)}" for url, why in of.flaws.items)
    cut = (f"{size(read)} read of {visible(url)}" for url, read in of.cut.items)
    same = (f"{readable(url)} = {readable(urls[first])}" for url, first in of.duplicates.items)
    return [
        partial(section, "Redirects", of.redirects, redirects),
        partial(section, "Flaws", of.flaws, flaws),
        partial(section, "Not read whole", of.cut, cut, ": --max-bytes sets the limit"),
        partial(section, "Duplicates", of.duplicates, same),
    ]


# Sitemaps.


def sitemaps(found: Sequence[Sitemap], limit: int | None, why: bool = False) -> list[str]:
    """Count the sitemaps and their entries, and list the sitemaps that have flaws.

    With `why` the rejected entries are listed, too.
    """
    if not found:
        return []
    # The entries of an index are sitemaps.
    pages = [sitemap for sitemap in found if sitemap.kind != "index"]
    number = sum(sitemap.entries for sitemap in pages)
    entries = f"{count(number)} {'entry' if number == 1 else 'entries'}"
    new = f"{count(sum(sitemap.admitted for sitemap in pages))} of them new"
    rejected = sorted({(each.reason, each.url) for sitemap in pages for each in sitemap.rejected})
    beside = f", {count(len(rejected))} rejected" if rejected else ""
    hint = " (--why lists them)" if rejected and not why else ""
    lines = [f"Sitemaps: {count(len(found), 'sitemap')}, {entries}, {new}{beside}{hint}"]
    if why:
        lines += [f"  {reason} {readable(url)}" for reason, url in rejected]
    flawed = sorted((sitemap for sitemap in found if sitemap.flaws), key=attrgetter("url"))
    for each in flawed[:limit]:
        source = "(given)" if each.referrer is None else f"from {readable(each.referrer)}"
        told = ("" if each.fetched else "not asked for", visible(each.detail), source)
        lines.append(f"  {', '.join(each.flaws)} {readable(each.url)}")
        lines += (f"      {line}" for line in told if line)
    return lines + more(len(flawed) - len(flawed[:limit]))


def orphans(join: Join, facts: CrawlFacts) -> Iterable[str]:
    """Return the pages that a sitemap lists, and that no page links to."""
    if not (facts.sitemaps and facts.listing):
        return ()
    return filter(facts.listing, join.unlinked(facts.seeds, [each.url for each in facts.sitemaps]))


def unlisted(ledger: Ledger, facts: CrawlFacts) -> Iterable[str]:
    """Return the pages that no sitemap lists, although their host has a sitemap."""
    if not (facts.sitemaps and facts.listing):
        return ()
    pages = TextList()
    hosts = {authority(each.url) for each in facts.sitemaps if each.kind not in ("", "index")}
    for url, row in ledger.ends(PAGE):
        if row.indexable:
            if facts.listing(url):
                # The sitemap of a host may be on another host.
                hosts.add(authority(url))
            else:
                pages.append(url)
    return (page for page in pages if authority(page) in hosts)


def pages(title: str, urls: Iterable[str], limit: int | None, early: bool) -> list[str]:
    """List the first of some URLs, by their names; `early` marks the list as incomplete."""
    found: FirstItems[tuple[str]] = FirstItems(limit)
    for url in urls:
        found.add((url,))
    lines = (readable(url) for (url,) in found.items)
    return section(f"{title} so far" if early else title, found, lines)


# Figures.


def slowest(found: FirstItems[tuple[float, str]]) -> list[str]:
    """List the slowest pages, the slowest first."""
    lines = [f"  {duration(-minus):>8}  {readable(url)}" for minus, url in found.items]
    return ["Slowest pages", *lines] if lines else []


def rejected(summary: Summary) -> list[str]:
    """Count the rejected links by reason.

    Links that are not URLs are left out: they are among the broken links.
    """
    counts = _counts(summary.rejected, leave_out=Reason.BAD_URL)
    return [f"Rejected links: {counts} (--why lists them)"] if counts else []


def not_checked(summary: Summary, facts: CrawlFacts) -> list[str]:
    """Return the line about links that a crawl of pages alone does not check."""
    return [_NOT_CHECKED] if summary.pages and facts.checks is False else []


def skipped(summary: Summary) -> list[str]:
    """Count by reason the URLs that were admitted and never requested."""
    return [f"Skipped: {_counts(summary.skipped)}"] if summary.skipped else []


def _counts(reasons: Counter[Reason], leave_out: Reason | None = None) -> str:
    listed = sorted(reason for reason in reasons if reason is not leave_out)
    return ", ".join(f"{count(reasons[reason])} {reason}" for reason in listed)


def totals(counters: Counter[str]) -> list[str]:
    """List the counters by name; large sizes also in a binary unit."""
    width = max((len(count(number)) for number in counters.values()), default=0)
    return [
        f"  {count(number):>{width}} {key}"
        + (f" ({size(number)})" if key.endswith("_bytes") and number >= 1024 else "")
        for key, number in sorted(counters.items())
    ]


def connections(wire: WireStatistics) -> list[str]:
    """Count the connections, and the bytes that were sent and received."""
    ways = {"made": wire.made, "reused": wire.reused, "retried": wire.retried, "open": wire.open}
    counts = ", ".join(f"{count(number)} {name}" for name, number in ways.items())
    return [f"Connections: {counts}; {size(wire.bytes_in)} in, {size(wire.bytes_out)} out"]


# The end.


def finish(facts: CrawlFacts, *, again: int = 0) -> list[str]:
    """Return the last lines: the duration, the URLs that wait, and the sum of all outcomes.

    `again` is the number of URLs that were admitted twice.
    """
    statistics = facts.statistics
    done = statistics.pages + statistics.redirects + statistics.failures
    rate = done / statistics.seconds if statistics.seconds > 0 else 0.0
    lines = [f"Ended early: {visible(facts.ended)}"] if facts.ended else []
    lines += next_run(facts)
    if statistics.retries:
        lines.append(f"Tried again: {count(statistics.retries, 'time')}")
    if again:
        urls = count(again, "URL")
        lines.append(f"Admitted again: {urls}, as a redirect led back with other cookies")
    limits = f", per host {polite.per_host}" if (polite := facts.politeness) else ""
    limits += ", adaptive" if polite and polite.adaptive else ""
    lines.append(
        f"Finished {count(done, 'URL')} in {statistics.seconds:,.3f} s"
        f" ({rate:,.1f} URLs/s, workers={facts.workers}{limits})"
    )
    return [*lines, account(statistics)]


def next_run(facts: CrawlFacts) -> list[str]:
    """Return the line that says what the next run in a directory does; none without one."""
    if not facts.directory:
        return []
    waiting = facts.statistics.waiting + facts.statistics.in_flight
    directory = visible(facts.directory)
    if not waiting:
        return [
            f"The crawl in {directory} is complete now: --refresh walks through the site again"
        ]
    wait = "waits" if waiting == 1 else "wait"
    how = "a greater --max-pages" if facts.spent else "the same command"
    return [f"{count(waiting, 'URL')} {wait} in {directory}: {how} goes on"]


def account(statistics: Statistics) -> str:
    """Return the line that accounts for each URL that was admitted."""
    terms = [
        count(statistics.pages, "page"),
        count(statistics.redirects, "redirect"),
        count(statistics.failures, "failure"),
        f"{count(statistics.skipped)} skipped",
    ]
    rest = {"in flight": statistics.in_flight, "waiting": statistics.waiting}
    terms += (f"{count(number)} {name}" for name, number in rest.items() if number)
    return f"admitted {count(statistics.admitted)} = {' + '.join(terms)}"


# Walks.


@public("trio_crawler.report")
def changes(
    found: Iterable[Change], since: float | None, full: bool = False, *, repeated: int = 0
) -> str:
    """Return a text that counts all changes and lists the new, changed and gone URLs, sorted.

    `since` is when the earlier walk began, in seconds of Unix time. The first 20 URLs of each kind
    are listed, with `full` all of them, and the unchanged URLs with a detail, too. `repeated` is
    the number of pages that were fetched twice. Text from the web is escaped (see `visible`).
    There is no line end after the last line.

    >>> found = [Change("https://e.org/new", "new"), Change("https://e.org/", "unchanged")]
    >>> print(changes(found, since=0.0))
    Changes since 1970-01-01 00:00 UTC: 1 new, 0 changed, 0 gone, 1 unchanged
    New (1)
      https://e.org/new
    """
    # Imported late, since it imports sqlite3, which the report of a crawl in memory does not need.
    from trio_crawler.store.changes import Change

    check_iterable("found", found, "changes")
    check_flag("full", full)
    if since is not None:
        check_number("since", since, least=-math.inf)
    check_whole("repeated", repeated)
    limit = None if full else _MAX_CHANGES
    lists: dict[str, FirstItems[tuple[str, str]]] = {kind: FirstItems(limit) for kind in _CHANGES}
    alike: FirstItems[tuple[str, str]] = FirstItems(limit)
    unchanged = 0
    for change in found:
        check_kind("each of found", change, Change, "a Change")
        if change.kind in lists:
            lists[change.kind].add((change.url, change.detail))
        else:
            unchanged += 1
            if change.detail:
                alike.add((change.url, change.detail))
    counts = ", ".join(f"{count(lists[kind].total)} {kind}" for kind in _CHANGES)
    but = "the markup" + (" or what differs at each fetch" if repeated else "")
    lines = [f"Changes since {date_of(since)}: {counts}, {count(unchanged)} unchanged"]
    if alike.total:
        lines[0] += f" ({count(alike.total)} of them but for {but})"
    if repeated:
        lines.append(
            f"Asked twice: {count(repeated, 'page')}, to learn what differs at each fetch"
        )
    named = {kind.capitalize(): listed for kind, listed in lists.items()}
    if full:
        named[f"Unchanged but for {but}"] = alike
    for heading, listed in named.items():
        urls = (readable(url) + (f" ({visible(why)})" if why else "") for url, why in listed.items)
        lines += section(heading, listed, urls)
    return "\n".join(lines)


def date_of(since: float | None) -> str:
    """Return the time of a walk for people; None is that of the last one."""
    return (
        f"{datetime.fromtimestamp(since, UTC):%Y-%m-%d %H:%M} UTC"
        if since is not None
        else "the last walk"
    )
