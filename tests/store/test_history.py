from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from cases import for_each
from msgspec.structs import replace
from store.batches import NOW, SITE, admitted, batch, page, walk

from trio_crawler.model import (
    Anchor,
    Failure,
    Outcome,
    Reason,
    Redirect,
    RejectedLink,
    Skipped,
)
from trio_crawler.policy.settings import HostStatistics, HostWait
from trio_crawler.store.changes import Change
from trio_crawler.store.errors import StoreError
from trio_crawler.store.history import History
from trio_crawler.store.runs import End
from trio_crawler.store.store import Store
from trio_crawler.store.writer import Batch


def changed(directory, before: list[Outcome], now: list[Outcome]) -> list[Change]:
    walk(directory, before)
    walk(directory, now, refresh=True)
    with History(directory) as history:
        return list(history.changes())


def one(directory, before: Outcome, now: Outcome) -> tuple[str, str]:
    ((url, kind, detail),) = changed(directory, [before], [now])
    assert url == before.url
    return kind, detail


URL = SITE + "a"


@for_each(
    "before, now, kind, detail",
    [
        (page("a"), page("a"), "unchanged", ""),
        (page("a"), page("a", status=304, body=b""), "unchanged", ""),
        (page("a"), page("a", status=203), "unchanged", ""),
        (page("a"), page("a", body=b"<p>!"), "changed", "4 bytes, before: 3"),
        (page("a"), page("a", status=404), "gone", "404"),
        (page("a"), Failure(URL, Reason.TIMEOUT), "gone", "timeout"),
        (page("a"), Skipped(URL, Reason.ROBOTS), "gone", "not asked for: robots"),
        (
            page("a"),
            Redirect(URL, 301, SITE),
            "changed",
            f"redirects to {SITE}, before: a page",
        ),
        (Redirect(URL, 301, SITE), Redirect(URL, 302, SITE), "unchanged", ""),
        (
            Redirect(URL, 301, SITE + "x"),
            Redirect(URL, 301, SITE),
            "changed",
            f"redirects to {SITE}, before: redirects to {SITE}x",
        ),
        (Redirect(URL, 301, SITE), page("a", status=500), "gone", "500"),
        (page("a", status=404), page("a"), "changed", "a page, before: 404"),
        (page("a", status=404), page("a", status=410), "unchanged", ""),
        (page("a", status=404), page("a", status=500), "changed", "500, before: 404"),
        (Failure(URL, Reason.DNS), Failure(URL, Reason.TIMEOUT), "unchanged", ""),
        (Failure(URL, Reason.DNS), page("a", status=404), "changed", "404, before: dns"),
        (Skipped(URL, Reason.ROBOTS), page("a"), "new", ""),
    ],
)
def test_a_change_is_what_an_owner_understands_by_it(tmp_path, before, now, kind, detail):
    assert one(tmp_path, before, now) == (kind, detail)


def test_a_url_that_neither_walk_requested_has_no_change(tmp_path):
    skipped = Skipped(URL, Reason.ROBOTS)
    assert changed(tmp_path, [skipped], [skipped]) == []
    assert changed(tmp_path / "b", [page("a", status=404)], [skipped]) == []


def test_a_url_that_is_found_for_the_first_time_is_new_even_if_it_is_broken(tmp_path):
    now = [page("a"), page("b"), page("c", status=404), Failure(SITE + "d", Reason.RESET)]
    assert changed(tmp_path, [page("a")], now) == [
        (SITE + "a", "unchanged", ""),
        (SITE + "b", "new", ""),
        (SITE + "c", "new", "404"),
        (SITE + "d", "new", "reset"),
    ]


def test_a_url_that_is_not_found_any_more_is_gone_and_the_detail_says_why(tmp_path):
    refused = (RejectedLink(SITE + "r", Reason.EXCLUDED),)
    now: list[Outcome] = [
        page("", rejected=refused, anchors={SITE + "r": Anchor("a", "R")}),
        Redirect(SITE + "way", 301, SITE + "t", rejected=Reason.ROBOTS),
    ]
    before = [page(""), page("r"), page("t"), page("u"), page("v", status=404)]
    found = changed(tmp_path, before, [*now])
    assert {change.url: tuple(change[1:]) for change in found} == {
        SITE: ("unchanged", ""),
        SITE + "way": ("new", f"redirects to {SITE}t"),
        SITE + "r": ("gone", "not followed any more: excluded"),
        SITE + "t": ("gone", "not followed any more: robots"),
        SITE + "u": ("gone", "no page links to it any more"),
        SITE + "v": ("changed", "no page links to it any more, before: 404"),
    }


