"""What pages 12 to 15 stand on: a turn of a loop, and a queue."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from awaits import Future
from futures import selector

soon: deque[Callable[[], None]] = deque()  # done before the next wait


def turn() -> None:
    for key, _ in selector.select(0 if soon else None):
        key.data()
    while soon:
        soon.popleft()()


class Queue:
    def __init__(self) -> None:
        self._items: deque[Any] = deque()
        self._getters: deque[Future] = deque()

    def put_nowait(self, item: Any) -> None:
        self._items.append(item)
        if self._getters:
            self._getters.popleft().set_result(None)

    async def get(self) -> Any:
        while not self._items:
            self._getters.append(Future())
            await self._getters[-1]
        return self._items.popleft()
