"""No argument is accepted and ignored: each changes what can be observed."""

from __future__ import annotations

import gzip
import inspect
import random
import re
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from hashlib import sha1
from pathlib import Path
from typing import Any
from zlib import crc32

import httpx
import msgspec
import pytest
import trio
from calls import CALLED, HOME, PAGE, call, parameters, short
from msgspec.structs import replace
from net.test_arguments import CLASSES
from sites.store_model import StoreModel

from trio_crawler import (
    Checks,
    Crawler,
    History,
    HostPoliteness,
    Job,
    Limits,
    MemoryFrontier,
    Page,
    Phase,
    Politeness,
    Reason,
    Redirect,
    Response,
    Sitemaps,
    SqliteFrontier,
    Statistics,
    StoreError,
    Traps,
    bridged,
    depth_first,
)
from trio_crawler.check import (
    CheckFacts,
    Finding,
    Hop,
    LinkCheck,
    Verdict,
    Verdicts,
    write_baseline,
)
from trio_crawler.facts import PageFacts
from trio_crawler.frontier import Hosts, HostStatistics, JobChannel, Join, Plan, Seen, Settlement
from trio_crawler.ledger import Ledger
from trio_crawler.model import Answer, Purpose, RejectedLink, Sitemap
from trio_crawler.net import WireStatistics
from trio_crawler.report import CrawlFacts, Report, Warc, csv_entry
from trio_crawler.schedule.queues import FifoQueue
from trio_crawler.shared import SharedFrontier, opened_store
from trio_crawler.store import Change, End, FileLock, Stream, merge
from trio_crawler.store.store import Store
from trio_crawler.testing import Web, html, redirect, robots

# A site on which every bound, switch and trap has something to do.


def page(*links: str, head: str = "", text: str = "") -> Response:
    """Return a page with a text, and links of which those that begin with ! are nofollow."""
    anchors = [
        f"<a {'rel=nofollow ' * (link[0] == '!')}href='{link.lstrip('!')}'>a</a>" for link in links
    ]
    body = f"<!doctype html>{head}<p>{text or links}</p>{''.join(anchors)}"
    return Response(200, httpx.Headers({"content-type": "text/html"}), body.encode())


def row(form: str, count: int) -> dict[str, Response]:
    """Return numbered pages of the same text; each links to the next four."""
    return {
        form.format(at): page(*(form.format(at + step) for step in range(1, 5)), text="same")
        for at in range(1, count + 1)
    }


def urlset(*urls: str) -> Response:
    listed = "".join(f"<url><loc>{HOME}{url}</loc></url>" for url in urls)
    return Response(200, body=f"<urlset>{listed}</urlset>".encode())


BAD = Finding(verdict=Verdict.FAULT, url=HOME + "bad", code="404", page=HOME)
FINDINGS = [
    Finding(verdict=Verdict.FAULT, url=f"{HOME}{number}", code="404", page=HOME)
    for number in range(200)
]
OTHER_FACTS = CheckFacts(date=datetime(2026, 3, 3, tzinfo=UTC), version="9")
HTML = httpx.Headers({"content-type": "text/html"})
LINKED = Page(HOME, 200, HTML, b"<a href=/x>x</a>", content_type="text/html")
COPY = page("from-copy", text="copy")
SESSION = "?PHPSESSID=" + "0123456789abcdef" * 2
SITE: dict[str, Response] = {
    "/robots.txt": robots(
        "User-agent: *", "Disallow: /private", f"Sitemap: {HOME}map.xml",
        "User-agent: named", "Disallow: /a",
    ),
    "/map.xml": urlset("only-in-map"),
    "/other.xml": urlset("only-in-other"),
    "/": page(
        "/a", "/b", "!/unendorsed", "/private", "/moved", "/busy", "/one/copy", "/two/copy",
        "/three/copy", "/two/copy-again", "/x/x/y", "/" + "long" * 9, "/q?a=1&b=2", "/q?b=2&a=1",
        "/canonical", "/s" + SESSION, "/day/2024-01-01", "/n/1",
        "/shop?colour=c1",
        "http://site.test:81/",
    ),
    "/a": page("/a/2", "/a/3"), "/a/2": page("/a/2/3"), "/a/3": page(),
    "/a/2/3": page("/logout", text="c"),
    "/b": page(*(f"/b/{letter}" for letter in "cdefgh")),
    "/moved": redirect("/moved/2"), "/moved/2": redirect("/moved/3"), "/moved/3": redirect("/m"),
    "/busy": Response(503),
    "/one/copy": COPY, "/two/copy": COPY, "/three/copy": COPY, "/two/copy-again": COPY,
    "/canonical": page(head="<link rel=canonical href=/named>", text="of another"),
    **row("/day/2024-01-{:02}", 31), **row("/n/{}", 40), **row("/shop?colour=c{}", 15),
}  # fmt: skip