def test_an_unfinished_walk_is_compared_by_the_urls_that_have_an_outcome(tmp_path):
    walk(tmp_path, [page("a"), page("b"), page("c")])
    with Store.open(tmp_path, refresh=True) as store:
        store.write(batch([page("a")], 4))
        store.write(admitted("b", 5))
        with History(tmp_path) as history:
            assert list(history.changes()) == [(URL, "unchanged", "")]
        store.write(Batch(settled=[(5, NOW, page("b"))]))
        with History(tmp_path) as history:
            assert [change.kind for change in history.changes()] == ["unchanged"] * 2 + ["gone"]


def test_one_walk_has_no_changes_and_each_walk_its_own_outcomes(tmp_path):
    walk(tmp_path, [page("a")])
    with History(tmp_path) as history:
        assert list(history.changes()) == []
    walk(tmp_path, [page("a", status=404)], refresh=True)
    with History(tmp_path) as history:
        assert history.walks == 2
        for number, status in ((1, 200), (2, 404), (None, 404)):
            (outcome,) = history.outcomes(number)
            assert outcome.status == status
            assert history.statistics(number).pages == 1
        with pytest.raises(StoreError, match="it has 2 walks, and no walk 3"):
            history.outcomes(3)


def test_a_directory_without_a_crawl_is_refused_and_left_empty(tmp_path):
    for directory in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(StoreError) as refused:
            History(directory)
        assert str(refused.value) == (
            f"{directory}: there is no crawl in it: give the directory of a crawl"
        )
    (tmp_path / "crawl.sqlite").touch()
    with pytest.raises(StoreError, match="no crawl has begun in it"):
        History(tmp_path)
    (tmp_path / "crawl.sqlite").write_bytes(b"a text" * 100)
    with pytest.raises(StoreError, match="it is not the database of a crawl"):
        History(tmp_path)


def test_it_reads_whole_batches_while_a_crawl_writes(tmp_path):
    store = Store.open(tmp_path)
    store.write(batch([page("0", links=(SITE,))]))
    done = threading.Event()

    def write() -> None:
        for first in range(2, 600, 3):
            store.write(batch([page(str(first + step)) for step in range(3)], first))
        done.set()

    thread = threading.Thread(target=write)
    thread.start()
    with History(tmp_path) as history:
        last = False
        while not last:
            last = done.is_set()
            figures = history.statistics()
            assert len(list(history.outcomes())) >= figures.pages
    thread.join()
    store.close()
    assert figures.pages == 601


BROKEN = SITE + "gone"


@pytest.fixture
def ask(tmp_path: Path) -> Iterator[Callable[[str], list[tuple[object, ...]]]]:
    """Crawl a site twice and not quite; give what asks the database."""
    anchors = {BROKEN: Anchor("a", "Old news"), "https://b.test/": Anchor("area", "B")}
    refused = (RejectedLink("https://b.test/", Reason.OTHER_SITE),)
    made: list[Outcome] = [
        page(
            "", links=(BROKEN, SITE + "r"), rejected=refused, anchors=anchors, robots=("noindex",)
        ),
        page("gone", status=404, depth=1, referrer=SITE),
        Redirect(SITE + "r", 301, SITE, 1, SITE),
        Failure(SITE + "f", Reason.DNS, "no such name", 1, SITE),
        Skipped(SITE + "s", Reason.ROBOTS, 1, SITE),
        page("plain", links=(SITE,), title="Plain"),
    ]
    walk(tmp_path, [page("old")])
    walk(tmp_path, made, refresh=True)
    with Store.open(tmp_path) as store:
        store.write(admitted(["w"], store.last_number() + 1))
    connection = sqlite3.connect(tmp_path / "crawl.sqlite")
    yield lambda sql: connection.execute(sql).fetchall()
    connection.close()


def test_the_view_of_links_has_the_page_and_the_target_of_each_link(ask):
    assert ask(
        "SELECT page, links.url, text FROM links JOIN pages USING (walk, url) "
        "WHERE status >= 400 AND links.newest"
    ) == [(SITE, BROKEN, "Old news")]
    assert ask("SELECT url, kind, text, rejected FROM links WHERE rejected NOT NULL") == [
        ("https://b.test/", "area", "B", "other_site")
    ]
    assert ask(f"SELECT page, kind FROM links WHERE url = '{SITE}'") == [(SITE + "plain", None)]
    assert ask("SELECT count(*) FROM links WHERE newest AND rejected IS NULL") == [(3,)]


def test_there_is_a_view_for_each_way_in_which_a_url_ends_and_one_for_those_that_wait(ask):
    assert ask("SELECT walk, newest, count(*) FROM pages GROUP BY walk") == [(1, 0, 1), (2, 1, 3)]
    assert ask("SELECT url FROM pages WHERE robots LIKE '%noindex%'") == [(SITE,)]
    assert ask("SELECT url, status, target FROM redirects") == [(SITE + "r", 301, SITE)]
    assert ask("SELECT url, reason, detail, referrer FROM failures") == [
        (SITE + "f", "dns", "no such name", SITE)
    ]
    assert ask("SELECT url, reason FROM skipped") == [(SITE + "s", "robots")]
    assert ask("SELECT walk, url FROM waiting") == [(2, SITE + "w")]
    assert ask("SELECT run, walk, how FROM runs") == [
        (1, 1, "finished"),
        (2, 2, "finished"),
        (3, 2, ""),
    ]
    assert ask("SELECT date(fetched, 'unixepoch') FROM pages LIMIT 1") == [("2026-09-21",)]


