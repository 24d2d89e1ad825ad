"""A nursery holds its tasks: they end before it does, in a way that is known."""

from __future__ import annotations

import gc

import trio


async def watch() -> None:
    """Wait for a sign, and say goodbye in any case."""
    try:
        await trio.sleep_forever()
    finally:
        print("goodbye begins")
        with trio.move_on_after(1, shield=True):
            await trio.sleep(0.01)
        print("goodbye is over")


async def main() -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(watch)  # (1)
        await trio.sleep(0.01)
        print("tasks:", 1 + len(nursery.child_tasks))
        gc.collect()
        print("tasks:", 1 + len(nursery.child_tasks))
        nursery.cancel_scope.cancel()


if __name__ == "__main__":
    trio.run(main)
