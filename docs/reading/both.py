"""Crawl with tasks that are futures, and are awaited. See complete.py."""

from __future__ import annotations

import sys
from collections.abc import Coroutine, Generator
from contextlib import suppress
from typing import Any

import complete
from awaits import Future, fetch
from ground import soon
from web import links, show


class Task(Future):
    def __init__(self, coro: Coroutine[Future, None, Any]) -> None:
        super().__init__()
        self.coro = coro
        self.error: Exception | None = None
        soon.append(self.step)

    def step(self) -> None:
        try:
            next_future = self.coro.send(None)
        except StopIteration as stop:
            self.set_result(stop.value)  # (1)
        except Exception as error:
            self.error = error  # (3)
            self.set_result(None)
        else:
            next_future.add_done_callback(lambda _: soon.append(self.step))

    def __await__(self) -> Generator[Future, None, Any]:
        result = yield from super().__await__()
        if self.error:
            raise self.error
        return result


def stop_callback(future: Future) -> None:
    raise complete.StopError


class EventLoop(complete.EventLoop):
    def run_until_complete(self, coro: Coroutine[Future, None, Any]) -> Any:
        task = Task(coro)
        task.add_done_callback(stop_callback)
        with suppress(complete.StopError):
            self.run_forever()
        if task.error:
            raise task.error
        return task.result


async def visit(url: str) -> set[str]:
    return links(url, await fetch(url))


async def crawl(root: str) -> set[str]:
    seen_urls = {root}
    tasks = [Task(visit(root))]
    for task in tasks:  # the list grows while it is gone through
        new = await task - seen_urls  # (2)
        seen_urls |= new
        tasks += [Task(visit(url)) for url in sorted(new)]  # (4)
    return seen_urls


if __name__ == "__main__":
    show(EventLoop().run_until_complete(crawl(sys.argv[1])))
