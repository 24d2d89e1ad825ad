"""The report of a link check for people: by the page that an author mends, or by target."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

from trio_crawler.arguments import (
    check_flag,
    check_function,
    check_iterable,
    check_kind,
    check_whole,
    public,
)
from trio_crawler.check.facts import CheckFacts
from trio_crawler.check.finding import Finding, Identity, in_order
from trio_crawler.check.groups import Row, bad_urls, by_repair, listing, most_frequent
from trio_crawler.link import ASSET_KINDS, LinkKind
from trio_crawler.policy.verdict import PERMANENT, Verdict
from trio_crawler.reason import REASONS
from trio_crawler.report.codes import is_status, sentence
from trio_crawler.report.visible import (
    Paint,
    Tone,
    attempted,
    count,
    laid_out,
    more,
    painting,
    readable,
    visible,
)

_MOST_LISTED = 20
_MOST_ENDINGS = 5
_MARKDOWN = (".md", ".markdown", ".mdx")

_Shown = Callable[[str], str]


@public("trio_crawler.check")
def check_report(
    findings: Iterable[Finding],
    facts: CheckFacts,
    *,
    by_target: bool = False,
    full: bool = False,
    known: int = 0,
    shown: _Shown = lambda url: url,
    color: bool = False,
    errors: list[Exception] | None = None,
) -> str:
    """Return a link check as text, without a line end after its last line.

    `facts` has its date, its command and its counts. The findings are listed by page, or with
    `by_target` by the URL that they lead to, most of them first. A target that ten pages or more
    have, as from a template, is listed once before them. All lists together have some 75 lines and
    say how much they leave out; with `full` each link has a line.

    `known` counts the findings of the baseline, which are left out. `shown` returns the text to
    show for a URL; a target on the site of its page is shown as a path. Text from the web is
    escaped (see `visible`). With `color` the text has the colours of a terminal (ECMA-48, SGR).
    With `errors`, a section that raises an exception is told in its place, and that is added.

    >>> page, url = "https://e.org/", "https://e.org/x"
    >>> finding = Finding(verdict=Verdict.FAULT, url=url, code="404", page=page)
    >>> facts = CheckFacts(datetime(2026, 11, 28, tzinfo=UTC), version="1.0")
    >>> print(check_report([finding], facts))
    Link check, 2026-11-28T00:00:00Z, trio_crawler 1.0: 1 fault, 0 notes
    <BLANKLINE>
    https://e.org/ (1 fault)
      404: /x
    <BLANKLINE>
    0 different links checked. 1 target on 1 page: 1 fault, 0 notes
    """
    check_iterable("findings", findings, "findings")
    check_kind("facts", facts, CheckFacts, "a CheckFacts")
    check_function("shown", shown, "a function of a URL")
    check_flag("by_target", by_target)
    check_flag("full", full)
    check_whole("known", known)
    check_flag("color", color)
    check_kind("errors", errors, list | None, "a list or None")
    found, paint = in_order(findings), painting(color)
    named, shown = shown, lambda url: readable(named(url))
    row, links = Row(shown, paint), by_repair(found)

    head, worst, listed, *sections, end = (
        attempted(make, errors)
        for make in (
            lambda: _head(facts, _verdict(found, known, paint), paint),
            lambda: most_frequent(links, row),
            lambda: listing(found, links, row, by_target=by_target, full=full),
            lambda: _codes(found),
            lambda: not_checked(facts, row),
            lambda: _unlinked(facts, full, shown),
            lambda: _mended(facts.mended, full, shown, paint),
            lambda: _totals(found, facts, _verdict(found, known, paint)),
        )
    )
    lists = [listed] if listed else []
    name = "the faults by target" if by_target else "the faults by page"
    account = end[-1].partition(":")[0]
    return laid_out(head, lists, sections, [end], paint, account=account, worst=worst, name=name)


def _head(facts: CheckFacts, verdict: str, paint: Paint) -> list[str]:
    title = f"Link check, {facts.when}, trio_crawler {visible(facts.version)}"
    lines = [f"{paint(title, Tone.HEADING)}: {verdict}"]
    if facts.command:
        lines.append(f"  {visible(facts.command)}")
    if facts.ended:
        lines.append(f"  {paint(f'It ended early: {visible(facts.ended)}', Tone.NOTE)}")
    return lines


def _codes(found: Iterable[Finding]) -> list[str]:
    """List the codes that do not speak for themselves, with what they mean."""
    codes = {each.code for each in found if not each.detail}
    # Most people know what 404 is; a note on a redirect asks for an update.
    told = sorted(code for code in codes if not is_status(code) or int(code) in PERMANENT)
    return ["Codes", *(f"  {code}: {sentence(code)}" for code in told)] if told else []


_KINDS: Mapping[str, str] = {
    LinkKind.A: "link",
    LinkKind.FRAME: "frame",
    LinkKind.REFRESH: "refresh element",
    LinkKind.LINK: "link element",
    LinkKind.IMAGE: "image",
    LinkKind.ICON: "icon",
    LinkKind.STYLE: "style sheet",
    LinkKind.SCRIPT: "script",
    LinkKind.MEDIA: "media file",
    LinkKind.OBJECT: "object",
    LinkKind.CSS: "CSS URL",
    LinkKind.PRELOAD: "preload",
    LinkKind.MANIFEST: "manifest",
    LinkKind.FORM: "form",
}
_UNASKED: Mapping[str, tuple[str, str]] = {
    "no_request": ("a check sends no form", ""),
    **{reason: (about.unasked, about.way) for reason, about in REASONS.items() if about.unasked},
}
"""Why links were not checked, and which option checks them."""
_ASSETS = ("only pages were asked for", "--check assets checks such links")
_MAILTO = ("only the syntax of the address is checked", "")
_ENDED = ("not reached before the check ended", "")
_LEFT_OUT = ("which the crawl did not follow", "")


def not_checked(facts: CheckFacts, row: Row | None = None) -> list[str]:
    """List what was not checked, by kind and reason, with the option that would.

    With a `row` the links are listed, too, as far as the facts have them.
    """
    rows: Counter[tuple[str, str, str]] = Counter()
    for (kind, reason), number in facts.not_checked.items():
        if number:
            # Several reasons may have one remedy.
            rows[unasked(kind, reason, facts.ended)] += number
    if not rows:
        return []
    listed: defaultdict[tuple[str, str, str], list[str]] = defaultdict(list)
    if row is not None:
        for each in facts.listed or ():
            key = unasked(each.kind, each.reason, facts.ended)
            listed[key].append(row.of_link(each.page, each.link))
    lines = [f"Not checked ({count(rows.total(), 'link')})"]
    for key, number in sorted(rows.items(), key=lambda each: (-each[1], each[0])):
        (name, why, option), links = key, listed[key]
        lines.append(f"  {count(number, name)}, {why}{f' ({option})' if option else ''}")
        lines += [f"    {link}" for link in links]
        lines += more(number - len(links) if links else 0, "    ")
    return lines


def unasked(kind: str, reason: str, ended: str) -> tuple[str, str, str]:
    """Return the name of a kind, why its links were not checked, and the option that would."""
    why = _UNASKED.get(reason) or (visible(reason), "")
    if kind == "mailto":
        why = _MAILTO
    elif not reason:
        why = _ASSETS if kind in ASSET_KINDS else _ENDED if ended else _LEFT_OUT
    return (_KINDS.get(kind) or f"{visible(kind)}: link", *why)


def _unlinked(facts: CheckFacts, full: bool, shown: _Shown) -> list[str]:
    """List the pages of a folder that no link leads to, and count its other files."""
    urls, unread = facts.unlinked or (), sum(facts.unread.values())
    lines = [f"Pages that no link leads to ({len(urls)})"] if urls else []
    lines += [f"  {visible(shown(url))}" for url in (urls if full else urls[:_MOST_LISTED])]
    lines += more(0 if full else len(urls) - _MOST_LISTED)
    if unread:
        lines += [] if lines else ["Not read"]
        leads = "that no link leads to, was" if unread == 1 else "that no link leads to, were"
        endings = Counter(facts.unread).most_common(_MOST_ENDINGS)
        kinds = ", ".join(
            f"{count(number)} {visible(ending) or 'without an ending'}"
            for ending, number in endings
        )
        if rest := unread - sum(number for _, number in endings):
            kinds += f" and {count(rest)} more"
        lines.append(f"  {count(unread, 'file')} of other kinds, {leads} not read: {kinds}")
        if any(ending.lower() in _MARKDOWN for ending in facts.unread):
            lines.append("  A check reads no Markdown: check the HTML that is made of it")
    return lines


def _mended(
    mended: Sequence[Identity] | None, full: bool, shown: _Shown, paint: Paint
) -> list[str]:
    """List the entries of the baseline that were not found again."""
    if not mended:
        return []
    listed = mended if full else mended[:_MOST_LISTED]
    lines = [f"Mended since the baseline ({count(len(mended))})"]
    for each in listed:
        code = paint(visible(each.code), Tone.GOOD)
        lines.append(f"  {code} {shown(each.target)} on {shown(each.page)}")
    return lines + more(len(mended) - len(listed))


def _verdict(found: Sequence[Finding], known: int, paint: Paint) -> str:
    faults = [each.verdict for each in found].count(Verdict.FAULT)
    notes = len(found) - faults
    beside = f", {count(known)} known from the baseline" if known else ""
    red = paint(count(faults, "fault"), Tone.FAULT if faults else Tone.GOOD)
    yellow = paint(count(notes, "note"), Tone.NOTE) if notes else count(notes, "note")
    return f"{red}, {yellow}{beside}"


def _totals(found: Sequence[Finding], facts: CheckFacts, verdict: str) -> list[str]:
    lines = []
    if facts.recalled:
        known_fine = count(facts.recalled, "external URL")
        lines.append(f"{known_fine} not asked again: fine in an earlier check")
    where = ""
    if found:
        pages = len({each.page for each in found})
        where = f" {count(bad_urls(found), 'target')} on {count(pages, 'page')}:"
    return [*lines, f"{count(facts.total, 'different link')} checked.{where} {verdict}"]
