"""Crawl with a generator: it yields a URL and is sent the page."""

from __future__ import annotations

import sys
from collections.abc import Generator
from functools import partial

from blocking import fetch
from web import links, show

Pages = Generator[str, bytes, set[str]]


def crawl(root: str) -> Pages:
    seen, todo = {root}, [root]
    while todo:
        url = todo.pop()
        try:
            data = yield url  # (1)
        except OSError as error:  # (2)
            print(f"{url}: {type(error).__name__}")
            continue
        new = sorted(links(url, data) - seen)
        seen.update(new)
        todo += new
    return seen  # (3)


def run(pages: Pages) -> set[str]:
    paused: list[int] = []
    resume = partial(pages.send, None)
    try:
        while True:
            url = resume()  # (4)
            paused.append(pages.gi_frame.f_lasti)  # (5)
            try:
                resume = partial(pages.send, fetch(url))
            except OSError as error:
                resume = partial(pages.throw, error)  # (2)
    except StopIteration as end:
        places = len(set(paused))
        print(f"paused {len(paused)} times, in {places} place")
        return end.value  # (3)


if __name__ == "__main__":
    show(run(crawl(sys.argv[1])))
