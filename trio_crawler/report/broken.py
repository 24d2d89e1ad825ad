"""The broken links of a crawl, each with its referrers or counted by host; and its hosts.

Of the hosts it is told what came from each, where the time went, and which were given up.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from heapq import nlargest, nsmallest
from typing import TYPE_CHECKING

from trio_crawler.ledger.join import Broken, Join, Referrer
from trio_crawler.ledger.ledger import Ledger
from trio_crawler.ledger.tables import CHECKED, TRIED
from trio_crawler.model import Reason, Record
from trio_crawler.page.urls import authority, is_web, origin
from trio_crawler.report.summary import HostCounts, Summary
from trio_crawler.report.visible import Paint, Tone, count, duration, more, readable, size, visible

if TYPE_CHECKING:
    from trio_crawler.report.summary import CrawlFacts

MANY_HOSTS = 20
"""Broken links of more hosts than this are counted by host."""

FEW_MALFORMED = 20
"""More hrefs that are no URLs than this are counted by page."""

_PAGES = 20
_MAX_LOOP = 10
_EXAMPLES = 3
_NO_HOST = "hrefs that are no URLs"


def broken_links(
    found: Sequence[Broken],
    total: int,
    full: bool,
    advice: Mapping[str, str],
    paint: Paint,
    malformed: Mapping[str, Collection[str]] | None = None,
) -> list[str]:
    """List the first of `total` broken links, each with its referrers.

    `advice` has for each origin what to do about its 401; the first one of them shows it.
    `malformed` has by page the hrefs that are no URLs, if these are among the total and not among
    those that were `found`: they are counted by page.
    """
    advised = dict(advice)
    counted = set().union(*(malformed or {}).values())
    lines = [f"Broken links ({count(total)})"] if found or counted else []
    for broken in found:
        lines += (f"  {line}" for line in _lines(broken, full, advised, paint))
    lines += more(total - len(found) - len(counted))
    return lines + (_malformed(malformed, len(counted)) if malformed else [])


def worst(found: Iterable[Broken], paint: Paint) -> list[str]:
    """Return a line for each of the three broken links that most pages have."""
    pages = {each: len(each.referrers) + each.omitted for each in found}
    first = nsmallest(_EXAMPLES, pages, key=lambda each: (-pages[each], each.url))
    return [
        f"{paint(each.why, Tone.FAULT)} {readable(each.url)}"
        + ("" if each.is_seed else f", from {count(pages[each], 'page')}")
        for each in first
    ]


def _lines(broken: Broken, full: bool, advised: dict[str, str], paint: Paint) -> Iterator[str]:
    """Yield the lines about one broken link; an advice is taken out of `advised`."""
    yield f"{paint(broken.why, Tone.FAULT)} {readable(broken.url)}"
    if broken.loop:
        yield f"    {_chain((*broken.loop, broken.url), full)}"
    if broken.why == "401" and (told := advised.pop(origin(broken.url), "")):
        yield f"    {told}"
    if broken.detail:
        yield f"    {visible(broken.detail)}"
    yield from (f"    {_referrer(each)}" for each in broken.referrers)
    if broken.omitted:
        yield f"    and {count(broken.omitted)} more"


def _referrer(referrer: Referrer) -> str:
    where = "(seed)" if referrer.page is None else f"from {readable(referrer.page)}"
    if not referrer.via:
        return where
    rest = f" -> {count(referrer.omitted)} more" if referrer.omitted else ""
    return f"{where} via {' -> '.join(map(readable, referrer.via))}{rest}"


def _chain(urls: Sequence[str], full: bool) -> str:
    if full or len(urls) <= _MAX_LOOP:
        return " -> ".join(map(readable, urls))
    ends = [*urls[: _MAX_LOOP - 1], f"{count(len(urls) - _MAX_LOOP)} more", urls[-1]]
    return " -> ".join(map(readable, ends))


def _malformed(found: Mapping[str, Collection[str]], number: int) -> list[str]:
    """Count the hrefs that are no URLs by page; the first 20 pages have an href each."""
    pages = sorted(found)
    lines = [f"  {Reason.BAD_URL}: {count(number)} hrefs that are no URLs"]
    for page in pages[:_PAGES]:
        hrefs = found[page]
        example = readable(min(hrefs))
        what = example if len(hrefs) == 1 else f"{count(len(hrefs))}, such as {example}"
        lines.append(f"      from {readable(page)}: {what}")
    if len(pages) > _PAGES:
        lines.append(f"      and from {count(len(pages) - _PAGES, 'more page')}, -v lists all")
    return lines


class BrokenHost(Record, frozen=True):
    """The broken links of one host: how many of each kind, and the first URL of each kind.

    A URL is its text and its number.
    """

    name: str
    kinds: Mapping[str, int]
    first: Mapping[str, tuple[str, int]]

    @property
    def total(self) -> int:
        """The number of broken links."""
        return sum(self.kinds.values())


def hosts_of(join: Join) -> list[BrokenHost]:
    """Return the hosts that have broken links, those with the most of them first."""
    kinds: defaultdict[str, Counter[str]] = defaultdict(Counter)
    first: defaultdict[str, dict[str, tuple[str, int]]] = defaultdict(dict)
    for number, (url, why, *_) in join.ends.items():
        name = origin(url) if is_web(url) and url.find("/", 8) > 0 else _NO_HOST
        kinds[name][why] += 1
        first[name][why] = min((url, number), first[name].get(why, (url, number)))
    found = (BrokenHost(name, kinds[name], first[name]) for name in kinds)
    return sorted(found, key=lambda host: (-host.total, host.name))


def broken_by_host(
    join: Join,
    hosts: Sequence[BrokenHost],
    source: Callable[[str], str | None],
    advice: Mapping[str, str],
    paint: Paint,
) -> list[str]:
    """Count the broken links of each of the first 20 hosts by kind.

    Of each of the three most frequent kinds one URL is named, with one referrer.
    """
    advised = dict(advice)
    kinds = {
        host.name: sorted(host.kinds.items(), key=lambda kind: (-kind[1], kind[0]))[:_EXAMPLES]
        for host in hosts[:MANY_HOSTS]
    }
    among = {host.first[why][1] for host in hosts[:MANY_HOSTS] for why, _ in kinds[host.name]}
    named = {broken.url: broken for broken in join.broken(1, source, among=among)}
    total = sum(host.total for host in hosts)
    lines = [f"Broken links ({count(total)}) of {count(len(hosts), 'host')}, use -v to list all"]
    for host in hosts[:MANY_HOSTS]:
        told = ", ".join(f"{count(number)} {why}" for why, number in kinds[host.name])
        rest = host.total - sum(number for _, number in kinds[host.name])
        others = f", {count(rest)} other" if rest else ""
        lines.append(f"  {visible(host.name)}: {told}{others}")
        for why, _ in kinds[host.name]:
            about = _lines(named[host.first[why][0]], False, advised, paint)
            lines += (f"    {line}" for line in about)
    if rest_of := hosts[MANY_HOSTS:]:
        number = sum(host.total for host in rest_of)
        lines.append(f"  and {count(number)} more of {count(len(rest_of), 'host')}")
    return lines


# The hosts.

MANY = 20
"""Beyond so many hosts the report has sums in place of lists."""

_TOP = 5
_EXAMPLES = 3
_MAX_HINTS = 2
# Ten hosts that took most of the time are the reason why a crawl took long.
_SLOW_SHARE = 10


def hosts_section(hosts: Mapping[str, HostCounts], facts: CrawlFacts, full: bool) -> list[str]:
    """Return a section of the hosts, if there are more than 20, or with `full` if some are slowed.

    It has the hosts with the most pages, with `full` all of them; those that took most of the
    time, those that were slow, and those with broken pages and failures. If limits were adaptive,
    or a host has a delay, `full` tells them.
    """
    adaptive = facts.politeness is not None and facts.politeness.adaptive
    slowed = full and (adaptive or any(each.delay for each in facts.hosts.values()))
    if len(hosts) <= MANY and not slowed:
        return []
    pace = {
        name: f", limit {each.limit}" + (f", delay {each.delay:g} s" if each.delay else "")
        for name, each in facts.hosts.items()
        if slowed
    }
    pages = sum(each.pages for each in hosts.values())
    octets = sum(each.bytes for each in hosts.values())
    failing = sum(each.failures > 0 for each in hosts.values())
    return [
        f"Hosts ({count(len(hosts))}): {count(pages, 'page')}, {size(octets)}; "
        f"{count(failing)} with errors",
        *_top(hosts, pace, "Most pages", len(hosts) if full else _TOP, lambda each: each.pages),
        *_top(hosts, pace, _time(hosts), _TOP, lambda each: each.seconds),
        *_top(hosts, pace, "Slowest", _TOP, lambda each: each.mean),
        *_top(hosts, pace, "Most errors", _TOP, lambda each: each.failures),
    ]


def _time(hosts: Mapping[str, HostCounts]) -> str:
    seconds = [each.seconds for each in hosts.values()]
    total = sum(seconds)
    if not total:
        return "Most time"
    share = sum(nlargest(_SLOW_SHARE, seconds)) / total
    return (
        f"Most time (all requests took {duration(total)}, "
        f"those to {_SLOW_SHARE} hosts {share:.0%} of it)"
    )


def _top(
    hosts: Mapping[str, HostCounts],
    pace: Mapping[str, str],
    title: str,
    most: int,
    figure: Callable[[HostCounts], float],
) -> list[str]:
    found = [name for name, each in hosts.items() if figure(each)]
    first = nsmallest(most, found, key=lambda name: (-figure(hosts[name]), name))
    told = ((name, _figures(hosts[name]) + pace.get(name, "")) for name in first)
    lines = [f"    {visible(name)}: {figures}" for name, figures in told]
    if len(first) < len(found):
        lines.append(f"    and {count(len(found) - len(first))} more")
    return [f"  {title}", *lines] if lines else []


def checks_by_host(ledger: Ledger) -> Counter[str]:
    """Count the URLs of other hosts that were asked for in a check."""
    rows = ledger.ends(CHECKED)
    return Counter(authority(url) for url, row in rows if row.flags & TRIED)


def _figures(host: HostCounts) -> str:
    parts = [
        *(count(host.pages, "page"), size(host.bytes)),
        *([count(host.failures, "error")] if host.failures else []),
        f"{duration(host.seconds)} in all",
        *([f"{duration(host.mean)} a page"] if host.pages else []),
    ]
    return ", ".join(parts)


def some(names: Iterable[str], total: int) -> str:
    """Return the first names of `total`, as examples."""
    first = nsmallest(_EXAMPLES, names)
    listed = ", ".join(map(visible, first))
    return f"such as {listed}" if total > len(first) else listed


def given_up(summary: Summary, full: bool) -> list[str]:
    """List the hosts that were given up, with the number of URLs not requested there.

    If there are more than 20, each reason has a line, and with `full` also each host.
    """
    found = summary.given_up
    if not found:
        return []
    lines = [f"Hosts given up ({count(len(found))})"]
    if len(found) > MANY:
        lines += _by_reason(found)
    if full or len(found) <= MANY:
        lines += (
            f"  {visible(host)}: {reason}, {count(number, 'URL')} not asked for"
            for (host, reason), number in sorted(found.items())
        )
    else:
        lines.append("  use -v to list all")
    return lines


def lost(summary: Summary) -> list[str]:
    """Return a line about the hosts that were given up; none without them."""
    found = summary.given_up
    if not found:
        return []
    urls = f"{count(sum(found.values()), 'URL')} not asked for"
    if len(found) > 1:
        return [f"given up: {count(len(found), 'host')}, {urls}"]
    ((host, reason),) = found
    return [f"given up: {visible(host)}, {reason}, {urls}"]


def _by_reason(found: Counter[tuple[str, str]]) -> list[str]:
    hosts: defaultdict[str, list[str]] = defaultdict(list)
    urls: Counter[str] = Counter()
    for (host, reason), number in found.items():
        hosts[reason].append(host)
        urls[reason] += number
    return [
        f"  {reason}: {count(len(hosts[reason]), 'host')}, {count(urls[reason], 'URL')} not asked "
        f"for, {some(hosts[reason], len(hosts[reason]))}"
        for reason in sorted(hosts, key=lambda each: (-len(hosts[each]), each))
    ]


def robots_files(found: Mapping[str, str], end: str, rest: str) -> list[tuple[str, str]]:
    """Return whose robots.txt it is, and the text about it, for hosts with a text each.

    More than two hosts are told in groups: how many have the same text, and a few of them. Of
    many groups the two largest are told; the others have the text `rest`.
    """
    if len(found) <= _MAX_HINTS:
        return [(f"{visible(name)}{end}", why) for name, why in sorted(found.items())]
    groups: defaultdict[str, list[str]] = defaultdict(list)
    for name, why in found.items():
        groups[why].append(f"{name}{end}")
    order = sorted(groups, key=lambda why: (-len(groups[why]), why))
    told = [(_several(groups[why]), why) for why in order[:_MAX_HINTS]]
    others = [name for why in order[_MAX_HINTS:] for name in groups[why]]
    if others:
        told.append((_several(others, "other "), rest))
    return told


def _several(names: Sequence[str], other: str = "") -> str:
    if len(names) == 1:
        return visible(names[0])
    return f"{count(len(names), f'{other}host')} ({some(names, len(names))})"
