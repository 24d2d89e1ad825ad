from __future__ import annotations

import sqlite3
import tempfile
from contextlib import closing
from hashlib import sha1
from pathlib import Path

import httpx
import pytest
from cases import examples
from hypothesis import given
from hypothesis import strategies as st
from store.batches import NOW, SITE, admitted, batch, outcomes, page, stored, texts, walk

from trio_crawler import store as store_room
from trio_crawler.model import (
    Anchor,
    Failure,
    Fault,
    Listing,
    Page,
    Phase,
    Reason,
    Redirect,
    RejectedLink,
    Response,
    Sitemap,
    Skipped,
)
from trio_crawler.policy.settings import Checks, HostStatistics
from trio_crawler.store.errors import DifferentCrawl, StoreError
from trio_crawler.store.history import History
from trio_crawler.store.runs import End
from trio_crawler.store.store import Store
from trio_crawler.store.writer import Batch

ONE_OF_EACH = [
    page(links=(SITE + "b",), rejected=(RejectedLink("https://b.test/", Reason.OTHER_SITE),)),
    Redirect(SITE + "b", 301, SITE + "c", 1, SITE, rejected=Reason.ROBOTS),
    Failure(SITE + "c", Reason.TIMEOUT, "30 s were over", 1, SITE),
    Skipped(SITE + "d", Reason.ROBOTS, 1, SITE),
]


@examples(40)
@given(st.lists(outcomes, max_size=4))
def test_every_outcome_comes_back_as_it_was(made):
    with tempfile.TemporaryDirectory() as directory:
        with Store.open(directory) as store:
            store.write(batch(made))
            assert list(store.walk.outcomes()) == [stored(outcome) for outcome in made]
        connection = sqlite3.connect(Path(directory) / "crawl.sqlite")
        for view in ("pages", "links", "redirects", "failures", "skipped", "waiting"):
            connection.execute(f"SELECT * FROM {view}").fetchall()
        connection.close()


def test_what_no_column_can_hold_comes_back_as_the_nearest_value(tmp_path):
    with Store.open(tmp_path) as store:
        odd = page("a", title="a\ud800", tries=2**70, links=(f"{SITE}b\udc00",))
        store.write(batch([odd]))
        (found,) = store.walk.outcomes()
    assert (found.title, found.tries, found.links) == ("a\ufffd", 2**63 - 1, (f"{SITE}b\ufffd",))


def test_outcomes_come_in_the_order_of_admission_over_many_numbers(tmp_path):
    made = [page(str(number)) for number in range(1_200)]
    with Store.open(tmp_path) as store:
        changed = batch(made)
        changed.settled.reverse()
        store.write(changed)
        assert [outcome.url for outcome in store.walk.outcomes()] == [one.url for one in made]


def test_the_counts_are_those_of_the_outcomes(tmp_path):
    with Store.open(tmp_path) as store:
        store.write(batch(ONE_OF_EACH, retries=3))
        store.write(admitted("ef", 5))
        found = store.statistics()
    assert (found.admitted, found.waiting, found.retries) == (6, 2, 3)
    assert (found.pages, found.redirects, found.failures, found.skipped) == (1, 1, 1, 1)
    assert (found.rejected, found.bytes, found.in_flight) == (2, 3, 0)


def test_what_waits_comes_back_with_its_tries_in_the_next_run(tmp_path):
    row = (1, SITE, "page", 2, 7, SITE + "r", 0.5)
    sitemap = (2, SITE + "sitemap.xml", "sitemap", 0, 10, None, None)
    with Store.open(tmp_path) as store:
        assert not store.resumed
        store.write(Batch(admitted=[row, sitemap], tried=[(1, 2)]))
    with Store.open(tmp_path) as store:
        assert (store.run, store.walk.number) == (2, 1)
        assert (store.resumed, store.last_number()) == (True, 2)
        assert list(store.walk.waiting()) == [[(*row, 2, 0), (*sitemap, 0, 0)]]
        assert list(store.walk.urls()) == [[(1, SITE, 7)]]
        assert store.walk.others() == [(SITE + "sitemap.xml", "sitemap")]


