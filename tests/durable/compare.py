"""What must be equal in a crawl that was stopped again and again and in one that was not.

Depth, referrer, tries and seconds may differ, and which of equal bodies came first. With that
goes whether a link of a copy, or of a page that asks not to be followed, was known already and
counts as a link, or was refused for it. Each function returns complaints, none if all is well.
"""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import closing
from hashlib import sha1
from itertools import pairwise
from pathlib import Path
from typing import Any

from durable.server import Asked
from durable.site import Site

from trio_crawler import Failure, History, Outcome, Page, Reason, Redirect
from trio_crawler.report.lines import to_jsonl

_SOFT = {Reason.DUPLICATE, Reason.META_NOFOLLOW, Reason.REL_NOFOLLOW, Reason.HEADER_NOFOLLOW}
_MOST = 5


def stored(directory: Path, walk: int | None = None) -> list[Outcome]:
    """Read the outcomes of a crawl directory."""
    with History(directory) as history:
        return list(history.outcomes(walk))


def outcomes(
    found: Iterable[Outcome], wanted: Iterable[Outcome], either: Collection[str] = ()
) -> list[str]:
    """Compare two crawls; what `either` names may be a redirect or one redirect too many."""
    ours, theirs = list(found), list(wanted)
    urls = Counter(outcome.url for outcome in ours)
    twice = [f"{url} has {count} outcomes" for url, count in urls.items() if count > 1]
    one = {outcome.url: _meaning(outcome, either) for outcome in ours}
    two = {outcome.url: _meaning(outcome, either) for outcome in theirs}
    return [*twice, *_differences(one, two), *_copies(ours, theirs)]


def _differences(one: Mapping[str, Any], two: Mapping[str, Any]) -> Iterator[str]:
    lost, more = sorted(two.keys() - one.keys()), sorted(one.keys() - two.keys())
    if lost:
        yield f"{len(lost)} URLs lost: {lost[:_MOST]}"
    if more:
        yield f"{len(more)} URLs too many: {more[:_MOST]}"
    other = [url for url in one if url in two and one[url] != two[url]]
    for url in other[:_MOST]:
        yield f"{url}: {one[url]} instead of {two[url]}"
    if len(other) > _MOST:
        yield f"{len(other)} URLs with another outcome in all"


def _meaning(outcome: Outcome, either: Collection[str]) -> tuple[Any, ...]:
    match outcome:
        case Page():
            soft = {link.url for link in outcome.rejected if link.reason in _SOFT}
            hard = {(link.url, link.reason) for link in outcome.rejected} - {
                (url, reason) for url in soft for reason in _SOFT
            }
            links = frozenset(outcome.links) | soft
            about = (outcome.status, outcome.title, outcome.size, outcome.content_type)
            said = (outcome.charset, outcome.canonical, outcome.robots, outcome.flaws)
            return ("page", *about, *said, links, frozenset(hard), outcome.links_beyond)
        case Redirect(url=url, target=target) | Failure(url=url, target=str(target)) if (
            url.partition("://")[2].partition("/")[2] in {path[1:] for path in either}
        ):
            return ("leads to", target)
        case Redirect():
            return ("redirect", outcome.status, outcome.target, outcome.rejected)
        case Failure():
            return ("failure", outcome.reason, outcome.target)
    return ("skipped", outcome.reason)


def _copies(ours: Collection[Outcome], theirs: Collection[Outcome]) -> Iterator[str]:
    one, two = _classes(ours), _classes(theirs)
    if one != two:
        yield f"other copies: {one ^ two}"
    copied = {page.url: page.duplicate_of for page in ours if isinstance(page, Page)}
    for page, first in copied.items():
        if first and copied.get(first):
            yield f"{page} is a copy of {first}, and that of {copied[first]}"


def _classes(found: Iterable[Outcome]) -> set[frozenset[str]]:
    """Gather the pages that are copies of one."""
    classes: defaultdict[str, set[str]] = defaultdict(set)
    for page in found:
        if isinstance(page, Page) and page.duplicate_of:
            classes[page.duplicate_of].add(page.url)
    return {frozenset(copies | {first}) for first, copies in classes.items()}


def requests(
    asked: Iterable[Asked],
    site: Site,
    workers: int,
    stops: Collection[int],
    edited: Collection[str] = (),
) -> list[str]:
    """Compare the server's log with what a crawl must ask for, and may ask again.

    A page is asked for as often as one crawl does, and once more for each stop that took its
    answer with it: of these there are twice as many as there are workers, at each stop. The paths
    of pages that were `edited` may be asked for twice in each run of a refresh.
    """
    runs: defaultdict[str, list[int]] = defaultdict(list)
    for request in asked:
        runs[request.path].append(request.run)
    for path in runs.keys() & set(edited):
        for run in {one for one, other in pairwise(runs[path]) if one == other}:
            runs[path].remove(run)
    missing = sorted(site.urls - runs.keys())
    complaints = [f"{len(missing)} never asked for: {missing[:_MOST]}"] if missing else []
    again = lost_at({path: runs[path] for path in runs if path in site.urls}, site)
    for run, paths in again.items():
        if run not in stops:
            complaints.append(f"run {run} was not stopped, but asked again: {paths[:_MOST]}")
        elif len(paths) > 2 * workers:
            complaints.append(f"{len(paths)} asked for again after run {run}: {paths[:_MOST]}...")
    strange = runs.keys() - site.answers.keys()
    return complaints + ([f"asked for {sorted(strange)[:_MOST]}"] if strange else [])


