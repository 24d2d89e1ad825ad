"""Text for people: the report of a crawl, and one line for each outcome."""

import math
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from itertools import islice
from typing import Any, NamedTuple, TypeAlias, assert_never

from msgspec.structs import replace

from trio_crawler._version import __version__
from trio_crawler.arguments import (
    ArgumentError,
    check_flag,
    check_function,
    check_iterable,
    check_kind,
    check_number,
    check_whole,
    public,
)
from trio_crawler.ledger.join import Join
from trio_crawler.ledger.ledger import Ledger
from trio_crawler.ledger.tables import PAGE
from trio_crawler.model import (
    Checked,
    Failure,
    Outcome,
    Page,
    Reason,
    Redirect,
    Skipped,
    Statistics,
)
from trio_crawler.policy.settings import HostStatistics, HostWait
from trio_crawler.report import broken, sections, shapes
from trio_crawler.report.hints import (
    Run,
    barred,
    hints,
    login_advice,
    looks_missing,
    notes_section,
    page_notes,
)
from trio_crawler.report.rejections import (
    LeftOut,
    endless_section,
    left_out,
    logged_out,
    rejected_section,
)
from trio_crawler.report.shapes import Shape
from trio_crawler.report.summary import Crawl, CrawlFacts, Summary, facts_of, source_of
from trio_crawler.report.visible import (
    Paint,
    attempted,
    count,
    duration,
    headed,
    laid_out,
    painting,
    readable,
    size,
    visible,
)

_Section: TypeAlias = Callable[[], list[str]]
"""Makes the lines of a section, or none."""

_MAX_REFERRERS = 10
_MAX_LISTED = 20
_WORST = 3
# A site decides how many there are, and how long.
_MAX_BROKEN = 1_000
_MAX_TITLE = 80
# ▶ A host takes 9 us.
_HOSTS_READ = 5_000
_OUT_OF_TIME = "the time allowed was over"


class _Joined(NamedTuple):
    """A ledger with its counts and its links joined."""

    summary: Summary
    join: Join
    left_out: LeftOut