def test_what_waits_can_be_read_while_other_urls_end(tmp_path):
    with Store.open(tmp_path) as store:
        store.write(admitted(map(str, range(12_000))))
        portions = store.walk.waiting()
        first = next(portions)
        store.write(Batch(settled=[(12_000, NOW, page("11999"))]))
        numbers = [row[0] for portion in (first, *portions) for row in portion]
    assert numbers == list(range(1, 12_000))


def test_a_redirect_budget_that_is_raised_after_admission_is_stored(tmp_path):
    with Store.open(tmp_path) as store:
        store.write(
            Batch(admitted=[(n, SITE + str(n), "page", 0, 3, None, None) for n in (1, 2, 3)])
        )
        store.write(Batch(raised_redirects=[(9, 1), (8, 2)]))
        assert [redirects for _, _, redirects in next(store.walk.urls())] == [9, 8, 3]


def test_redirects_after_redirects_are_found(tmp_path):
    ways = [
        Redirect(SITE + "a", 301, SITE + "b"),
        Redirect(SITE + "b", 301, SITE + "c"),
        Failure(SITE + "c", Reason.TOO_MANY_REDIRECTS, target=SITE + "d"),
        Failure(SITE + "e", Reason.TIMEOUT),
    ]
    with Store.open(tmp_path) as store:
        made = batch(ways)
        lefts = zip(made.admitted, (2, 1, 0, 0), strict=True)
        made.admitted = [(*row[:4], left, *row[5:]) for row, left in lefts]
        store.write(made)
        assert list(store.walk.hops()) == [(SITE + "b", SITE + "c"), (SITE + "c", SITE + "d")]


def test_the_digests_of_all_bodies_or_of_good_html_pages_are_found(tmp_path):
    made = [
        page("a", body=b"a", seconds=0.25),
        page("b", body=b"b", status=404),
        page("c", body=b"c", content_type="text/plain"),
        page("d", body=b""),
    ]
    with Store.open(tmp_path) as store:
        store.write(batch(made))
        # The SHA-1 of "a".
        digest = bytes.fromhex("86f7e437faa5a7fce15d1ddcb9eaeaea377667b8")
        # What an archive calls their date is the beginning.
        assert list(store.walk.bodies(originals=True)) == [[(SITE + "a", digest, NOW + 0.75)]]
        ((first, *others),) = store.walk.bodies()
        assert first == (SITE + "a", digest, NOW + 0.75)
        assert [url for url, _, _ in others] == [SITE + "b", SITE + "c"]


@given(texts, texts)
@examples(15)
def test_sitemaps_and_their_entries_are_read_back(detail, href):
    refused = (RejectedLink(href, Reason.BAD_URL),)
    flaws = (Reason.BAD_SITEMAP,)
    read = Sitemap(SITE + "s.xml", "urlset", 3, 2, flaws, detail, SITE + "robots.txt", refused)
    unread = Sitemap(SITE + "other.xml", detail="not asked for")
    said = Listing(SITE + "s.xml", "2026-11-21", 0.5)
    again = Listing(SITE + "other.xml")
    with tempfile.TemporaryDirectory() as directory, Store.open(directory) as store:
        row = (1, SITE + "s.xml", "sitemap", 0, 10, None, None)
        store.write(Batch(admitted=[row], sitemaps=[(1, read, [(SITE, said)])]))
        store.write(Batch(sitemaps=[(0, unread, [(SITE, again)])]))
        assert store.walk.sitemaps() == [read, unread]
        assert store.walk.listings() == {SITE: said}
        assert list(store.walk.waiting()) == []


def test_the_last_answer_for_a_robots_txt_comes_back(tmp_path):
    headers = httpx.Headers([(b"ETag", b'"\xe9"'), (b"X", b"1"), (b"X", b"2")])
    with Store.open(tmp_path) as store:
        store.write(Batch(robots=[("https://a.test", NOW, Response(500))]))
        store.write(Batch(robots=[("https://a.test", NOW + 1, Response(200, headers, b"\0\xff"))]))
    with Store.open(tmp_path) as store:
        ((origin, at, answer),) = store.robots()
    assert (origin, at, answer.status, answer.body) == ("https://a.test", NOW + 1, 200, b"\0\xff")
    assert answer.headers.raw == headers.raw


