"""A crawl with facts: each page has them, and so has its directory."""

from __future__ import annotations

import csv
import json
import sqlite3
from pathlib import Path

import httpx
import pytest
from cli.command import crawl
from msgspec.structs import replace
from sites.raw import html, redirect, reply, threaded_raw_server

from trio_crawler import Crawler, History, Job, Limits, Page, Response, SqliteFrontier
from trio_crawler.facts import PageFacts

HOME = "http://site.test/"
BODY = b"<html lang=en><meta name=description content=D><h1>One</h1><p>two three<img src=i.png>"
HEADERS = httpx.Headers({"Content-Type": "text/html; charset=utf-8", "ETag": '"1"'})


async def fetch(job: Job) -> Response:
    return Response(304, HEADERS) if job.validator else Response(200, HEADERS, BODY)


async def pages(frontier: SqliteFrontier | None = None, *, facts: bool = True) -> list[Page]:
    crawler = Crawler(
        [HOME], fetch=fetch, frontier=frontier, facts=facts, limits=Limits(max_pages=1)
    )
    async with crawler.outcomes() as outcomes:
        return [outcome async for outcome in outcomes if isinstance(outcome, Page)]


async def test_a_page_has_facts_only_if_the_crawl_keeps_them() -> None:
    (without,), (page,) = await pages(facts=False), await pages()
    assert without.facts is None
    assert page.facts is not None
    assert replace(page.facts, fetched=0.0) == PageFacts(
        headers={"etag": '"1"'},
        lang="en",
        h1=("One",),
        h1_count=1,
        description="D",
        words=3,
        images=1,
        images_without_alt=1,
    )


async def test_a_page_that_is_unchanged_keeps_its_facts_but_for_their_time(tmp_path: Path) -> None:
    async with SqliteFrontier(tmp_path) as frontier:
        (first,) = await pages(frontier)
    async with SqliteFrontier(tmp_path, refresh=True) as frontier:
        (second,) = await pages(frontier)
    assert (second.status, second.facts.description) == (304, "D")
    assert second.facts.fetched > first.facts.fetched
    assert replace(second.facts, fetched=0.0) == replace(first.facts, fetched=0.0)
    with History(tmp_path) as history:
        found = [[each.facts for each in history.outcomes(walk, brief=True)] for walk in (1, 2)]
    assert found == [[first.facts], [second.facts]]


@pytest.mark.process
def test_the_facts_of_a_page_are_in_every_file_and_in_the_database(tmp_path: Path) -> None:
    site = {"/": html("/a", "/old"), "/old": redirect("/a"), "/a": reply(200, HEADERS, BODY)}
    files = {
        name: tmp_path / name for name in ("live.csv", "kept.csv", "live.jsonl", "kept.jsonl")
    }
    directory = tmp_path / "dir"
    with threaded_raw_server(site) as server:
        words = ("--csv", str(files["live.csv"]), "--jsonl", str(files["live.jsonl"]))
        crawl("--facts", "-o", str(directory), *words, server.url)
        url = f"{server.url}a"
    words = ("--csv", str(files["kept.csv"]), "--jsonl", str(files["kept.jsonl"]))
    crawl("report", str(directory), *words)
    kept, live = (
        sorted(files[f"{each}.csv"].read_bytes().splitlines()) for each in ("kept", "live")
    )
    assert kept == live
    whole, records = (
        {
            each["url"]: each
            for each in map(json.loads, files[f"{name}.jsonl"].read_text().splitlines())
        }
        for name in ("kept", "live")
    )
    # The lines of a crawl are written before its end.
    added = {each: (row.pop("inlinks"), row.pop("redirected_from")) for each, row in whole.items()}
    assert (added[url], whole) == ((1, [f"{server.url}old"]), records)
    facts = records[url]["facts"]
    with files["live.csv"].open(newline="") as file:
        (row,) = (each for each in csv.DictReader(file) if each["url"] == url)
    assert (facts["h1"], facts["description"], facts["words"]) == (["One"], "D", 3)
    assert (row["h1"], row["description"], row["words"]) == ("One", "D", "3")
    assert facts["fetched"] == row["fetched"]
    assert (row["inlinks"], row["redirected_from"]) == ("1", f"{server.url}old")
    with sqlite3.connect(directory / "crawl.sqlite") as connection:
        sql = "SELECT h1, words, pages FROM facts JOIN inlinks USING (walk, url) WHERE url = ?"
        assert connection.execute(sql, (url,)).fetchall() == [('["One"]', 3, 1)]
    connection.close()


@pytest.mark.process
def test_a_host_is_asked_for_an_invented_url_only_if_a_page_looks_like_an_error() -> None:
    soft = html(title="Page not found")
    for site in ({"/": html("/a"), "/a": html()}, {"/": html("/a"), "/a": soft}):
        with threaded_raw_server(site) as server:
            done = crawl("--facts", server.url)
        invented = [each for each in server.targets if each not in ("/", "/a", "/robots.txt")]
        assert len(invented) == (site["/a"] is soft)
        # This host answers it with 404, so its page is no error.
        assert "that look like an error" not in done.stdout


@pytest.mark.process
def test_a_check_of_a_folder_names_the_files_that_have_notes(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("<title>A</title><p>text")
    done = crawl("check", "--facts", str(tmp_path))
    assert done.returncode == 0
    assert f"  1 without a description\n    {tmp_path}/index.html\n" in done.stdout
