"""Hints, the options that would have helped; and notes on pages, by what their facts say.

At most three lines are hints. Notes give an owner reason to look at a page: none is a fault.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from heapq import nlargest
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, NamedTuple

from trio_crawler.expressions import lazy
from trio_crawler.facts import PageFacts
from trio_crawler.ledger.join import Join
from trio_crawler.ledger.ledger import KeptFacts, Ledger
from trio_crawler.ledger.tables import CHECKED, FAILURE, NOINDEX, OTHER_CANONICAL, REDIRECT, TRIED
from trio_crawler.page.urls import authority, origin, without_userinfo
from trio_crawler.reason import REASONS, Reason
from trio_crawler.report.broken import checks_by_host, robots_files
from trio_crawler.report.summary import Summary
from trio_crawler.report.visible import count, duration, more, readable, visible

if TYPE_CHECKING:
    from trio_crawler.policy.settings import HostStatistics
    from trio_crawler.report.summary import CrawlFacts

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
    if run.facts.cpu > _MOST_OF * seconds:
        # The answers waited for the crawl.
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


# Notes on pages.

MOST_FACTS = 100_000
"""The most pages whose facts a report in HTML lists."""

MOST_TITLE, MOST_DESCRIPTION = 60, 160
"""The characters of a title, and of a description, that search engines show."""

_FEW = 3
# Characters of a language tag, which has 35 at most (RFC 5646, 4.4.1).
_TAG = 35
_CUT = "Search engines cut it: let its beginning say the most."
_LOOKS_MISSING = lazy(
    r"(?<![\w,.])404(?![\w,.]\w)|\bnot (?:be )?found\b|\b(?:does not|doesn't|no longer) exists?\b",
    re.IGNORECASE,
)

NOTES: Mapping[str, tuple[str, str]] = {
    "no_title": ("without a title", "Give each page a title: search engines show it."),
    "same_title": ("with the title of another page", "Let each title say what differs."),
    "long_title": (f"with a title of more than {MOST_TITLE} characters", _CUT),
    "no_description": ("without a description", "Search engines choose a text in its place."),
    "same_description": ("with the description of another page", "Say what differs."),
    "long_description": (f"with a description of more than {MOST_DESCRIPTION} characters", _CUT),
    "no_h1": ("without an h1", "Give the page one heading of the first level."),
    "several_h1": ("with several h1", "Let one heading be the first, and the others h2."),
    "canonical_redirects": ("whose canonical URL redirects", "Name the end of the redirect."),
    "canonical_fails": ("whose canonical URL is an error", "Name a page that exists."),
    "canonical_elsewhere": (
        "whose canonical URL is on another host",
        "Search engines leave the page out: look whether you want that.",
    ),
    "noindex_listed": ("with noindex that a sitemap lists", "Correct the page or the sitemap."),
    "hreflang_no_return": (
        "whose hreflang names a page that does not name it",
        "Search engines ignore the pair: let both pages name each other.",
    ),
    "insecure": ("of https that load parts by http", "Browsers block them: use https."),
    "bad_json_ld": ("with JSON-LD that is not valid JSON", "Correct it: no program reads it."),
    "no_alt": ("with images without an alt", 'Say what they show; alt="" if they only decorate.'),
    "soft_404": (
        "that look like an error, with a status of success",
        "Answer 404 or 410, or search engines list the page.",
    ),
    "scripted": (
        "made by a script, which the crawl has not run",
        "Their links and texts are unknown here, and to some search engines.",
    ),
}
"""For each code what such pages are, and what helps."""


def page_notes(ledger: Ledger, facts: CrawlFacts) -> dict[str, list[tuple[str, str]]]:
    """Return for each note its pages, as URL and detail, sorted; in the order of `NOTES`.

    Titles, descriptions and headings count only on pages that a search engine may list.
    """
    found: dict[str, list[tuple[str, str]]] = {code: [] for code in NOTES}
    same: dict[str, dict[str, list[str]]] = {"same_title": {}, "same_description": {}}
    named: dict[str, set[str]] = {}
    for page in ledger.facts():
        own = page.facts
        texts = (page.title or "", own.description or "") if page.row.indexable else ()
        for text, pages in zip(texts, same.values(), strict=False):
            if text:
                pages.setdefault(text, []).append(page.url)
        of_texts = _of_texts(*texts, own) if texts else ()
        for code, detail in (*of_texts, *_of_content(ledger, page, facts)):
            found[code].append((page.url, detail))
        if own.hreflang:
            named[page.url] = {url for _, url in own.hreflang}
    for code, texts_of in same.items():
        several = [(text, urls) for text, urls in texts_of.items() if len(urls) > 1]
        found[code] += [(url, text) for text, urls in several for url in urls]
    found["hreflang_no_return"] = [
        (url, other)
        for url, others in named.items()
        for other in others
        if other != url and other in named and url not in named[other]
    ]
    return {
        # Pages with one title stand together.
        code: sorted(pages, key=(lambda page: page[::-1]) if code in same else None)
        for code, pages in found.items()
        if pages
    }


def _of_texts(title: str, description: str, facts: PageFacts) -> Iterator[tuple[str, str]]:
    if not title:
        yield "no_title", ""
    elif len(title) > MOST_TITLE:
        yield "long_title", title
    if not description:
        yield "no_description", ""
    elif len(description) > MOST_DESCRIPTION:
        yield "long_description", description
    if facts.h1_count != 1:
        yield ("several_h1", " · ".join(facts.h1)) if facts.h1_count else ("no_h1", "")


def _of_content(ledger: Ledger, page: KeptFacts, crawl: CrawlFacts) -> Iterator[tuple[str, str]]:
    own, url, canonical = page.facts, page.url, page.canonical
    if canonical and page.row.flags & OTHER_CANONICAL:
        number = ledger.number(canonical)
        end = None if number is None else ledger.end(number)
        if end is not None and end.kind == REDIRECT:
            yield "canonical_redirects", canonical
        elif end is not None and (end.kind == FAILURE or end.status >= 400):
            yield "canonical_fails", canonical
        elif authority(canonical) != authority(url):
            yield "canonical_elsewhere", canonical
    if page.row.flags & NOINDEX and crawl.listing and (listing := crawl.listing(url)):
        yield "noindex_listed", listing.sitemap
    if own.insecure:
        yield "insecure", own.insecure[0]
    if own.json_ld_errors:
        yield "bad_json_ld", own.json_ld_errors[0]
    if own.images_without_alt:
        yield "no_alt", f"{count(own.images_without_alt)} of {count(own.images, 'image')}"
    told = page.title or "", own.h1[0] if own.h1 else ""
    home = origin(url)
    if home in crawl.missing:
        # None if an invented URL was answered with an error, as it should.
        alike = zip(crawl.missing[home] or (), told, strict=False)
        is_soft = any(each and each == mine for each, mine in alike)
    else:
        is_soft = _LOOKS_MISSING.search("\n".join(told)) is not None
    if is_soft:
        yield "soft_404", told[0] or told[1]
    if own.scripted:
        yield "scripted", ""


def looks_missing(ledger: Ledger, most: int) -> list[str]:
    """Return pages that look missing, of each host the first one, and at most so many."""
    found: dict[str, str] = {}
    for page in ledger.facts():
        if _LOOKS_MISSING.search(f"{page.title}\n{page.facts.h1[:1]}"):
            found.setdefault(origin(page.url), page.url)
    return [*found.values()][:most]


def page_tables(
    ledger: Ledger, facts: CrawlFacts, url: Callable[[str], int], text: Callable[[str | None], int]
) -> dict[str, list[list[Any]]]:
    """Return the tables of a report in HTML: the notes, and the facts of each page."""
    return {
        "notes": [
            [code, *NOTES[code], [[url(page), text(detail)] for page, detail in pages]]
            for code, pages in page_notes(ledger, facts).items()
        ],
        # By the numbers of URLs, which are in their order.
        "facts": sorted(
            [
                url(page.url),
                text(page.title),
                text(page.facts.h1[0] if page.facts.h1 else ""),
                text(page.facts.description),
                page.facts.words,
                text(page.facts.lang[:_TAG]),
                text(", ".join(page.facts.json_ld)),
                page.facts.images,
            ]
            for page in islice(ledger.facts(), MOST_FACTS)
        ),
    }


def notes_section(
    notes: Mapping[str, list[tuple[str, str]]], full: bool, shown: Callable[[str], str]
) -> list[str]:
    """Return the lines about the notes: for each the first pages, with `full` all of them."""
    lines = []
    for code, pages in notes.items():
        urls = list(dict.fromkeys(url for url, _ in pages))
        listed = urls if full else urls[:_FEW]
        lines.append(f"  {count(len(urls))} {NOTES[code][0]}")
        lines += (f"    {readable(shown(url))}" for url in listed)
        lines += more(len(urls) - len(listed), "    ")
    return ["Notes on pages, by their facts", *lines] if lines else []