def test_a_batch_that_fails_counts_for_nothing_and_is_the_last(tmp_path):
    with Store.open(tmp_path) as store:
        store.write(batch([page("a")]))
        other = sqlite3.connect(tmp_path / "crawl.sqlite", isolation_level=None)
        other.execute("PRAGMA journal_mode")
        store._database._connection.execute("PRAGMA busy_timeout = 0")
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match=r"another program has locked it.*close that") as one:
            store.write(batch([page("b")], 2))
        other.close()
        with pytest.raises(StoreError) as two:
            store.write(batch([page("c")], 3))
        assert two.value is one.value
        assert [outcome.url for outcome in store.walk.outcomes()] == [SITE + "a"]


def test_an_outcome_twice_is_a_bug_of_the_caller_and_changes_nothing(tmp_path):
    with Store.open(tmp_path) as store:
        store.write(batch([page("a")]))
        with pytest.raises(sqlite3.IntegrityError):
            store.write(Batch(settled=[(1, NOW, page("a"))]))
        assert len(list(store.walk.outcomes())) == 1


GONE = Fault(Reason.DNS, "no such name: \udcff")
REFUSED = Fault(Reason.CONNECTION_REFUSED, "", Phase.CONNECT)


def test_a_run_has_its_times_and_the_way_it_ended(tmp_path):
    hosts = [
        HostStatistics("a.test", 1, 2, 3, 0.5, 1.5, 0.1, 4, {}),
        HostStatistics("b.test", 0, 0, 4, 0.0, 0.0, 0.0, 3, {"https": Reason.HOST_GIVEN_UP}),
        HostStatistics("c.test", 0, 0, 4, 0, 0, 0, 3, {"http": GONE, "https": REFUSED}),
    ]
    with Store.open(tmp_path, settings={"workers": 7}) as store:
        store.write(batch([page("a")], retries=1))
        store.end(End.STOPPED, hosts, 2.5)
    with Store.open(tmp_path) as store:
        store.write(Batch(retries=1))
        assert store.statistics().seconds == 2.5
        with History(tmp_path) as history:
            first, second = history.runs
            assert first.how is End.STOPPED
            assert (first.seconds, first.workers, first.walk) == (2.5, 7, 1)
            assert first.ended is not None
            assert first.started <= first.ended <= second.started
            assert (second.ended, second.how, second.workers) == (None, None, None)
            assert second.settings == {}
            assert history.hosts() == {host.name: host for host in hosts}
            assert history.statistics().retries == 2


def test_another_meaning_is_refused_and_every_difference_named(tmp_path):
    Store.open(tmp_path, meaning={"urls": ["a"], "depth": 3, "strict": False}).close()
    with pytest.raises(DifferentCrawl) as refused:
        Store.open(tmp_path, meaning={"urls": ("b",), "depth": 3, "strict": True})
    assert str(refused.value) == (
        f'{tmp_path}: it holds another crawl (urls was ["a"], now it is ["b"]; strict was false, '
        "now it is true): give another directory, or delete this one to start anew"
    )
    with Store.open(tmp_path, meaning={"urls": ("a",), "newer": 1}) as store:
        assert store.run == 2
    with pytest.raises(DifferentCrawl, match="newer was 1, now it is 2"):
        Store.open(tmp_path, meaning={"newer": 2})


def test_a_refresh_of_an_unfinished_walk_is_refused(tmp_path):
    with Store.open(tmp_path) as store:
        store.write(admitted("a"))
        store.end(End.STOPPED, [], 1.0)
    with pytest.raises(StoreError, match="not finished: let it finish without --refresh first"):
        Store.open(tmp_path, refresh=True)