class Timed(Web):
    """A web that records when each URL was asked for."""

    def __init__(self, site: dict[str, Response]) -> None:
        # No two delays are equal, so the order of the tasks of one moment does not count.
        super().__init__(site, delay=lambda job: 1 + crc32(job.url.encode()) % 9973 / 10_000)
        self.times: list[tuple[float, str]] = []
        self.began = trio.current_time()

    async def __call__(self, job: Job) -> Answer:
        self.times.append((round(trio.current_time() - self.began, 5), job.url))
        return await super().__call__(job)


async def crawl(**given: Any) -> Any:
    """Return all that a crawl does: the requests with their times, and the outcomes."""
    web = Timed(SITE)
    crawler = Crawler(**{"seeds": [HOME], "fetch": web, **given})
    async with crawler.outcomes() as outcomes:
        found = [untimed(outcome) async for outcome in outcomes]
    return sorted(web.times), sorted(found, key=lambda each: each.url), web.peak


def untimed(outcome: Any) -> Any:
    return replace(outcome, seconds=0.0) if hasattr(outcome, "seconds") else outcome


class OneUrl:
    """A stream of one URL, which may be read again and again."""

    def __init__(self, url: str) -> None:
        self.url = url

    async def __aiter__(self) -> AsyncIterator[str]:
        yield self.url


async def checking(**given: Any) -> Any:
    """Crawl a page with links of all kinds, which are checked; return all that it does."""
    start = page(
        "http://b.test/x#here",
        "http://b.test/y",
        "/#there",
        head="<link rel=stylesheet href=s.css>",
    )
    rules = robots("User-agent: *", "Disallow: /y")
    site = {"/": start, "http://b.test/x": page("c"), "http://b.test/robots.txt": rules}
    web = Timed({**site, "/more": page()})
    crawler = Crawler([HOME], fetch=web, checks=Checks(**given))
    try:
        async with crawler.outcomes() as outcomes:
            found = [untimed(outcome) async for outcome in outcomes]
    except (ValueError, ExceptionGroup) as error:
        return repr(error)
    return sorted(web.times), sorted(found, key=lambda each: each.url)


def judged(**given: Any) -> Any:
    """Return the findings of a page that is missing, and the links listed that are not checked."""
    check = LinkCheck(**given)
    check.add(replace(LINKED, status=404, links=(f"{HOME}x",)))
    return list(check.findings()), check.listed


def kept_links(**given: Any) -> Any:
    """Return the links that a ledger keeps of a page, and whether it keeps traits."""
    ledger = Ledger(**given)
    ledger.add(LINKING)
    return list(ledger.outlinks()), ledger.traits is None


async def dying(**given: Any) -> float:
    """Crawl a host that answers once and then is gone; return how long that takes."""
    began = trio.current_time()
    alive = {"/": page(*(f"/{number}" for number in range(20)))}
    web = Web(alive | {f"/{number}": Response(503) for number in range(20)}, delay=1)
    limits = Limits(max_tries=50)
    await Crawler([HOME], fetch=web, limits=limits, politeness=Politeness(**given)).crawl()
    return round(trio.current_time() - began, 3)


class Deaf(MemoryFrontier):
    """A frontier that admits no successors."""

    async def settle(self, settlement: Settlement) -> None:
        await super().settle(replace(settlement, successors=()))


