"""The hosts of a crawl: what came from each, where the time went, and which were given up."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from heapq import nlargest, nsmallest

from trio_crawler.ledger.ledger import Ledger
from trio_crawler.ledger.rows import CHECKED, TRIED
from trio_crawler.page.urls import authority
from trio_crawler.report.summary import HostCounts, Summary
from trio_crawler.report.visible import count, duration, size, visible

MANY = 20
"""Beyond so many hosts the report has sums in place of lists."""

_TOP = 5
_EXAMPLES = 3
_MAX_HINTS = 2
# Ten hosts that took most of the time are the reason why a crawl took long.
_SLOW_SHARE = 10


def hosts_section(hosts: Mapping[str, HostCounts], full: bool) -> list[str]:
    """Return a section of the hosts, if there are more than 20.

    It has the hosts with the most pages, with `full` all of them; those that took most of the
    time, those that were slow, and those with broken pages and failures.
    """
    if len(hosts) <= MANY:
        return []
    pages = sum(each.pages for each in hosts.values())
    octets = sum(each.bytes for each in hosts.values())
    failing = sum(each.failures > 0 for each in hosts.values())
    return [
        f"Hosts ({count(len(hosts))}): {count(pages, 'page')}, {size(octets)}; "
        f"{count(failing)} with errors",
        *_top(hosts, "Most pages", len(hosts) if full else _TOP, lambda each: each.pages),
        *_top(hosts, _time(hosts), _TOP, lambda each: each.seconds),
        *_top(hosts, "Slowest", _TOP, lambda each: each.mean),
        *_top(hosts, "Most errors", _TOP, lambda each: each.failures),
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
    hosts: Mapping[str, HostCounts], title: str, most: int, figure: Callable[[HostCounts], float]
) -> list[str]:
    found = [name for name, each in hosts.items() if figure(each)]
    first = nsmallest(most, found, key=lambda name: (-figure(hosts[name]), name))
    lines = [f"    {visible(name)}: {_figures(hosts[name])}" for name in first]
    if len(first) < len(found):
        lines.append(f"    and {count(len(found) - len(first))} more")
    return [f"  {title}", *lines] if lines else []


def checks_by_host(ledger: Ledger) -> Counter[str]:
    """Count the URLs of other hosts that were asked for in a check."""
    rows = ledger.ends(CHECKED)
    return Counter(authority(url) for url, row in rows if row.flags & TRIED)


def _figures(host: HostCounts) -> str:
    parts = [count(host.pages, "page"), size(host.bytes)]
    if host.failures:
        parts.append(count(host.failures, "error"))
    parts.append(f"{duration(host.seconds)} in all")
    if host.pages:
        parts.append(f"{duration(host.mean)} a page")
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