def lost_at(runs: Mapping[str, list[int]], site: Site) -> dict[int, list[str]]:
    """Tell for each run which answers it got in vain: they were asked for again later."""
    lost: defaultdict[int, list[str]] = defaultdict(list)
    for path, numbers in runs.items():
        due = 2 if path in site.busy else site.answers[path].tries
        changes = [run for run, later in pairwise(numbers) if run != later]
        extra = len(numbers) - due
        changes += [numbers[-1]] * (extra - len(changes))
        for run in changes[: max(extra, 0)]:
            lost[run].append(path)
    return lost


def lines(file: Path, found: Iterable[Outcome]) -> list[str]:
    """Compare JSON Lines with the outcomes they must be, each once."""
    written = file.read_bytes().splitlines(keepends=True)
    count = Counter(json.loads(text)["url"] for text in written)
    twice = [
        f"{url} stands in {file.name} {many} times" for url, many in count.items() if many > 1
    ]
    wanted = {outcome.url: to_jsonl(outcome) for outcome in found}
    there = {json.loads(text)["url"]: text for text in written}
    return [*twice[:_MOST], *(f"{file.name}: {text}" for text in _differences(there, wanted))]


def archive(
    file: Path, found: Iterable[Outcome], site: Site, base: str, errands: Iterable[str] = ()
) -> list[str]:
    """Compare a WARC file with the outcomes that had a response, each once, and their bodies.

    What was asked for besides, the paths of `errands`, must be there, too, and may be twice.
    """
    command = [sys.executable, "-m", "warcio.cli", "check", str(file)]
    check = subprocess.run(command, capture_output=True, text=True)
    if check.returncode:
        return [f"warcio check: {check.stdout[-500:]}{check.stderr[-500:]}"]
    kinds, bad = _records(file, site, base)
    wanted = {outcome.url for outcome in found if _answered(outcome)}
    besides = {base + path[1:] for path in errands}
    complaints = [*bad[:_MOST]]
    for kind in ("response", "request", "metadata"):
        count = kinds[kind]
        twice = [url for url, many in count.items() if many > 1 and url not in besides]
        complaints += [f"{kind} of {url}: {count[url]} times" for url in twice[:_MOST]]
        urls = set(count) - besides
        if kind != "metadata" and not besides <= set(count):
            complaints.append(f"no {kind} of {besides - set(count)}")
        complaints += [f"{kind}s: {text}" for text in _differences(_keys(urls), _keys(wanted))]
    return complaints


def _keys(urls: Iterable[str]) -> dict[str, None]:
    return dict.fromkeys(urls)


def _answered(outcome: Outcome) -> bool:
    led = isinstance(outcome, Failure) and outcome.reason in (
        Reason.TOO_MANY_REDIRECTS,
        Reason.BAD_LOCATION,
    )
    return led or isinstance(outcome, Page | Redirect)


def _records(file: Path, site: Site, base: str) -> tuple[dict[str, Counter[str]], list[str]]:
    from warcio.archiveiterator import ArchiveIterator

    kinds: defaultdict[str, Counter[str]] = defaultdict(Counter)
    bad = []
    with file.open("rb") as stream:
        for record in ArchiveIterator(stream):
            kind, url = record.rec_type, record.rec_headers.get_header("WARC-Target-URI")
            kinds["response" if kind == "revisit" else kind][url] += 1
            if kind != "response":
                continue
            answer = site.answers["/" + url.removeprefix(base)]
            body = record.raw_stream.read()
            whole = answer.body.replace(b"{base}/", base.encode())
            if (
                not answer.location
                and answer.status < 500
                and sha1(body).digest() != sha1(whole).digest()
            ):
                bad.append(f"{url} was archived with another body, {len(body)} of {len(whole)}")
    return kinds, bad


def database(directory: Path) -> list[str]:
    """Check the database: is it whole, and does every URL have one outcome?"""
    with closing(sqlite3.connect(directory / "crawl.sqlite")) as connection:
        (state,) = connection.execute("PRAGMA integrity_check").fetchone()
        complaints = [] if state == "ok" else [f"integrity_check: {state}"]
        for walk, admitted, ended in connection.execute(_LAW):
            if admitted != ended:
                complaints.append(f"walk {walk}: {admitted} admitted, {ended} ended")
        return complaints + [f"several outcomes: {row}" for row in connection.execute(_TWICE)]


_ENDS = "SELECT number FROM {}_"
_ALL_ENDS = " UNION ALL ".join(
    _ENDS.format(kind) for kind in ("page", "redirect", "failure", "skip")
)
_LAW = f"""
    SELECT walk, count(*), (SELECT count(*) FROM ({_ALL_ENDS}) AS it
        JOIN urls AS u ON u.number = it.number WHERE u.walk = urls.walk)
    FROM urls WHERE purpose = 'page' GROUP BY walk"""
_TWICE = f"SELECT number, count(*) FROM ({_ALL_ENDS}) GROUP BY number HAVING count(*) > 1"
