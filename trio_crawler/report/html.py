"""The report as one file of HTML: its facts as tables of numbers, which a script in it shows."""

from __future__ import annotations

import base64
import hashlib
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from heapq import nsmallest
from importlib.resources import files
from itertools import chain
from operator import itemgetter
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from trio_crawler.ledger.join import Broken, Join
from trio_crawler.ledger.ledger import Ledger, numbers_of
from trio_crawler.ledger.tables import CHECKED, NO_URL, PAGE, REDIRECT, Row, Traits
from trio_crawler.page.urls import NOWHERE, is_web, origin, without_userinfo
from trio_crawler.policy.verdict import Defect
from trio_crawler.reason import REASONS
from trio_crawler.report.codes import explained
from trio_crawler.report.hints import page_tables
from trio_crawler.report.rejections import listed
from trio_crawler.report.sections import date_of, orphans, unlisted
from trio_crawler.report.summary import Summary, source_of
from trio_crawler.report.visible import count, readable, visible

if TYPE_CHECKING:
    from trio_crawler.model import Statistics
    from trio_crawler.report.summary import CrawlFacts
    from trio_crawler.store.changes import Change

MOST_ENDS, MOST_PLACES = 250_000, 200_000
"""The most URLs, and the most places of faults, that a file lists: it must open in a browser."""

_MOST_LISTED, _MOST_REFERRERS, _MOST_HOSTS = 5_000, 20, 2_000
_LONGEST_URL, _LONGEST_TEXT = 2_000, 300
_WORST = 3
_ACCOUNT = ("pages", "redirects", "failures", "skipped", "checked", "in flight", "waiting")
_COLUMNS = "url kind status why ms size depth type title at target inlinks".split()

_Problem: TypeAlias = tuple[bool, str, str, str, str, bool, tuple[tuple[int, str], ...]]
"""One fault or note of a target; two that are equal need the same repair.

Whether it is a note, code, URL, sentence, detail, whether it is on another site, redirects.
"""

_Place: TypeAlias = tuple[str, int, int, str, str, str]
"""One link with a problem: its page ("" for a seed), line, column, text, spelling, kind."""


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


