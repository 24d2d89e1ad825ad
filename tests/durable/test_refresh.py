"""A site is walked again a week later, and that walk is killed again and again, too."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from durable import compare
from durable.crawls import Durable, assert_completed
from durable.server import Served, served
from durable.site import Site
from durable.small import Small, law

from trio_crawler import History

SEED = 6
PAGES = 150
NEW = Site(PAGES, SEED, version=2)


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    with served(Site(PAGES, SEED), PAGES, SEED) as server:
        yield server


def walked_once(server: Served, home: Path) -> Durable:
    """Crawl the site as it was; its second walk writes to other files."""
    server.begin(home / "log1")
    crawl = Durable(server, home)
    assert crawl.run().whole
    server.begin(home / "log2", version=2)
    crawl.lines, crawl.archive = home / "again.jsonl", home / "again.warc.gz"
    crawl.words = ["--refresh"]
    crawl.site = NEW
    crawl.edited = expected(server.site)["changed"]
    crawl.runs.clear()
    return crawl


def begun(crawl: Durable) -> bool:
    """Tell whether the second walk has begun."""
    with History(crawl.directory) as history:
        return history.walks > 1


def changes(crawl: Durable) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    with History(crawl.directory) as history:
        for change in history.changes():
            path = "/" + change.url.removeprefix(crawl.served.url)
            found.setdefault(change.kind, set()).add(path)
    return found


def expected(old: Site) -> dict[str, set[str]]:
    """Say what became of the pages of the old site, by the sites themselves."""
    then = {path for path in old.urls if old.answers[path].status == 200}
    now = {path for path in NEW.urls if NEW.answers[path].status == 200}
    same = {path for path in then & now if old.answers[path].body == NEW.answers[path].body}
    return {"new": now - then, "gone": then - now, "changed": (then & now) - same}


def test_a_second_walk_that_is_killed_finds_what_has_changed_and_asks_by_validators(
    server, tmp_path
):
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    first = walked_once(server, tmp_path / "one")
    assert first.run().whole
    wanted = compare.stored(first.directory)
    killed = walked_once(server, tmp_path / "two")
    random = Random()
    for _ in range(4):
        started = killed.start()
        started.is_over(random.uniform(0.3, 1.2))
        started.killed()
        if begun(killed):
            # A walk that has begun goes on without it; one that is whole would begin a third.
            killed.words = []
    assert_completed(killed, wanted)
    for crawl in (first, killed):
        told = changes(crawl)
        assert {kind: told[kind] for kind in ("new", "gone", "changed")} == expected(server.site)
    asked = server.asked()
    old = server.site.answers
    known = {path for path in NEW.urls & old.keys() if old[path].headers.keys() & {"ETag"}}
    assert known <= {request.path for request in asked if request.conditional}
    assert any(request.status == 304 for request in asked)


async def test_a_second_walk_asks_for_every_url_of_the_first_again(memory, autojump_clock, whole):
    crawl = Small(memory / "crawl")
    await crawl.run()
    crawl.web.hits.clear()
    assert law(await crawl.run(refresh=True))
    # What robots.txt says may hold on for a while.
    assert whole.web.hits.keys() - crawl.web.hits.keys() <= {"http://site.test/robots.txt"}
    assert {outcome.url for outcome in crawl.outcomes()} == {
        outcome.url for outcome in whole.outcomes()
    }
