"""A coroutine is such a frame; its driver is Trio's, and can wait."""

from __future__ import annotations

import sys

import trio
from blocking_trio import fetch
from web import links, show


async def crawl(root: str) -> set[str]:
    seen, todo = {root}, [root]
    while todo:
        url = todo.pop()
        try:
            with trio.fail_after(1):
                data = await fetch(url)  # (1)
        except (OSError, trio.TooSlowError) as error:  # (2)
            print(f"{url}: {type(error).__name__}")
            continue
        new = sorted(links(url, data) - seen)
        seen.update(new)
        todo += new
    return seen  # (3)


class Watch(trio.abc.Instrument):
    def __init__(self) -> None:
        self.paused: list[int] = []

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        if task.name.endswith(".crawl") and task.coro.cr_frame:
            self.paused.append(task.coro.cr_frame.f_lasti)  # (5)


def run(root: str) -> set[str]:
    watch = Watch()
    pages = trio.run(crawl, root, instruments=[watch])  # (3) (4)
    often = "more than 13" if len(watch.paused) > 13 else "at most 13"
    print(f"paused {often} times, in {len(set(watch.paused))} place")
    return pages


if __name__ == "__main__":
    show(run(sys.argv[1]))
