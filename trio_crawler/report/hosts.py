"""The hosts of a crawl: what came from each, where the time went, and which were given up."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from heapq import nlargest, nsmallest
from typing import TYPE_CHECKING

from trio_crawler.model import Checked, Failure, Outcome, Page, Redirect
from trio_crawler.page.urls import authority, is_web
from trio_crawler.report.visible import count, duration, size, visible

if TYPE_CHECKING:
    from trio_crawler.report.summary import Summary

MANY = 20
"""Beyond so many hosts the report has sums in place of lists."""

_MOST_HOSTS = 50_000
_OTHERS = "other hosts"
_TOP = 5
_EXAMPLES = 3
_MAX_HINTS = 2
# Ten hosts that took most of the time are the reason why a crawl took long.
_SLOW_SHARE = 10


class _Counts:
    """The outcomes of one host."""

    __slots__ = ("bytes", "failures", "pages", "seconds", "slow")

    def __init__(self) -> None:
        self.pages = self.failures = self.bytes = 0
        # The seconds of the last attempt at each URL, and those of the pages alone.
        self.seconds = self.slow = 0.0

    @property
    def mean(self) -> float:
        """The seconds that a page took."""
        return self.slow / self.pages if self.pages else 0.0


class HostTable:
    """The outcomes of a crawl by host, with its port; the first 50,000 hosts are counted apart.

    `checks` counts the URLs of other hosts that were checked, of 50,000 hosts at most.
    """

    def __init__(self) -> None:
        self._hosts: dict[str, _Counts] = {}
        self.checks: Counter[str] = Counter()

    def __repr__(self) -> str:
        return f"<HostTable: {len(self._hosts)} hosts>"

    def __len__(self) -> int:
        return len(self._hosts)

    def add(self, outcome: Outcome) -> None:
        """Record one outcome of a URL that was requested."""
        if isinstance(outcome, Checked):
            if not outcome.tries:
                return
            name = authority(outcome.url)
            if name in self.checks or len(self.checks) < _MOST_HOSTS:
                self.checks[name] += 1
            return
        if not isinstance(outcome, Page | Redirect | Failure):
            return
        host = self._host(outcome.url)
        host.seconds += outcome.seconds
        if isinstance(outcome, Page):
            host.pages += 1
            host.bytes += outcome.size
            host.slow += outcome.seconds
            host.failures += outcome.status >= 400
        else:
            host.failures += isinstance(outcome, Failure)

    def _host(self, url: str) -> _Counts:
        name = authority(url) if is_web(url) else _OTHERS
        found = self._hosts.get(name)
        if found is None:
            if len(self._hosts) >= _MOST_HOSTS:
                name = _OTHERS
            found = self._hosts.setdefault(name, _Counts())
        return found

    def lines(self, full: bool) -> list[str]:
        """Return a section of the hosts, if there are more than 20.

        It has the hosts with the most pages, with `full` all of them; those that took most of the
        time, those that were slow, and those with broken pages and failures.
        """
        hosts = self._hosts
        if len(hosts) <= MANY:
            return []
        pages = sum(each.pages for each in hosts.values())
        octets = sum(each.bytes for each in hosts.values())
        failing = sum(each.failures > 0 for each in hosts.values())
        return [
            f"Hosts ({count(len(hosts))}): {count(pages, 'page')}, {size(octets)}; "
            f"{count(failing)} with errors",
            *self._top("Most pages", len(hosts) if full else _TOP, lambda each: each.pages),
            *self._top(self._time(), _TOP, lambda each: each.seconds),
            *self._top("Slowest", _TOP, lambda each: each.mean),
            *self._top("Most errors", _TOP, lambda each: each.failures),
        ]

    def _time(self) -> str:
        seconds = [each.seconds for each in self._hosts.values()]
        total = sum(seconds)
        if not total:
            return "Most time"
        share = sum(nlargest(_SLOW_SHARE, seconds)) / total
        return (
            f"Most time (all requests took {duration(total)}, "
            f"those to {_SLOW_SHARE} hosts {share:.0%} of it)"
        )

    def _top(self, title: str, most: int, figure: Callable[[_Counts], float]) -> list[str]:
        found = [name for name, each in self._hosts.items() if figure(each)]
        first = nsmallest(most, found, key=lambda name: (-figure(self._hosts[name]), name))
        lines = [f"    {visible(name)}: {_figures(self._hosts[name])}" for name in first]
        if len(first) < len(found):
            lines.append(f"    and {count(len(found) - len(first))} more")
        return [f"  {title}", *lines] if lines else []


def _figures(host: _Counts) -> str:
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


def given_up(summary: Summary, full: bool, twins: Collection[str] = ()) -> list[str]:
    """List the hosts that were given up, with the number of URLs not requested there.

    If there are more than 20, each reason has a line, and with `full` also each host. The origins
    of `twins` are left out.
    """
    urls = summary.given_up.items()
    found = Counter({key: number for key, number in urls if key[0] not in twins})
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
