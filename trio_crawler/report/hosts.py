"""What became of the hosts: which were given up, and how quick the others were."""

from __future__ import annotations

import math
from collections.abc import Sequence
from heapq import nsmallest
from typing import TYPE_CHECKING

from trio_crawler.report.sections import section
from trio_crawler.report.shortlist import Shortlist
from trio_crawler.report.summary import Tally
from trio_crawler.report.units import count, duration
from trio_crawler.report.visible import visible

if TYPE_CHECKING:
    from trio_crawler.policy.politeness import HostStatistics, Politeness

_MOST = 20
_HINTS = 5
_ANYWAY = "(--ignore-robots crawls anyway)"


def given_up(tally: Tally, most: int | None) -> list[str]:
    """List the hosts that were given up, and count what was not asked for there."""
    found: Shortlist[tuple[str, str, int]] = Shortlist(most)
    for (origin, reason), number in tally.given_up.items():
        found.add((origin, reason, number))
    lines = (
        f"{visible(origin)}: {reason}, {count(number, 'URL')} not asked for"
        for origin, reason, number in found.items
    )
    return section("Hosts given up", found.total, lines, found.beyond)


def speeds(hosts: Sequence[HostStatistics], politeness: Politeness | None) -> list[str]:
    """Tell of the slowest hosts how quick they are and what they bear, if that made a difference.

    It did when limits were adaptive, or when a host has a delay.
    """
    adaptive = politeness is not None and politeness.adaptive
    # What a host bears is the same for both schemes.
    asked = list({host.host: host for host in hosts if host.latency}.values())
    if not asked or not (adaptive or any(host.delay for host in asked)):
        return []
    slowest = nsmallest(_MOST, asked, key=lambda host: (-host.latency, host.host))
    beyond = len(asked) - len(slowest)
    lines = [f"Hosts ({count(len(asked))})", *map(_speed, slowest)]
    return [*lines, f"  and {count(beyond)} more, which are quicker"] if beyond else lines


def hints(
    tally: Tally, hosts: Sequence[HostStatistics], politeness: Politeness | None
) -> list[str]:
    """Say what to do about a robots.txt that could not be had, allows nothing, or takes time."""
    lost = sorted(tally.robots_lost.items())[:_HINTS]
    told = [f"robots.txt of {visible(o)}/ could not be had: {visible(why)}" for o, why in lost]
    if not tally.pages:
        barred = sorted(tally.barred)[:_HINTS]
        told += (f"robots.txt of {visible(o)}/ allows nothing of what is wanted" for o in barred)
    least = politeness.delay if politeness else math.inf
    slow = sorted({(host.host, host.delay) for host in hosts if host.delay > least})[:_HINTS]
    told += (f"robots.txt of {visible(h)} wants {s:g} s from request to request" for h, s in slow)
    return [f"{hint} {_ANYWAY}" for hint in told]


def _speed(host: HostStatistics) -> str:
    delay = f", delay {host.delay:g} s" if host.delay else ""
    return f"  {visible(host.host)}: {duration(host.latency)}, limit {host.limit}{delay}"