@public("trio_crawler.report")
class Report:
    """A report about the outcomes of a crawl, as text; the outcomes come in any order.

    Of two outcomes with one URL the later counts. With `why` the report lists every rejected URL.
    With `full` it lists all redirects, flaws, duplicates, referrers, orphans and unlisted pages;
    without, the first of each. It keeps no outcome and no body.

    With a `ledger` it reports what that has, and `add` adds to it; with `why` it must be one that
    keeps what is `outside`.

    >>> web = Web({"/": html("/gone")})
    >>> crawler, report = Crawler([web.url], fetch=web), Report()
    >>> async def crawl() -> str:
    ...     async with crawler.outcomes() as outcomes:
    ...         async for outcome in outcomes:
    ...             report.add(outcome)
    ...     return report.text(crawler)
    >>> print(trio.run(crawl).splitlines()[-1])
    admitted 2 = 2 pages + 0 redirects + 0 failures + 0 skipped
    """

    def __init__(
        self, why: bool = False, full: bool = False, *, ledger: Ledger | None = None
    ) -> None:
        check_flag("why", why)
        check_flag("full", full)
        check_kind("ledger", ledger, Ledger | None, "a Ledger or None")
        if ledger is not None and why and not ledger.outside:
            raise ArgumentError("ledger", " must be a Ledger(outside=True) for a report with why")
        self._why = why
        self._full = full
        self.ledger = Ledger(outside=why) if ledger is None else ledger
        # And after how many changes of the ledger it was made.
        self._known: tuple[int, _Joined] | None = None

    def __repr__(self) -> str:
        return f"<Report pages={self.ledger.kinds[PAGE]} {self.ledger!r}>"

    def add(self, outcome: Outcome) -> None:
        """Record one outcome; each URL has one, or a redirect and one with `again`."""
        self.ledger.add(outcome)

    def add_waiting(self, url: str) -> None:
        """Record a URL that has no outcome yet: it waits in the directory for a later run."""
        self.ledger.add_waiting(url)

    @property
    def _joined(self) -> _Joined:
        if self._known is None or self._known[0] != self.ledger.changes:
            ledger = self.ledger
            joined = _Joined(Summary(ledger, self._full), Join(ledger), left_out(ledger))
            self._known = ledger.changes, joined
        return self._known[1]

    def _prepare(self) -> list[str]:
        """Join the ledger; an exception in it is told once, not by each section."""
        _ = self._joined
        return []

    @property
    def problems(self) -> int:
        """The number of broken links and of hosts that were given up.

        Broken are error statuses, failures, redirect loops and malformed hrefs. To count them all
        outcomes are read: `Ledger.errors` is nearly the same, and at hand.
        """
        return self._joined.join.problems + self._joined.summary.hosts_lost

    @property
    def no_pages(self) -> bool:
        """Whether no page was fetched, not even one with an error status."""
        return self.ledger.kinds[PAGE] == 0

    @property
    def turned_away(self) -> bool:
        """Whether the start pages have links, all left out because of nofollow or robots.txt.

        Links that lead outside of the crawl do not count.
        """
        return self._joined.left_out.all

    def shapes(self) -> list[Shape]:
        """Return the shapes of the URLs of the crawl.

        A shape costs the pages that brought nothing new, and those that wait; those that cost most
        come first.
        """
        return shapes.shapes_of(self.ledger)

    def looks_missing(self, most: int) -> list[str]:
        """Return pages that look like an error but have a status of success: one of each host.

        They are known if pages have facts; `most` bounds the list. Whether such a host answers an
        invented URL alike decides: see `CrawlFacts.missing`.
        """
        check_whole("most", most, least=1)
        return looks_missing(self.ledger, most) if self.ledger.has_facts else []

    def text(
        self,
        crawl: CrawlFacts | Crawl,
        *,
        color: bool = False,
        errors: list[Exception] | None = None,
    ) -> str:
        """Return the report, without a line end after its last line.

        `crawl` is the crawler; a `CrawlFacts` knows more than that, such as the directory. With
        `full` the report includes the hosts if they are slowed and, if they are known, the
        connections. One of more than 24 lines begins with a screen that says what is worst, and
        what is below. Text from the web is escaped (see `visible`), URLs are never cut, and the
        order of the lines does not depend on the order of the outcomes. With `color` the text has
        the colours of a terminal (ECMA-48, SGR). With `errors`, a section that raises an exception
        is told in its place, and the exception is added.
        """
        check_flag("color", color)
        check_kind("errors", errors, list | None, "a list or None")
        known, paint = facts_of(crawl), painting(color)
        if lost := attempted(self._prepare, errors):
            return "\n".join([*lost, "", *sections.finish(known)])
        (summary, join, _), ledger, full = self._joined, self.ledger, self._full
        facts, early = self._facts(known), self._early(known)
        worst, limit = broken.lost(summary), None if full else _MAX_LISTED
        parts: list[_Section] = [
            lambda: self._broken(facts, paint, worst),
            lambda: broken.given_up(summary, full),
            *sections.lists(summary),
            lambda: sections.sitemaps(facts.sitemaps, limit, self._why),
            lambda: sections.pages("Orphans", sections.orphans(join, facts), limit, early),
            lambda: sections.pages("Unlisted", sections.unlisted(ledger, facts), limit, early),
            lambda: self.notes(facts),
            lambda: broken.hosts_section(summary.hosts, facts, full),
            # If the crawl found much that was not new, or shows all and is not complete.
            lambda: (
                shapes.shapes_section(ledger, full)
                if (full and early) or shapes.is_repetitive(ledger)
                else []
            ),
            lambda: sections.slowest(summary.slowest),
            lambda: rejected_section(ledger, full) if self._why else sections.rejected(summary),
            lambda: endless_section(ledger, full),
            lambda: sections.skipped(summary),
            lambda: sections.not_checked(summary, facts),
        ]
        end: list[_Section] = [
            lambda: sections.totals(summary.counters),
            lambda: sections.connections(facts.wire) if facts.wire and full else [],
            lambda: sections.finish(facts, again=summary.counters["again"]),
            lambda: hints(self._run(facts)),
        ]
        return laid_out(
            attempted(lambda: self._head(facts, paint), errors),
            (),
            [attempted(section, errors) for section in parts],
            [attempted(section, errors) for section in end],
            paint,
            account=sections.account(facts.statistics),
            worst=worst[:_WORST],
        )

    def html(
        self,
        crawl: CrawlFacts | Crawl,
        *,
        date: datetime,
        command: str = "",
        check: Mapping[str, Any] | None = None,
        changes: Iterable[Any] = (),
        since: float | None = None,
        shown: Callable[[str], str] = lambda url: url,
        version: str = __version__,
    ) -> bytes:
        """Return the report as one file of HTML in UTF-8, for a browser; it needs no network.

        It has what the text has, and lists all of it, but of more than 250,000 URLs or 200,000
        places of faults the first. The ledger must be one with `traits`. `check` is the document
        of `check.to_json`, decoded: its findings take the place of the broken links. `changes`
        are those of `History.changes`, `since` when the earlier walk began. `date`, `command` and
        `version` are shown. `shown` returns the text to show for a URL.
        """
        # Imported late: the report of a crawl is seldom in HTML.
        from trio_crawler.report import html

        check_kind("date", date, datetime, "a datetime")
        check_kind("command", command, str, "a str")
        check_kind("check", check, Mapping | None, "a document of to_json or None")
        check_iterable("changes", changes, "changes")
        if since is not None:
            check_number("since", since)
        check_function("shown", shown, "a function of a URL")
        check_kind("version", version, str, "a str")
        if self.ledger.traits is None:
            raise ArgumentError("ledger", " of the report must be a Ledger(traits=True)")
        facts, (summary, join, _) = self._facts(facts_of(crawl)), self._joined
        verdict, level = self._verdict(facts), "good"
        if check is not None and summary.pages:
            verdict, level = html.verdict_of(check)
        if self.problems if check is None else not summary.pages:
            level = "fault"
        why = facts.ended or (check or {}).get("ended", "")
        told = {
            "what": "Crawl" if check is None else "Link check",
            "verdict": verdict,
            "level": level,
            "remarks": [
                *([f"It ended early: {visible(why)}"] if why else []),
                *([] if check else self._head(facts, painting(False))[1:]),
                *broken.lost(summary),
            ],
            "date": sections.date_of(date.timestamp()),
            "version": visible(version),
            "command": visible(command),
            "end": sections.finish(facts, again=summary.counters["again"]),
            "hints": hints(self._run(facts)) + sections.not_checked(summary, facts),
        }
        tables = html.Tables(self.ledger, summary, join, facts, check, changes, since, shown)
        return html.document(told, tables, facts.statistics)

    def notes(
        self, crawl: CrawlFacts | Crawl, shown: Callable[[str], str] = lambda url: url
    ) -> list[str]:
        """Return lines about what the facts of pages lack, if they have some; `text` has them too.

        `shown` returns the text to show for a URL.
        """
        check_function("shown", shown, "a function of a URL")
        facts = facts_of(crawl)
        if not self.ledger.has_facts:
            return []
        return notes_section(page_notes(self.ledger, facts), self._full, shown)

    def hints(self, crawl: CrawlFacts | Crawl) -> list[str]:
        """Return what the report of a check ends with; `text` has the same of a crawl.

        A line says what the next run in the directory does, if there is one. At most three lines
        say which option would have helped.
        """
        facts = self._facts(facts_of(crawl))
        run = self._run(facts, login_advice(self.ledger.logins, facts))
        return [*sections.next_run(facts), *hints(run)]

    def _run(self, facts: CrawlFacts, logins: Mapping[str, str] | None = None) -> Run:
        summary, join, _ = self._joined
        return Run(self.ledger, summary, join, facts, logins or {})

    def _facts(self, facts: CrawlFacts) -> CrawlFacts:
        out_of_time = Reason.TIME_BUDGET in self._joined.summary.early
        ended = facts.ended or (_OUT_OF_TIME if out_of_time else "")
        # The hosts of a crawl are looked up one by one, and several sections read them.
        return replace(facts, ended=ended, hosts=dict(facts.hosts))

    def _early(self, facts: CrawlFacts) -> bool:
        """Whether the crawl ended early, or URLs were left out or wait."""
        waiting = facts.statistics.waiting + facts.statistics.in_flight or self.ledger.waiting
        return bool(facts.ended or waiting or self._joined.summary.early)

    def _verdict(self, facts: CrawlFacts) -> str:
        """Return in a few words what the crawl has found."""
        summary, join, left = self._joined
        here = " in this run" if facts.statistics.pages else ""
        told = [] if summary.pages else [f"no page was fetched{here}"]
        told += ["no link was followed"] if left.all else []
        if join.problems:
            told.append(count(join.problems, "broken link"))
        if summary.hosts_lost:
            told.append(f"{count(summary.hosts_lost, 'host')} given up")
        return (", ".join(told) or "nothing is broken") + (" so far" if self._early(facts) else "")

    def _head(self, facts: CrawlFacts, paint: Paint) -> list[str]:
        """Return the heading, and if the crawl left out, or could not see, most of the site."""
        summary, _, left = self._joined
        return [
            *headed(sections.heading(facts, self._verdict(facts)), paint),
            *(barred(summary) or left.lines(len(facts.seeds), summary.pages)),
            *(logged_out(self.ledger) if facts.credentials else []),
        ]

    def _broken(self, facts: CrawlFacts, paint: Paint, worst: list[str]) -> list[str]:
        """Return the section about broken links, by host if they are on many hosts."""
        join = self._joined.join
        total = join.problems
        source, advice = source_of(facts), login_advice(self.ledger.logins, facts)
        if not self._full and total > broken.MANY_HOSTS:
            found = broken.hosts_of(join)
            if len(found) > broken.MANY_HOSTS:
                hurt = found[:_WORST]
                worst += [f"{visible(on.name)}: {count(on.total, 'broken link')}" for on in hurt]
                return broken.broken_by_host(join, found, source, advice, paint)
        most = None if self._full else _MAX_BROKEN
        many = not self._full and len(self.ledger.malformed) > broken.FEW_MALFORMED
        # They are too many to be listed.
        grouped = join.malformed() if many else {}
        listed = join.broken(
            None if self._full else _MAX_REFERRERS, source, most, malformed=not grouped
        )
        first = join.most_linked(_WORST) if total > len(listed) else []
        worst += broken.worst(join.broken(None, source, among=first) if first else listed, paint)
        return broken.broken_links(listed, total, self._full, advice, paint, malformed=grouped)