def plan(**given: Any) -> Any:
    """Return the values of a plan."""
    made = Plan(**given)
    values = {each.name: getattr(made, each.name, None) for each in parameters(Plan)}
    scope = made.scope(Job("http://other.test/"))
    return values | {"random": made.chance("key") if "random" in given else None, "scope": scope}


# Directories. Each call has one of its own.


async def kept(tmp_path: Path, **given: Any) -> Any:
    """Crawl twice into a directory, the second time with these arguments."""
    home = tmp_path / given.pop("directory", "crawl")
    web = Web({"/": page("/a")})
    for arguments in ({"meaning": {"depth": 1}, "directory": home}, {"directory": home, **given}):
        try:
            async with SqliteFrontier(**arguments) as frontier:
                await Crawler([HOME], fetch=web, frontier=frontier).crawl()
        except StoreError as error:
            return str(error).replace(str(home), "DIR")
    with History(home) as history:
        runs = [(run.walk, run.settings) for run in history.runs]
    return runs, dict(web.hits), home.relative_to(tmp_path)


async def bridge(**given: Any) -> Any:
    """Crawl over the bridge."""
    opened = {"open_crawler": lambda: Crawler([HOME], fetch=Web({})), **given}
    async with bridged(**opened) as outcomes:
        return [outcome.url async for outcome in outcomes]


async def streamed(tmp_path: Path, **given: Any) -> Any:
    """Crawl one page into a stream."""
    arguments = {"path": "lines", "encode": lambda outcome: b"line\n", **given}
    arguments["path"] = tmp_path / arguments["path"]
    async with SqliteFrontier(tmp_path / "crawl") as frontier:
        stream = frontier.stream(**arguments)
        async with Crawler([HOME], fetch=Web({}), frontier=frontier).outcomes() as outcomes:
            async for outcome in outcomes:
                stream.add(outcome)
    return files(tmp_path), (tmp_path / given.get("path", "lines")).stat().st_mode


def files(directory: Path) -> dict[str, bytes]:
    return {each.name: each.read_bytes() for each in directory.iterdir() if each.is_file()}


def history(tmp_path: Path, directory: str = "crawl") -> str:
    with pytest.raises(StoreError) as refused:
        History(tmp_path / directory)
    return str(refused.value).removeprefix(str(tmp_path))


def stream(tmp_path: Path, **given: Any) -> Any:
    """Open a stream and write a record to it; return its file, or why that cannot be."""
    (tmp_path / "old").write_bytes(b"old")
    arguments = {"path": "new", "committed": None, "tail": None, "encode": bytes.upper, **given}
    try:
        made = Stream(**arguments | {"path": tmp_path / arguments["path"]})
    except StoreError as error:
        return str(error)
    made.append(made.records([b"one"]))  # type: ignore[list-item]
    made.close()
    return made.path.name, made.path.read_bytes(), made.path.stat().st_mode


# The parts of a frontier.


class Stack(FifoQueue):
    """A queue that gives the newest job first."""

    def put(self, job: Job) -> None:
        self._jobs.insert(self._first, job)


async def hosts(**given: Any) -> Any:
    """Return the jobs that come from a budget of one page, and what ended the crawl."""
    ended: list[Reason] = []
    limits, politeness = Limits(max_pages=2), Politeness(robots=False)
    arguments = {"plan": Plan(limits=limits, politeness=politeness), "end": ended.append, **given}
    made, jobs = Hosts(**arguments), []
    made.admit([Job(HOME), Job(HOME + "a"), Job(HOME + "b")])
    with trio.move_on_after(1):
        for _ in range(2):
            jobs.append(await made.jobs.receive())
            made.settled(Settlement(jobs[-1], PAGE))
    return jobs, ended


class Told(StoreModel):
    """A store that keeps what it is told."""

    def __init__(self) -> None:
        super().__init__()
        self.messages: list[Any] = []

    async def call(self, command: str, message: bytes) -> bytes:
        self.messages.append(msgspec.msgpack.decode(message)[1:3])
        return await super().call(command, message)


