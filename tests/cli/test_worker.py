"""The command of a worker, and those about the crawl that it shares."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import msgspec
import pytest
import trio
from cli.command import crawl, start
from sites import valkey
from sites.raw import html, threaded_raw_server

from trio_crawler.shared import opened_store
from trio_crawler.shared.message import Join

pytestmark = pytest.mark.process

SITE = {"/": html("/a", "/b"), "/a": html("/c"), "/b": html(), "/c": html("/gone")}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with valkey.server(tmp_path_factory.mktemp("v")) as url:
        yield url


@pytest.fixture
def name() -> str:
    return uuid4().hex


def urls(path: Path) -> set[str]:
    return {json.loads(line)["url"] for line in path.read_text().splitlines()}


def test_a_worker_crawls_and_one_that_joins_later_has_its_options(
    store: str, name: str, tmp_path: Path
) -> None:
    file = tmp_path / "pages.jsonl"
    with threaded_raw_server(SITE) as server:
        words = (store, "--crawl", name)
        first = crawl("worker", *words, "--depth", "1", "--jsonl", str(file), server.url)
        second = crawl("worker", *words)
        other = crawl("worker", *words, "--depth", "2", server.url)
        third = crawl("worker", *words, "--depth", "2")
    assert first.returncode == 0
    assert urls(file) == {f"{server.url}{path}" for path in ("", "a", "b")}
    # It has all from the store, and nothing is left.
    assert "admitted 0 = 0 pages" in second.stdout
    for failed in (other, third):
        assert failed.returncode == 2
        assert failed.stderr == (
            f"trio-crawler: the shared crawl {name}: it holds another crawl "
            "(--depth was 1, now it is 2): give another --crawl, or drop that one\n"
        )


def test_a_worker_that_joins_may_give_the_options_of_the_crawl_in_another_order(
    store: str, name: str
) -> None:
    words = ("worker", store, "--crawl", name)
    one, other = ("--exclude", "/y"), ("--exclude", "/x")
    with threaded_raw_server({"/": html()}) as server:
        crawl(*words, *one, *other, "--depth", "9", server.url)
    assert crawl(*words, *one, *other).stderr == ""
    wrong = crawl(*words, "--depth", "2")
    assert wrong.returncode == 2
    assert "(--depth was 9, now it is 2)" in wrong.stderr


def test_the_page_budget_of_a_crawl_waits_in_the_store_for_no_one(
    store: str, name: str, tmp_path: Path
) -> None:
    with threaded_raw_server(SITE) as server:
        words = (store, "--crawl", name)
        assert crawl("worker", *words, "--max-pages", "2", server.url).returncode == 0
        shown = crawl("status", *words).stdout
        told = json.loads(crawl("status", *words, "--json").stdout)
        spent = crawl("worker", *words)
        more = crawl("worker", *words, "--max-pages", "4")
    assert spent.returncode == 3
    assert "no pages left: a worker with a greater --max-pages goes on\n" in spent.stdout
    assert "admitted 2 = 2 pages" in more.stdout
    assert shown == f"Crawl {name}: 4 URLs admitted\n2 done, 2 waiting, 0 with workers\n"
    counts = {"admitted": 4, "done": 2, "waiting": 2, "with_workers": 0, "workers": {}}
    assert told == {"crawl": name, **counts, "seeded": True, "over": False}


def test_a_crawl_that_is_stopped_goes_on_with_the_next_worker(store: str, name: str) -> None:
    words = (store, "--crawl", name)
    with threaded_raw_server(SITE) as server:
        assert crawl("worker", *words, "--max-time", "0.001s", server.url).returncode == 3
        assert crawl("stop", *words).returncode == 0
        assert "admitted 5 = 5 pages" in crawl("worker", *words).stdout


def test_a_worker_whose_lease_is_over_ends_with_one_line(store: str, name: str) -> None:
    async def end_its_lease() -> None:
        async with opened_store(store, name) as opened:
            counts = None
            while counts is None or counts.done < 2:
                counts = await opened.counts()
            await opened.call("leave", msgspec.msgpack.encode(counts.workers[0]))

    site = {"/": html("/0"), **{f"/{page}": html(f"/{page + 1}") for page in range(1_000)}}
    words = ("worker", store, "--crawl", name, "--delay", "0.05")
    with threaded_raw_server(site) as server, start(*words, server.url) as worker:
        trio.run(end_its_lease)
        _, said = worker.communicate(timeout=20)
    assert worker.returncode == 1
    assert said.decode().splitlines()[-1] == (
        "trio-crawler: this worker was silent for longer than its lease, and others have its "
        "hosts: start it again"
    )


def test_a_crawl_whose_last_worker_was_killed_goes_on_and_can_be_dropped(
    store: str, name: str
) -> None:
    async def leave_without_a_word() -> None:
        async with opened_store(store, name) as opened:
            # Its lease is as short as that of a worker that was killed long ago.
            join = Join("killed", 1, "", "", -1, False, 1)
            await opened.call("join", msgspec.msgpack.encode(join))
            await opened.stop()
            while (counts := await opened.counts()) is None or counts.workers:
                pass

    words = (store, "--crawl", name)
    with threaded_raw_server(SITE) as server:
        assert crawl("worker", *words, "--max-time", "0.001s", server.url).returncode == 3
        trio.run(leave_without_a_word)
        assert "admitted 5 = 5 pages" in crawl("worker", *words).stdout
        trio.run(leave_without_a_word)
    assert crawl("drop", *words).returncode == 0


def test_a_crawl_that_is_dropped_is_not_there_any_more(store: str, name: str) -> None:
    words = (store, "--crawl", name)
    with threaded_raw_server(SITE) as server:
        assert crawl("worker", *words, "--depth", "1", server.url).returncode == 0
        for command in ("stop", "status", "drop"):
            assert crawl(command, *words).returncode == 0
        for command in ("stop", "status", "drop", "worker"):
            failed = crawl(command, *words)
            assert failed.returncode == 2
            assert failed.stderr == (
                "trio-crawler: there is no shared crawl of this name yet: give its URLs\n"
            )


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("-o", "dir", "--refresh"), "--refresh is not for a worker"),
        (("--check", "all"), "--check is not for a worker"),
        (("--canonical",), "--canonical is not for a worker"),
    ],
)
def test_a_worker_refuses_what_needs_the_whole_crawl(words: tuple[str, ...], says: str) -> None:
    failed = crawl("worker", "redis://127.0.0.1:1/0", "--crawl", "c", *words, "http://a.test/")
    assert failed.returncode == 2
    assert failed.stderr.startswith(f"trio-crawler: {says}")


def test_a_store_that_is_not_there_is_told_without_its_password() -> None:
    url = "redis://user:s3cret@127.0.0.1:1/0"
    for words in (
        ("worker", url, "--crawl", "c", "http://a.test/"),
        ("status", url, "--crawl", "c"),
    ):
        failed = crawl(*words)
        assert failed.returncode == 2
        assert failed.stderr.startswith("trio-crawler: redis://127.0.0.1:1/0: ")
        assert failed.stderr.count("\n") == 1
        assert "s3cret" not in failed.stdout + failed.stderr


def test_the_directories_of_workers_are_merged_and_report_the_whole_crawl(
    store: str, name: str, tmp_path: Path
) -> None:
    words = (store, "--crawl", name)
    with threaded_raw_server(SITE) as server:
        # The second one goes on where the budget ended the first.
        first = crawl("worker", *words, "--max-pages", "2", "-o", "one", server.url, cwd=tmp_path)
        crawl("-o", "alone", server.url, cwd=tmp_path)
    assert first.returncode == 0
    shown = crawl("report", "one", "--jsonl", "one.jsonl", cwd=tmp_path)
    assert "admitted 2 = 2 pages" in shown.stdout
    assert "complete" not in shown.stdout
    assert len(urls(tmp_path / "one.jsonl")) == 2
    merged = crawl("merge", "one", "-o", "out", cwd=tmp_path)
    assert (merged.returncode, merged.stdout) == (0, "2 URLs in out\n")
    again = crawl("merge", "one", "-o", "out", cwd=tmp_path)
    assert (again.returncode, again.stdout) == (1, "")
    assert again.stderr == "trio-crawler: out: it has a crawl already: give a new one\n"


def test_workers_with_directories_write_each_url_once_and_resume(
    store: str, name: str, tmp_path: Path
) -> None:
    pages = {f"/{page}": html(f"/{page + 1}") for page in range(30)}
    words = (store, "--crawl", name)
    with threaded_raw_server({"/": html("/0"), **pages, "/30": html()}) as server:
        options = ("--depth", "40", "--jsonl", "pages.jsonl")
        for time in ("0.2s", "60s"):
            more = ("-o", "dir", *options, "--max-time", time, "--delay", "0.02")
            crawl("worker", *words, *more, server.url, cwd=tmp_path)
    lines = (tmp_path / "pages.jsonl").read_text().splitlines()
    assert len(lines) == len(urls(tmp_path / "pages.jsonl")) == 32
    assert crawl("merge", "dir", "-o", "out", cwd=tmp_path).stdout == "32 URLs in out\n"
