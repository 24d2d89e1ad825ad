"""The report as one file of HTML: its facts as tables of numbers, which a script in it shows."""

from __future__ import annotations

import base64
import hashlib
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from heapq import nsmallest
from importlib.resources import files
from itertools import chain
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from trio_crawler.ledger.join import Broken, Join
from trio_crawler.ledger.ledger import Ledger, numbers_of
from trio_crawler.ledger.rows import CHECKED, FAILURE, NO_URL, PAGE, REDIRECT, SKIPPED, Row
from trio_crawler.ledger.traits import Traits
from trio_crawler.page.urls import NOWHERE, is_web, origin, without_userinfo
from trio_crawler.policy.verdict import Defect
from trio_crawler.reason import REASONS
from trio_crawler.report.codes import explained
from trio_crawler.report.page_notes import page_tables
from trio_crawler.report.rejections import listed
from trio_crawler.report.sections import unlisted_urls
from trio_crawler.report.summary import Summary
from trio_crawler.report.visible import count, readable, visible

if TYPE_CHECKING:
    from trio_crawler.ledger.url_table import TextList
    from trio_crawler.report.facts import CrawlFacts
    from trio_crawler.store.changes import Change

MOST_ENDS, MOST_PLACES = 250_000, 200_000
"""The most URLs, and the most places of faults, that a file lists: it must open in a browser."""

_MOST_LISTED, _MOST_REFERRERS, _MOST_HOSTS = 5_000, 20, 2_000
_LONGEST_URL, _LONGEST_TEXT = 2_000, 300
_WORST = 3
_KINDS = {PAGE: "page", REDIRECT: "redirect", FAILURE: "failure", SKIPPED: "skipped"}
_KINDS |= {CHECKED: "checked"}


class Told(NamedTuple):
    """What a report has in words.

    `level` is that of the verdict: good, note or fault; `lost` are the hosts that were given up.
    """

    verdict: str
    level: str
    ended: str
    remarks: list[str]
    lost: list[str]
    end: Sequence[str]
    hints: Sequence[str]


class About(NamedTuple):
    """The run as the file shows it: its date and its command, and what the ledger does not have.

    `check` is the document of `check.to_json`, as `json.loads` returns it; None without a check.
    """

    date: datetime
    command: str
    version: str
    check: Mapping[str, Any] | None
    changes: Iterable[Change]
    since: float | None
    shown: Callable[[str], str]


class _Texts:
    """Texts with a number for each, as they are shown; 0 is the empty one."""

    def __init__(self, shown: Callable[[str], str]) -> None:
        self._shown = shown
        self._numbers = {"": 0}
        # The two URLs of an index.html in a folder are shown as one.
        self._by_shown = {"": 0}

    @property
    def list(self) -> list[str]:
        """The texts in the order of their numbers."""
        return [*self._by_shown]

    def __call__(self, text: str | None) -> int:
        if not text:
            return 0
        number = self._numbers.get(text)
        if number is None:
            new = len(self._by_shown)
            number = self._numbers[text] = self._by_shown.setdefault(self._shown(text), new)
        return number


class _Problem(NamedTuple):
    """One fault or note of one target; two that are equal need the same repair."""

    verdict: str
    code: str
    url: str
    says: str
    detail: str
    external: bool
    chain: tuple[tuple[int, str], ...]


class _Place(NamedTuple):
    """One link with a problem: its page ("" for a seed), and what is known of the link."""

    page: str
    line: int
    column: int
    text: str
    written: str
    kind: str