async def shared_by(tmp_path: Path, **given: Any) -> Any:
    """Return what a worker tells the store when it joins, and the settings in its directory."""
    store, home = Told(), tmp_path / given.pop("directory", "none")
    if home.name != "none" or "settings" in given:
        given["directory"] = home
    async with SharedFrontier(**{"store": store, "meaning": {}, **given}) as frontier:
        await frontier.open(Plan([HOME], politeness=Politeness(robots=False)))
        with trio.move_on_after(1):
            await frontier.run()
    runs = []
    if "directory" in given:
        with History(home) as history:
            runs = [run.settings for run in history.runs]
    return store.messages[:1], store.added, home.name, runs


def merged(tmp_path: Path, **given: Any) -> Any:
    """Merge the directory of a worker; return what is where, or the error."""
    for name in ("one", "two"):
        with Store.open(tmp_path / name) as store:
            store.end(End.FINISHED, [], 1.0)
    out = tmp_path / given.pop("out", "out")
    parts = [tmp_path / each for each in given.pop("directories", ["one"])]
    try:
        merge(out, parts, **given)
    except StoreError as error:
        return str(error).replace(str(tmp_path), "")
    except ValueError as error:
        return str(error)
    return sorted(each.name for each in tmp_path.iterdir())


async def connected(**given: Any) -> str:
    """Return why a server cannot be used."""
    try:
        async with opened_store(**{"url": "redis://127.0.0.1:1/0", "crawl": "c", **given}):
            return ""
    except StoreError as error:
        return str(error)


async def received(**given: Any) -> Any:
    return await JobChannel(**{"choose": lambda last: Job(HOME), **given}).receive()


def seen(**given: Any) -> Any:
    made = Seen(**given)
    made.admit(Job(HOME + "a", redirects=3))
    return len(made), made.known([HOME, HOME + "a"])


def joined(**given: Any) -> int:
    made = Join()
    made.add(**given)
    return made.unfinished


async def web(**given: Any) -> Any:
    made, began = Web(**{"site": {}, **given}), trio.current_time()
    return made.url, await made(Job(HOME + "a")), round(trio.current_time() - began, 3)


# Reports.

GONE = Page(HOME + "gone", 404, httpx.Headers(), b"", referrer=HOME)
LINKING = replace(
    PAGE,
    links=(GONE.url,),
    rejected=tuple(RejectedLink(f"http://other.test/{at}", Reason.OTHER_SITE) for at in range(30)),
)
LOOP = Redirect(HOME + "loop", 302, HOME + "loop", referrer=HOME)
KEPT = Ledger(checks=True)
KEPT.add(Page(HOME + "kept", 500, httpx.Headers(), b""))
POINTING = Ledger()
POINTING.add(Page(HOME, 200, httpx.Headers(), b"", links=(HOME + "a",)))
DOUBTFUL = Page(
    f"{HOME}soft", 200, httpx.Headers(), b"",
    content_type="text/html", title="Not found", facts=PageFacts(words=9),
)  # fmt: skip
RESTING = HostStatistics("h.test", 1, 0, 4, 0.0, 5.0, 0.1, 2, {})
MANY = [Change(f"{HOME}{at}", "new") for at in range(30)]
MAP = Sitemap(HOME + "map.xml", "urlset", 1, 1)
LOGGED_OUT = [Redirect(f"{HOME}member/{at}", 302, f"{HOME}login") for at in range(9)]
WAITED = {
    "statistics": Statistics(seconds=12.0),
    "workers": 9,
    "politeness": Politeness(),
    "hosts": {"site.test": HostStatistics("site.test", 0, 0, 4, 0.0, 0.0, 2.0, 0, {}, pages=40)},
}
SLOW = {"site.test": HostStatistics("site.test", 0, 0, 4, 9.0, 0.0, 2.0, 0, {})}


def reported(**given: Any) -> str:
    """Return the full report of a small crawl, with these facts."""
    known = {"statistics": Statistics(admitted=3, pages=2, waiting=1), "workers": 1}
    made = Report(full=True)
    wanted = replace(GONE, url=f"{HOME}login", status=401)
    for outcome in (LINKING, GONE, LOOP, wanted, *LOGGED_OUT):
        made.add(outcome)
    made.add(DOUBTFUL)
    return made.text(CrawlFacts(**{**known, "seeds": [HOME], **given}))