class Tables:
    """The tables of the file: URLs and texts are numbers in them.

    `check` is the document of `check.to_json`, as `json.loads` returns it; None without a check.
    `shown` returns the text to show for a URL.
    """

    def __init__(
        self,
        ledger: Ledger,
        summary: Summary,
        join: Join,
        facts: CrawlFacts,
        check: Mapping[str, Any] | None,
        changes: Iterable[Change],
        since: float | None,
        shown: Callable[[str], str],
    ) -> None:
        self._ledger = ledger
        self._summary = summary
        self._join = join
        self._facts = facts
        self._check = check
        self._changes = changes
        self._since = since
        self._shown = shown
        self.url = _Texts(lambda url: _cut(readable(shown(url)), _LONGEST_URL))
        self.text = _Texts(lambda text: visible(_cut(text, _LONGEST_TEXT)))
        self.seeds = [readable(shown(without_userinfo(seed))) for seed in facts.seeds]
        # The origin of the first seed, or the folder that stands for it: the name of a folder is
        # that of its index.html.
        seed = facts.seeds[0] if facts.seeds else ""
        root = readable(shown(f"{origin(seed)}/")) if is_web(seed) else ""
        self.home = root.rpartition("/")[0]

    def all(self) -> dict[str, Any]:
        """Return the tables by their names."""
        # First the ends, so that the numbers of the URLs are in their order.
        ends = self._ends()
        head = {
            "problems": self._problems(),
            "redirects": self._redirects(),
            "rejected": self._rejected(),
            "sitemaps": self._sitemaps(),
            "hosts": self._hosts(),
            "notChecked": self._not_checked(),
            "changes": self._changed(),
            **page_tables(self._ledger, self._facts, self.url, self.text),
            "counts": dict(sorted(self._summary.counters.items())),
            "check": self._check is not None,
            "home": self.home,
        }
        return {"head": head, "ends": ends, "urls": self.url.list, "texts": self.text.list}

    def _ends(self) -> dict[str, Any]:
        """Return the columns of all ends, sorted by URL; times are milliseconds."""
        ledger, url, text = self._ledger, self.url, self.text
        traits = Traits() if ledger.traits is None else ledger.traits
        titles = [*traits.titles]
        every = ((each, row, traits.get(row.number)) for each, row in ledger.ends())
        found = nsmallest(MOST_ENDS, every)
        columns = [array("q") for _ in _COLUMNS]
        began = min((trait.ended for *_, trait in found if trait.ended), default=0.0)
        named = self._named({row.target for _, row, _ in found})
        inlinks = ledger.inlinks()
        for about_url, row, trait in found:
            values = (
                *(url(about_url), row.kind, row.status, text(self._why(row))),
                *(round(row.seconds * 1000), row.size, trait.depth),
                *(text(trait.type), text(titles[trait.title])),
                round((trait.ended - began) * 1000) + 1 if trait.ended else 0,
                *(url(named.get(row.target)), inlinks[row.number]),
            )
            for column, value in zip(columns, values, strict=True):
                column.append(value)
        told = dict(zip(_COLUMNS, map(list, columns), strict=True))
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

    def _problems(self) -> dict[str, Any]:
        """Return the faults and notes, and the places of each; all faults of a kind are one."""
        left_out: dict[str, int] = {}
        if self._check is not None:
            places = self._of_check(self._check)
        else:
            most = max(10, MOST_PLACES // max(1, self._join.problems))
            broken = self._join.broken(most, source_of(self._facts))
            left_out = {each.url: each.omitted for each in broken}
            places = chain.from_iterable(map(self._of_crawl, broken))
        found: dict[_Problem, list[_Place]] = {}
        for problem, place in places:
            found.setdefault(problem, []).append(place)
        most = MOST_PLACES
        while sum(min(len(each), most) for each in found.values()) > MOST_PLACES and most > 10:
            most = most * 3 // 4
        url, text, problems = self.url, self.text, []
        for (is_note, code, target, *said, external, hops), rows in found.items():
            told = text(code), url(target), *map(text, said), int(external)
            number = len(rows) + left_out.get(target, 0), min(len(rows), most)
            ways = [[status, url(hop)] for status, hop in hops]
            problems.append([int(is_note), *told, ways, *number])
        return {
            "list": problems,
            "places": [
                [url(page), line, column, text(said), text(written), text(kind)]
                for rows in found.values()
                for page, line, column, said, written, kind in rows[:most]
            ],
            "codes": {code: explained(code) for _, code, *_ in found},
        }

    def _of_check(self, check: Mapping[str, Any]) -> Iterator[tuple[_Problem, _Place]]:
        for each in check["findings"]:
            # Of a page that is missing, so are all its places.
            end = f"#{each['fragment']}" if each["code"] == Defect.MISSING_FRAGMENT else ""
            hops = tuple((hop["status"], hop["url"]) for hop in each["chain"])
            about = each["says"], each["detail"], each["external"], hops
            place = each["line"], each["column"], each["text"], each["as_written"], each["kind"]
            yield (
                (each["verdict"] == "note", each["code"], each["url"] + end, *about),
                (each["page"] or "", *place),
            )

    def _of_crawl(self, broken: Broken) -> Iterator[tuple[_Problem, _Place]]:
        """Yield a broken link for each of its pages; in place of a spelling there is the way."""
        says, _ = explained(broken.why)
        loop = tuple((0, each) for each in broken.loop)
        problem = (False, broken.why, broken.url, says[:-1], broken.detail, False, loop)
        for each in broken.referrers:
            way = " → ".join(map(readable, each.via)) + (" → …" if each.omitted else "")
            yield problem, (each.page or "", 0, 0, "", way, "")

    def _redirects(self) -> list[list[Any]]:
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

    def _rejected(self) -> list[dict[str, Any]]:
        """Return the rejected links by reason and shape, each with a page that has it."""
        found, numbers = listed(self._ledger), self._summary.rejected
        rows = []
        for reason in sorted(numbers.keys() | found, key=lambda each: each.value):
            shapes = sorted(found.get(reason, {}).items(), key=lambda each: (-len(each[1]), each))
            left, groups = _MOST_LISTED, []
            for shape, urls in shapes:
                first = sorted(urls.items())[:left]
                left -= len(first)
                links = [[self.url(link), self.url(page)] for link, page in first]
                name = readable(self._shown(shape)) or "other shapes"
                groups.append([name, len(urls), links])
            about = REASONS[reason]
            rows.append(
                {
                    "reason": reason.value,
                    "says": f"{about.sentence}.",
                    "option": about.option,
                    "number": numbers[reason],
                    "urls": sum(len(urls) for _, urls in shapes),
                    "shapes": groups[:_MOST_LISTED],
                }
            )
        return rows

    def _sitemaps(self) -> dict[str, Any]:
        """Return the sitemaps, the orphans, and the pages that no sitemap lists."""
        facts, url = self._facts, self.url
        return {
            "list": [
                [
                    *(url(each.url), each.kind, each.entries, each.admitted),
                    *(", ".join(each.flaws), visible(each.detail)),
                    sorted([url(link), reason.value] for link, reason in each.rejected),
                ]
                for each in sorted(facts.sitemaps, key=lambda each: each.url)
            ],
            "orphans": list(map(url, sorted(orphans(self._join, facts)))),
            "unlisted": list(map(url, sorted(unlisted(self._ledger, facts)))),
        }

    def _hosts(self) -> list[list[Any]]:
        """Return the hosts: pages, bytes, errors, seconds, mean and delay."""
        rows = sorted(self._summary.hosts.items(), key=lambda each: (-each[1].pages, each[0]))
        known = self._facts.hosts
        return [
            [
                *(visible(name), each.pages, each.bytes, each.failures),
                *(round(each.seconds, 3), round(each.mean, 3)),
                known[name].delay if name in known else 0,
            ]
            for name, each in rows[:_MOST_HOSTS]
            # Not a folder that has no URL.
            if not NOWHERE.endswith(f"{name}/")
        ]

    def _not_checked(self) -> list[dict[str, Any]]:
        """Return what a check did not ask for, by kind and reason, with the links it lists."""
        check = self._check or {"not_checked": (), "listed": ()}
        rows: dict[tuple[str, str], dict[str, Any]] = {}
        for each in check["not_checked"]:
            key = each["kind"], each["reason"]
            rows[key] = {"says": each["says"], "number": each["number"], "links": []}
        for each in check["listed"] or ():
            urls = self.url(each["url"]), self.url(each["page"])
            link = [*urls, each["line"], each["column"], self.text(each["text"])]
            rows[each["kind"], each["reason"]]["links"].append(link)
        return sorted(rows.values(), key=lambda row: (-row["number"], row["says"]))

    def _changed(self) -> dict[str, Any] | None:
        """Return what has changed since the last walk; None if there was none."""
        every = list(self._changes)
        rows = [
            [each.kind, self.url(each.url), self.text(each.detail)]
            for each in every
            if each.kind != "unchanged"
        ]
        told = {"since": date_of(self._since), "unchanged": len(every) - len(rows), "list": rows}
        return told if every else None

    def worst(self, problems: Mapping[str, Any]) -> list[tuple[str, str, str]]:
        """Return the code, the URL and the number of links of the faults that most links have."""
        texts, home = self.text.list, f"{self.home}/"
        urls = [
            f"/{each.removeprefix(home)}" if each.startswith(home) else each
            for each in self.url.list
        ]
        faults = [each for each in problems["list"] if not each[0]]
        first = nsmallest(_WORST, faults, key=lambda each: (-each[7], urls[each[2]]))
        return [(texts[each[1]], urls[each[2]], count(each[7], "link")) for each in first]


def verdict_of(check: Mapping[str, Any]) -> tuple[str, str]:
    """Return the verdict of a check, and its level."""
    faults, notes = (check["counts"]["verdict"][name] for name in ("fault", "note"))
    known = f", {count(check['known'])} known from the baseline" if check.get("known") else ""
    level = "fault" if faults else "note" if notes else "good"
    return f"{count(faults, 'fault')}, {count(notes, 'note')}{known}", level


def document(told: Mapping[str, Any], tables: Tables, statistics: Statistics) -> bytes:
    """Return the file: its text made by Jinja2 from the template, its tables as JSON.

    `told` is what the template shows besides, by its names there.
    """
    # Imported only now: other reports need it not.
    from jinja2 import Environment, StrictUndefined

    data, seeds = tables.all(), tables.seeds
    numbers = {name: getattr(statistics, name.replace(" ", "_")) for name in _ACCOUNT}
    place = files("trio_crawler.report")
    script, style = (place.joinpath(f"html.{end}").read_text("utf-8") for end in ("js", "css"))
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    template = environment.from_string(place.joinpath("html.jinja").read_text("utf-8"))
    text = template.render(
        told,
        title=seeds[0] if seeds else "a crawl",
        more=count(len(seeds) - 1, "more seed") if len(seeds) > 1 else "",
        counters=data["head"]["counts"],
        worst=tables.worst(data["head"]["problems"]),
        account={name: each for name, each in numbers.items() if each or name == "pages"},
        admitted=statistics.admitted,
        count=count,
        script=script,
        style=style,
        script_hash=_hash(script),
        style_hash=_hash(style),
        tables={name: _json(table) for name, table in data.items()},
    )
    return text.encode()


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