@public("trio_crawler.report")
def one_line(outcome: Outcome) -> str:
    """Return one outcome as one line of text, without control characters of a terminal.

    URLs are complete; a title is cut after 80 characters.

    >>> one_line(Failure("https://e.org/", Reason.NO_SUCH_HOST, "no address"))
    'fail no_such_host https://e.org/: no address'
    """
    check_kind("outcome", outcome, Outcome, "an outcome")
    match outcome:
        case Page(url=url, title=title, duplicate_of=original):
            taken = f"{size(outcome.size):>10} {duration(outcome.seconds):>8}"
            cut = title if not title or len(title) <= _MAX_TITLE else f"{title[: _MAX_TITLE - 1]}…"
            named = f'  "{visible(cut)}"' if cut else ""
            noindex = " (noindex)" if "noindex" in outcome.robots else ""
            same = f" (same as {readable(original)})" if original else ""
            return f"{outcome.status}  {taken}  {readable(url)}{named}{noindex}{same}"
        case Redirect(url=url, status=status, target=target, rejected=rejected):
            why = f" ({rejected})" if rejected else ""
            return f"{status}  {readable(url)} -> {readable(target)}{why}"
        case Failure(url=url, reason=reason, detail=detail, phase=phase):
            why = f"{reason} ({phase})" if phase else reason
            return f"fail {why} {readable(url)}" + (f": {visible(detail)}" if detail else "")
        case Skipped(url=url, reason=reason):
            return f"skip {reason} {readable(url)}"
        case Checked(url=url, status=status, reason=reason, detail=detail, target=target):
            onward = f" -> {readable(target)}" if target else ""
            why = f": {visible(detail)}" if detail else ""
            return f"check {status or reason} {readable(url)}{onward}{why}"
        case _:
            assert_never(outcome)