def report(**given: Any) -> str:
    made = Report(**given)
    moved = [Redirect(f"{HOME}{at}", 301, HOME, referrer=HOME) for at in range(40)]
    for outcome in (LINKING, GONE, *moved):
        made.add(outcome)
    return made.text(CrawlFacts(Statistics(), 1, seeds=[HOME]))


def warc(**given: Any) -> Any:
    made = Warc(**given)
    head = made.head()
    plain = gzip.decompress(head) if head.startswith(b"\x1f\x8b") else head
    made.restore([(HOME, bytes([at]) * 20, 1.0) for at in range(9)])
    return head[:2], re.sub(rb"WARC-(Record-ID|Date|Block-Digest): [^\r]*", b"", plain), repr(made)


# The table: how to observe, and a value of each argument that shows. A value may stand in a tuple
# with other arguments that it needs.


def pieces(name: str) -> Callable[..., Any]:
    """Return a function that returns all that a public generator yields."""
    return lambda **given: b"".join(call(name, lambda: FUNCTIONS[name], **given))


def result(name: str) -> Callable[..., Any]:
    """Return a function that returns the result of a public function, or its error."""

    def observe(**given: Any) -> Any:
        try:
            found = call(name, lambda: FUNCTIONS[name], **given)
        except ValueError as error:
            return str(error)
        if callable(found):
            # A scope.
            return [found(Job(url)) for url in (HOME + "a", "http://sub.example.org/")]
        if name in ("sitemap_parts", "csv_with_facts", "jsonl_with_links"):
            return [*map(list, found)]
        return found

    return observe


def wrapped(**given: Any) -> Any:
    """Return what a function is said to send that calls a fetch."""
    function = call("wrapping", lambda: FUNCTIONS["wrapping"], **given)(lambda job: None)
    return getattr(function, "sends_credentials", None)


def refuse(*given: object) -> Any:
    """Raise what a bug would."""
    raise ValueError("a bug")