def test_every_table_and_column_of_the_documentation_is_there(tmp_path):
    from trio_crawler.store import schema

    walk(tmp_path, [page("a")])
    connection = sqlite3.connect(tmp_path / "crawl.sqlite")
    text = (schema.__doc__ or "").split("\n\n")
    names = [line.split()[0] for part in text[2:4] for line in part.splitlines() if line[4] != " "]
    assert len(names) == 17
    for name in names:
        connection.execute(f"SELECT * FROM {name}").fetchall()
    sql = next(part for part in text if part.strip().startswith("SELECT"))
    assert connection.execute(sql).fetchall() == []
    connection.close()


# The hosts.


def host(name: str, **about: Any) -> HostStatistics:
    given = {"waiting": 0, "in_flight": 0, "limit": 4, "delay": 0.0, "rest": 0.0}
    given |= {"latency": 0.0, "failures": 0, "given_up": {}}
    return HostStatistics(name, **(given | about))


def hosts_after(directory: Path, *runs: list[HostStatistics]) -> list[HostStatistics]:
    for hosts in runs:
        with Store.open(directory) as store:
            store.end(End.STOPPED, hosts, 1.0)
    with History(directory) as history:
        found = history.hosts()
    assert list(found) == [each.name for each in found.values()]
    return list(found.values())


def test_the_hosts_of_all_runs_of_a_walk_are_kept_with_the_sums_of_their_counts(tmp_path):
    down = {"http": Reason.HOST_GIVEN_UP}
    first = [
        host("a.test", waiting=3, latency=0.5, pages=5, failed=1, bytes=10, given_up=down),
        host("b.test", pages=7, waits_for=HostWait.REST, rest=2.5),
    ]
    second = [
        host("c.test", pages=1),
        host("a.test", waiting=1, pages=2, failed=3, bytes=4, waits_for=HostWait.TURN),
    ]
    assert hosts_after(tmp_path, first, second) == [
        host(
            "a.test",
            waiting=1,
            latency=0.5,
            pages=7,
            failed=4,
            bytes=14,
            waits_for=HostWait.TURN,
        ),
        first[1],
        second[0],
    ]


def test_a_new_walk_begins_with_no_hosts(tmp_path):
    walk(tmp_path, [page("a")])
    assert hosts_after(tmp_path, [host("a.test", pages=5), host("b.test")])
    with Store.open(tmp_path, refresh=True) as store:
        with History(tmp_path) as history:
            assert history.hosts() == {}
        store.end(End.STOPPED, [host("a.test", pages=2)], 1.0)
    with History(tmp_path) as history:
        assert history.hosts() == {"a.test": host("a.test", pages=2)}


def test_the_urls_that_wait_are_read_in_the_order_of_admission(tmp_path):
    with Store.open(tmp_path) as store:
        store.write(batch([page("z"), page("a")]))
        store.write(admitted(["c", "b"], first=3))
        sitemap = (5, SITE + "map.xml", "sitemap", 0, 10, None, None)
        store.write(Batch(admitted=[sitemap]))
    with History(tmp_path) as history:
        assert list(history.waiting()) == [SITE + "c", SITE + "b"]
        assert list(history.waiting(1)) == [SITE + "c", SITE + "b"]


@pytest.mark.parametrize("kept", [True, False])
def test_brief_outcomes_differ_only_in_headers_texts_and_what_was_found(tmp_path, kept):
    links = (SITE + "b", SITE + "c")
    bad = (RejectedLink("https://b.test/", Reason.OTHER_SITE), RejectedLink("x:", Reason.BAD_URL))
    texts = {link: Anchor("a", "A text") for link in (links[0], bad[0].url) if kept}
    headers = httpx.Headers({"content-type": "text/html", "etag": '"1"'})
    about = {"links": links, "rejected": bad, "anchors": texts, "headers": headers}
    about["targets"] = frozenset({1})
    walk(tmp_path, [page("a", **about), Redirect(SITE + "b", 301, SITE + "c")])
    with History(tmp_path) as history:
        whole, brief = list(history.outcomes()), list(history.outcomes(brief=True))
    assert (whole[0].anchors, whole[0].targets) == (texts, {1})
    less = {"headers": httpx.Headers(), "anchors": {}, "targets": None}
    assert brief == [replace(whole[0], **less), whole[1]]
