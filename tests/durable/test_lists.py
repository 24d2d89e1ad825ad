"""A crawl of a list is killed with -9: no URL is lost, and hardly one is asked for twice."""

from __future__ import annotations

import json
from collections import Counter
from random import Random

import pytest
from cli.command import crawl, start, wait_until
from durable.server import served
from durable.site import Site

URLS, WORKERS, KILLS = 2_000, 10, 4


@pytest.mark.parametrize("place", ["a file", "standard input"])
def test_no_url_of_a_list_is_lost_or_asked_for_twice_beyond_the_workers_of_each_kill(
    tmp_path, place
):
    with served(Site(30, 7), 30, 7) as server:
        server.begin(tmp_path / "log")
        urls = [f"{server.url}listed/{number}" for number in range(URLS)]
        (tmp_path / "list").write_text("\n".join(urls))
        words = ["-o", "crawl", "--jsonl", "pages.jsonl", "--allow-private", "127.0.0.0/8"]
        words += ["--per-host", str(WORKERS), "--max-tasks", str(WORKERS)]
        words += ["--urls", "list" if place == "a file" else "-"]

        def asked() -> Counter[str]:
            return Counter(each.path for each in server.asked() if "listed" in each.path)

        for _ in range(KILLS):
            wanted = len(asked()) + Random().randrange(1, URLS // KILLS)
            with (
                open(tmp_path / "list") as lines,
                start(*words, cwd=tmp_path, stdin=lines) as process,
            ):
                wait_until(lambda wanted=wanted: len(asked()) >= wanted or process.poll())
                process.kill()
        with open(tmp_path / "list") as lines:
            result = crawl(*words, cwd=tmp_path, stdin=lines)
        assert f"admitted {URLS:,} = {URLS:,} pages" in result.stdout
        outcomes = list(map(json.loads, (tmp_path / "pages.jsonl").read_text().splitlines()))
        assert Counter(each["url"] for each in outcomes) == Counter(urls)
        assert len(asked()) == URLS
        assert asked().total() <= URLS + KILLS * 2 * WORKERS