def test_a_refresh_of_nothing_is_the_first_walk(tmp_path):
    with Store.open(tmp_path, refresh=True) as store:
        assert store.walk.number == 1
    with Store.open(tmp_path, refresh=True) as store:
        assert store.walk.number == 1


def test_a_refresh_begins_a_walk_and_goes_on_with_it_until_it_has_ended(tmp_path):
    walk(tmp_path, [page("a")])
    with Store.open(tmp_path, refresh=True) as store:
        assert (store.walk.number, store.resumed, store.last_number()) == (2, False, 1)
        assert (list(store.walk.urls()), store.statistics().admitted) == ([], 0)
        store.write(admitted("a", 2))
    for refresh in (True, False):
        with Store.open(tmp_path, refresh=refresh) as store:
            assert (store.walk.number, store.resumed) == (2, True)
    with Store.open(tmp_path) as store:
        store.write(Batch(settled=[(2, NOW, page("a"))]))
    with Store.open(tmp_path, refresh=True) as store:
        assert store.walk.number == 3


def test_an_unchanged_page_stands_for_the_one_with_content_through_all_walks(tmp_path):
    anchors = {SITE + "b": Anchor("a", "B")}
    links = {"links": (SITE + "b",), "anchors": anchors, "title": "A", "robots": ("noindex",)}
    bad = (RejectedLink("http://[", Reason.BAD_URL), RejectedLink(SITE + "n", Reason.REL_NOFOLLOW))
    walk(
        tmp_path,
        [page("a", headers=httpx.Headers({"etag": '"1"'}), rejected=bad, seconds=0.5, **links)],
    )
    digest = sha1(b"<p>").digest()
    for number in (2, 3):
        with Store.open(tmp_path, refresh=True) as store:
            ((url, of, validator),) = store.validators(Checks.off())
            assert (url, of, validator) == (SITE + "a", 1, ('"1"', None, digest, NOW + 0.5))
            facts = store.facts(of)
            assert facts is not None
            assert (facts.links, facts.title) == ((SITE + "b", SITE + "n"), "A")
            assert (facts.malformed, facts.nofollow) == (("http://[",), {SITE + "n"})
            # A 304 is asked for by the page it stands for.
            assert store.facts(number - 1) == facts
            assert (facts.anchors, facts.meta_robots) == (anchors, ("noindex",))
            store.write(batch([page("a", status=304, body=b"")], number))
    with History(tmp_path) as history:
        assert [change.kind for change in history.changes()] == ["unchanged"]
    with closing(sqlite3.connect(tmp_path / "crawl.sqlite")) as connection, connection:
        rows = connection.execute("SELECT same_as, digest FROM pages ORDER BY walk").fetchall()
    assert [same_as for same_as, _ in rows] == [None, 1, 1]
    assert len({digest for _, digest in rows}) == 1


def test_the_validators_are_those_of_the_last_good_page(tmp_path):
    def version(tag: str, status: int = 200) -> Page:
        return page("a", status=status, headers=httpx.Headers({"etag": tag}))

    walk(tmp_path, [version("1")])
    walk(tmp_path, [version("2")], refresh=True)
    walk(tmp_path, [version("3", 404)], refresh=True)
    with Store.open(tmp_path, refresh=True) as store:
        assert [(of, known.etag) for _, of, known in store.validators(Checks.off())] == [(2, "2")]


def test_a_page_without_validators_has_none(tmp_path):
    walk(tmp_path, [page("a")])
    with Store.open(tmp_path, refresh=True) as store:
        assert list(store.validators(Checks.off())) == []
        assert store.facts(7) is None


def test_closing_leaves_one_file_and_may_be_done_twice(tmp_path):
    store = Store.open(tmp_path)
    store.write(batch([page("a")]))
    store.close()
    store.close()
    assert sorted(file.name for file in tmp_path.iterdir()) == ["crawl.sqlite", "lock"]


def test_the_room_exports_its_public_names():
    for name in store_room.__all__:
        assert getattr(store_room, name).__name__ == name
    with pytest.raises(AttributeError, match=r"No trio_crawler\.store attribute Shelf"):
        store_room.Shelf  # noqa: B018
