"""Crawls whose reports are compared with the texts in tests/report/texts; no test is here."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import httpx

from trio_crawler.model import (
    Failure,
    Listing,
    Outcome,
    Page,
    Purpose,
    Reason,
    Redirect,
    RejectedLink,
    Sitemap,
    Skipped,
    Statistics,
)
from trio_crawler.net.statistics import WireStatistics
from trio_crawler.page.urls import seen_key
from trio_crawler.policy.settings import HostStatistics, Politeness
from trio_crawler.report import CrawlFacts, Report

SITE = "https://a.test"
HOME = f"{SITE}/"
MAP = f"{SITE}/sitemap.xml"


def url_of(path: str) -> str:
    return SITE + path if path.startswith("/") else path


def page(path: str, *links: str, size: int = 100, **fields: Any) -> Page:
    """Return a page of the site; `links` are paths of it, or URLs."""
    about = {"content_type": "text/html", "seconds": 0.01, "status": 200} | fields
    status = about.pop("status")
    return Page(
        url_of(path),
        status,
        httpx.Headers(about.pop("headers", ())),
        b"x" * size,
        links=tuple(map(url_of, links)),
        **about,
    )


def redirect(path: str, target: str, status: int = 301, **fields: Any) -> Redirect:
    return Redirect(url_of(path), status, url_of(target), **fields)


def rejected(reason: Reason, *paths: str) -> tuple[RejectedLink, ...]:
    return tuple(RejectedLink(url_of(path), reason) for path in paths)


def report_of(outcomes: Iterable[Outcome], **options: bool) -> Report:
    report = Report(**options)
    for outcome in outcomes:
        report.add(outcome)
    return report


def told(*outcomes: Outcome, why: bool = False, full: bool = False, **facts: Any) -> str:
    """Return the text of the report of a crawl; the facts are those of a `CrawlFacts`."""
    known = {"statistics": Statistics(), "workers": 10, "seeds": [HOME]} | facts
    return report_of(outcomes, why=why, full=full).text(CrawlFacts(**known))


def section(text: str, title: str) -> list[str]:
    """Return the lines of the section with this title, without its heading; none if it is not."""
    for part in text.split("\n\n"):
        first, *lines = part.splitlines()
        if first.startswith(title):
            return lines
    return []


def host(name: str, latency: float = 0.1, **fields: Any) -> HostStatistics:
    about = {
        "waiting": 0,
        "in_flight": 0,
        "limit": 4,
        "delay": 0.0,
        "asked": fields.get("delay", 0.0),
        "rest": 0.0,
        "failures": 0,
        "given_up": {},
    }
    return HostStatistics(name=name, latency=latency, **(about | fields))


def served(name: str, pages: int, seconds: float = 0.1, status: int = 200) -> list[Outcome]:
    return [
        page(f"http://{name}/{n}", size=1024, seconds=seconds, status=status) for n in range(pages)
    ]


def skipped(reason: Reason, *urls: str) -> list[Outcome]:
    return [Skipped(url_of(url), reason) for url in urls]


@dataclass
class Crawl:
    """The outcomes of a crawl, and the facts of its report."""

    outcomes: list[Outcome]
    facts: dict[str, Any] = field(default_factory=dict)

    def text(self, **options: bool) -> str:
        return told(*self.outcomes, **options, **self.facts)


SMALL: list[Outcome] = [
    page(
        "/",
        *("/a", "/old", "/l1", "/away", "/down"),
        size=2048,
        seconds=1.5,
        rejected=rejected(Reason.OTHER_SITE, "https://b.test/")
        + rejected(Reason.BAD_URL, "http://[x"),
    ),
    page(
        "/a",
        *("/", "/gone", "/slow"),
        seconds=0.034,
        rejected=rejected(Reason.OTHER_SITE, "https://b.test/") + rejected(Reason.EXCLUDED, "/no"),
        flaws=(Reason.BAD_CHARSET, Reason.TOO_MANY_LINKS),
        links_beyond=1200,
    ),
    page("/gone", status=404, size=10),
    redirect("/old", "/gone"),
    redirect("/l1", "/l2", 302),
    redirect("/l2", "/l1", 302),
    redirect("/away", "https://b.test/x", 302, rejected=Reason.OTHER_SITE),
    Failure(f"{SITE}/down", Reason.TIMEOUT, "no answer in 30 s"),
    Skipped(f"{SITE}/slow", Reason.STOPPED),
]

_PATHS = [f"/{at:02}" for at in range(25)]
_LISTED = {seen_key(url_of(path)): Listing(MAP) for path in ("/", "/lone", *_PATHS)}
_FLAWED = [
    Sitemap(
        f"{SITE}/b",
        *("urlset", 5, 5, (Reason.BAD_SITEMAP, Reason.INCOMPLETE), "it ends in a tag"),
        f"{SITE}/robots.txt",
    ),
    Sitemap(f"{SITE}/a", flaws=(Reason.BAD_STATUS,), detail="status 404"),
    Sitemap(f"{SITE}/index", "index", entries=2),
    Sitemap(f"{SITE}/more", "text", entries=1201, admitted=15),
    Sitemap(
        f"{SITE}/s",
        "urlset",
        *(3, 1),
        rejected=rejected(Reason.ROBOTS, "/p") + rejected(Reason.OTHER_SITE, "https://b.test/"),
    ),
]

# The lists of a report have at most ten or twenty items: here each has more.
_LONG: list[Outcome] = [
    *(page(f"/p{path[1:]}", "/gone", referrer=HOME) for path in _PATHS),
    page("/gone", status=404, referrer=HOME),
    *(redirect(f"/r{path[1:]}", "/p00", referrer=HOME) for path in _PATHS),
    *(page(f"/d{path[1:]}", duplicate_of=f"{SITE}/p00", referrer=HOME) for path in _PATHS),
    *(page(f"/f{path[1:]}", flaws=(Reason.BAD_CHARSET,), referrer=HOME) for path in _PATHS),
    *(page(path, referrer=MAP) for path in _PATHS),
    *(redirect(f"/loop{at:02}", f"/loop{(at + 1) % 25:02}", referrer=HOME) for at in range(25)),
    *(redirect(f"/way{at:02}", f"/way{at + 1:02}", referrer=HOME) for at in range(15)),
    page("/way15", status=410, referrer=HOME),
    page("/", "/way00", *(f"/{kind}{at:02}" for kind in "rdf" for at in range(25))),
]

_MAILS: list[Outcome] = [
    page(
        f"/{mail:02}",
        rejected=rejected(Reason.BAD_URL, *(f"http://[{mail:02}.{href}" for href in range(3))),
    )
    for mail in range(30)
]

_ROBOTS = {"tries": 0, "about": Purpose.ROBOTS}
_LOST: list[Outcome] = [
    page("/"),
    *skipped(Reason.HOST_GIVEN_UP, *(f"http://b.test:8080/{number}" for number in range(12))),
    *skipped(Reason.ROBOTS_UNAVAILABLE, "https://d.test/", "http://e.test:81/x"),
    Failure("http://c.test/", Reason.CONNECTION_REFUSED, "nobody listens", tries=0),
    Failure("http://c.test/tried", Reason.CONNECTION_REFUSED, "nobody listens"),
    Failure("http://slow/", Reason.TIMEOUT, "no answer in 30 s", **_ROBOTS),
    *skipped(Reason.STOPPED, "http://f.test/"),
]
_MANY_LOST: list[Outcome] = [
    page("/"),
    *skipped(Reason.HOST_GIVEN_UP, *(f"http://h{number:02}/" for number in range(22))),
    *(Failure(f"http://d{n % 5}/{n}", Reason.DNS, tries=0) for n in range(9)),
    Failure("http://x/", Reason.TLS, tries=0),
    *skipped(Reason.ROBOTS_UNAVAILABLE, *(f"http://r{number}/" for number in range(9))),
    *(Failure(f"http://t{n}/", Reason.TIMEOUT, f"reason {n}", **_ROBOTS) for n in range(3)),
]

_BROAD: list[Outcome] = [
    *(each for n in range(30) for each in served(f"h{n:02}", 30 - n)),
    *served("slow", 2, seconds=40),
    *served("broken", 3, status=500),
    *(Failure(f"http://dead/{n}", Reason.TIMEOUT, seconds=30) for n in range(4)),
    Redirect("http://moved/", 301, "http://h00/0", seconds=1),
    *skipped(Reason.ROBOTS, "http://unasked/"),
]
_GONE = [f"http://h{n:02}/{each}" for n in range(30) for each in range(n + 1)]
_BROKEN: list[Outcome] = [
    page("http://a.test/", *_GONE, rejected=rejected(Reason.BAD_URL, "http://[x", "ht tp:")),
    page("http://b.test/", *_GONE),
    *(
        page(url, status=404)
        if url.endswith("0")
        else Failure(url, Reason.TIMEOUT, "no answer in 30 s")
        for url in _GONE
    ),
    page("http://login.test/", status=401),
]

_TRAPS: list[Outcome] = [
    page("/", rejected=rejected(Reason.NOTHING_NEW, *(f"/p/{n}" for n in range(1_342)))),
    page("/l", rejected=rejected(Reason.TOO_MANY_HOPS, *(f"/l?page={n}" for n in range(10)))),
    page("/x", rejected=rejected(Reason.WAITING_BUDGET, *(f"/{n}/" for n in range(3)))),
    page("/y", rejected=rejected(Reason.TOO_MANY_HOSTS, "http://y.test/", "http://z.test/")),
    page("/z", rejected=rejected(Reason.EXCLUDED, "/q/1", "/docs/a")),
    *(page(f"/{n}", rejected=rejected(Reason.NOTHING_NEW, "/p/1")) for n in range(3)),
    *(
        page(f"/m{n}", rejected=rejected(Reason.TOO_MANY_HOPS, *(f"/{c}/{n}" for n in range(n))))
        for n, c in enumerate("bcdefghijklmn", 1)
    ),
    Redirect(f"{SITE}/old", 301, f"{SITE}/p/1", rejected=Reason.NOTHING_NEW),
    *(Skipped(f"{SITE}/login?next={n}", Reason.BARREN_QUERY, referrer=HOME) for n in range(25)),
]

_SAME = [page(f"/list?tag={n}", title="Articles", size=n) for n in range(1_234)]
_SHAPES: list[Outcome] = [
    *_SAME,
    *(page(f"/p/{n}", title=f"Article {n}") for n in range(100)),
    *(page(f"/{chr(97 + n)}?n={each}", title="One") for n in range(13) for each in range(30 + n)),
    *(Skipped(f"{SITE}/it's;rm?a={n}&b=2", Reason.STOPPED) for n in range(7)),
]


def _hosts(*found: HostStatistics) -> dict[str, Any]:
    return {"hosts": {each.name: each for each in found}, "politeness": Politeness(delay=0.5)}


_WIRE = WireStatistics(
    open=3, idle=3, made=1200, reused=5, retried=1, bytes_in=2_000_000, bytes_out=1023
)
_STATISTICS = Statistics(
    admitted=12, pages=3, redirects=4, failures=1, skipped=1, in_flight=1, waiting=2, seconds=1.6
)

CRAWLS = {
    "nothing": Crawl([], {"seeds": []}),
    "good": Crawl([page("/")], {"statistics": Statistics(admitted=1, pages=1, seconds=0.5)}),
    "small": Crawl(SMALL, {"statistics": _STATISTICS, "ended": "stopped by Ctrl-C"}),
    "long": Crawl(
        _LONG,
        {
            "statistics": Statistics(admitted=6138, pages=6000, redirects=138, retries=1234),
            "seeds": ["https://me:secret@a.test/", "https://b.test/", "https://c.test/"],
            "sitemaps": [
                *_FLAWED,
                *(Sitemap(f"{SITE}/m{n:02}", flaws=(Reason.TIMEOUT,)) for n in range(22)),
            ],
            "listing": lambda url: _LISTED.get(seen_key(url)),
            "wire": _WIRE,
            "checks": False,
            "ended": "stopped by Ctrl-C",
        },
    ),
    "malformed": Crawl([*_MAILS, page("/gone", status=404)]),
    "lost": Crawl(_LOST),
    "many_lost": Crawl(_MANY_LOST),
    "broad": Crawl(
        _BROAD,
        _hosts(
            *(host(f"h{n:02}", n + 1, delay=10 + n % 2) for n in range(25)), host("unasked", 0)
        ),
    ),
    "refused": Crawl(
        [page("/")],
        _hosts(
            host("slow.test", delay=10),
            host("quick.test", delay=1, asked=0, pages=62, failed=13, refused=13),
        ),
    ),
    "broken": Crawl(_BROKEN),
    "traps": Crawl(_TRAPS),
    "shapes": Crawl(_SHAPES),
    "rude": Crawl(
        [page("/", status=500)],
        {
            "insecure": ["b.test", "\u202ec"],
            "politeness": Politeness(robots=False, nofollow=False, per_host=2, adaptive=True),
            "directory": "the\x1bdir",
            "statistics": Statistics(admitted=1200, waiting=1199, in_flight=1),
        },
    ),
}