@public("trio_crawler.report")
def progress_line(
    statistics: Statistics, problems: int, hosts: Iterable[HostStatistics] = ()
) -> str:
    """Return the `statistics` of a crawl that is running in one line; see `Report.problems`.

    If nothing is in flight while URLs wait, the line names one of the `hosts` that the crawl waits
    for, the number of the others, and how long they rest at most.

    >>> progress_line(Statistics(admitted=12, pages=8, waiting=4, seconds=2.0), problems=1)
    '8 pages  4/s  4 in queue  0 in flight  1 error  0:02'
    """
    check_kind("statistics", statistics, Statistics, "a Statistics")
    check_whole("problems", problems)
    check_iterable("hosts", hosts, "HostStatistics")
    ended = statistics.admitted - statistics.waiting - statistics.in_flight
    rate = ended / statistics.seconds if statistics.seconds else 0.0
    minutes, seconds = divmod(int(statistics.seconds), 60)
    return (
        f"{count(statistics.pages, 'page')}  {rate:,.0f}/s  {count(statistics.waiting)} in queue  "
        f"{statistics.in_flight} in flight  {count(problems, 'error')}  {minutes}:{seconds:02}"
        f"{_awaited(hosts) if statistics.waiting and not statistics.in_flight else ''}"
    )


def _awaited(hosts: Iterable[HostStatistics]) -> str:
    """Return the end of the live line that says which hosts rest."""
    resting = [
        (host.rest, host.name)
        for host in islice(hosts, _HOSTS_READ)
        if host.waits_for is HostWait.REST or (host.failures and not host.given_up)
    ]
    if not resting:
        return ""
    rest, name = max(resting)
    others = f" and {count(len(resting) - 1, 'more host')}" if len(resting) > 1 else ""
    until = f", up to {count(math.ceil(rest))} s" if rest > 0 else ""
    return f"  waiting for {visible(name)}{others}{until}"