class _Data:
    """The tables of the file: URLs and texts are numbers in them."""

    def __init__(self, ledger: Ledger, facts: CrawlFacts, about: About) -> None:
        self._ledger = ledger
        self._facts = facts
        self._about = about
        self.url = _Texts(lambda url: _cut(readable(about.shown(url)), _LONGEST_URL))
        self.text = _Texts(lambda text: visible(_cut(text, _LONGEST_TEXT)))

    def ends(self) -> dict[str, Any]:
        """Return the columns of all ends, sorted by URL; times are milliseconds."""
        ledger, url, text = self._ledger, self.url, self.text
        traits = Traits() if ledger.traits is None else ledger.traits
        titles = [*traits.titles]
        every = ((each, row, traits.get(row.number)) for each, row in ledger.ends())
        found = nsmallest(MOST_ENDS, every)
        columns: dict[str, array[int]] = {
            name: array("q")
            for name in "url kind status why ms size depth type title at target inlinks".split()
        }
        began = min((trait.ended for *_, trait in found if trait.ended), default=0.0)
        named = self._named({row.target for _, row, _ in found})
        inlinks = self._ledger.inlinks()
        for about_url, row, trait in found:
            for name, value in {
                "url": url(about_url),
                "kind": row.kind,
                "status": row.status,
                "why": text(self._why(row)),
                "ms": round(row.seconds * 1000),
                "size": row.size,
                "depth": trait.depth,
                "type": text(trait.type),
                "title": text(titles[trait.title]),
                "at": round((trait.ended - began) * 1000) + 1 if trait.ended else 0,
                "target": url(named.get(row.target)),
                "inlinks": inlinks[row.number],
            }.items():
                columns[name].append(value)
        told = {name: list(column) for name, column in columns.items()}
        return told | {"omitted": len(ledger) - len(found)}

    def _named(self, numbers: Collection[int]) -> dict[int, str]:
        """Return URLs by their numbers.

        ▶ In their order: one by one each takes up to 0.5 ms, and 100,000 took 80 s.
        """
        every = enumerate(self._ledger.urls.urls)
        return {number: each for number, each in every if number in numbers}

    def _why(self, row: Row) -> str:
        if row.kind == PAGE:
            return ", ".join(self._ledger.flaws[row.code])
        return row.rejected or "" if row.kind == REDIRECT else row.reason or ""

    def problems(self, join: Join, source: Callable[[str], str | None]) -> dict[str, Any]:
        """Return the faults and notes, and the places of each; all faults of a kind are one."""
        left_out: dict[str, int] = {}
        if self._about.check is not None:
            places = self._of_check(self._about.check)
        else:
            most = max(10, MOST_PLACES // max(1, join.problems))
            broken = join.broken(most, source)
            left_out = {each.url: each.omitted for each in broken}
            places = chain.from_iterable(map(self._of_crawl, broken))
        found: dict[_Problem, list[_Place]] = {}
        for problem, place in places:
            found.setdefault(problem, []).append(place)
        most = MOST_PLACES
        while sum(min(len(each), most) for each in found.values()) > MOST_PLACES and most > 10:
            most = most * 3 // 4
        url, text = self.url, self.text
        return {
            "list": [
                [
                    int(each.verdict == "note"),
                    text(each.code),
                    url(each.url),
                    text(each.says),
                    text(each.detail),
                    int(each.external),
                    [[status, url(hop)] for status, hop in each.chain],
                    len(rows) + left_out.get(each.url, 0),
                    min(len(rows), most),
                ]
                for each, rows in found.items()
            ],
            "places": [
                [url(page), line, column, text(said), text(written), text(kind)]
                for rows in found.values()
                for page, line, column, said, written, kind in rows[:most]
            ],
            "codes": {each.code: explained(each.code) for each in found},
        }

    def _of_check(self, check: Mapping[str, Any]) -> Iterator[tuple[_Problem, _Place]]:
        for each in check["findings"]:
            # Of a page that is missing, so are all its places.
            end = f"#{each['fragment']}" if each["code"] == Defect.MISSING_FRAGMENT else ""
            hops = tuple((hop["status"], hop["url"]) for hop in each["chain"])
            yield (
                _Problem(
                    each["verdict"],
                    each["code"],
                    each["url"] + end,
                    each["says"],
                    each["detail"],
                    each["external"],
                    hops,
                ),
                _Place(
                    each["page"] or "",
                    each["line"],
                    each["column"],
                    each["text"],
                    each["as_written"],
                    each["kind"],
                ),
            )

    def _of_crawl(self, broken: Broken) -> Iterator[tuple[_Problem, _Place]]:
        """Yield a broken link for each of its pages; in place of a spelling there is the way."""
        says, _ = explained(broken.why)
        loop = tuple((0, each) for each in broken.loop)
        problem = _Problem("fault", broken.why, broken.url, says[:-1], broken.detail, False, loop)
        for each in broken.referrers:
            way = " → ".join(map(readable, each.via)) + (" → …" if each.omitted else "")
            yield problem, _Place(each.page or "", 0, 0, "", way, "")

    def redirects(self) -> list[list[Any]]:
        """Return the URLs that redirect, each with the number of its pages and the first ones."""
        ledger = self._ledger
        found = {
            row.number: (about_url, set[int]())
            for about_url, row in ledger.ends(REDIRECT, CHECKED)
            if row.target != NO_URL
        }
        wanted = ledger.spellings(found)
        for each in ledger.outlinks() if found else ():
            hits = wanted.intersection(each.followed)
            for packed in each.pointed.kinds.values() if each.pointed else ():
                hits |= wanted.intersection(numbers_of(packed))
            for number in hits:
                found[ledger.usual(number)][1].add(each.page)
        named = self._named(set().union(*(pages for _, pages in found.values())))
        return [
            [self.url(about_url), len(pages), list(map(self.url, first))]
            for about_url, pages in sorted(found.values(), key=itemgetter(0))
            for first in [nsmallest(_MOST_REFERRERS, (named[page] for page in pages))]
        ]

    def rejected(self, summary: Summary) -> list[dict[str, Any]]:
        """Return the rejected links by reason and shape, each with a page that has it."""
        found = listed(self._ledger)
        rows = []
        for reason in sorted(summary.rejected.keys() | found, key=lambda each: each.value):
            shapes = sorted(found.get(reason, {}).items(), key=lambda each: (-len(each[1]), each))
            left, groups = _MOST_LISTED, []
            for shape, urls in shapes:
                first = sorted(urls.items())[:left]
                left -= len(first)
                links = [[self.url(link), self.url(page)] for link, page in first]
                name = readable(self._about.shown(shape)) or "other shapes"
                groups.append([name, len(urls), links])
            about = REASONS[reason]
            rows.append(
                {
                    "reason": reason.value,
                    "says": f"{about.sentence}.",
                    "option": about.option,
                    "number": summary.rejected[reason],
                    "urls": sum(len(urls) for _, urls in shapes),
                    "shapes": groups[:_MOST_LISTED],
                }
            )
        return rows

    def sitemaps(self, join: Join, indexable: Callable[[], TextList]) -> dict[str, Any]:
        """Return the sitemaps, the orphans, and the pages that no sitemap lists."""
        facts, url = self._facts, self.url
        listing, found = facts.listing, facts.sitemaps
        orphans: list[str] = []
        unlisted: list[str] = []
        if found and listing:
            alone = join.unlinked(facts.seeds, [each.url for each in found])
            orphans = sorted(each for each in alone if listing(each))
            unlisted = sorted(unlisted_urls(indexable(), found, listing))
        return {
            "list": [
                [
                    url(each.url),
                    each.kind,
                    each.entries,
                    each.admitted,
                    ", ".join(each.flaws),
                    visible(each.detail),
                    sorted([url(link), reason.value] for link, reason in each.rejected),
                ]
                for each in sorted(found, key=lambda each: each.url)
            ],
            "orphans": list(map(url, orphans)),
            "unlisted": list(map(url, unlisted)),
        }

    def hosts(self, summary: Summary) -> list[list[Any]]:
        """Return the hosts: pages, bytes, errors, seconds, mean, delay and limit."""
        rows = sorted(summary.hosts.items(), key=lambda each: (-each[1].pages, each[0]))
        told = []
        for name, counts in rows[:_MOST_HOSTS]:
            if NOWHERE.endswith(f"{name}/"):
                # A folder that has no URL.
                continue
            host = self._facts.hosts.get(name)
            told.append(
                [
                    visible(name),
                    counts.pages,
                    counts.bytes,
                    counts.failures,
                    round(counts.seconds, 3),
                    round(counts.mean, 3),
                    host.delay if host else 0,
                    host.limit if host else 0,
                ]
            )
        return told

    def not_checked(self) -> list[dict[str, Any]]:
        """Return what a check did not ask for, by kind and reason, with the links it lists."""
        check = self._about.check
        if check is None:
            return []
        rows: dict[tuple[str, str], dict[str, Any]] = {}
        for each in check["not_checked"]:
            key = each["kind"], each["reason"]
            rows[key] = {"says": each["says"], "number": each["number"], "links": []}
        for each in check["listed"] or ():
            rows[each["kind"], each["reason"]]["links"].append(
                [
                    self.url(each["url"]),
                    self.url(each["page"]),
                    each["line"],
                    each["column"],
                    self.text(each["text"]),
                ]
            )
        return sorted(rows.values(), key=lambda row: (-row["number"], row["says"]))

    def changes(self) -> dict[str, Any] | None:
        """Return what has changed since the last walk; None if there was none."""
        rows, alike = [], 0
        for each in self._about.changes:
            if each.kind == "unchanged":
                alike += 1
            else:
                rows.append([each.kind, self.url(each.url), self.text(each.detail)])
        if not rows and not alike:
            return None
        since = self._about.since
        date = _date(datetime.fromtimestamp(since, UTC)) if since else ""
        return {"since": date, "unchanged": alike, "list": rows}


def verdict_of(check: Mapping[str, Any]) -> tuple[str, str]:
    """Return the verdict of a check, and its level."""
    faults, notes = (check["counts"]["verdict"][name] for name in ("fault", "note"))
    known = f", {count(check['known'])} known from the baseline" if check.get("known") else ""
    level = "fault" if faults else "note" if notes else "good"
    return f"{count(faults, 'fault')}, {count(notes, 'note')}{known}", level


def document(
    told: Told,
    ledger: Ledger,
    summary: Summary,
    join: Join,
    facts: CrawlFacts,
    about: About,
    source: Callable[[str], str | None],
    indexable: Callable[[], TextList],
) -> bytes:
    """Return the file: its text made by Jinja2 from the template, its tables as JSON."""
    # Imported only now: other reports need it not.
    from jinja2 import Environment, StrictUndefined

    statistics = facts.statistics
    data = _Data(ledger, facts, about)
    ends = data.ends()
    problems = data.problems(join, source)
    check = about.check
    seeds = [readable(about.shown(without_userinfo(seed))) for seed in facts.seeds]
    head = {
        "problems": problems,
        "redirects": data.redirects(),
        "rejected": data.rejected(summary),
        "sitemaps": data.sitemaps(join, indexable),
        "hosts": data.hosts(summary),
        "notChecked": data.not_checked(),
        "changes": data.changes(),
        **page_tables(ledger, facts, data.url, data.text),
        "kinds": [_KINDS.get(kind, "") for kind in range(6)],
        "counts": dict(sorted(summary.counters.items())),
        "check": check is not None,
        "home": _home(facts, about),
    }
    account = {
        "pages": statistics.pages,
        "redirects": statistics.redirects,
        "failures": statistics.failures,
        "skipped": statistics.skipped,
        "checked": statistics.checked,
        "in flight": statistics.in_flight,
        "waiting": statistics.waiting,
    }
    place = files("trio_crawler.report")
    script, style = (place.joinpath(f"html.{end}").read_text("utf-8") for end in ("js", "css"))
    tables = {"head": head, "ends": ends, "urls": data.url.list, "texts": data.text.list}
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    template = environment.from_string(place.joinpath("html.jinja").read_text("utf-8"))
    text = template.render(
        title=seeds[0] if seeds else "a crawl",
        more=count(len(seeds) - 1, "more seed") if len(seeds) > 1 else "",
        what="Link check" if check else "Crawl",
        told=told,
        counters=head["counts"],
        worst=_worst(data, problems, _home(facts, about)),
        account={name: number for name, number in account.items() if number or name == "pages"},
        admitted=statistics.admitted,
        count=count,
        date=_date(about.date),
        about=about,
        script=script,
        style=style,
        script_hash=_hash(script),
        style_hash=_hash(style),
        tables={name: _json(table) for name, table in tables.items()},
    )
    return text.encode()


def _home(facts: CrawlFacts, about: About) -> str:
    """Return the origin of the first seed, or the folder that stands for it, without its slash."""
    seed = facts.seeds[0] if facts.seeds else ""
    # The name of a folder is that of its index.html.
    return readable(about.shown(f"{origin(seed)}/")).rpartition("/")[0] if is_web(seed) else ""


def _worst(data: _Data, problems: Mapping[str, Any], home: str) -> list[tuple[str, str, str]]:
    """Return the code, the URL and the number of links of the faults that most links have."""
    texts, home = data.text.list, f"{home}/"
    urls = [f"/{url.removeprefix(home)}" if url.startswith(home) else url for url in data.url.list]
    faults = [each for each in problems["list"] if not each[0]]
    first = nsmallest(_WORST, faults, key=lambda each: (-each[7], urls[each[2]]))
    return [(texts[code], urls[url], count(links, "link")) for _, code, url, *_, links, _ in first]


def _date(date: datetime) -> str:
    return f"{date.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _json(table: object) -> str:
    """Return JSON that cannot end the element that it stands in."""
    text = msgspec.json.encode(table).decode()
    for character in "<\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
