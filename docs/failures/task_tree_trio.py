"""Draw who started whom, and when each task did a step: an instrument sees it."""

from __future__ import annotations

import trio
import trio.testing
from workers import crawl

from sites.uneven import answer
from virtual import visitor

COLUMN = 0.2  # seconds


class Lanes(trio.abc.Instrument):
    def __init__(self) -> None:
        self.steps: dict[trio.lowlevel.Task, dict[int, str]] = {}
        self.main: trio.lowlevel.Task | None = None

    def task_spawned(self, task: trio.lowlevel.Task) -> None:
        self.main = self.main or (task if task.name.endswith("main") else None)
        self.steps[task] = {}

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self.steps[task][round(trio.current_time() / COLUMN)] = "|"

    def lane(self, task: trio.lowlevel.Task) -> str:
        steps = self.steps[task]
        marks = "".join(
            steps.get(n, ".") for n in range(min(steps), max(steps) + 1)
        )
        return " " * min(steps) + marks

    def tree(self, task: trio.lowlevel.Task, depth: int = 0) -> None:
        name = "  " * depth + task.name.rpartition(".")[2]
        print(f"{name:<8}{self.lane(task)}")
        children = [
            child
            for child in self.steps
            if child.parent_nursery and child.parent_nursery.parent_task is task
        ]
        for child in sorted(children, key=self.lane):
            self.tree(child, depth + 1)


async def main() -> None:
    client, site = visitor(answer)
    await crawl(client, site.url)


if __name__ == "__main__":
    lanes = Lanes()
    clock = trio.testing.MockClock(autojump_threshold=0)
    trio.run(main, clock=clock, instruments=[lanes])
    assert lanes.main
    lanes.tree(lanes.main)