FUNCTIONS = {short(name): found for name, found in CALLED.items()}
OLD = {"path": "old", "committed": 3}
LENIENT = (True, {"seeds": ["http://example.org/"]})
Values = dict[str, Any]
EFFECTS: dict[str, tuple[Callable[..., Any], Values]] = {
    "Crawler": (crawl, {
        "seeds": [HOME + "a"], "scope": lambda job: False, "limits": Limits(max_pages=3),
        "politeness": Politeness(delay=2), "traps": Traps.off(),
        "sitemaps": Sitemaps(follow=False), "order": depth_first, "fold_canonical": True,
        "anchors": True, "facts": True, "workers": 1, "random": random.Random(1), "fetch": Web({}),
        "frontier": Deaf(), "checks": Checks(), "seed_stream": OneUrl(HOME + "streamed"),
    }),
    "Checks": (checking, {
        "external": False, "assets": False, "fragments": False, "robots": True, "delay": 5,
        "max_age": 60.0, "max_per_host": 1,
    }),
    "Ledger": (kept_links, {"outside": True, "checks": True, "traits": True}),
    "LinkCheck": (judged, {
        "verdicts": Verdicts(accept=[200, 404]), "why": 1, "ledger": KEPT,
    }),
    "Limits": (lambda **given: crawl(limits=Limits(**given)), {
        "max_depth": 1, "max_pages": 3, "max_seconds": 2, "max_redirects": 1, "max_tries": 1,
        "max_links": 2, "max_waiting": 1, "max_hosts": 1,
    }),
    "Politeness": (lambda **given: crawl(politeness=Politeness(**given)), {
        "per_host": 1, "delay": 5, "adaptive": True, "robots": False, "nofollow": False,
        "side_effects": False, "agent": "named",
        "hosts": {"site.test": HostPoliteness(delay=5)},
    }),
    "HostPoliteness": (lambda **given: crawl(
        politeness=Politeness(hosts={"site.test": HostPoliteness(**given)})
    ), {"per_host": 1, "delay": 5}),
    "Politeness.patience": (dying, {"patience": 5}),
    "Sitemaps": (lambda **given: crawl(sitemaps=Sitemaps(**given)), {
        "follow": False, "also": [HOME + "other.xml"], "only": True,
    }),
    "Traps": (lambda **given: crawl(traps=Traps(**given)), {
        "max_url": 40, "max_segments": 2, "max_repeats": 1, "max_hops": 1, "barren": 1,
        "barren_numbers": 1, "barren_query": 1, "per_pattern": 1, "per_host": 3, "copies": 1,
        "session_ids": False, "permuted_queries": False, "duplicates": False,
    }),
    "Plan": (plan, {
        "seeds": [HOME], "scope": lambda job: True, "limits": Limits(max_pages=3),
        "politeness": Politeness(delay=2), "traps": Traps.off(), "agent": "named",
        "sitemaps": Sitemaps(follow=False), "order": depth_first, "fold_canonical": True,
        "anchors": True, "facts": True, "workers": 1, "random": random.Random(1),
        "checks": Checks(), "seed_stream": OneUrl(HOME),
    }),
    "SqliteFrontier": (kept, {
        "directory": "elsewhere", "meaning": {"depth": 2}, "refresh": True, "settings": {"a": 1},
    }),
    "SqliteFrontier.stream": (streamed, {
        "path": "other", "encode": lambda outcome: b"other\n", "head": lambda: b"head\n",
        "rest": lambda: b"rest\n", "private": True,
    }),
    "History": (history, {"directory": "other"}),
    "Stream": (stream, {
        "path": "other", "committed": 3, "tail": (sha1(b"old").digest(), OLD),
        "encode": bytes.title, "head": lambda: b"head", "rest": lambda: b"rest",
        "closed": (True, {**OLD, "committed": 2, "tail": sha1(b"ol").digest()}),
        "private": True,
    }),
    "Hosts": (hosts, {
        "plan": Plan(politeness=Politeness(robots=False)), "end": lambda reason: None,
        "queue": Stack, "choose": lambda last: Job("http://chosen.test/"), "gated": False,
    }),
    "SharedFrontier": (shared_by, {
        "store": StoreModel(), "meaning": {"depth": 1}, "ttl": 3, "directory": "kept",
        "strands": 2, "settings": ({"a": 1}, {"directory": "kept"}), "seeds": False,
    }),
    "merge": (merged, {"out": "other", "directories": ["nowhere"], "check": refuse}),
    "opened_store": (connected, {"url": "unix:///nowhere", "crawl": ""}),
    "JobChannel": (received, {"choose": lambda last: Job("http://chosen.test/")}),
    "Join.add": (joined, {"n": 2}),
    "Seen": (seen, {"max_redirects": 3, "done": {HOME}}),
    "Web": (web, {"site": {"/a": html()}, "url": "http://b.test/", "delay": 2}),
    "Response": (result("Response"), {
        "status": 404, "headers": httpx.Headers({"a": "b"}), "body": b"x", "request": b"GET",
        "flaw": Reason.TOO_LARGE,
    }),
    "CrawlFacts": (reported, {
        "statistics": Statistics(admitted=9), "workers": 7,
        "seeds": ["http://b.test/"],
        "ended": "stopped", "insecure": ["site.test"],
        "authorized": [HOME.rstrip("/")], "wire": WireStatistics(made=3),
        "politeness": (Politeness(robots=False), {"hosts": SLOW}), "hosts": SLOW,
        "sitemaps": [MAP], "listing": (lambda url: None, {"sitemaps": [MAP]}),
        "directory": "docs", "spent": (True, {"directory": "docs"}), "cookies": False,
        "credentials": True, "checks": False, "missing": {HOME.rstrip("/"): None},
        "cpu": (9.0, WAITED),
    }),
    "Baseline": (result("Baseline"), {"known": [BAD.identity]}),
    "CheckFacts": (result("CheckFacts"), {
        "date": datetime(2026, 2, 2, tzinfo=UTC), "command": "x", "checked": {"a": 1},
        "not_checked": {("a", "robots"): 1}, "mended": [BAD.identity], "ended": "stopped",
        "listed": [], "recalled": 3, "unlinked": [HOME], "unread": {".md": 2}, "version": "9",
    }),
    "Finding": (result("Finding"), {
        "verdict": Verdict.NOTE, "url": HOME + "b", "code": "410", "page": HOME, "kind": "image",
        "fragment": "x", "line": 3, "column": 4, "text": "t", "as_written": "w", "detail": "d",
        "chain": ((Hop(301, HOME),), {}), "external": True,
    }),
    "Verdicts": (lambda **given: repr(Verdicts(**given)), {
        "accept": [404], "ignore": ["x"], "redirects": Verdict.FAULT, "strict_status": True,
        "hosts": {"site.test": [404]},
    }),
    "check_report": (result("check_report"), {
        "findings": [BAD], "facts": OTHER_FACTS, "by_target": (True, {"findings": [BAD]}),
        "full": (True, {"findings": FINDINGS}), "known": 3,
        "shown": (lambda url: "x", {"findings": [BAD]}), "color": True,
        "errors": ([], {"findings": [BAD], "shown": refuse}),
    }),
    **{
        f"to_{form}": (pieces(f"to_{form}"), {
            "findings": [BAD], "facts": OTHER_FACTS,
            "path_of": (lambda url: "file.html", {"findings": [BAD]}),
        })
        for form in ("json", "junit", "sarif")
    },
    "to_markdown": (pieces("to_markdown"), {
        "findings": [BAD], "facts": OTHER_FACTS, "max_bytes": (4_096, {"findings": FINDINGS}),
        "path_of": (lambda url: "file.html", {"findings": [BAD]}),
    }),
    "to_annotations": (pieces("to_annotations"), {
        "findings": [BAD], "path_of": (lambda url: "file.html", {"findings": [BAD]}),
    }),
    "write_baseline": (pieces("write_baseline"), {"findings": [BAD]}),
    "read_baseline": (result("read_baseline"), {
        "lines": [b""], "file": ("y", {"lines": [b""]}),
        "most": (0, {"lines": list(write_baseline([BAD]))}),
    }),
    "parse_patterns": (result("parse_patterns"), {
        "lines": ["a"], "file": ("y", {"lines": ["("]}),
    }),
    "parse_statuses": (result("parse_statuses"), {"text": "404"}),
    "command_line": (result("command_line"), {
        "words": ["x"], "secret": (["--auth"], {"words": ["--auth", "a:b"]}),
    }),
    "links_of": (result("links_of"), {"page": LINKED}),
    "wrapping": (wrapped, {"fetch": Web({})}),
    "seeds_only": (result("seeds_only"), {"job": Job(HOME, 3)}),
    "Report": (report, {"why": True, "full": True, "ledger": KEPT}),
    "Warc": (warc, {"software": "me/1", "seeds": [HOME], "gzip": False, "max_remembered": 1}),
    "all_of": (result("all_of"), {"scopes": [lambda job: False]}),
    "any_of": (result("any_of"), {"scopes": [lambda job: True]}),
    "excluding": (result("excluding"), {"patterns": ["a"]}),
    "including": (result("including"), {"patterns": ["a"]}),
    "with_prefix": (result("with_prefix"), {"prefixes": [HOME]}),
    "same_site": (result("same_site"), {
        "seeds": ["http://b.test/"], "scopes": [lambda job: False], "lenient": LENIENT,
    }),
    "normalise": (result("normalise"), {"url": "http://b.test/", "base": (HOME, {"url": "/a"})}),
    "fault": (result("fault"), {"reason": Reason.TLS, "detail": "expired"}),
    "html": (result("html"), {"links": ["/a"], "title": "T", "status": 404}),
    "redirect": (result("redirect"), {"target": "/b", "status": 308}),
    "robots": (result("robots"), {"lines": ["Disallow: /"]}),
    "changes": (result("changes"), {
        "found": MANY, "since": 86_400.0, "full": (True, {"found": MANY}),
        "repeated": 3,
    }),
    "sitemap_index": (result("sitemap_index"), {"urls": [HOME]}),
    "sitemap_home": (result("sitemap_home"), {"line": b"<loc>http://b.test/x</loc>"}),
    "sitemap_parts": (result("sitemap_parts"), {
        "entries": [b"1"], "max_urls": (1, {"entries": [b"1", b"2"]}),
        "max_bytes": (111, {"entries": [b"1", b"2"]}),
    }),
    "attempted": (result("attempted"), {
        "section": lambda: ["x"], "errors": ([], {"section": refuse}),
    }),
    "visible": (result("visible"), {"text": "\x1b"}),
    "progress_line": (result("progress_line"), {
        "statistics": Statistics(pages=3), "problems": 2,
        "hosts": ([RESTING], {"statistics": Statistics(waiting=1)}),
    }),
    "bridged": (bridge, {"open_crawler": lambda: Crawler([HOME + "a"], fetch=Web({}))}),
    "seen_key": (result("seen_key"), {"url": HOME + "%61"}),
    "csv_entry": (result("csv_entry"), {
        "outcome": Redirect(HOME, 301, HOME + "b"), "shown": Redirect(HOME, 301, HOME + "b"),
    }),
    "csv_with_facts": (result("csv_with_facts"), {
        "entries": [csv_entry(Redirect(HOME, 301, HOME + "b"))],
        "ledger": (POINTING, {"entries": [csv_entry(Redirect(HOME + "a", 301, HOME))]}),
    }),
    "jsonl_with_links": (result("jsonl_with_links"), {
        "entries": [b'""\n', b'{"kind":"skipped"}\n'],
        "ledger": (POINTING, {"entries": [f'"{HOME}a"\n'.encode(), b'{"kind":"skipped"}\n']}),
    }),
    **{name: (result(name), {"job": Job(HOME, 3, priority=0.9)})
       for name in ("breadth_first", "by_sitemap", "depth_first")},
    **{name: (result(name), {"outcome": Redirect(HOME, 301, HOME + "b")})
       for name in ("csv_row", "link_rows", "one_line", "sitemap_entry", "to_jsonl")},
    "Fault": (result("Fault"), {
        "reason": Reason.TLS, "detail": "x", "phase": Phase.READ, "about": Purpose.ROBOTS,
    }),
}  # fmt: skip


