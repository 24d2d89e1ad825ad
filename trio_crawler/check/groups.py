"""The lists of a link check: by page or by target, one line for each, cut to two screens."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from heapq import nsmallest
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from trio_crawler.check.finding import Finding, origin_of, shortened
from trio_crawler.link import Link
from trio_crawler.policy.verdict import Defect, Verdict
from trio_crawler.report.visible import Paint, Tone, count, readable, visible

_ROOM = 75
"""The lines of all lists; with the head and the end a report has two screens of 50 lines."""
_SIZES = (30, 10, 5)
"""The most lines of a group: the first size with which all groups have room, or the last."""
_MANY = 10
"""The pages that make a target one of a template."""
_MAX_TEXT = 60
_WORST = 3

_Group = tuple[str | None, list[Finding]]


class _Bad(NamedTuple):
    """Findings with the same one need the same repair."""

    verdict: Verdict
    code: str
    url: str
    last: str


@lru_cache(1)
def _stem(page: str | None) -> str:
    """Return a slash and the path of a page without its ending; "" if it has no path."""
    page = (page or "").partition("?")[0]
    path = page[len(origin_of(page)) :].strip("/")
    return f"/{path.rpartition('.')[0] or path}" if path else ""


def _pattern(stem: str, url: str) -> str:
    """Return a URL with "*" for the path of the page without its ending.

    A template gives each page such a link of its own: "Edit this page", a canonical link.
    """
    before, found, after = url.rpartition(stem)
    return f"{before}/*{after}" if found and not after[:1].isalnum() else url


def bad_url(finding: Finding) -> str:
    """Return what is wrong: the place in a page that is there, else the page."""
    return finding.target if finding.code == Defect.MISSING_FRAGMENT else finding.url


def bad_urls(found: Iterable[Finding]) -> int:
    """Return the number of targets that are wrong."""
    return len(set(map(bad_url, found)))


class Row:
    """The text of one line; `shown` returns the text to show for a URL."""

    def __init__(self, shown: Callable[[str], str], paint: Paint) -> None:
        self.shown = shown
        self.paint = paint

    def page(self, url: str | None) -> str:
        """Return the name of a page."""
        return "(given)" if url is None else self.shown(url)

    def of_target(self, members: Sequence[Finding], *, whole: bool = False) -> str:
        """Return the line of a target on its page; `members` are the links there that have it.

        With `whole` the target has its fragment, although its page is missing.
        """
        first = members[0]
        url = first.target if whole else bad_url(first)
        rest = f" ({count(len(members))} links)" if len(members) > 1 else ""
        written = _written(first, url)
        told = f"{self.near(first.page, url)}{written}{_quoted(first.text)}{rest}"
        return f"{_place(first)}{self.why(first)}: {told}{_detail(first)}"

    def of_page(self, members: Sequence[Finding]) -> str:
        """Return the line of a page that has a target; `members` are its links there."""
        first = members[0]
        where = f"{self.page(first.page)}{':' if first.line else ''}{_place(first).strip()}"
        rest = f" ({count(len(members))} links)" if len(members) > 1 else ""
        return f"{where}{_quoted(first.text)}{rest}"

    def of_template(self, bad: _Bad, members: Sequence[Finding]) -> list[str]:
        """Return the lines of a target that many pages have."""
        first, pages = members[0], len({each.page for each in members})
        where = f"{self.page(first.page)}{':' if first.line else ''}{_place(first).strip()}"
        told = f"{self.near(first.page, bad.url)}{_written(first, bad_url(first))}"
        on = f"{count(len(members), 'link')} on {count(pages, 'page')}"
        return [
            f"  {self.why(first)}: {told}, {on}",
            *([f"    {shortened(first.detail)}"] if first.detail else []),
            f"    first {where}{_quoted(first.text)}",
        ]

    def why(self, finding: Finding) -> str:
        """Return the verdict and the code, and where the redirects lead."""
        onward = f" -> {self.near(finding.page, finding.chain[-1].url)}" if finding.chain else ""
        if finding.verdict is Verdict.NOTE:
            return f"{self.paint(f'note {finding.code}', Tone.NOTE)}{onward}"
        return f"{self.paint(finding.code, Tone.FAULT)}{onward}"

    def of_link(self, page: str, link: Link) -> str:
        """Return the line of a link that is no finding."""
        where = f"{self.page(page)}{':' if link.line else ''}{_place(link).strip()}"
        return (
            f"{where}: {self.near(page, link.url)}{_written(link, link.url)}{_quoted(link.text)}"
        )

    def near(self, page: str | None, url: str) -> str:
        """Return a URL as its page would write it: as a path if both are on one site."""
        home = origin_of(page or "")
        if home and url.startswith(f"{home}/"):
            return readable(url).removeprefix(visible(home))
        return self.shown(url)


def by_repair(found: Iterable[Finding]) -> dict[_Bad, list[Finding]]:
    """Return the findings in groups that need the same repair."""
    links: defaultdict[_Bad, list[Finding]] = defaultdict(list)
    alike: defaultdict[_Bad, list[tuple[_Bad, Finding]]] = defaultdict(list)
    for each in found:
        last, stem = each.chain[-1].url if each.chain else "", _stem(each.page)
        bad = _Bad(each.verdict, each.code, bad_url(each), last)
        if stem and (stem in bad.url or stem in last):
            pattern = _Bad(*bad[:2], _pattern(stem, bad.url), _pattern(stem, bad.last))
            alike[pattern].append((bad, each))
        else:
            links[bad].append(each)
    for pattern, members in alike.items():
        # A page that links to a namesake has no template.
        several = len({each.page for _, each in members}) > 1
        for bad, each in members:
            links[pattern if several else bad].append(each)
    return links


def most_frequent(links: Mapping[_Bad, Sequence[Finding]], row: Row) -> list[str]:
    """Return a line for each of the three faults that most links have."""
    faults = [key for key in links if key.verdict is Verdict.FAULT]
    first = nsmallest(_WORST, faults, key=lambda key: (-len(links[key]), key))
    return [row.of_template(key, links[key])[0].strip() for key in first]


def listing(
    found: Sequence[Finding],
    links: Mapping[_Bad, Sequence[Finding]],
    row: Row,
    *,
    by_target: bool,
    full: bool,
) -> list[str]:
    """Return the lists of the findings, each with its heading, with empty lines between them.

    `links` are they by their repair.
    """
    of_page = attrgetter("page")
    if by_target:
        parts = _listed(_by(found, bad_url), row, full, of_page, by_target=True)
    elif full:
        parts = _listed(_by(found, of_page), row, full, of_page)
    else:
        common = _common(links)
        repairs = {id(each): key for key, members in links.items() for each in members}
        told = set(common)
        others = [each for each in found if repairs[id(each)] not in told]
        parts = _templates({key: links[key] for key in common}, row)
        room = _ROOM - sum(map(len, parts))
        by_page = _by(others, of_page)
        parts += _listed(by_page, row, full, lambda each: repairs[id(each)], room=room)
    return [line for part in parts for line in ("", *part)][1:]


def _common(links: Mapping[_Bad, Sequence[Finding]]) -> list[_Bad]:
    """Return what many pages have: faults first, then by the number of pages."""
    pages = {
        key: len({each.page for each in members})
        for key, members in links.items()
        if len(members) >= _MANY
    }
    return sorted(
        (key for key, number in pages.items() if number >= _MANY),
        key=lambda key: (key.verdict is not Verdict.FAULT, -pages[key], key),
    )


def _templates(common: Mapping[_Bad, Sequence[Finding]], row: Row) -> list[list[str]]:
    if not common:
        return []
    most = _SIZES[1]
    heading = f"On {_MANY} pages or more, as from a template ({count(len(common), 'target')})"
    lines = [row.paint(heading, Tone.HEADING)]
    for key, members in list(common.items())[:most]:
        lines += row.of_template(key, members)
    if rest := list(common.values())[most:]:
        lines.append(f"  and {_links(rest)} to {count(len(rest), 'more target')}")
    return [lines]


def _by(found: Sequence[Finding], key: Callable[[Finding], str | None]) -> list[_Group]:
    """Return the findings in groups, those with the most faults first."""
    ordered = sorted(found, key=lambda each: key(each) or "")
    groups = [(name, list(rows)) for name, rows in groupby(ordered, key)]
    faults = {name: [each.verdict for each in rows].count(Verdict.FAULT) for name, rows in groups}
    return sorted(groups, key=lambda each: (-faults[each[0]], -len(each[1]), each[0] or ""))


def _listed(
    groups: Sequence[_Group],
    row: Row,
    full: bool,
    of_line: Callable[[Finding], object],
    *,
    by_target: bool = False,
    room: int = _ROOM,
) -> list[list[str]]:
    """Return the groups that there is room for, and a line about the others.

    The findings of a group with the same `of_line` have one line, unless each link has one.
    """
    if full:
        return [_whole(name, members, row, by_target) for name, members in groups]
    rows = [_rows(members, of_line) for _, members in groups]
    fitting = (
        size
        for size in _SIZES
        if sum(min(len(each), size) + 1 + (len(each) > size) + 1 for each in rows) <= room
    )
    size = next(fitting, _SIZES[-1])
    parts: list[list[str]] = []
    cut = False
    for number, ((name, members), targets) in enumerate(zip(groups, rows, strict=True)):
        part = _group(name, members, targets[:size], targets[size:], row, by_target)
        room -= len(part) + 1
        if room < 0 and parts:
            rest = groups[number:]
            where = count(len(rest), "more target" if by_target else "more page")
            links = _links([found for _, found in rest])
            parts.append([f"and {links} {'to' if by_target else 'on'} {where}"])
            cut = True
            break
        cut |= len(targets) > size
        parts.append(part)
    if cut:
        parts.append(["-v lists every link, --json FILE writes all to a file"])
    return parts


def _rows(members: Iterable[Finding], of_line: Callable[[Finding], object]) -> list[list[Finding]]:
    """Return the findings of each line of a group, faults and the most frequent first."""
    rows: defaultdict[object, list[Finding]] = defaultdict(list)
    for each in members:
        rows[of_line(each)].append(each)
    return sorted(rows.values(), key=lambda row: (row[0].verdict is Verdict.NOTE, -len(row)))


def _group(
    name: str | None,
    members: Sequence[Finding],
    listed: Sequence[Sequence[Finding]],
    rest: Sequence[Sequence[Finding]],
    row: Row,
    by_target: bool,
) -> list[str]:
    told = row.of_page if by_target else row.of_target
    lines = [_heading(name, members, row, by_target), *(f"  {told(each)}" for each in listed)]
    if rest:
        kind = "more page" if by_target else "more target"
        way = "on" if by_target else "to"
        lines.append(f"  and {_links(rest)} {way} {count(len(rest), kind)}")
    return lines


def _whole(name: str | None, members: Sequence[Finding], row: Row, by_target: bool) -> list[str]:
    """Return a group with a line for each link."""
    if by_target:
        rows = Counter(row.of_page([each]) for each in members)
    else:
        rows = Counter(row.of_target([each], whole=True) for each in members)
    lines = [_heading(name, members, row, by_target)]
    for text, times in rows.items():
        lines.append(f"  {text}{f' ({count(times)} times)' if times > 1 else ''}")
    return lines


def _heading(name: str | None, members: Sequence[Finding], row: Row, by_target: bool) -> str:
    faults = sum(each.verdict is Verdict.FAULT for each in members)
    numbers = {"fault": faults, "note": len(members) - faults}
    counts = ", ".join(count(number, noun) for noun, number in numbers.items() if number)
    title = row.paint(row.page(name), Tone.HEADING)
    if not by_target:
        return f"{title} ({counts})"
    return f"{title}: {row.why(members[0])} ({counts}){_detail(members[0])}"


def _links(rows: Iterable[Sequence[Finding]]) -> str:
    return count(sum(map(len, rows)), "link")


def _place(finding: Finding | Link) -> str:
    return f"{finding.line}:{finding.column} " if finding.line else ""


def _detail(finding: Finding) -> str:
    return f" - {shortened(finding.detail)}" if finding.detail else ""


def _written(finding: Finding | Link, url: str) -> str:
    """Return the href as its page has it, if the URL does not show that."""
    text = finding.as_written.partition("#")[0].lstrip("./")
    return "" if text in url else f" (written {_in_quotes(finding.as_written)})"


def _quoted(text: str) -> str:
    return f" {_in_quotes(text)}" if text else ""


def _in_quotes(text: str) -> str:
    return f'"{visible(text[:_MAX_TEXT])}{"…" if len(text) > _MAX_TEXT else ""}"'
