"""The sections of the report: each a heading and its lines, or nothing when it is empty."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from trio_crawler.model import Reason, Statistics
from trio_crawler.page.urls import without_userinfo
from trio_crawler.report.links import Broken, Referrer
from trio_crawler.report.shortlist import Shortlist
from trio_crawler.report.summary import Tally
from trio_crawler.report.units import count, duration, size
from trio_crawler.report.visible import visible

if TYPE_CHECKING:
    from trio_crawler.net.wire import WireStatistics
    from trio_crawler.policy.politeness import Politeness

_FEW = 10


def section(title: str, total: int, lines: Iterable[str], beyond: int) -> list[str]:
    """Write a heading with the number of things and a line for each; nothing for none."""
    if not total:
        return []
    rest = [f"  and {count(beyond)} more, use -v to list all"] if beyond else []
    return [f"{title} ({count(total)})", *(f"  {line}" for line in lines), *rest]


def heading(
    seeds: Sequence[str], insecure: Sequence[str], politeness: Politeness | None
) -> list[str]:
    """Say which crawl this is, by its first seed, whom it trusted without proof, what it ignored.

    A password in a seed is not told.
    """
    lines = [f"Certificates not verified: {', '.join(map(visible, insecure))}"] if insecure else []
    if politeness and not politeness.robots:
        lines.append("robots.txt ignored")
    if politeness and not politeness.nofollow:
        lines.append("nofollow ignored")
    if not seeds:
        return lines
    more = f" and {count(len(seeds) - 1, 'more seed')}" if len(seeds) > 1 else ""
    return [f"Crawl of {visible(without_userinfo(seeds[0]))}{more}", *lines]


def broken_links(found: Sequence[Broken], full: bool) -> list[str]:
    """List broken links, each with the pages that lead to it."""
    lines = [f"Broken links ({count(len(found))})"] if found else []
    for broken in found:
        lines.append(f"  {broken.why} {visible(broken.url)}")
        if broken.loop:
            lines.append(f"      {_chain((*broken.loop, broken.url), full)}")
        if broken.detail:
            lines.append(f"      {visible(broken.detail)}")
        lines += (f"      {_referrer(each)}" for each in broken.referrers)
        if broken.beyond:
            lines.append(f"      and {count(broken.beyond)} more")
    return lines


def redirects(found: Shortlist[tuple[str, int, str, str]]) -> list[str]:
    """List redirects with their targets."""
    lines = (
        f"{status} {visible(url)} -> {visible(target)}" + (f" ({reason})" if reason else "")
        for url, status, target, reason in found.items
    )
    return section("Redirects", found.total, lines, found.beyond)


def flaws(found: Shortlist[tuple[str, str]]) -> list[str]:
    """List the pages that could not be read as they should be, with what is wrong."""
    lines = (f"{reasons} {visible(url)}" for url, reasons in found.items)
    return section("Flaws", found.total, lines, found.beyond)


def duplicates(found: Shortlist[tuple[str, str]]) -> list[str]:
    """List the pages that are a duplicate of another one."""
    lines = (f"{visible(url)} = {visible(first)}" for url, first in found.items)
    return section("Duplicates", found.total, lines, found.beyond)


def slowest(found: Shortlist[tuple[float, str]]) -> list[str]:
    """List the slowest pages, the slowest first."""
    lines = [f"  {duration(-minus):>8}  {visible(url)}" for minus, url in found.items]
    return ["Slowest pages", *lines] if lines else []


def refused(tally: Tally, why: bool) -> list[str]:
    """Count the links that were not admitted, or list each with a URL that leads to it.

    Those that are no URL are among the broken links already.
    """
    if not why:
        counts = _counts(tally.counters, "refused", leave_out=Reason.BAD_URL)
        return [f"Refused links: {counts} (--why lists them)"] if counts else []
    groups = {key: tally.refused[key] for key in tally.refused if key is not Reason.BAD_URL}
    lines = [f"Refused ({count(sum(map(len, groups.values())))})"] if groups else []
    for reason in sorted(groups):
        lines.append(f"  {reason} ({count(len(groups[reason]))})")
        lines += (
            f"    {visible(url)} from {visible(page)}"
            for url, page in sorted(groups[reason].items())
        )
    return lines


def skipped(counters: Counter[str]) -> list[str]:
    """Count by reason what was admitted and never asked for."""
    counts = _counts(counters, "skipped")
    return [f"Skipped: {counts}"] if counts else []


def totals(counters: Counter[str]) -> list[str]:
    """List the counters by name; sizes also in a unit that can be read."""
    width = max((len(count(number)) for number in counters.values()), default=0)
    return [
        f"  {count(number):>{width}} {key}"
        + (f" ({size(number)})" if _is_large(key, number) else "")
        for key, number in sorted(counters.items())
    ]


def connections(wire: WireStatistics) -> list[str]:
    """Say what went over the wire."""
    ways = {"made": wire.made, "reused": wire.reused, "retried": wire.retried, "open": wire.open}
    counts = ", ".join(f"{count(number)} {name}" for name, number in ways.items())
    return [f"Connections: {counts}; {size(wire.bytes_in)} in, {size(wire.bytes_out)} out"]


def finish(
    statistics: Statistics,
    workers: int,
    ended: str,
    politeness: Politeness | None,
    directory: str = "",
    spent: bool = False,
) -> list[str]:
    """Say how long it took, what is left, and that every URL admitted is accounted for."""
    done = statistics.pages + statistics.redirects + statistics.failures
    rate = done / statistics.seconds if statistics.seconds > 0 else 0.0
    lines = [f"Ended early: {visible(ended)}"] if ended else []
    if directory:
        lines.append(_left(statistics.waiting + statistics.in_flight, visible(directory), spent))
    if statistics.retries:
        lines.append(f"Tried again: {count(statistics.retries, 'time')}")
    lines.append(
        f"Finished {count(done, 'URL')} in {statistics.seconds:,.3f} s"
        f" ({rate:,.1f} URLs/s, workers={workers}{_per_host(politeness)})"
    )
    return [*lines, f"admitted {count(statistics.admitted)} = {_account(statistics)}"]


def hints(tally: Tally) -> list[str]:
    """Say what to do when no page came, and a redirect to another site is the cause."""
    if tally.pages:
        return []
    return [
        f"{visible(url)} leads to {visible(target)}, another site: crawl it by its own URL"
        for url, target in tally.away.items
    ]


def _left(waiting: int, directory: str, spent: bool) -> str:
    if not waiting:
        return f"The crawl in {directory} is complete now: --refresh walks through the site again"
    wait = "waits" if waiting == 1 else "wait"
    how = "a greater --max-pages" if spent else "the same command"
    return f"{count(waiting, 'URL')} {wait} in {directory}: {how} goes on"


def _per_host(politeness: Politeness | None) -> str:
    if politeness is None:
        return ""
    return f", per host {politeness.per_host}" + (", adaptive" if politeness.adaptive else "")


def _referrer(referrer: Referrer) -> str:
    where = "(seed)" if referrer.page is None else f"from {visible(referrer.page)}"
    if not referrer.via:
        return where
    rest = f" -> {count(referrer.beyond)} more" if referrer.beyond else ""
    return f"{where} via {' -> '.join(map(visible, referrer.via))}{rest}"


def _chain(urls: Sequence[str], full: bool) -> str:
    if full or len(urls) <= _FEW:
        return " -> ".join(map(visible, urls))
    ends = [*urls[: _FEW - 1], f"{count(len(urls) - _FEW)} more", urls[-1]]
    return " -> ".join(map(visible, ends))


def _counts(counters: Counter[str], kind: str, leave_out: str = "") -> str:
    keys = sorted(key for key in counters if key.startswith(f"{kind}_"))
    reasons = {key: key.removeprefix(f"{kind}_") for key in keys}
    shown = (key for key in keys if reasons[key] != leave_out)
    return ", ".join(f"{count(counters[key])} {reasons[key]}" for key in shown)


def _is_large(key: str, number: int) -> bool:
    return key.endswith("_bytes") and number >= 1024


def _account(statistics: Statistics) -> str:
    terms = [
        count(statistics.pages, "page"),
        count(statistics.redirects, "redirect"),
        count(statistics.failures, "failure"),
        f"{count(statistics.skipped)} skipped",
    ]
    rest = {"in flight": statistics.in_flight, "waiting": statistics.waiting}
    terms += (f"{count(number)} {name}" for name, number in rest.items() if number)
    return " + ".join(terms)