def test_each_argument_of_a_public_class_or_function_is_in_the_table():
    wanted = {
        (short(name), argument.name)
        for name, found in CALLED.items()
        # tests/store/test_files.py shows what a lock does, on each kind of system.
        if found not in (*CLASSES, FileLock)
        for argument in parameters(found)
    }
    known = {
        (name.removesuffix(".patience"), argument)
        for name, (_, values) in EFFECTS.items()
        for argument in values
    }
    assert wanted - known == set()
    assert {name for name, _ in known - wanted} == {"SqliteFrontier.stream", "Join.add"}


def new_place(tmp_path: Path) -> Path:
    """Return a directory that is made in another."""
    place = tmp_path / str(len(list(tmp_path.iterdir())))
    place.mkdir()
    return place


async def observed(observe: Callable[..., Any], tmp_path: Path, given: Values) -> Any:
    """Observe once, in a directory of its own."""
    if "tmp_path" in inspect.signature(observe).parameters:
        found = observe(new_place(tmp_path), **given)
    else:
        found = observe(**given)
    return await found if inspect.isawaitable(found) else found


@pytest.mark.parametrize("name", EFFECTS)
async def test_each_argument_has_an_effect_and_nothing_else_is_different(
    autojump_clock: Any, tmp_path: Path, name: str
) -> None:
    observe, values = EFFECTS[name]
    alone = await observed(observe, tmp_path, {})
    assert await observed(observe, tmp_path, {}) == alone
    without = []
    for argument, value in values.items():
        value, others = value if isinstance(value, tuple) else (value, {})
        before = await observed(observe, tmp_path, others) if others else alone
        if await observed(observe, tmp_path, {**others, argument: value}) == before:
            without.append(argument)
    assert without == []
